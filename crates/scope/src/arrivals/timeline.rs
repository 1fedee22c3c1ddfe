// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows what is off, and since when: the changes from one sample to the next.

use std::collections::{BTreeMap, BTreeSet};

use super::program::Wait;
use crate::names::Func;

/// Nothing is off, and the kernel runs.
pub const OPEN: u8 = 0;
/// Interrupts are off.
pub const IRQS: u8 = 1;
/// Preemption is off.
pub const PREEMPT: u8 = 2;
/// Soft interrupts are off, or one is served. That keeps threads away as well.
pub const SOFTIRQ: u8 = 4;
/// The kernel asks only here and there whether another thread is to run.
pub const STUCK: u8 = 8;
/// A thread that goes before the waiting one has the CPU.
pub const AHEAD: u8 = 32;
/// All states that keep a thread away.
pub const OFF: u8 = IRQS | PREEMPT | SOFTIRQ | STUCK | AHEAD;
/// User space runs.
pub const USER: u8 = 16;

/// The running thread is bound to its CPU (`migrate_disable`) and was not switched away from since.
/// The next switch has to note that.
pub const PINNED: u8 = 1;
/// The running thread reads under RCU and was not switched away from since. The next switch has to
/// queue it.
pub const READER: u8 = 2;
/// The running thread is a real-time thread, which is put away in less time than others.
pub const REAL_TIME: u8 = 4;
/// A tick has just been carried out. Time that it has accounted to the running thread is not
/// accounted again.
pub const AFTER_TICK: u8 = 8;
/// Duration of [`AFTER_TICK`], in instructions.
pub const TICKED: u64 = 6_000;

/// A change of what is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Position, in instructions.
    pub at: u64,
    /// The state from there on.
    pub state: u8,
    /// The function that changes it. Helpers change it for the function that comes next.
    pub by: Func,
    /// The function that runs there, helpers included.
    pub func: Func,
    /// True if the scheduler was called.
    pub scheduled: bool,
    /// The tasks of the next switch away from the running thread: [`PINNED`], [`READER`].
    pub held: u8,
}

/// An interrupt, from its entry to the point where the interrupted code goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Position at which it came.
    pub from: u64,
    /// Position at which it was over.
    pub to: u64,
    /// True if it is the timer's, which comes at a moment of its own whatever runs.
    pub is_timer: bool,
    /// Set if it went over into the scheduler: true if it came out of user space.
    pub scheduled: Option<bool>,
}

/// A point at which the kernel looks for a waiting thread, and skips work if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Position of the look.
    pub at: u64,
    /// Position up to which it skips work.
    pub to: u64,
}

/// The code that looks: a function that goes through pages one by one, or the rounds of soft
/// interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// Looks wherever it goes on: `zap_pte_range` and `copy_pte_range` in `mm/memory.c`, which
    /// compilers make part of these.
    Pages,
    /// Looks where all soft interrupts were served and some are pending again: `handle_softirqs` in
    /// `kernel/softirq.c`.
    Rounds,
    /// Serves one soft interrupt, the smaller numbers first.
    Action(u8),
}

impl Looks {
    /// Returns the kind of a function, by its name.
    pub fn of(name: &str) -> Option<Self> {
        /// Functions in the order in which they are served; `include/linux/interrupt.h`.
        const ACTIONS: [&[&str]; 10] = [
            &["tasklet_hi_action"],
            &["run_timer_softirq"],
            &["net_tx_action"],
            &["net_rx_action"],
            &["blk_done_softirq"],
            &["irq_poll_softirq"],
            &["tasklet_action"],
            &["run_rebalance_domains", "sched_balance_softirq"],
            &["hrtimer_run_softirq"],
            &["rcu_core_si"],
        ];
        let name = name.split('.').next().unwrap_or(name);
        let action = ACTIONS
            .iter()
            .zip(0..)
            .find(|(names, _)| names.contains(&name));
        match name {
            "unmap_page_range" | "copy_page_range" => Some(Self::Pages),
            "handle_softirqs" | "__do_softirq" => Some(Self::Rounds),
            _ => action.map(|(_, number)| Self::Action(number)),
        }
    }
}

/// A place that may be a look. It belongs to one pass.
#[derive(Clone, Copy, Debug)]
struct Passed {
    at: u64,
    /// The pass: over pages, or in rounds, by its number.
    of: (bool, u32),
    looked: bool,
}

/// The events from one reading of the clock to the next.
#[derive(Clone, Debug, Default)]
pub struct Period {
    /// The step, from 0.
    pub step: u32,
    /// The number of the sample that ends it.
    pub sample: u64,
    /// Position at which the clock was read for the previous sample.
    pub read: u64,
    /// Position at which the first block after the arming marker began.
    pub armed: u64,
    /// Position at which the probe's thread gave up the CPU.
    pub left: Option<u64>,
    /// Position at which the last switch before that was over.
    pub switched: u64,
    /// Position at which the clock was read for this sample.
    pub taken: u64,
    /// The looks of the kernel for a waiting thread, in order.
    pub looks: Vec<Look>,
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// Positions at which the CPU was put to sleep.
    pub halts: Vec<u64>,
    /// The interrupts, in order.
    pub interrupts: Vec<Came>,
    /// The wait of a program's thread, as far as it is known.
    pub wait: Option<Wait>,
    /// Positions at which the kernel's tick was carried out.
    pub ticks: Vec<u64>,
    /// Functions that ran where something was off, each with the position at which it began.
    pub ran: Vec<(u64, Func)>,
    /// True if the followed state was not what the code proved: something was missed.
    pub mended: bool,
}

/// Follows what is off.
#[derive(Debug, Default)]
pub struct Timeline {
    now: Period,
    state: u8,
    step: Option<u32>,
    /// The steps whose periods are kept; all of them if `None`.
    only: Option<BTreeSet<u32>>,
    /// True if this step's periods are not kept: others may be long, and have no samples.
    skips: bool,
    /// The number of consecutive changes that helpers have made for the function that comes next.
    unnamed: usize,
    /// The holds of the running thread: [`PINNED`], [`REAL_TIME`].
    holds: u8,
    /// The number of RCU reads that the running thread has begun since it was switched to.
    readers: u32,
    held: u8,
    armed: bool,
    /// True if the first block after the arming marker is still to come.
    arming: bool,
    read: Option<u64>,
    came: Option<(u64, bool)>,
    samples: u64,
    passed: Vec<Passed>,
    /// The numbers of passes over pages, and of rounds of soft interrupts.
    pages: u32,
    rounds: u32,
    /// The soft interrupt that was served last in these rounds.
    action: Option<u8>,
    /// [`AHEAD`] if a thread that goes before the waiting one has the CPU, else 0.
    ahead: u8,
}

impl Timeline {
    /// Creates one that keeps the periods of these steps.
    pub fn of(steps: impl Iterator<Item = u32>) -> Self {
        Self {
            only: Some(steps.collect()),
            skips: true,
            ..Self::default()
        }
    }

    /// Begins a step.
    pub fn step(&mut self) {
        let step = self.step.map_or(0, |step| step + 1);
        self.step = Some(step);
        self.skips = self.only.as_ref().is_some_and(|only| !only.contains(&step));
        self.passed.clear();
        self.now = Period::default();
        self.samples = 0;
        self.armed = false;
    }

    /// Returns true if anything is off.
    pub fn is_off(&self) -> bool {
        self.state & OFF != 0
    }

    /// Notes what is off at a position. Does nothing if that is as it was.
    pub fn note(&mut self, at: u64, state: u8, func: Func, is_helper: bool, scheduled: bool) {
        let state = state | self.ahead;
        let held = self.holds + u8::from(self.readers > 0) * READER;
        let is_open = state & OFF == 0;
        // What was gone through is over.
        self.pages += u32::from(is_open && self.is_off());
        if self.state == state && !scheduled && !(is_open && held != self.held) {
            return;
        }
        (self.state, self.held) = (state, held);
        if self.skips {
            return;
        }
        self.unnamed = if is_helper { self.unnamed + 1 } else { 0 };
        self.now.changes.push(Change {
            at,
            state,
            by: func,
            func,
            scheduled,
            held,
        });
    }

    fn hold(&mut self, what: u8, is_held: bool) {
        self.holds = (self.holds & !what) | (u8::from(is_held) * what);
    }

    /// Notes whether the running thread is bound to its CPU.
    pub fn pin(&mut self, is_pinned: bool) {
        self.hold(PINNED, is_pinned);
    }

    /// Notes whether the thread that runs, or is about to, is a real-time thread.
    pub fn class(&mut self, is_real_time: bool) {
        self.hold(REAL_TIME, is_real_time);
    }

    /// Notes that the running thread begins to read under RCU, or ends.
    pub fn read(&mut self, begins: bool) {
        self.readers = if begins {
            self.readers + 1
        } else {
            self.readers.saturating_sub(1)
        };
    }

    /// Notes that a function runs that is no helper.
    #[inline]
    pub fn name(&mut self, func: Func) {
        if self.unnamed > 0 {
            let own = self.now.changes.iter_mut().rev().take(self.unnamed);
            own.for_each(|change| change.by = func);
            self.unnamed = 0;
        }
    }

    /// Notes that a function runs from here on.
    #[inline]
    pub fn ran(&mut self, at: u64, func: Func) {
        if self.state & OFF != 0
            && !self.skips
            && self.now.ran.last().is_none_or(|(_, last)| *last != func)
        {
            self.now.ran.push((at, func));
        }
    }

    /// Notes that a function that looks for waiting threads is entered, or goes on.
    pub fn looks(&mut self, at: u64, looks: Looks, enters: bool) {
        match looks {
            Looks::Pages => {
                self.pages += u32::from(enters);
                self.pass(at, (false, self.pages), true);
            }
            Looks::Rounds => {
                if enters {
                    (self.rounds, self.action) = (self.rounds + 1, None);
                }
                self.pass(at, (true, self.rounds), false);
            }
            Looks::Action(number) if enters => {
                // Not behind the one before it: a further round has begun.
                let own = (true, self.rounds);
                let again = self.action.is_some_and(|last| number <= last);
                let last = self.passed.iter_mut().rev().find(|one| one.of == own);
                if let Some(last) = last.filter(|_| again) {
                    last.looked = true;
                }
                self.action = Some(number);
            }
            Looks::Action(_) => {}
        }
    }

    fn pass(&mut self, at: u64, of: (bool, u32), looked: bool) {
        if self.is_off() && !self.skips {
            self.passed.push(Passed { at, of, looked });
        }
    }

    /// Takes each look, with the end of its pass.
    fn take_looks(&mut self) -> Vec<Look> {
        let passed = std::mem::take(&mut self.passed);
        let mut ends = BTreeMap::new();
        for one in &passed {
            ends.insert(one.of, one.at);
        }
        let looked = passed.iter().filter(|one| one.looked);
        let looks = looked.map(|one| Look {
            at: one.at,
            to: ends.get(&one.of).copied().unwrap_or(one.at),
        });
        looks.filter(|look| look.at < look.to).collect()
    }

    /// Notes that the followed state was not what the code proves.
    pub fn mend(&mut self) {
        self.now.mended = true;
    }

    /// Notes that the kernel's tick is carried out.
    pub fn tick(&mut self, at: u64) {
        if !self.skips {
            self.now.ticks.push(at);
        }
    }

    /// Notes that the CPU is put to sleep.
    pub fn halt(&mut self, at: u64, func: Func) {
        if !self.skips {
            self.now.halts.push(at);
        }
        let state = self.state;
        self.note(at, OPEN, func, false, true);
        self.note(at, state, func, false, true);
    }

    /// Notes an interrupt, which `func` takes. Interrupts are on there, if only between two
    /// instructions.
    pub fn interrupt(&mut self, at: u64, func: Func) {
        self.note(at, self.state & !IRQS, func, false, false);
        self.over(at, None);
        self.came = Some((at, false));
    }

    /// Notes that the interrupt that came is the timer's.
    pub fn is_timers(&mut self) {
        if let Some((_, is_timer)) = &mut self.came {
            *is_timer = true;
        }
    }

    /// Ends the interrupt: the interrupted code goes on, or the scheduler.
    pub fn over(&mut self, to: u64, scheduled: Option<bool>) {
        if let Some((from, is_timer)) = self.came.take().filter(|_| !self.skips) {
            self.now.interrupts.push(Came {
                from,
                to,
                is_timer,
                scheduled,
            });
        }
    }

    /// Notes that a thread gets the CPU.
    pub fn switch(&mut self, at: u64) {
        self.hold(PINNED, false);
        self.readers = 0;
        self.now.switched = at;
        if self.armed {
            self.now.left.get_or_insert(at);
        }
    }

    /// Notes whether the thread that was switched to goes before the waiting one.
    pub fn ahead(&mut self, is_ahead: bool) {
        self.ahead = u8::from(is_ahead) * AHEAD;
    }

    /// Ends a cycle of a program's thread at the switch at hand: the thread waits.
    pub fn waits(&mut self, wait: Option<Wait>) {
        self.armed = true;
        (self.now.armed, self.now.left, self.now.wait) = (self.now.read, None, wait);
    }

    /// Begins the cycle with this number, for which the clock was read at a position. Returns the
    /// period that it ends, if the wait before it was seen.
    pub fn begins(&mut self, cycle: u64, read: u64) -> Option<Period> {
        let step = self.step?;
        let is_seen = self.armed && self.now.sample == cycle;
        self.armed = false;
        self.over(read, None);
        let ended = self.end(step, cycle + 1, read);
        // The path of such a sample ends with the switch to it.
        let switched = read;
        is_seen.then_some(Period { switched, ..ended })
    }

    /// Notes that the clock is read in user space.
    pub fn clock(&mut self, at: u64) {
        self.read = Some(at);
    }

    /// Notes that a sample is armed.
    pub fn armed(&mut self) {
        (self.armed, self.arming) = (true, true);
        self.now.left = None;
    }

    /// Notes that a block begins.
    #[inline]
    pub fn block(&mut self, at: u64) {
        if self.arming {
            self.arming = false;
            self.now.armed = at;
        }
    }

    /// Notes that a sample is taken. Returns the period that it ends, if one before it was taken in
    /// its step.
    pub fn taken(&mut self, at: u64) -> Option<Period> {
        let step = self.step.filter(|_| self.armed)?;
        self.armed = false;
        let taken = self.read.take().unwrap_or(at);
        self.samples += 1;
        self.over(at, None);
        let ended = self.end(step, self.samples, taken);
        (ended.sample > 0).then_some(ended)
    }

    /// Takes the period that ends with a reading of the clock. The next one ends with this sample.
    fn end(&mut self, step: u32, sample: u64, taken: u64) -> Period {
        let next = Period {
            step,
            sample,
            read: taken,
            ..Period::default()
        };
        let mut ended = std::mem::replace(&mut self.now, next);
        // What is off goes on from one to the next.
        if let Some(last) = ended.changes.last() {
            self.now.changes.push(*last);
        }
        ended.taken = taken;
        ended.looks = self.take_looks();
        ended
    }
}

impl Period {
    /// Returns the last position, up to a given one, at which the CPU was put to sleep.
    pub fn last_halt(&self, at: u64) -> Option<u64> {
        self.halts.iter().rev().find(|halt| **halt <= at).copied()
    }

    /// Returns true if a thread that goes before the waiting one has the CPU at a position.
    pub fn is_ahead(&self, at: u64) -> bool {
        let next = self.changes.partition_point(|change| change.at <= at);
        let last = self.changes[..next].last();
        last.is_some_and(|change| change.state & AHEAD != 0)
    }

    /// Returns the stretches in which threads that go before the waiting one have the CPU.
    pub fn all_ahead(&self) -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        let mut since = None;
        for change in &self.changes {
            match (since, change.state & AHEAD != 0) {
                (None, true) => since = Some(change.at),
                (Some(from), false) => {
                    found.push((from, change.at));
                    since = None;
                }
                _ => {}
            }
        }
        found.extend(since.map(|from| (from, self.taken)));
        found
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::Nanos;

    use super::super::forecast::{Ends, due};
    use super::*;
    use crate::guest_clock::GuestClock;

    #[test]
    fn a_period_in_which_something_was_missed_does_not_count() {
        let clock = GuestClock::new(1, 1_000_000).unwrap();
        let (after, late) = (Nanos(900), Nanos(100));
        let mut timeline = Timeline::default();
        timeline.step();
        let mut sample = |at: u64, is_missed: bool| {
            timeline.armed();
            if is_missed {
                timeline.mend();
            }
            let period = timeline.taken(at)?;
            Some(due(&period, Ends { after, late }, clock).map(|due| due.at))
        };
        assert_eq!(sample(100, false), None, "the first of its step");
        assert_eq!(sample(1_100, true), Some(None));
        assert_eq!(sample(2_100, false), Some(Some(2_000)));
    }

    #[test]
    fn a_programs_periods_are_those_whose_wait_was_seen() {
        let mut timeline = Timeline::default();
        timeline.step();
        assert!(timeline.begins(3, 100).is_none(), "nothing was before");
        timeline.waits(None);
        timeline.switch(250);
        timeline.ahead(true);
        timeline.note(250, PREEMPT, 1, false, false);
        timeline.note(300, USER, 1, false, false);
        timeline.ahead(false);
        timeline.note(400, PREEMPT, 1, false, false);
        timeline.note(500, OPEN, 1, false, false);
        let period = timeline.begins(4, 900).unwrap();
        let places = (period.sample, period.read, period.left, period.taken);
        assert_eq!(places, (4, 100, Some(250), 900));
        // The path ends where it gets the CPU.
        assert_eq!((period.switched, period.armed), (900, 100));
        assert_eq!(period.all_ahead(), [(250, 400)]);
        assert!(period.is_ahead(399) && !period.is_ahead(400) && !period.is_ahead(249));
        assert_eq!(period.changes[1].state, USER | AHEAD);
        // Cycle 5 has no place: what follows begins anew.
        timeline.waits(None);
        assert!(timeline.begins(6, 1_500).is_none());
        timeline.waits(None);
        assert_eq!(
            timeline.begins(7, 1_900).map(|period| period.read),
            Some(1_500)
        );
        assert!(timeline.begins(8, 2_000).is_none(), "it did not wait");
    }
}

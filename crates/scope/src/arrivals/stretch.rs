// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stretches of a period in which something is off, or nothing is.

use super::handling::SLACK;
use super::path::{From, State};
use super::place::Off;
use super::timeline::{AHEAD, Came, Change, IRQS, OFF, PREEMPT, Period, SOFTIRQ, USER};
use crate::names::{CodeKind, Func, Names};

/// The number of starts of nested sections that are kept of a place.
const STARTS: usize = 3;
/// The tolerance: the guest's clock and the count of instructions round, and differ by a millionth.
pub const ROUNDING: u64 = 100;
/// The longest time that one of the timer's interrupts takes to serve one timer.
const SOON: u64 = 10_000;

/// A stretch in which something is off, or nothing is.
pub struct Stretch {
    /// Its start, in instructions.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// The last position whose arrivals belong to it.
    pub last: u64,
    /// The change that ends it, where something is off.
    pub end: Option<Change>,
    /// True if user space runs, where nothing is off.
    pub user: bool,
    /// The holds of the thread, where nothing is off.
    pub held: u8,
    /// The function that begins it.
    pub by: Func,
    /// True if the scheduler ends it.
    pub is_switch: bool,
    /// Time of the sample's own interrupt in it, which is left out.
    pub own: u64,
    /// The state in which the path begins, if the change at its end does not tell it.
    pub within: Option<State>,
    /// Position since which interrupts are off at its end; its end if they are not.
    pub masked: u64,
    /// The states within it, each with the position at which it begins.
    pub off: Vec<(u64, u8)>,
}

impl Stretch {
    /// Returns the stretches in which interrupts are off; two where an interrupt came in between.
    pub fn all_masked(&self) -> Vec<(u64, u64)> {
        let ends = self.off.iter().skip(1).map(|(at, _)| *at).chain([self.to]);
        let mut found: Vec<(u64, u64)> = Vec::new();
        let mut apart = false;
        for ((at, state), end) in self.off.iter().zip(ends) {
            if state & IRQS == 0 {
                apart = true;
            } else if *at < end {
                match found.last_mut().filter(|last| last.1 == *at && !apart) {
                    Some(last) => last.1 = end,
                    None => found.push((*at, end)),
                }
                apart = false;
            }
        }
        found
    }

    /// Returns the stretches with interrupts off at whose end, or shortly after, one of the timer's
    /// comes.
    pub fn waiting(&self, period: &Period) -> Vec<(u64, u64)> {
        let timers = || period.interrupts.iter().filter(|came| came.is_timer);
        let comes = |(_, end): &(u64, u64)| {
            let soon = |came: &Came| (*end..=*end + SOON).contains(&came.from);
            timers().any(soon)
        };
        let mut found = self.all_masked();
        found.retain(comes);
        found
    }

    /// Splits it in two. An interrupt that comes by `at` is let in there, in a state; others at its
    /// end.
    fn split(self, at: u64, within: State) -> Vec<Self> {
        let last = at - SLACK;
        let off = self.off.iter();
        let state = off.clone().rev().find(|(from, _)| *from <= last);
        let state = state.map_or(PREEMPT, |(_, state)| *state);
        let behind = off.clone().copied().filter(|(from, _)| *from > last);
        let first = Self {
            to: at,
            last,
            is_switch: false,
            within: Some(within),
            masked: at,
            off: off.copied().filter(|(from, _)| *from < at).collect(),
            ..self
        };
        let second = Self {
            from: last,
            off: [(last, state)].into_iter().chain(behind).collect(),
            ..self
        };
        vec![first, second]
    }

    /// Returns the starts of the longest sections with interrupts off within it, after its start.
    pub fn nested(&self, from: u64) -> Vec<u64> {
        let mut all = self.all_masked();
        all.retain(|(at, _)| *at > from + ROUNDING);
        all.sort_by_key(|(at, end)| (*at, *end));
        all.sort_by_key(|(at, end)| std::cmp::Reverse(end - at));
        let starts = all.into_iter().take(STARTS);
        starts.map(|(at, _)| at - from).collect()
    }

    /// Returns what is off for most of it.
    pub fn off(&self, from: u64) -> Off {
        let ends = self.off.iter().skip(1).map(|(at, _)| *at).chain([self.to]);
        let mut sums = [0; 5];
        for ((at, state), end) in self.off.iter().zip(ends) {
            let length = end.saturating_sub(from.max(*at));
            let kind = match state {
                state if state & AHEAD != 0 => 4,
                state if state & IRQS != 0 => 0,
                state if state & SOFTIRQ != 0 => 1,
                state if state & PREEMPT != 0 => 2,
                _ => 3,
            };
            sums[kind] += length;
        }
        let kinds = [
            Off::Interrupts,
            Off::SoftInterrupts,
            Off::Preemption,
            Off::NoPreemptionPoint,
        ];
        let [.., ahead] = sums;
        let (all, mut sum): (u64, _) = (sums[..4].iter().sum(), 0);
        if ahead > all {
            return Off::Ahead;
        }
        // Interrupts off keep a thread away as preemption off does, and so on.
        let most = sums.iter().zip(kinds).find(|(own, _)| {
            sum += **own;
            2 * sum >= all
        });
        most.map_or(Off::NoPreemptionPoint, |(_, kind)| kind)
    }
}

/// Returns the stretches of a period, in order, up to a position.
pub fn stretches(changes: &[Change], until: u64, names: &Names) -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut now: Option<Stretch> = None;
    let mut masked = None;
    let numbered = changes.iter().enumerate();
    for (number, change) in numbered.filter(|(_, change)| change.at <= until) {
        let off = change.state & OFF;
        match &mut now {
            Some(run) if off != 0 => {
                run.off.push((change.at, off));
            }
            _ => {}
        }
        let ends = off == 0 && now.is_some();
        if let Some(mut run) = now.take_if(|_| ends) {
            (run.to, run.last) = (change.at, change.at);
            run.masked = masked.unwrap_or(change.at);
            run.end = Some(*change);
            run.is_switch = is_switch(change, names);
            found.push(run);
        }
        if off & IRQS != 0 {
            masked.get_or_insert(change.at);
        } else {
            masked = None;
        }
        if off == 0 {
            let next = changes.get(number + 1);
            let to = next.map_or(until, |next| next.at).min(until);
            found.push(open(change, to));
        } else {
            now.get_or_insert_with(|| Stretch {
                from: change.at,
                to: until,
                last: until,
                end: None,
                user: false,
                held: change.held,
                by: change.by,
                is_switch: false,
                own: 0,
                within: None,
                masked: until,
                off: vec![(change.at, off)],
            });
        }
    }
    // What is not over is followed to its end.
    if let Some(mut run) = now {
        let rest = changes.iter().skip_while(|change| change.at <= until);
        let rest: Vec<&Change> = rest.collect();
        let end = rest.iter().find(|change| change.state & OFF == 0);
        if let Some(end) = end {
            (run.to, run.last) = (end.at, end.at);
            let mut masked = masked;
            for change in rest.iter().take_while(|change| change.at < end.at) {
                let is_masked = change.state & IRQS != 0;
                masked = masked.or(Some(change.at)).filter(|_| is_masked);
            }
            run.masked = masked.unwrap_or(end.at);
            run.end = Some(**end);
            run.is_switch = is_switch(end, names);
            found.push(run);
        }
    }
    found
}

/// Splits a stretch that ends with a switch of threads or with the way back to user space. A thread
/// that is ready where the scheduler is called, before it switches interrupts off, gets the CPU by
/// that very switch. A thread that is ready where the kernel switches them off to look whether the
/// scheduler is to be called has it called. A thread that comes later waits until they are on
/// again.
pub fn before_last_look(run: Stretch, period: &Period, scheduler: Option<Func>) -> Vec<Stretch> {
    if run.within.is_some() {
        return vec![run];
    }
    let leaves = run.end.is_some_and(|end| end.state & USER != 0);
    let (at, from) = match scheduler.filter(|_| run.is_switch) {
        Some(scheduler) => (called(&run, period, scheduler), From::Preempt),
        None if leaves => (Some(run.masked), From::Schedule),
        None => (None, From::Schedule),
    };
    let looks = at.filter(|at| run.from + SLACK < *at && *at < run.to);
    match looks {
        Some(at) => {
            let state = State::open(from, run.held);
            run.split(at, state)
        }
        None => vec![run],
    }
}

/// Returns where the scheduler that ends a stretch switches interrupts off, if it began within it.
fn called(run: &Stretch, period: &Period, scheduler: Func) -> Option<u64> {
    let called = |(masked, _): &(u64, u64)| {
        let before = period.ran.partition_point(|(at, _)| at <= masked);
        let ran = period.ran[..before].last();
        ran.filter(|(at, func)| *func == scheduler && run.from < *at)
    };
    let all = run.all_masked();
    let (at, _) = all.iter().rev().find_map(called)?;
    Some(*at)
}

/// Splits a stretch at an interrupt that goes over into the scheduler. That makes the scheduler
/// look for a thread: a thread that is ready by then gets the CPU.
pub fn apart(run: Stretch, period: &Period) -> Vec<Stretch> {
    // Who is to go before the one that waits gets the CPU before it.
    let goes_on = |(_, state): &(u64, u8)| state & AHEAD == 0;
    let behind = run.off.iter().rposition(|one| !goes_on(one));
    let ahead = behind.and_then(|last| run.off.get(last + 1));
    let ahead = behind.map(|_| ahead.map_or(run.to, |(at, _)| *at));
    let within = |came: &&Came| {
        run.from <= came.from && came.to < run.to && ahead.is_none_or(|end| end <= came.to)
    };
    let came = period.interrupts.iter().filter(within);
    let last = came
        .filter_map(|came| Some((came.to, came.scheduled?)))
        .next_back();
    let Some((at, from_user)) = last.filter(|_| run.end.is_some()) else {
        return vec![run];
    };
    let kind = if from_user { From::User } else { From::Kernel };
    let before = run.off.iter().copied().filter(|(from, _)| *from < at);
    let state = run.off.iter().rev().find(|(from, _)| *from <= at);
    let state = state.map_or(IRQS, |(_, state)| *state);
    let behind = run.off.iter().copied().filter(|(from, _)| *from > at);
    let behind = [(at, state)].into_iter().chain(behind);
    let changes = period.changes.iter();
    let by = changes.take_while(|change| change.at <= at).last();
    let first = Stretch {
        to: at,
        last: at,
        within: Some(State::open(kind, by.map_or(0, |change| change.held))),
        masked: at,
        off: before.collect(),
        ..run
    };
    let second = Stretch {
        from: at,
        by: by.map_or(run.by, |change| change.by),
        masked: run.masked.max(at),
        off: behind.collect(),
        ..run
    };
    vec![first, second]
}

pub fn is_switch(end: &Change, names: &Names) -> bool {
    names.name(end.func).kind == CodeKind::Scheduler
}

/// Returns the stretch from a change, after which nothing is off, to the next one. That may be at
/// the same position: where the scheduler is asked, say, or the CPU is put to sleep.
fn open(change: &Change, to: u64) -> Stretch {
    Stretch {
        from: change.at,
        to,
        last: to,
        end: None,
        user: change.state & USER != 0,
        held: change.held,
        by: change.by,
        is_switch: false,
        own: 0,
        within: None,
        masked: to,
        off: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::Architecture;

    use super::super::timeline::{OPEN, STUCK};
    use super::*;
    use crate::symbols::Symbols;
    use crate::user_symbols::UserSymbols;

    /// Creates a stretch in which interrupts are off first, then preemption with something else,
    /// each for a given time.
    fn stretch(second: u8, lengths: [u64; 2]) -> Stretch {
        let to = 100 + lengths[0] + lengths[1];
        let end = Change {
            at: to,
            state: 0,
            by: 0,
            func: 0,
            scheduled: false,
            held: 0,
        };
        Stretch {
            from: 100,
            to,
            last: to,
            end: Some(end),
            user: false,
            held: 0,
            by: 0,
            is_switch: false,
            own: 0,
            within: None,
            masked: to,
            off: vec![(100, IRQS), (100 + lengths[0], PREEMPT | second)],
        }
    }

    #[test]
    fn nothing_is_open_where_something_is_off_again_at_the_same_position() {
        let symbols = Symbols::parse(Architecture::Amd64, "ffffffff81000000 T _text\n").unwrap();
        let programs = UserSymbols::default();
        let mut names = Names::new(&symbols, &programs);
        let (func, _) = names.at(0xffff_ffff_8100_0000, &[]);
        let change = |at, state| Change {
            at,
            state,
            by: func,
            func,
            scheduled: false,
            held: 0,
        };
        // The kernel asks at 100 whether another thread is to run, and goes on.
        let changes = [
            change(0, STUCK),
            change(100, OPEN),
            change(100, STUCK),
            change(600, USER),
            change(900, STUCK),
        ];
        let found = stretches(&changes, 1_000, &names);
        let places: Vec<(u64, u64)> = found.iter().map(|run| (run.from, run.to)).collect();
        assert_eq!(places, [(0, 100), (100, 100), (100, 600), (600, 900)]);
    }

    #[test]
    fn an_interrupt_lets_nobody_in_while_another_thread_goes_first() {
        let period = Period {
            interrupts: vec![Came {
                from: 100,
                to: 200,
                is_timer: true,
                scheduled: Some(false),
            }],
            ..Period::default()
        };
        let parts = |second| {
            let parts = apart(stretch(second, [100, 900]), &period);
            parts
                .iter()
                .map(|one| (one.from, one.to))
                .collect::<Vec<_>>()
        };
        assert_eq!(parts(0), [(100, 200), (200, 1_100)]);
        assert_eq!(parts(AHEAD), [(100, 1_100)]);
    }

    #[test]
    fn what_is_off_for_most_of_it_gives_its_name() {
        let off = |second, lengths| stretch(second, lengths).off(100);
        assert_eq!(off(AHEAD, [400, 500]), Off::Ahead);
        assert_eq!(off(AHEAD, [500, 400]), Off::Interrupts);
        assert_eq!(off(0, [400, 500]), Off::Preemption);
    }
}

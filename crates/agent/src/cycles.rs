// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cycles of a program's threads, out of what the kernel's scheduler and timers did.
//!
//! A cycle is from the end of a thread's wait to the begin of its next one. A wait is one that
//! the thread has set a timer for: a sleep until a moment or for a while, a `timerfd`, or
//! `poll`, a semaphore or a condition with a time. It ends when the timer expires, or earlier.
//! Other blocks are a part of the cycle: they are counted. A thread that never sets a timer
//! waits in each sleep that a signal could end: a read, a futex.

use std::collections::BTreeMap;

use punctual_model::Nanos;

use crate::sys::process::Pid;

/// What happened to a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// The thread.
    pub thread: Pid,
    /// What.
    pub what: What,
}

/// What happened to a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It got the CPU.
    In {
        /// Its name.
        name: String,
        /// Its priority as the kernel counts: below 100 it is of real time, below 0 it has a
        /// deadline.
        priority: i64,
    },
    /// It lost the CPU.
    Out(Out),
    /// Somebody woke it.
    Waking,
    /// It set a timer.
    Set {
        /// The timer's address.
        timer: i64,
        /// When it expires, by the clock of `at`.
        due: Nanos,
    },
    /// It started a thread or a process.
    Forked {
        /// The new one.
        child: Pid,
    },
    /// It took a timer back.
    TookBack {
        /// The timer's address.
        timer: i64,
    },
}

/// Why a thread lost the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out {
    /// Another one took it.
    Preempted,
    /// It sleeps, and a signal could wake it.
    Sleeps,
    /// It sleeps otherwise: a page that is not there, a lock.
    Blocked,
}

/// From the end of one wait to the begin of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// When it was to begin: its timer was due, or it was woken.
    pub due: Nanos,
    /// When it began: the thread had the CPU.
    pub begin: Nanos,
    /// When the next wait began.
    pub end: Nanos,
    /// For how long the thread had the CPU, with the interrupts that fell in.
    pub execution: Nanos,
    /// How often it slept within.
    pub blocks: u32,
}

impl Cycle {
    /// How late it began.
    pub fn lateness(&self) -> Nanos {
        self.begin - self.due
    }

    /// How long after it was to begin it ended.
    pub fn response(&self) -> Nanos {
        self.end - self.due
    }
}

/// A thread and its cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its last name.
    pub name: String,
    /// Whether it was of real time when it last had the CPU.
    pub is_real_time: bool,
    /// Its cycles in the order of time, without the one that was cut off.
    pub cycles: Vec<Cycle>,
}

/// The threads that had cycles, in the order of their numbers. The events are in the order of
/// time.
pub fn of(events: &[Event]) -> Vec<Thread> {
    let mut states: BTreeMap<Pid, State> = BTreeMap::new();
    for event in events {
        let state = states.entry(event.thread).or_default();
        state.take(event.at, &event.what);
    }
    states.into_values().filter_map(State::finish).collect()
}

/// A thread while events are read.
#[derive(Debug, Default)]
struct State {
    name: String,
    priority: i64,
    /// Since when it has the CPU.
    has_cpu: Option<Nanos>,
    /// Since when it sleeps, and whether a signal could wake it.
    slept: Option<(Nanos, Out)>,
    woken: Option<Nanos>,
    /// The timers that it has set, each with the moment at which it expires.
    timers: BTreeMap<i64, Nanos>,
    /// It woke before its timer: a wait if it takes the timer back before it sleeps again.
    early: Option<Early>,
    /// By its timers.
    timed: Cycles,
    /// By its sleeps.
    untimed: Cycles,
}

#[derive(Clone, Copy, Debug)]
struct Early {
    slept: Nanos,
    woken: Nanos,
    began: Nanos,
    /// What the cycle before it was when the thread fell asleep.
    before: Option<Cycle>,
    /// For how long the thread had the CPU since then.
    execution: Nanos,
}

impl State {
    fn take(&mut self, at: Nanos, what: &What) {
        match what {
            What::In { name, priority } => {
                name.clone_into(&mut self.name);
                self.priority = *priority;
                self.has_cpu = Some(at);
                if let Some((slept, out)) = self.slept.take() {
                    self.wake(slept, out, at);
                }
            }
            What::Out(out) => {
                if let Some(since) = self.has_cpu.take() {
                    self.timed.execute(at - since);
                    self.untimed.execute(at - since);
                    if let Some(early) = &mut self.early {
                        early.execution += at - since;
                    }
                }
                // A thread with a deadline that yields stays runnable: its timer says when.
                let yields = self.priority < 0 && self.timers.values().any(|due| *due > at);
                if *out != Out::Preempted || yields {
                    self.early = None;
                    self.slept = Some((at, *out));
                    self.woken = None;
                }
            }
            What::Forked { .. } => {}
            What::Waking => {
                self.woken.get_or_insert(at);
            }
            What::Set { timer, due } => {
                self.timers.insert(*timer, *due);
            }
            What::TookBack { timer } => {
                let early = self.timers.remove(timer).and(self.early.take());
                if let Some(early) = early {
                    self.timed.begin_early(&early);
                }
            }
        }
    }

    fn wake(&mut self, slept: Nanos, out: Out, at: Nanos) {
        let woken = self.woken.unwrap_or(at);
        let expired = self.timers.values().filter(|due| **due <= at).max();
        let due = expired.copied();
        self.timers.retain(|_, due| *due > at);
        if let Some(due) = due {
            self.timed.begin(slept, due, at);
        } else {
            if !self.timers.is_empty() {
                self.early = Some(Early {
                    slept,
                    woken,
                    began: at,
                    before: self.timed.open,
                    execution: Nanos::ZERO,
                });
            }
            self.timed.block();
        }
        if out == Out::Sleeps {
            self.untimed.begin(slept, due.unwrap_or(woken), at);
        } else {
            self.untimed.block();
        }
    }

    fn finish(self) -> Option<Thread> {
        let cycles = if self.timed.done.is_empty() {
            self.untimed.done
        } else {
            self.timed.done
        };
        (!cycles.is_empty()).then_some(Thread {
            name: self.name,
            is_real_time: self.priority < 100,
            cycles,
        })
    }
}

/// The cycles of a thread by one kind of wait.
#[derive(Debug, Default)]
struct Cycles {
    /// The one that is not over; its end is not known.
    open: Option<Cycle>,
    done: Vec<Cycle>,
}

impl Cycles {
    fn begin(&mut self, last_end: Nanos, due: Nanos, begin: Nanos) {
        let next = Cycle {
            due,
            begin,
            end: begin,
            execution: Nanos::ZERO,
            blocks: 0,
        };
        if let Some(open) = self.open.replace(next) {
            let end = last_end;
            self.done.push(Cycle { end, ..open });
        }
    }

    /// A wait that ended before its timer, of which that is known only now.
    fn begin_early(&mut self, early: &Early) {
        self.open = early.before;
        self.begin(early.slept, early.woken, early.began);
        self.execute(early.execution);
    }

    fn execute(&mut self, time: Nanos) {
        if let Some(open) = &mut self.open {
            open.execution += time;
        }
    }

    fn block(&mut self) {
        if let Some(open) = &mut self.open {
            open.blocks += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: Pid = 7;

    fn event(at: i64, what: What) -> Event {
        let (at, thread) = (Nanos(at), LOOP);
        Event { at, thread, what }
    }

    fn gets_cpu(at: i64) -> Event {
        let (name, priority) = ("loop".into(), 19);
        event(at, What::In { name, priority })
    }

    fn out(at: i64, out: Out) -> Event {
        event(at, What::Out(out))
    }

    fn sets(at: i64, due: i64) -> Event {
        let (timer, due) = (1, Nanos(due));
        event(at, What::Set { timer, due })
    }

    fn cycle([due, begin, end, execution]: [i64; 4], blocks: u32) -> Cycle {
        Cycle {
            due: Nanos(due),
            begin: Nanos(begin),
            end: Nanos(end),
            execution: Nanos(execution),
            blocks,
        }
    }

    fn cycles(events: &[Event]) -> Vec<Cycle> {
        of(events).remove(0).cycles
    }

    #[test]
    fn a_cycle_is_from_one_timer_to_the_next() {
        let events = [
            gets_cpu(0),
            sets(50, 1_000),
            out(60, Out::Sleeps),
            gets_cpu(1_005),
            // It is preempted for 100, and sleeps for a lock within: no wait of its own.
            out(1_015, Out::Preempted),
            gets_cpu(1_115),
            out(1_120, Out::Blocked),
            event(1_200, What::Waking),
            gets_cpu(1_210),
            sets(1_220, 2_000),
            out(1_225, Out::Sleeps),
            event(2_001, What::Waking),
            gets_cpu(2_003),
            sets(2_010, 3_000),
            out(2_013, Out::Sleeps),
        ];
        assert_eq!(
            cycles(&events),
            [cycle([1_000, 1_005, 1_225, 10 + 5 + 15], 1)],
            "the last one is not over"
        );
        let thread = of(&events).remove(0);
        assert_eq!((thread.name.as_str(), thread.is_real_time), ("loop", true));
        assert_eq!(thread.cycles[0].lateness(), Nanos(5));
        assert_eq!(thread.cycles[0].response(), Nanos(225));
    }

    #[test]
    fn a_wait_with_a_time_may_end_before_it() {
        let took_back = |at| event(at, What::TookBack { timer: 1 });
        let events = [
            gets_cpu(0),
            sets(10, 9_000),
            out(20, Out::Sleeps),
            event(100, What::Waking),
            gets_cpu(104),
            // Between its wake-up and its first step it is preempted for 10.
            out(105, Out::Preempted),
            gets_cpu(115),
            took_back(116),
            sets(150, 9_100),
            out(160, Out::Sleeps),
            event(300, What::Waking),
            gets_cpu(302),
            took_back(303),
            sets(310, 9_200),
            out(320, Out::Sleeps),
            event(400, What::Waking),
            gets_cpu(401),
            took_back(402),
        ];
        let expected = [cycle([100, 104, 160, 46], 0), cycle([300, 302, 320, 18], 0)];
        assert_eq!(cycles(&events), expected);
    }

    #[test]
    fn without_timers_each_sleep_is_a_wait() {
        let events = [
            gets_cpu(0),
            out(10, Out::Sleeps),
            event(100, What::Waking),
            gets_cpu(103),
            out(110, Out::Blocked),
            gets_cpu(120),
            out(150, Out::Sleeps),
            event(200, What::Waking),
            gets_cpu(201),
            out(202, Out::Sleeps),
        ];
        let first = cycle([100, 103, 150, 37], 1);
        assert_eq!(cycles(&events)[0], first);
        assert_eq!(cycles(&events).len(), 1, "{:?}", cycles(&events));
    }

    #[test]
    fn a_thread_with_a_deadline_waits_by_yielding() {
        let of_deadline = |at| {
            let (name, priority) = ("loop".into(), -1);
            event(at, What::In { name, priority })
        };
        let mut events = Vec::new();
        for period in 0..3 {
            let begin = period * 1_000;
            events.extend([
                of_deadline(begin + 4),
                sets(begin + 50, begin + 1_000),
                out(begin + 55, Out::Preempted),
            ]);
        }
        let expected = cycle([1_000, 1_004, 1_055, 51], 0);
        assert_eq!(cycles(&events), [expected]);
    }

    #[test]
    fn a_thread_that_never_waits_has_no_cycles() {
        assert_eq!(of(&[gets_cpu(0), out(9, Out::Preempted)]), []);
    }
}

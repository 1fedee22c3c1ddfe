// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cycles of a program's threads, reconstructed from events of the scheduler and of timers.
//!
//! A cycle lasts from the end of a thread's wait to the start of its next one. A wait is one for
//! which the thread has set a timer: a sleep until a moment or for a while, a `timerfd`, or
//! `poll`, a semaphore or a condition with a time. It ends when the timer expires, or earlier.
//! Other blocks are part of the cycle, and are counted. A thread that never sets a timer
//! waits in each sleep that a signal could end: a read, a futex. A thread that marks its cycles
//! (`punctual.h`) has those that it marks, and no others.

mod faults;

use std::collections::{BTreeMap, BTreeSet};

use punctual_model::Nanos;

use crate::sys::process::Pid;

pub use faults::{DesignFaults, Fault, Kind, Seen};

/// An event of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time of the event.
    pub at: Nanos,
    /// The thread.
    pub thread: Pid,
    /// The kind of event.
    pub what: What,
}

/// The kind of a thread's event, with its details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It got the CPU.
    In {
        /// Its name.
        name: String,
        /// Its priority as the kernel counts: a real-time priority below 100, and a deadline
        /// below 0.
        priority: i64,
    },
    /// It lost the CPU.
    Out(Out),
    /// The thread was woken.
    Waking {
        /// The thread that woke it; `None` if an interrupt did.
        by: Option<Pid>,
    },
    /// It set a timer.
    Set {
        /// The timer's address.
        timer: i64,
        /// The time at which it expires, by the clock of `at`.
        due: Nanos,
        /// The time by which the kernel may delay it.
        slack: Nanos,
        /// True if it goes by `CLOCK_REALTIME`, which can be set.
        is_settable: bool,
    },
    /// It started a thread or a process.
    Forked {
        /// The new one.
        child: Pid,
    },
    /// It cancelled a timer.
    TookBack {
        /// The timer's address.
        timer: i64,
    },
    /// It touched a page that was not present.
    PageFault,
    /// It called the kernel.
    Call {
        /// The system call's number.
        number: libc::c_long,
        /// The first arguments.
        arguments: [i64; 3],
    },
    /// It marked the start of a cycle.
    Begins {
        /// The time at which the cycle was due, if the mark states it.
        due: Option<Nanos>,
    },
    /// It marked the end of a cycle.
    Ends,
}

impl What {
    /// Returns true if the thread does it itself, so that it has the CPU.
    fn is_own_doing(&self) -> bool {
        !matches!(self, Self::In { .. } | Self::Waking { .. })
    }
}

/// The reason why a thread lost the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out {
    /// Another one took it.
    Preempted,
    /// It sleeps, and a signal could wake it.
    Sleeps,
    /// It sleeps uninterruptibly: for a page that is not present, a lock.
    Blocked,
    /// It has ended.
    Ended,
}

/// The time from the end of one wait to the start of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// When it should have begun: its timer was due, or it was woken. For a marked cycle without a
    /// due time, its start.
    pub due: Nanos,
    /// The time at which it began: the thread had the CPU.
    pub begin: Nanos,
    /// The time at which the next wait began.
    pub end: Nanos,
    /// The time for which the thread had the CPU, including interrupts meanwhile.
    pub execution: Nanos,
    /// The number of times that it slept within the cycle.
    pub blocks: u32,
    /// The number of times that it got the CPU without a report of the kernel. It then began
    /// somewhat later, or executed for longer, than is known.
    pub untold: u32,
}

impl Cycle {
    /// Creates a cycle that has begun, and done nothing.
    fn begun(due: Nanos, begin: Nanos) -> Self {
        Self {
            due,
            begin,
            end: begin,
            execution: Nanos::ZERO,
            blocks: 0,
            untold: 0,
        }
    }

    /// Returns the delay of its start.
    pub fn lateness(&self) -> Nanos {
        self.begin - self.due
    }

    /// Returns the time from when it was due to its end.
    pub fn response(&self) -> Nanos {
        self.end - self.due
    }
}

/// A thread and its cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Thread {
    /// Its number.
    pub id: Pid,
    /// Its last name.
    pub name: String,
    /// True if it usually had a real-time priority when it got the CPU. A single time may have been
    /// with a priority that was lent to it.
    pub is_real_time: bool,
    /// Its cycles in order of time, without the one that was cut off.
    pub cycles: Vec<Cycle>,
    /// The cycle that was cut off: the one that it was in, or the next one, which it waited for.
    /// None if it has ended, or slept for an unknown reason.
    pub cut: Option<Cut>,
    /// The cycle within which it ended, up to its first system call that no other of its cycles
    /// made, if any: from there on it does something else. It is not counted, since nobody knows
    /// how it would have gone on.
    pub ended: Option<Cycle>,
    /// True if it slept without a timer at the end, though it waits with one. The reason is
    /// unknown.
    pub is_stuck: bool,
    /// True if it ended, and neither it nor the program had asked for that: a signal killed it.
    pub is_killed: bool,
    /// The time since which it does not sleep; none if it slept at the end, or has ended.
    pub awake_since: Option<Nanos>,
    /// True if the due time of each cycle is known.
    pub is_due_known: bool,
}

/// A cycle whose end is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    cycle: Cycle,
    /// The time since which the thread has the CPU.
    has_cpu: Option<Nanos>,
    /// The stage that it had reached.
    stage: Stage,
}

/// The stage that a cycle had reached when it was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It had begun.
    Begun,
    /// It was due, and its thread had not got the CPU since.
    Woken,
    /// Its thread slept until the moment when it would be due.
    Asleep,
}

impl Thread {
    /// Marks that nothing is known from this moment on. A cycle that has by then taken longer than
    /// any that ended counts with the time taken so far: it is later than all that are known.
    pub fn cut_at(&mut self, at: Nanos) {
        let Some(Cut {
            cycle,
            has_cpu,
            stage,
        }) = self.cut
        else {
            return;
        };
        let since = has_cpu.map_or(Nanos::ZERO, |since| at - since);
        let cut = Cycle {
            begin: if stage == Stage::Begun {
                cycle.begin
            } else {
                at
            },
            end: at,
            execution: cycle.execution + since,
            ..cycle
        };
        let is_shorter = |one: &Cycle| one.response() < cut.response();
        if self.cycles.is_empty() || !self.cycles.iter().all(is_shorter) {
            return;
        }
        if stage == Stage::Asleep {
            // Its timer did not wake it, or it slept for something else.
            self.is_stuck = true;
        } else {
            self.cycles.push(cut);
        }
    }

    /// Ends the last cycle at a new kind of call: one that prints results, or waits for others.
    fn end_with_another_call(&mut self, events: &[Event]) {
        let Some((ended, first)) = self.ended.as_mut().zip(self.cycles.first()) else {
            return;
        };
        let own = events.iter().filter(|event| event.thread == self.id);
        let calls = own.filter_map(|event| match event.what {
            What::Call { number, .. } if event.at >= first.begin => Some((event.at, number)),
            _ => None,
        });
        let (made, last): (Vec<_>, Vec<_>) = calls.partition(|(at, _)| *at < ended.begin);
        let made: BTreeSet<_> = made.into_iter().map(|(_, number)| number).collect();
        let other = last.into_iter().find(|(_, number)| !made.contains(number));
        if let Some((end, _)) = other {
            ended.end = end;
            ended.execution = ended.execution.min(end - ended.begin);
        }
    }
}

/// Returns the threads that ran, including those without cycles, in order of their numbers. The
/// events are in order of time.
pub fn of(events: &[Event]) -> Vec<Thread> {
    let mut states: BTreeMap<Pid, State> = BTreeMap::new();
    for event in events {
        let state = states.entry(event.thread).or_default();
        state.take(event.at, &event.what);
    }
    let calls = events.iter().filter_map(|event| match event.what {
        What::Call { number, .. } => Some((event.at, number)),
        _ => None,
    });
    let exits = Exits {
        are_seen: calls.clone().next().is_some(),
        of_a_program: calls
            .filter(|call| call.1 == libc::SYS_exit_group)
            .map(|call| call.0)
            .next(),
    };
    let ran = states.into_iter().filter(|(_, state)| state.has_run);
    let mut threads: Vec<Thread> = ran.map(|(id, state)| state.finish(id, &exits)).collect();
    for thread in &mut threads {
        thread.end_with_another_call(events);
    }
    threads
}

/// Facts about how threads end.
struct Exits {
    /// True if system calls are recorded.
    are_seen: bool,
    /// The time when a process first ended with all of its threads.
    of_a_program: Option<Nanos>,
}

/// The reason why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woke {
    /// A timer that the thread had set.
    ByTimer,
    /// Another thread, before its timer.
    Early,
    /// Another thread, and it had set no timer.
    Untimed,
}

/// The state of a thread while events are read.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct State {
    name: String,
    priority: i64,
    has_run: bool,
    /// The reported number of times that it got the CPU, and those with a real-time priority.
    runs: u64,
    real_time_runs: u64,
    /// The time since which it has the CPU.
    has_cpu: Option<Nanos>,
    /// The time since which it does not sleep.
    awake_since: Option<Nanos>,
    /// The time since which it sleeps, and whether a signal could wake it.
    slept: Option<(Nanos, Out)>,
    woken: Option<Nanos>,
    /// The timers that it has set, each with the time at which it expires.
    timers: BTreeMap<i64, Nanos>,
    /// A wake-up before its timer: a wait if it cancels the timer before it sleeps again.
    early: Option<Early>,
    /// Its cycles by timers.
    timed: Cycles,
    /// Its cycles by sleeps.
    untimed: Cycles,
    /// Its cycles by marks.
    marked: Cycles,
    has_marks: bool,
    is_due_unknown: bool,
    /// The reason why its last sleep ended, unless it has called the kernel since.
    woke: Option<Woke>,
    /// True if it has asked to end.
    exits: bool,
}

#[derive(Clone, Copy, Debug)]
struct Early {
    slept: Nanos,
    woken: Nanos,
    began: Nanos,
    /// The previous cycle as it was when the thread fell asleep.
    before: Option<Cycle>,
    /// The time for which the thread had the CPU since then, and the number of unreported switches.
    execution: Nanos,
    untold: u32,
}

impl State {
    fn take(&mut self, at: Nanos, what: &What) {
        if what.is_own_doing() && self.has_cpu.is_none() {
            self.run_untold(at);
        }
        match what {
            What::In { name, priority } => {
                name.clone_into(&mut self.name);
                self.priority = *priority;
                self.runs += 1;
                self.real_time_runs += u64::from(*priority < 100);
                self.run(at, at);
            }
            What::Out(out) => {
                if let Some(since) = self.has_cpu.take() {
                    self.timed.execute(at - since);
                    self.untimed.execute(at - since);
                    self.marked.execute(at - since);
                    if let Some(early) = &mut self.early {
                        early.execution += at - since;
                    }
                }
                // A thread with a deadline that yields stays runnable: its timer says when.
                let yields = self.priority < 0 && self.timers.values().any(|due| *due > at);
                if *out != Out::Preempted || yields {
                    self.early = None;
                    self.awake_since = None;
                    self.slept = Some((at, *out));
                    self.woken = None;
                }
            }
            What::Forked { .. } | What::PageFault => {}
            What::Call { number, .. } => {
                self.woke = None;
                self.exits |= [libc::SYS_exit, libc::SYS_exit_group].contains(number);
            }
            What::Begins { due } => self.mark_begin(at, *due),
            What::Ends => self.mark_end(at),
            What::Waking { .. } => {
                self.woken.get_or_insert(at);
            }
            What::Set { timer, due, .. } => {
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

    /// Gives it the CPU from one moment on, after its sleep had ended at another.
    fn run(&mut self, has_cpu: Nanos, awake: Nanos) {
        self.has_run = true;
        self.has_cpu = Some(has_cpu);
        self.awake_since.get_or_insert(awake);
        if let Some((slept, out)) = self.slept.take() {
            self.wake(slept, out, awake);
        }
    }

    /// Notes that it runs although no switch was reported: some kernels omit switches from certain
    /// threads. It got the CPU between its wake-up, or its timer, and now, and no cycle may
    /// look longer than it was.
    fn run_untold(&mut self, at: Nanos) {
        let expired = self.timers.values().filter(|due| **due <= at).max();
        let earliest = self.woken.or(expired.copied()).unwrap_or(at);
        self.run(at, earliest);
        for kind in [&mut self.timed, &mut self.untimed, &mut self.marked] {
            kind.run_untold(1);
        }
        if let Some(early) = &mut self.early {
            early.untold += 1;
        }
    }

    /// Marks the start of a cycle. A cycle that was not ended ends where the next one begins.
    fn mark_begin(&mut self, at: Nanos, due: Option<Nanos>) {
        self.has_marks = true;
        self.is_due_unknown |= due.is_none();
        self.mark_end(at);
        self.marked.begin(at, due.unwrap_or(at), at);
        self.marked
            .execute(self.has_cpu.map_or(Nanos::ZERO, |since| since - at));
    }

    fn mark_end(&mut self, at: Nanos) {
        self.has_marks = true;
        self.marked
            .execute(self.has_cpu.map_or(Nanos::ZERO, |since| at - since));
        self.marked.end(at);
    }

    fn wake(&mut self, slept: Nanos, out: Out, at: Nanos) {
        self.marked.block();
        let woken = self.woken.unwrap_or(at);
        let expired = self.timers.values().filter(|due| **due <= at).max();
        let due = expired.copied();
        self.timers.retain(|_, due| *due > at);
        self.woke = Some(match due {
            Some(_) => Woke::ByTimer,
            None if self.timers.is_empty() => Woke::Untimed,
            None => Woke::Early,
        });
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
                    untold: 0,
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

    fn finish(mut self, id: Pid, exits: &Exits) -> Thread {
        let is_timed = !self.has_marks && !self.timed.done.is_empty();
        // Only who has a deadline is put to sleep without it.
        let out = self.slept.map(|(_, out)| out);
        let is_wait = |out: Out| matches!(out, Out::Sleeps | Out::Preempted);
        let waits = out.is_some_and(is_wait) && !self.has_marks;
        let next = self.next(is_timed).filter(|_| waits);
        let kind = if self.has_marks {
            &mut self.marked
        } else if is_timed {
            &mut self.timed
        } else {
            &mut self.untimed
        };
        let cycles = std::mem::take(&mut kind.done);
        let open = kind.open.map(|cycle| (cycle, Stage::Begun));
        let cut = if waits { next } else { open };
        let has_cpu = self.has_cpu;
        let end = self.slept.filter(|(_, out)| *out == Out::Ended);
        // Who is ended by others wakes for that, and calls nothing any more.
        let end = end.map(|(end, _)| end);
        let by_others = end.filter(|_| exits.are_seen && !self.exits);
        let asleep = by_others.and(self.woke);
        let ended = end
            .zip(kind.open)
            .filter(|_| asleep != Some(Woke::Early))
            .map(|(end, open)| Cycle { end, ..open });
        let is_its_program = |end: Nanos| exits.of_a_program.is_some_and(|exit| exit <= end);
        // Only switches tell names.
        let name = if self.runs == 0 {
            format!("thread {id}")
        } else {
            self.name
        };
        Thread {
            id,
            name,
            is_real_time: 2 * self.real_time_runs > self.runs,
            cycles,
            cut: cut
                .filter(|_| out != Some(Out::Ended))
                .map(|(cycle, stage)| Cut {
                    cycle,
                    has_cpu,
                    stage,
                }),
            ended,
            is_stuck: is_timed
                && (waits && self.woken.is_none() && self.timers.is_empty()
                    || asleep == Some(Woke::Untimed)),
            is_killed: by_others.is_some_and(|end| !is_its_program(end)),
            awake_since: self.awake_since,
            is_due_known: !self.is_due_unknown,
        }
    }

    /// Returns the cycle that a thread waits for.
    fn next(&self, is_timed: bool) -> Option<(Cycle, Stage)> {
        let timers = self.timers.values().copied().filter(|_| is_timed);
        let (due, stage) = if let Some(woken) = self.woken {
            let expired = timers.filter(|due| *due <= woken).max();
            (expired.unwrap_or(woken), Stage::Woken)
        } else {
            (timers.min()?, Stage::Asleep)
        };
        Some((Cycle::begun(due, due), stage))
    }
}

/// The cycles of a thread for one kind of wait.
#[derive(Debug, Default)]
struct Cycles {
    /// The cycle that is not over; its end is not known.
    open: Option<Cycle>,
    done: Vec<Cycle>,
}

impl Cycles {
    fn begin(&mut self, last_end: Nanos, due: Nanos, begin: Nanos) {
        self.end(last_end);
        self.open = Some(Cycle::begun(due, begin));
    }

    fn end(&mut self, end: Nanos) {
        if let Some(open) = self.open.take() {
            self.done.push(Cycle { end, ..open });
        }
    }

    /// Begins a cycle after a wait that ended before its timer, which is known only now.
    fn begin_early(&mut self, early: &Early) {
        self.open = early.before;
        self.begin(early.slept, early.woken, early.began);
        self.execute(early.execution);
        self.run_untold(early.untold);
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

    fn run_untold(&mut self, times: u32) {
        if let Some(open) = &mut self.open {
            open.untold += times;
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
        let set = What::Set {
            timer: 1,
            due: Nanos(due),
            slack: Nanos::ZERO,
            is_settable: false,
        };
        event(at, set)
    }

    fn woken(at: i64) -> Event {
        event(at, What::Waking { by: None })
    }

    fn cycle([due, begin, end, execution]: [i64; 4], blocks: u32) -> Cycle {
        Cycle {
            due: Nanos(due),
            begin: Nanos(begin),
            end: Nanos(end),
            execution: Nanos(execution),
            blocks,
            untold: 0,
        }
    }

    fn cycles(events: &[Event]) -> Vec<Cycle> {
        of(events).remove(0).cycles
    }

    /// Makes two cycles of 5, and then a thread that does not wait again.
    fn hangs(last: &[Event]) -> Thread {
        let cycle = |at: i64| {
            [
                gets_cpu(at),
                sets(at + 4, at + 1_000),
                out(at + 5, Out::Sleeps),
            ]
        };
        let mut all: Vec<Event> = [0, 1_000, 2_000].into_iter().flat_map(cycle).collect();
        all.push(gets_cpu(3_000));
        all.extend_from_slice(last);
        let mut thread = of(&all).remove(0);
        thread.cut_at(Nanos(9_000));
        thread
    }

    #[test]
    fn what_hangs_is_a_cycle_as_long_as_it_was_seen_to_be() {
        let spins = hangs(&[]);
        assert_eq!(spins.cycles.len(), 3);
        assert_eq!(spins.cycles[2], cycle([3_000, 3_000, 9_000, 6_000], 0));
        // Another thread has the CPU: it is late all the same.
        let robbed = hangs(&[out(3_010, Out::Preempted)]);
        assert_eq!(robbed.cycles[2], cycle([3_000, 3_000, 9_000, 10], 0));
        // It waits for the next, or nobody knows for what.
        let waits = hangs(&[sets(3_004, 9_500), out(3_005, Out::Sleeps)]);
        assert_eq!((waits.cycles.len(), waits.is_stuck), (2, false));
        let stuck = hangs(&[out(3_005, Out::Sleeps)]);
        assert_eq!((stuck.cycles.len(), stuck.is_stuck), (2, true));
    }

    #[test]
    fn who_was_due_and_never_got_the_cpu_is_late_by_as_much_as_was_seen() {
        let waits = [sets(3_004, 4_000), out(3_005, Out::Sleeps)];
        let robbed = hangs(&[&waits[..], &[woken(4_003)]].concat());
        assert_eq!(robbed.cycles[2], cycle([4_000, 9_000, 9_000, 0], 0));
        assert!(!robbed.is_stuck);
        // Whoever is to wake it has not come to it either, or it slept for something else.
        let asleep = hangs(&waits);
        assert_eq!((asleep.cycles.len(), asleep.is_stuck), (2, true));
        // What is due just before the end is no longer than others.
        let waits = [sets(3_004, 8_996), out(3_005, Out::Sleeps)];
        for last in [None, Some(woken(8_997))] {
            let waits = hangs(&[&waits[..], last.as_slice()].concat());
            assert_eq!((waits.cycles.len(), waits.is_stuck), (2, false));
        }
    }

    #[test]
    fn a_thread_that_ends_is_not_late_for_what_comes_after_it() {
        let ended = hangs(&[out(3_007, Out::Ended)]);
        assert_eq!(ended.awake_since, None);
        assert_eq!((ended.cycles.len(), ended.is_stuck), (2, false));
        assert_eq!(ended.ended, Some(cycle([3_000, 3_000, 3_007, 7], 0)));
        assert_eq!(hangs(&[]).ended, None);
        // From a call on that no cycle makes it does something else.
        let calls = |at, number| {
            let arguments = [0; 3];
            event(at, What::Call { number, arguments })
        };
        let last = [calls(3_003, 1), calls(3_005, 2), out(3_007, Out::Ended)];
        let ended = hangs(&last).ended;
        assert_eq!(ended, Some(cycle([3_000, 3_000, 3_003, 3], 0)));
        let mut all = vec![
            gets_cpu(0),
            calls(3, 1),
            sets(4, 1_000),
            out(5, Out::Sleeps),
        ];
        all.extend([gets_cpu(1_000), calls(1_003, 1), sets(1_004, 3_000)]);
        all.extend([out(1_005, Out::Sleeps), gets_cpu(3_000)]);
        all.extend(last);
        let ended = of(&all).remove(0).ended;
        assert_eq!(ended, Some(cycle([3_000, 3_000, 3_005, 5], 0)));
    }

    #[test]
    fn who_is_ended_by_others_was_waiting_or_is_stuck_or_killed() {
        let calls = |at, thread, number| Event {
            thread,
            ..event(
                at,
                What::Call {
                    number,
                    arguments: [0; 3],
                },
            )
        };
        let ends = |last: &[Event], by: &[Event]| {
            let ended = [gets_cpu(3_800), out(3_810, Out::Ended)];
            hangs(&[&[calls(3_001, 7, 230)], last, by, &ended].concat())
        };
        let other = [calls(3_700, 8, libc::SYS_exit_group)];
        let told = |thread: &Thread| (thread.is_stuck, thread.is_killed, thread.ended.is_some());
        // For its timer, as in each cycle; for something else; and by nobody's will.
        let waits = [sets(3_004, 4_000), out(3_005, Out::Sleeps)];
        assert_eq!(told(&ends(&waits, &other)), (false, false, false));
        let blocks = [out(3_005, Out::Sleeps)];
        assert_eq!(told(&ends(&blocks, &other)), (true, false, true));
        let runs = [calls(3_005, 7, 1), out(3_006, Out::Preempted)];
        assert_eq!(told(&ends(&runs, &[])), (false, true, true));
        // By itself, after it has waited for others.
        let by_itself = [calls(3_005, 7, libc::SYS_exit), out(3_006, Out::Preempted)];
        assert_eq!(told(&ends(&by_itself, &[])), (false, false, true));
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
            woken(1_200),
            gets_cpu(1_210),
            sets(1_220, 2_000),
            out(1_225, Out::Sleeps),
            woken(2_001),
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
            woken(100),
            gets_cpu(104),
            // Between its wake-up and its first step it is preempted for 10.
            out(105, Out::Preempted),
            gets_cpu(115),
            took_back(116),
            sets(150, 9_100),
            out(160, Out::Sleeps),
            woken(300),
            gets_cpu(302),
            took_back(303),
            // A lock within is no wait of a thread that waits with timers.
            out(304, Out::Sleeps),
            woken(305),
            gets_cpu(306),
            sets(310, 9_200),
            out(320, Out::Sleeps),
            woken(400),
            gets_cpu(401),
            took_back(402),
        ];
        let expected = [cycle([100, 104, 160, 46], 0), cycle([300, 302, 320, 16], 1)];
        assert_eq!(cycles(&events), expected);
    }

    #[test]
    fn without_timers_each_sleep_is_a_wait() {
        let events = [
            gets_cpu(0),
            out(10, Out::Sleeps),
            woken(100),
            gets_cpu(103),
            out(110, Out::Blocked),
            gets_cpu(120),
            out(150, Out::Sleeps),
            woken(200),
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
        // In the end it waits for its next period.
        let mut thread = of(&events).remove(0);
        thread.cut_at(Nanos(2_900));
        assert_eq!(thread.cycles, [expected]);
    }

    /// Events from a kernel that omits switches from its idle threads: the switches to the loop are
    /// missing in two of its cycles.
    #[test]
    fn a_switch_that_the_kernel_leaves_out_makes_no_cycle_longer() {
        let call = |at, number| {
            let arguments = [0; 3];
            event(at, What::Call { number, arguments })
        };
        let sleeps = |at: i64| {
            [
                call(at, libc::SYS_clock_nanosleep),
                sets(at + 1, at / 1_000 * 1_000 + 1_000),
                out(at + 10, Out::Sleeps),
            ]
        };
        let mut events = vec![gets_cpu(0)];
        events.extend(sleeps(50));
        for (period, told) in [(1, true), (2, false), (3, true), (4, false), (5, true)] {
            events.push(woken(1_000 * period + 3));
            events.extend(told.then(|| gets_cpu(1_000 * period + 8)));
            events.extend(sleeps(1_000 * period + 50));
        }
        let thread = of(&events).remove(0);
        let told = |period: i64| {
            let due = 1_000 * period;
            cycle([due, due + 8, due + 60, 52], 0)
        };
        let untold = |period: i64| Cycle {
            begin: Nanos(1_000 * period + 3),
            execution: Nanos(10),
            untold: 1,
            ..told(period)
        };
        assert_eq!(thread.cycles, [told(1), untold(2), told(3), untold(4)]);
        let seen = Seen {
            page_faults: true,
            calls: true,
        };
        let faults = DesignFaults::of(&events, &seen);
        assert_eq!(
            faults.of_thread(&thread, &thread.cycles),
            [],
            "no sleep is within a cycle"
        );
        // The wake-up is missing, too: its timer is the earliest moment.
        events.retain(|event| event.what != What::Waking { by: None });
        let begun = of(&events).remove(0).cycles[1];
        assert_eq!((begun.lateness(), begun.untold), (Nanos::ZERO, 1));
        // It is preempted, and goes on without a word.
        let preempted = [
            gets_cpu(0),
            sets(4, 1_000),
            out(5, Out::Sleeps),
            gets_cpu(1_001),
        ];
        let goes_on = [
            out(1_010, Out::Preempted),
            call(1_050, 0),
            sets(1_055, 2_000),
        ];
        let ends = [
            out(1_060, Out::Sleeps),
            gets_cpu(2_001),
            out(2_002, Out::Sleeps),
        ];
        let all = [&preempted[..], &goes_on, &ends].concat();
        let expected = Cycle {
            untold: 1,
            ..cycle([1_000, 1_001, 1_060, 9 + 10], 0)
        };
        assert_eq!(cycles(&all), [expected]);
        // Who never was told to run has no name.
        let never = of(&sleeps(50)).remove(0);
        assert_eq!(
            (never.name.as_str(), never.is_real_time),
            ("thread 7", false)
        );
    }

    #[test]
    fn a_thread_that_never_waits_has_no_cycles() {
        let threads = of(&[gets_cpu(0), out(9, Out::Preempted)]);
        assert_eq!((threads.len(), threads[0].cycles.len()), (1, 0));
        assert_eq!(of(&[woken(3)]), [], "it never ran");
    }

    #[test]
    fn marked_cycles_are_those_of_a_thread_that_marks_them() {
        let begins = |at, due: Option<i64>| {
            let due = due.map(Nanos);
            event(at, What::Begins { due })
        };
        let events = [
            gets_cpu(0),
            sets(5, 1_000),
            begins(10, Some(4)),
            out(20, Out::Preempted),
            gets_cpu(26),
            out(30, Out::Sleeps),
            woken(35),
            gets_cpu(40),
            event(50, What::Ends),
            // What is between an end and a begin is of no cycle, and one that has no end ends
            // where the next one begins.
            begins(60, Some(60)),
            begins(75, Some(70)),
            out(99, Out::Preempted),
        ];
        let thread = of(&events).remove(0);
        assert!(thread.is_due_known);
        let expected = [
            cycle([4, 10, 50, 10 + 4 + 10], 1),
            cycle([60, 60, 75, 15], 0),
        ];
        assert_eq!(thread.cycles, expected, "the last one is not over");
        let silent = [gets_cpu(0), begins(7, None), event(9, What::Ends)];
        let thread = of(&silent).remove(0);
        assert_eq!(
            (thread.is_due_known, thread.cycles[0].due),
            (false, Nanos(7))
        );
    }
}

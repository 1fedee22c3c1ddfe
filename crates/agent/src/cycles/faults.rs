// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults in the design of a real-time program, which exist whether or not they made a cycle late,
//! as the kernel's monitors `rtapp` define them: `Documentation/trace/rv/monitor_rtapp.rst`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use punctual_model::Nanos;

use super::{Cycle, Event, Out, Thread, What};
use crate::sys::process::Pid;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A page was not present when a cycle touched it.
    PageFault,
    /// The program does not lock its memory.
    MemoryNotLocked,
    /// A cycle made a system call that may wait for others.
    BlockingCall,
    /// A cycle slept for something other than its own next moment or a lock.
    SleepWithin,
    /// A cycle slept for a lock whose holder inherits no priority.
    NoInheritance,
    /// A thread of lower priority woke it.
    WokenByLower,
    /// The kernel may let its timer expire later than requested.
    TimerSlack,
    /// Its timer goes by a clock that can be set.
    SettableClock,
    /// A helper has inherited its priority, which nobody gave it.
    InheritedPriority,
    /// A real-time thread keeps the CPU, and has no cycle.
    NeverWaits,
}

impl Kind {
    /// Returns its name among findings.
    pub fn key(self) -> &'static str {
        match self {
            Self::PageFault => "fault_page",
            Self::MemoryNotLocked => "fault_memory_not_locked",
            Self::BlockingCall => "fault_blocking_call",
            Self::SleepWithin => "fault_sleep",
            Self::NoInheritance => "fault_no_inheritance",
            Self::WokenByLower => "fault_woken_by_lower",
            Self::TimerSlack => "fault_timer_slack",
            Self::SettableClock => "fault_settable_clock",
            Self::InheritedPriority => "fault_inherited_priority",
            Self::NeverWaits => "fault_never_waits",
        }
    }

    /// Returns its name in words.
    fn label(self) -> &'static str {
        match self {
            Self::PageFault => "page faults",
            Self::MemoryNotLocked => "memory not locked",
            Self::BlockingCall => "system calls that may block",
            Self::SleepWithin => "sleeps within a cycle",
            Self::NoInheritance => "sleeps for a lock without priority inheritance",
            Self::WokenByLower => "woken by a thread of lower priority",
            Self::TimerSlack => "timer slack",
            Self::SettableClock => "timers of CLOCK_REALTIME",
            Self::InheritedPriority => "helpers that inherited a real-time priority",
            Self::NeverWaits => "threads of real time that do not wait",
        }
    }

    /// Returns advice on what to do about it.
    fn advice(self) -> &'static str {
        match self {
            Self::PageFault => {
                "lock memory (mlockall), and write to all of it before the first cycle"
            }
            Self::MemoryNotLocked => "call mlockall(MCL_CURRENT | MCL_FUTURE)",
            Self::BlockingCall => "leave them to a thread that is not of real time",
            Self::SleepWithin => "wait for others between cycles, or leave it to another thread",
            Self::NoInheritance => "give the mutex PTHREAD_PRIO_INHERIT",
            Self::WokenByLower => {
                "give the waker a priority as high, or a mutex with PTHREAD_PRIO_INHERIT"
            }
            Self::TimerSlack => "give the thread SCHED_FIFO, or call prctl(PR_SET_TIMERSLACK, 1)",
            Self::SettableClock => "wait by CLOCK_MONOTONIC",
            Self::InheritedPriority => {
                "start them with SCHED_RESET_ON_FORK, or give each its own policy"
            }
            Self::NeverWaits => {
                "let them wait, or mark their cycles (punctual.h): what has a lower priority \
                 does not run beside them"
            }
        }
    }
}

/// The time without sleep, at the end, after which a thread without cycles keeps the CPU.
const KEEPS: Nanos = Nanos::from_millis(10);

/// A fault of a thread, or of its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: Kind,
    /// The number of times that it happened.
    pub count: u64,
    /// The number, from 0, of the counted cycle in which it first happened; `None` if it belongs to
    /// no cycle.
    pub cycle: Option<u64>,
    /// The time from when that cycle was due to the fault.
    pub after: Nanos,
    /// Details: system calls, threads, a time.
    pub which: BTreeSet<String>,
}

/// Prints `page faults: 2, first in cycle 17: lock memory …`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.label())?;
        if self.kind != Kind::MemoryNotLocked {
            write!(f, ": {}", self.count)?;
        }
        match self.cycle {
            Some(cycle) if self.count == 1 => write!(f, ", in cycle {cycle}")?,
            Some(cycle) => write!(f, ", first in cycle {cycle}")?,
            None => {}
        }
        if !self.which.is_empty() {
            let which: Vec<&str> = self.which.iter().map(String::as_str).collect();
            write!(f, " ({})", which.join(", "))?;
        }
        write!(f, "; {}", self.kind.advice())
    }
}

/// The kinds of events that the kernel reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Page faults.
    pub page_faults: bool,
    /// System calls.
    pub calls: bool,
}

/// The faults of a program.
#[derive(Debug)]
pub struct DesignFaults<'a> {
    events: &'a [Event],
    seen: &'a Seen,
    /// Faults of helpers, which are known from their threads' start on.
    helpers: Vec<Fault>,
    is_memory_locked: bool,
}

impl<'a> DesignFaults<'a> {
    /// Examines the events of a program, which are in order of time.
    pub fn of(events: &'a [Event], seen: &'a Seen) -> Self {
        let locked = events.iter().fold(0, |flags, event| flags | locks(event));
        Self {
            events,
            seen,
            helpers: if seen.calls {
                helpers(events)
            } else {
                Vec::new()
            },
            is_memory_locked: locked & WHOLE_MEMORY == WHOLE_MEMORY,
        }
    }

    /// Returns the events that are not reported, as a sentence's start: `page faults and …`.
    pub fn unseen(&self) -> Option<&'static str> {
        match (self.seen.page_faults, self.seen.calls) {
            (true, true) => None,
            (false, true) => Some("page faults"),
            (true, false) => Some("system calls"),
            (false, false) => Some("page faults and system calls"),
        }
    }

    /// Returns the faults of the program as a whole, with its threads as they were until it was
    /// asked to end, if it was.
    pub fn of_program(&self, threads: &[Thread], stopped: Option<Nanos>) -> Vec<Fault> {
        let unlocked = Fault {
            kind: Kind::MemoryNotLocked,
            count: 1,
            cycle: None,
            after: Nanos::ZERO,
            which: BTreeSet::new(),
        };
        let unlocked = (self.seen.calls && !self.is_memory_locked).then_some(unlocked);
        let never_waits = stopped.and_then(|at| never_waits(threads, at));
        let all = unlocked.into_iter().chain(self.helpers.clone());
        all.chain(never_waits).collect()
    }

    /// Returns the faults in these cycles of a thread.
    pub fn of_thread(&self, thread: &Thread, cycles: &[Cycle]) -> Vec<Fault> {
        let mut found = Found {
            cycles,
            faults: BTreeMap::new(),
        };
        let mut priorities: BTreeMap<Pid, i64> = BTreeMap::new();
        let mut last = Doing::Own;
        for event in self.events {
            if let What::In { priority, .. } = event.what {
                priorities.insert(event.thread, priority);
            }
            // Which it has then, the next switch says.
            if let Some(given) = given(event) {
                priorities.remove(&given);
            }
            if event.thread != thread.id {
                continue;
            }
            let priority = priorities.get(&thread.id).copied().unwrap_or(NOT_REAL_TIME);
            let of_waker = |by: Option<Pid>| by.and_then(|by| priorities.get(&by).copied());
            match &event.what {
                What::PageFault => {
                    last = Doing::Own;
                    found.within(event.at, Kind::PageFault, None);
                }
                What::Call { number, arguments } => {
                    last = Doing::of_call(*number, arguments);
                    if let Some(name) = blocking(*number, arguments) {
                        found.within(event.at, Kind::BlockingCall, Some(name.into()));
                    }
                }
                What::Out(Out::Sleeps) if self.seen.calls => match last {
                    Doing::Own | Doing::InheritingLock => {}
                    Doing::Lock => found.within(event.at, Kind::NoInheritance, None),
                    Doing::Call(name) => {
                        found.within(event.at, Kind::SleepWithin, name.map(str::to_owned));
                    }
                },
                What::Waking { by }
                    if last != Doing::InheritingLock
                        && priority < NOT_REAL_TIME
                        && of_waker(*by).is_some_and(|of_waker| of_waker > priority) =>
                {
                    found.ahead(event.at, Kind::WokenByLower);
                }
                What::Set {
                    slack, is_settable, ..
                } => {
                    if *slack > Nanos::ZERO {
                        found.within(event.at, Kind::TimerSlack, Some(slack.to_string()));
                    }
                    if *is_settable {
                        found.within(event.at, Kind::SettableClock, None);
                    }
                }
                _ => {}
            }
        }
        found.faults.into_values().collect()
    }
}

/// The first of the kernel's priorities that are not real-time.
const NOT_REAL_TIME: i64 = 100;

/// `MCL_CURRENT` and `MCL_FUTURE`: all memory, including future memory.
const WHOLE_MEMORY: libc::c_int = libc::MCL_CURRENT | libc::MCL_FUTURE;

/// Returns the flags with which an event locks memory.
fn locks(event: &Event) -> libc::c_int {
    match event.what {
        What::Call { number, arguments } if number == libc::SYS_mlockall => {
            arguments[0] as libc::c_int
        }
        _ => 0,
    }
}

/// The activity of a thread in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// Nothing that it has requested.
    Own,
    /// It waits for a lock, or may do so, and the lock's holder inherits its priority.
    InheritingLock,
    /// The same without inheritance.
    Lock,
    /// Another call, by its name if that is known.
    Call(Option<&'static str>),
}

impl Doing {
    fn of_call(number: libc::c_long, arguments: &[i64; 3]) -> Self {
        if number != libc::SYS_futex {
            return Self::Call(name(BLOCKING, number).or_else(|| name(WAITING, number)));
        }
        let operation = arguments[1] as libc::c_int & libc::FUTEX_CMD_MASK;
        match operation {
            libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => Self::Lock,
            _ => Self::InheritingLock,
        }
    }
}

/// The faults of a thread while its events are read.
struct Found<'a> {
    cycles: &'a [Cycle],
    faults: BTreeMap<Kind, Fault>,
}

impl Found<'_> {
    /// Adds a fault that happens while a cycle runs, if it does; the wait at its end is excluded.
    fn within(&mut self, at: Nanos, kind: Kind, which: Option<String>) {
        self.add(at, kind, which, |cycle| cycle.begin <= at && at < cycle.end);
    }

    /// Adds a fault that happens when a cycle is due, or while it runs.
    fn ahead(&mut self, at: Nanos, kind: Kind) {
        self.add(at, kind, None, |cycle| cycle.due <= at && at < cycle.end);
    }

    fn add(
        &mut self,
        at: Nanos,
        kind: Kind,
        which: Option<String>,
        is_of: impl Fn(&Cycle) -> bool,
    ) {
        let number = self.cycles.partition_point(|cycle| cycle.end <= at);
        let Some(cycle) = self.cycles.get(number).filter(|cycle| is_of(cycle)) else {
            return;
        };
        let fault = self.faults.entry(kind).or_insert_with(|| Fault {
            kind,
            count: 0,
            cycle: Some(number as u64),
            after: at - cycle.due,
            which: BTreeSet::new(),
        });
        fault.count += 1;
        fault.which.extend(which);
    }
}

/// Returns threads and processes that begin with a real-time priority, inherited from the thread
/// that started them, and that nobody gives a priority.
fn helpers(events: &[Event]) -> Vec<Fault> {
    let given: BTreeSet<Pid> = events.iter().filter_map(given).collect();
    let mut started: BTreeSet<Pid> = BTreeSet::new();
    let mut helpers: BTreeMap<Pid, &str> = BTreeMap::new();
    for event in events {
        match &event.what {
            What::Forked { child } if !given.contains(child) => {
                started.insert(*child);
            }
            // What it has later may be lent to it.
            What::In { name, priority }
                if started.remove(&event.thread) && *priority < NOT_REAL_TIME =>
            {
                helpers.insert(event.thread, name);
            }
            _ => {}
        }
    }
    if helpers.is_empty() {
        return Vec::new();
    }
    vec![Fault {
        kind: Kind::InheritedPriority,
        count: helpers.len() as u64,
        cycle: None,
        after: Nanos::ZERO,
        which: helpers.into_values().map(str::to_owned).collect(),
    }]
}

/// Returns the real-time threads that have no cycle, and have not slept for long at this moment.
fn never_waits(threads: &[Thread], at: Nanos) -> Option<Fault> {
    let keeps = threads.iter().filter_map(|thread| {
        let awake = at - thread.awake_since?;
        let is_one = thread.is_real_time && thread.cycles.is_empty() && awake >= KEEPS;
        is_one.then(|| format!("{} for {awake}", thread.name))
    });
    let which: Vec<String> = keeps.collect();
    (!which.is_empty()).then(|| Fault {
        kind: Kind::NeverWaits,
        count: which.len() as u64,
        cycle: None,
        after: Nanos::ZERO,
        which: which.into_iter().collect(),
    })
}

/// Returns the thread to which an event gives a policy or a priority.
fn given(event: &Event) -> Option<Pid> {
    let What::Call { number, arguments } = event.what else {
        return None;
    };
    let gives = [
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ];
    let target = Pid::try_from(arguments[0]).ok()?;
    let target = if target == 0 { event.thread } else { target };
    gives.contains(&number).then_some(target)
}

/// Returns the name of a call that may wait for others (for memory, a disk, another process, or
/// a reader of what is printed), or take as long as it likes.
fn blocking(number: libc::c_long, arguments: &[i64; 3]) -> Option<&'static str> {
    let is_print = [libc::SYS_write, libc::SYS_writev].contains(&number);
    if is_print {
        return [1, 2]
            .contains(&arguments[0])
            .then_some("write to its output");
    }
    name(BLOCKING, number)
}

fn name(calls: &[(libc::c_long, &'static str)], number: libc::c_long) -> Option<&'static str> {
    let known = calls.iter().find(|(known, _)| *known == number);
    known.map(|(_, name)| *name)
}

macro_rules! calls {
    ($($(#[$only:meta])? $number:ident $name:literal,)+) => {
        &[$($(#[$only])? (libc::$number, $name)),+]
    };
}

/// Calls that may block at any time, except those that write.
const BLOCKING: &[(libc::c_long, &str)] = calls! {
    #[cfg(target_arch = "x86_64")] SYS_open "open",
    #[cfg(target_arch = "x86_64")] SYS_fork "fork",
    #[cfg(target_arch = "x86_64")] SYS_vfork "vfork",
    SYS_brk "brk",
    SYS_clone "clone",
    SYS_clone3 "clone3",
    SYS_execve "execve",
    SYS_fdatasync "fdatasync",
    SYS_fsync "fsync",
    SYS_madvise "madvise",
    SYS_mkdirat "mkdirat",
    SYS_mprotect "mprotect",
    SYS_mremap "mremap",
    SYS_msync "msync",
    SYS_munmap "munmap",
    SYS_openat "openat",
    SYS_renameat2 "renameat2",
    SYS_sync "sync",
    SYS_unlinkat "unlinkat",
    SYS_wait4 "wait4",
    #[cfg(target_pointer_width = "64")] SYS_mmap "mmap",
    #[cfg(target_pointer_width = "32")] SYS_mmap2 "mmap",
};

/// Calls that wait where they are told to, with the names for a sleep in them.
const WAITING: &[(libc::c_long, &str)] = calls! {
    #[cfg(target_arch = "x86_64")] SYS_epoll_wait "epoll_wait",
    #[cfg(target_arch = "x86_64")] SYS_poll "poll",
    #[cfg(target_arch = "x86_64")] SYS_select "select",
    SYS_accept4 "accept",
    SYS_clock_nanosleep "clock_nanosleep",
    SYS_connect "connect",
    SYS_epoll_pwait "epoll_wait",
    SYS_futex "futex",
    SYS_ioctl "ioctl",
    SYS_nanosleep "nanosleep",
    SYS_ppoll "poll",
    SYS_pselect6 "select",
    SYS_read "read",
    SYS_readv "read",
    SYS_recvfrom "recv",
    SYS_recvmsg "recv",
    SYS_sendmsg "send",
    SYS_sendto "send",
    SYS_write "write",
    SYS_writev "write",
};

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: Pid = 7;
    const OTHER: Pid = 8;
    const SEEN: Seen = Seen {
        page_faults: true,
        calls: true,
    };

    fn thread() -> Thread {
        let cycle = |number: i64| Cycle {
            due: Nanos(1_000 * number),
            begin: Nanos(1_000 * number + 10),
            end: Nanos(1_000 * number + 500),
            execution: Nanos(490),
            blocks: 0,
            untold: 0,
        };
        Thread {
            id: LOOP,
            name: "loop".into(),
            is_real_time: true,
            cycles: (0..5).map(cycle).collect(),
            cut: None,
            is_stuck: false,
            ended: None,
            is_killed: false,
            awake_since: None,
            is_due_known: true,
        }
    }

    fn event(at: i64, thread: Pid, what: What) -> Event {
        let at = Nanos(at);
        Event { at, thread, what }
    }

    fn runs(at: i64, thread: Pid, priority: i64) -> Event {
        let name = if thread == LOOP { "loop" } else { "helper" }.into();
        event(at, thread, What::In { name, priority })
    }

    fn call(at: i64, thread: Pid, number: libc::c_long, first: i64, second: i64) -> Event {
        let arguments = [first, second, 0];
        event(at, thread, What::Call { number, arguments })
    }

    fn told(events: &[Event]) -> Vec<String> {
        let faults = DesignFaults::of(events, &SEEN);
        let thread = thread();
        let of_thread = faults.of_thread(&thread, &thread.cycles);
        of_thread.iter().map(ToString::to_string).collect()
    }

    fn assert_told(events: &[Event], expected: &[&str]) {
        let told = told(events);
        let begins = |(told, expected): (&String, &&str)| told.starts_with(*expected);
        let all = told.len() == expected.len() && told.iter().zip(expected).all(begins);
        assert!(all, "{told:?}, not {expected:?}");
    }

    #[test]
    fn faults_have_the_cycle_in_which_they_happen() {
        let page = |at| event(at, LOOP, What::PageFault);
        let of_other = event(1_020, OTHER, What::PageFault);
        assert_told(&[page(5), of_other.clone(), page(600)], &[]);
        let events = [page(20), of_other, page(2_100), page(2_200), page(3_500)];
        assert_told(&events, &["page faults: 3, first in cycle 0; lock memory"]);
        let one = "page faults: 1, in cycle 2;";
        assert_told(&[page(2_499)], &[one]);
        let events = [
            call(1_100, LOOP, libc::SYS_openat, 0, 0),
            call(1_200, LOOP, libc::SYS_munmap, 0, 0),
            call(1_300, LOOP, libc::SYS_write, 3, 0),
            call(3_300, LOOP, libc::SYS_write, 1, 0),
            call(600, LOOP, libc::SYS_brk, 0, 0),
        ];
        let expected = "system calls that may block: 3, first in cycle 1 (munmap, openat, write \
                        to its output); leave";
        assert_told(&events, &[expected]);
    }

    #[test]
    fn a_sleep_is_by_what_it_waits_for() {
        let sleeps = |at| event(at, LOOP, What::Out(Out::Sleeps));
        let futex = |at, operation: libc::c_int| {
            let operation = i64::from(operation | libc::FUTEX_PRIVATE_FLAG);
            call(at, LOOP, libc::SYS_futex, 0, operation)
        };
        let woken = |at| event(at, LOOP, What::Waking { by: Some(OTHER) });
        let lower = [runs(0, LOOP, 19), runs(1, OTHER, 29)];
        let with = |events: &[Event]| [&lower[..], events].concat();
        let plain = [futex(1_100, libc::FUTEX_WAIT), sleeps(1_101), woken(1_150)];
        let no_inheritance = "sleeps for a lock without priority inheritance: 1, in cycle 1;";
        let by_lower = "woken by a thread of lower priority: 1, in cycle 1;";
        assert_told(&with(&plain), &[no_inheritance, by_lower]);
        let inheriting = [
            futex(1_100, libc::FUTEX_LOCK_PI),
            sleeps(1_101),
            woken(1_150),
        ];
        assert_told(&with(&inheriting), &[]);
        // The wait at a cycle's end is none; the wake-up from it begins the next one.
        let wait = [
            call(1_400, LOOP, libc::SYS_read, 3, 0),
            sleeps(1_500),
            woken(2_000),
        ];
        let next = "woken by a thread of lower priority: 1, in cycle 2;";
        assert_told(&with(&wait), &[next]);
        let read = [call(1_400, LOOP, libc::SYS_read, 3, 0), sleeps(1_410)];
        assert_told(&read, &["sleeps within a cycle: 1, in cycle 1 (read);"]);
        let higher = [runs(0, LOOP, 19), runs(1, OTHER, 9), woken(1_150)];
        assert_told(&higher, &[]);
        // In the kernel: a page, a lock of its own.
        let blocked = event(1_410, LOOP, What::Out(Out::Blocked));
        assert_told(&[call(1_400, LOOP, libc::SYS_read, 3, 0), blocked], &[]);
    }

    #[test]
    fn timers_are_exact_and_of_a_clock_that_goes_on() {
        let set = |slack, is_settable| What::Set {
            timer: 1,
            due: Nanos(3_000),
            slack: Nanos(slack),
            is_settable,
        };
        assert_told(&[event(2_300, LOOP, set(0, false))], &[]);
        assert_told(
            &[event(2_300, LOOP, set(50_000, true))],
            &[
                "timer slack: 1, in cycle 2 (50.0 µs);",
                "timers of CLOCK_REALTIME: 1, in cycle 2;",
            ],
        );
    }

    fn of_program(events: &[Event]) -> Vec<(Kind, u64)> {
        let faults = DesignFaults::of(events, &SEEN).of_program(&[], None);
        faults
            .into_iter()
            .map(|one| (one.kind, one.count))
            .collect()
    }

    #[test]
    fn memory_is_locked_whole_or_it_is_not() {
        let all = i64::from(libc::MCL_CURRENT | libc::MCL_FUTURE);
        let locks = |flags| call(1, LOOP, libc::SYS_mlockall, flags, 0);
        assert_eq!(of_program(&[locks(all)]), []);
        let unlocked = [(Kind::MemoryNotLocked, 1)];
        assert_eq!(of_program(&[locks(1)]), unlocked);
        assert_eq!(of_program(&[]), unlocked);
        let unseen = Seen {
            page_faults: false,
            calls: false,
        };
        let faults = DesignFaults::of(&[], &unseen);
        assert_eq!(faults.of_program(&[], None), []);
        assert_eq!(faults.unseen(), Some("page faults and system calls"));
    }

    #[test]
    fn a_thread_of_real_time_that_keeps_the_cpu_is_told() {
        let keeps = |cycles: &[Cycle], is_real_time, awake_since: Option<i64>| Thread {
            cycles: cycles.to_vec(),
            is_real_time,
            awake_since: awake_since.map(Nanos),
            ..thread()
        };
        let told = |one: Thread| {
            let faults = DesignFaults::of(&[], &SEEN).of_program(&[one], Some(Nanos(70_000_000)));
            faults.last().map(ToString::to_string).unwrap_or_default()
        };
        let busy = told(keeps(&[], true, Some(10_000_000)));
        let expected = "threads of real time that do not wait: 1 (loop for 60.0 ms); let them";
        assert!(busy.starts_with(expected), "{busy}");
        for other in [
            keeps(&[], true, None),
            keeps(&[], true, Some(60_000_001)),
            keeps(&[], false, Some(1)),
            keeps(&thread().cycles, true, Some(1)),
        ] {
            assert!(told(other).starts_with("memory not locked"));
        }
    }

    #[test]
    fn a_helper_has_the_priority_that_it_was_given() {
        let locked = call(1, LOOP, libc::SYS_mlockall, 3, 0);
        let forks = |at| event(at, LOOP, What::Forked { child: OTHER });
        let events = [
            locked.clone(),
            runs(2, LOOP, 19),
            forks(3),
            runs(4, OTHER, 19),
        ];
        assert_eq!(of_program(&events), [(Kind::InheritedPriority, 1)]);
        let set = |by, target| call(5, by, libc::SYS_sched_setscheduler, target, 0);
        for given in [set(LOOP, OTHER.into()), set(OTHER, 0)] {
            assert_eq!(of_program(&[&events[..], &[given]].concat()), []);
        }
        let reset = [
            locked.clone(),
            runs(2, LOOP, 19),
            forks(3),
            runs(4, OTHER, 120),
        ];
        assert_eq!(of_program(&reset), []);
        let ordinary = [locked, runs(2, LOOP, 120), forks(3), runs(4, OTHER, 120)];
        assert_eq!(of_program(&ordinary), []);
    }
}

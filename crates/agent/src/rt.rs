// SPDX-License-Identifier: MIT OR Apache-2.0
//! Preparation of a thread for measuring: memory, CPU, policy, priority, and reading them back.

use std::fs;
use std::sync::OnceLock;

use punctual_model::recording::FAULTS;
use punctual_model::{CpuId, Facts, Finding, Nanos, Reason};

use crate::loads;
use crate::sys::memory;
use crate::sys::sched::{self, Policy};
use crate::sys::time::{now, sleep};

/// The actual scheduling of a measuring thread, as the kernel reports it.
pub type Settings = Facts;

/// Prepares the calling thread: memory locked, bound to `cpu`, `SCHED_FIFO` with `priority`,
/// timer slack 1 ns, stack touched. From then on, until the thread ends, a load's work counts as
/// done while samples were taken. Returns the settings as read back; an error is the
/// reason why the thread cannot measure. There is no fallback.
pub fn prepare_thread(cpu: CpuId, priority: u8) -> Result<Settings, Reason> {
    prepare_thread_as(Policy::Fifo, cpu, priority)
}

/// Like [`prepare_thread`], with another policy; the priority is 0 if the policy has none.
pub fn prepare_thread_as(policy: Policy, cpu: CpuId, priority: u8) -> Result<Settings, Reason> {
    let locked = lock_memory()?;
    pin(cpu)?;
    let slack = sched::minimise_timer_slack()
        .map_err(|error| format!("cannot set the timer slack: {error}"))?;
    schedule(policy, priority)?;
    loads::enter();
    Ok(Facts::from([
        ("policy".into(), policy.name().into()),
        ("priority".into(), priority.into()),
        ("affinity".into(), cpu.to_string().into()),
        ("timer_slack_ns".into(), slack.into()),
        ("memory_locked_kib".into(), locked.into()),
    ]))
}

/// The default share of each period that a `SCHED_DEADLINE` thread may run, in per cent:
/// enough to measure, little enough for one on each CPU.
pub const DEADLINE_SHARE: i64 = 30;

/// The start of the periods of a `SCHED_DEADLINE` thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods {
    /// The time when the first one began.
    pub first: Nanos,
    /// The most by which the kernel began it later: the time that the request took.
    pub within: Nanos,
}

/// Restarts the periods of a `SCHED_DEADLINE` thread. The kernel does so only if the last
/// deadline has passed, so the thread sleeps that long first.
pub fn begin_periods_anew(runtime: Nanos, period: Nanos) -> Result<Periods, Reason> {
    schedule(Policy::Fifo, PRIORITY_BEFORE)?;
    sleep(period * 2);
    begin_periods(runtime, period)
}

/// The `SCHED_FIFO` priority of a thread whose periods begin: no load gets in between.
const PRIORITY_BEFORE: u8 = 98;

/// Begins the periods of the calling thread, `SCHED_DEADLINE` from now on.
fn begin_periods(runtime: Nanos, period: Nanos) -> Result<Periods, Reason> {
    let refused = |error: std::io::Error| {
        let hint = match error.raw_os_error() {
            Some(libc::EPERM) => {
                "run as root, and let the thread run on all CPUs: the kernel admits no other"
            }
            Some(libc::EBUSY) => "ask for less of each period, or end other deadline threads",
            _ => {
                "runtime from 1024 ns up to the period, and the period within \
                 /proc/sys/kernel/sched_deadline_period_*_us"
            }
        };
        Reason::Refused {
            what: format!("SCHED_DEADLINE with {runtime} in {period}"),
            error: error.to_string(),
            hint: hint.into(),
        }
    };
    schedule(Policy::Fifo, PRIORITY_BEFORE)?;
    let first = now();
    sched::set_deadline(runtime, period).map_err(refused)?;
    let within = now() - first;
    Ok(Periods { first, within })
}

/// Like [`prepare_thread`], but for `SCHED_DEADLINE`, and bound to no CPU if there are several: the
/// kernel's admission test requires that.
pub fn prepare_deadline_thread(
    runtime: Nanos,
    period: Nanos,
) -> Result<(Settings, Periods), Reason> {
    let locked = lock_memory()?;
    let slack = sched::minimise_timer_slack()
        .map_err(|error| format!("cannot set the timer slack: {error}"))?;
    memory::touch_stack();
    let periods = begin_periods(runtime, period)?;
    let told = sched::deadline().map_err(|error| format!("sched_getattr: {error}"))?;
    if told != (runtime, period) {
        let (had, every) = told;
        return Err(format!(
            "asked for SCHED_DEADLINE with {runtime} in {period}, but the kernel says {had} in {every}"
        )
        .into());
    }
    loads::enter();
    let settings = Facts::from([
        ("policy".into(), "SCHED_DEADLINE".into()),
        ("runtime_ns".into(), runtime.into()),
        ("period_ns".into(), period.into()),
        ("period_begins_within_ns".into(), periods.within.into()),
        ("timer_slack_ns".into(), slack.into()),
        ("memory_locked_kib".into(), locked.into()),
    ]);
    Ok((settings, periods))
}

/// The page faults of a thread: locked memory has none.
#[derive(Clone, Debug)]
pub struct Faults(Result<(i64, i64), Reason>);

impl Default for Faults {
    /// Creates a count of no faults.
    fn default() -> Self {
        Self(Ok((0, 0)))
    }
}

impl Faults {
    /// Returns the faults of the calling thread up to now.
    pub fn of_thread() -> Self {
        Self(memory::faults().map_err(|error| format!("getrusage: {error}").into()))
    }

    /// Returns the faults of the calling thread since then.
    #[must_use]
    pub fn until_now(self) -> Self {
        self.with(Self::of_thread(), |before, now| now - before)
    }

    /// Adds another thread's faults.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.with(other, |one, another| one + another)
    }

    /// Subtracts other faults of the same thread.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        self.with(other, |all, some| all - some)
    }

    fn with(self, other: Self, of: fn(i64, i64) -> i64) -> Self {
        let both = self.0.and_then(|one| Ok((one, other.0?)));
        Self(both.map(|(one, other)| (of(one.0, other.0), of(one.1, other.1))))
    }

    /// Returns the faults as they are kept with a recording.
    pub fn facts(&self) -> Settings {
        let fact =
            |number: fn(&(i64, i64)) -> i64| self.0.as_ref().map(number).map_err(Reason::clone);
        let [minor, major] = FAULTS;
        Settings::from([
            (minor.into(), fact(|faults| faults.0).into()),
            (major.into(), fact(|faults| faults.1).into()),
        ])
    }
}

/// Locks all memory of the process, present and future, at the first call; returns an error if that
/// is refused. Returns how many KiB of it are locked now, according to the kernel.
pub fn lock_memory() -> Result<u64, Reason> {
    static LOCKED: OnceLock<Result<(), Reason>> = OnceLock::new();
    let refused = |error: std::io::Error| Reason::NoMemoryLock {
        error: error.to_string(),
    };
    let lock = || memory::lock_all().map_err(refused);
    LOCKED.get_or_init(lock).clone()?;
    let path = "/proc/self/status";
    let status = fs::read_to_string(path).map_err(|error| Reason::unreadable(path, error))?;
    match parse_locked_kib(&status) {
        Some(kib) if kib > 0 => Ok(kib),
        _ => Err(format!("memory was to be locked, but {path} says that none is").into()),
    }
}

/// Reads `VmLck` of proc(5)'s `status`, in KiB.
fn parse_locked_kib(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmLck:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Binds the calling thread to `cpu`; returns an error if the kernel then reports otherwise.
pub fn pin(cpu: CpuId) -> Result<(), Reason> {
    sched::pin(cpu).map_err(|error| format!("cannot bind a thread to {cpu}: {error}"))?;
    let cpus = sched::affinity().map_err(|error| format!("sched_getaffinity: {error}"))?;
    if cpus != [cpu] {
        return Err(format!("asked for {cpu}, but the kernel says {cpus:?}").into());
    }
    Ok(())
}

/// Gives the calling thread a policy and a priority, and touches its stack; returns an error if
/// the kernel then reports otherwise. There is no fallback.
pub fn schedule(policy: Policy, priority: u8) -> Result<(), Reason> {
    let name = policy.name();
    sched::set(policy, priority).map_err(|error| Reason::Refused {
        what: format!("{name} {priority}"),
        error: error.to_string(),
        hint: "run as root, or raise RLIMIT_RTPRIO".into(),
    })?;
    memory::touch_stack();
    let (told, found) = sched::policy().map_err(|error| format!("sched_getparam: {error}"))?;
    if told != name || found != i32::from(priority) {
        return Err(
            format!("asked for {name} {priority}, but the kernel says {told} {found}").into(),
        );
    }
    Ok(())
}

/// Returns the real-time priority at which the kernel runs the calling thread now, either
/// its own or one that a mutex lends it; `sched_getparam` returns only the former.
pub fn effective_priority() -> Result<i32, Reason> {
    let path = "/proc/thread-self/stat";
    let text = fs::read_to_string(path).map_err(|error| Reason::unreadable(path, error))?;
    parse_effective_priority(&text)
        .ok_or_else(|| Reason::unreadable(path, format!("no priority in {text:?}")))
}

/// Converts a result of [`effective_priority`] while a mutex was wanted; a negative one is absent.
pub fn lent_priority(found: i32) -> Finding {
    let known = u64::try_from(found).map(Finding::Count);
    known.unwrap_or_else(|_| Finding::Absent("/proc/thread-self/stat did not tell it".into()))
}

/// Reads field 18 of proc(5)'s `stat`; a real-time priority `n` is shown there as `-1 - n`. Fields
/// are counted from after the command's name, which may contain anything.
fn parse_effective_priority(stat: &str) -> Option<i32> {
    let (_, fields) = stat.rsplit_once(')')?;
    let shown: i32 = fields.split_whitespace().nth(15)?.parse().ok()?;
    Some(-1 - shown)
}

/// The priority of the thread that starts and stops loads: above every load, below every probe.
pub const CONTROL_PRIORITY: u8 = 1;

#[cfg(test)]
mod tests {
    use punctual_model::Fact;

    use super::*;

    #[test]
    fn locked_memory_is_what_the_kernel_says() {
        let status = "VmPeak:\t  100 kB\nVmLck:\t    4096 kB\nVmPin:\t       0 kB\n";
        assert_eq!(parse_locked_kib(status), Some(4096));
        assert_eq!(parse_locked_kib("VmPeak:\t 100 kB\n"), None);
    }

    #[test]
    fn faults_are_counted_apart_and_together_and_what_is_unknown_stays_so() {
        let of = |faults: &Faults, name: &str| faults.facts()[name].clone();
        let (one, other) = (Faults(Ok((7, 1))), Faults(Ok((5, 0))));
        let both = one.clone().and(other.clone());
        assert_eq!(of(&both, "minor_faults"), Fact::from(12));
        assert_eq!(of(&both, "major_faults"), Fact::from(1));
        let since = other.with(one.clone(), |before, now| now - before);
        assert_eq!(of(&since, "minor_faults"), Fact::from(2));
        let unknown = one.and(Faults(Err("no getrusage".into())));
        assert!(matches!(of(&unknown, "major_faults"), Fact::Unknown { .. }));
        assert!(matches!(
            of(&Faults::of_thread(), "minor_faults"),
            Fact::Number(1..)
        ));
    }

    #[test]
    fn the_effective_priority_is_found_behind_a_name_with_spaces_and_parentheses() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 -83 0 1 0 5 0";
        assert_eq!(parse_effective_priority(stat), Some(82));
        assert_eq!(parse_effective_priority("7 (a) S 1"), None);
        assert!(effective_priority().is_ok());
    }
}

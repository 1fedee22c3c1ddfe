// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scheduling of the calling thread: set, and read back.

use std::io;
use std::mem;
use std::num::NonZeroU64;

use punctual_model::{CpuId, Nanos};
use rustix::thread::{
    CpuSet, current_timer_slack, sched_getaffinity, sched_getcpu, sched_setaffinity,
    set_current_timer_slack,
};

/// A scheduling policy that a measuring thread may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`.
    Other,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    RoundRobin,
}

impl Policy {
    /// Returns its name in the manual.
    pub fn name(self) -> &'static str {
        name_of(self.number())
    }

    /// Returns true if its threads have a real-time priority.
    pub fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo | Self::RoundRobin)
    }

    fn number(self) -> libc::c_int {
        match self {
            Self::Other => libc::SCHED_OTHER,
            Self::Batch => libc::SCHED_BATCH,
            Self::Idle => libc::SCHED_IDLE,
            Self::Fifo => libc::SCHED_FIFO,
            Self::RoundRobin => libc::SCHED_RR,
        }
    }
}

/// Makes the calling thread `SCHED_FIFO` with this priority (1 to 99).
pub fn set_fifo(priority: u8) -> io::Result<()> {
    set(Policy::Fifo, priority)
}

/// Gives the calling thread a policy, and a priority (1 to 99; 0 if the policy has none).
///
/// Children and new threads do not inherit it (`SCHED_RESET_ON_FORK`): a load that is
/// started by a real-time thread is no real-time load.
pub fn set(policy: Policy, priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority.into(),
    };
    let policy = policy.number() | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` is live; 0 is the calling thread.
    super::check(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) })?;
    Ok(())
}

/// Makes the calling thread `SCHED_DEADLINE`: in each `period`, which is its deadline as well, it
/// may run for `runtime`. Its first period begins now. The kernel refuses with `EBUSY` if
/// others need the CPU's time, and with `EPERM` if the thread is bound to some of the CPUs.
pub fn set_deadline(runtime: Nanos, period: Nanos) -> io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_DEADLINE as u32,
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: runtime.0.unsigned_abs(),
        sched_deadline: period.0.unsigned_abs(),
        sched_period: period.0.unsigned_abs(),
    };
    // SAFETY: `attributes` is live, and says how long it is; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    super::check(result as libc::c_int)?;
    Ok(())
}

/// Returns the time that the calling thread may run in each period, and that period: zeros if it
/// is not `SCHED_DEADLINE`.
pub fn deadline() -> io::Result<(Nanos, Nanos)> {
    // SAFETY: a sched_attr is made of integers, for which all zeros is valid.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: `attributes` is live and as long as is said; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    super::check(result as libc::c_int)?;
    if attributes.sched_policy != libc::SCHED_DEADLINE as u32 {
        return Ok((Nanos::ZERO, Nanos::ZERO));
    }
    let nanos = |time: u64| Nanos(i64::try_from(time).unwrap_or(i64::MAX));
    Ok((
        nanos(attributes.sched_runtime),
        nanos(attributes.sched_period),
    ))
}

/// Returns the calling thread's policy, by its name in the manual, and its priority.
pub fn policy() -> io::Result<(&'static str, i32)> {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` is live; 0 is the calling thread.
    let policy = unsafe {
        super::check(libc::sched_getparam(0, &raw mut parameters))?;
        super::check(libc::sched_getscheduler(0))?
    };
    let name = name_of(policy & !libc::SCHED_RESET_ON_FORK);
    Ok((name, parameters.sched_priority))
}

fn name_of(policy: libc::c_int) -> &'static str {
    match policy {
        libc::SCHED_OTHER => "SCHED_OTHER",
        libc::SCHED_FIFO => "SCHED_FIFO",
        libc::SCHED_RR => "SCHED_RR",
        libc::SCHED_BATCH => "SCHED_BATCH",
        libc::SCHED_IDLE => "SCHED_IDLE",
        libc::SCHED_DEADLINE => "SCHED_DEADLINE",
        _ => "unknown policy",
    }
}

/// Returns the CPU that the calling thread runs on at this moment.
pub fn current_cpu() -> CpuId {
    CpuId(u32::try_from(sched_getcpu()).unwrap_or(u32::MAX))
}

/// Binds the calling thread to one CPU.
pub fn pin(cpu: CpuId) -> io::Result<()> {
    bind(&[cpu])
}

/// Restricts the calling thread, and everything that it starts from then on, to these CPUs.
pub fn bind(cpus: &[CpuId]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        let number = usize::try_from(cpu.0).unwrap_or(usize::MAX);
        if number >= CpuSet::MAX_CPU {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        set.set(number);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Returns the CPUs on which the calling thread may run.
pub fn affinity() -> io::Result<Vec<CpuId>> {
    let set = sched_getaffinity(None)?;
    let all = (0..CpuSet::MAX_CPU).zip((0..).map(CpuId));
    let may = all.filter(|(number, _)| set.is_set(*number));
    Ok(may.map(|(_, cpu)| cpu).collect())
}

/// Sets the calling thread's timer slack to 1 ns, and returns the value that the kernel reports.
///
/// Real-time threads have none anyway; this covers those that may not become real-time.
pub fn minimise_timer_slack() -> io::Result<u64> {
    set_current_timer_slack(Some(NonZeroU64::MIN))?;
    Ok(current_timer_slack()?)
}

/// The timer slack of anything that an ordinary thread starts, in nanoseconds: the kernel's own.
const USUAL_SLACK: NonZeroU64 = NonZeroU64::new(50_000).unwrap();

/// Runs `body` as an ordinary thread, with the usual timer slack. Children of a real-time thread
/// would have none, and keep that even if they are ordinary themselves.
pub fn as_ordinary<T>(body: impl FnOnce() -> T) -> io::Result<T> {
    let (_, priority) = policy()?;
    set(Policy::Other, 0)?;
    let done = set_current_timer_slack(Some(USUAL_SLACK)).map(|()| body());
    if let Ok(priority @ 1..) = u8::try_from(priority) {
        set_fifo(priority)?;
    }
    Ok(done?)
}

/// Returns how often another thread took the CPU from the calling one, which was ready to go on.
pub fn preemptions() -> io::Result<i64> {
    // SAFETY: a rusage is made of integers, for which all zeros is valid.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is live.
    super::check(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) })?;
    Ok(super::long(usage.ru_nivcsw))
}

//! Scheduling of the calling thread: set, and read back.

use std::io;
use std::mem;

use punctual_model::CpuId;

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
    /// Its name in the manual.
    pub fn name(self) -> &'static str {
        name_of(self.number())
    }

    /// Whether its threads have a real-time priority.
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

/// Gives the calling thread a policy, and a priority (1 to 99; 0 where the policy has none).
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

/// The calling thread's policy, by its name in the manual, and its priority.
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

/// The CPU that the calling thread runs on at this moment.
pub fn current_cpu() -> io::Result<CpuId> {
    // SAFETY: the call takes no argument.
    let cpu = super::check(unsafe { libc::sched_getcpu() })?;
    Ok(CpuId(cpu as u32))
}

/// Binds the calling thread to one CPU.
pub fn pin(cpu: CpuId) -> io::Result<()> {
    // SAFETY: a cpu_set_t is a bit field for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    if cpu.0 as usize >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: the CPU's number was checked against the set's size.
    unsafe { libc::CPU_SET(cpu.0 as usize, &mut set) };
    // SAFETY: `set` is live and of the size given; 0 is the calling thread.
    super::check(unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &raw const set) })?;
    Ok(())
}

/// The CPUs that the calling thread may run on.
pub fn affinity() -> io::Result<Vec<CpuId>> {
    // SAFETY: a cpu_set_t is a bit field for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is live and of the size given; 0 is the calling thread.
    super::check(unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &raw mut set) })?;
    let all = 0..libc::CPU_SETSIZE as u32;
    // SAFETY: each number is below the set's size.
    Ok(all
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu as usize, &set) })
        .map(CpuId)
        .collect())
}

/// Sets the calling thread's timer slack to 1 ns, and returns what the kernel then says.
///
/// Real-time threads have none anyway; this covers those that may not become real-time.
pub fn minimise_timer_slack() -> io::Result<i32> {
    // SAFETY: both calls take plain numbers.
    unsafe {
        super::check(libc::prctl(libc::PR_SET_TIMERSLACK, 1))?;
        super::check(libc::prctl(libc::PR_GET_TIMERSLACK))
    }
}

/// How often another thread took the CPU from the calling one, which was ready to go on.
pub fn preemptions() -> io::Result<i64> {
    // SAFETY: a rusage is made of integers, for which all zeros is valid.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is live.
    super::check(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) })?;
    Ok(usage.ru_nivcsw)
}

//! Processes: forking, waiting, ending.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use punctual_model::Nanos;
use punctual_model::plan::Stop;

/// A process's number.
pub type Pid = libc::pid_t;

/// Runs `body` in a forked child, which then ends with status 0, and returns the child's number.
///
/// # Panics
/// If the calling process has more than one thread: the child would inherit locks that
/// nobody gives back.
pub fn fork(body: impl FnOnce()) -> io::Result<Pid> {
    assert_eq!(threads(), 1, "only a process with a single thread may fork");
    // SAFETY: the process has one thread, so no lock is held by another one.
    match super::check(unsafe { libc::fork() })? {
        0 => {
            body();
            // SAFETY: ends the child at once, without running its parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        child => Ok(child),
    }
}

/// The calling thread's number, as the kernel counts threads.
pub fn thread_id() -> Pid {
    // SAFETY: the call takes no argument and cannot fail.
    unsafe { libc::gettid() }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

/// How a child ended, and the CPU time that it and its own children took.
#[derive(Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// The time that it spent in its own code.
    pub user: Nanos,
    /// The time that the kernel spent for it.
    pub system: Nanos,
}

impl Ended {
    /// User and system time together.
    pub fn cpu(&self) -> Nanos {
        self.user + self.system
    }
}

/// Waits for one child, or for one of a process group if the number is negative.
pub fn wait(child: Pid) -> io::Result<Ended> {
    let mut status = 0;
    // SAFETY: a rusage is made of integers, for which all zeros is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: `status` and `usage` are live.
        match super::check(unsafe { libc::wait4(child, &raw mut status, 0, &raw mut usage) }) {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let span = |time: libc::timeval| Nanos(time.tv_sec * 1_000_000_000 + time.tv_usec * 1_000);
    Ok(Ended {
        status: ExitStatus::from_raw(status),
        user: span(usage.ru_utime),
        system: span(usage.ru_stime),
    })
}

/// Collects the processes of a group that was killed, as far as they are this process's
/// children: those whose parents have died, if it adopts orphans. Returns the CPU time that
/// they took.
pub fn reap_group(leader: Pid) -> Nanos {
    let mut cpu = Nanos::ZERO;
    while let Ok(ended) = wait(-leader) {
        cpu += ended.cpu();
    }
    cpu
}

/// Makes orphaned grandchildren the children of this process, as they are of process 1.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: the call takes plain numbers.
    super::check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })?;
    Ok(())
}

/// Asks all processes of a group to end.
pub fn stop_group(leader: Pid, stop: Stop) {
    let signal = match stop {
        Stop::Term => libc::SIGTERM,
        Stop::Int => libc::SIGINT,
    };
    signal_group(leader, signal);
}

/// Ends all processes of a group.
pub fn kill_group(leader: Pid) {
    signal_group(leader, libc::SIGKILL);
}

/// Ends one process.
pub fn kill(process: Pid) {
    // A process that is gone already is what the caller wants.
    // SAFETY: the call takes plain numbers.
    let _ = unsafe { libc::kill(process, libc::SIGKILL) };
}

fn signal_group(leader: Pid, signal: libc::c_int) {
    // A group that is gone already is what the caller wants.
    // SAFETY: the call takes plain numbers.
    let _ = unsafe { libc::kill(-leader, signal) };
}

/// Lets the calling process survive `SIGTERM`; its system calls go on.
pub fn survive_termination() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // SAFETY: all zeros is a valid sigaction; the handler does nothing, so it is
    // async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGTERM, &raw const action, std::ptr::null_mut());
    }
}

/// Switches the machine off; only process 1 of a guest calls this.
pub fn power_off() -> io::Error {
    // SAFETY: both calls take plain numbers.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    io::Error::last_os_error()
}

//! Signals that ask a process to end, and the wish to end with one's parent.

use std::io;
use std::mem::MaybeUninit;

/// What a terminal, a service manager and a lost connection send.
const ENDING: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Keeps the signals that ask for the end away from the calling thread and from those that it
/// starts; programs that it starts get them as ever.
pub fn hold_ending() -> io::Result<()> {
    let set = ending();
    // SAFETY: `set` is live and initialised; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Waits for a signal that asks for the end, and that is held.
pub fn wait_for_ending() -> io::Result<()> {
    let set = ending();
    let mut signal = 0;
    // SAFETY: both are live, and `set` is initialised.
    match unsafe { libc::sigwait(&raw const set, &raw mut signal) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Has the kernel kill the calling process when the thread that started it ends.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: the call takes plain numbers.
    super::check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    Ok(())
}

fn ending() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set; sigaddset gets valid signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in ENDING {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

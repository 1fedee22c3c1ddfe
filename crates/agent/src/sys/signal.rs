// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals that ask a process to end, and the request to end with one's parent; and one signal
//! whose handler takes the time.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use punctual_model::Nanos;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::time;

/// The signals from a terminal, a service manager and a lost connection.
pub const ENDING: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Asks a measuring program for its progress.
pub const STATUS: libc::c_int = libc::SIGUSR1;

/// Asks a measuring program to write down its progress.
pub const SNAPSHOT: libc::c_int = libc::SIGUSR2;

/// Keeps signals away from the calling thread and from those that it starts; they wait for
/// [`wait_for`].
pub fn hold(signals: &[libc::c_int]) -> io::Result<()> {
    let set = set_of(signals);
    // SAFETY: `set` is live and initialised; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Waits for one of some signals that are held, for at most `limit`; returns the one that came.
pub fn wait_for(signals: &[libc::c_int], limit: Nanos) -> io::Result<Option<libc::c_int>> {
    let set = set_of(signals);
    let limit = time::timespec(limit);
    // SAFETY: `set` and `limit` are live; who sent the signal is not asked for.
    let signal =
        unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const limit) };
    match super::check(signal) {
        Ok(signal) => Ok(Some(signal)),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Makes the kernel kill the calling process when the thread that started it ends.
pub fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// The signal that is [noted](Noted).
pub const NOTED: libc::c_int = libc::SIGUSR1;

static HANDLED: AtomicI64 = AtomicI64::new(0);

/// Makes the signal [`NOTED`] do nothing but take the time, as long as this value lives.
#[derive(Debug)]
pub struct Noted {
    before: libc::sigaction,
}

impl Noted {
    /// Sets up the handler.
    pub fn begin() -> io::Result<Self> {
        extern "C" fn note(_signal: libc::c_int) {
            HANDLED.store(time::now().0, Relaxed);
        }
        // SAFETY: all zeros is a valid sigaction; the handler reads the clock and stores into
        // an atomic, both of which are async-signal-safe.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART;
            super::check(libc::sigaction(NOTED, &raw const action, &raw mut before))?;
            Ok(Self { before })
        }
    }

    /// Returns the time when the handler ran since the last call.
    #[inline]
    pub fn take(&self) -> Option<Nanos> {
        let at = HANDLED.swap(0, Relaxed);
        (at != 0).then_some(Nanos(at))
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        // SAFETY: `before` is what sigaction gave.
        let _ = unsafe { libc::sigaction(NOTED, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// Returns a set of these signals.
pub(super) fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set; sigaddset gets valid signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

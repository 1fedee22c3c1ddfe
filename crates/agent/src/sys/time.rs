// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock that all probes read, and the sleep that ends at a point in time.

use std::io;

use punctual_model::Nanos;

/// Returns the current time of `CLOCK_MONOTONIC`.
///
/// # Panics
/// Never: the clock exists on every Linux, and the call has no other way to fail.
#[inline]
pub fn now() -> Nanos {
    let mut time = timespec(Nanos::ZERO);
    // SAFETY: `time` is a live timespec.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    assert!(result == 0, "CLOCK_MONOTONIC cannot be read");
    nanos(time)
}

/// Returns the current time of `CLOCK_REALTIME`: since 1970.
pub fn real() -> io::Result<Nanos> {
    read(libc::CLOCK_REALTIME)
}

/// Returns the CPU time of a process, all of its threads together, without its children's; an
/// error if it is gone.
pub fn of_process(pid: libc::pid_t) -> io::Result<Nanos> {
    // The clock of a process's CPU time, as clock_getcpuclockid(3) makes its number:
    // CPUCLOCK_SCHED in the kernel's posix-timers.h.
    const SCHEDULER: libc::clockid_t = 2;
    read((!pid << 3) | SCHEDULER)
}

/// Returns the resolution that the kernel claims for `CLOCK_MONOTONIC`: 1 ns if
/// high-resolution timers are active, else a tick.
pub fn resolution() -> io::Result<Nanos> {
    Clock::Monotonic.resolution()
}

/// Returns the length of a tick, 1/HZ: the resolution of the clocks that move with it.
pub fn tick() -> io::Result<Nanos> {
    claimed(libc::CLOCK_MONOTONIC_COARSE)
}

fn claimed(clock: libc::clockid_t) -> io::Result<Nanos> {
    let mut time = timespec(Nanos::ZERO);
    // SAFETY: `time` is a live timespec.
    super::check(unsafe { libc::clock_getres(clock, &raw mut time) })?;
    Ok(nanos(time))
}

/// Returns the CPU time that the calling thread has used.
pub fn used_by_thread() -> io::Result<Nanos> {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> io::Result<Nanos> {
    let mut time = timespec(Nanos::ZERO);
    // SAFETY: `time` is a live timespec.
    super::check(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    Ok(nanos(time))
}

/// Sleeps until `CLOCK_MONOTONIC` reads `deadline`; continues to sleep after a signal.
///
/// # Panics
/// Panics if the kernel refuses the deadline, which it does only for negative times.
#[inline]
pub fn sleep_until(deadline: Nanos) {
    let time = timespec(deadline);
    loop {
        // SAFETY: `time` is a live timespec; no remainder is asked for, which is allowed
        // for absolute times.
        let result = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const time,
                std::ptr::null_mut(),
            )
        };
        match result {
            0 => return,
            libc::EINTR => {}
            error => panic!("clock_nanosleep: {}", io::Error::from_raw_os_error(error)),
        }
    }
}

/// Sleeps for a span.
pub fn sleep(span: Nanos) {
    sleep_until(now() + span);
}

/// Sleeps for a span by nanosleep(2); returns early after a signal.
pub fn nanosleep(span: Nanos) -> io::Result<()> {
    let time = timespec(span);
    // SAFETY: `time` is a live timespec; no remainder is asked for.
    match super::check(unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// A clock by which timers can be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`.
    #[default]
    Monotonic,
    /// `CLOCK_REALTIME`, which may be set.
    Realtime,
}

impl Clock {
    pub(super) fn number(self) -> libc::clockid_t {
        match self {
            Self::Monotonic => libc::CLOCK_MONOTONIC,
            Self::Realtime => libc::CLOCK_REALTIME,
        }
    }

    /// Returns the current time of this clock.
    pub fn now(self) -> io::Result<Nanos> {
        read(self.number())
    }

    /// Returns the resolution that the kernel claims for this clock.
    pub fn resolution(self) -> io::Result<Nanos> {
        claimed(self.number())
    }

    /// Sleeps until this clock reads `deadline`; returns early after a signal.
    pub fn sleep_until(self, deadline: Nanos) -> io::Result<()> {
        self.sleep(libc::TIMER_ABSTIME, deadline)
    }

    /// Sleeps for a span of this clock; returns early after a signal.
    pub fn sleep_for(self, span: Nanos) -> io::Result<()> {
        self.sleep(0, span)
    }

    fn sleep(self, flags: libc::c_int, time: Nanos) -> io::Result<()> {
        let time = timespec(time);
        // SAFETY: `time` is a live timespec; no remainder is asked for.
        let result = unsafe {
            let none = std::ptr::null_mut();
            libc::clock_nanosleep(self.number(), flags, &raw const time, none)
        };
        match result {
            0 | libc::EINTR => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Converts a time, or a span, to the form of system calls.
#[inline]
pub(super) fn timespec(time: Nanos) -> libc::timespec {
    // On a 32-bit machine it has a field that cannot be named.
    // SAFETY: it is made of numbers, all of which may be 0.
    let mut given: libc::timespec = unsafe { std::mem::zeroed() };
    given.tv_sec = time.0 / 1_000_000_000;
    // It is less than 2^30.
    given.tv_nsec = (time.0 % 1_000_000_000) as libc::c_long;
    given
}

/// Converts a time from the form of system calls.
#[inline]
pub(super) fn nanos(time: libc::timespec) -> Nanos {
    Nanos(time.tv_sec * 1_000_000_000 + super::long(time.tv_nsec))
}

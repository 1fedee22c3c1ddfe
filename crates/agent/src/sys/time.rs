// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock that all probes read, and the sleep that ends at a point in time.

use std::io;

use punctual_model::Nanos;

/// `CLOCK_MONOTONIC`, now.
///
/// # Panics
/// Never: the clock exists on every Linux, and the call has no other way to fail.
#[inline]
pub fn now() -> Nanos {
    let mut time = timespec! {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a live timespec.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    assert!(result == 0, "CLOCK_MONOTONIC cannot be read");
    Nanos(time.tv_sec * 1_000_000_000 + long!(time.tv_nsec))
}

/// The CPU time of a process, all of its threads together, without its children's; an error
/// where it is gone.
pub fn of_process(pid: libc::pid_t) -> io::Result<Nanos> {
    // The clock of a process's CPU time, as clock_getcpuclockid(3) makes its number:
    // CPUCLOCK_SCHED in the kernel's posix-timers.h.
    const SCHEDULER: libc::clockid_t = 2;
    let clock = (!pid << 3) | SCHEDULER;
    let mut time = timespec! {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a live timespec.
    super::check(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    Ok(Nanos(time.tv_sec * 1_000_000_000 + long!(time.tv_nsec)))
}

/// The resolution that the kernel claims for `CLOCK_MONOTONIC`: 1 ns where
/// high-resolution timers are active, else a tick.
pub fn resolution() -> io::Result<Nanos> {
    claimed(libc::CLOCK_MONOTONIC)
}

/// The length of a tick, 1/HZ: the resolution of the clocks that move with it.
pub fn tick() -> io::Result<Nanos> {
    claimed(libc::CLOCK_MONOTONIC_COARSE)
}

fn claimed(clock: libc::clockid_t) -> io::Result<Nanos> {
    let mut time = timespec! {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a live timespec.
    super::check(unsafe { libc::clock_getres(clock, &raw mut time) })?;
    Ok(Nanos(time.tv_sec * 1_000_000_000 + long!(time.tv_nsec)))
}

/// The CPU time that the calling thread has used.
pub fn used_by_thread() -> io::Result<Nanos> {
    let mut time = timespec! {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a live timespec.
    super::check(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) })?;
    Ok(Nanos(time.tv_sec * 1_000_000_000 + long!(time.tv_nsec)))
}

/// Sleeps until `CLOCK_MONOTONIC` reads `deadline`; goes on sleeping after a signal.
///
/// # Panics
/// If the kernel refuses the deadline, which it does for negative times only.
#[inline]
pub fn sleep_until(deadline: Nanos) {
    let time = timespec! {
        tv_sec: deadline.0 / 1_000_000_000,
        tv_nsec: deadline.0 % 1_000_000_000,
    };
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

/// A clock that timers can be set by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`.
    #[default]
    Monotonic,
    /// `CLOCK_REALTIME`, which may be set.
    Realtime,
}

impl Clock {
    fn number(self) -> libc::clockid_t {
        match self {
            Self::Monotonic => libc::CLOCK_MONOTONIC,
            Self::Realtime => libc::CLOCK_REALTIME,
        }
    }

    /// This clock, now.
    pub fn now(self) -> io::Result<Nanos> {
        let mut time = timespec(Nanos::ZERO);
        // SAFETY: `time` is a live timespec.
        super::check(unsafe { libc::clock_gettime(self.number(), &raw mut time) })?;
        Ok(Nanos(time.tv_sec * 1_000_000_000 + long!(time.tv_nsec)))
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

fn timespec(time: Nanos) -> libc::timespec {
    timespec! {
        tv_sec: time.0 / 1_000_000_000,
        tv_nsec: time.0 % 1_000_000_000,
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A periodic timer (`timer_create(2)`) that sends its signal to one thread.

use std::io;
use std::ptr::null_mut;

use punctual_model::Nanos;

use super::signal::{hold, set_of, wait_for};
use super::time::{Clock, timespec};
use super::{check, process};

/// The signal that it sends, as cyclictest does.
const SIGNAL: libc::c_int = libc::SIGALRM;

/// A running timer, which ends when dropped. It belongs to the thread that began it: no other
/// thread gets its signal.
#[derive(Debug)]
pub struct Alarm(libc::timer_t);

impl Alarm {
    /// Begins a timer by this clock: when that reads `first`, or after an interval if that is
    /// `None`, and then after each `interval`. The calling thread holds the signal from now on.
    pub fn begin(clock: Clock, first: Option<Nanos>, interval: Nanos) -> io::Result<Self> {
        hold(&[SIGNAL])?;
        let alarm = Self::create(clock)?;
        let flags = first.map_or(0, |_| libc::TIMER_ABSTIME);
        let setting = libc::itimerspec {
            it_interval: timespec(interval),
            it_value: timespec(first.unwrap_or(interval)),
        };
        // SAFETY: the timer lives, and so does `setting`; the old one is not asked for.
        check(unsafe { libc::timer_settime(alarm.0, flags, &raw const setting, null_mut()) })?;
        Ok(alarm)
    }

    fn create(clock: Clock) -> io::Result<Self> {
        // SAFETY: a sigevent is made of integers and a pointer, for which all zeros is valid.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = process::thread_id();
        let mut timer: libc::timer_t = null_mut();
        // SAFETY: `event` and `timer` are live.
        check(unsafe { libc::timer_create(clock.number(), &raw mut event, &raw mut timer) })?;
        Ok(Self(timer))
    }

    /// Waits for the next signal; returns the number of further intervals that had ended by then.
    #[inline]
    pub fn wait(&self) -> io::Result<u32> {
        let set = set_of(&[SIGNAL]);
        let mut signal = 0;
        // SAFETY: `set` and `signal` are live, and the thread holds the signal.
        match unsafe { libc::sigwait(&raw const set, &raw mut signal) } {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        // SAFETY: the timer lives. The number is not negative once that is checked.
        Ok(check(unsafe { libc::timer_getoverrun(self.0) })? as u32)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer lives, and is not used any more.
        let _ = unsafe { libc::timer_delete(self.0) };
        // A signal that still waits is not the next timer's.
        let _ = wait_for(&[SIGNAL], Nanos::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::{now, sleep};
    use super::*;

    #[test]
    fn a_signal_comes_when_it_is_due_and_counts_those_that_nobody_waited_for() {
        let interval = Nanos::from_millis(1);
        let first = now() + interval;
        let alarm = Alarm::begin(Clock::Monotonic, Some(first), interval).unwrap();
        let mut intervals = i64::from(alarm.wait().unwrap());
        assert!(now() >= first + interval * intervals);
        sleep(interval * 20);
        intervals += 1 + i64::from(alarm.wait().unwrap());
        assert!(intervals >= 19, "{intervals}");
        assert!(now() >= first + interval * intervals);
    }

    #[test]
    fn a_timer_that_has_ended_leaves_no_signal_to_the_next() {
        let soon = Nanos(1_000);
        let alarm = Alarm::begin(Clock::Monotonic, None, soon).unwrap();
        sleep(Nanos::from_millis(2));
        drop(alarm);
        let begun = now();
        let interval = Nanos::from_millis(30);
        let alarm = Alarm::begin(Clock::Realtime, None, interval).unwrap();
        alarm.wait().unwrap();
        assert!(now() - begun >= interval);
    }
}

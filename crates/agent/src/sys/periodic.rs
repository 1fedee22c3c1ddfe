// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts that come periodically and are read from a descriptor: `/dev/rtc`, timerfd.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use punctual_model::Nanos;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::pipe;

// The requests of rtc(4), from the kernel's `uapi/linux/rtc.h`.
const RTC_PIE_ON: libc::Ioctl = libc::_IO(b'p' as u32, 0x05);
const RTC_PIE_OFF: libc::Ioctl = libc::_IO(b'p' as u32, 0x06);
const RTC_IRQP_SET: libc::Ioctl = libc::_IOW::<libc::c_ulong>(b'p' as u32, 0x0c);

/// A source of periodic interrupts that is switched on, and off when dropped.
///
/// The thread that creates and drops it must not be a real-time thread. If the kernel runs
/// the RTC's timer in a thread (`PREEMPT_RT`), switching on and off waits for the timer's
/// callback in a busy loop (`rtc_update_hrtimer` in `drivers/rtc/interface.c`): a caller of
/// higher priority than that thread keeps the CPU from it, and waits forever.
#[derive(Debug)]
pub struct Periodic {
    file: File,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rtc,
    Timerfd,
}

impl Periodic {
    /// Switches on the periodic interrupt of a real-time clock.
    pub fn rtc(device: &Path, hertz: u32) -> io::Result<Self> {
        let file = File::open(device)?;
        // SAFETY: the descriptor is open; both requests take a plain number.
        unsafe {
            let frequency = libc::c_ulong::from(hertz);
            super::check(libc::ioctl(file.as_raw_fd(), RTC_IRQP_SET, frequency))?;
            super::check(libc::ioctl(file.as_raw_fd(), RTC_PIE_ON, 0))?;
        }
        let kind = Kind::Rtc;
        Ok(Self { file, kind })
    }

    /// Creates a timer of the kernel behind a descriptor.
    pub fn timerfd(period: Nanos) -> io::Result<Self> {
        let period = pipe::timespec(period);
        let setting = Itimerspec {
            it_interval: period,
            it_value: period,
        };
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &setting)?;
        let (file, kind) = (timer.into(), Kind::Timerfd);
        Ok(Self { file, kind })
    }

    /// Creates a timer of the kernel that is due once, at this moment of `CLOCK_MONOTONIC`.
    pub fn once(due: Nanos) -> io::Result<Self> {
        let setting = Itimerspec {
            it_interval: pipe::timespec(Nanos::ZERO),
            it_value: pipe::timespec(due),
        };
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        let (file, kind) = (timer.into(), Kind::Timerfd);
        Ok(Self { file, kind })
    }

    /// Returns true if an interrupt comes within `limit`; it is not consumed.
    pub fn comes_within(&self, limit: Nanos) -> io::Result<bool> {
        pipe::wait_readable(self.file.as_fd(), Some(limit))
    }

    /// Waits for the next interrupt; returns the number that came since the last one was read.
    pub fn wait(&self) -> io::Result<u64> {
        let mut word = [0; 8];
        loop {
            match (&self.file).read(&mut word) {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let word = u64::from_ne_bytes(word);
        Ok(match self.kind {
            // The lowest byte tells the kind of interrupt.
            Kind::Rtc => word >> 8,
            Kind::Timerfd => word,
        })
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        if self.kind == Kind::Rtc {
            // Closing the file switches the interrupt off too.
            // SAFETY: the descriptor is open; the request takes no argument.
            let _ = unsafe { libc::ioctl(self.file.as_raw_fd(), RTC_PIE_OFF, 0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_is_due_once_is_due_at_its_moment() {
        let due = super::super::time::now() + Nanos::from_millis(5);
        let timer = Periodic::once(due).unwrap();
        assert_eq!(timer.wait().unwrap(), 1);
        assert!(super::super::time::now() >= due);
        assert!(!timer.comes_within(Nanos::from_millis(20)).unwrap());
    }

    #[test]
    fn a_timerfd_counts_what_was_not_read() {
        let timer = Periodic::timerfd(Nanos::from_millis(1)).unwrap();
        assert!(timer.comes_within(Nanos::from_millis(10_000)).unwrap());
        assert!(timer.wait().unwrap() >= 1);
        super::super::time::sleep(Nanos::from_millis(20));
        assert!(timer.wait().unwrap() >= 19);
    }

    #[test]
    fn a_clock_that_is_not_there_is_an_error() {
        assert!(Periodic::rtc(Path::new("/dev/no-such-clock"), 64).is_err());
    }
}

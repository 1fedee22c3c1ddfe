// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/dev/pulse`: interrupts, and their times. Structures and numbers as in the module's
//! `uapi/pulse.h`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use punctual_model::{CpuId, Nanos, Reason};

/// The source of the interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// QEMU's PCI device `edu`.
    Edu = 1,
    /// A comparator of the HPET, which interrupts whatever the CPUs do.
    Hpet = 2,
    /// An interrupt that one CPU sends to another, or to itself.
    Ipi = 3,
}

/// An interval shorter than this plus the prolongation of the handlers leaves too little time to
/// others: a burst with such an interval takes at most [`BURST_MAX`].
pub const INTERVAL_FREE: Nanos = Nanos::from_micros(20);

/// The longest such burst.
pub const BURST_MAX: Nanos = Nanos::from_millis(60_000);

const HARD_ONLY: u32 = 0x1;
const ANY_CPU: u32 = u32::MAX;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Setup {
    source: u32,
    flags: u32,
    interval_ns: u64,
    count: u64,
    records: u32,
    cpu: u32,
    hard_spin_ns: u32,
    thread_spin_ns: u32,
    hpet_fd: i32,
    reserved: [u32; 7],
}

/// An interrupt, in the module's own form.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RawRecord {
    seq: u64,
    asserted_ns: u64,
    hard_ns: u64,
    thread_ns: u64,
}

/// The module's counts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Interrupts that the source made, or that were due.
    pub raised: u64,
    /// Those of them that the hard handler saw separately.
    pub handled: u64,
    /// Entries of the hard handler with nothing new.
    pub extra: u64,
    /// Entries of the threaded handler.
    pub threaded: u64,
    /// Records for which there was no room.
    pub dropped: u64,
    /// Periods in which nothing was raised.
    pub skipped: u64,
    /// The actual interval, in femtoseconds.
    pub interval_fs: u64,
    /// Linux's number of the interrupt.
    pub irq: u32,
    /// The threaded handler's number; 0 if it has not run.
    pub thread_pid: i32,
    /// Nonzero if the burst has ended.
    pub over: u32,
    /// The flags that are in force.
    pub flags: u32,
    reserved: [u64; 3],
}

const MAGIC: u32 = 0xd0;
const SETUP: libc::Ioctl = libc::_IOW::<Setup>(MAGIC, 1);
const START: libc::Ioctl = libc::_IO(MAGIC, 2);
const STOP: libc::Ioctl = libc::_IO(MAGIC, 3);
const TRIGGER: libc::Ioctl = libc::_IO(MAGIC, 4);
const STATS: libc::Ioctl = libc::_IOR::<Stats>(MAGIC, 5);

/// The request to a source.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// The source of the interrupts.
    pub source: Source,
    /// The time between interrupts; if zero, each is [triggered](Pulse::trigger).
    pub interval: Nanos,
    /// The number of interrupts.
    pub count: u64,
    /// The number of interrupts for which there is room until they are read, a power of two; with
    /// 0, none is kept, and a read waits for the end.
    pub records: u32,
    /// The CPU that is interrupted; if none, any CPU.
    pub cpu: Option<CpuId>,
    /// True if there is a threaded handler.
    pub threaded: bool,
    /// The time by which the hard handler is prolonged.
    pub handler: Nanos,
}

/// The times of one interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interrupt {
    /// Its number in the burst, from 1.
    pub seq: u64,
    /// The time when it was raised, or due.
    pub asserted: Nanos,
    /// The time when the hard handler was entered.
    pub hard: Nanos,
    /// The time when the threaded handler was entered.
    pub thread: Nanos,
}

/// A source of interrupts; closing it ends its burst.
#[derive(Debug)]
pub struct Pulse {
    file: File,
    /// The comparator, which is lent as long as this is open.
    _hpet: Option<File>,
}

impl Pulse {
    /// Opens the device and chooses a source; an error names what is missing.
    pub fn open(device: &Path, burst: &Burst) -> Result<Self, Reason> {
        let open = File::options().read(true).write(true).open(device);
        let file =
            open.map_err(|error| Reason::no_device(&device.to_string_lossy(), "pulse", error))?;
        let hpet = match burst.source {
            Source::Hpet => Some(hpet()?),
            Source::Edu | Source::Ipi => None,
        };
        let setup = Setup {
            source: burst.source as u32,
            flags: if burst.threaded { 0 } else { HARD_ONLY },
            interval_ns: burst.interval.0 as u64,
            count: burst.count,
            records: burst.records,
            cpu: burst.cpu.map_or(ANY_CPU, |cpu| cpu.0),
            hard_spin_ns: burst.handler.0 as u32,
            thread_spin_ns: 0,
            hpet_fd: hpet.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            reserved: [0; 7],
        };
        // SAFETY: the descriptor is open; the request reads the live `setup`.
        let chosen =
            super::check(unsafe { libc::ioctl(file.as_raw_fd(), SETUP, &raw const setup) });
        chosen.map_err(|error| match error.raw_os_error() {
            Some(libc::ENODEV) => format!("there is no {:?} to interrupt", burst.source),
            _ => format!("pulse refuses {burst:?}: {error}"),
        })?;
        Ok(Self { file, _hpet: hpet })
    }

    /// Begins the burst.
    pub fn start(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open; the request takes no argument.
        super::check(unsafe { libc::ioctl(self.file.as_raw_fd(), START) })?;
        Ok(())
    }

    /// Ends the burst, and wakes threads that wait for an interrupt.
    pub fn stop(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open; the request takes no argument.
        super::check(unsafe { libc::ioctl(self.file.as_raw_fd(), STOP) })?;
        Ok(())
    }

    /// Raises one interrupt.
    pub fn trigger(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open; the request takes no argument.
        super::check(unsafe { libc::ioctl(self.file.as_raw_fd(), TRIGGER) })?;
        Ok(())
    }

    /// Waits for the next interrupt; returns none if the burst is over.
    pub fn wait(&self) -> io::Result<Option<Interrupt>> {
        let mut record = RawRecord::default();
        let size = size_of::<RawRecord>();
        loop {
            // SAFETY: `record` is live, of that size, and any bytes make a valid one.
            let got = unsafe { libc::read(self.file.as_raw_fd(), (&raw mut record).cast(), size) };
            match super::check(got as libc::c_int) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(Interrupt {
            seq: record.seq,
            asserted: Nanos(record.asserted_ns as i64),
            hard: Nanos(record.hard_ns as i64),
            thread: Nanos(record.thread_ns as i64),
        }))
    }

    /// Returns the counts since the burst began.
    pub fn stats(&self) -> io::Result<Stats> {
        let mut stats = Stats::default();
        // SAFETY: the descriptor is open; the request writes the live `stats`.
        super::check(unsafe { libc::ioctl(self.file.as_raw_fd(), STATS, &raw mut stats) })?;
        Ok(stats)
    }
}

/// Borrows a comparator of the HPET; returns the descriptor that it is lent to.
fn hpet() -> Result<File, String> {
    File::open("/dev/hpet").map_err(|error| format!("no comparator of /dev/hpet: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_are_as_long_as_the_module_has_them() {
        assert_eq!(size_of::<Setup>(), 72);
        assert_eq!(size_of::<RawRecord>(), 32);
        assert_eq!(size_of::<Stats>(), 96);
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let burst = Burst {
            source: Source::Edu,
            interval: Nanos::ZERO,
            count: 1,
            records: 1,
            cpu: None,
            threaded: true,
            handler: Nanos::ZERO,
        };
        let error = Pulse::open(Path::new("/dev/no-pulse"), &burst).unwrap_err();
        assert_eq!(error.missing_module(), Some("pulse"), "{error}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's tracer `hwlat`: a thread of the kernel reads the clock with interrupts off, on
//! one CPU after the other. A gap between two readings is due to the hardware, its firmware or a
//! hypervisor (`Documentation/trace/hwlat_detector.rst`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::num::NonZeroU32;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use punctual_formats::hwlat::{self as format, Gap};
use punctual_model::{CpuId, Fact, Nanos, Reason};

use crate::dma_latency::DmaLatency;
use crate::status_page;
use crate::sys::time::now;
use crate::tracer::tracefs::{self, Tracefs};

/// The instance's name.
const INSTANCE: &str = "punctual-hwlat";

/// The time between two looks at the tracer's notes.
const PACE: Duration = Duration::from_millis(100);

/// The way to look for gaps; times in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// The threshold above which a gap is noted.
    pub threshold_us: u64,
    /// The time from the start of one look to that of the next.
    pub window_us: u64,
    /// The part of a window that is spent looking, with interrupts off.
    pub width_us: u64,
    /// The CPUs to look on, in turn; all of them if none are named.
    pub cpus: Option<&'a [CpuId]>,
}

/// Looks for half of the time, the kernel's own default, and notes each gap that it can see.
const EVERY_GAP: Look = Look {
    threshold_us: 1,
    window_us: 1_000_000,
    width_us: 500_000,
    cpus: None,
};

/// Returns the longest gap of so many seconds, in microseconds; 0 if none was longer than 1 µs. It
/// stops early if the target is asked to end.
pub fn longest_gap_us(seconds: NonZeroU32) -> Fact {
    let look = || -> Result<u64, Reason> {
        let mut detector = Detector::start(&EVERY_GAP)?;
        let until = now() + Nanos(i64::from(seconds.get()) * 1_000_000_000);
        let mut longest = 0;
        let mut is_over = false;
        while !is_over {
            thread::sleep(PACE);
            is_over = now() >= until || status_page::is_stop_requested();
            let gaps = detector.take()?;
            longest = gaps.iter().map(Gap::largest_us).fold(longest, u64::max);
        }
        Ok(longest)
    };
    look().into()
}

/// The running tracer, in a trace instance of its own; when dropped, it leaves no trace.
#[derive(Debug)]
pub struct Detector {
    tracefs: Tracefs,
    instance: PathBuf,
    /// Previous values of settings that all instances share.
    before: Vec<(PathBuf, String)>,
    /// The pipe of its notes, which reading removes.
    pipe: Option<File>,
    /// Notes whose line is not complete yet.
    unread: Vec<u8>,
    _held: Option<DmaLatency>,
}

impl Detector {
    /// Begins to look; needs root.
    pub fn start(look: &Look) -> Result<Self, Reason> {
        let tracefs = Tracefs::reach()?;
        let known = read(&tracefs.path("available_tracers"))?;
        if !known.split_whitespace().any(|one| one == "hwlat") {
            return Err(
                "the kernel has no tracer hwlat (CONFIG_HWLAT_TRACER is not set); `punctual run \
                 --bench host --probe noise` finds gaps without it"
                    .into(),
            );
        }
        let instance = tracefs.path("instances").join(INSTANCE);
        // One that was killed has left it.
        _ = fs::remove_dir(&instance);
        let made = fs::create_dir(&instance);
        made.map_err(|error| tracefs::refused("an instance of the kernel's tracer", &error))?;
        let mut detector = Self {
            pipe: None,
            unread: Vec::new(),
            tracefs,
            instance,
            before: Vec::new(),
            _held: DmaLatency::hold(0).ok(),
        };
        detector.set_shared("tracing_thresh", look.threshold_us)?;
        // The kernel refuses a width above the window, at whichever moment.
        detector.set_shared("hwlat_detector/width", 1)?;
        detector.set_shared("hwlat_detector/window", look.window_us)?;
        detector.set_shared("hwlat_detector/width", look.width_us)?;
        let set = |name: &str, word: &str| tracefs::write(&detector.instance.join(name), word);
        if let Some(cpus) = look.cpus {
            set("tracing_cpumask", &mask(cpus))?;
        }
        set("current_tracer", "hwlat")?;
        set("tracing_on", "1")?;
        // Last: while this is open, the kernel refuses another tracer.
        let pipe = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(detector.instance.join("trace_pipe"));
        detector.pipe = Some(pipe.map_err(|error| tracefs::refused("trace_pipe", &error))?);
        Ok(detector)
    }

    /// Changes a setting that all instances share, and keeps its previous value.
    fn set_shared(&mut self, name: &str, value: u64) -> Result<(), Reason> {
        let path = self.tracefs.path(name);
        let before = read(&path)?;
        if !self.before.iter().any(|(known, _)| *known == path) {
            self.before.push((path.clone(), before.trim().to_owned()));
        }
        tracefs::write(&path, &value.to_string())
    }

    /// Returns the notes since the last look; each line is returned once.
    pub fn take(&mut self) -> Result<Vec<Gap>, Reason> {
        let mut part = [0; 4096];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut part) {
                Ok(0) => break,
                Ok(length) => self.unread.extend_from_slice(&part[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Reason::unreadable("trace_pipe", error)),
            }
        }
        let whole = self.unread.iter().rposition(|byte| *byte == b'\n');
        let lines: Vec<u8> = self
            .unread
            .drain(..whole.map_or(0, |end| end + 1))
            .collect();
        let lines = String::from_utf8_lossy(&lines);
        Ok(format::read(&lines).map_err(|why| format!("trace_pipe: {why}"))?)
    }
}

impl Drop for Detector {
    fn drop(&mut self) {
        self.pipe = None;
        _ = tracefs::write(&self.instance.join("current_tracer"), "nop");
        // The width first: it may be above what the window was.
        let width = |(path, _): &&(PathBuf, String)| path.ends_with("hwlat_detector/width");
        if let Some((path, _)) = self.before.iter().find(width) {
            _ = tracefs::write(path, "1");
        }
        for (path, value) in self.before.iter().filter(|one| !width(one)) {
            _ = tracefs::write(path, value);
        }
        for (path, value) in self.before.iter().filter(width) {
            _ = tracefs::write(path, value);
        }
        _ = fs::remove_dir(&self.instance);
    }
}

fn read(path: &Path) -> Result<String, Reason> {
    let read = fs::read_to_string(path);
    read.map_err(|error| Reason::unreadable(&path.display().to_string(), error))
}

/// Formats CPUs as a mask: hexadecimal digits, in groups of eight.
fn mask(cpus: &[CpuId]) -> String {
    let groups = cpus.iter().map(|cpu| cpu.0 / 32).max().unwrap_or(0);
    let group = |number: u32| {
        let own = cpus.iter().filter(|cpu| cpu.0 / 32 == number);
        let bits = own.fold(0_u32, |bits, cpu| bits | 1 << (cpu.0 % 32));
        format!("{bits:08x}")
    };
    let all: Vec<String> = (0..=groups).rev().map(group).collect();
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_a_mask() {
        assert_eq!(mask(&[CpuId(0), CpuId(3)]), "00000009");
        assert_eq!(mask(&[CpuId(1), CpuId(33)]), "00000002,00000002");
    }
}

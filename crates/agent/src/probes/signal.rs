// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `signal`: the time that a signal travels between a program and a driver.
//!
//! This is the measurement of OSADL's `sendme` with the driver `backfire`: a thread writes the
//! number of a signal to `/dev/backfire`, which sends it that signal at once and reports
//! when. `to` is the way from the program to that moment, `from` the way back from there
//! to the program's signal handler.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use punctual_model::probe::{ProbeInfo, Shape, View, Watched};
use punctual_model::recording::KEEP_MOST;
use punctual_model::{CpuId, Nanos, Reason, Recorder, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::rt::{self, Faults, Settings};
use crate::sink::Sink;
use crate::stall::{self, Stall};
use crate::status_page::SeenRecorder;
use crate::sys::marker;
use crate::sys::signal::{NOTED, Noted};
use crate::sys::time::{now, sleep_until};
use crate::threads;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "signal",
    summary: "signal travel (/dev/backfire): user write to driver, driver to signal handler",
    parse: |table| parameters::<Signal>(table, Signal::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Latency, "signal travel"),
    scope: Ok(Watched {
        stages: &[&["to", "from"]],
        ..Watched::LATENESS
    }),
};

const DEVICE: &str = "/dev/backfire";
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);
/// The time from the planned wake-up to the start of a sample that is to be stalled. The thread
/// has certainly woken by then: the moment is exact to one reading of the clock.
const SPIN: Nanos = Nanos::from_micros(200);
/// The time from the start of its sample to a stall's timer interrupt: within the write.
const STALL_OFFSET: Nanos = Nanos(200);

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Signal {
    /// The number of signals.
    samples: u64,
    /// The time between two signals.
    interval_us: u32,
    /// The thread's `SCHED_FIFO` priority.
    priority: u8,
    /// The CPU that it is bound to.
    cpu: CpuId,
    /// The number of first signals that are not counted.
    warmup: u32,
    /// The number of samples that are kept raw.
    keep: u32,
    /// A stall that falls into one sample.
    stall: Option<Stall>,
}

impl Default for Signal {
    fn default() -> Self {
        Self {
            samples: 10_000,
            interval_us: 997,
            priority: 80,
            cpu: CpuId(0),
            warmup: 10,
            keep: 1_000_000,
            stall: None,
        }
    }
}

/// One signal's times.
struct Trip {
    written: Nanos,
    sent: Nanos,
    handled: Nanos,
}

impl Signal {
    fn check(&self) -> Result<(), String> {
        within("samples", self.samples, 1, 1_000_000_000_000)?;
        within("interval_us", self.interval_us, 50, 10_000_000)?;
        within("priority", self.priority, 1, 99)?;
        within("keep", self.keep, 0, KEEP_MOST)?;
        let Some(stall) = self.stall else {
            return Ok(());
        };
        // The warm-up stays clear of what is done for the stalled one.
        within("interval_us", self.interval_us, 500, 10_000_000)?;
        stall.check(self.samples.min(self.keep.into()))
    }

    fn interval(&self) -> Nanos {
        Nanos::from_micros(self.interval_us.into())
    }

    /// Runs the thread for its whole life.
    fn measure(&self, phase: Nanos) -> Result<[Recording; 2], Reason> {
        let kept = self.samples.min(self.keep.into()) as usize;
        let mut to = Recorder::new(kept);
        let mut from = SeenRecorder::new(kept, self.samples);
        let mut settings = rt::prepare_thread(self.cpu, self.priority)?;
        let backfire = Backfire::open()?;
        let stall = self.stall.map(Stall::open).transpose()?;
        let failed = |error| format!("{DEVICE}: {error}");

        let first = now() + self.interval() + phase + stall::ARMING;
        let due = first + self.interval() * self.warmup.into();
        let mut stalled = None;
        if let Some(device) = &stall {
            let moment = due + self.interval() * device.sample() as i64 + SPIN;
            device.arm(moment, STALL_OFFSET)?;
            stalled = Some((device.sample(), moment));
        }
        for period in 0..self.warmup {
            sleep_until(first + self.interval() * period.into());
            backfire.trip().map_err(failed)?;
        }
        let range = (due, self.interval(), self.samples);
        let faults = Faults::of_thread();
        sample((&mut to, &mut from), &backfire, range, stalled).map_err(failed)?;
        settings.extend(faults.until_now().facts());

        let to = to.finish(RecordingKey::of_variant("to"));
        let from = from.finish(RecordingKey::of_variant("from"));
        let mut recordings = [to, from].map(|recording| self.described(recording, &settings));
        if let (Some(device), Some((_, moment))) = (&stall, stalled) {
            for recording in &mut recordings {
                device.tell(moment, moment - SPIN - due, recording)?;
            }
        }
        Ok(recordings)
    }

    fn described(&self, mut recording: Recording, settings: &Settings) -> Recording {
        recording.interval = Some(self.interval());
        recording.warmup = self.warmup.into();
        recording.settings.clone_from(settings);
        let name = NOTED.to_string().into();
        recording.settings.insert("signal".into(), name);
        recording
    }
}

impl Measurement for Signal {
    fn nominal(&self) -> Nanos {
        self.interval() * (self.samples as i64 + i64::from(self.warmup))
    }

    fn period(&self) -> Option<Nanos> {
        Some(self.interval())
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(LONGEST_PHASE);
        threads::alone(|| self.measure(phase)).map(Vec::from)
    }
}

/// The driver, and the signal that it is to send.
pub(crate) struct Backfire {
    file: File,
    number: String,
    noted: Noted,
}

impl Backfire {
    pub(crate) fn open() -> Result<Self, Reason> {
        let file = File::options().read(true).write(true).open(DEVICE);
        Ok(Self {
            file: file.map_err(|error| Reason::no_device(DEVICE, "backfire", error))?,
            number: NOTED.to_string(),
            noted: Noted::begin().map_err(|error| format!("sigaction: {error}"))?,
        })
    }

    /// Sends one signal there and back. The handler runs before the write returns.
    fn trip(&self) -> io::Result<Trip> {
        let unsent = || io::Error::from(io::ErrorKind::TimedOut);
        let written = now();
        (&self.file).write_all(self.number.as_bytes())?;
        let handled = self.noted.take().ok_or_else(unsent)?;
        let mut text = [0; 64];
        let length = self.file.read_at(&mut text, 0)?;
        let sent = second_line(&text[..length]).ok_or_else(unsent)?;
        Ok(Trip {
            written,
            sent,
            handled,
        })
    }
}

/// Returns the number in the second line: `CLOCK_MONOTONIC`.
fn second_line(text: &[u8]) -> Option<Nanos> {
    let line = text.split(|byte| *byte == b'\n').nth(1)?;
    std::str::from_utf8(line).ok()?.parse().ok().map(Nanos)
}

/// Measures. A period that is over when a signal is back counts as missed.
#[inline(never)]
pub(crate) fn sample(
    (to, from): (&mut impl Sink, &mut impl Sink),
    backfire: &Backfire,
    (first, interval, samples): (Nanos, Nanos, u64),
    stalled: Option<(u64, Nanos)>,
) -> io::Result<()> {
    let mut due = first;
    for number in 0..samples {
        sleep_until(due);
        if let Some((_, moment)) = stalled.filter(|(sample, _)| *sample == number) {
            while now() < moment {}
        }
        marker::armed();
        let trip = backfire.trip()?;
        marker::taken();
        to.record(due - first, trip.sent - trip.written);
        from.record(due - first, trip.handled - trip.sent);
        let missed = (trip.handled - due).0 / interval.0;
        to.miss(missed as u64);
        from.miss(missed as u64);
        due += interval * (missed + 1);
        if to.is_over() || from.is_over() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::Phases;

    #[test]
    fn the_second_line_is_the_monotonic_time() {
        let text = b"1767225600,000123\n4711000815\n";
        assert_eq!(second_line(text), Some(Nanos(4_711_000_815)));
        assert_eq!(second_line(b"0,000000\n"), None);
    }

    #[test]
    fn without_the_driver_the_reason_names_it() {
        if std::path::Path::new(DEVICE).exists() {
            return punctual_skip::skip("needs a machine without /dev/backfire");
        }
        let phases = Phases::new(1, 0);
        let reason = Signal::default().run(&mut Context::new(phases));
        let reason = reason.unwrap_err();
        if reason.missing_module() != Some("backfire") {
            crate::threads::measured::<()>(Err(reason));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `realfeel`: the jitter of a periodic interrupt as seen from user space.
//!
//! This is the measurement of Andrew Morton's program of this name: a thread reads `/dev/rtc`,
//! and the jitter is the time between two reads that returned, minus the nominal period. It
//! is signed, and is not a lateness: one late interrupt makes two jitters, a long one and, as the
//! next is in time again, a short one.

use std::path::Path;

use punctual_model::probe::{ProbeInfo, Shape, View, Watched};
use punctual_model::recording::KEEP_MOST;
use punctual_model::{CpuId, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::rt::{self, Faults, Settings};
use crate::sink::Sink;
use crate::status_page::SeenRecorder;
use crate::sys::periodic::Periodic;
use crate::sys::time::{self, now};
use crate::sys::{marker, sched};
use crate::threads;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "realfeel",
    summary: "jitter of a periodic interrupt (/dev/rtc): interval minus nominal, signed",
    parse: |table| parameters::<Realfeel>(table, Realfeel::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Jitter, "jitter of a periodic interrupt"),
    scope: Ok(Watched::LATENESS),
};

/// The paths that the real-time clock may have.
const DEVICES: [&str; 2] = ["/dev/rtc0", "/dev/rtc"];
/// The time after which an interrupt that has not come will not come.
const PATIENCE: Nanos = Nanos::from_millis(1_000);
/// The time that is added to twice the duration of the samples if no duration is given.
const SPARE: Nanos = Nanos::from_millis(10_000);

/// The source of interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// The real-time clock if there is one, else a timerfd.
    Auto,
    /// The real-time clock.
    Rtc,
    /// A timer of the kernel.
    Timerfd,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Realfeel {
    /// The source of interrupts.
    pub(crate) source: Source,
    /// The interrupts' frequency, a power of two as the real-time clock requires.
    pub(crate) hertz: u32,
    /// The number of intervals that are measured, unless the time is over first.
    pub(crate) samples: u64,
    /// The longest time that it may take; by default, twice the time of the samples, plus 10 s.
    pub(crate) duration_ms: Option<u32>,
    /// The reader's `SCHED_FIFO` priority.
    pub(crate) priority: u8,
    /// The CPU that it is bound to.
    pub(crate) cpu: CpuId,
    /// The number of first intervals that are not counted.
    pub(crate) warmup: u32,
    /// The number of samples that are kept raw.
    pub(crate) keep: u32,
}

impl Default for Realfeel {
    fn default() -> Self {
        Self {
            source: Source::Auto,
            hertz: 2_048,
            samples: 10_000,
            duration_ms: None,
            priority: 99,
            cpu: CpuId(0),
            warmup: 10,
            keep: 1_000_000,
        }
    }
}

/// Facts about the interrupts that were read.
pub(crate) struct Measured {
    /// The source of the interrupts.
    pub source: &'static str,
    /// How it was measured, as read back.
    pub settings: Settings,
}

impl Realfeel {
    pub(crate) fn check(&self) -> Result<(), String> {
        within("hertz", self.hertz, 64, 8_192)?;
        if !self.hertz.is_power_of_two() {
            return Err(format!(
                "hertz = {}, but it must be a power of two, as of a real-time clock",
                self.hertz
            ));
        }
        within("samples", self.samples, 1, 1_000_000_000_000)?;
        if let Some(duration_ms) = self.duration_ms {
            within("duration_ms", duration_ms, 100, 86_400_000)?;
        }
        within("priority", self.priority, 1, 99)?;
        within("warmup", self.warmup, 0, 1_000_000)?;
        within("keep", self.keep, 0, KEEP_MOST)
    }

    /// Returns the nominal period, rounded down as the kernel does.
    fn period(&self) -> Nanos {
        Nanos(1_000_000_000 / i64::from(self.hertz))
    }

    /// Returns the time that its intervals take if no interrupt is missed.
    fn whole(&self) -> Nanos {
        let all = i64::try_from(self.samples + u64::from(self.warmup)).unwrap_or(i64::MAX);
        Nanos(self.period().0.saturating_mul(all))
    }

    /// Returns the longest time that it may take.
    fn duration(&self) -> Nanos {
        let follows = Nanos(self.whole().0.saturating_mul(2)) + SPARE;
        self.duration_ms.map_or(follows, |duration_ms| {
            Nanos::from_millis(duration_ms.into())
        })
    }

    /// Switches the interrupts on. Also returns their source, and why it is not the clock.
    fn switch_on(&self) -> Result<(Periodic, &'static str, Option<Reason>), Reason> {
        let why = match self.source {
            Source::Timerfd => None,
            Source::Auto | Source::Rtc => match self.clock() {
                Ok(clock) => return Ok((clock, "rtc", None)),
                Err(why) if self.source == Source::Rtc => return Err(why),
                Err(why) => Some(why),
            },
        };
        let timer =
            Periodic::timerfd(self.period()).map_err(|error| format!("timerfd: {error}"))?;
        Ok((timer, "timerfd", why))
    }

    /// Opens the clock. It counts only if its interrupt comes: some accept all requests in vain.
    fn clock(&self) -> Result<Periodic, Reason> {
        let exists = |device: &&&str| Path::new(device).exists();
        let device = DEVICES.iter().find(exists);
        let device = device.ok_or("there is no /dev/rtc")?;
        let failed = |error| format!("{device} at {} Hz: {error}", self.hertz);
        let clock = Periodic::rtc(Path::new(device), self.hertz).map_err(failed)?;
        if clock.comes_within(PATIENCE).map_err(failed)? {
            return Ok(clock);
        }
        Err(format!("{device}: no periodic interrupt came in {PATIENCE}").into())
    }

    /// Switches the interrupts on, has them read by another thread, and switches them off.
    ///
    /// The calling thread must have no real-time priority: [`Periodic`] says why.
    pub(crate) fn measure_into<T: Sink + Send>(
        &self,
        phase: Nanos,
        sink: T,
    ) -> Result<(T, Measured), Reason> {
        let (policy, _) = sched::policy().map_err(|error| format!("sched_getparam: {error}"))?;
        if policy != "SCHED_OTHER" {
            return Err(format!("the thread that starts the interrupts is {policy}").into());
        }
        time::sleep(phase);
        let (interrupts, source, why) = self.switch_on()?;
        let (sink, ended_by, mut settings) = threads::alone(|| self.read(&interrupts, sink))?;
        drop(interrupts);
        let missing = why.map(|why| ("no_rtc".into(), why.into()));
        settings.extend(missing);
        settings.insert("ended_by".into(), ended_by.into());
        settings.insert("switched_on_by".into(), policy.into());
        Ok((sink, Measured { source, settings }))
    }

    /// Takes a whole recording.
    fn record(&self, phase: Nanos) -> Result<Recording, Reason> {
        let kept = self.samples.min(self.keep.into()) as usize;
        let recorder = SeenRecorder::new(kept, self.samples);
        let (recorder, measured) = self.measure_into(phase, recorder)?;
        let variant = format!("{} {} Hz", measured.source, self.hertz);
        let mut recording = recorder.finish(RecordingKey::of_variant(&variant));
        recording.interval = Some(self.period());
        recording.warmup = self.warmup.into();
        recording.settings = measured.settings;
        let asked = self.samples.into();
        recording.settings.insert("samples_asked".into(), asked);
        Ok(recording)
    }

    /// Runs the reading thread for its whole life.
    fn read<T: Sink>(
        &self,
        interrupts: &Periodic,
        mut sink: T,
    ) -> Result<(T, &'static str, Settings), Reason> {
        let mut settings = rt::prepare_thread(self.cpu, self.priority)?;
        // What came before, while this thread was made ready, is read and forgotten.
        for _ in 0..=self.warmup {
            interrupts
                .wait()
                .map_err(|error| format!("read: {error}"))?;
        }
        let bounds = (self.samples, self.duration());
        let faults = Faults::of_thread();
        let ended_by = sample(&mut sink, interrupts, self.period(), bounds)
            .map_err(|error| format!("read: {error}"))?;
        settings.extend(faults.until_now().facts());
        Ok((sink, ended_by, settings))
    }
}

/// Measures: reads, and takes the time since the previous read returned.
///
/// If a read reports several interrupts, those before the last are counted as missed;
/// the interval is taken as it is, as the original does.
#[inline(never)]
fn sample(
    sink: &mut impl Sink,
    interrupts: &Periodic,
    period: Nanos,
    (samples, duration): (u64, Nanos),
) -> std::io::Result<&'static str> {
    sink.miss(interrupts.wait()?.saturating_sub(1));
    let first = now();
    let mut before = first;
    for _ in 0..samples {
        marker::armed();
        let came = interrupts.wait()?;
        let stamp = now();
        marker::taken();
        sink.record(before - first, stamp - before - period);
        sink.miss(came.saturating_sub(1));
        before = stamp;
        if sink.is_over() {
            return Ok("request");
        }
        if stamp - first >= duration {
            return Ok("duration");
        }
    }
    Ok("samples")
}

impl Measurement for Realfeel {
    fn nominal(&self) -> Nanos {
        self.whole().min(self.duration())
    }

    fn period(&self) -> Option<Nanos> {
        Some(Self::period(self))
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(Nanos::from_millis(4));
        // A new thread inherits no real-time priority.
        let recording = threads::alone(|| self.record(phase))?;
        Ok(vec![recording])
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::Recorder;

    use super::*;

    const PERIOD: Nanos = Nanos::from_millis(2);

    fn timerfd(bounds: (u64, Nanos)) -> (Recording, &'static str) {
        let timer = Periodic::timerfd(PERIOD).unwrap();
        let mut recorder = Recorder::new(100);
        let ended_by = sample(&mut recorder, &timer, PERIOD, bounds).unwrap();
        (
            recorder.finish(RecordingKey::new("realfeel", "idle", "timerfd")),
            ended_by,
        )
    }

    #[test]
    fn jitters_add_up_to_what_the_intervals_are_off_the_nominal_ones() {
        let began = now();
        let (recording, ended_by) = timerfd((30, Nanos::from_millis(60_000)));
        assert_eq!((recording.count, ended_by), (30, "samples"));
        let last = recording.samples.iter().last().unwrap();
        let intervals = recording.sum + PERIOD * 30;
        assert_eq!(last.at + last.value + PERIOD, intervals);
        // No interrupt comes early, the first one neither.
        assert!(now() - began >= PERIOD * (31 + recording.missed as i64));
    }

    #[test]
    fn time_bounds_it_too() {
        let (recording, ended_by) = timerfd((1_000_000, Nanos::from_millis(20)));
        assert_eq!(ended_by, "duration");
        assert!((1..1_000).contains(&recording.count), "{}", recording.count);
    }

    #[test]
    fn the_measuring_loop_allocates_nothing() {
        let timer = Periodic::timerfd(PERIOD).unwrap();
        let mut recorder = Recorder::new(5);
        let before = crate::sys::counting_allocator::allocations();
        sample(&mut recorder, &timer, PERIOD, (10, PERIOD * 1_000)).unwrap();
        assert_eq!(crate::sys::counting_allocator::allocations(), before);
    }

    #[test]
    fn frequencies_are_those_of_a_real_time_clock() {
        let with = |hertz| Realfeel {
            hertz,
            ..Realfeel::default()
        };
        assert!(with(64).check().is_ok() && with(8_192).check().is_ok());
        assert!(with(1_000).check().unwrap_err().contains("power of two"));
        assert!(with(32).check().is_err() && with(16_384).check().is_err());
        assert_eq!(with(2_048).period(), Nanos(488_281));
    }

    #[test]
    fn the_duration_follows_the_samples_unless_it_is_given() {
        let hour = Realfeel {
            hertz: 8_192,
            samples: 8_192 * 3_600,
            ..Realfeel::default()
        };
        assert!(hour.nominal() > Nanos::from_millis(3_599_000));
        assert!(hour.duration() > hour.nominal() * 2);
        let capped = Realfeel {
            duration_ms: Some(1_000),
            ..hour
        };
        assert_eq!(capped.nominal(), Nanos::from_millis(1_000));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stall among the samples: a delay of known length, with which a probe's result is known.
//!
//! `/dev/stall` holds the CPU at a moment that a probe names beforehand, so that it falls
//! into one sample. The device's report of the stall's end, and the way that the
//! probe goes in any case, give the value that the sample must have.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use punctual_model::recording::Sample;
use punctual_model::{Finding, Nanos, Reason, Recording};
use serde::Deserialize;

use crate::sys::time;

const DEVICE: &str = "/dev/stall";

/// The time that arming may take: the device starts a thread.
pub const ARMING: Nanos = Nanos::from_millis(10);

/// The cause that holds the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    IrqsOff,
    PreemptOff,
    Softirq,
    RawSpinlock,
    Spinlock,
    Mutex,
    RtMutex,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::IrqsOff => "irqs-off",
            Self::PreemptOff => "preempt-off",
            Self::Softirq => "softirq",
            Self::RawSpinlock => "raw-spinlock",
            Self::Spinlock => "spinlock",
            Self::Mutex => "mutex",
            Self::RtMutex => "rt-mutex",
        }
    }
}

/// A probe's parameter `stall`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// The cause that holds the CPU.
    kind: Kind,
    /// The length of the stall, in microseconds.
    us: u32,
    /// The number of the sample that it falls into.
    pub sample: u64,
    /// The time at which it is to begin, counted from when that sample is due; each probe
    /// has a default of its own.
    offset_ns: Option<i64>,
}

impl Stall {
    /// Checks that there can be such a stall among the first `kept` samples, which are kept raw.
    pub fn check(&self, kept: u64) -> Result<(), String> {
        super::probes::within("stall.us", self.us, 1, 1_000_000)?;
        super::probes::within("stall.sample", self.sample, 0, kept.max(1) - 1)?;
        let offset = self.offset_ns.unwrap_or_default();
        super::probes::within("stall.offset_ns", offset, -1_000_000, 4_000_000)
    }

    /// Opens the device; an error is the reason why there will be no stall.
    pub fn open(self) -> Result<Device, Reason> {
        let file = File::options().read(true).write(true).open(DEVICE);
        let file = file.map_err(|error| Reason::no_device(DEVICE, "stall", error))?;
        Ok(Device { stall: self, file })
    }
}

/// `/dev/stall`, and the request for it. Closing it disarms it.
#[derive(Debug)]
pub struct Device {
    stall: Stall,
    file: File,
}

impl Device {
    /// Returns the number of the sample that the stall falls into.
    pub fn sample(&self) -> u64 {
        self.stall.sample
    }

    /// Arms it for the CPU that the calling thread is on; `offset` is the probe's own.
    pub fn arm(&self, due: Nanos, offset: Nanos) -> Result<(), Reason> {
        let offset = self.stall.offset_ns.map_or(offset, Nanos);
        let Stall { kind, us, .. } = self.stall;
        let text = format!("{} {us} at={}", kind.name(), (due + offset).0);
        let armed = (&self.file).write_all(text.as_bytes());
        armed.map_err(|error| format!("{DEVICE} refuses \"{text}\": {error}").into())
    }

    /// Returns when the stall began and ended.
    fn span(&self) -> Result<(Nanos, Nanos), Reason> {
        // One that could not delay the probe may have been delayed by it.
        time::sleep(Nanos::from_micros(i64::from(self.stall.us) * 2));
        let mut text = [0; 128];
        let length = self.file.read_at(&mut text, 0);
        let length = length.map_err(|error| format!("{DEVICE}: {error}"))?;
        let text = String::from_utf8_lossy(&text[..length]);
        let never = || format!("the stall did not happen: {DEVICE} says {text:?}").into();
        parse(&text).ok_or_else(never)
    }

    /// Describes the stall in the recording, counted from when the sample was due that it was meant
    /// for, and that sample. `due` is when the sample should have been due, and `at` is
    /// the same time in the recording; the sample closest to it is the one.
    pub fn tell(&self, due: Nanos, at: Nanos, recording: &mut Recording) -> Result<(), Reason> {
        let (start, end) = self.span()?;
        let distance = |at_found: Nanos| (at_found - at).0.abs();
        let samples = recording.samples.iter();
        let found = samples.min_by_key(|sample| distance(sample.at));
        let Some(sample) = found else {
            return Err("the stalled sample was not kept".into());
        };
        let due = due + (sample.at - at);
        self.note(sample, (start, end), due, recording);
        Ok(())
    }

    fn note(&self, sample: Sample, span: (Nanos, Nanos), due: Nanos, recording: &mut Recording) {
        let (start, end) = span;
        let length = Nanos::from_micros(self.stall.us.into());
        let findings = [
            ("stall_kind", Finding::Text(self.stall.kind.name().into())),
            ("stall", Finding::Nanos(length)),
            ("stall_start", Finding::Nanos(start - due)),
            ("stall_end", Finding::Nanos(end - due)),
            ("stalled_sample", Finding::Count(sample.seq)),
            ("stalled_value", Finding::Nanos(sample.value)),
        ];
        let findings = findings.map(|(name, finding)| (name.into(), finding));
        recording.findings.extend(findings);
    }
}

/// A stall that falls into a path of a probe whose threads measure in rounds, each of which
/// begins after a pause. It is armed in the pause before its round.
#[derive(Debug)]
pub struct Within {
    device: Device,
    /// The number of its round.
    round: u64,
    /// The time from the round's start to the stall, unless the suite says otherwise.
    offset: Nanos,
    armed: Mutex<Result<(), Reason>>,
}

impl Within {
    /// Creates the stall that a suite wants, if it wants one; `round` returns the round that
    /// contains the sample with a given number.
    pub fn of(
        stall: Option<Stall>,
        round: impl FnOnce(u64) -> u64,
        offset: Nanos,
    ) -> Result<Option<Self>, Reason> {
        let Some(stall) = stall else {
            return Ok(None);
        };
        let armed = Mutex::new(Err("the stalled round was not begun".into()));
        Ok(Some(Self {
            device: stall.open()?,
            round: round(stall.sample),
            offset,
            armed,
        }))
    }

    /// Arms the stall for a round that is to begin at `begin`.
    pub fn arm(&self, begin: Nanos) {
        let armed = self.device.arm(begin, self.offset);
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = armed;
    }

    fn tell(&self, first: Nanos, recordings: &mut [Recording]) -> Result<(), Reason> {
        let armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        armed.clone()?;
        let (start, end) = self.device.span()?;
        for recording in recordings {
            let holds = |sample: &Sample| {
                let begin = first + sample.at;
                begin <= start && start < begin + sample.value
            };
            let found = recording.samples.iter().find(holds);
            if let Some(sample) = found {
                self.device
                    .note(sample, (start, end), first + sample.at, recording);
                return Ok(());
            }
        }
        Err(format!(
            "the stall fell into no measured path, {} after the first: set stall.offset_ns",
            start - first
        )
        .into())
    }
}

/// Describes the stall in the recording into whose sample it fell, counted from that sample's
/// start, and the sample; does nothing if there was no stall. `first` is when the
/// recordings began, if anything was recorded.
pub fn tell(
    stall: Option<Within>,
    first: Option<Nanos>,
    recordings: &mut [Recording],
) -> Result<(), Reason> {
    match (stall, first) {
        (Some(stall), Some(first)) => stall.tell(first, recordings),
        _ => Ok(()),
    }
}

/// Pauses before the round of that number, and arms the stall in the pause if it is to fall into
/// that round.
pub fn pause(stall: Option<&Within>, round: u64, pause: Nanos) {
    match stall.filter(|stall| stall.round == round) {
        None => time::sleep(pause),
        Some(stall) => {
            let begin = time::now() + ARMING;
            stall.arm(begin);
            time::sleep_until(begin);
        }
    }
}

/// Parses start and end, if there was exactly one stall.
fn parse(text: &str) -> Option<(Nanos, Nanos)> {
    let field = |name: &str| -> Option<i64> {
        let mut words = text.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.parse().ok())
    };
    let once = field("done=")? == 1;
    once.then_some((Nanos(field("start=")?), Nanos(field("end=")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_that_did_not_happen_has_no_times() {
        let span = parse("done=1 skipped=0 start=5 end=505\n");
        assert_eq!(span, Some((Nanos(5), Nanos(505))));
        assert_eq!(parse("done=0 skipped=0 start=0 end=0\n"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn kinds_are_called_as_the_device_calls_them() {
        for name in ["irqs-off", "raw-spinlock", "rt-mutex"] {
            let text = format!("kind = \"{name}\"\nus = 500\nsample = 9");
            let stall: Stall = toml::from_str(&text).unwrap();
            assert_eq!(stall.kind.name(), name);
            assert!(stall.check(10).is_ok());
            assert!(stall.check(9).unwrap_err().contains("from 0 to 8"));
        }
    }
}

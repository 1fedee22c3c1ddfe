// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `clock`: the cost and the grain of taking a time stamp, the bias of every other probe.

use punctual_model::probe::{ProbeInfo, Shape, View};
use punctual_model::recording::{KEEP_MOST, TRACING_OVERHEAD};
use punctual_model::{CpuId, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::event_log::EventLog;
use crate::rt::{self, Faults, Settings};
use crate::sink::Sink as _;
use crate::status_page::SeenRecorder;
use crate::sys::instructions;
use crate::sys::time::{self, now};
use crate::threads;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "clock",
    summary: "the cost of a time stamp: bare, with bookkeeping, and around known instructions",
    parse: |table| parameters::<Clock>(table, Clock::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Latency, "step between two readings of the clock"),
    scope: Err("is the clock read without a pause, and marks would be in each sample"),
};

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Clock {
    /// The number of differences between two reads, per variant.
    samples: u32,
    /// The thread's `SCHED_FIFO` priority.
    priority: u8,
    /// The CPU that the thread is bound to.
    cpu: CpuId,
    /// The number of samples that are kept raw.
    keep: u32,
}

/// The longest delay of a variant's start, so that it begins anywhere in a tick.
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);
/// The variant whose samples are known: a correction of them must leave 1,000 instructions.
const KNOWN: &str = "stamp, 1000 instructions";

/// The number of stamps and bare reads in a run, which bounds their memory.
const RUN: usize = 10_000;

impl Default for Clock {
    fn default() -> Self {
        Self {
            samples: 10_000,
            priority: 80,
            cpu: CpuId(0),
            keep: 1_000_000,
        }
    }
}

/// Takes the given number of samples; also returns the page faults between them.
type Body = fn(usize, SeenRecorder) -> (SeenRecorder, Faults);

impl Clock {
    fn check(&self) -> Result<(), String> {
        within("samples", self.samples, 1, 1_000_000_000)?;
        within("keep", self.keep, 0, KEEP_MOST)?;
        within("priority", self.priority, 1, 99)
    }

    /// Runs `body` on a thread that is prepared for measuring.
    fn on_prepared_thread(
        &self,
        phase: Nanos,
        body: Body,
    ) -> Result<(SeenRecorder, Settings), Reason> {
        let (cpu, priority, samples) = (self.cpu, self.priority, self.samples as usize);
        let kept = self.samples.min(self.keep) as usize;
        threads::alone(move || {
            let mut settings = rt::prepare_thread(cpu, priority)?;
            let recorder = SeenRecorder::new(kept, samples as u64);
            time::sleep(phase);
            let (recorder, faults) = body(samples, recorder);
            settings.extend(faults.facts());
            Ok((recorder, settings))
        })
    }
}

impl Measurement for Clock {
    fn nominal(&self) -> Nanos {
        Nanos::ZERO
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let mut measure = |variant, body| -> Result<Recording, Reason> {
            let phase = context.phases.below(LONGEST_PHASE);
            let (recorder, settings) = self.on_prepared_thread(phase, body)?;
            let mut recording = recorder.finish(RecordingKey::of_variant(variant));
            recording.settings = settings;
            Ok(recording)
        };
        let mut recordings = vec![
            measure("read", bare)?,
            measure("read+record", recorded)?,
            measure("stamp", |samples, recorder| {
                stamped(samples, recorder, || {})
            })?,
            measure(KNOWN, |samples, recorder| {
                stamped(samples, recorder, instructions::thousand)
            })?,
        ];
        // What is between the stamps of the last is known, and so is what they cost.
        let cost = recordings[2].min();
        let cost = cost.map(|cost| (TRACING_OVERHEAD.into(), cost.into()));
        recordings[3].settings.extend(cost);
        Ok(recordings)
    }
}

/// Reads the clock again and again; computes the differences only afterwards.
fn bare(samples: usize, mut recorder: SeenRecorder) -> (SeenRecorder, Faults) {
    let mut stamps = vec![Nanos(-1); samples.min(RUN) + 1];
    let mut first = None;
    let mut left = samples;
    let faults = Faults::of_thread();
    while left > 0 && !recorder.is_over() {
        let stamps = &mut stamps[..=left.min(RUN)];
        left -= stamps.len() - 1;
        for stamp in &mut *stamps {
            *stamp = now();
        }
        let first = *first.get_or_insert(stamps[0]);
        for pair in stamps.windows(2) {
            recorder.record(pair[0] - first, pair[1] - pair[0]);
        }
    }
    (recorder, faults.until_now())
}

/// Like `bare`, with the work that a probe does for each sample between two reads.
fn recorded(samples: usize, mut recorder: SeenRecorder) -> (SeenRecorder, Faults) {
    let faults = Faults::of_thread();
    let first = now();
    let mut before = first;
    for _ in 0..samples {
        let stamp = now();
        recorder.record(before - first, stamp - before);
        before = stamp;
        if recorder.is_over() {
            break;
        }
    }
    (recorder, faults.until_now())
}

/// Measures the content of a sample of probes whose threads take stamps: the way from one stamp to
/// the next, here with nothing but `between` before that.
#[inline(never)]
fn stamped(samples: usize, mut recorder: SeenRecorder, between: fn()) -> (SeenRecorder, Faults) {
    let (begin, mut faults) = (now(), Faults::default());
    let mut left = samples;
    while left > 0 && !recorder.is_over() {
        let run = left.min(RUN);
        left -= run;
        let stamps = EventLog::new(2 * run);
        let before = Faults::of_thread();
        for _ in 0..run {
            stamps.mark(0, 0);
            between();
            stamps.mark(1, 1);
        }
        faults = faults.and(before.until_now());
        for pair in stamps.finish().unwrap_or_default().chunks_exact(2) {
            recorder.record(pair[0].at - begin, pair[1].at - pair[0].at);
        }
    }
    (recorder, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_runs_backwards_and_every_read_counts() {
        let stamps = |samples, recorder| stamped(samples, recorder, instructions::thousand);
        for body in [bare, recorded, stamps] {
            // Of the bare reads more than one run.
            let (recorder, _) = body(RUN + 1, SeenRecorder::new(100, 0));
            let recording = recorder.finish(RecordingKey::new("clock", "idle", ""));
            assert_eq!((recording.count, recording.samples.len()), (10_001, 100));
            assert!(recording.min() >= Some(Nanos::ZERO));
        }
    }
}

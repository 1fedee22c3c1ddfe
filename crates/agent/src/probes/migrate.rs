// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `migrate`: the time that a thread takes to run on another CPU on request.
//!
//! It calls `sched_setaffinity(2)` on itself, with a CPU that it does not run on: the kernel hands
//! it over through the other CPU's `migration` thread, and the call returns there.

use punctual_model::probe::{ProbeInfo, Shape, View};
use punctual_model::{CpuId, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, each, parameters, within};
use crate::rt::{self, Faults};
use crate::sink::Sink;
use crate::status_page::SeenRecorder;
use crate::sys::sched;
use crate::sys::time::{now, sleep};
use crate::threads;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "migrate",
    summary: "from a thread's sched_setaffinity(2) to another CPU until it runs there",
    parse: |table| parameters::<Migrate>(table, Migrate::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Latency, "migration"),
    scope: Err("leads from one CPU to another"),
};

/// The thread's sleep before each sample: no multiple of a tick.
const PAUSE: Nanos = Nanos::from_micros(997);
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Migrate {
    /// The number of migrations that are measured of each pair; all are kept.
    samples: u64,
    /// The number of first migrations that are not counted.
    warmup: u32,
    /// The thread's `SCHED_FIFO` priority.
    priority: u8,
    /// The CPUs of origin and destination; if empty, the first to itself, to each other, and back.
    pairs: Vec<(CpuId, CpuId)>,
}

impl Default for Migrate {
    fn default() -> Self {
        Self {
            samples: 200,
            warmup: 5,
            priority: 80,
            pairs: vec![],
        }
    }
}

impl Migrate {
    fn check(&self) -> Result<(), String> {
        within("samples", self.samples, 1, 1_000_000)?;
        within("warmup", self.warmup, 0, 1_000_000)?;
        within("priority", self.priority, 1, 99)
    }

    fn all(&self) -> u64 {
        self.samples + u64::from(self.warmup)
    }

    /// Runs the thread for its whole life.
    fn measure(&self, (from, to): (CpuId, CpuId), phase: Nanos) -> Result<Recording, Reason> {
        let mut recorder = SeenRecorder::new(self.samples as usize, self.samples);
        let mut settings = rt::prepare_thread(from, self.priority)?;
        let faults = Faults::of_thread();
        sleep(PAUSE + phase);
        let mut first = None;
        for number in 0..self.all() {
            if recorder.is_over() {
                break;
            }
            rt::pin(from)?;
            sleep(PAUSE);
            let begin = now();
            let moved = sched::pin(to);
            let end = now();
            moved.map_err(|error| format!("cannot bind a thread to {to}: {error}"))?;
            let found = sched::current_cpu();
            if found != to {
                return Err(format!("asked for {to}, but the thread runs on {found}").into());
            }
            if number >= u64::from(self.warmup) {
                recorder.record(begin - *first.get_or_insert(begin), end - begin);
            }
        }
        settings.extend(faults.until_now().facts());
        settings.insert("affinity".into(), format!("{from}, {to}").into());
        let variant = format!("{from} to {to}");
        let mut recording = recorder.finish(RecordingKey::of_variant(variant));
        recording.warmup = self.warmup.into();
        recording.settings = settings;
        Ok(recording)
    }
}

impl Measurement for Migrate {
    fn nominal(&self) -> Nanos {
        let pairs = threads::pairs(&self.pairs).map_or(1, |pairs| pairs.len());
        PAUSE * (self.all() as i64 * pairs as i64)
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(LONGEST_PHASE);
        each(threads::pairs(&self.pairs)?, |pair| {
            threads::alone(|| self.measure(pair, phase))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::Phases;

    #[test]
    fn each_migration_is_a_sample_and_the_thread_is_where_it_asked_to_be() {
        let probe = Migrate {
            samples: 10,
            warmup: 2,
            ..Migrate::default()
        };
        let phases = Phases::new(1, 1);
        let measured = threads::measured(probe.run(&mut Context::new(phases)));
        let recordings = measured.unwrap_or_default();
        let cpus = sched::affinity().unwrap();
        assert!(recordings.is_empty() || recordings.len() == 2 * cpus.len() - 1);
        for recording in recordings {
            assert_eq!((recording.count, recording.warmup), (10, 2));
            assert!(recording.min() > Some(Nanos::ZERO));
        }
    }
}

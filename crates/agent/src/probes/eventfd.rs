// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `eventfd`: wake-up latency of a thread that reads an eventfd which another one writes.
//!
//! Two threads share a CPU. The reader has the higher priority and blocks in `read`; the
//! writer's `write` makes it ready, and it runs before that call returns. This is how
//! an event loop works: a worker thread hands over, and a loop in another thread goes on.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use punctual_model::probe::{ProbeInfo, Shape, View, Watched, Windows};
use punctual_model::{CpuId, Nanos, Reason, Recording, RecordingKey};
use rustix::event::{EventfdFlags, eventfd};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::event_log::{self, Event, EventLog};
use crate::stall::{self, Stall};
use crate::sys::time::sleep;
use crate::threads::{self, ThreadSpec};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "eventfd",
    summary: "wake-up latency of a SCHED_FIFO thread that reads an eventfd, from the write on",
    parse: |table| parameters::<Handover>(table, Handover::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Latency, "wake-up by an eventfd"),
    scope: Ok(Watched::handover(Windows::OneAfterTheOther)),
};

/// The writer's sleep before each sample: no multiple of a tick, and long enough that
/// neither real-time throttling nor the fair server finds anything to do.
const PAUSE: Nanos = Nanos::from_micros(997);
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);
/// The time from the end of the pause before its sample to the start of a stall: the thread that
/// makes it leaves the CPU, and the writer is back from its sleep and about to write.
const STALL_OFFSET: Nanos = Nanos(9_000);

/// Events that a thread notes.
const WRITES: Event = 0;
const RUNS: Event = 1;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Handover {
    /// The number of wake-ups that are measured; all are kept.
    samples: u64,
    /// The number of first wake-ups that are not counted.
    warmup: u32,
    /// The writer's `SCHED_FIFO` priority; the reader has the next one above.
    priority: u8,
    /// The CPU that both threads are bound to.
    cpu: CpuId,
    /// A stall that falls into one sample.
    stall: Option<Stall>,
}

impl Default for Handover {
    fn default() -> Self {
        Self {
            samples: 1_000,
            warmup: 10,
            priority: 80,
            cpu: CpuId(0),
            stall: None,
        }
    }
}

impl Handover {
    fn check(&self) -> Result<(), String> {
        within("samples", self.samples, 1, 1_000_000)?;
        within("warmup", self.warmup, 0, 1_000_000)?;
        within("priority", self.priority, 1, 98)?;
        self.stall.map_or(Ok(()), |stall| stall.check(self.samples))
    }

    fn all(&self) -> u64 {
        self.samples + u64::from(self.warmup)
    }
}

impl Measurement for Handover {
    fn nominal(&self) -> Nanos {
        PAUSE * self.all() as i64
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(LONGEST_PHASE);
        let counter = eventfd(0, EventfdFlags::CLOEXEC).map(File::from);
        let pair = Pair {
            counter: counter.map_err(|error| format!("eventfd: {error}"))?,
            stamps: EventLog::new(2 * self.all() as usize),
            over: AtomicBool::new(false),
        };
        let stalled = |sample| u64::from(self.warmup) + sample;
        let stall = stall::Within::of(self.stall, stalled, STALL_OFFSET)?;
        let members = vec![
            ThreadSpec::new(self.priority, || {
                pair.write(self.all(), phase, stall.as_ref());
            }),
            ThreadSpec::new(self.priority + 1, || pair.read()),
        ];
        let found = threads::run(self.cpu, members)?;
        let stamps = pair.stamps.finish()?;
        let measured = stamps.get(2 * self.warmup as usize..).unwrap_or_default();
        let first = event_log::first(measured);
        let spans = event_log::spans(first.unwrap_or_default(), measured, (WRITES, RUNS));
        let mut recording = event_log::record(&spans).finish(RecordingKey::of_variant("reader"));
        recording.warmup = self.warmup.into();
        recording.settings = threads::common(&found, &["writer", "reader"]);
        let recordings = std::slice::from_mut(&mut recording);
        stall::tell(stall, first, recordings)?;
        Ok(vec![recording])
    }
}

/// The state that the threads share.
struct Pair {
    counter: File,
    stamps: EventLog,
    over: AtomicBool,
}

impl Pair {
    /// Runs the writer for its whole life. By its first sample the reader has long since blocked.
    fn write(&self, all: u64, phase: Nanos, stall: Option<&stall::Within>) {
        sleep(PAUSE + phase);
        threads::lead(0..all, PAUSE, stall, || {
            self.stamps.begin(WRITES, 0);
            self.add();
        });
        self.over.store(true, Relaxed);
        self.add();
    }

    /// Runs the reader for its whole life. Being higher than the writer, it blocks again before the
    /// writer goes on, so that each write is one sample.
    fn read(&self) {
        self.wait();
        while !self.over.load(Relaxed) {
            self.stamps.end(RUNS, 1);
            self.wait();
        }
    }

    fn add(&self) {
        let added = (&self.counter).write_all(&1_u64.to_ne_bytes());
        added.expect("a counter that is read each time is never full");
    }

    fn wait(&self) {
        let read = (&self.counter).read_exact(&mut [0; 8]);
        read.expect("a counter of 8 bytes is read");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::Phases;

    #[test]
    fn every_write_is_one_sample_of_the_reader() {
        let probe = Handover {
            samples: 50,
            warmup: 3,
            ..Handover::default()
        };
        let phases = Phases::new(1, 1);
        let recordings = threads::measured(probe.run(&mut Context::new(phases)));
        for recording in recordings.into_iter().flatten() {
            assert_eq!((recording.count, recording.missed), (50, 0));
            assert_eq!(recording.warmup, 3);
            assert!(recording.min() > Some(Nanos::ZERO));
            assert_eq!(recording.settings["priority_reader"].number(), Some(81));
        }
    }
}

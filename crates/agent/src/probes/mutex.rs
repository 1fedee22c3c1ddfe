// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `mutex`: acquire and release of a priority-inheritance mutex in the inversion case.
//!
//! Three threads share a CPU. The low one owns the mutex, the high one requests it, and the
//! intermediate one is ready to run but, because the owner inherits the high priority, may
//! not before the high thread had the mutex.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

use punctual_model::probe::{FindingView, Form, ProbeInfo, Shape, View, Watched, Windows};
use punctual_model::{CpuId, Finding, Findings, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::event_log::{self, Event, EventLog, Stamp};
use crate::rt::{self, Settings};
use crate::stall::{self, Stall};
use crate::sys::mutex::{Mutex, Protocol};
use crate::sys::semaphore::Semaphore;
use crate::sys::time::sleep;
use crate::threads::{self, ThreadSpec};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "mutex",
    summary: "acquire and release of a PTHREAD_PRIO_INHERIT mutex that a lower thread owns",
    parse: |table| parameters::<Contention>(table, Contention::check),
};

/// How it is shown and explained.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Latency,
        spoken: "acquire or release of a contended mutex",
        findings: &[FindingView::new("inversions", "inversions", Form::Plain).only_of("release")],
    },
    scope: Ok(Watched::handover(Windows::InTurns {
        variants: &["acquire", "release"],
        length: None,
    })),
};

/// The low thread sleeps so long before each round: no multiple of a tick, and long enough
/// that neither real-time throttling nor the fair server finds anything to do.
const PAUSE: Nanos = Nanos::from_micros(997);
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);

/// So long after its round's begin a stall begins: within the acquisition.
const STALL_OFFSET: Nanos = Nanos(9_000);

/// What a thread notes.
const REQUESTS: Event = 0;
const OWNER_RUNS: Event = 1;
const UNLOCKS: Event = 2;
const REQUESTER_RUNS: Event = 3;
const MEDIUM_RUNS: Event = 4;
const EVENTS: usize = 5;

const LOW: u32 = 0;
const MEDIUM: u32 = 1;
const HIGH: u32 = 2;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Contention {
    /// How many rounds of one acquisition and one release.
    samples: u64,
    /// Rounds that are gone through first and not counted.
    warmup: u32,
    /// The low thread's `SCHED_FIFO` priority; the other two have the next ones above.
    priority: u8,
    /// The CPU that all threads are bound to.
    cpu: CpuId,
    /// A stall that falls into the round of one sample; its `offset_ns` says into which path.
    stall: Option<Stall>,
}

impl Default for Contention {
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

impl Contention {
    fn check(&self) -> Result<(), String> {
        within("samples", self.samples, 1, 1_000_000)?;
        within("warmup", self.warmup, 1, 1_000_000)?;
        within("priority", self.priority, 1, 97)?;
        self.stall.map_or(Ok(()), |stall| stall.check(self.samples))
    }

    fn rounds(&self) -> u64 {
        self.samples + u64::from(self.warmup)
    }
}

impl Measurement for Contention {
    fn nominal(&self) -> Nanos {
        PAUSE * self.rounds() as i64
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(LONGEST_PHASE);
        let stage = Stage::new(self.rounds())?;
        let stalled = |sample| u64::from(self.warmup) + sample;
        let stall = stall::Within::of(self.stall, stalled, STALL_OFFSET)?;
        let members = vec![
            ThreadSpec::new(self.priority, || {
                stage.low(self.rounds(), phase, stall.as_ref());
            }),
            ThreadSpec::new(self.priority + 1, || stage.medium()),
            ThreadSpec::new(self.priority + 2, || stage.high()),
        ];
        let found = threads::run(self.cpu, members)?;
        let settings = settings(&found);
        let lent = rt::lent_priority(stage.priority_of_owner.load(Relaxed));
        let stamps = stage.stamps.finish()?;
        let warmup = self.warmup as usize;
        let measured = stamps.get(warmup * EVENTS..).unwrap_or_default();
        let record = |variant, from, to| {
            let spans = event_log::spans(measured, from, to);
            let mut recording = event_log::record(&spans).finish(RecordingKey::of_variant(variant));
            recording.warmup = self.warmup.into();
            recording.settings.clone_from(&settings);
            recording.findings = Findings::from([
                ("inversions".into(), inversions(measured)),
                ("priority_of_owner_while_wanted".into(), lent.clone()),
            ]);
            recording
        };
        let mut recordings = vec![
            record("acquire", REQUESTS, OWNER_RUNS),
            record("release", UNLOCKS, REQUESTER_RUNS),
        ];
        stall::tell(stall, event_log::first(measured), &mut recordings)?;
        Ok(recordings)
    }
}

fn settings(found: &[Settings]) -> Settings {
    let mut settings = threads::common(found, &["low", "medium", "high"]);
    settings.insert("protocol".into(), PROTOCOL.name().into());
    settings
}

/// In how many rounds the medium thread ran before the high one had the mutex.
fn inversions(stamps: &[Stamp]) -> Finding {
    let inverted = |round: &&[Stamp]| {
        let place = |event| round.iter().position(|stamp| stamp.event == event);
        place(MEDIUM_RUNS) < place(REQUESTER_RUNS)
    };
    let rounds = stamps.chunks_exact(EVENTS);
    Finding::Share {
        of: rounds.len() as u64,
        count: rounds.filter(inverted).count() as u64,
    }
}

const PROTOCOL: Protocol = Protocol::Inherit;

/// What the threads share.
struct Stage {
    mutex: Mutex,
    medium: Semaphore,
    high: Semaphore,
    over: AtomicBool,
    priority_of_owner: AtomicI32,
    stamps: EventLog,
}

impl Stage {
    fn new(rounds: u64) -> Result<Self, Reason> {
        let semaphore = || Semaphore::new().map_err(|error| format!("sem_init: {error}"));
        Ok(Self {
            mutex: Mutex::new(PROTOCOL).map_err(|error| format!("{}: {error}", PROTOCOL.name()))?,
            medium: semaphore()?,
            high: semaphore()?,
            over: AtomicBool::new(false),
            priority_of_owner: AtomicI32::new(-1),
            stamps: EventLog::new(rounds as usize * EVENTS),
        })
    }

    fn low(&self, rounds: u64, phase: Nanos, stall: Option<&stall::Within>) {
        sleep(PAUSE + phase);
        // The first round belongs to the warm-up, so what it does besides disturbs nothing.
        self.round(|| {
            let found = rt::effective_priority().unwrap_or(-1);
            self.priority_of_owner.store(found, Relaxed);
        });
        threads::lead(1..rounds, PAUSE, stall, || self.round(|| ()));
        self.over.store(true, Relaxed);
        self.medium.post();
        self.high.post();
    }

    /// The measurement itself. Being lower than the others the low thread goes on after each
    /// step only when they are blocked, or when it is itself boosted.
    fn round(&self, while_wanted: impl FnOnce()) {
        let owned = self.mutex.lock();
        self.high.post();
        self.stamps.end(OWNER_RUNS, LOW);
        while_wanted();
        self.medium.post();
        self.stamps.begin(UNLOCKS, LOW);
        owned.unlock();
    }

    fn high(&self) {
        self.high.wait();
        while !self.over.load(Relaxed) {
            self.stamps.begin(REQUESTS, HIGH);
            let owned = self.mutex.lock();
            self.stamps.end(REQUESTER_RUNS, HIGH);
            owned.unlock();
            self.high.wait();
        }
    }

    fn medium(&self) {
        self.medium.wait();
        while !self.over.load(Relaxed) {
            self.stamps.mark(MEDIUM_RUNS, MEDIUM);
            self.medium.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::Phases;

    #[test]
    fn a_medium_thread_that_runs_before_the_requester_is_an_inversion() {
        let stamp = |event: Event| Stamp {
            event,
            thread: 0,
            at: Nanos::ZERO,
        };
        let good = [REQUESTS, OWNER_RUNS, UNLOCKS, REQUESTER_RUNS, MEDIUM_RUNS].map(stamp);
        let bad = [REQUESTS, OWNER_RUNS, MEDIUM_RUNS, UNLOCKS, REQUESTER_RUNS].map(stamp);
        let found = inversions(&[good, bad, good].concat());
        assert_eq!(found, Finding::Share { count: 1, of: 3 });
    }

    #[test]
    fn every_round_is_an_acquisition_and_a_release_without_inversion() {
        let probe = Contention {
            samples: 20,
            warmup: 2,
            ..Contention::default()
        };
        let phases = Phases::new(1, 1);
        let recordings = threads::measured(probe.run(&mut Context { phases }));
        for recording in recordings.into_iter().flatten() {
            assert_eq!((recording.count, recording.missed), (20, 0));
            let none = Finding::Share { count: 0, of: 20 };
            assert_eq!(recording.findings["inversions"], none);
            let lent = &recording.findings["priority_of_owner_while_wanted"];
            assert_eq!(*lent, Finding::Count(82));
        }
    }
}

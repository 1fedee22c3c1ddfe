// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `mutex`: acquire and release of a priority-inheritance mutex in the inversion case.
//!
//! Three threads share a CPU. The low one owns the mutex, and the high one requests it. The
//! intermediate one is ready to run but, because the owner inherits the high priority, may
//! not before the high thread has had the mutex. Rounds follow one another in [`bursts`].

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

use punctual_model::probe::{FindingView, Form, ProbeInfo, Shape, View, Watched, Windows};
use punctual_model::{CpuId, Finding, Findings, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Extent, Measurement, Probe, parameters, within};
use crate::bursts::{self, Bursts, Parts};
use crate::event_log::{self, Event, EventLog, Stamp};
use crate::rt::{self, Settings};
use crate::stall::Stall;
use crate::sys::mutex::{Mutex, Protocol};
use crate::sys::semaphore::Semaphore;
use crate::threads::{self, ThreadSpec};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "mutex",
    summary: "acquire and release of a PTHREAD_PRIO_INHERIT mutex that a lower thread owns",
    parse: |table| parameters::<Contention>(table, Contention::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Latency,
        spoken: "acquire or release of a contended mutex",
        findings: &[FindingView::new("inversions", "inversions", Form::Plain).only_of("release")],
    },
    scope: Ok(Watched::handover(Windows::ByTimeWithin {
        setting: "protocol",
    })),
};

/// The shortest time of a round, which has eight system calls and six switches.
const SHORTEST: Nanos = Nanos(1_500);

/// Events that a thread notes.
const REQUESTS: Event = 0;
const OWNER_RUNS: Event = 1;
const UNLOCKS: Event = 2;
const REQUESTER_RUNS: Event = 3;
const MEDIUM_RUNS: Event = 4;
const EVENTS: usize = 5;

/// The paths measured in each round: from one event to another.
const PATHS: [(&str, (Event, Event)); 2] = [
    ("acquire", (REQUESTS, OWNER_RUNS)),
    ("release", (UNLOCKS, REQUESTER_RUNS)),
];

const LOW: u32 = 0;
const MEDIUM: u32 = 1;
const HIGH: u32 = 2;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Contention {
    /// The number of ticks of the kernel's clock for which acquisitions and releases go on.
    ticks: u32,
    /// The low thread's `SCHED_FIFO` priority; the other two have the next ones above.
    priority: u8,
    /// The CPU that all threads are bound to.
    cpu: CpuId,
    /// A stall that falls into the burst whose number is `sample`; `offset_ns` gives the position.
    stall: Option<Stall>,
}

impl Default for Contention {
    fn default() -> Self {
        Self {
            ticks: 50,
            priority: 80,
            cpu: CpuId(0),
            stall: None,
        }
    }
}

impl Contention {
    fn check(&self) -> Result<(), String> {
        within("priority", self.priority, 1, 97)?;
        bursts::check(self.ticks, self.stall)
    }
}

impl Measurement for Contention {
    fn nominal(&self) -> Nanos {
        bursts::nominal(self.ticks.into())
    }

    fn extent(&self) -> Option<Extent> {
        Some(bursts::extent(self.ticks))
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let bursts = Bursts::new(self.ticks.into(), &mut context.phases, self.stall)?;
        let stage = Stage::new(&bursts)?;
        let members = vec![
            ThreadSpec::new(self.priority, || stage.low(&bursts)),
            ThreadSpec::new(self.priority + 1, || stage.medium()),
            ThreadSpec::new(self.priority + 2, || stage.high()),
        ];
        let found = threads::run(self.cpu, members)?;
        let settings = settings(&found);
        let lent = stage.priority_of_owner.load(Relaxed);
        if lent != i32::from(self.priority) + 2 {
            return Err(format!(
                "the owner, wanted by a thread of priority {}, was at {lent}: nothing was inherited",
                self.priority + 2
            )
            .into());
        }
        let stamps = stage.stamps.finish()?;
        let parts = Parts::of(&stamps, 1);
        let mut recordings = Vec::new();
        for (part, suffix) in [(&parts.others[0], ""), (&parts.first, " first")] {
            let inversions = inversions(part)?;
            for (variant, path) in PATHS {
                let spans = event_log::spans(parts.origin, part, path);
                let key = RecordingKey::of_variant(format!("{variant}{suffix}"));
                let mut recording = event_log::record(&spans).finish(key);
                recording.settings.clone_from(&settings);
                recording.findings = Findings::from([
                    ("inversions".into(), inversions.clone()),
                    (
                        "priority_of_owner_while_wanted".into(),
                        rt::lent_priority(lent),
                    ),
                ]);
                recordings.push(recording);
            }
        }
        bursts.tell(event_log::first(&stamps), &mut recordings)?;
        Ok(recordings)
    }
}

fn settings(found: &[Settings]) -> Settings {
    let mut settings = threads::common(found, &["low", "medium", "high"]);
    settings.insert("protocol".into(), PROTOCOL.name().into());
    settings
}

/// Counts the rounds in which the medium thread ran before the high one had the mutex. There must
/// be none, or these are not the times of a mutex that prevents it.
fn inversions(stamps: &[Stamp]) -> Result<Finding, Reason> {
    let inverted = |round: &&[Stamp]| {
        let place = |event| round.iter().position(|stamp| stamp.event == event);
        place(MEDIUM_RUNS) < place(REQUESTER_RUNS)
    };
    let rounds = stamps.chunks_exact(EVENTS);
    let (of, count) = (rounds.len(), rounds.filter(inverted).count());
    if count > 0 {
        return Err(format!("the medium thread ran first in {count} of {of} rounds").into());
    }
    Ok(Finding::Share {
        count: 0,
        of: of as u64,
    })
}

const PROTOCOL: Protocol = Protocol::Inherit;

/// The state that the threads share.
struct Stage {
    mutex: Mutex,
    medium: Semaphore,
    high: Semaphore,
    over: AtomicBool,
    priority_of_owner: AtomicI32,
    stamps: EventLog,
}

impl Stage {
    fn new(bursts: &Bursts) -> Result<Self, Reason> {
        let semaphore = || Semaphore::new().map_err(|error| format!("sem_init: {error}"));
        Ok(Self {
            mutex: Mutex::new(PROTOCOL).map_err(|error| format!("{}: {error}", PROTOCOL.name()))?,
            medium: semaphore()?,
            high: semaphore()?,
            over: AtomicBool::new(false),
            priority_of_owner: AtomicI32::new(-1),
            stamps: bursts.log((SHORTEST, EVENTS as u64), EVENTS as u64),
        })
    }

    fn low(&self, bursts: &Bursts) {
        bursts.lead(&self.stamps, 1, |_| self.round(|| ()));
        // Looked for when nothing is measured any more.
        self.round(|| {
            let found = rt::effective_priority().unwrap_or(-1);
            self.priority_of_owner.store(found, Relaxed);
        });
        self.over.store(true, Relaxed);
        self.medium.post();
        self.high.post();
    }

    /// Measures one round. Being lower than the others, the low thread continues after each step
    /// only when they are blocked, or when it is itself boosted.
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
        let found = inversions(&[good, bad, good].concat()).unwrap_err();
        assert!(found.to_string().contains("first in 1 of 3"), "{found}");
        let found = inversions(&[good, good].concat());
        assert_eq!(found, Ok(Finding::Share { count: 0, of: 2 }));
    }

    #[test]
    fn every_round_is_an_acquisition_and_a_release_without_inversion() {
        let probe = Contention {
            ticks: 3,
            ..Contention::default()
        };
        let phases = Phases::new(1, 1);
        let recordings = threads::measured(probe.run(&mut Context::new(phases)));
        let recordings = recordings.unwrap_or_default();
        for recording in &recordings {
            assert!(recording.count > 0 && recording.missed == 0);
            let of = recording.count;
            let none = Finding::Share { count: 0, of };
            assert_eq!(recording.findings["inversions"], none);
            let lent = &recording.findings["priority_of_owner_while_wanted"];
            assert_eq!(*lent, Finding::Count(82));
        }
        let first = recordings
            .iter()
            .filter(|one| one.key.variant.ends_with(" first"));
        assert!(first.into_iter().all(|one| one.count == 3));
    }
}

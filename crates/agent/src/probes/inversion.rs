// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `inversion`: does the mutex prevent priority inversion?
//!
//! Three threads share a CPU. The low one owns a mutex that the high one wants, and in this
//! state wakes the medium one. Without a remedy the medium thread, which has nothing to do
//! with the mutex, keeps the high one from running for as long as it likes.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

use punctual_model::probe::{FindingView, Form, ProbeInfo, Shape, View, Watched, Windows};
use punctual_model::{CpuId, Finding, Findings, Nanos, Reason, Recorder, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, each, parameters, within};
use crate::event_log::{Event, EventLog, Stamp};
use crate::rt;
use crate::sys::mutex::{Mutex, Protocol};
use crate::sys::semaphore::Semaphore;
use crate::sys::time::{now, sleep};
use crate::threads::{self, ThreadSpec};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "inversion",
    summary: "does the mutex prevent priority inversion? INHERIT and PROTECT, and NONE as control",
    parse: |table| parameters::<Inversion>(table, Inversion::check),
};

/// How it is shown and explained.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Latency,
        spoken: "",
        findings: &[
            FindingView::new("result", "result", Form::Leading),
            FindingView::new("inverted", "inverted", Form::Plain),
        ],
    },
    scope: Ok(Watched::handover(Windows::OneAfterTheOther)),
};

/// The low thread sleeps so long before each round: no multiple of a tick, and long enough
/// that neither real-time throttling nor the fair server finds anything to do.
const PAUSE: Nanos = Nanos::from_micros(1_997);
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);

/// The events of a round, each of which happens once, with thread and description.
const LOW_STARTS_MEDIUM: Event = 0;
const MEDIUM_WAITS: Event = 1;
const LOW_LOCKS: Event = 2;
const LOW_STARTS_HIGH: Event = 3;
const HIGH_REQUESTS: Event = 4;
const LOW_RESUMES: Event = 5;
const LOW_POSTS: Event = 6;
const MEDIUM_RUNS: Event = 7;
const MEDIUM_ENDS: Event = 8;
const LOW_UNLOCKS: Event = 9;
const HIGH_OWNS: Event = 10;
const EVENTS: [&str; 11] = [
    "low starts medium",
    "medium waits for the semaphore",
    "low locks the mutex",
    "low starts high",
    "high requests the mutex",
    "low resumes",
    "low posts the semaphore",
    "medium runs",
    "medium ends",
    "low unlocks the mutex",
    "high owns the mutex",
];

const LOW: u32 = 0;
const MEDIUM: u32 = 1;
const HIGH: u32 = 2;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Inversion {
    /// How often the three threads meet, per protocol.
    rounds: u32,
    /// Rounds that are gone through first and not counted.
    warmup: u32,
    /// How long the medium thread works once it runs.
    work_us: u32,
    /// The low thread's `SCHED_FIFO` priority; the other two have the next ones above.
    priority: u8,
    /// The CPU that all threads are bound to.
    cpu: CpuId,
}

impl Default for Inversion {
    fn default() -> Self {
        Self {
            rounds: 50,
            warmup: 2,
            work_us: 500,
            priority: 80,
            cpu: CpuId(0),
        }
    }
}

impl Inversion {
    fn check(&self) -> Result<(), String> {
        within("rounds", self.rounds, 1, 100_000)?;
        within("warmup", self.warmup, 1, 100_000)?;
        // Below the pause, or else throttling would join in.
        within("work_us", self.work_us, 1, 1_900)?;
        within("priority", self.priority, 1, 97)
    }

    /// Tried in this order; the second is the control.
    fn protocols(&self) -> [Protocol; 3] {
        let ceiling = self.priority + 2;
        [
            Protocol::Inherit,
            Protocol::None,
            Protocol::Protect(ceiling),
        ]
    }

    fn all_rounds(&self) -> usize {
        self.rounds as usize + self.warmup as usize
    }

    fn measure(&self, protocol: Protocol, phase: Nanos) -> Result<Recording, Reason> {
        let work = Nanos::from_micros(self.work_us.into());
        let stage = Stage::new(protocol, work, self.all_rounds())?;
        let members = vec![
            ThreadSpec::new(self.priority, || stage.low(self.all_rounds(), phase)),
            ThreadSpec::new(self.priority + 1, || stage.medium()),
            ThreadSpec::new(self.priority + 2, || stage.high()),
        ];
        let found = threads::run(self.cpu, members)?;
        let mut settings = threads::common(&found, &["low", "medium", "high"]);
        let lent = rt::lent_priority(stage.priority_of_owner.load(Relaxed));
        settings.insert("protocol".into(), protocol.name().into());
        settings.insert("medium_works_ns".into(), work.into());
        let stamps = stage.stamps.finish()?;
        let outcome = Outcome::of(
            stamps
                .get(self.warmup as usize * EVENTS.len()..)
                .unwrap_or_default(),
        )?;
        let mut findings = outcome.findings(protocol)?;
        findings.insert("priority_of_owner_while_wanted".into(), lent);
        let mut recording = outcome
            .waited
            .finish(RecordingKey::of_variant(variant(protocol)));
        recording.warmup = self.warmup.into();
        recording.settings = settings;
        recording.findings = findings;
        recording.output = Some(outcome.story);
        Ok(recording)
    }
}

impl Measurement for Inversion {
    fn nominal(&self) -> Nanos {
        PAUSE * (self.protocols().len() * self.all_rounds()) as i64
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(LONGEST_PHASE);
        let measure = |protocol| self.measure(protocol, phase);
        each(self.protocols(), measure)
    }
}

fn variant(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::None => "none",
        Protocol::Inherit => "inherit",
        Protocol::Protect(_) => "protect",
    }
}

/// What the threads share.
struct Stage {
    mutex: Mutex,
    /// Where the medium and the high thread wait to be started.
    start_medium: Semaphore,
    start_high: Semaphore,
    /// What the medium thread waits for once started.
    semaphore: Semaphore,
    work: Nanos,
    over: AtomicBool,
    priority_of_owner: AtomicI32,
    stamps: EventLog,
}

impl Stage {
    fn new(protocol: Protocol, work: Nanos, rounds: usize) -> Result<Self, Reason> {
        let semaphore = || Semaphore::new().map_err(|error| format!("sem_init: {error}"));
        Ok(Self {
            mutex: Mutex::new(protocol).map_err(|error| format!("{}: {error}", protocol.name()))?,
            start_medium: semaphore()?,
            start_high: semaphore()?,
            semaphore: semaphore()?,
            work,
            over: AtomicBool::new(false),
            priority_of_owner: AtomicI32::new(-1),
            stamps: EventLog::new(rounds * EVENTS.len()),
        })
    }

    fn low(&self, rounds: usize, phase: Nanos) {
        sleep(PAUSE + phase);
        // The first round belongs to the warm-up, so what it does besides disturbs nothing.
        self.round(|| {
            let found = rt::effective_priority().unwrap_or(-1);
            self.priority_of_owner.store(found, Relaxed);
        });
        threads::lead(1..rounds as u64, PAUSE, None, || self.round(|| ()));
        self.over.store(true, Relaxed);
        self.start_medium.post();
        self.start_high.post();
    }

    /// The low thread's part. Whatever it starts or wakes runs at once, unless the protocol
    /// has raised the low thread above it.
    fn round(&self, while_wanted: impl FnOnce()) {
        self.stamps.mark(LOW_STARTS_MEDIUM, LOW);
        self.start_medium.post();
        self.stamps.mark(LOW_LOCKS, LOW);
        let owned = self.mutex.lock();
        self.stamps.begin(LOW_STARTS_HIGH, LOW);
        self.start_high.post();
        self.stamps.mark(LOW_RESUMES, LOW);
        while_wanted();
        self.stamps.mark(LOW_POSTS, LOW);
        self.semaphore.post();
        self.stamps.mark(LOW_UNLOCKS, LOW);
        owned.unlock();
    }

    fn medium(&self) {
        self.start_medium.wait();
        while !self.over.load(Relaxed) {
            self.stamps.mark(MEDIUM_WAITS, MEDIUM);
            self.semaphore.wait();
            self.stamps.mark(MEDIUM_RUNS, MEDIUM);
            let end = now() + self.work;
            while now() < end {}
            self.stamps.mark(MEDIUM_ENDS, MEDIUM);
            self.start_medium.wait();
        }
    }

    fn high(&self) {
        self.start_high.wait();
        while !self.over.load(Relaxed) {
            self.stamps.mark(HIGH_REQUESTS, HIGH);
            let owned = self.mutex.lock();
            self.stamps.end(HIGH_OWNS, HIGH);
            owned.unlock();
            self.start_high.wait();
        }
    }
}

/// What came of all rounds with one protocol.
struct Outcome {
    /// From the moment when the high thread is started until it owns the mutex. (Not from
    /// its request: with a ceiling it waits before it can even request.)
    waited: Recorder,
    /// In how many rounds the medium thread ran before the high one owned the mutex.
    inverted: usize,
    /// In how many rounds the order of events was that of the first.
    alike: usize,
    rounds: usize,
    /// The first round: its events in order.
    story: String,
}

impl Outcome {
    fn of(stamps: &[Stamp]) -> Result<Self, Reason> {
        let rounds: Vec<&[Stamp]> = stamps.chunks(EVENTS.len()).collect();
        let first = *rounds.first().ok_or("no round was measured")?;
        let order = |round: &[Stamp]| round.iter().map(|stamp| stamp.event).collect::<Vec<_>>();
        let mut outcome = Self {
            waited: Recorder::new(rounds.len()),
            inverted: 0,
            alike: 0,
            rounds: rounds.len(),
            story: story(first),
        };
        for round in rounds {
            let (started, owns) = (find(round, LOW_STARTS_HIGH)?, find(round, HIGH_OWNS)?);
            let at = round[started].at - first[0].at;
            outcome
                .waited
                .record(at, round[owns].at - round[started].at);
            outcome.inverted += usize::from(find(round, MEDIUM_RUNS)? < owns);
            outcome.alike += usize::from(order(round) == order(first));
        }
        Ok(outcome)
    }

    fn findings(&self, protocol: Protocol) -> Result<Findings, Reason> {
        let of_all = |count: usize| Finding::Share {
            count: count as u64,
            of: self.rounds as u64,
        };
        // Where even a mutex without protocol shows no inversion, that the others show none
        // proves nothing.
        if protocol == Protocol::None && self.inverted < self.rounds {
            return Err(format!(
                "the control, {}, was inverted in {} of {} rounds instead of all: this cannot \
                 tell whether a protocol prevents inversion",
                protocol.name(),
                self.inverted,
                self.rounds
            )
            .into());
        }
        let result = Finding::Verdict {
            passed: self.inverted == 0,
            expected: protocol != Protocol::None,
        };
        Ok(Findings::from([
            ("inverted".into(), of_all(self.inverted)),
            ("same_order".into(), of_all(self.alike)),
            ("result".into(), result),
        ]))
    }
}

/// The place of an event in a round.
fn find(round: &[Stamp], event: Event) -> Result<usize, Reason> {
    let place = round.iter().position(|stamp| stamp.event == event);
    place.ok_or_else(|| format!("a round went by without \"{}\"", EVENTS[event as usize]).into())
}

/// A round's events in order, each with the time since the first.
fn story(round: &[Stamp]) -> String {
    let mut told = String::from("at_ns event\n");
    for stamp in round {
        let at = stamp.at - round[0].at;
        let _ = writeln!(told, "{:>8} {}", at.0, EVENTS[stamp.event as usize]);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::Phases;

    const PREVENTED: [Event; 11] = [
        LOW_STARTS_MEDIUM,
        MEDIUM_WAITS,
        LOW_LOCKS,
        LOW_STARTS_HIGH,
        HIGH_REQUESTS,
        LOW_RESUMES,
        LOW_POSTS,
        LOW_UNLOCKS,
        HIGH_OWNS,
        MEDIUM_RUNS,
        MEDIUM_ENDS,
    ];
    const INVERTED: [Event; 11] = [
        LOW_STARTS_MEDIUM,
        MEDIUM_WAITS,
        LOW_LOCKS,
        LOW_STARTS_HIGH,
        HIGH_REQUESTS,
        LOW_RESUMES,
        LOW_POSTS,
        MEDIUM_RUNS,
        MEDIUM_ENDS,
        LOW_UNLOCKS,
        HIGH_OWNS,
    ];

    /// Rounds in which an event happens every 10 ns.
    fn outcome(rounds: &[[Event; 11]]) -> Outcome {
        let stamp = |(event, place): (Event, i64)| Stamp {
            event,
            thread: 0,
            at: Nanos(place * 10),
        };
        let stamps: Vec<Stamp> = rounds.concat().into_iter().zip(0..).map(stamp).collect();
        Outcome::of(&stamps).unwrap()
    }

    #[test]
    fn the_order_of_events_tells_inversion_and_the_time_how_long_the_high_thread_waited() {
        let outcome = outcome(&[PREVENTED, INVERTED]);
        assert_eq!((outcome.inverted, outcome.alike), (1, 1));
        assert!(outcome.story.contains("      80 high owns the mutex\n"));
        let findings = outcome.findings(Protocol::Inherit).unwrap();
        assert_eq!(findings["result"], verdict(false, true));
        assert_eq!(findings["inverted"], Finding::Share { count: 1, of: 2 });
        let waited = outcome.waited.finish(RecordingKey::of_variant(""));
        assert_eq!(
            (waited.min(), waited.max()),
            (Some(Nanos(50)), Some(Nanos(70)))
        );
    }

    #[test]
    fn a_control_that_does_not_fail_leaves_nothing_proven() {
        let result = |rounds: &[[Event; 11]], protocol| {
            let findings = outcome(rounds).findings(protocol)?;
            Ok::<_, Reason>(findings["result"].clone())
        };
        let reason = result(&[PREVENTED], Protocol::None).unwrap_err();
        assert!(reason.to_string().contains("control"), "{reason}");
        let control = result(&[INVERTED], Protocol::None);
        assert_eq!(control, Ok(verdict(false, false)));
        let prevented = result(&[PREVENTED], Protocol::Protect(9));
        assert_eq!(prevented, Ok(verdict(true, true)));
    }

    fn verdict(passed: bool, expected: bool) -> Finding {
        Finding::Verdict { passed, expected }
    }

    #[test]
    fn a_round_that_lacks_an_event_is_no_result() {
        assert!(Outcome::of(&[]).is_err());
        let stamp = Stamp {
            event: LOW_LOCKS,
            thread: 0,
            at: Nanos::ZERO,
        };
        assert!(Outcome::of(&[stamp]).is_err());
    }

    #[test]
    fn inherit_and_protect_prevent_inversion_and_none_does_not() {
        let probe = Inversion {
            rounds: 3,
            work_us: 50,
            ..Inversion::default()
        };
        let phases = Phases::new(1, 1);
        let Some(recordings) = threads::measured(probe.run(&mut Context { phases })) else {
            return;
        };
        let told = |key: &str| {
            recordings
                .iter()
                .map(|recording| recording.findings[key].clone())
                .collect::<Vec<_>>()
        };
        let results = [(true, true), (false, false), (true, true)];
        let results = results.map(|(passed, expected)| verdict(passed, expected));
        assert_eq!(told("result"), results);
        let lent = [82, 80, 82].map(Finding::Count);
        assert_eq!(told("priority_of_owner_while_wanted"), lent);
        // The control is blocked for as long as the medium thread works, at least.
        assert!(recordings[1].min() >= Some(Nanos::from_micros(50)));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `inversion`: does the mutex prevent priority inversion?
//!
//! Three threads share a CPU. The low one owns a mutex that the high one wants, and in this
//! state wakes the medium one. Without a remedy the medium thread, which has nothing to do
//! with the mutex, keeps the high one from running for as long as it likes.
//!
//! Further variants are chains, where the high thread wants a mutex whose owner waits for the low
//! thread, and one where the low thread owns two mutexes that two threads want.

use std::fmt::Write as _;
use std::io;
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
    summary: "do mutexes prevent priority inversion? INHERIT (also in chains), PROTECT, NONE as control",
    parse: |table| parameters::<Inversion>(table, Inversion::check),
};

/// The probe's description for the workstation.
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

/// The low thread's sleep before each round: no multiple of a tick, and long enough
/// that neither real-time throttling nor the fair server finds anything to do.
const PAUSE: Nanos = Nanos::from_micros(1_997);
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);

/// The events of a round, with thread and description. Those of a helper happen once for each.
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
const LOW_STARTS_HELPER: Event = 11;
const HELPER_REQUESTS: Event = 12;
const HELPER_OWNS: Event = 13;
const LOW_UNLOCKS_SECOND: Event = 14;
const EVENTS: [&str; 15] = [
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
    "low starts helper",
    "helper requests a mutex",
    "helper owns it",
    "low unlocks the second mutex",
];

const LOW: u32 = 0;
const MEDIUM: u32 = 1;
const HIGH: u32 = 2;

/// A thread between the low and the high one.
#[derive(Debug)]
struct Helper {
    /// The mutex that it owns when it requests the other one.
    owns: Option<usize>,
    wants: usize,
}

/// The owners of mutexes, and the threads that want them. The low thread owns the first ones.
#[derive(Debug)]
struct Scene {
    /// The name of its variants, after the protocol.
    name: &'static str,
    mutexes: usize,
    low_owns: usize,
    high_wants: usize,
    /// The helpers in the order in which they are started, each higher than the previous one.
    helpers: &'static [Helper],
    /// True if helpers are higher than the medium thread.
    helpers_above_medium: bool,
    /// The event that ends a sample: by then all wanted mutexes were owned.
    last: Event,
}

const ONE: Scene = Scene {
    name: "",
    mutexes: 1,
    low_owns: 1,
    high_wants: 0,
    helpers: &[],
    helpers_above_medium: false,
    last: HIGH_OWNS,
};

/// The owner inherits its priority through helpers, which are themselves too low.
static CHAINS: [Scene; 2] = [
    Scene {
        name: " chain of 2",
        mutexes: 2,
        high_wants: 1,
        helpers: &[Helper {
            owns: Some(1),
            wants: 0,
        }],
        ..ONE
    },
    Scene {
        name: " chain of 3",
        mutexes: 3,
        high_wants: 2,
        helpers: &[
            Helper {
                owns: Some(1),
                wants: 0,
            },
            Helper {
                owns: Some(2),
                wants: 1,
            },
        ],
        ..ONE
    },
];

/// The high thread's mutex is given back first: the owner must stay as high as the helper.
static TWO_MUTEXES: Scene = Scene {
    name: " two mutexes",
    mutexes: 2,
    low_owns: 2,
    high_wants: 0,
    helpers: &[Helper {
        owns: None,
        wants: 1,
    }],
    helpers_above_medium: true,
    last: HELPER_OWNS,
};

impl Scene {
    /// The number of events in a round.
    fn events(&self) -> usize {
        11 + 3 * self.helpers.len() + self.low_owns - 1
    }

    /// The differences of the other threads' priorities from that of the low thread.
    fn ranks(&self) -> Ranks {
        let helpers = self.helpers.len() as u8;
        let below = if self.helpers_above_medium {
            0
        } else {
            helpers
        };
        Ranks {
            medium: 1 + below,
            first_helper: if self.helpers_above_medium { 2 } else { 1 },
            high: 2 + helpers,
        }
    }
}

/// Priorities, counted from the low thread's.
struct Ranks {
    medium: u8,
    first_helper: u8,
    high: u8,
}

/// The times when the low thread looks up its own priority: in the first round of the warm-up, so
/// that it disturbs nothing.
#[derive(Clone, Copy)]
enum Moment {
    Wanted,
    FirstUnlocked,
    Afterwards,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Inversion {
    /// The number of times that the three threads meet, per protocol.
    rounds: u32,
    /// The number of first rounds that are not counted.
    warmup: u32,
    /// The time that the medium thread works once it runs.
    work_us: u32,
    /// The low thread's `SCHED_FIFO` priority; the others have the next ones above.
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
        within("priority", self.priority, 1, 95)
    }

    /// Returns the scenes in the order in which they are tried, each with its control.
    fn scenes(&self) -> Vec<(&'static Scene, Protocol)> {
        let ceiling = Protocol::Protect(self.priority + ONE.ranks().high);
        let mut scenes = vec![
            (&ONE, Protocol::Inherit),
            (&ONE, Protocol::None),
            (&ONE, ceiling),
        ];
        for scene in CHAINS.iter().chain([&TWO_MUTEXES]) {
            scenes.extend([(scene, Protocol::Inherit), (scene, Protocol::None)]);
        }
        scenes
    }

    fn all_rounds(&self) -> usize {
        self.rounds as usize + self.warmup as usize
    }

    fn measure(
        &self,
        (scene, protocol): (&'static Scene, Protocol),
        phase: Nanos,
    ) -> Result<Recording, Reason> {
        let work = Nanos::from_micros(self.work_us.into());
        let stage = Stage::new(scene, protocol, work, self.all_rounds())?;
        let ranks = scene.ranks();
        let mut members = vec![
            ThreadSpec::new(self.priority, || stage.low(self.all_rounds(), phase)),
            ThreadSpec::new(self.priority + ranks.medium, || stage.medium()),
            ThreadSpec::new(self.priority + ranks.high, || stage.high()),
        ];
        for (me, rank) in (0..scene.helpers.len()).zip(ranks.first_helper..) {
            let stage = &stage;
            members.push(ThreadSpec::new(self.priority + rank, move || {
                stage.helper(me);
            }));
        }
        let found = threads::run(self.cpu, members)?;
        let roles = ["low", "medium", "high", "helper", "second_helper"];
        let mut settings = threads::common(&found, &roles);
        settings.insert("protocol".into(), protocol.name().into());
        settings.insert("medium_works_ns".into(), work.into());
        let seen = stage.own_priority.map(|seen| seen.load(Relaxed));
        let stamps = stage.stamps.finish()?;
        let warmup = self.warmup as usize * scene.events();
        let outcome = Outcome::of(scene, stamps.get(warmup..).unwrap_or_default())?;
        let findings = outcome.findings(protocol, self.lent(scene, protocol, seen))?;
        let key = RecordingKey::of_variant(format!("{}{}", variant(protocol), scene.name));
        let mut recording = outcome.waited.finish(key);
        recording.warmup = self.warmup.into();
        recording.settings = settings;
        recording.findings = findings;
        recording.output = Some(outcome.story);
        Ok(recording)
    }

    /// Compares the low thread's priority at each moment with the required one.
    fn lent(&self, scene: &Scene, protocol: Protocol, seen: [i32; 3]) -> Vec<Lent> {
        let ranks = scene.ranks();
        let is_lent = protocol != Protocol::None;
        let lent = |rank: u8| i32::from(self.priority + if is_lent { rank } else { 0 });
        let [wanted, first_unlocked, afterwards] = seen;
        let mut all = vec![Lent::new("while_wanted", wanted, lent(ranks.high))];
        if scene.low_owns > 1 {
            let expected = lent(ranks.first_helper);
            all.push(Lent::new("after_first_unlock", first_unlocked, expected));
        }
        all.push(Lent::new("afterwards", afterwards, self.priority.into()));
        all
    }
}

/// The priority at which the low thread ran at some moment, and the required one.
struct Lent {
    moment: &'static str,
    found: i32,
    expected: i32,
}

impl Lent {
    fn new(moment: &'static str, found: i32, expected: i32) -> Self {
        Self {
            moment,
            found,
            expected,
        }
    }
}

impl Measurement for Inversion {
    fn nominal(&self) -> Nanos {
        PAUSE * (self.scenes().len() * self.all_rounds()) as i64
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(LONGEST_PHASE);
        each(self.scenes(), |scene| self.measure(scene, phase))
    }
}

fn variant(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::None => "none",
        Protocol::Inherit => "inherit",
        Protocol::Protect(_) => "protect",
    }
}

/// The state that the threads share.
struct Stage {
    scene: &'static Scene,
    mutexes: Vec<Mutex>,
    /// The semaphore at which the medium thread waits to be started.
    start_medium: Semaphore,
    start_high: Semaphore,
    start_helpers: Vec<Semaphore>,
    /// The semaphore for which the medium thread waits once started.
    semaphore: Semaphore,
    work: Nanos,
    over: AtomicBool,
    /// The low thread's priority at each [`Moment`].
    own_priority: [AtomicI32; 3],
    stamps: EventLog,
}

impl Stage {
    fn new(
        scene: &'static Scene,
        protocol: Protocol,
        work: Nanos,
        rounds: usize,
    ) -> Result<Self, Reason> {
        let semaphore = || Semaphore::new().map_err(|error| format!("sem_init: {error}"));
        let mutex = |_| Mutex::new(protocol);
        let mutexes: io::Result<_> = (0..scene.mutexes).map(mutex).collect();
        let start_helpers: Result<_, _> = scene.helpers.iter().map(|_| semaphore()).collect();
        Ok(Self {
            scene,
            mutexes: mutexes.map_err(|error| format!("{}: {error}", protocol.name()))?,
            start_medium: semaphore()?,
            start_high: semaphore()?,
            start_helpers: start_helpers?,
            semaphore: semaphore()?,
            work,
            over: AtomicBool::new(false),
            own_priority: [-1; 3].map(AtomicI32::new),
            stamps: EventLog::new(rounds * scene.events()),
        })
    }

    fn low(&self, rounds: usize, phase: Nanos) {
        sleep(PAUSE + phase);
        self.round(|moment| {
            let found = rt::effective_priority().unwrap_or(-1);
            self.own_priority[moment as usize].store(found, Relaxed);
        });
        threads::lead(1..rounds as u64, PAUSE, None, || self.round(|_| ()));
        self.over.store(true, Relaxed);
        let others = [&self.start_medium, &self.start_high];
        for start in others.into_iter().chain(&self.start_helpers) {
            start.post();
        }
    }

    /// Runs the low thread's part. A thread that it starts or wakes runs at once, unless the
    /// protocol has raised the low thread above it.
    fn round(&self, look: impl Fn(Moment)) {
        self.stamps.mark(LOW_STARTS_MEDIUM, LOW);
        self.start_medium.post();
        self.stamps.mark(LOW_LOCKS, LOW);
        let mut owned = self.mutexes[..self.scene.low_owns].iter().map(Mutex::lock);
        let (first, second) = (owned.next(), owned.next());
        for start in &self.start_helpers {
            self.stamps.mark(LOW_STARTS_HELPER, LOW);
            start.post();
        }
        self.stamps.begin(LOW_STARTS_HIGH, LOW);
        self.start_high.post();
        self.stamps.mark(LOW_RESUMES, LOW);
        look(Moment::Wanted);
        self.stamps.mark(LOW_POSTS, LOW);
        self.semaphore.post();
        self.stamps.mark(LOW_UNLOCKS, LOW);
        drop(first);
        if second.is_some() {
            look(Moment::FirstUnlocked);
            self.stamps.mark(LOW_UNLOCKS_SECOND, LOW);
            drop(second);
        }
        look(Moment::Afterwards);
    }

    fn helper(&self, me: usize) {
        let Helper { owns, wants } = &self.scene.helpers[me];
        let number = HIGH + 1 + me as u32;
        self.start_helpers[me].wait();
        while !self.over.load(Relaxed) {
            let owned = owns.map(|own| self.mutexes[own].lock());
            self.stamps.mark(HELPER_REQUESTS, number);
            let wanted = self.mutexes[*wants].lock();
            self.owns(HELPER_OWNS, number);
            drop(wanted);
            drop(owned);
            self.start_helpers[me].wait();
        }
    }

    fn owns(&self, event: Event, thread: u32) {
        if event == self.scene.last {
            self.stamps.end(event, thread);
        } else {
            self.stamps.mark(event, thread);
        }
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
            let owned = self.mutexes[self.scene.high_wants].lock();
            self.owns(HIGH_OWNS, HIGH);
            owned.unlock();
            self.start_high.wait();
        }
    }
}

/// The outcome of all rounds with one protocol.
struct Outcome {
    /// The times from the start of the high thread until all wanted mutexes were owned. (They do
    /// not begin with its request: with a ceiling it waits before it can even request.)
    waited: Recorder,
    /// The number of rounds in which the medium thread ran before that.
    inverted: usize,
    /// The number of rounds in which the order of events was that of the first.
    alike: usize,
    rounds: usize,
    /// The first round: its events in order.
    story: String,
}

impl Outcome {
    fn of(scene: &Scene, stamps: &[Stamp]) -> Result<Self, Reason> {
        let rounds: Vec<&[Stamp]> = stamps.chunks(scene.events()).collect();
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
            let (started, owns) = (find(round, LOW_STARTS_HIGH)?, find(round, scene.last)?);
            let at = round[started].at - first[0].at;
            outcome
                .waited
                .record(at, round[owns].at - round[started].at);
            outcome.inverted += usize::from(find(round, MEDIUM_RUNS)? < owns);
            outcome.alike += usize::from(order(round) == order(first));
        }
        Ok(outcome)
    }

    fn findings(&self, protocol: Protocol, lent: Vec<Lent>) -> Result<Findings, Reason> {
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
            passed: self.inverted == 0 && lent.iter().all(|lent| lent.found == lent.expected),
            expected: protocol != Protocol::None,
        };
        let mut findings = Findings::from([
            ("inverted".into(), of_all(self.inverted)),
            ("same_order".into(), of_all(self.alike)),
            ("result".into(), result),
        ]);
        findings.extend(lent.into_iter().map(|lent| {
            let name = format!("priority_of_owner_{}", lent.moment);
            (name, rt::lent_priority(lent.found))
        }));
        Ok(findings)
    }
}

/// Returns the position of an event in a round.
fn find(round: &[Stamp], event: Event) -> Result<usize, Reason> {
    let place = round.iter().position(|stamp| stamp.event == event);
    place.ok_or_else(|| format!("a round went by without \"{}\"", EVENTS[event as usize]).into())
}

/// Lists a round's events in order, each with the time since the first.
fn story(round: &[Stamp]) -> String {
    let mut told = String::from("at_ns event\n");
    for stamp in round {
        let at = stamp.at - round[0].at;
        let _ = write!(told, "{:>8} {}", at.0, EVENTS[stamp.event as usize]);
        let helper = stamp.thread.saturating_sub(HIGH);
        told.push_str(if helper > 1 {
            " (second helper)\n"
        } else {
            "\n"
        });
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

    /// Builds rounds in which an event happens every 10 ns.
    fn outcome(rounds: &[[Event; 11]]) -> Outcome {
        let stamp = |(event, place): (Event, i64)| Stamp {
            event,
            thread: 0,
            at: Nanos(place * 10),
        };
        let stamps: Vec<Stamp> = rounds.concat().into_iter().zip(0..).map(stamp).collect();
        Outcome::of(&ONE, &stamps).unwrap()
    }

    #[test]
    fn the_order_of_events_tells_inversion_and_the_time_how_long_the_high_thread_waited() {
        let outcome = outcome(&[PREVENTED, INVERTED]);
        assert_eq!((outcome.inverted, outcome.alike), (1, 1));
        assert!(outcome.story.contains("      80 high owns the mutex\n"));
        let findings = outcome.findings(Protocol::Inherit, Vec::new()).unwrap();
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
            let findings = outcome(rounds).findings(protocol, Vec::new())?;
            Ok::<_, Reason>(findings["result"].clone())
        };
        let reason = result(&[PREVENTED], Protocol::None).unwrap_err();
        assert!(reason.to_string().contains("control"), "{reason}");
        let control = result(&[INVERTED], Protocol::None);
        assert_eq!(control, Ok(verdict(false, false)));
        let prevented = result(&[PREVENTED], Protocol::Protect(9));
        assert_eq!(prevented, Ok(verdict(true, true)));
    }

    #[test]
    fn an_owner_that_is_lent_too_little_has_not_passed() {
        let result = |found| {
            let lent = vec![Lent::new("while_wanted", found, 82)];
            let findings = outcome(&[PREVENTED]).findings(Protocol::Inherit, lent);
            findings.unwrap()["result"].clone()
        };
        assert_eq!(result(82), verdict(true, true));
        assert_eq!(result(81), verdict(false, true));
        assert_eq!(result(-1), verdict(false, true));
    }

    fn verdict(passed: bool, expected: bool) -> Finding {
        Finding::Verdict { passed, expected }
    }

    #[test]
    fn a_round_that_lacks_an_event_is_no_result() {
        assert!(Outcome::of(&ONE, &[]).is_err());
        let stamp = Stamp {
            event: LOW_LOCKS,
            thread: 0,
            at: Nanos::ZERO,
        };
        assert!(Outcome::of(&ONE, &[stamp]).is_err());
    }

    #[test]
    fn inherit_and_protect_prevent_inversion_and_none_does_not() {
        let probe = Inversion {
            rounds: 3,
            work_us: 50,
            ..Inversion::default()
        };
        let phases = Phases::new(1, 1);
        let Some(recordings) = threads::measured(probe.run(&mut Context::new(phases))) else {
            return;
        };
        let is_control = |one: &Recording| one.key.variant.starts_with("none");
        for one in &recordings {
            let passed = !is_control(one);
            assert_eq!(
                one.findings["result"],
                verdict(passed, passed),
                "{}",
                one.key.variant
            );
        }
        let told = |key: &str| -> Vec<Option<Finding>> {
            let all = recordings.iter();
            all.map(|one| one.findings.get(key).cloned()).collect()
        };
        let counts = |all: [u64; 9]| all.map(|count| Some(Finding::Count(count)));
        let wanted = [82, 80, 82, 83, 80, 84, 80, 83, 80];
        assert_eq!(told("priority_of_owner_while_wanted"), counts(wanted));
        assert_eq!(told("priority_of_owner_afterwards"), counts([80; 9]));
        let mut half = vec![None; 7];
        half.extend([82, 80].map(|count| Some(Finding::Count(count))));
        assert_eq!(told("priority_of_owner_after_first_unlock"), half);
        assert!(
            recordings[5]
                .output
                .as_ref()
                .unwrap()
                .contains("second helper")
        );
        // The control is blocked for as long as the medium thread works, at least.
        for control in recordings.iter().filter(|one| is_control(one)) {
            assert!(control.min() >= Some(Nanos::from_micros(50)));
        }
    }
}

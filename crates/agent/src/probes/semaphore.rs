// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `semaphore`: acquire and release of a semaphore when a thread switch comes of it,
//! against the number of threads that wait.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use punctual_model::probe::{FindingView, Form, ProbeInfo, Shape, View, Watched, Windows};
use punctual_model::{CpuId, Finding, Findings, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::event_log::{self, Event, EventLog, Span, Stamp};
use crate::linear_fit::LinearFit;
use crate::rt::Settings;
use crate::stall::{self, Stall};
use crate::sys::semaphore::Semaphore;
use crate::sys::time::sleep;
use crate::threads::{self, ThreadSpec};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "semaphore",
    summary: "acquire and release of a semaphore for which up to 90 threads wait",
    parse: |table| parameters::<Contention>(table, Contention::check),
};

/// How it is shown and explained.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Latency,
        spoken: "acquire or release of a semaphore",
        findings: &[
            FindingView::new("slope_ns_per_waiter", "waiters matter", Form::Matters),
            FindingView::new("slope_ns_per_waiter", "ns per waiter", Form::Plain),
            FindingView::new("woken_highest_first", "highest first", Form::Plain)
                .only_of("release"),
        ],
    },
    scope: Ok(Watched::handover(Windows::InTurns {
        variants: &["acquire", "release"],
        length: Some("waiters"),
    })),
};

/// The creating thread sleeps so long before each round: no multiple of a tick, and long
/// enough that neither real-time throttling nor the fair server finds anything to do.
const PAUSE: Nanos = Nanos::from_micros(1_997);
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);
/// So long after its round's begin a stall begins: within one of the acquisitions.
const STALL_OFFSET: Nanos = Nanos(98_000);

/// What a thread notes.
const ATTEMPTS: Event = 0;
const CREATOR_RUNS: Event = 1;
const POSTS: Event = 2;
const WAITER_RUNS: Event = 3;
/// How many of them each waiter causes in a round.
const EVENTS: usize = 4;

/// The rounds take so many semaphores in turn. The kernel keeps all futexes in some hundred
/// buckets: where a waiter's gate shares that of the semaphore, each call is some
/// instructions longer, which would look like an effect of the number of waiters. As it is,
/// each number meets that in a few rounds only, and the median in none.
const SEMAPHORES: usize = 31;

/// The creating thread's number; the waiters count from 0.
const CREATOR: u32 = u32::MAX;

/// In which order the waiters come to the semaphore.
///
/// It matters, because the kernel keeps waiters sorted by priority (`plist_add`): Linux 6.1
/// looks for the place of a new one from the highest downwards, 6.12 from both ends at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// Each waiter is lower than all before it: the longest search in 6.1.
    Falling,
    /// Each waiter is higher than all before it.
    Rising,
    /// Highest, lowest, second highest, second lowest …: the longest search in 6.12.
    Inward,
}

impl Order {
    /// The waiters, from 0 for the lowest, in the order in which they come.
    fn arrivals(self, waiters: u8) -> Vec<u8> {
        let inward = |turn: u8| {
            if turn % 2 == 0 {
                waiters - 1 - turn / 2
            } else {
                turn / 2
            }
        };
        match self {
            Self::Falling => (0..waiters).rev().collect(),
            Self::Rising => (0..waiters).collect(),
            Self::Inward => (0..waiters).map(inward).collect(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Contention {
    /// How many threads wait when all of them do.
    waiters: u8,
    /// How often all of them come and are released, one by one.
    rounds: u32,
    /// In which order they come.
    order: Order,
    /// Rounds that are gone through first and not counted.
    warmup: u32,
    /// The creating thread's `SCHED_FIFO` priority; the waiters have the next ones above.
    priority: u8,
    /// The CPU that all threads are bound to.
    cpu: CpuId,
    /// A stall that falls into one round, of which `sample` is the number; `offset_ns` says
    /// into which path of it.
    stall: Option<Stall>,
}

impl Default for Contention {
    fn default() -> Self {
        Self {
            waiters: 90,
            rounds: 100,
            order: Order::Inward,
            warmup: 2,
            priority: 5,
            cpu: CpuId(0),
            stall: None,
        }
    }
}

impl Contention {
    fn check(&self) -> Result<(), String> {
        within("waiters", self.waiters, 1, 98)?;
        within("rounds", self.rounds, 1, 10_000)?;
        within("warmup", self.warmup, 0, 10_000)?;
        // There is no priority above 99 for the highest waiter.
        within("priority", self.priority, 1, 99 - self.waiters)?;
        self.stall
            .map_or(Ok(()), |stall| stall.check(self.rounds.into()))
    }

    fn all_rounds(&self) -> usize {
        self.rounds as usize + self.warmup as usize
    }

    fn measure(
        &self,
        phase: Nanos,
        stall: Option<&stall::Within>,
    ) -> Result<(Vec<Stamp>, Settings), Reason> {
        let stage = Stage::new(self).map_err(|error| format!("sem_init: {error}"))?;
        let waiter = |me: u8| {
            let stage = &stage;
            ThreadSpec::new(self.priority + 1 + me, move || stage.waiter(me))
        };
        let creator = ThreadSpec::new(self.priority, || stage.creator(self, phase, stall));
        let members = (0..self.waiters).map(waiter).chain([creator]).collect();
        let mut found = threads::run(self.cpu, members)?;
        found.rotate_right(1);
        let settings = self.settings(&found);
        Ok((stage.stamps.finish()?, settings))
    }

    /// `found`: how the creating thread was scheduled, then the waiters, lowest first.
    fn settings(&self, found: &[Settings]) -> Settings {
        let end = |settings: Option<&Settings>| settings.cloned().unwrap_or_default();
        let ends = [found.first(), found.get(1), found.last()].map(end);
        let mut settings = threads::common(&ends, &["creator", "waiter_lowest", "waiter_highest"]);
        settings.insert("waiters".into(), self.waiters.into());
        settings.insert(
            "order".into(),
            format!("{:?}", self.order).to_lowercase().into(),
        );
        settings
    }
}

impl Measurement for Contention {
    fn nominal(&self) -> Nanos {
        PAUSE * self.all_rounds() as i64
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let stalled = |sample| u64::from(self.warmup) + sample;
        let stall = stall::Within::of(self.stall, stalled, STALL_OFFSET)?;
        let phase = context.phases.below(LONGEST_PHASE);
        let (stamps, settings) = self.measure(phase, stall.as_ref())?;
        let warmup = self.warmup as usize * EVENTS * usize::from(self.waiters);
        let measured = stamps.get(warmup..).unwrap_or_default();
        let acquire = event_log::spans(measured, ATTEMPTS, CREATOR_RUNS);
        let release = event_log::spans(measured, POSTS, WAITER_RUNS);
        // In each round one more is waiting at every attempt, and one fewer at every post.
        let all = usize::from(self.waiters);
        let at_attempt = by_waiting(&acquire, |turn| turn % all);
        let at_post = by_waiting(&release, |turn| all - turn % all);
        let recording = |variant, spans: &[_], values: &ByWaiting| {
            let mut recording = event_log::record(spans).finish(RecordingKey::of_variant(variant));
            recording.warmup = u64::from(self.warmup) * u64::from(self.waiters);
            recording.settings.clone_from(&settings);
            let woken = order_of_waking(measured, all);
            recording.findings = Findings::from([
                ("woken_highest_first".into(), woken),
                ("slope_ns_per_waiter".into(), slope(values)),
            ]);
            recording.output = Some(table(values));
            recording
        };
        let mut recordings = vec![
            recording("acquire", &acquire, &at_attempt),
            recording("release", &release, &at_post),
        ];
        stall::tell(stall, event_log::first(measured), &mut recordings)?;
        Ok(recordings)
    }
}

/// What the threads share.
struct Stage {
    semaphores: Vec<Semaphore>,
    /// Which of them this round is about.
    current: AtomicUsize,
    /// Where each waiter waits for its turn to try.
    gates: Vec<Semaphore>,
    over: AtomicBool,
    stamps: EventLog,
}

impl Stage {
    fn new(probe: &Contention) -> io::Result<Self> {
        let some = |number| (0..number).map(|_| Semaphore::new()).collect();
        let semaphores: io::Result<_> = some(SEMAPHORES);
        let gates: io::Result<_> = some(usize::from(probe.waiters));
        Ok(Self {
            semaphores: semaphores?,
            current: AtomicUsize::new(0),
            gates: gates?,
            over: AtomicBool::new(false),
            stamps: EventLog::new(EVENTS * usize::from(probe.waiters) * probe.all_rounds()),
        })
    }

    fn creator(&self, probe: &Contention, phase: Nanos, stall: Option<&stall::Within>) {
        sleep(phase);
        let arrivals = probe.order.arrivals(probe.waiters);
        let mut turns = self.semaphores.iter().zip(0..).cycle();
        threads::lead(0..probe.all_rounds() as u64, PAUSE, stall, || {
            if let Some((semaphore, current)) = turns.next() {
                self.current.store(current, Relaxed);
                self.round(&arrivals, semaphore);
            }
        });
        self.over.store(true, Relaxed);
        self.gates.iter().for_each(Semaphore::post);
    }

    /// The measurement itself. Every waiter is higher than the creating thread, which
    /// therefore goes on only when the one that it let go is blocked again.
    fn round(&self, arrivals: &[u8], semaphore: &Semaphore) {
        for waiter in arrivals {
            self.gates[usize::from(*waiter)].post();
            self.stamps.end(CREATOR_RUNS, CREATOR);
        }
        for _ in arrivals {
            self.stamps.begin(POSTS, CREATOR);
            semaphore.post();
        }
    }

    fn waiter(&self, me: u8) {
        let gate = &self.gates[usize::from(me)];
        gate.wait();
        while !self.over.load(Relaxed) {
            let semaphore = &self.semaphores[self.current.load(Relaxed)];
            self.stamps.begin(ATTEMPTS, me.into());
            semaphore.wait();
            self.stamps.end(WAITER_RUNS, me.into());
            gate.wait();
        }
    }
}

/// In how many rounds the waiters ran in the order of their priority, highest first.
fn order_of_waking(stamps: &[Stamp], waiters: usize) -> Finding {
    let woken = stamps.iter().filter(|stamp| stamp.event == WAITER_RUNS);
    let woken: Vec<u32> = woken.map(|stamp| stamp.thread).collect();
    let rounds = woken.chunks(waiters);
    let all = rounds.len();
    let falling = rounds.filter(|round| round.is_sorted_by(|higher, lower| higher > lower));
    Finding::Share {
        count: falling.count() as u64,
        of: all as u64,
    }
}

/// All that was measured while the same number of threads was waiting, smallest value first.
fn by_waiting(spans: &[Option<Span>], waiting: impl Fn(usize) -> usize) -> ByWaiting {
    let mut values = ByWaiting::new();
    for (turn, span) in spans.iter().enumerate() {
        if let Some(span) = span {
            values.entry(waiting(turn)).or_default().push(span.value);
        }
    }
    for values in values.values_mut() {
        values.sort_unstable();
    }
    values
}

/// Sorted values by the number of threads that were waiting.
type ByWaiting = BTreeMap<usize, Vec<Nanos>>;

fn median(sorted: &[Nanos]) -> Nanos {
    sorted[(sorted.len() - 1) / 2]
}

/// A table with a line for each number of waiting threads.
fn table(values: &ByWaiting) -> String {
    let mut table = String::from("waiting median_ns mean_ns max_ns\n");
    for (waiting, values) in values {
        let sum: i64 = values.iter().map(|value| value.0).sum();
        let mean = sum as f64 / values.len() as f64;
        let (median, max) = (median(values).0, values[values.len() - 1].0);
        let _ = writeln!(table, "{waiting} {median} {mean:.1} {max}");
    }
    table
}

/// Does the number of waiters matter? The slope of the line through the medians, because a
/// clock tick that falls into some sample says nothing about waiters, and would hide what does.
///
/// Medians are whole nanoseconds: what is smaller than [`ROUNDING`] comes of the arithmetic.
fn slope(values: &ByWaiting) -> Finding {
    const ROUNDING: f64 = 1e-9;
    let medians = values.iter().map(|(x, y)| (*x as f64, median(y).0 as f64));
    let Some(line) = LinearFit::through(&medians.collect::<Vec<_>>()) else {
        return Finding::Absent("it takes three numbers of waiters".into());
    };
    let exact = |number: f64| if number.abs() < ROUNDING { 0.0 } else { number };
    let (low, high) = line.interval_95();
    Finding::estimate(exact(line.slope), (exact(low), exact(high)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::Phases;

    fn values(of: &[(usize, i64)]) -> ByWaiting {
        let spans: Vec<_> = of
            .iter()
            .map(|(_, value)| {
                let (at, value) = (Nanos::ZERO, Nanos(*value));
                Some(Span { at, value })
            })
            .collect();
        by_waiting(&spans, |turn| of[turn].0)
    }

    #[test]
    fn the_table_has_a_line_for_each_number_of_waiters() {
        let table = table(&values(&[(1, 13), (0, 7), (1, 10)]));
        assert_eq!(
            table,
            "waiting median_ns mean_ns max_ns\n0 7 7.0 7\n1 10 11.5 13\n"
        );
    }

    #[test]
    fn a_tick_in_one_sample_does_not_tilt_the_slope() {
        let of = [(1, 20), (2, 25), (3, 30), (3, 900), (3, 30), (4, 35)];
        let Finding::Estimate { value, low, high } = slope(&values(&of)) else {
            panic!("no estimate");
        };
        for found in [value, low, high] {
            assert!((found - 5.0).abs() < 1e-6, "{found}");
        }
    }

    #[test]
    fn a_waiter_that_overtakes_a_higher_one_is_seen() {
        let woken = |thread| Stamp {
            event: WAITER_RUNS,
            thread,
            at: Nanos::ZERO,
        };
        let told = order_of_waking(&[2, 1, 0, 2, 0, 1].map(woken), 3);
        assert_eq!(told, Finding::Share { count: 1, of: 2 });
    }

    #[test]
    fn every_order_lets_each_waiter_come_once() {
        assert_eq!(Order::Falling.arrivals(3), [2, 1, 0]);
        assert_eq!(Order::Rising.arrivals(3), [0, 1, 2]);
        assert_eq!(Order::Inward.arrivals(5), [4, 0, 3, 1, 2]);
    }

    #[test]
    fn the_waiters_fit_below_the_highest_priority() {
        let reason = |probe: Contention| probe.check().unwrap_err();
        let (waiters, priority) = (90, 10);
        let probe = Contention {
            waiters,
            priority,
            ..Contention::default()
        };
        assert!(reason(probe).contains("from 1 to 9"));
    }

    #[test]
    fn each_waiter_is_acquired_and_released_once_a_round() {
        for order in [Order::Rising, Order::Falling, Order::Inward] {
            let (waiters, rounds) = (5, 4);
            let probe = Contention {
                waiters,
                rounds,
                order,
                ..Contention::default()
            };
            let phases = Phases::new(1, 1);
            let recordings = threads::measured(probe.run(&mut Context { phases }));
            for recording in recordings.into_iter().flatten() {
                assert_eq!((recording.count, recording.missed), (20, 0));
                let all = Finding::Share { count: 4, of: 4 };
                assert_eq!(recording.findings["woken_highest_first"], all);
                let highest = &recording.settings["priority_waiter_highest"];
                assert_eq!(highest.number(), Some(10));
            }
        }
    }
}

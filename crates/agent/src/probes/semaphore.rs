// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `semaphore`: acquire and release of a semaphore when they cause a thread switch,
//! against the number of waiting threads. Rounds follow one another in [`bursts`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use punctual_model::probe::{FindingView, Form, ProbeInfo, Shape, View, Watched, Windows};
use punctual_model::{CpuId, Finding, Findings, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Extent, Measurement, Probe, parameters, within};
use crate::bursts::{self, Bursts, Parts};
use crate::event_log::{self, Event, EventLog, Span, Stamp};
use crate::linear_fit::LinearFit;
use crate::rt::Settings;
use crate::stall::Stall;
use crate::sys::semaphore::Semaphore;
use crate::threads::{self, ThreadSpec};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "semaphore",
    summary: "acquire and release of a semaphore for which up to 90 threads wait",
    parse: |table| parameters::<Contention>(table, Contention::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Latency,
        spoken: "acquire or release of a semaphore",
        findings: &[
            FindingView::new("waiters_matter", "waiters matter", Form::Plain),
            FindingView::new("slope_ns_per_waiter", "ns per waiter", Form::Plain),
            FindingView::new("woken_highest_first", "highest first", Form::Plain)
                .only_of("release inward"),
        ],
    },
    scope: Ok(Watched::handover(Windows::ByTimeWithin {
        setting: "waiters",
    })),
};

/// The shortest time of a waiter's arrival and release: eight system calls and four switches.
const SHORTEST: Nanos = Nanos(1_000);

/// The share of the median sample below which the effect of all waiters together is negligible.
const NEGLIGIBLE: f64 = 0.01;

/// Events that a thread notes.
const ATTEMPTS: Event = 0;
const CREATOR_RUNS: Event = 1;
const POSTS: Event = 2;
const WAITER_RUNS: Event = 3;
/// The number of events that each waiter causes in a round.
const EVENTS: usize = 4;

/// A path that is measured of each waiter in a round: from one event to another, and the number
/// of threads that wait meanwhile, by its turn: one more at every attempt, one fewer at every post.
type Path = (&'static str, (Event, Event), fn(usize, usize) -> usize);
const PATHS: [Path; 2] = [
    ("acquire", (ATTEMPTS, CREATOR_RUNS), |turn, all| turn % all),
    ("release", (POSTS, WAITER_RUNS), |turn, all| {
        all - turn % all
    }),
];

/// The number of semaphores that rounds use in turn. The kernel keeps all futexes in some hundred
/// buckets: if a waiter's gate shares that of the semaphore, each call is some
/// instructions longer, which would look like an effect of the number of waiters. As it is,
/// each number of waiters meets that in a few rounds only, and the median in none.
const SEMAPHORES: usize = 31;

/// The creating thread's number; the waiters count from 0.
const CREATOR: u32 = u32::MAX;

/// The order in which the waiters come to the semaphore.
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
    fn name(self) -> &'static str {
        match self {
            Self::Falling => "falling",
            Self::Rising => "rising",
            Self::Inward => "inward",
        }
    }

    /// Returns the waiters, from 0 for the lowest, in the order in which they come.
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
    /// The number of threads that wait when all of them do.
    waiters: u8,
    /// The number of ticks of the kernel's clock for which rounds go on, in each order.
    ticks: u32,
    /// The orders in which they come, in turn; one variant each.
    orders: Vec<Order>,
    /// The creating thread's `SCHED_FIFO` priority; the waiters have the next ones above.
    priority: u8,
    /// The CPU that all threads are bound to.
    cpu: CpuId,
    /// A stall that falls into the burst whose number is `sample`; `offset_ns` gives the position.
    stall: Option<Stall>,
}

impl Default for Contention {
    fn default() -> Self {
        Self {
            waiters: 90,
            ticks: 50,
            orders: vec![Order::Inward, Order::Falling, Order::Rising],
            priority: 5,
            cpu: CpuId(0),
            stall: None,
        }
    }
}

impl Contention {
    fn check(&self) -> Result<(), String> {
        within("waiters", self.waiters, 1, 98)?;
        // There is no priority above 99 for the highest waiter.
        within("priority", self.priority, 1, 99 - self.waiters)?;
        within("number of orders", self.orders.len(), 1, 3)?;
        let repeated = |(place, order)| self.orders[..place].contains(order);
        if let Some((_, order)) = self.orders.iter().enumerate().find(|it| repeated(*it)) {
            return Err(format!("orders names {} twice", order.name()));
        }
        bursts::check(self.ticks, self.stall)
    }

    fn bursts(&self) -> u64 {
        u64::from(self.ticks) * self.orders.len() as u64
    }

    fn measure(&self, bursts: &Bursts) -> Result<(Vec<Stamp>, Settings), Reason> {
        let stage =
            Stage::new(self.waiters, bursts).map_err(|error| format!("sem_init: {error}"))?;
        let waiter = |me: u8| {
            let stage = &stage;
            ThreadSpec::new(self.priority + 1 + me, move || stage.waiter(me))
        };
        let creator = ThreadSpec::new(self.priority, || stage.creator(self, bursts));
        let members = (0..self.waiters).map(waiter).chain([creator]).collect();
        let mut found = threads::run(self.cpu, members)?;
        found.rotate_right(1);
        let settings = self.settings(&found);
        Ok((stage.stamps.finish()?, settings))
    }

    /// Combines the scheduling in `found`: the creating thread's, then the waiters', lowest first.
    fn settings(&self, found: &[Settings]) -> Settings {
        let end = |settings: Option<&Settings>| settings.cloned().unwrap_or_default();
        let ends = [found.first(), found.get(1), found.last()].map(end);
        let mut settings = threads::common(&ends, &["creator", "waiter_lowest", "waiter_highest"]);
        settings.insert("waiters".into(), self.waiters.into());
        settings
    }

    /// Returns the recordings of each path from one part of the test.
    fn recordings<'a>(
        &'a self,
        origin: Nanos,
        part: &'a [Stamp],
        (name, settings): (&'a str, &'a Settings),
    ) -> impl Iterator<Item = Recording> + 'a {
        let all = usize::from(self.waiters);
        PATHS.iter().map(move |(path, events, waiting)| {
            let spans = event_log::spans(origin, part, *events);
            let values = by_waiting(&spans, |turn| waiting(turn, all));
            let key = RecordingKey::of_variant(format!("{path} {name}"));
            let mut recording = event_log::record(&spans).finish(key);
            recording.settings.clone_from(settings);
            recording.findings = Findings::from([
                ("woken_highest_first".into(), order_of_waking(part, all)),
                ("slope_ns_per_waiter".into(), slope(&values)),
                ("waiters_matter".into(), waiters_matter(&values, all)),
            ]);
            recording.output = Some(table(&values));
            recording
        })
    }
}

impl Measurement for Contention {
    fn nominal(&self) -> Nanos {
        bursts::nominal(self.bursts())
    }

    fn extent(&self) -> Option<Extent> {
        Some(bursts::extent(self.ticks))
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let bursts = Bursts::new(self.bursts(), &mut context.phases, self.stall)?;
        let (stamps, settings) = self.measure(&bursts)?;
        let parts = Parts::of(&stamps, self.orders.len() as u32);
        let orders = self.orders.iter().map(|order| order.name());
        let variants = parts.others.iter().zip(orders);
        let variants = variants.chain([(&parts.first, "first")]);
        let recordings = variants
            .flat_map(|(part, name)| self.recordings(parts.origin, part, (name, &settings)));
        let mut recordings: Vec<Recording> = recordings.collect();
        bursts.tell(event_log::first(&stamps), &mut recordings)?;
        Ok(recordings)
    }
}

/// The state that the threads share.
struct Stage {
    semaphores: Vec<Semaphore>,
    /// The index of the semaphore that this round uses.
    current: AtomicUsize,
    /// The gates where each waiter waits for its turn to try.
    gates: Vec<Semaphore>,
    over: AtomicBool,
    stamps: EventLog,
}

impl Stage {
    fn new(waiters: u8, bursts: &Bursts) -> io::Result<Self> {
        let waiters = u64::from(waiters);
        let some = |number| (0..number).map(|_| Semaphore::new()).collect();
        let semaphores: io::Result<_> = some(SEMAPHORES);
        let gates: io::Result<_> = some(waiters as usize);
        let events = EVENTS as u64;
        let a_round_more = events * waiters;
        Ok(Self {
            semaphores: semaphores?,
            current: AtomicUsize::new(0),
            gates: gates?,
            over: AtomicBool::new(false),
            stamps: bursts.log((SHORTEST, events), 3 * a_round_more),
        })
    }

    fn creator(&self, probe: &Contention, bursts: &Bursts) {
        let orders = probe.orders.iter();
        let arrivals: Vec<_> = orders.map(|order| order.arrivals(probe.waiters)).collect();
        let mut turns = self.semaphores.iter().zip(0..).cycle();
        bursts.lead(&self.stamps, arrivals.len() as u32, |kind| {
            if let Some((semaphore, current)) = turns.next() {
                self.current.store(current, Relaxed);
                self.round(&arrivals[kind as usize], semaphore);
            }
        });
        self.over.store(true, Relaxed);
        self.gates.iter().for_each(Semaphore::post);
    }

    /// Measures one round. Every waiter is higher than the creating thread, which
    /// therefore continues only when the waiter that it released is blocked again.
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

/// Counts the rounds in which the waiters ran in order of priority, highest first.
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

/// Groups all values by the number of threads that were waiting, smallest value first.
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

/// Formats a table with a line for each number of waiting threads.
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

/// Fits the line through the medians, because a clock tick that falls into some sample says
/// nothing about waiters, and would hide their effect.
fn line(values: &ByWaiting) -> Result<LinearFit, Finding> {
    let medians = values.iter().map(|(x, y)| (*x as f64, median(y).0 as f64));
    let line = LinearFit::through(&medians.collect::<Vec<_>>());
    line.ok_or_else(|| Finding::Absent("it takes three numbers of waiters".into()))
}

/// Decides whether the number of waiters matters. It does not if the 95 % interval of the slope
/// lies within ±[`NEGLIGIBLE`] of the median sample, divided by all waiters: then all of them
/// together change it by less than that share. It does if the interval lies outside. In any
/// other case there are too few samples to tell.
fn waiters_matter(values: &ByWaiting, waiters: usize) -> Finding {
    let (low, high) = match line(values) {
        Ok(line) => line.interval_95(),
        Err(absent) => return absent,
    };
    let mut medians: Vec<Nanos> = values.values().map(|values| median(values)).collect();
    medians.sort_unstable();
    let bound = NEGLIGIBLE * median(&medians).0 as f64 / waiters as f64;
    let why = format!("{low:.3} to {high:.3} ns per waiter, against a bound of ±{bound:.3}");
    let within = -bound <= low && high <= bound;
    if within || high < -bound || bound < low {
        return Finding::Answer { yes: !within, why };
    }
    Finding::Absent(format!("too few samples: {why}").into())
}

/// Estimates the time that one more waiter adds.
///
/// Medians are whole nanoseconds: values smaller than [`ROUNDING`] are due to the arithmetic.
fn slope(values: &ByWaiting) -> Finding {
    const ROUNDING: f64 = 1e-9;
    let line = match line(values) {
        Ok(line) => line,
        Err(absent) => return absent,
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
    fn waiters_matter_by_a_stated_bound_and_not_by_an_interval_that_touches_zero() {
        // One in a hundred of 3,000 ns among 10 waiters: ±3 ns for each.
        let of = |ns_per_waiter: i64, noise: [i64; 2]| -> Vec<(usize, i64)> {
            let value = |x: usize| 3_000 + x as i64 * ns_per_waiter + noise[x % 2];
            (1..=10).map(|x| (x, value(x))).collect()
        };
        let told = |ns_per_waiter, noise| waiters_matter(&values(&of(ns_per_waiter, noise)), 10);
        let is = |found: Finding, expected: bool| match found {
            Finding::Answer { yes, why } => assert_eq!(yes, expected, "{why}"),
            other => panic!("{other:?}"),
        };
        is(told(0, [0, 0]), false);
        is(told(2, [0, 0]), false); // an interval that leaves zero out, and yet no effect
        is(told(4, [0, 0]), true);
        is(told(-40, [0, 5]), true);
        assert!(matches!(told(3, [0, 30]), Finding::Absent(_)));
        assert!(matches!(told(0, [0, 900]), Finding::Absent(_)));
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
        let (waiters, ticks) = (5, 2);
        let probe = Contention {
            waiters,
            ticks,
            ..Contention::default()
        };
        let phases = Phases::new(1, 1);
        let recordings = threads::measured(probe.run(&mut Context::new(phases)));
        let recordings = recordings.unwrap_or_default();
        for recording in &recordings {
            assert!(recording.count > 0 && recording.count % 5 == 0);
            assert_eq!(recording.missed, 0);
            let of = recording.count / 5;
            let all = Finding::Share { count: of, of };
            assert_eq!(recording.findings["woken_highest_first"], all);
            let highest = &recording.settings["priority_waiter_highest"];
            assert_eq!(highest.number(), Some(10));
        }
        // A round for each burst of each order.
        let first = recordings
            .iter()
            .filter(|one| one.key.variant.ends_with(" first"));
        assert!(first.into_iter().all(|one| one.count == 5 * 6));
    }
}

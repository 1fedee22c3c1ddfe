// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `switch`: thread switch latency among threads of equal priority that yield in turn.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::thread;

use punctual_model::probe::{ProbeInfo, Shape, View, Watched, Windows};
use punctual_model::{CpuId, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Extent, Measurement, Probe, parameters, within};
use crate::bursts::{self, Bursts};
use crate::event_log::{self, Event, EventLog, Stamp};
use crate::rt::Settings;
use crate::stall::Stall;
use crate::status_page;
use crate::threads::{self, ThreadSpec};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "switch",
    summary: "thread switch latency: N SCHED_FIFO threads of equal priority yield in turn",
    parse: |table| parameters::<Switch>(table, Switch::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Steps, "thread switch"),
    scope: Ok(Watched::handover(Windows::ByTimeWithin {
        setting: "threads",
    })),
};

/// The number of first yields of each thread in a burst that count as `N=… first` instead of
/// `N=…`: one to come from the barrier into the ring, one to meet
/// warm caches.
const FIRST_ROUNDS: u64 = 2;
/// The shortest time of a switch: it is a system call and two readings of the clock.
const SHORTEST: Nanos = Nanos(250);

/// Events that a thread notes.
const JOINS: Event = 0;
const YIELDS: Event = 1;
const RUNS: Event = 2;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Switch {
    /// The numbers of threads that take turns; one variant each.
    threads: Vec<u32>,
    /// The number of ticks of the kernel's clock for which they take turns, per variant.
    ticks: u32,
    /// The threads' `SCHED_FIFO` priority.
    priority: u8,
    /// The CPU that all threads are bound to.
    cpu: CpuId,
    /// A stall that falls into the burst whose number is `sample`; `offset_ns` gives the position.
    stall: Option<Stall>,
}

impl Default for Switch {
    fn default() -> Self {
        Self {
            threads: vec![2, 10, 50, 100, 500, 1000],
            ticks: 50,
            priority: 80,
            cpu: CpuId(0),
            stall: None,
        }
    }
}

impl Switch {
    fn check(&self) -> Result<(), String> {
        if self.threads.is_empty() {
            return Err("threads is empty, but it must name at least one number".into());
        }
        for threads in &self.threads {
            within("threads", *threads, 2, 10_000)?;
        }
        within("priority", self.priority, 1, 99)?;
        bursts::check(self.ticks, self.stall)
    }

    fn measure(&self, threads: u32, bursts: Bursts) -> Result<[Recording; 2], Reason> {
        let ring = Ring::new(threads, &bursts);
        let follower = |me| {
            let ring = &ring;
            ThreadSpec::new(self.priority, move || ring.follow(me))
        };
        let leader = ThreadSpec::new(self.priority, || ring.lead());
        let members = (1..threads).map(follower).chain([leader]).collect();
        let settings = threads::run(self.cpu, members)?;
        let mut settings = settings.into_iter().next().unwrap_or_default();
        settings.insert("threads".into(), threads.into());
        let stamps = ring.stamps.finish()?;
        let mut recordings = record(&stamps, threads, &settings);
        bursts.tell(event_log::first(&stamps), &mut recordings)?;
        Ok(recordings)
    }
}

/// Records the switches among so many threads, and those at the start of each burst.
fn record(stamps: &[Stamp], threads: u32, settings: &Settings) -> [Recording; 2] {
    let origin = event_log::first(stamps).unwrap_or_default();
    [("", YIELDS), (" first", JOINS)].map(|(suffix, from)| {
        let spans = event_log::spans(origin, stamps, (from, RUNS));
        let key = RecordingKey::of_variant(format!("N={threads}{suffix}"));
        let mut recording = event_log::record(&spans).finish(key);
        recording.settings.clone_from(settings);
        recording
    })
}

impl Measurement for Switch {
    fn nominal(&self) -> Nanos {
        bursts::nominal(u64::from(self.ticks) * self.threads.len() as u64)
    }

    fn extent(&self) -> Option<Extent> {
        Some(bursts::extent(self.ticks))
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let mut recordings = Vec::new();
        for threads in &self.threads {
            let bursts = Bursts::new(self.ticks.into(), &mut context.phases, self.stall)?;
            match self.measure(*threads, bursts) {
                // Where the target is asked to end, what was measured by then is kept.
                Err(_) if status_page::is_stop_requested() => break,
                measured => recordings.extend(measured?),
            }
        }
        Ok(recordings)
    }
}

/// The state that the threads share.
struct Ring<'a> {
    bursts: &'a Bursts,
    start: Barrier,
    /// True if there are no more bursts.
    over: AtomicBool,
    /// The time when this burst ends; zero until its first rounds are over.
    end: AtomicI64,
    stamps: EventLog,
}

impl<'a> Ring<'a> {
    fn new(threads: u32, bursts: &'a Bursts) -> Self {
        // In each burst every thread comes into the ring, and returns once more in the end.
        let first = u64::from(threads) * (2 * FIRST_ROUNDS + 2);
        Self {
            bursts,
            start: Barrier::new(threads as usize),
            over: AtomicBool::new(false),
            end: AtomicI64::new(0),
            stamps: bursts.log((SHORTEST, 2), first),
        }
    }

    /// Runs the leading thread for its whole life.
    fn lead(&self) {
        self.bursts.each(|| {
            self.end.store(0, Relaxed);
            // The last to come, most likely the one that has slept, wakes all others. Being
            // of equal priority they do not preempt it, so that none is left behind.
            self.start.wait();
            self.take_turns(0);
        });
        self.over.store(true, Relaxed);
        self.start.wait();
    }

    /// Runs any other thread for its whole life.
    fn follow(&self, me: u32) {
        self.start.wait();
        while !self.over.load(Relaxed) {
            self.take_turns(me);
            self.start.wait();
        }
    }

    /// Measures: yields, and notes in the next thread when it runs.
    ///
    /// A thread that is preempted by one of higher priority stays at the head of its queue,
    /// so that the order of turns never changes.
    fn take_turns(&self, me: u32) {
        let mut at = self.stamps.end(RUNS, me);
        let turn = |event| {
            self.stamps.begin(event, me);
            thread::yield_now(); // sched_yield(2)
            self.stamps.end(RUNS, me)
        };
        for _ in 0..FIRST_ROUNDS {
            at = turn(JOINS);
        }
        // Whoever comes first so far says for all when it ends.
        let end = at + self.bursts.tick();
        let set = self.end.compare_exchange(0, end.0, Relaxed, Relaxed);
        let end = set.map_or_else(Nanos, |_| end);
        while at < end {
            at = turn(YIELDS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::Phases;

    #[test]
    fn every_yield_is_a_sample_or_missed_in_each_burst_and_its_first_rounds() {
        // Threads of no particular policy, on any CPUs: only the count is certain.
        let bursts = Bursts::new(2, &mut Phases::new(1, 1), None).unwrap();
        let mut ring = Ring::new(3, &bursts);
        ring.stamps = EventLog::new(1_000_000);
        thread::scope(|scope| {
            scope.spawn(|| ring.lead());
            for me in 1..3 {
                let ring = &ring;
                scope.spawn(move || ring.follow(me));
            }
        });
        let stamps = ring.stamps.finish().unwrap();
        let [others, first] = record(&stamps, 3, &Settings::new());
        let yields = stamps.iter().filter(|stamp| stamp.event == YIELDS).count() as u64;
        assert_eq!(others.count + others.missed, yields);
        assert_eq!(first.count + first.missed, 3 * FIRST_ROUNDS * 2);
    }

    #[test]
    fn two_threads_that_may_share_a_cpu_by_fifo_miss_no_switch() {
        let bursts = Bursts::new(2, &mut Phases::new(1, 1), None).unwrap();
        let measured = threads::measured(Switch::default().measure(2, bursts));
        let Some([others, first]) = measured else {
            return;
        };
        assert!(others.count > 0);
        assert_eq!((others.missed, first.missed), (0, 0));
        assert_eq!(first.count, 2 * FIRST_ROUNDS * 2);
        assert_eq!(others.settings["policy"].text(), Some("SCHED_FIFO"));
    }
}

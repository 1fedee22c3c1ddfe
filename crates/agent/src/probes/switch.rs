// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `switch`: thread switch latency among threads of equal priority that yield in turn.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use punctual_model::probe::{ProbeInfo, Shape, View, Watched, Windows};
use punctual_model::{CpuId, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, each, parameters, within};
use crate::event_log::{self, Event, EventLog};
use crate::stall::{self, Stall};
use crate::status_page;
use crate::threads::{self, ThreadSpec};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "switch",
    summary: "thread switch latency: N SCHED_FIFO threads of equal priority yield in turn",
    parse: |table| parameters::<Switch>(table, Switch::check),
};

/// How it is shown and explained.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Steps, "thread switch"),
    // Whoever joins the ring has not yielded in it.
    scope: Ok(Watched::handover(Windows::OneAfterTheOther {
        warmup: false,
    })),
};

/// Threads that yield to each other leave nothing to others, for which the kernel has two
/// remedies: real-time throttling, and from 6.12 on the fair server; either would take the
/// CPU for 50 ms in each second and look like a switch of 50 ms. So they run in bursts of
/// this many switches, well below a second at 100 µs each, and sleep in between.
const BURST: u64 = 5_000;
const PAUSE: Nanos = Nanos::from_millis(50);
/// How often each thread yields at the start of a burst before its switches count: once to
/// come from the barrier into the ring, once to meet warm caches.
const WARMUP_ROUNDS: u64 = 2;

/// The first moment of a burst lies up to a tick of 4 ms off the round moment.
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);
/// So long after its burst's begin a stall begins, if threads are few enough to be warm then.
const STALL_OFFSET: Nanos = Nanos(500_000);

/// What a thread notes.
const JOINS: Event = 0;
const YIELDS: Event = 1;
const RUNS: Event = 2;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Switch {
    /// How many threads take turns; one variant each.
    threads: Vec<u32>,
    /// How many switches are measured, per variant.
    samples: u64,
    /// The threads' `SCHED_FIFO` priority.
    priority: u8,
    /// The CPU that all threads are bound to.
    cpu: CpuId,
    /// A stall that falls into one switch of the burst in which `sample` is.
    stall: Option<Stall>,
}

impl Default for Switch {
    fn default() -> Self {
        Self {
            threads: vec![2, 10, 50, 100, 500, 1000],
            samples: 10_000,
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
        within("samples", self.samples, 1, 1_000_000)?;
        within("priority", self.priority, 1, 99)?;
        self.stall.map_or(Ok(()), |stall| stall.check(self.samples))
    }

    fn measure(&self, threads: u32, phase: Nanos) -> Result<Recording, Reason> {
        let ring = Ring::new(threads, self.samples, phase);
        let stall = stall::Within::of(self.stall, |sample| sample / BURST, STALL_OFFSET)?;
        let member = |me| {
            let (ring, stall) = (&ring, stall.as_ref());
            ThreadSpec::new(self.priority, move || ring.take_part(me, stall))
        };
        let settings = threads::run(self.cpu, (0..threads).map(member).collect())?;
        let stamps = ring.stamps.finish()?;
        let spans = event_log::spans(&stamps, YIELDS, RUNS);
        let mut recording =
            event_log::record(&spans).finish(RecordingKey::of_variant(format!("N={threads}")));
        recording.warmup = stamps.iter().filter(|stamp| stamp.event == JOINS).count() as u64;
        recording.settings = settings.into_iter().next().unwrap_or_default();
        recording.settings.insert("threads".into(), threads.into());
        let recordings = std::slice::from_mut(&mut recording);
        stall::tell(stall, event_log::first(&stamps), recordings)?;
        Ok(recording)
    }
}

impl Measurement for Switch {
    fn nominal(&self) -> Nanos {
        PAUSE * (self.samples.div_ceil(BURST) as i64 * self.threads.len() as i64)
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(LONGEST_PHASE);
        let measure = |threads: &u32| self.measure(*threads, phase);
        each(&self.threads, measure)
    }
}

/// What the threads share.
struct Ring {
    samples: u64,
    pause: Nanos,
    start: Barrier,
    /// Whether all of them end before the next burst.
    over: AtomicBool,
    /// How many switches were begun that count.
    taken: AtomicU64,
    stamps: EventLog,
}

impl Ring {
    fn new(threads: u32, samples: u64, phase: Nanos) -> Self {
        // In each burst every thread joins so many times, and returns once more in the end.
        let joining = u64::from(threads) * (2 * WARMUP_ROUNDS + 1);
        let room = 2 * samples + joining * samples.div_ceil(BURST);
        Self {
            samples,
            pause: PAUSE + phase,
            start: Barrier::new(threads as usize),
            over: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            stamps: EventLog::new(room as usize),
        }
    }

    /// One thread's whole life.
    fn take_part(&self, me: u32, stall: Option<&stall::Within>) {
        let mut end = 0;
        while end < self.samples {
            let burst = end / BURST;
            end = self.samples.min(end + BURST);
            if me == 0 {
                stall::pause(stall, burst, self.pause);
                self.over.store(status_page::is_stop_requested(), Relaxed);
            }
            // The last to come, most likely the one that has slept, wakes all others. Being
            // of equal priority they do not preempt it, so that none is left behind.
            self.start.wait();
            if self.over.load(Relaxed) {
                break;
            }
            self.take_turns(me, end);
        }
    }

    /// The measurement itself: yield, and note in the next thread when it runs.
    ///
    /// A thread that is preempted by one of higher priority stays at the head of its queue,
    /// so that the order of turns never changes.
    fn take_turns(&self, me: u32, end: u64) {
        let mut round = 0;
        while self.taken.load(Relaxed) < end {
            if round < WARMUP_ROUNDS {
                self.stamps.mark(JOINS, me);
            } else {
                self.taken.fetch_add(1, Relaxed);
                self.stamps.begin(YIELDS, me);
            }
            thread::yield_now(); // sched_yield(2)
            self.stamps.end(RUNS, me);
            round += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_yield_is_a_sample_or_missed_over_several_bursts() {
        // Threads of no particular policy, on any CPUs: only the count is certain. Up to one
        // yield per thread and burst is begun beyond the limit before all have seen it.
        let samples = BURST + 100;
        let mut ring = Ring::new(3, samples, Nanos::ZERO);
        ring.pause = Nanos::ZERO;
        ring.stamps = EventLog::new(4 * samples as usize);
        thread::scope(|scope| {
            for me in 0..3 {
                let ring = &ring;
                scope.spawn(move || ring.take_part(me, None));
            }
        });
        let stamps = ring.stamps.finish().unwrap();
        let recording = event_log::record(&event_log::spans(&stamps, YIELDS, RUNS))
            .finish(RecordingKey::of_variant(""));
        let counted = recording.count + recording.missed;
        assert!((samples..samples + 6).contains(&counted), "{counted}");
    }

    #[test]
    fn two_threads_that_may_share_a_cpu_by_fifo_miss_no_switch() {
        let probe = Switch {
            threads: vec![2],
            samples: 1_000,
            ..Switch::default()
        };
        if let Some(recording) = threads::measured(probe.measure(2, Nanos::ZERO)) {
            assert_eq!((recording.count, recording.missed), (1_000, 0));
            assert_eq!(recording.warmup, 2 * WARMUP_ROUNDS);
            assert_eq!(recording.settings["policy"].text(), Some("SCHED_FIFO"));
        }
    }
}

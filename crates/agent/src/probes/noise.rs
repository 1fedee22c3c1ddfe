// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `noise`: everything that takes a CPU from a thread that never gives it up.
//!
//! Threads read the clock in a loop, one on each CPU, like rtla's osnoise and oslat. An
//! interruption is not guessed from the length of a gap: the processor reports it, by
//! [`kernel_entry`]. So each is kept, however short. A gap without one is not caused by this
//! kernel on this CPU, but by a layer below it.

use std::sync::Barrier;
use std::thread;

use punctual_model::probe::{
    FindingView, Form, ProbeInfo, SampleSpan, Shape, View, Watched, Windows,
};
use punctual_model::recording::{KEEP_MOST, OBSERVED, TRACING_OVERHEAD};
use punctual_model::{CpuId, Finding, Findings, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Extent, Measurement, Probe, parameters, within};
use crate::loads;
use crate::rt::{self, Faults};
use crate::sink::Sink;
use crate::stall::{self, Stall};
use crate::status_page::SeenRecorder;
use crate::sys::sched::{self, Policy};
use crate::sys::time::{now, sleep};
use crate::sys::{kernel_entry, marker};
use crate::threads::{self, Started};
use crate::tracer::Watcher;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "noise",
    summary: "each interruption of a thread that never gives up its CPU, as rtla osnoise and oslat",
    parse: |table| parameters::<Noise>(table, Noise::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Latency,
        spoken: "interruption of a thread that never sleeps",
        findings: &[
            FindingView::new(RATE, "rate", Form::Plain),
            FindingView::new(SHARE, "time taken", Form::Plain),
            FindingView::new(HARDWARE_SHARE, "hardware noise", Form::Plain),
        ],
    },
    scope: Ok(Watched {
        span: SampleSpan::Gap,
        windows: Windows::BySample,
        stages: &[],
    }),
};

/// The names of its findings.
const RATE: &str = "interruption_rate";
const SHARE: &str = "interrupted_share";
const HARDWARE_SHARE: &str = "hardware_noise";
const HARDWARE_COUNT: &str = "hardware_noise_count";
const HARDWARE_WORST: &str = "hardware_noise_worst";

/// The time in which earlier work, such as the start of the thread itself, is over.
const SETTLING: Nanos = Nanos::from_millis(100);
/// The longest delay of a thread's start, up to a tick of 4 ms; the seed chooses it.
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);
/// The time from the start to a stall, off the ticks.
const STALL_OFFSET: Nanos = Nanos(51_000_000);

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Noise {
    /// The time for which each thread holds its CPU.
    duration_ms: u32,
    /// A gap between two reads of the clock that is longer than this, and in which the kernel
    /// did nothing, is hardware noise.
    threshold_ns: u32,
    /// The threads' `SCHED_FIFO` priority; 0 for `SCHED_OTHER`.
    priority: u8,
    /// One thread is bound to each of these CPUs; empty means all that the target may use.
    cpus: Vec<CpuId>,
    /// The number of interruptions of each CPU that are kept raw.
    keep: u32,
    /// A stall on the first of these CPUs; it is not meant for any sample.
    stall: Option<Stall>,
}

impl Default for Noise {
    fn default() -> Self {
        Self {
            duration_ms: 2_000,
            threshold_ns: 1_000,
            priority: 0,
            cpus: vec![],
            keep: 100_000,
            stall: None,
        }
    }
}

impl Noise {
    fn check(&self) -> Result<(), String> {
        within("duration_ms", self.duration_ms, 10, 3_600_000)?;
        within("threshold_ns", self.threshold_ns, 100, 1_000_000)?;
        within("priority", self.priority, 0, 99)?;
        within("keep", self.keep, 0, KEEP_MOST)?;
        self.stall.map_or(Ok(()), |stall| stall.check(1))
    }

    fn duration(&self) -> Nanos {
        Nanos::from_millis(self.duration_ms.into())
    }

    fn policy(&self) -> Policy {
        match self.priority {
            0 => Policy::Other,
            _ => Policy::Fifo,
        }
    }

    /// Runs one thread for its whole life: returns when it began to look, and what it saw.
    fn observe(
        &self,
        cpu: CpuId,
        phase: Nanos,
        start: &Barrier,
        stall: Option<&stall::Within>,
        watcher: Option<&Watcher>,
    ) -> Result<(Nanos, Recording), Reason> {
        let mut recorder = SeenRecorder::new(self.keep as usize, 0).of_cpu(cpu);
        let settings = rt::prepare_thread_as(self.policy(), cpu, self.priority);
        let least = settings.and_then(|settings| Ok((settings, self.least_gap()?)));
        // Also a thread that cannot measure comes to the barrier, so that the others go on.
        start.wait();
        let (mut settings, least) = least?;
        sleep(SETTLING + phase);
        if let Some(stall) = stall {
            stall.arm(now());
        }
        loads::begin();
        let faults = Faults::of_thread();
        let begin = now();
        let (threshold, duration) = (self.threshold_ns.into(), self.duration());
        let (mut captures, mut of_reading) = (Vec::new(), Faults::default());
        let seen;
        match watcher {
            None => seen = watch(&mut recorder, threshold, begin, duration),
            Some(watcher) => {
                let mut sink = watcher.watch(recorder, cpu, begin);
                seen = watch(&mut sink, threshold, begin, duration);
                (recorder, captures, of_reading) = sink.finish();
            }
        }
        settings.extend(faults.until_now().without(of_reading).facts());
        settings.insert(TRACING_OVERHEAD.into(), least.into());
        let mut recording = recorder.finish(RecordingKey::of_variant(cpu.to_string()));
        let observed = seen.end - begin - seen.held;
        recording.findings = seen
            .hardware
            .findings(recording.count, recording.sum, observed);
        recording.captures = captures;
        recording.settings = settings;
        Ok((begin, recording))
    }

    /// Returns the length of an empty sample; an error if interruptions cannot be noticed.
    fn least_gap(&self) -> Result<Nanos, Reason> {
        match kernel_entry::is_told() {
            Ok(true) => {}
            Ok(false) => {
                return Err(kernel_entry::NOT_TOLD.into());
            }
            Err(error) => return Err(format!("cannot try a page fault: {error}").into()),
        }
        let least = shortest_gap();
        if least.0 > i64::from(self.threshold_ns) {
            return Err(format!(
                "reading the clock takes {least}, longer than threshold_ns = {}: raise it",
                self.threshold_ns
            )
            .into());
        }
        Ok(least)
    }
}

/// Gaps in which the kernel did nothing on this CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HardwareNoise {
    count: u64,
    sum: Nanos,
    worst: Nanos,
}

impl HardwareNoise {
    #[inline]
    fn note(&mut self, gap: Nanos) {
        self.count += 1;
        self.sum += gap;
        self.worst = self.worst.max(gap);
    }

    fn findings(self, count: u64, sum: Nanos, observed: Nanos) -> Findings {
        let share = |part: Nanos| Finding::ratio(part.0 as f64, observed.0 as f64);
        Findings::from([
            (OBSERVED.into(), Finding::Nanos(observed)),
            (RATE.into(), Finding::rate(count, observed)),
            (SHARE.into(), share(sum)),
            (HARDWARE_SHARE.into(), share(self.sum)),
            (HARDWARE_COUNT.into(), Finding::Count(self.count)),
            (HARDWARE_WORST.into(), Finding::Nanos(self.worst)),
        ])
    }
}

/// The observations of a thread besides its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    /// The time of the last reading.
    end: Nanos,
    /// The time for which it did not look, because it read a trace.
    held: Nanos,
    hardware: HardwareNoise,
}

/// Measures: reads the clock until the duration is over, and records each gap in which the kernel
/// came in, from the last reading before it to the first one after it.
#[inline(never)]
fn watch(sink: &mut impl Sink, threshold_ns: i64, begin: Nanos, duration: Nanos) -> Seen {
    let (mut held, mut hardware) = (Nanos::ZERO, HardwareNoise::default());
    let mut before = begin;
    kernel_entry::arm();
    while before - begin < duration && !sink.is_over() {
        marker::armed();
        let mut after = now();
        if kernel_entry::has_come() {
            after = undisturbed();
            marker::taken();
            sink.record(before - begin, after - before);
            if sink.held_until().is_some() {
                let looks_again = undisturbed();
                held += looks_again - after;
                after = looks_again;
            }
        } else if (after - before).0 > threshold_ns {
            hardware.note(after - before);
        }
        before = after;
    }
    Seen {
        end: before,
        held,
        hardware,
    }
}

/// Reads the clock without an interruption; from then on interruptions are noticed.
#[inline]
fn undisturbed() -> Nanos {
    loop {
        kernel_entry::arm();
        let reading = now();
        if !kernel_entry::has_come() {
            return reading;
        }
    }
}

/// Returns the shortest of many gaps that an interruption of no length would cause.
fn shortest_gap() -> Nanos {
    let gap = |_| {
        let before = now();
        let between = now();
        kernel_entry::has_come();
        undisturbed().max(between) - before
    };
    (0..1_000).map(gap).min().unwrap_or_default()
}

impl Measurement for Noise {
    fn nominal(&self) -> Nanos {
        self.duration() + SETTLING
    }

    fn cpus(&self) -> &[CpuId] {
        &self.cpus
    }

    fn watched_priority(&self) -> Option<u8> {
        Some(self.priority)
    }

    fn extent(&self) -> Option<Extent> {
        Some(Extent {
            parameter: "duration_ms",
            each: Nanos::from_millis(1),
            most: u64::MAX,
            own: None,
        })
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(LONGEST_PHASE);
        let cpus = match self.cpus.as_slice() {
            [] => sched::affinity().map_err(|error| format!("sched_getaffinity: {error}"))?,
            cpus => cpus.to_vec(),
        };
        let start = Barrier::new(cpus.len());
        let stall = stall::Within::of(self.stall, |_| 0, STALL_OFFSET)?;
        let watcher = context.watcher.as_deref();
        let observe = |(cpu, stall)| self.observe(cpu, phase, &start, stall, watcher);
        let observe = &observe;
        let seen = thread::scope(|scope| {
            let stalls = std::iter::once(stall.as_ref()).chain(std::iter::repeat(None));
            let threads =
                threads::start_all(scope, None, cpus.iter().copied().zip(stalls), observe)?;
            let join = |thread: Started<'_, Result<_, Reason>>| thread.join()?;
            threads.into_iter().map(join).collect::<Result<Vec<_>, _>>()
        })?;
        let first = seen.first().map(|(begin, _)| *begin);
        let mut recordings: Vec<Recording> = seen.into_iter().map(|(_, one)| one).collect();
        stall::tell(stall, first, &mut recordings[..1])?;
        Ok(recordings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::Phases;
    use crate::threads;

    #[test]
    fn what_is_interrupted_is_counted_and_nothing_else_is() {
        let cpu = sched::affinity().unwrap()[0];
        let probe = Noise {
            duration_ms: 50,
            cpus: vec![cpu],
            ..Noise::default()
        };
        let phases = Phases::new(1, 1);
        let measured = threads::measured(probe.run(&mut Context::new(phases)));
        let recordings = measured.unwrap_or_default();
        for one in &recordings {
            assert_eq!(one.key.variant, cpu.to_string());
            assert!(one.observed() >= Some(Nanos::from_millis(50)));
            assert_eq!(one.settings["policy"].text(), Some("SCHED_OTHER"));
            let overhead = one.tracing_overhead().unwrap();
            assert!(one.min().is_none_or(|min| min >= overhead), "{one:?}");
        }
    }

    #[test]
    fn no_interruption_is_a_result() {
        let findings = HardwareNoise::default().findings(0, Nanos::ZERO, Nanos::from_millis(500));
        assert_eq!(findings[RATE], Finding::PerSecond(0.0));
        assert_eq!(findings[SHARE], Finding::Ratio(0.0));
        let twice = HardwareNoise::default().findings(2, Nanos(500), Nanos::from_millis(500));
        assert_eq!(twice[RATE], Finding::PerSecond(4.0));
        assert_eq!(twice[SHARE], Finding::Ratio(1e-6));
    }

    #[test]
    fn the_watching_loop_allocates_nothing() {
        let mut recorder = SeenRecorder::new(10, 0);
        let before = crate::sys::counting_allocator::allocations();
        watch(&mut recorder, 1, now(), Nanos::from_millis(20));
        assert_eq!(crate::sys::counting_allocator::allocations(), before);
    }
}

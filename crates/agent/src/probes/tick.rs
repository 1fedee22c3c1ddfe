// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `tick`: the time for which the clock tick takes the CPU away from a running thread.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use punctual_model::probe::{
    FindingView, Form, ProbeInfo, SampleSpan, Shape, View, Watched, Windows,
};
use punctual_model::recording::{OBSERVED, TRACING_OVERHEAD};
use punctual_model::{CpuId, Finding, Findings, Nanos, Reason, Recorder, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::loads;
use crate::rt::{self, Faults, Settings};
use crate::setting::SettingGuard;
use crate::stall::{self, Stall};
use crate::status_page;
use crate::sys::time::{self, now};
use crate::sys::{marker, sched};
use crate::threads;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "tick",
    summary: "how long the clock tick, and what else interrupts, holds up a running thread",
    parse: |table| parameters::<Tick>(table, Tick::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Latency,
        spoken: "interruption of a running thread",
        findings: &[
            FindingView::new("cpu_lost_to_ticks", "lost to ticks", Form::Plain).only_of("tick"),
            FindingView::new("cpu_lost", "lost in all", Form::Plain).only_of("tick"),
            FindingView::new("kernel_counter_agrees", "kernel's count", Form::Agrees)
                .only_of("tick"),
        ],
    },
    scope: Ok(Watched {
        span: SampleSpan::Gap,
        windows: Windows::ByTime,
        stages: &[],
    }),
};

/// The time after which work caused by turning the guards (the kernel logs it) is over.
const SETTLING: Nanos = Nanos::from_millis(100);
/// The gap length from which another thread may be the cause, so that the kernel is asked.
const SUSPICIOUS: Nanos = Nanos::from_micros(100);
/// The divisor of the period that gives the tolerance of a tick around the common phase.
const PHASE_TOLERANCE: i64 = 40;
/// Room for interruptions; a measurement that fills it ends, and is refused.
const ROOM: usize = 200_000;

/// The time from the start to a stall, off the ticks.
const STALL_OFFSET: Nanos = Nanos(51_000_000);

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Tick {
    /// The time for which the thread holds its CPU. Nothing else runs there meanwhile, so it is
    /// kept well below the 20 s after which the kernel believes that it hangs.
    duration_ms: u32,
    /// A gap between two reads of the clock that is longer than this is an interruption.
    threshold_ns: u32,
    /// The CPU that is watched.
    cpu: CpuId,
    /// The thread's `SCHED_FIFO` priority.
    priority: u8,
    /// A stall that interrupts the thread; it is not meant for any sample.
    stall: Option<Stall>,
}

impl Default for Tick {
    fn default() -> Self {
        Self {
            duration_ms: 2_000,
            threshold_ns: 1_000,
            cpu: CpuId(0),
            priority: 99,
            stall: None,
        }
    }
}

/// A gap between two reads of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interruption {
    begin: Nanos,
    length: Nanos,
    /// True if another thread ran meanwhile.
    preempted: bool,
}

/// The observations of the thread.
struct Observation {
    begin: Nanos,
    end: Nanos,
    found: Vec<Interruption>,
    /// The shortest time between two reads of the clock.
    step: Nanos,
    /// The kernel's own count of this CPU's timer interrupts meanwhile.
    counted: Option<u64>,
    settings: Settings,
}

impl Tick {
    fn check(&self) -> Result<(), String> {
        within("duration_ms", self.duration_ms, 100, 10_000)?;
        within("threshold_ns", self.threshold_ns, 100, 1_000_000)?;
        within("priority", self.priority, 1, 99)?;
        self.stall.map_or(Ok(()), |stall| stall.check(1))
    }

    fn duration(&self) -> Nanos {
        Nanos::from_millis(self.duration_ms.into())
    }

    /// Runs the measuring thread for its whole life.
    fn observe(&self, phase: Nanos, stall: Option<&stall::Within>) -> Result<Observation, Reason> {
        let mut found = Vec::with_capacity(ROOM);
        found.resize(ROOM, Interruption::NONE);
        found.clear();
        let mut settings = rt::prepare_thread(self.cpu, self.priority)?;
        let threshold = Nanos(self.threshold_ns.into());
        let step = shortest_step();
        if step * 2 > threshold {
            return Err(format!(
                "reading the clock takes {step}, too long for a threshold of {threshold}: raise threshold_ns"
            )
            .into());
        }
        time::sleep(SETTLING + phase);
        if let Some(stall) = stall {
            stall.arm(now());
        }
        loads::begin();
        let before = timer_interrupts(self.cpu);
        let faults = Faults::of_thread();
        marker::armed();
        let begin = now();
        let end = watch(&mut found, threshold, begin, begin + self.duration());
        settings.extend(faults.until_now().facts());
        settings.insert(TRACING_OVERHEAD.into(), step.into());
        let after = timer_interrupts(self.cpu);
        Ok(Observation {
            begin,
            end,
            found,
            step,
            counted: before.zip(after).map(|(before, after)| after - before),
            settings,
        })
    }
}

impl Interruption {
    const NONE: Self = Self {
        begin: Nanos::ZERO,
        length: Nanos::ZERO,
        preempted: false,
    };
}

/// Measures: reads the clock until `end`, and notes each gap above the threshold.
#[inline(never)]
fn watch(found: &mut Vec<Interruption>, threshold: Nanos, begin: Nanos, end: Nanos) -> Nanos {
    let mut preemptions = sched::preemptions().unwrap_or(0);
    let mut before = begin;
    while before < end && found.len() < ROOM && !status_page::is_stop_requested() {
        marker::armed();
        let mut after = now();
        let length = after - before;
        if length > threshold {
            marker::taken();
            let mut interruption = Interruption {
                begin: before,
                length,
                preempted: false,
            };
            if length >= SUSPICIOUS {
                let asked = sched::preemptions().unwrap_or(0);
                interruption.preempted = asked != preemptions;
                preemptions = asked;
                marker::armed();
                after = now();
            }
            found.push(interruption);
        }
        before = after;
    }
    before
}

/// Returns the shortest of many times between two reads of the clock.
fn shortest_step() -> Nanos {
    let mut before = now();
    let mut shortest = Nanos(i64::MAX);
    for _ in 0..1_000 {
        let after = now();
        shortest = shortest.min(after - before);
        before = after;
    }
    shortest
}

impl Measurement for Tick {
    fn nominal(&self) -> Nanos {
        self.duration() + SETTLING
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let tick = time::tick().map_err(|error| format!("clock_getres: {error}"))?;
        let (phase, probe) = (context.phases.below(tick), self.clone());
        let guards = hold_throttling(self.cpu);
        let stall = stall::Within::of(self.stall, |_| 0, STALL_OFFSET)?;
        let mut observation = threads::alone(|| probe.observe(phase, stall.as_ref()))?;
        observation.settings.extend(throttling(&guards));
        drop(guards);
        let mut recordings = report(&observation, tick)?;
        stall::tell(stall, Some(observation.begin), &mut recordings)?;
        Ok(recordings)
    }
}

/// Switches off, if possible, everything that takes the CPU from a thread that never sleeps.
fn hold_throttling(cpu: CpuId) -> [Result<SettingGuard, String>; 2] {
    let server = format!("/sys/kernel/debug/sched/fair_server/{cpu}/runtime");
    [
        SettingGuard::set("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
        SettingGuard::set(&server, "0"),
    ]
}

fn throttling(guards: &[Result<SettingGuard, String>; 2]) -> Settings {
    let told = |setting: &Result<SettingGuard, String>| match setting {
        Ok(setting) => format!("off, was {}", setting.before()).into(),
        Err(reason) => format!("as it was: {reason}").into(),
    };
    Settings::from([
        ("rt_throttling".into(), told(&guards[0])),
        ("fair_server".into(), told(&guards[1])),
    ])
}

/// Makes recordings from the observations, if the kernel's counter agrees.
fn report(seen: &Observation, tick: Nanos) -> Result<Vec<Recording>, Reason> {
    if seen.found.len() >= ROOM {
        let message = "interruptions are too many to be told apart: raise threshold_ns";
        return Err(format!("{ROOM} {message}").into());
    }
    let sorted = Sorted::new(seen, tick);
    let findings = sorted.findings(seen, tick)?;
    let record = |variant: &str, interruptions: &[Interruption], missed: u64| {
        let mut recorder = Recorder::new(interruptions.len());
        for one in interruptions {
            recorder.record(one.begin - seen.begin, one.length);
        }
        recorder.miss(missed);
        let mut recording = recorder.finish(RecordingKey::of_variant(variant));
        recording.settings.clone_from(&seen.settings);
        recording.findings.clone_from(&findings);
        recording
    };
    let mut ticks = record("tick", &sorted.ticks, sorted.missed);
    ticks.interval = Some(tick);
    let mut recordings = vec![ticks, record("other", &sorted.others, 0)];
    if !sorted.preemptions.is_empty() {
        recordings.push(record("preempted", &sorted.preemptions, 0));
    }
    Ok(recordings)
}

/// Interruptions, sorted by cause.
struct Sorted {
    /// Interruptions that come once in a period, all at the same phase of it.
    ticks: Vec<Interruption>,
    /// Other interrupts.
    others: Vec<Interruption>,
    /// Other threads: throttling, the fair server, the kernel's own threads.
    preemptions: Vec<Interruption>,
    /// Periods without a tick that can be distinguished from something else.
    missed: u64,
    /// The moment of the tick in its period, on `CLOCK_MONOTONIC`.
    phase: Nanos,
}

impl Sorted {
    fn new(seen: &Observation, tick: Nanos) -> Self {
        let (preemptions, interrupts): (Vec<_>, Vec<_>) =
            seen.found.iter().partition(|one| one.preempted);
        let tolerance = Nanos(tick.0 / PHASE_TOLERANCE);
        let phase = common_phase(&interrupts, tick, tolerance);
        let due = |moment: Nanos| (moment - phase).0.div_euclid(tick.0);
        let periods = (due(seen.end) - due(seen.begin)) as usize;
        let mut chosen = nearest_in_each_period(&interrupts, tick, tolerance, phase);
        if chosen.len() * 2 < periods {
            // What seems to be in phase is so by chance: there is no tick on this CPU.
            chosen.clear();
        }
        let (mut ticks, mut others) = (Vec::new(), Vec::new());
        for (index, one) in interrupts.into_iter().enumerate() {
            let kind = if chosen.contains(&index) {
                &mut ticks
            } else {
                &mut others
            };
            kind.push(one);
        }
        let missed = periods.saturating_sub(ticks.len()) as u64;
        Self {
            ticks,
            others,
            preemptions,
            missed,
            phase,
        }
    }

    fn findings(&self, seen: &Observation, tick: Nanos) -> Result<Findings, Reason> {
        let sum = |ones: &[Interruption]| ones.iter().map(|one| one.length.0).sum::<i64>();
        let kinds = [&self.ticks, &self.others, &self.preemptions].map(|ones| sum(ones));
        let lost: i64 = kinds.iter().sum();
        let observed = seen.end - seen.begin;
        let share = |part: i64| Finding::ratio(part as f64, observed.0 as f64);
        let preempted = self.preemptions.len() as u64;
        Ok(Findings::from([
            ("tick_length".into(), Finding::Nanos(tick)),
            ("tick_phase".into(), Finding::Nanos(self.phase)),
            ("clock_step".into(), Finding::Nanos(seen.step)),
            (OBSERVED.into(), Finding::Nanos(observed)),
            ("cpu_lost_time".into(), Finding::Nanos(Nanos(lost))),
            ("cpu_lost".into(), share(lost)),
            ("cpu_lost_to_ticks".into(), share(kinds[0])),
            ("preempted".into(), Finding::Count(preempted)),
            (
                "kernel_counter_agrees".into(),
                self.agreement(seen.counted)?,
            ),
        ]))
    }

    /// Checks whether the kernel's counter and the ticks found can both be true: each tick is a
    /// timer interrupt, and each further timer interrupt is another interruption, hidden in
    /// one, or came between a read of the counter and the measurement.
    fn agreement(&self, counted: Option<u64>) -> Result<Finding, Reason> {
        const BEFORE_AND_AFTER: u64 = 4;
        let Some(counted) = counted else {
            let why = "no line for this CPU's timer";
            return Ok(Finding::Absent(Reason::unreadable("/proc/interrupts", why)));
        };
        let ticks = self.ticks.len() as u64;
        let unseen = self.missed + (self.others.len() + self.preemptions.len()) as u64;
        let why = format!("{ticks} ticks found, {counted} timer interrupts counted by the kernel");
        if (ticks..=ticks + unseen + BEFORE_AND_AFTER).contains(&counted) {
            Ok(Finding::Answer { yes: true, why })
        } else {
            Err(format!("the kernel's counter does not agree: {why}").into())
        }
    }
}

/// Returns the phase around which the most interruptions begin: the middle one of the densest
/// stretch of a period that is twice as long as the tolerance.
fn common_phase(interrupts: &[Interruption], tick: Nanos, tolerance: Nanos) -> Nanos {
    let mut phases: Vec<i64> = interrupts
        .iter()
        .map(|one| one.begin.0.rem_euclid(tick.0))
        .collect();
    phases.sort_unstable();
    // A stretch may reach over the end of a period.
    let around: Vec<i64> = phases.iter().map(|phase| phase + tick.0).collect();
    phases.extend(around);
    let stretch = |first: usize| {
        let end = phases[first] + tolerance.0 * 2;
        phases[first..].partition_point(|phase| *phase <= end)
    };
    let densest = (0..interrupts.len()).max_by_key(|first| (stretch(*first), usize::MAX - first));
    densest.map_or(Nanos::ZERO, |first| {
        Nanos(phases[first + stretch(first) / 2].rem_euclid(tick.0))
    })
}

/// Returns, for each period, the interruption nearest to the phase, if one is near enough.
fn nearest_in_each_period(
    interrupts: &[Interruption],
    tick: Nanos,
    tolerance: Nanos,
    phase: Nanos,
) -> BTreeSet<usize> {
    let mut nearest: BTreeMap<i64, (i64, usize)> = BTreeMap::new();
    for (index, one) in interrupts.iter().enumerate() {
        let since = (one.begin - phase).0 + tick.0 / 2;
        let period = since.div_euclid(tick.0);
        let distance = (since.rem_euclid(tick.0) - tick.0 / 2).abs();
        if distance <= tolerance.0 {
            let best = nearest.entry(period).or_insert((distance, index));
            *best = (*best).min((distance, index));
        }
    }
    nearest.into_values().map(|(_, index)| index).collect()
}

/// Returns the number of timer interrupts that the kernel has counted on a CPU.
fn timer_interrupts(cpu: CpuId) -> Option<u64> {
    counted(&fs::read_to_string("/proc/interrupts").ok()?, cpu)
}

/// Reads the count of timer interrupts. The line is `LOC` on x86; on Arm it is that of the
/// architecture's timer. Other architectures have names of their own.
fn counted(interrupts: &str, cpu: CpuId) -> Option<u64> {
    let (heads, lines) = interrupts.split_once('\n')?;
    let name = format!("CPU{}", cpu.0);
    let column = heads.split_whitespace().position(|head| head == name)?;
    let is_timer =
        |line: &&str| line.trim_start().starts_with("LOC:") || line.contains("arch_timer");
    #[cfg(any(target_arch = "arm", target_arch = "riscv64"))]
    let is_timer = |line: &&str| is_timer(line) || line.contains(crate::sys::arch::TIMER);
    let line = lines.lines().find(is_timer)?;
    line.split_whitespace().nth(column + 1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Nanos = Nanos::from_millis(4);

    fn interruption(begin: Nanos, micros: i64) -> Interruption {
        Interruption {
            begin,
            length: Nanos::from_micros(micros),
            preempted: false,
        }
    }

    /// Makes a hundred ticks at a phase of `phase` that last 5 µs, with further interruptions.
    fn observation(phase: Nanos, besides: &[Interruption], counted: u64) -> Observation {
        let begin = Nanos::from_millis(1_000);
        let ticks = (0..100).map(|n| interruption(begin + phase + TICK * n, 5));
        let mut found: Vec<_> = ticks.chain(besides.iter().copied()).collect();
        found.sort_by_key(|one| one.begin);
        Observation {
            begin,
            end: begin + TICK * 100,
            found,
            step: Nanos(30),
            counted: Some(counted),
            settings: Settings::new(),
        }
    }

    #[test]
    fn what_is_in_phase_is_a_tick_and_nothing_else_is() {
        // One stray just before a tick, one far from any, one period's length after it.
        let strays = [1_000_900, 1_001_500, 1_005_500]
            .map(|micros| interruption(Nanos::from_micros(micros), 20));
        let sorted = Sorted::new(&observation(Nanos::from_millis(1), &strays, 103), TICK);
        assert_eq!((sorted.ticks.len(), sorted.missed), (100, 0));
        assert_eq!(sorted.others, strays);
        assert_eq!(sorted.phase, Nanos::from_millis(1));
    }

    #[test]
    fn a_phase_at_the_end_of_a_period_is_one_phase() {
        let mut seen = observation(Nanos::ZERO, &[], 100);
        for (one, wobble) in seen.found.iter_mut().zip([-40, 0, 40].into_iter().cycle()) {
            one.begin += Nanos::from_micros(wobble);
        }
        let sorted = Sorted::new(&seen, TICK);
        assert_eq!((sorted.ticks.len(), sorted.others.len()), (100, 0));
    }

    #[test]
    fn a_preemption_is_no_tick_although_it_hides_some() {
        let mut seen = observation(Nanos::from_millis(1), &[], 100);
        // Another thread runs from the tenth tick on for 50 ms.
        let begin = seen.found[10].begin;
        seen.found.drain(10..23);
        let mut preemption = interruption(begin, 50_000);
        preemption.preempted = true;
        seen.found.insert(10, preemption);
        let sorted = Sorted::new(&seen, TICK);
        assert_eq!(sorted.preemptions, [preemption]);
        assert_eq!((sorted.ticks.len(), sorted.missed), (87, 13));
        let recordings = report(&seen, TICK).unwrap();
        let variants: Vec<_> = recordings
            .iter()
            .map(|one| one.key.variant.as_str())
            .collect();
        assert_eq!(variants, ["tick", "other", "preempted"]);
        assert_eq!(recordings[0].missed, 13);
    }

    #[test]
    fn a_cpu_without_a_tick_has_none() {
        let mut seen = observation(Nanos::ZERO, &[], 5);
        seen.found.truncate(5);
        let sorted = Sorted::new(&seen, TICK);
        assert_eq!((sorted.ticks.len(), sorted.others.len()), (0, 5));
        assert!(sorted.agreement(seen.counted).is_ok());
    }

    #[test]
    fn nothing_seen_is_nothing_reported() {
        let mut seen = observation(Nanos::ZERO, &[], 1);
        seen.found.clear();
        let recordings = report(&seen, TICK).unwrap();
        assert!(recordings.iter().all(|recording| recording.count == 0));
    }

    #[test]
    fn a_counter_that_disagrees_refuses_the_measurement() {
        let told = |counted| report(&observation(Nanos::ZERO, &[], counted), TICK);
        let agreed = &told(101).unwrap()[0].findings["kernel_counter_agrees"];
        assert!(matches!(agreed, Finding::Answer { yes: true, .. }));
        let reason = told(99).unwrap_err().to_string();
        assert!(reason.contains("99 timer interrupts"), "{reason}");
        assert!(told(200).is_err());
    }

    #[test]
    fn the_counter_of_the_right_cpu_is_read() {
        let x86 = "           CPU0       CPU2\n  1:  9  8  IO-APIC  1-edge  i8042\n\
                   NMI:  0  0  Non-maskable interrupts\nLOC:  233  77  Local timer interrupts\n";
        assert_eq!(counted(x86, CpuId(0)), Some(233));
        assert_eq!(counted(x86, CpuId(2)), Some(77));
        assert_eq!(counted(x86, CpuId(1)), None);
        let arm = "      CPU0  CPU1\n 11:  5  6  GICv3  27 Level  arch_timer\n";
        assert_eq!(counted(arm, CpuId(1)), Some(6));
        assert_eq!(counted("CPU0\nERR: 0\n", CpuId(0)), None);
    }

    #[test]
    fn the_watching_loop_allocates_nothing() {
        let mut found = Vec::with_capacity(ROOM);
        let begin = now();
        let before = crate::sys::counting_allocator::allocations();
        // So low a threshold makes an interruption of nearly every read.
        watch(&mut found, Nanos(1), begin, begin + Nanos::from_millis(2));
        assert_eq!(crate::sys::counting_allocator::allocations(), before);
        assert!(!found.is_empty());
        assert!(
            found
                .iter()
                .all(|one| one.begin >= begin && one.length > Nanos(1))
        );
    }
}

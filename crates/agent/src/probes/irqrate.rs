// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `irqrate`: the shortest interval between interrupts at which none is lost.
//!
//! A comparator of the HPET interrupts at an interval that no software keeps, and its
//! counter tells how many interrupts were due. Those that the hard handler did not see
//! separately were lost. The intervals become smaller and smaller; at each there are several
//! bursts, each of them many clock ticks long, at phases that the seed decides.

use std::fmt::Write;
use std::mem;
use std::path::Path;

use punctual_model::probe::{FindingView, Form, ProbeInfo, Shape, View};
use punctual_model::{CpuId, Finding, Findings, Nanos, Reason, Recorder, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, each, irq, parameters, within};
use crate::phases::Phases;
use crate::rt::{self, Faults, Settings};
use crate::status_page;
use crate::sys::pulse::{BURST_MAX, Burst, INTERVAL_FREE, Pulse, Source};
use crate::sys::time;
use crate::threads;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "irqrate",
    summary: "the shortest interval between interrupts at which a burst of them loses none",
    parse: |table| parameters::<Irqrate>(table, Irqrate::check),
};

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Findings,
        spoken: "",
        findings: &[
            FindingView::new("shortest_interval", "none lost at", Form::Plain),
            FindingView::new("longest_losing", "some lost at", Form::Plain),
            FindingView::new("lost_there", "lost there", Form::Plain),
        ],
    },
    scope: Err("has no samples of the time between two moments"),
};

/// The step of intervals: each is a whole number of steps, plus [`ODD`].
const STEP: Nanos = Nanos(100);
/// The rest of each interval. So none has a divisor in common with a tick of 1, 2, 4 or 10 ms, in
/// units of the HPET's 10 ns: each tick of a burst comes elsewhere between two interrupts.
const ODD: Nanos = Nanos(30);
/// The steps of the shortest interval that the device makes; no handler keeps up with it.
const SHORTEST: i64 = 10;
/// The steps of the first interval that is tried; doubled while any interrupt is lost.
const FIRST: i64 = 512;
/// The longest interval: if interrupts are lost even at this one, something else is wrong.
const LONGEST: i64 = FIRST << 7;
/// The divisor of the first strides downwards; later ones are that part of the previous strides.
const STRIDE: i64 = 8;
/// The rest before each burst: the kernel does meanwhile what the previous burst held up.
const REST: Nanos = Nanos::from_millis(10);
/// The longest delay of a burst, so that it begins anywhere in a tick.
const LONGEST_PHASE: Nanos = Nanos::from_millis(4);

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Irqrate {
    /// The smallest numbers of interrupts in a burst; one recording for each. The default is small
    /// enough for a virtual bench; the original has 1000, a million and a billion.
    bursts: Vec<u64>,
    /// The shortest duration of a burst: at short intervals it has as many more interrupts.
    burst_ms: u32,
    /// The number of bursts at each interval.
    repeats: u32,
    /// True if each interrupt also wakes a threaded handler.
    threaded: bool,
    /// The time by which the hard handler is prolonged.
    handler_ns: u32,
    /// The `SCHED_FIFO` priority of the thread that waits for the end.
    priority: u8,
    /// The CPU that is interrupted.
    cpu: CpuId,
}

impl Default for Irqrate {
    fn default() -> Self {
        Self {
            bursts: vec![1_000],
            burst_ms: 100,
            repeats: 3,
            threaded: true,
            handler_ns: 0,
            priority: 80,
            cpu: CpuId(0),
        }
    }
}

/// The result of the bursts at one interval.
#[derive(Debug, Default)]
struct Tried {
    /// The actual interval: a whole number of the HPET's own ticks.
    interval: Nanos,
    /// The number of interrupts that were due.
    due: u64,
    /// Those of them that the hard handler did not see separately.
    lost: u64,
    /// The page faults of the waiting thread.
    faults: Faults,
}

impl Irqrate {
    fn check(&self) -> Result<(), String> {
        within("the number of bursts", self.bursts.len(), 1, 10)?;
        for burst in &self.bursts {
            within("bursts", *burst, 10, 1_000_000_000)?;
        }
        within("burst_ms", self.burst_ms, 1, 60_000)?;
        within("repeats", self.repeats, 1, 1_000)?;
        within("handler_ns", self.handler_ns, 0, 1_000_000)?;
        within("priority", self.priority, 1, 99)
    }

    /// Returns the number of interrupts in a burst of at least `least` at this interval.
    fn count(&self, least: u64, interval: Nanos) -> u64 {
        let time = Nanos::from_millis(self.burst_ms.into());
        least.max((time.0 as u64).div_ceil(interval.0 as u64))
    }

    /// Returns the number of parts in which the device makes `count` interrupts: at an interval
    /// that leaves no time to others, it makes them only for a limited time.
    fn parts(&self, count: u64, interval: Nanos) -> u64 {
        let free = INTERVAL_FREE + Nanos(self.handler_ns.into());
        let most = (BURST_MAX.0 / interval.0) as u64;
        if interval < free {
            count.div_ceil(most)
        } else {
            1
        }
    }

    /// Runs the bursts at one interval.
    fn attempt(&self, least: u64, interval: Nanos, phases: &mut Phases) -> Result<Tried, Reason> {
        let count = self.count(least, interval);
        let parts = self.parts(count, interval);
        let burst = Burst {
            source: Source::Hpet,
            interval,
            count: count.div_ceil(parts),
            records: 0,
            cpu: Some(self.cpu),
            threaded: self.threaded,
            handler: Nanos(self.handler_ns.into()),
        };
        let pulse = Pulse::open(Path::new(irq::DEVICE), &burst)?;
        let mut tried = Tried::default();
        for _ in 0..parts * u64::from(self.repeats) {
            if status_page::is_stop_requested() {
                return Err("it was interrupted".into());
            }
            time::sleep(REST + phases.below(LONGEST_PHASE));
            let faults = Faults::of_thread();
            run(&pulse, burst.count, &mut tried)?;
            tried.faults = mem::take(&mut tried.faults).and(faults.until_now());
        }
        Ok(tried)
    }

    /// Runs the thread for its whole life.
    fn measure(&self, phases: &mut Phases) -> Result<Vec<Recording>, Reason> {
        let settings = rt::prepare_thread(self.cpu, self.priority)?;
        let mut first = FIRST;
        each(&self.bursts, |least| {
            let mut all = Vec::new();
            let limit = descend(first, |interval| {
                all.push(self.attempt(*least, interval, phases)?);
                Ok(all.last().is_some_and(|tried| tried.lost > 0))
            })?;
            // Another burst begins well above what this one has found.
            first = ((limit.0 * 2) / STEP.0).min(LONGEST);
            Ok(self.recording(*least, limit, &all, &settings))
        })
    }

    fn recording(&self, least: u64, limit: Nanos, all: &[Tried], settings: &Settings) -> Recording {
        let mut recorder = Recorder::new(1);
        recorder.record(Nanos::ZERO, limit);
        let mut recording = recorder.finish(RecordingKey::of_variant(format!("burst of {least}")));
        recording.settings.clone_from(settings);
        recording.settings.extend([
            ("source".into(), "hpet".into()),
            ("threaded".into(), self.threaded.into()),
            ("handler_ns".into(), self.handler_ns.into()),
            ("burst_ms".into(), self.burst_ms.into()),
            ("repeats".into(), self.repeats.into()),
        ]);
        let faults = all.iter().map(|tried| tried.faults.clone());
        let faults = faults.fold(Faults::default(), Faults::and);
        recording.settings.extend(faults.facts());
        recording.findings = findings(limit, all);
        recording.output = Some(table(all));
        recording
    }
}

/// Runs one burst, to its end.
fn run(pulse: &Pulse, count: u64, tried: &mut Tried) -> Result<(), Reason> {
    let failed = |error| format!("{}: {error}", irq::DEVICE);
    pulse.start().map_err(failed)?;
    // Nothing is kept, so this waits for the end.
    pulse.wait().map_err(failed)?;
    let stats = pulse.stats().map_err(failed)?;
    if stats.raised != count {
        return Err(format!("{} of {count} interrupts were due", stats.raised).into());
    }
    tried.interval = Nanos((stats.interval_fs / 1_000_000) as i64);
    tried.due += stats.raised;
    tried.lost += stats.raised - stats.handled;
    Ok(())
}

fn findings(limit: Nanos, all: &[Tried]) -> Findings {
    let losing = all.iter().filter(|tried| tried.lost > 0);
    let longest = losing.max_by_key(|tried| tried.interval);
    let none = || Finding::Absent("none was lost at the shortest interval of the device".into());
    let lost = longest.map_or_else(none, |tried| Finding::Share {
        count: tried.lost,
        of: tried.due,
    });
    let interval = longest.map_or_else(none, |tried| Finding::Nanos(tried.interval));
    Findings::from([
        ("shortest_interval".into(), Finding::Nanos(limit)),
        ("longest_losing".into(), interval),
        ("lost_there".into(), lost),
    ])
}

/// Lists each interval that was tried, in order of time.
fn table(all: &[Tried]) -> String {
    let mut text = "interval_us  interrupts  lost\n".to_owned();
    for tried in all {
        let micros = tried.interval.as_micros_f64();
        let (due, lost) = (tried.due, tried.lost);
        _ = writeln!(text, "{micros:11.2}  {due:10}  {lost}");
    }
    text
}

/// Finds the interval one step above the longest one that `loses`. From `first` on, intervals
/// become smaller in strides of whole steps, which become finer after each interval that loses.
fn descend(
    first: i64,
    mut loses: impl FnMut(Nanos) -> Result<bool, Reason>,
) -> Result<Nanos, Reason> {
    let interval = |steps| STEP * steps + ODD;
    // In steps: the longest interval that loses, the shortest known above which none does.
    let (mut low, mut high) = (SHORTEST - 1, first);
    while loses(interval(high))? {
        if high >= LONGEST {
            return Err(format!("interrupts were lost even at {}", interval(high)).into());
        }
        (low, high) = (high, high * 2);
    }
    let mut part = STRIDE;
    while high - low > 1 {
        let next = high - (high / part).max(1);
        if next <= low {
            part *= STRIDE;
        } else if loses(interval(next))? {
            low = next;
            part *= STRIDE;
        } else {
            high = next;
        }
    }
    Ok(interval(high))
}

impl Measurement for Irqrate {
    fn nominal(&self) -> Nanos {
        // Nobody knows yet how many intervals there will be, and how long.
        const TRIED: i64 = 16;
        let first = STEP * FIRST + ODD;
        let counts = self.bursts.iter().map(|least| self.count(*least, first));
        first * TRIED * (counts.sum::<u64>() * u64::from(self.repeats)) as i64
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        threads::alone(|| self.measure(&mut context.phases))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result if everything shorter than `limit` loses, and the intervals tried.
    fn found(limit: Nanos) -> (Result<Nanos, Reason>, Vec<Nanos>) {
        let mut tried = Vec::new();
        let found = descend(FIRST, |interval| {
            tried.push(interval);
            Ok(interval < limit)
        });
        (found, tried)
    }

    #[test]
    fn the_limit_is_found_to_a_step_and_nothing_is_tried_twice() {
        for limit in [1_000, 1_031, 2_430, 7_340, 51_229, 51_230, 51_231, 400_000] {
            let (found, mut tried) = found(Nanos(limit));
            let found = found.unwrap();
            let least = limit.max(1_030);
            assert!((least..least + 100).contains(&found.0), "{limit}: {found}");
            assert!(tried.len() < 50, "{}", tried.len());
            let all = tried.len();
            tried.sort_unstable();
            tried.dedup();
            assert_eq!(tried.len(), all);
        }
    }

    #[test]
    fn intervals_become_smaller_until_one_loses() {
        let (_, tried) = found(Nanos(20_000));
        let first = tried.iter().position(|one| *one < Nanos(20_000)).unwrap();
        assert!(first > 2 && tried[..=first].is_sorted_by(|one, next| one > next));
    }

    #[test]
    fn a_loss_by_chance_is_never_explained_away() {
        // 12.7 µs loses once, and shorter intervals never do.
        let mut once = 0;
        let found = descend(FIRST, |interval| {
            let loses = interval < Nanos(13_000) && once == 0;
            once += u32::from(loses);
            Ok(loses)
        });
        assert!(once == 1 && found.unwrap() > Nanos(12_000));
    }

    #[test]
    fn each_tick_comes_elsewhere_between_two_interrupts() {
        let divisor = |mut a: i64, mut b: i64| {
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        for steps in SHORTEST..=FIRST {
            let interval = (STEP * steps + ODD).0 / 10;
            for tick in [100_000, 200_000, 400_000, 1_000_000] {
                assert_eq!(divisor(tick, interval), 1, "{interval}");
            }
        }
    }

    #[test]
    fn a_burst_is_long_in_time_and_in_number() {
        let irqrate = Irqrate::default();
        assert_eq!(irqrate.count(1_000, Nanos(100_000)), 1_000);
        assert_eq!(irqrate.count(1_000, Nanos(4_000)), 25_000);
        // The device leaves nobody else time for a minute at most.
        let billion = |ns| irqrate.parts(1_000_000_000, Nanos(ns));
        assert_eq!((billion(5_000), billion(20_000)), (84, 1));
    }

    #[test]
    fn a_kernel_that_always_loses_has_no_limit() {
        let reason = found(Nanos(i64::MAX)).0.unwrap_err();
        assert!(reason.to_string().contains("lost even at"), "{reason}");
    }

    #[test]
    fn what_was_lost_at_the_longest_interval_is_told() {
        let tried = |interval, lost| Tried {
            interval: Nanos(interval),
            due: 9,
            lost,
            faults: Faults::default(),
        };
        let found = findings(
            Nanos(4_130),
            &[tried(5_000, 0), tried(3_030, 4), tried(4_030, 1)],
        );
        assert_eq!(found["longest_losing"], Finding::Nanos(Nanos(4_030)));
        assert_eq!(found["lost_there"], Finding::Share { count: 1, of: 9 });
        let found = findings(Nanos(1_030), &[tried(1_030, 0)]);
        assert!(matches!(found["longest_losing"], Finding::Absent(_)));
    }

    #[test]
    fn an_attempt_that_fails_ends_it() {
        let reason = descend(FIRST, |_| Err("no /dev/pulse".into())).unwrap_err();
        assert_eq!(reason, Reason::from("no /dev/pulse"));
    }
}

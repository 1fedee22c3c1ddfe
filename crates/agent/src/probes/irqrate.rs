// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `irqrate`: the shortest interval between interrupts at which none is lost.
//!
//! A comparator of the HPET interrupts at an interval that no software keeps, and its
//! counter tells how many interrupts were due. Those that the hard handler did not see
//! apart were lost. For each length of burst the interval is narrowed down by bisection.

use std::fmt::Write;
use std::path::Path;
use std::thread;

use punctual_model::probe::{FindingView, Form, ProbeInfo, Shape, View};
use punctual_model::{CpuId, Finding, Nanos, Reason, Recorder, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, each, irq, parameters, within};
use crate::rt::{self, Settings};
use crate::status_page;
use crate::sys::pulse::{BURST_MAX, Burst, INTERVAL_FREE, Pulse, Source, Stats};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "irqrate",
    summary: "the shortest interval between interrupts at which a burst of them loses none",
    parse: |table| parameters::<Irqrate>(table, Irqrate::check),
};

/// How it is shown and explained.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View {
        shape: Shape::Findings,
        spoken: "",
        findings: &[FindingView::new(
            "shortest_interval",
            "none lost at",
            Form::Plain,
        )],
    },
    scope: Err("has no samples of the time between two moments"),
};

/// Intervals are tried in steps of this.
const STEP: Nanos = Nanos(100);
/// The shortest that the device makes; nothing keeps up with it.
const SHORTEST: Nanos = Nanos(1_000);
/// The first one that is tried; doubled until none is lost.
const FIRST: Nanos = Nanos(51_200);
/// Where interrupts are lost even at this interval, something else is wrong.
const LONGEST: Nanos = Nanos(51_200 << 7);

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Irqrate {
    /// How many interrupts a burst has; one recording for each. The default is small enough
    /// for a virtual bench; the original has 1000, a million and a billion.
    bursts: Vec<u64>,
    /// Whether each interrupt also wakes a threaded handler.
    threaded: bool,
    /// How much longer the hard handler is made.
    handler_ns: u32,
    /// The `SCHED_FIFO` priority of the thread that waits for the end.
    priority: u8,
    /// The CPU that is interrupted.
    cpu: CpuId,
}

impl Default for Irqrate {
    fn default() -> Self {
        Self {
            bursts: vec![1_000, 10_000],
            threaded: true,
            handler_ns: 0,
            priority: 80,
            cpu: CpuId(0),
        }
    }
}

impl Irqrate {
    fn check(&self) -> Result<(), String> {
        within("the number of bursts", self.bursts.len(), 1, 10)?;
        within("handler_ns", self.handler_ns, 0, 1_000_000)?;
        let free = INTERVAL_FREE + Nanos(self.handler_ns.into());
        let most = BURST_MAX.0 / free.0;
        for burst in &self.bursts {
            within("bursts", *burst, 10, most as u64)?;
        }
        within("priority", self.priority, 1, 99)
    }

    /// How a burst goes at this interval.
    fn attempt(&self, count: u64, interval: Nanos) -> Result<Stats, Reason> {
        let burst = Burst {
            source: Source::Hpet,
            interval,
            count,
            records: 0,
            cpu: Some(self.cpu),
            threaded: self.threaded,
            handler: Nanos(self.handler_ns.into()),
        };
        let pulse = Pulse::open(Path::new(irq::DEVICE), &burst)?;
        let failed = |error| format!("{}: {error}", irq::DEVICE);
        pulse.start().map_err(failed)?;
        // Nothing is kept, so this waits for the end.
        pulse.wait().map_err(failed)?;
        let stats = pulse.stats().map_err(failed)?;
        if stats.raised != count {
            return Err(format!("{} of {count} interrupts were due", stats.raised).into());
        }
        Ok(stats)
    }

    /// The thread's whole life.
    fn measure(&self) -> Result<Vec<Recording>, Reason> {
        let settings = rt::prepare_thread(self.cpu, self.priority)?;
        let burst = |count: &u64| self.narrow(*count, &settings);
        each(&self.bursts, burst)
    }

    fn narrow(&self, count: u64, settings: &Settings) -> Result<Recording, Reason> {
        let mut tried = "interval_us  lost\n".to_owned();
        let interval = shortest(|interval| {
            if status_page::is_stop_requested() {
                return Err("it was interrupted".into());
            }
            let stats = self.attempt(count, interval)?;
            let lost = stats.raised - stats.handled;
            let micros = interval.0 as f64 / 1_000.0;
            _ = writeln!(tried, "{micros:11.1}  {lost}");
            Ok(lost)
        })?;
        let mut recorder = Recorder::new(1);
        recorder.record(Nanos::ZERO, interval);
        let mut recording = recorder.finish(RecordingKey::of_variant(format!("burst of {count}")));
        recording.settings.clone_from(settings);
        let shortest = ("shortest_interval".into(), Finding::Nanos(interval));
        recording.findings.extend([shortest]);
        recording.settings.extend([
            ("source".into(), "hpet".into()),
            ("threaded".into(), self.threaded.into()),
            ("handler_ns".into(), self.handler_ns.into()),
        ]);
        recording.output = Some(tried);
        Ok(recording)
    }
}

/// The shortest interval at which `lost` says 0, to one [`STEP`], provided that longer ones
/// lose none either.
fn shortest(mut lost: impl FnMut(Nanos) -> Result<u64, Reason>) -> Result<Nanos, Reason> {
    let (mut loses, mut keeps) = (SHORTEST, FIRST);
    loop {
        let number = lost(keeps)?;
        if number == 0 {
            break;
        }
        if keeps == LONGEST {
            return Err(format!("{number} were lost even at {LONGEST}").into());
        }
        (loses, keeps) = (keeps, keeps * 2);
    }
    while keeps - loses > STEP {
        let steps = (keeps - loses).0 / STEP.0;
        let middle = loses + STEP * (steps / 2);
        if lost(middle)? == 0 {
            keeps = middle;
        } else {
            loses = middle;
        }
    }
    Ok(keeps)
}

impl Measurement for Irqrate {
    fn nominal(&self) -> Nanos {
        // Most attempts are near the limit, which nobody knows yet.
        FIRST * self.bursts.iter().sum::<u64>() as i64
    }

    fn run(&self, _: &mut Context) -> Result<Vec<Recording>, Reason> {
        let measure = || self.measure();
        let joined = thread::scope(|scope| scope.spawn(measure).join());
        joined.map_err(|_| "the measuring thread has panicked")?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found where everything shorter than `limit` loses, and in how many attempts.
    fn found(limit: Nanos) -> (Result<Nanos, Reason>, u32) {
        let mut attempts = 0;
        let found = shortest(|interval| {
            attempts += 1;
            Ok(u64::from(interval < limit))
        });
        (found, attempts)
    }

    #[test]
    fn the_limit_is_found_to_a_tenth_of_a_microsecond() {
        for limit in [1_100, 1_101, 7_340, 51_199, 51_200, 51_201, 400_000] {
            let (found, attempts) = found(Nanos(limit));
            let found = found.unwrap();
            assert!((limit..limit + 100).contains(&found.0), "{limit}: {found}");
            assert!(attempts < 20, "{attempts}");
        }
    }

    #[test]
    fn a_kernel_that_always_loses_has_no_limit() {
        let reason = found(Nanos(i64::MAX)).0.unwrap_err();
        assert!(reason.to_string().contains("lost even at"), "{reason}");
    }

    #[test]
    fn an_attempt_that_fails_ends_it() {
        let reason = shortest(|_| Err("no /dev/pulse".into())).unwrap_err();
        assert_eq!(reason, Reason::from("no /dev/pulse"));
    }
}

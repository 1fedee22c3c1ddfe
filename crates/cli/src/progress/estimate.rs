// SPDX-License-Identifier: MIT OR Apache-2.0
//! Estimates the time that runs may still take.

use std::time::Duration;

use punctual_agent::probes;
use punctual_model::Plan;
use punctual_model::plan::{IDLE, Step};

/// The least time for a step, whatever it measures: its load settles, and measurements counted in
/// rounds and not in time take about this long.
const STEP: Duration = Duration::from_secs(2);

/// Time on the wall per virtual time: a loaded guest runs all of it, an idle one sleeps.
const LOADED: f64 = 8.0;
const SLEEPING: f64 = 0.5;

/// The time for which the expectation counts as much as the observed pace.
const TRUST: Duration = Duration::from_secs(10);

/// The expected duration of each step of a plan, from the least time that its samples take. The
/// unit is roughly a second on the wall; [`Estimate`] learns how long it really is.
pub fn expected(plan: &Plan, is_virtual: bool) -> Vec<Duration> {
    let of_step = |step: &Step| {
        // Another run of the same measurement has it.
        if step.skip {
            return Duration::ZERO;
        }
        let measurement = probes::parse(&step.probe, &step.params).ok();
        let nominal = measurement.map_or(0.0, |measurement| measurement.nominal().as_secs_f64());
        let factor = match (is_virtual, step.load == IDLE) {
            (false, _) => 1.0,
            (true, true) => SLEEPING,
            (true, false) => LOADED,
        };
        STEP + Duration::try_from_secs_f64(nominal * factor).unwrap_or(Duration::MAX / 1024)
    };
    plan.steps.iter().map(of_step).collect()
}

/// The expected work, and the part that is done.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// The total expectation.
    pub total: Duration,
    /// The part that is done.
    pub done: Duration,
    side_by_side: usize,
}

impl Estimate {
    /// Begins with nothing of `total` done, and `side_by_side` runs at a time.
    pub fn new(total: Duration, side_by_side: usize) -> Self {
        Self {
            total,
            done: Duration::ZERO,
            side_by_side,
        }
    }

    /// The remaining time after `elapsed`. At first the expectation counts, later the observed
    /// pace, so that one quick or slow step does not upset the estimate.
    pub fn left(&self, elapsed: Duration) -> Duration {
        let trust = TRUST.as_secs_f64();
        let done = self.done.as_secs_f64() + trust;
        let pace = (elapsed.as_secs_f64() + trust / self.side_by_side as f64) / done;
        let left = self.total.saturating_sub(self.done).as_secs_f64() * pace;
        Duration::try_from_secs_f64(left.ceil()).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(samples: u32) -> Plan {
        let text = format!(
            "[[step]]\nprobe = \"timer\"\ninterval_us = 1000\nwarmup = 0\nsamples = {samples}\n\
             [[step]]\nprobe = \"footprint\"\nload = \"stress\"\n"
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn a_step_is_expected_to_take_what_its_samples_take() {
        let seconds = |is_virtual| {
            let expected = expected(&plan(100_000), is_virtual);
            expected.iter().map(Duration::as_secs).collect::<Vec<_>>()
        };
        assert_eq!(seconds(false), [102, 2]);
        assert_eq!(seconds(true), [52, 2]);
    }

    #[test]
    fn a_step_that_another_run_measures_takes_no_time() {
        let mut plan = plan(100_000);
        plan.steps[0].skip = true;
        let expected = expected(&plan, true);
        assert_eq!(expected, [Duration::ZERO, STEP]);
    }

    #[test]
    fn the_pace_that_was_seen_takes_the_place_of_the_expectation() {
        let second = Duration::from_secs(1);
        let mut estimate = Estimate::new(100 * second, 2);
        assert_eq!(estimate.left(Duration::ZERO), 50 * second);
        estimate.done = 90 * second;
        // Twice as slow as expected: 10 of 100 are left.
        assert_eq!(estimate.left(195 * second), 20 * second);
        estimate.done = 100 * second;
        assert_eq!(estimate.left(195 * second), Duration::ZERO);
    }
}

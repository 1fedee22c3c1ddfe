// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of a suite's experiment that is carried out, and the number of runs for it.

use punctual_agent::probes::{self, Extent};
use punctual_model::Nanos;
use punctual_model::plan::Step;
use toml::Value;

use crate::Error;

/// The part of a suite that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scale {
    /// As much as the suite specifies.
    #[default]
    Suite,
    /// This share, above 0, of what the suite's document took: 1 is all of it. For a size in ticks,
    /// which no document gives, it is the share of the suite's own size.
    Share(f64),
    /// This many samples of each probe with the parameter `samples`. Of those that execute a
    /// program for each sample only where no other probe takes them.
    Samples(u64),
    /// This much time for each probe that runs for a given time.
    Duration(Nanos),
}

/// The parameter that sets a number of samples.
const SAMPLES: &str = "samples";

/// The probes that execute a program for each sample: what is few for others is many for them.
const EXECUTIONS: [&str; 3] = ["hackbench", "image", "program"];

/// The size of one step, in each of the runs that share it.
struct Size {
    /// The parameter that sets it.
    parameter: &'static str,
    /// The size in all runs together.
    total: u64,
    /// The largest size in one run.
    most: u64,
}

impl Scale {
    /// The steps of each run needed. No run is longer than `longest`: an interruption then costs no
    /// more than that, and a guest keeps no more samples.
    pub fn shards(self, steps: &[Step], longest: Nanos) -> Result<Vec<Vec<Step>>, Error> {
        let sizes: Vec<Option<Size>> = steps
            .iter()
            .map(|step| self.size(step, steps, longest))
            .collect::<Result<_, _>>()?;
        if sizes.iter().all(Option::is_none) {
            self.check_unscaled(steps)?;
        }
        let runs = sizes.iter().flatten().map(Size::runs).max().unwrap_or(1);
        let shard = |run| -> Vec<Step> {
            let steps = steps.iter().zip(&sizes);
            steps
                .map(|(step, size)| shard(step, size.as_ref(), run))
                .collect()
        };
        Ok((0..runs).map(shard).collect())
    }

    /// The probes, each once, whose steps stay as they are although samples or a duration are
    /// asked for.
    pub fn unchanged(self, steps: &[Step]) -> Result<Vec<&str>, Error> {
        let mut probes: Vec<&str> = Vec::new();
        if matches!(self, Self::Suite | Self::Share(_)) {
            return Ok(probes);
        }
        for step in steps {
            let is_known = probes.contains(&step.probe.as_str());
            if !is_known && self.size(step, steps, Nanos::default())?.is_none() {
                probes.push(&step.probe);
            }
        }
        Ok(probes)
    }

    /// Refuses a size that changes none of these steps.
    fn check_unscaled(self, steps: &[Step]) -> Result<(), Error> {
        let expected = match self {
            Self::Suite => return Ok(()),
            Self::Share(_) => {
                return Err(Error::Request(
                    "a share is one of what a document took, and no step of this suite says how \
                     much that was (`full`): give a number of samples or a duration"
                        .into(),
                ));
            }
            Self::Samples(_) => "a number of samples",
            Self::Duration(_) => "a duration",
        };
        let found = self.unchanged(steps)?.join(", ");
        Err(Error::Request(format!(
            "expected a probe that takes {expected}, found {found}: set its own parameters by -p, \
             as `punctual list probes NAME` lists them"
        )))
    }

    /// The size of one of these steps, if it differs from the suite's.
    fn size(self, step: &Step, all: &[Step], longest: Nanos) -> Result<Option<Size>, Error> {
        let measurement = probes::parse(&step.probe, &step.params).map_err(Error::Request)?;
        let extent = measurement.extent();
        let within = |time: Nanos, extent: Extent| (time.0 / extent.each.0.max(1)) as u64;
        let total = match self {
            Self::Suite => None,
            Self::Share(share) => {
                let full = step.full.or(extent.and_then(|extent| extent.own));
                full.map(|full| (full as f64 * share).ceil() as u64)
            }
            Self::Samples(samples) => {
                let is_execution = |step: &Step| EXECUTIONS.contains(&step.probe.as_str());
                let before = |other: &Step| takes_samples(other) && !is_execution(other);
                let is_asked = !is_execution(step) || !all.iter().any(before);
                (is_asked && takes_samples(step)).then_some(samples)
            }
            Self::Duration(time) => extent.map(|extent| within(time, extent)),
        };
        Ok(total.map(|total| Size {
            parameter: extent.map_or(SAMPLES, |extent| extent.parameter),
            total: total.max(1),
            most: extent.map_or(u64::MAX, |extent| {
                within(longest, extent).clamp(1, extent.most)
            }),
        }))
    }
}

impl Size {
    fn runs(&self) -> u64 {
        self.total.div_ceil(self.most)
    }

    /// The size in the run with this number.
    fn of_run(&self, run: u64) -> u64 {
        self.total.saturating_sub(run * self.most).min(self.most)
    }
}

/// Returns true if the step's probe has the parameter `samples`.
fn takes_samples(step: &Step) -> bool {
    let mut params = step.params.clone();
    params.insert(SAMPLES.into(), Value::Integer(1));
    let unknown = format!("unknown field `{SAMPLES}`");
    !probes::parse(&step.probe, &params).is_err_and(|reason| reason.contains(&unknown))
}

/// A step in the run with this number; a step that is not divided is in the first one.
fn shard(step: &Step, size: Option<&Size>, run: u64) -> Step {
    let mut step = step.clone();
    step.skip = size.map_or(run > 0, |size| size.of_run(run) == 0);
    if let Some(size) = size.filter(|_| !step.skip) {
        let part = Value::Integer(size.of_run(run) as i64);
        step.params.insert(size.parameter.into(), part);
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Nanos = Nanos(60_000_000_000);

    /// A step that takes a sample each millisecond, and one that is not divided.
    fn steps() -> Vec<Step> {
        #[derive(serde::Deserialize)]
        struct Steps {
            step: Vec<Step>,
        }
        let text = "[[step]]\nprobe = \"timer\"\ninterval_us = 1000\nfull = 150_000\n\
                    [[step]]\nprobe = \"footprint\"\n";
        toml::from_str::<Steps>(text).unwrap().step
    }

    fn samples(scale: Scale) -> Vec<Vec<Option<i64>>> {
        let of = |step: &Step| step.params.get("samples").and_then(Value::as_integer);
        let shards = scale.shards(&steps(), MINUTE).unwrap();
        shards
            .iter()
            .map(|steps| steps.iter().filter(|step| !step.skip).map(of).collect())
            .collect()
    }

    #[test]
    fn what_is_not_asked_for_stays_as_the_suite_says() {
        assert_eq!(
            Scale::default().shards(&steps(), MINUTE).unwrap(),
            [steps()]
        );
    }

    #[test]
    fn the_full_size_is_shared_by_runs_of_a_minute() {
        let full = Scale::Share(1.0);
        assert_eq!(
            samples(full),
            [
                vec![Some(60_000), None],
                vec![Some(60_000)],
                vec![Some(30_000)]
            ]
        );
    }

    #[test]
    fn a_step_has_the_same_number_in_each_run() {
        let full = Scale::Share(1.0);
        for shard in full.shards(&steps(), MINUTE).unwrap() {
            let probes: Vec<_> = shard.iter().map(|step| &*step.probe).collect();
            assert_eq!(probes, ["timer", "footprint"]);
        }
    }

    #[test]
    fn a_share_a_count_and_a_time_are_what_they_say() {
        let share = Scale::Share(0.001);
        assert_eq!(samples(share), [[Some(150), None]]);
        let count = Scale::Samples(7);
        assert_eq!(samples(count), [[Some(7), None]]);
        let time = Scale::Duration(Nanos(2_000_000_000));
        assert_eq!(samples(time), [[Some(2_000), None]]);
    }

    #[test]
    fn what_is_told_in_ticks_is_shared_in_ticks() {
        let step = |text: &str| toml::from_str::<Step>(text).unwrap();
        let steps = [step("probe = \"switch\"\nticks = 40")];
        let ticks = |scale: Scale| -> Vec<Option<i64>> {
            let runs = scale.shards(&steps, MINUTE).unwrap();
            let of = |run: &Vec<Step>| run[0].params.get("ticks")?.as_integer();
            runs.iter().map(of).collect()
        };
        assert_eq!(ticks(Scale::Share(3.0)), [Some(50), Some(50), Some(20)]);
        assert_eq!(ticks(Scale::Share(1.0)), [Some(40)]);
        assert_eq!(ticks(Scale::Duration(Nanos(240_000_000))), [Some(10)]);
    }

    #[test]
    fn a_number_of_samples_is_for_every_probe_that_has_this_parameter() {
        let takes = |probe: &&str| {
            let step = format!("probe = \"{probe}\"\nrun = [\"true\"]");
            let mut step: Step = toml::from_str(&step).unwrap();
            if !["app", "program"].contains(probe) {
                step.params.clear();
            }
            let samples = Scale::Samples(7);
            let own = samples.shards(std::slice::from_ref(&step), MINUTE);
            own.is_ok_and(|runs| runs[0][0].params["samples"].as_integer() == Some(7))
        };
        let all = probes::ALL.iter().map(|probe| probe.name);
        let (takes, others): (Vec<&str>, Vec<&str>) = all.partition(takes);
        assert_eq!(
            takes.join(" "),
            "timer realfeel irq signal clock eventfd wake packet migrate hackbench image program"
        );
        assert_eq!(
            others.join(" "),
            "tick noise irqrate switch semaphore mutex inversion app kthreads footprint"
        );
    }

    #[test]
    fn a_size_that_changes_no_step_is_refused_and_steps_that_it_leaves_are_named() {
        let step = |text: &str| toml::from_str::<Step>(text).unwrap();
        let steps = [
            step("probe = \"tick\""),
            step("probe = \"hackbench\""),
            step("probe = \"tick\"\ncpu = 1"),
        ];
        let samples = Scale::Samples(7);
        assert_eq!(samples.unchanged(&steps).unwrap(), ["tick"]);
        let runs = samples.shards(&steps, MINUTE).unwrap();
        assert_eq!(runs[0][1].params["samples"].as_integer(), Some(7));
        let refused = |scale: Scale, steps: &[Step]| {
            let error = scale.shards(steps, MINUTE).unwrap_err();
            error.to_string()
        };
        // Of executions that many may take hours.
        let mixed = [step("probe = \"eventfd\""), step("probe = \"hackbench\"")];
        assert_eq!(samples.unchanged(&mixed).unwrap(), ["hackbench"]);
        let advice = "set its own parameters by -p, as `punctual list probes NAME` lists them";
        assert_eq!(
            refused(samples, &steps[..1]),
            format!("expected a probe that takes a number of samples, found tick: {advice}")
        );
        assert_eq!(
            refused(Scale::Duration(MINUTE), &steps),
            format!("expected a probe that takes a duration, found tick, hackbench: {advice}")
        );
        assert!(Scale::default().unchanged(&steps).unwrap().is_empty());
    }

    #[test]
    fn a_share_of_nothing_is_refused() {
        let mut steps = steps();
        steps[0].full = None;
        let share = Scale::Share(0.5);
        assert!(
            share
                .shards(&steps, MINUTE)
                .unwrap_err()
                .to_string()
                .contains("full")
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plans of all runs: the seeds, and the part of the suite that each measures.

use std::num::NonZeroU32;
use std::sync::Once;

use anyhow::Result;
use punctual_agent::probes;
use punctual_model::plan::{SEED_MAX, Step};
use punctual_model::suite::Suite;
use punctual_model::{Nanos, Plan};
use punctual_runner::{loads, options, suites};

use super::MeasureArgs;
use super::bench::Bench;
use crate::UsageError;
use crate::output::say;

/// The longest virtual run, by the time that its samples take; a longer one is split into several.
/// Under a full load a virtual minute takes about ten on the wall.
const LONGEST_VIRTUAL_RUN: Nanos = Nanos::from_millis(60_000);
/// The longest run in real time, in which the results so far are stored again and again.
const LONGEST_REAL_RUN: Nanos = Nanos::from_millis(24 * 3_600_000);

/// The interval at which the results so far are stored, in seconds.
const STORE_EVERY: Option<NonZeroU32> = NonZeroU32::new(60);

/// The most times that the results so far of one step are stored. Each time they have the largest
/// sample of each part before: the stream grows with the square of this number.
const STORED_MOST: i64 = 1_000;

/// The longest interval that this makes, in seconds: more of a step without end is not put at risk.
const STORED_AFTER: i64 = 3_600;

/// The plans of all runs on one subject.
pub struct Plans {
    pub(super) plans: Vec<Plan>,
    /// True if the runs are shards of one measurement.
    pub(super) pooled: bool,
}

impl Plans {
    /// The first plan, in TOML.
    pub fn first_toml(&self) -> String {
        self.plans.first().map_or_else(String::new, Plan::to_toml)
    }

    /// The same plans with a set-up: these commands, and programs for them, run in each guest
    /// before anything is measured.
    pub fn set_up(&self, commands: &[String], programs: &[String]) -> Result<Self> {
        let set_up = |plan: &Plan| {
            let mut plan = plan.clone();
            options::set_up(&mut plan, commands, programs)?;
            Ok(plan)
        };
        let plans: Result<_> = self.plans.iter().map(set_up).collect();
        Ok(Self {
            plans: plans?,
            pooled: self.pooled,
        })
    }

    /// Returns true if the runs are shards of one measurement: its size then gives their number.
    pub fn are_shards(&self) -> bool {
        self.pooled
    }
}

impl MeasureArgs {
    /// Makes a plan for each run, with `seeds` seeds unless others are asked for. Errors in the
    /// suite are found here, before any boot.
    pub fn plans(&self, suite: &Suite, seeds: Option<usize>) -> Result<Plans> {
        let loads = loads::of(suite)?;
        // All steps at once, before they are divided: an error names the step of the suite.
        suites::plan(suite, &suite.steps, &loads, self.first_seed())?;
        let shards = self.shards(suite)?;
        let pooled = shards.len() > 1;
        let seeds = match &self.seeds {
            Some(_) if pooled => return Err(too_many_seeds(shards.len()).into()),
            Some(seeds) => seeds.all.clone(),
            None => {
                let count = match seeds {
                    _ if pooled => shards.len(),
                    Some(count) => count,
                    None if self.seed.is_some() || self.bench != Bench::Virtual => 1,
                    None => suite.seeds.get() as usize,
                };
                self.seeds_after(0, count)?
            }
        };
        let plan = |(seed, steps): (u64, &Vec<Step>)| {
            let mut plan = suites::plan(suite, steps, &loads, seed)?;
            self.complete(&mut plan);
            Ok(plan)
        };
        let plans: Result<_> = seeds
            .into_iter()
            .zip(shards.iter().cycle())
            .map(plan)
            .collect();
        Ok(Plans {
            plans: plans?,
            pooled,
        })
    }

    /// Fills in what a suite does not say.
    fn complete(&self, plan: &mut Plan) {
        plan.past = self.past;
        plan.allow_idle_states = self.allow_idle_states;
        plan.hwlat_s = self.hwlat.and_then(NonZeroU32::new);
        plan.tracing = self.tracing;
        if self.bench != Bench::Virtual {
            plan.tell_every_s = Some(self.tell_every(plan));
        }
    }

    /// The interval, in seconds, at which the results so far are stored.
    fn tell_every(&self, plan: &Plan) -> NonZeroU32 {
        static IS_SAID: Once = Once::new();
        let least = least_interval(plan);
        if let Some(asked) = self.store_every.filter(|asked| *asked < least) {
            IS_SAID.call_once(|| {
                say!(
                    "punctual: --store-every {asked} becomes {least}: what a step has measured \
                     so far is stored {STORED_MOST} times at most"
                );
            });
        }
        let wanted = self.store_every.or(STORE_EVERY);
        wanted.map_or(least, |wanted| wanted.max(least))
    }

    /// Makes a plan for each of `count` seeds, after those of `before` runs.
    pub fn plans_after(&self, suite: &Suite, before: usize, count: usize) -> Result<Plans> {
        self.plans_of(suite, &self.seeds_after(before, count)?)
    }

    /// The next `count` seeds after those of `before` runs.
    fn seeds_after(&self, before: usize, count: usize) -> Result<Vec<u64>, UsageError> {
        let seeds = (self.first_seed()..=SEED_MAX).skip(before).take(count);
        let seeds: Vec<u64> = seeds.collect();
        if seeds.len() < count {
            let runs = before + count;
            return Err(UsageError(format!(
                "expected seeds up to {SEED_MAX}, found that the last of {runs} runs would have a \
                 higher one: choose a lower --seed"
            )));
        }
        Ok(seeds)
    }

    /// Makes a plan for each of these seeds.
    pub fn plans_of(&self, suite: &Suite, seeds: &[u64]) -> Result<Plans> {
        let loads = loads::of(suite)?;
        let steps = self.shards(suite)?;
        let [steps] = steps.as_slice() else {
            return Err(too_many_seeds(steps.len()).into());
        };
        let plan = |seed: &u64| {
            let mut plan = suites::plan(suite, steps, &loads, *seed)?;
            self.complete(&mut plan);
            Ok(plan)
        };
        let plans: Result<_> = seeds.iter().map(plan).collect();
        Ok(Plans {
            plans: plans?,
            pooled: false,
        })
    }

    /// The steps of each run, in as many runs as their size takes. Says once which probes the
    /// size that is asked for does not change.
    fn shards(&self, suite: &Suite) -> Result<Vec<Vec<Step>>> {
        static IS_SAID: Once = Once::new();
        let scale = self.scale.scale();
        let shards = scale.shards(&suite.steps, self.longest())?;
        let unchanged = scale.unchanged(&suite.steps)?.join(", ");
        if let Some(option) = self.scale.option().filter(|_| !unchanged.is_empty()) {
            IS_SAID.call_once(|| say!("punctual: {option} changes nothing in: {unchanged}"));
        }
        Ok(shards)
    }

    fn longest(&self) -> Nanos {
        match self.bench {
            Bench::Virtual => LONGEST_VIRTUAL_RUN,
            Bench::Host | Bench::Ssh(_) | Bench::Labgrid(_) => LONGEST_REAL_RUN,
        }
    }
}

/// The least interval, in seconds, at which the results so far of no step are stored more than
/// [`STORED_MOST`] times, or [`STORED_AFTER`] if that is less.
fn least_interval(plan: &Plan) -> NonZeroU32 {
    let steps = plan.steps.iter().filter(|step| !step.skip);
    let measured = steps.filter_map(|step| probes::parse(&step.probe, &step.params).ok());
    // The others are stored when they end.
    let told = measured.filter(|measurement| measurement.is_by_cpu());
    let longest = told.map(|measurement| measurement.nominal()).max();
    let seconds = longest.unwrap_or_default().0 / 1_000_000_000;
    let least = (seconds / STORED_MOST + 1).min(STORED_AFTER);
    let least = u32::try_from(least).ok().and_then(NonZeroU32::new);
    least.unwrap_or(NonZeroU32::MIN)
}

fn too_many_seeds(runs: usize) -> UsageError {
    UsageError(format!(
        "so many samples take {runs} runs, each with a seed of its own: give the first one \
         by --seed instead of --seeds"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::StoreArgs;

    #[test]
    fn no_run_is_left_out_where_seeds_end() {
        let store = StoreArgs { db: None };
        let mut args = MeasureArgs::of_subjects(Vec::new(), Vec::new(), true, &store);
        args.seed = Some(SEED_MAX - 1);
        let seeds = |before, count| args.seeds_after(before, count).ok();
        assert_eq!(seeds(0, 2), Some(vec![SEED_MAX - 1, SEED_MAX]));
        assert_eq!(seeds(1, 1), Some(vec![SEED_MAX]));
        assert_eq!(seeds(0, 3), None);
        assert_eq!(seeds(2, 1), None);
    }

    #[test]
    fn the_results_so_far_of_a_step_are_stored_a_thousand_times_at_most() {
        // Steps of `timer`, with one sample each millisecond.
        let least = |hours: &[u64]| {
            let step = |hours: &u64| {
                let samples = hours * 3_600_000;
                format!(
                    "[[step]]\nprobe = \"timer\"\ninterval_us = 1000\nwarmup = 0\n\
                     samples = {samples}\n"
                )
            };
            let text: String = hours.iter().map(step).collect();
            least_interval(&toml::from_str(&text).unwrap()).get()
        };
        assert_eq!(least(&[1]), 4);
        assert_eq!(least(&[12]), 44);
        assert_eq!(least(&[1, 24, 12]), 87);
        assert_eq!(least(&[100_000]), 3_600);
        let footprint = "[[step]]\nprobe = \"footprint\"\n";
        let none: Plan = toml::from_str(footprint).unwrap();
        assert_eq!(least_interval(&none).get(), 1);
    }
}

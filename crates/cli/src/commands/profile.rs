// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual profile`: how long each function ran in the steps of a run.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Args;
use punctual_model::{Recording, Run};
use punctual_report::profile::{Profiled, step_beside};
use punctual_scope::profile::{Profile as Profiles, steps};

use super::output_args::OutputArgs;
use super::replay_args::ReplayArgs;
use super::sample_args::SampleArgs;
use super::{StoreArgs, load};
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual profile r3 --probe hackbench
  punctual profile r3 --probe hackbench --compare r4  # what takes longer
  punctual profile r3 --json > profile.json           # all functions

Punctual repeats the run, and counts each instruction. Nothing is sampled: equal
code has equal figures. This is the answer for throughput, of which `explain`
shows no path.

Exit status: 0 reported; 3 Ctrl-C has ended it; 1 an error; 2 a wrong request.";

/// Count how long each function ran in the steps of a run: where throughput goes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Profile {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    samples: SampleArgs,
    /// Show the functions that differ most from those of the same measurement in this run
    #[arg(long, value_name = "OTHER")]
    compare: Option<String>,
    /// So many functions of each step; JSON has all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    repeat: ReplayArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl Profile {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        self.output.check()?;
        let store = self.store.open()?;
        let run = load(&store, &self.run)?;
        let other = self.compare.as_ref();
        let other = other.map(|name| load(&store, name)).transpose()?;
        let cancel = interrupt::flag()?;
        // What is wrong with either is told before minutes of watching.
        let own_steps = self.steps(&run)?;
        self.repeat.machine(&run)?;
        let other_steps = match &other {
            Some(other) => Some(self.steps_beside(&run, &own_steps, other)?),
            None => None,
        };
        let Some(own) = self.of(&run, &own_steps, cancel)? else {
            return Ok(ExitStatus::Incomplete);
        };
        let beside = match other.as_ref().zip(other_steps) {
            None => None,
            Some((other, steps)) => match self.of(other, &steps, cancel)? {
                Some(profiles) => Some((other, profiles)),
                None => return Ok(ExitStatus::Incomplete),
            },
        };
        let beside = beside.as_ref().map(|(run, all)| (*run, all.as_slice()));
        let found = Profiled::of(&run, &own, beside);
        let json = serde_json::to_value(&found)?;
        self.output.show(
            "steps.functions",
            || json.clone(),
            || found.text(self.top, output::text_width()),
            || Ok(found.page(self.top)),
        )?;
        Ok(ExitStatus::Done)
    }

    fn steps(&self, run: &Run) -> Result<Vec<u32>> {
        Ok(steps(run, &self.samples.wanted(None, 0))?)
    }

    /// The steps of another run that measure the same as these; an error if there are none, or if
    /// it cannot be repeated.
    fn steps_beside(&self, run: &Run, steps: &[u32], other: &Run) -> Result<Vec<u32>> {
        self.steps(other)?;
        let beside = steps.iter();
        let beside = beside.filter_map(|step| step_beside(run, *step, other));
        let beside: Vec<u32> = beside.collect();
        if beside.is_empty() {
            let titles = |run: &Run| {
                let titles: Vec<String> = run.recordings.iter().map(Recording::title).collect();
                titles.join(", ")
            };
            let (id, other_id) = (&run.id, &other.id);
            let (expected, found) = (titles(run), titles(other));
            return Err(UsageError(format!(
                "--compare {other_id}: expected a measurement of {id} ({expected}), found none of \
                 them ({found}): name a run that has measured the same"
            ))
            .into());
        }
        self.repeat.machine(other)?;
        Ok(beside)
    }

    /// The profiles of these steps; `None` if Ctrl-C has ended it.
    fn of(&self, run: &Run, steps: &[u32], cancel: &AtomicBool) -> Result<Option<Vec<Profiles>>> {
        let all = self.repeat.profile(run, cancel)?;
        let is_wanted = |one: &Profiles| steps.contains(&one.step);
        Ok(all.map(|all| all.into_iter().filter(is_wanted).collect()))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::fixtures::real;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        profile: Profile,
    }

    #[test]
    fn a_run_beside_which_nothing_can_stand_is_refused_before_anything_is_watched() {
        let words = ["profile", "r1", "--compare", "r2"];
        let profile = Words::parse_from(words).profile;
        let refused = |probe: &str| {
            let (own, other) = (real("r1", "timer"), real("r2", probe));
            let why = profile.steps_beside(&own, &[0], &other).unwrap_err();
            assert!(why.is::<UsageError>(), "{why}");
            why.to_string()
        };
        let why = refused("futex");
        assert!(
            why.contains("expected a measurement of r1 (timer / idle / ), found none"),
            "{why}"
        );
        // What measures the same must be repeatable, too.
        let why = refused("timer");
        assert!(why.contains("r2 was measured in real time"), "{why}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual profile`: how long each function ran in the steps of a run.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Args;
use punctual_model::Run;
use punctual_report::profile::Profiled;
use punctual_scope::profile::{Profile as Profiles, steps};

use super::output_args::OutputArgs;
use super::replay_args::ReplayArgs;
use super::sample_args::SampleArgs;
use super::{StoreArgs, load};
use crate::{ExitStatus, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual profile r3 --probe hackbench
  punctual profile r3 --probe hackbench --compare r4  # which functions take longer
  punctual profile r3 --top 50 --json > profile.json

The run is repeated, and each instruction is counted. Nothing is sampled: equal
code has equal figures. Throughput, whose samples `explain` cannot break down,
is told so.

Exit status: 0 reported; 3 Ctrl-C has ended it; 1 an error; 2 a wrong request.";

/// Count the time of each function in the steps of a run: where throughput goes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Profile {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    samples: SampleArgs,
    /// Show the functions that differ most from those of this run
    #[arg(long, value_name = "OTHER")]
    compare: Option<String>,
    /// So many functions of each step
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
        let other_steps = other.as_ref().map(|other| self.steps(other)).transpose()?;
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

    /// The profiles of these steps; `None` if Ctrl-C has ended it.
    fn of(&self, run: &Run, steps: &[u32], cancel: &AtomicBool) -> Result<Option<Vec<Profiles>>> {
        let all = self.repeat.profile(run, cancel)?;
        let is_wanted = |one: &Profiles| steps.contains(&one.step);
        Ok(all.map(|all| all.into_iter().filter(is_wanted).collect()))
    }
}

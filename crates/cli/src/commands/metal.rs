// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual metal`: claims of virtual time, checked on a real machine.

use anyhow::{Result, bail};
use clap::Args;
use punctual_model::Run;
use punctual_model::run::State;
use punctual_published::Claims;
use punctual_report::metal::metal;
use punctual_runner::{claims, suites};

use super::measure::MeasureArgs;
use super::measure::what::WhatArgs;
use super::output_args::OutputArgs;
use crate::output::say;
use crate::{ExitStatus, UsageError, output};

const EXAMPLES: &str = "\
Examples:
  punctual metal                    # what the store has of real machines
  sudo punctual metal --bench host  # measure this machine as it is booted
  punctual metal --bench ssh:root@board
  punctual metal ./mine.toml --bench host --report metal.html

A claim has two sides, such as PREEMPT_RT and no PREEMPT_RT. Measure, boot the
machine as the other side, and measure again: the store puts them together.

A file of claims has as many of these as it takes:
  summary = \"claims of mine\"
  suite = \"metal\"             # what measures them
  [[claim]]
  document = \"my notes\"
  says = \"nohz=off: a thread wakes up earlier at worst\"
  expects = \"lower\"           # or \"higher\"
  of = { boot = \"nohz=off\" }  # or preemption = [\"rt\"], release = \"6.12\"
  than = { without = \"nohz=off\" }
  what = { probe = \"timer\", load = \"idle\", statistic = \"max\" }

Exit status: 0 each claim has a sign; 5 a claim is undecided or not tried; 3
something could not be measured, or Ctrl-C has ended it; 1 an error; 2 a wrong
request.";

/// Tell whether claims of virtual time hold on a real machine: the same sign, the
/// other sign, or not tried
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Metal {
    /// The claims: a name (docs), or a TOML file
    #[arg(value_name = "NAME|FILE", default_value = "docs")]
    claims: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

impl Metal {
    /// Runs the command.
    pub fn run(mut self) -> Result<ExitStatus> {
        self.output.check()?;
        let claims = claims::find(&self.claims)?;
        let suite = suites::find(&claims.suite)?.name;
        let is_whole = match (self.measure.is_virtual(), self.measure.first_demand()) {
            (false, _) => self.measure(&claims)?,
            (true, None) => true,
            (true, Some(option)) => {
                let wrong = format!(
                    "{option} says how to measure: expected --bench host, or a board, beside it"
                );
                return Err(UsageError(wrong).into());
            }
        };
        let found = metal(&claims, &self.runs(&suite)?);
        let json = serde_json::to_value(&found)?;
        self.output.show(
            "claims",
            || json.clone(),
            || found.text(output::width()),
            || Ok(found.page()),
        )?;
        let mut all = found.claims.iter();
        Ok(match (is_whole, all.all(|one| one.cell.is_decided())) {
            (false, _) => ExitStatus::Incomplete,
            (true, true) => ExitStatus::Done,
            (true, false) => ExitStatus::Undecided,
        })
    }

    /// Measures the machine as it is booted, unless the store has such runs; returns true if
    /// everything was measured.
    fn measure(&mut self, claims: &Claims) -> Result<bool> {
        self.measure.check()?;
        self.measure.resume = true;
        let what = WhatArgs::of_suite(&claims.suite);
        let suite = self.measure.suite(&what)?;
        let plans = self
            .measure
            .plans(&suite, Some(suite.seeds.get() as usize))?;
        let results = self.measure.prepare(&what, &suite)?.measure(&plans)?;
        if results.is_interrupted() {
            say!("punctual: interrupted. The same command skips finished runs");
        }
        let mut runs = results.runs.iter();
        if let Some(failed) = runs.find(|run| run.state == State::Failed) {
            let why = failed.error.as_deref().unwrap_or("it says nothing");
            bail!("{}: the run has failed: {why}", failed.id);
        }
        let is_whole = results.runs.iter().all(Run::is_whole) && !results.is_interrupted();
        Ok(is_whole)
    }

    /// The store's runs of the claims' suite on real machines.
    fn runs(&self, suite: &str) -> Result<Vec<Run>> {
        if self.measure.store.is_new()? {
            return Ok(Vec::new());
        }
        let store = self.measure.store.open()?;
        let is_one = |one: &punctual_store::Summary| {
            one.suite == suite && one.subject.bench != "virtual" && one.state == State::Finished
        };
        let all = store.list()?;
        let found = all.iter().filter(|one| is_one(one));
        found.map(|one| Ok(store.load(&one.id)?)).collect()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual arrivals`: how late each arrival would have been, and the worst of them, proved.

use anyhow::Result;
use clap::Args;
use punctual_report::scope::arrivals::told;
use punctual_scope::arrivals::aim::{reach, worth_aiming};
use punctual_scope::arrivals::{arrivals, chosen};
use punctual_scope::explain::Wanted;
use punctual_scope::repeat::OnEvent;

use super::output_args::OutputArgs;
use super::replay_args::ReplayArgs;
use super::{StoreArgs, load};
use crate::{ExitStatus, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual arrivals r4
  punctual arrivals r4 --load stress --aim 10
  punctual arrivals r4 --aim 3 --json > arrivals.json";

/// Tell how late a thread would run at each moment of a run, and prove the worst
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arrivals {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    /// Only steps of this probe
    #[arg(long, value_name = "PROBE")]
    probe: Option<String>,
    /// Only steps under this load
    #[arg(long, value_name = "LOAD")]
    load: Option<String>,
    /// Aim a sample at each of the N worst places of each step
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10", default_value_t = 0)]
    aim: usize,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    repeat: ReplayArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl Arrivals {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        self.output.check()?;
        let run = load(&self.store.open()?, &self.run)?;
        let wanted = Wanted {
            probe: self.probe.clone(),
            load: self.load.clone(),
            ..Wanted::default()
        };
        let recordings = chosen(&run, &wanted)?;
        let (place, machine) = self.repeat.machine(&run)?;
        let cancel = interrupt::flag()?;
        let body = |on: OnEvent| arrivals(&place, &run, &machine, &recordings, cancel, on);
        let Some((found, digest)) = self.repeat.repeat(&run, None, body)? else {
            return Ok(ExitStatus::Incomplete);
        };
        let mut all = Vec::new();
        for found in found {
            let step = run.recordings[found.recording].key.step;
            let mut aimed = Vec::new();
            for number in worth_aiming(&found.places, self.aim) {
                let target = (found.recording, &found.places[number]);
                let body = |on: OnEvent| reach(&place, &run, &machine, target, cancel, on);
                let Some(reached) = self.repeat.repeat(&run, Some(step), body)? else {
                    return Ok(ExitStatus::Incomplete);
                };
                aimed.push((number, reached));
            }
            all.push((found, aimed));
        }
        let told = told(&run, &all, &digest);
        let json = serde_json::to_value(&told)?;
        self.output.show(
            || json,
            || told.text(output::text_width()),
            || Ok(told.page()),
        )?;
        Ok(ExitStatus::Done)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual arrivals`: how late each arrival would have been, and the worst of them, proved.

use anyhow::Result;
use clap::Args;
use punctual_scope::arrivals::aim::{reach, worth_aiming};
use punctual_scope::arrivals::{arrivals, chosen};
use punctual_scope::explain::Wanted;
use punctual_scope::repeat::OnEvent;

use super::output_args::OutputArgs;
use super::replay_args::ReplayArgs;
use super::{StoreArgs, load};
use crate::{ExitStatus, interrupt};

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
        for told in &found {
            println!("{} {} time {} periods {} strange {} learnt {}", digest, run.recordings[told.recording].title(), told.time, told.periods, told.strange, told.learnt);
            println!("q {:?}", told.quantiles);
            println!("later {:?}", told.later);
            println!("worst {:?} measured {:?}", told.worst, run.recordings[told.recording].max());
            for number in 0..told.places.len().min(15) {
                println!("{:?}", told.places[number]);
            }
            for number in worth_aiming(&told.places, self.aim) {
                let one = &told.places[number];
                let step = run.recordings[told.recording].key.step;
                let body = |on: OnEvent| {
                    reach(&place, &run, &machine, (told.recording, one), cancel, on)
                };
                let Some(reached) = self.repeat.repeat(&run, Some(step), body)? else {
                    return Ok(ExitStatus::Incomplete);
                };
                println!("AIM {number} foretold {} reached {} shift {} diff {} after {} of {:?} path {} from {:?} {} {}", one.foretold.0, reached.late.0, reached.shift.0, reached.late.0 - one.foretold.0, reached.after.0, one.after, one.path.0, one.from, one.function, one.most.0);
                match &reached.breakdown { Ok(b) => { println!("  {}", punctual_report::scope::text::sentence(b)); for p in &b.parts { println!("    {:?} {:?} {} {:?}", p.stage, p.cause, p.length.0, p.main.as_ref().map(|m| m.function.clone())); } }, Err(e) => println!("  {e}") }
            }
        }
        Ok(ExitStatus::Done)
    }
}

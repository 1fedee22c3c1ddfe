// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual survey`: the places of a run that could cause delays.

use anyhow::Result;
use clap::Args;
use punctual_report::scope::page::survey_page;
use punctual_report::scope::{json, text};
use punctual_scope::explain::survey;
use punctual_scope::repeat::OnEvent;

use super::output_args::OutputArgs;
use super::replay_args::ReplayArgs;
use super::{StoreArgs, load};
use crate::{ExitStatus, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual survey r3
  punctual survey r3 --top 30 --json > places.json

Exit status: 0 reported; 3 Ctrl-C has ended it; 1 an error; 2 a wrong request.";

/// List the longest sections of a run with interrupts or preemption off
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Survey {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    /// So many places of each kind
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    repeat: ReplayArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl Survey {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        self.output.check()?;
        let run = load(&self.store.open()?, &self.run)?;
        let (place, machine) = self.repeat.machine(&run)?;
        let cancel = interrupt::flag()?;
        let body = |on: OnEvent| survey(&place, &run, &machine, cancel, on);
        let Some((found, digest)) = self.repeat.repeat(&run, None, body)? else {
            return Ok(ExitStatus::Incomplete);
        };
        self.output.show(
            "places",
            || json::survey(&run, &found, &digest),
            || text::survey(&run, &found, self.top, output::text_width()),
            || Ok(survey_page(&run, &found, self.top)),
        )?;
        Ok(ExitStatus::Done)
    }
}

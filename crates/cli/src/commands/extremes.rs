// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual extremes`: predicts the result of a longer measurement.

use anyhow::Result;
use clap::Args;
use punctual_report::extremes::{extremes, extremes_json, extremes_text};

use super::StoreArgs;
use crate::{ExitStatus, output};

const EXAMPLES: &str = "\
Examples:
  punctual run --probe timer -p samples=1000000 --load stress --bench host
  punctual extremes last

docs/JUDGE.md says when nothing is told. It never replaces the worst sample.

Exit status: 0 a value is told; 5 none can be told; 1 an error; 2 a wrong
request.";

/// Tell which values a longer measurement in real time would exceed once, or why
/// that cannot be told
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Extremes {
    /// The runs; the last one if none is named
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Extremes {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let runs = self.store.load(&self.runs)?;
        let all = extremes(&runs);
        if self.json {
            output::print_json(&extremes_json(&all))?;
        } else {
            output::print(&extremes_text(&all, output::text_width()))?;
        }
        let is_told = all.iter().any(|one| one.found.is_ok());
        Ok(if is_told {
            ExitStatus::Done
        } else {
            ExitStatus::Undecided
        })
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual survey`: the places of a run that could hurt.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use punctual_report::scope::page::survey_page;
use punctual_report::scope::{json, text};
use punctual_scope::explain::survey;
use punctual_scope::repeat::OnEvent;

use super::replay_args::ReplayArgs;
use super::{StoreArgs, load};
use crate::{ExitStatus, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual survey r3
  punctual survey r3 --top 30 --json > places.json";

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
    /// Print JSON, with all places
    #[arg(long)]
    json: bool,
    /// Write a page about the places (HTML, one file) to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    repeat: ReplayArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl Survey {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        let run = load(&self.store.open()?, &self.run)?;
        let (place, machine) = self.repeat.machine(&run)?;
        let cancel = interrupt::flag()?;
        let body = |on: OnEvent| survey(&place, &run, &machine, cancel, on);
        let Some((found, digest)) = self.repeat.repeat(&run, None, body)? else {
            return Ok(ExitStatus::Incomplete);
        };
        if self.json {
            output::print_json(&json::survey(&run, &found, &digest))?;
        } else {
            let width = output::text_width();
            output::print(&text::survey(&run, &found, self.top, width))?;
        }
        if let Some(path) = &self.report {
            output::write_page(&survey_page(&run, &found, self.top), path)?;
        }
        Ok(ExitStatus::Done)
    }
}

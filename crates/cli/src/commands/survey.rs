//! `punctual survey`: the places of a run that could hurt.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use punctual_report::scope::page::survey_page;
use punctual_report::scope::{json, text};
use punctual_scope::explain::survey;

use super::explain::RepeatArgs;
use super::{StoreArgs, catalog};
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
    repeat: RepeatArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl Survey {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        let run = self.store.open()?.load(&self.run)?;
        let place = self.repeat.place()?;
        let machine = place.machine(&run, catalog()?.get(&run.subject.kernel)?)?;
        let progress = self.repeat.progress();
        let say = &mut |message: &str| progress.say(&format!("{} again: {message}", run.id));
        let (found, digest) = survey(&place, &run, &machine, interrupt::flag()?, say)?;
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

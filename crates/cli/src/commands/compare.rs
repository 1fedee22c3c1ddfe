// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual compare`: stored runs compared with each other.

use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgGroup, Args};
use punctual_report::compare::{
    Comparable, compare, comparison_csv, comparison_json, comparison_text,
};
use punctual_runner::documents;

use super::StoreArgs;
use super::run_names::refuse_twice;
use crate::{ExitStatus, UsageError, output};

const EXAMPLES: &str = "\
Examples:
  punctual compare r1 r4  # one subject against another
  punctual compare r1 r2 r3 r4 --report four.html
  punctual compare r1 r9  # the same again: are the digests equal?
  punctual compare r1 r4 --csv > figures.csv

Runs of other suites, benches, clocks or numbers of samples are refused.";

/// Compare runs with the first of them, by ratio and per cent
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("form").args(["json", "csv"]))]
pub struct Compare {
    /// The runs, or ranges of them such as r1..r4; the first is what the others are
    /// compared with
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print a line for each figure of each subject, as comma-separated values
    #[arg(long)]
    csv: bool,
    /// Write a page about the runs (HTML, one file) to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write all data, and scripts for gnuplot, into DIR
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
}

impl Compare {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let runs = self.store.load(&self.runs)?;
        refuse_twice(&self.store.open()?, &self.runs)?;
        if runs.len() < 2 {
            let found = self.runs.join(" ");
            return Err(UsageError(format!("expected two runs at least, found {found}")).into());
        }
        output::check_file(self.report.as_deref())?;
        output::check_directory(self.data.as_deref())?;
        let runs = Comparable::new(runs).map_err(|refusal| UsageError(refusal.to_string()))?;
        if let Some(why) = runs.nothing_to_compare() {
            return Err(UsageError(why).into());
        }
        let comparison = compare(&runs);
        let (json, text) = (
            || comparison_json(&comparison),
            |width| comparison_text(&comparison, width),
        );
        if self.csv {
            output::print(&comparison_csv(&comparison))?;
        } else {
            output::print_result(self.json, json, text)?;
        }
        if let Some(path) = &self.report {
            let documents = documents::all()?;
            let page = punctual_report::comparison_page(runs.runs(), &documents, &comparison);
            output::write_page(&page, path)?;
        }
        if let Some(directory) = &self.data {
            output::write_data(runs.runs(), directory)?;
        }
        Ok(ExitStatus::Done)
    }
}

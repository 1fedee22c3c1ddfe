// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual show`: shows runs again, in any form.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgGroup, Args};
use punctual_report::csv::{write_figures_csv, write_samples_csv};

use super::StoreArgs;
use crate::{ExitStatus, output};

const EXAMPLES: &str = "\
Examples:
  punctual show  # the newest run
  punctual show r3
  punctual show r1 r2 r3 r4 --report four.html
  punctual show r3 --json --raw | jq '.runs[0].recordings[0].samples'
  punctual show r1 r2 r3 --csv > figures.csv
  punctual show r3 --csv --raw > samples.csv
  punctual show r3 --console";

/// Show runs: as a table, as JSON or CSV, as a page, or their consoles
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("form").args(["json", "csv"]))]
pub struct Show {
    /// The runs: r3 or 3; r1..r4 for all from r1 to r4; `last`, or none at all, is
    /// the newest one
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print a table for other programs: a line for each recording, its figures in nanoseconds
    #[arg(long, conflicts_with_all = ["json", "console"])]
    csv: bool,
    /// With --json or --csv: all samples
    #[arg(long, requires = "form")]
    raw: bool,
    /// Print what the subjects' consoles showed
    #[arg(long, conflicts_with = "json")]
    console: bool,
    /// Write a page about the runs (HTML, one file) to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write all data, and scripts for gnuplot, into DIR
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
}

impl Show {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let runs = self.store.load(&self.runs)?;
        output::check_file(self.report.as_deref())?;
        output::check_directory(self.data.as_deref())?;
        if self.json {
            output::print_json(&punctual_report::runs_json(&runs, self.raw))?;
        } else if self.csv {
            let write = if self.raw {
                write_samples_csv
            } else {
                write_figures_csv
            };
            output::print_lines(|out| write(&runs, out))?;
        } else if self.console {
            let consoles: Vec<&str> = runs.iter().map(|run| run.console.as_str()).collect();
            let consoles = consoles.join("\n");
            // A file gets the console as it was, a terminal nothing that commands it.
            if std::io::stdout().is_terminal() {
                output::print(&consoles)?;
            } else {
                output::print_exactly(&consoles)?;
            }
        } else {
            output::print_table(&runs)?;
        }
        if let Some(path) = &self.report {
            output::write_report(&runs, path)?;
        }
        if let Some(directory) = &self.data {
            output::write_data(&runs, directory)?;
        }
        Ok(ExitStatus::Done)
    }
}

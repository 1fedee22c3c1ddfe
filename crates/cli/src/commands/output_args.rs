// SPDX-License-Identifier: MIT OR Apache-2.0
//! The forms in which a command presents its results.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_report::csv::rows_csv;
use serde_json::Value;

use crate::output;

/// As text for a terminal, or as JSON; and as a page, and as a table.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write its rows to FILE, as comma-separated values, with the names that JSON has
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a page about it (HTML, one file) to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl OutputArgs {
    /// Refuses a file that cannot be written, before anything is measured.
    pub fn check(&self) -> Result<()> {
        output::check_file(self.csv.as_deref())?;
        output::check_file(self.report.as_deref())
    }

    /// Returns true if standard output is for a program.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints and writes what is asked for; `rows` names the list in the JSON whose elements are
    /// the rows of a table.
    pub fn show(
        &self,
        rows: &str,
        json: impl Fn() -> Value,
        text: impl FnOnce() -> String,
        page: impl FnOnce() -> Result<String>,
    ) -> Result<()> {
        output::print_result(self.json, &json, |_| text())?;
        if let Some(path) = &self.csv {
            output::write_whole(path, &rows_csv(&json(), rows))
                .with_context(|| path.display().to_string())?;
        }
        match &self.report {
            Some(path) => output::write_page(&page()?, path),
            None => Ok(()),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! In which forms a command tells what came of it.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use crate::output;

/// As text for a terminal, or as JSON; and as a page.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a page about it (HTML, one file) to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl OutputArgs {
    /// Refuses a page that cannot be written, before anything is measured.
    pub fn check(&self) -> Result<()> {
        output::check_file(self.report.as_deref())
    }

    /// Whether standard output is for a program.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints and writes what is asked for.
    pub fn show(
        &self,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
        page: impl FnOnce() -> Result<String>,
    ) -> Result<()> {
        output::print_result(self.json, json, |_| text())?;
        match &self.report {
            Some(path) => output::write_page(&page()?, path),
            None => Ok(()),
        }
    }
}

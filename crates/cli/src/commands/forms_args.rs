// SPDX-License-Identifier: MIT OR Apache-2.0
//! In which forms verdicts are told: what `judge` and `gate` share.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_model::Run;
use punctual_report::judgement::{Case, junit, kcidb, ktap, lava, openmetrics};
use serde_json::Value;

use crate::output;

/// Text, JSON, KTAP or LAVA's signals on standard output; files beside.
#[derive(Debug, Args)]
#[expect(clippy::doc_markdown, reason = "a terminal shows these texts")]
pub struct FormsArgs {
    /// Write a page (HTML, one file) with verdicts, stories and evidence to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long, group = "printed")]
    json: bool,
    /// Print KTAP, the kernel's test protocol
    #[arg(long, group = "printed")]
    ktap: bool,
    /// Print signals for LAVA
    #[arg(long, group = "printed")]
    lava: bool,
    /// Write JUnit XML to FILE
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write tests for KernelCI's database (KCIDB 5.3) to FILE
    #[arg(long, value_name = "FILE")]
    kcidb: Option<PathBuf>,
    /// Write histograms and verdicts as OpenMetrics to FILE
    #[arg(long, value_name = "FILE")]
    openmetrics: Option<PathBuf>,
}

impl FormsArgs {
    /// Refuses files that cannot be written, before anything is measured.
    pub fn check(&self) -> Result<()> {
        for file in [&self.report, &self.junit, &self.kcidb, &self.openmetrics] {
            output::check_file(file.as_deref())?;
        }
        Ok(())
    }

    /// Prints and writes what is asked for.
    pub fn show(
        &self,
        cases: &[Case],
        runs: &[Run],
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
        page: impl FnOnce() -> Result<String>,
    ) -> Result<()> {
        if self.json {
            output::print_json(&json())?;
        } else if self.ktap {
            output::print(&ktap(cases))?;
        } else if self.lava {
            output::print(&lava(cases))?;
        } else {
            output::print(&text())?;
        }
        if let Some(path) = &self.report {
            output::write_page(&page()?, path)?;
        }
        let write = |path: &Option<PathBuf>, text: &dyn Fn() -> String| match path {
            Some(path) => fs::write(path, text()).with_context(|| path.display().to_string()),
            None => Ok(()),
        };
        write(&self.junit, &|| junit(cases))?;
        write(&self.kcidb, &|| format!("{:#}\n", kcidb(cases, runs)))?;
        write(&self.openmetrics, &|| openmetrics(cases, runs))
    }
}

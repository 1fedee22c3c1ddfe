// SPDX-License-Identifier: MIT OR Apache-2.0
//! In which forms verdicts are told: what `judge` and `gate` share.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_model::Run;
use punctual_report::judgement::{Case, Ksft, cases_csv, junit, kcidb, ktap, lava, openmetrics};
use punctual_report::mail::Mail;
use serde_json::Value;

use crate::{ExitStatus, output, tell};

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
    /// Print KTAP, the kernel's test protocol, and end as a test of its selftests does: 0 all
    /// pass; 1 something fails, is undecided, or an error; 4 something cannot be measured there
    #[arg(long, group = "printed")]
    ktap: bool,
    /// Print signals for LAVA
    #[arg(long, group = "printed")]
    lava: bool,
    /// Write a mail for a list to FILE: plain text of 25 lines at most, which says what got worse or
    /// is unfit, by how much, what is undecided, and how to repeat it without an installation
    #[arg(long, value_name = "FILE")]
    mail: Option<PathBuf>,
    /// Write a line of CSV for each verdict to FILE
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
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
        for file in [
            &self.report,
            &self.mail,
            &self.csv,
            &self.junit,
            &self.kcidb,
            &self.openmetrics,
        ] {
            output::check_file(file.as_deref())?;
        }
        Ok(())
    }

    /// The status that `work` ends with; in the terms of the kernel's selftests where KTAP is
    /// asked for: there 4 is a test that was skipped, which an unfit kernel must not look like.
    pub fn ended(&self, work: Result<(ExitStatus, Option<Ksft>)>) -> Result<ExitStatus> {
        if !self.ktap {
            return work.map(|(status, _)| status);
        }
        Ok(match work {
            Ok((_, Some(Ksft::Pass))) => ExitStatus::Done,
            Ok((_, Some(Ksft::Skip))) => ExitStatus::KSFT_SKIP,
            Ok((_, Some(Ksft::Fail) | None)) => ExitStatus::Error,
            Err(error) => {
                tell(&error);
                ExitStatus::Error
            }
        })
    }

    /// The name of the page that is written, for those who are told of it.
    fn page_name(&self) -> Option<&str> {
        self.report.as_ref()?.file_name()?.to_str()
    }

    /// The mail, where one is asked for; it is given the page's name.
    pub fn mail(&self, mail: impl FnOnce(Option<&str>) -> Mail) -> Option<Mail> {
        self.mail.as_ref().map(|_| mail(self.page_name()))
    }

    /// Prints and writes what is asked for; what came of it for the kernel's selftests, where KTAP
    /// is asked for.
    pub fn show(
        &self,
        cases: &[Case],
        runs: &[Run],
        mail: Option<Mail>,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
        page: impl FnOnce() -> Result<String>,
    ) -> Result<Option<Ksft>> {
        let mut result = None;
        if self.json {
            output::print_json(&json())?;
        } else if self.ktap {
            let told = ktap(cases, runs);
            output::print(&told.text)?;
            result = Some(told.result);
        } else if self.lava {
            output::print(&lava(cases))?;
        } else {
            output::print(&text())?;
        }
        if let Some(path) = &self.report {
            output::write_page(&page()?, path)?;
        }
        let write = |path: &Option<PathBuf>, text: &dyn Fn() -> String| match path {
            Some(path) => {
                output::write_whole(path, &text()).with_context(|| path.display().to_string())
            }
            None => Ok(()),
        };
        if let (Some(path), Some(mail)) = (&self.mail, mail) {
            output::write_whole(path, &mail.text()).with_context(|| path.display().to_string())?;
        }
        write(&self.csv, &|| cases_csv(cases))?;
        write(&self.junit, &|| junit(cases))?;
        write(&self.kcidb, &|| format!("{:#}\n", kcidb(cases, runs)))?;
        write(&self.openmetrics, &|| openmetrics(cases, runs))?;
        Ok(result)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual runs`: the measurements so far.

use std::str::FromStr as _;

use anyhow::Result;
use clap::Args;
use punctual_model::run::State;
use punctual_report::csv::rows_csv;
use punctual_report::lists::Rows;
use punctual_store::{Filter, Store, Summary};

use super::{NO_RUNS, StoreArgs, id};
use crate::output::say;
use crate::{ExitStatus, output};

const EXAMPLES: &str = "\
Examples:
  punctual runs --limit 20
  punctual runs --kernel debian-6.12-rt --state failed
  punctual runs --suite demo --from 2026-05-01 --until 2026-06-01 --json";

/// List all runs, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Runs {
    /// Only runs of this suite
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// Only runs of this subject
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// Only runs of this kernel
    #[arg(long, value_name = "ID")]
    kernel: Option<String>,
    /// Only runs in virtual time, or only those on real machines: this one, and boards
    #[arg(long, value_name = "BENCH", value_parser = ["virtual", "host"])]
    bench: Option<String>,
    /// Only runs that were written on this machine
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Only runs with a recording of this probe
    #[arg(long, value_name = "NAME")]
    probe: Option<String>,
    /// Only runs in this state: finished, failed, interrupted or running
    #[arg(long, value_name = "STATE", value_parser = State::from_str)]
    state: Option<State>,
    /// Only runs begun then or later (2026-05-01, 2026-05-01T12:00, UTC)
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only runs begun before
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// At most so many
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Only runs before this one
    #[arg(long, value_name = "RUN")]
    before: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print comma-separated values, with the names that JSON has
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Runs {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        // That nothing was measured yet is no mistake here, as long as no store is named.
        let runs = if self.store.is_new()? {
            Vec::new()
        } else {
            self.list(&self.store.open()?)?
        };
        if self.json || self.csv {
            let list = Rows::runs(&runs).json();
            if self.csv {
                output::print_exactly(&rows_csv(&list, "runs"))?;
            } else {
                output::print_json(&list)?;
            }
        } else if runs.is_empty() {
            say!("{NO_RUNS}");
        } else {
            let head = [
                "RUN", "STARTED", "SUITE", "SUBJECT", "SEED", "STATE", "DIGEST",
            ];
            let mut rows = vec![head.map(str::to_owned).to_vec()];
            rows.extend(runs.iter().map(row));
            output::print(&output::columns(&rows, usize::MAX))?;
        }
        Ok(ExitStatus::Done)
    }
}

impl Runs {
    fn list(&self, store: &Store) -> Result<Vec<Summary>> {
        let filter = Filter {
            suite: self.suite.clone(),
            subject: self.subject.clone(),
            kernel: self.kernel.clone(),
            bench: self.bench.clone(),
            host: self.host.clone(),
            probe: self.probe.clone(),
            state: self.state,
            from: self.from.clone(),
            until: self.until.clone(),
        };
        let before = self.before.as_ref().map(|name| id(store, name));
        let limit = self.limit.unwrap_or(usize::MAX);
        Ok(store.page(&filter, before.transpose()?.as_deref(), limit)?)
    }
}

fn row(run: &Summary) -> Vec<String> {
    let digest = run.digest.as_deref().unwrap_or("-");
    vec![
        run.id.clone(),
        run.started
            .replace('T', " ")
            .trim_end_matches('Z')
            .to_owned(),
        run.suite.clone(),
        run.subject.name.clone(),
        run.seed.to_string(),
        run.state.to_string(),
        digest.chars().take(12).collect(),
    ]
}

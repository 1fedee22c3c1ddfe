// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual list`: the probes, loads, suites and kernels to measure with.

use anyhow::Result;
use clap::{Args, Subcommand};
use punctual_agent::probes;
use punctual_kernels::State;
use punctual_model::plan::IDLE;
use punctual_runner::{loads, suites};
use serde_json::{Value, json};

use super::catalog;
use crate::{ExitStatus, output};

/// List probes, loads, suites, kernels or checks
#[derive(Debug, Args)]
pub struct List {
    #[command(subcommand)]
    what: What,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Clone, Copy, Debug, Subcommand)]
pub enum What {
    /// What can be measured
    Probes,
    /// The stress that can run beside a probe
    Loads,
    /// Which probes run under which loads
    Suites,
    /// What can be judged
    Kernels,
    /// What `punctual doctor` asks a machine
    Checks,
}

impl List {
    /// Lists these.
    pub fn new(what: What, json: bool) -> Self {
        Self { what, json }
    }

    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let (kind, rows) = match self.what {
            What::Probes => ("probes", probes()),
            What::Loads => ("loads", load_rows()?),
            What::Suites => ("suites", suite_rows()?),
            What::Kernels => ("kernels", kernels()?),
            What::Checks => ("checks", checks()),
        };
        if self.json {
            let values: Vec<Value> = rows.iter().map(Row::as_json).collect();
            output::print_json(&json!({ "schema": "punctual.list/1", kind: values }))?;
        } else {
            let rows: Vec<_> = rows.into_iter().map(Row::cells).collect();
            output::print(&output::columns(&rows, output::text_width()))?;
        }
        Ok(ExitStatus::Done)
    }
}

/// A thing that can be named on a command line or in a suite.
struct Row {
    name: String,
    /// The availability, if it is not certain.
    state: Option<State>,
    summary: String,
}

impl Row {
    fn new(name: &str, summary: &str) -> Self {
        Self {
            name: name.to_owned(),
            state: None,
            summary: summary.to_owned(),
        }
    }

    fn cells(self) -> Vec<String> {
        let state = self.state.map(|state| match state {
            State::Cached { release } => release,
            State::NotFetched => "(not fetched)".to_owned(),
            State::Damaged { reason } => format!("(damaged: {reason})"),
        });
        [Some(self.name), state, Some(self.summary)]
            .into_iter()
            .flatten()
            .collect()
    }

    fn as_json(&self) -> Value {
        let mut row = json!({ "name": self.name, "summary": self.summary });
        let (state, more) = match &self.state {
            None => return row,
            Some(State::Cached { release }) => ("cached", Some(("release", release))),
            Some(State::NotFetched) => ("not-fetched", None),
            Some(State::Damaged { reason }) => ("damaged", Some(("reason", reason))),
        };
        row["state"] = json!(state);
        if let Some((key, value)) = more {
            row[key] = json!(value);
        }
        row
    }
}

fn probes() -> Vec<Row> {
    probes::ALL
        .iter()
        .map(|probe| Row::new(probe.name, probe.summary))
        .collect()
}

fn load_rows() -> Result<Vec<Row>> {
    let mut rows = vec![Row::new(IDLE, "no load at all")];
    rows.extend(
        loads::all()?
            .iter()
            .map(|(name, load)| Row::new(name, &load.summary)),
    );
    Ok(rows)
}

fn suite_rows() -> Result<Vec<Row>> {
    let suites = suites::all()?;
    Ok(suites
        .values()
        .map(|suite| Row::new(&suite.name, &suite.summary))
        .collect())
}

fn checks() -> Vec<Row> {
    let all = punctual_doctor::ALL.into_iter().flatten();
    all.map(|check| Row::new(check.id, check.wanted)).collect()
}

/// The kernels, each with its release if it is in the cache.
fn kernels() -> Result<Vec<Row>> {
    let row = |kernel: punctual_kernels::Listed| Row {
        state: Some(kernel.state),
        ..Row::new(&kernel.id, &kernel.summary)
    };
    Ok(catalog()?.list()?.into_iter().map(row).collect())
}

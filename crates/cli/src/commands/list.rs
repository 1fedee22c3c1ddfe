// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual list`: the probes, loads, suites and kernels to measure with.

use anyhow::Result;
use clap::{Args, Subcommand};
use punctual_agent::probes;
use punctual_kernels::{Listed, State};
use punctual_model::plan::IDLE;
use punctual_report::lists::{KernelState, Named, Rows};
use punctual_runner::{loads, suites};

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
    /// Kernels that can be measured
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
        let rows = match self.what {
            What::Probes => probes(),
            What::Loads => load_rows()?,
            What::Suites => suite_rows()?,
            What::Kernels => kernels()?,
            What::Checks => checks(),
        };
        if self.json {
            let rows = match self.what {
                What::Probes => Rows::Probes(rows),
                What::Loads => Rows::Loads(rows),
                What::Suites => Rows::Suites(rows),
                What::Kernels => Rows::Kernels(rows),
                What::Checks => Rows::Checks(rows),
            };
            output::print_json(&rows.json())?;
        } else {
            let rows: Vec<_> = rows.into_iter().map(cells).collect();
            output::print(&output::columns(&rows, output::text_width()))?;
        }
        Ok(ExitStatus::Done)
    }
}

fn named(name: &str, summary: &str) -> Named {
    Named {
        name: name.to_owned(),
        summary: summary.to_owned(),
        state: None,
    }
}

fn cells(row: Named) -> Vec<String> {
    let state = row.state.map(|state| match state {
        KernelState::Cached { release } => release,
        KernelState::NotFetched => "(not fetched)".to_owned(),
        KernelState::Damaged { reason } => format!("(damaged: {reason})"),
    });
    [Some(row.name), state, Some(row.summary)]
        .into_iter()
        .flatten()
        .collect()
}

fn probes() -> Vec<Named> {
    probes::ALL
        .iter()
        .map(|probe| named(probe.name, probe.summary))
        .collect()
}

fn load_rows() -> Result<Vec<Named>> {
    let mut rows = vec![named(IDLE, "no load at all")];
    rows.extend(
        loads::all()?
            .iter()
            .map(|(name, load)| named(name, &load.summary)),
    );
    Ok(rows)
}

fn suite_rows() -> Result<Vec<Named>> {
    let suites = suites::all()?;
    Ok(suites
        .values()
        .map(|suite| named(&suite.name, &suite.summary))
        .collect())
}

fn checks() -> Vec<Named> {
    let all = punctual_doctor::ALL.into_iter().flatten();
    all.map(|check| named(check.id, check.wanted)).collect()
}

/// The kernels, each with its release if it is in the cache.
fn kernels() -> Result<Vec<Named>> {
    let row = |kernel: Listed| Named {
        state: Some(match kernel.state {
            State::Cached { release } => KernelState::Cached { release },
            State::NotFetched => KernelState::NotFetched,
            State::Damaged { reason } => KernelState::Damaged { reason },
        }),
        ..named(&kernel.id, &kernel.summary)
    };
    Ok(catalog()?.list()?.into_iter().map(row).collect())
}

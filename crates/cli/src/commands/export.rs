// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual export`: runs as one file.

use std::collections::HashMap;
use std::io::{BufWriter, IntoInnerError};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_exchange::{Baseline, Writer};
use punctual_model::suite::Suite;
use punctual_model::{Plan, Run};
use punctual_runner::loads;
use punctual_store::{Store, StoreError};

use super::measure::what::WhatArgs;
use super::run_names::refuse;
use super::{StoreArgs, ids, is_run};
use crate::output::{WholeFile, say};
use crate::{ExitStatus, UsageError, output};

const EXAMPLES: &str = "\
Examples:
  punctual export r1 r2 r3 -o rt.punctual
  punctual export stable -o stable.punctual  # the runs of a baseline
  punctual export --all -o everything.punctual
  punctual import rt.punctual  # … elsewhere: runs like any others
  punctual verify rt.punctual  # … repeated there, digest by digest

The file holds all that the runs hold: every sample, provenance, machine, plan,
the suite as it was measured, and the names of baselines that are whole in it.
Kernels are named in it by their checksum and package, and are not part of it.";

/// Write runs as one file, for others to import, or to verify
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Export {
    /// The runs: r3 or 3; r1..r4 for all from r1 to r4; `last`; the name of a baseline
    #[arg(
        value_name = "RUN|BASELINE",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    runs: Vec<String>,
    /// All runs of the store that have ended
    #[arg(long)]
    all: bool,
    /// The file that is written; one of this name is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
}

impl Export {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        output::check_file(Some(&self.output))?;
        let store = self.store.open()?;
        let ids = self.ids(&store)?;
        let load = |id: &String| -> Result<Run> { Ok(store.load(id)?) };
        let count = ids.len();
        let baselines = store.baselines()?.into_iter();
        let is_whole = |(_, runs): &(String, Vec<String>)| runs.iter().all(|run| ids.contains(run));
        let baselines = baselines.filter(is_whole);
        let baselines = baselines.map(|(name, runs)| Baseline { name, runs });
        let size = write(&self.output, ids.iter().map(load), baselines.collect())?;
        let (path, runs) = (
            self.output.display(),
            if count == 1 { "run" } else { "runs" },
        );
        say!("{path} holds {count} {runs}, in {size} bytes");
        Ok(ExitStatus::Done)
    }

    /// The runs that are asked for, each once.
    fn ids(&self, store: &Store) -> Result<Vec<String>> {
        let mut all = Vec::new();
        if self.all {
            let ended = store.list()?.into_iter().rev();
            let ended = ended.filter(|run| run.state != punctual_model::run::State::Running);
            all.extend(ended.map(|run| run.id));
        }
        for name in &self.runs {
            if is_run(name) {
                all.extend(ids(store, std::slice::from_ref(name))?);
                continue;
            }
            let of_baseline = store.baseline(name);
            if let Err(StoreError::UnknownBaseline { .. }) = &of_baseline {
                refuse(store, name)?;
            }
            all.extend(of_baseline?);
        }
        let mut seen = std::collections::HashSet::new();
        all.retain(|id| seen.insert(id.clone()));
        if all.is_empty() {
            return Err(UsageError("there are no runs that have ended".into()).into());
        }
        Ok(all)
    }
}

/// Writes runs to a file, as a whole or not at all unless it is a pipe or a device; returns its size
/// in bytes.
pub fn write(
    path: &Path,
    runs: impl Iterator<Item = Result<Run>>,
    baselines: Vec<Baseline>,
) -> Result<u64> {
    let named = || format!("cannot write {}", path.display());
    let file = WholeFile::create(path).with_context(named)?;
    let mut writer =
        Writer::with_baselines(BufWriter::new(file), env!("CARGO_PKG_VERSION"), baselines)?;
    let mut suites = Suites::default();
    for run in runs {
        let run = run?;
        writer
            .add(&run, suites.as_measured(&run))
            .with_context(named)?;
    }
    let file = writer.finish().with_context(named)?;
    let file = file.into_inner().map_err(IntoInnerError::into_error);
    let file = file.with_context(named)?;
    file.sync().with_context(named)?;
    file.finish().with_context(named)
}

/// The suites that runs were asked for, by the words of the request.
#[derive(Default)]
struct Suites(HashMap<Vec<String>, Option<Suite>>);

impl Suites {
    /// The suite of a run, if it is still the one that was measured.
    fn as_measured(&mut self, run: &Run) -> Option<&Suite> {
        let words = &run.request.what;
        let found = self.0.entry(words.clone()).or_insert_with(|| {
            let what = WhatArgs::of_words(words)?;
            let suite = if run.is_virtual() {
                what.suite_on_guest()
            } else {
                what.suite_on_host()
            };
            suite.ok()
        });
        found.as_ref().filter(|suite| is_measured(suite, run))
    }
}

/// Returns true if a run measured this suite: its steps, and its loads as they are now.
fn is_measured(suite: &Suite, run: &Run) -> bool {
    let Ok(plan) = toml::from_str::<Plan>(&run.plan) else {
        return false;
    };
    let Ok(loads) = loads::of(suite) else {
        return false;
    };
    let same_steps = plan.steps.len() == suite.steps.len()
        && plan
            .steps
            .iter()
            .zip(&suite.steps)
            .all(|(then, now)| (&then.probe, &then.load) == (&now.probe, &now.load));
    let same_loads = plan
        .loads
        .iter()
        .all(|(name, load)| loads.get(name) == Some(load));
    suite.name == run.suite && same_steps && same_loads
}

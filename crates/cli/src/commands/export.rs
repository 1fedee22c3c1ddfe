// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual export`: runs as one file.

use std::collections::HashMap;
use std::io::{BufWriter, IntoInnerError};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_exchange::Writer;
use punctual_model::suite::Suite;
use punctual_model::{Plan, Run};
use punctual_runner::loads;
use punctual_store::Store;
use tempfile::NamedTempFile;

use super::measure::what::WhatArgs;
use super::{StoreArgs, id, is_run};
use crate::output::say;
use crate::{ExitStatus, UsageError, output};

const EXAMPLES: &str = "\
Examples:
  punctual export r1 r2 r3 -o rt.punctual
  punctual export stable -o stable.punctual     the runs of a baseline
  punctual export --all -o everything.punctual
  punctual import rt.punctual                   … elsewhere: runs like any others
  punctual verify rt.punctual                   … repeated there, digest by digest

The file holds all that the runs hold: every sample, provenance, machine, plan,
and the suite as it was measured. Kernels are named in it by their checksum and
package, and are not part of it.";

/// Write runs as one file, for others to import, or to verify
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Export {
    /// The runs: r3 or 3; `last`; the name of a baseline
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
    /// Does it. The file is there as a whole or not at all.
    pub fn run(self) -> Result<ExitStatus> {
        output::check_file(Some(&self.output))?;
        let store = self.store.open()?;
        let ids = self.ids(&store)?;
        let load = |id: &String| -> Result<Run> { Ok(store.load(id)?) };
        let count = ids.len();
        let size = write(&self.output, ids.iter().map(load))?;
        let (path, runs) = (
            self.output.display(),
            if count == 1 { "run" } else { "runs" },
        );
        say!("{path} holds {count} {runs}, in {size} bytes");
        Ok(ExitStatus::Done)
    }

    /// The runs that are asked for, each once.
    fn ids(&self, store: &Store) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        if self.all {
            let ended = store.list()?.into_iter().rev();
            let ended = ended.filter(|run| run.state != punctual_model::run::State::Running);
            ids.extend(ended.map(|run| run.id));
        }
        for name in &self.runs {
            if is_run(name) {
                ids.push(id(store, name)?);
            } else {
                ids.extend(store.baseline(name)?);
            }
        }
        let mut seen = std::collections::HashSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        if ids.is_empty() {
            return Err(UsageError("there are no runs that have ended".into()).into());
        }
        Ok(ids)
    }
}

/// Writes runs to a file, which is there as a whole or not at all; returns its size in bytes.
pub fn write(path: &Path, runs: impl Iterator<Item = Result<Run>>) -> Result<u64> {
    let named = || format!("cannot write {}", path.display());
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let file = NamedTempFile::new_in(directory).with_context(named)?;
    let mut writer = Writer::new(BufWriter::new(file), env!("CARGO_PKG_VERSION"))?;
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
    // A temporary file is for its owner's eyes only; what it becomes is not.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode).with_context(named)?;
    file.as_file().sync_all().with_context(named)?;
    let size = file.as_file().metadata().with_context(named)?.len();
    file.persist(path).with_context(named)?;
    Ok(size)
}

/// The suites that runs were asked for, by the words that asked.
#[derive(Default)]
struct Suites(HashMap<Vec<String>, Option<Suite>>);

impl Suites {
    /// The suite of a run, if it is still what was measured then.
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

/// Whether a run measured this suite: its steps, and its loads as they are now.
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

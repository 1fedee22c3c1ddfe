// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual export`: runs as one file.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, IntoInnerError};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_exchange::{Baseline, Writer};
use punctual_model::suite::Suite;
use punctual_model::{Plan, Run};
use punctual_runner::loads;
use punctual_store::{Store, StoreError};
use rustix::fs::{FlockOperation, flock};
use tempfile::NamedTempFile;

use super::measure::what::WhatArgs;
use super::run_names::refuse;
use super::{StoreArgs, ids, is_run};
use crate::output::say;
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
    /// Runs the command. The file is written as a whole or not at all.
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

/// Writes runs to a file, as a whole or not at all; returns its size in bytes.
pub fn write(
    path: &Path,
    runs: impl Iterator<Item = Result<Run>>,
    baselines: Vec<Baseline>,
) -> Result<u64> {
    let named = || format!("cannot write {}", path.display());
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let file = partial(directory, path).with_context(named)?;
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
    // A temporary file is for its owner's eyes only; what it becomes is not.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode).with_context(named)?;
    file.as_file().sync_all().with_context(named)?;
    let size = file.as_file().metadata().with_context(named)?.len();
    file.persist(path).with_context(named)?;
    Ok(size)
}

/// The end of the name of an incomplete file.
const PARTIAL: &str = ".punctual-partial";

/// A file beside `path` that becomes it. Leftovers of killed exports are removed first: a live
/// export holds a lock on its file.
fn partial(directory: &Path, path: &Path) -> io::Result<NamedTempFile> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let begin = format!(".{name}.");
    for entry in fs::read_dir(directory)?.flatten() {
        let other = entry.file_name().to_string_lossy().into_owned();
        if other.starts_with(&begin) && other.ends_with(PARTIAL) {
            let file = File::open(entry.path());
            if file.is_ok_and(|file| lock(&file).is_ok()) {
                _ = fs::remove_file(entry.path());
            }
        }
    }
    let file = tempfile::Builder::new()
        .prefix(&begin)
        .suffix(PARTIAL)
        .tempfile_in(directory)?;
    lock(file.as_file())?;
    Ok(file)
}

fn lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_export_left_is_removed_by_the_next_and_nothing_else_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.punctual");
        let names = || {
            let entries = fs::read_dir(directory.path()).unwrap().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        // As a killed one leaves it: a file that nobody has locked.
        let (_, left) = partial(directory.path(), &path).unwrap().keep().unwrap();
        let left = left.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            left.starts_with(".mine.punctual.") && left.ends_with(PARTIAL),
            "{left}"
        );
        let other = ".other.punctual.x.punctual-partial";
        fs::write(directory.path().join(other), "").unwrap();
        let alive = partial(directory.path(), &path).unwrap();
        assert!(!names().contains(&left));
        let beside = partial(directory.path(), &path).unwrap();
        assert_eq!(names().len(), 3, "{:?}", names());
        drop((alive, beside));
        assert_eq!(names(), [other]);
        write(&path, std::iter::empty(), Vec::new()).unwrap();
        assert_eq!(names(), [other, "mine.punctual"]);
    }
}

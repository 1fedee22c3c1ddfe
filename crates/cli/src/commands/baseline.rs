// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual baseline`: names of runs that others are compared with.

use std::path::Path;
use std::slice;

use anyhow::Result;
use clap::{Args, Subcommand};
use punctual_model::Run;
use punctual_model::run::State;
use punctual_report::lists::Rows;
use punctual_runner::is_export;
use punctual_store::{Store, StoreError, Summary};

use super::run_names::{refuse, refuse_twice};
use super::{StoreArgs, ids, import, is_run, load};
use crate::output::say;
use crate::{ExitStatus, UsageError, output};

const EXAMPLES: &str = "\
Examples:
  punctual run demo --subject rt --seeds 1..5
  punctual baseline set stable r1..r5
  punctual gate demo --baseline stable --kernel mine
  punctual judge demo --subject rt --limits mine.toml --baseline stable";

/// Name runs that others are compared with: by gate, and by limits
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Baseline {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Give runs a name; a baseline of that name is replaced
    Set {
        /// What to call it
        name: String,
        /// Finished runs of one suite; r1..r4 for all from r1 to r4
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
    },
    /// List all baselines
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Forget names; the runs stay
    Remove {
        /// The baselines
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

impl Baseline {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        match &self.action {
            Action::Set { name, runs } => self.set(name, runs)?,
            Action::List { json } => self.list(*json)?,
            Action::Remove { names } => {
                let store = self.store.open()?;
                for name in names {
                    store.remove_baseline(name)?;
                    say!("baseline {name} is removed; its runs stay");
                }
            }
        }
        Ok(ExitStatus::Done)
    }

    fn set(&self, name: &str, names: &[String]) -> Result<()> {
        if is_run(name) || name.trim().is_empty() || name.contains(char::is_control) {
            let expected =
                format!("expected a name of one line that is not a run's, found {name:?}");
            return Err(UsageError(expected).into());
        }
        let (store, ids) = self.store.ids(names)?;
        refuse_twice(&store, names)?;
        let runs = sound(runs(&store, &ids)?)?;
        measured(&runs)?;
        store.set_baseline(name, &ids)?;
        say!("baseline {name}: {}", ids.join(" "));
        for run in &runs {
            for absent in &run.unsupported {
                let (id, step) = (&run.id, absent.step + 1);
                let (probe, load) = (&absent.probe, &absent.load);
                say!("{id} has no step {step} ({probe} / {load}): every gate is undecided there");
            }
        }
        Ok(())
    }

    fn list(&self, as_json: bool) -> Result<()> {
        let store = self.store.open()?;
        let all = store.baselines()?;
        if as_json {
            return output::print_json(&Rows::baselines(&all).json());
        }
        if all.is_empty() {
            say!("there are no baselines: `punctual baseline set NAME RUN…` makes one");
            return Ok(());
        }
        let head = ["BASELINE", "SUITE", "SUBJECT", "SEEDS", "RUNS"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for (name, ids) in all {
            // Their measurements are not read: one that is damaged hides no baseline.
            let mut runs = Vec::new();
            for id in &ids {
                runs.extend(store.summary(id)?);
            }
            rows.push(row(name, &runs));
        }
        output::print(&output::columns(&rows, usize::MAX))
    }
}

/// Refuses a run without any measurement as a baseline: anything compared with it would be equal.
fn measured(runs: &[Run]) -> Result<()> {
    let Some(run) = runs.iter().find(|run| run.recordings.is_empty()) else {
        return Ok(());
    };
    let id = &run.id;
    let why = run.unsupported.first().map_or(String::new(), |absent| {
        format!(": {} / {}: {}", absent.probe, absent.load, absent.reason)
    });
    let expected = format!("expected runs with measurements: nothing was measured in {id}{why}");
    Err(UsageError(expected).into())
}

fn row(name: String, runs: &[Summary]) -> Vec<String> {
    let each = |told: &dyn Fn(&Summary) -> String| {
        let mut words: Vec<String> = Vec::new();
        for word in runs.iter().map(told) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        words.join(" ")
    };
    vec![
        name,
        each(&|run| run.suite.clone()),
        each(&|run| run.subject.name.clone()),
        each(&|run| run.seed.to_string()),
        each(&|run| run.id.clone()),
    ]
}

/// The runs to compare with: those of a baseline of this name, runs by their own names, or those of
/// a file of `punctual export`, which are then stored.
pub fn named(place: &StoreArgs, names: &[String]) -> Result<Vec<Run>> {
    let is_file = |name: &String| !is_run(name) && Path::new(name).is_file();
    // Where there is no store yet, there is no baseline either.
    let lost = names.iter().find(|name| is_lost(name));
    if let (Some(name), true) = (lost, place.is_new()?) {
        return Err(neither(name).into());
    }
    let store = if names.iter().any(is_file) {
        place.open_or_make()?
    } else {
        place.open()?
    };
    let mut all = Vec::new();
    for name in names {
        if is_run(name) {
            all.extend(runs(&store, &ids(&store, slice::from_ref(name))?)?);
        } else if is_file(name) && !store.baselines()?.iter().any(|(known, _)| known == name) {
            all.extend(runs(&store, &import::of_file(&store, Path::new(name))?)?);
        } else {
            let of_baseline = store.baseline(name);
            if let Err(StoreError::UnknownBaseline { .. }) = &of_baseline {
                if is_lost(name) {
                    return Err(neither(name).into());
                }
                refuse(&store, name)?;
            }
            all.extend(runs(&store, &of_baseline?)?);
        }
    }
    sound(all)
}

/// Returns true if a word is the path of a file that does not exist, as far as its form tells.
fn is_lost(name: &str) -> bool {
    let path = Path::new(name);
    !is_run(name) && !path.is_file() && (name.contains('/') || is_export(path))
}

/// The error for a word that is neither a file nor a baseline.
fn neither(name: &str) -> UsageError {
    UsageError(format!(
        "there is neither a file nor a baseline \"{name}\" (`punctual baseline list` lists all)"
    ))
}

fn runs(store: &Store, ids: &[String]) -> Result<Vec<Run>> {
    ids.iter().map(|id| load(store, id)).collect()
}

/// Checks that runs can be compared with others: each must be whole, and occur once.
fn sound(runs: Vec<Run>) -> Result<Vec<Run>> {
    for (run, number) in runs.iter().zip(0..) {
        if run.state != State::Finished {
            let (id, state) = (&run.id, run.state);
            let expected = format!("expected finished runs for a baseline: {id} is {state}");
            return Err(UsageError(expected).into());
        }
        if runs[..number].iter().any(|other| other.id == run.id) {
            return Err(UsageError(format!("{} is named twice", run.id)).into());
        }
    }
    if let Some(difference) = punctual_report::compare::difference(&runs) {
        return Err(UsageError(format!("a baseline is of one measurement: {difference}")).into());
    }
    if let Some(two) = punctual_judge::two_machines(&runs) {
        return Err(UsageError(format!("a baseline is of one machine: {two}")).into());
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::remove::tests::three_runs;
    use super::*;

    #[test]
    fn a_damaged_run_hides_no_baseline() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        let store = three_runs(&path);
        store.set_baseline("stable", &["r1".to_owned()]).unwrap();
        drop(store);
        let mut bytes = fs::read(&path).unwrap();
        // The version that made the runs.
        let places = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"0.1.0"));
        for at in places.collect::<Vec<_>>() {
            bytes[at..at + 5].copy_from_slice(b"0.1.9");
        }
        fs::write(&path, bytes).unwrap();
        assert!(Store::open(&path).unwrap().load("r1").is_err());
        let command = Baseline {
            action: Action::List { json: false },
            store: StoreArgs {
                db: Some(path.into()),
            },
        };
        assert_eq!(command.run().unwrap(), ExitStatus::Done);
    }
}

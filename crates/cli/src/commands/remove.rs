// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual remove`: forgets runs.

use anyhow::Result;
use clap::Args;
use punctual_store::{Store, StoreError};

use super::StoreArgs;
use crate::ExitStatus;
use crate::output::say;

/// Remove runs for good
#[derive(Debug, Args)]
pub struct Remove {
    /// The runs; r1..r4 for all from r1 to r4
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
}

impl Remove {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let (store, ids) = self.store.ids(&self.runs)?;
        check(&store, &ids)?;
        for id in ids {
            store.remove(&id)?;
            say!("{id} is removed");
        }
        Ok(ExitStatus::Done)
    }
}

/// Refuses runs that do not exist, and those of baselines, before the first one is removed.
fn check(store: &Store, ids: &[String]) -> Result<()> {
    let baselines = store.baselines()?;
    for id in ids {
        // A damaged run, whose summary is an error, may be removed.
        if matches!(store.summary(id), Ok(None)) {
            // The store says that there is none, and which runs have a name like it.
            store.load(id)?;
        }
        if let Some((baseline, _)) = baselines.iter().find(|(_, runs)| runs.contains(id)) {
            let (id, baseline) = (id.clone(), baseline.clone());
            return Err(StoreError::Needed { id, baseline }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use punctual_model::MachineRecord;
    use punctual_model::machine::VirtualMachine;
    use serde_json::json;

    use super::*;

    fn three_runs(path: &Path, state: &str) -> Store {
        let store = Store::open(path).unwrap();
        for seed in 1..=3 {
            let run = json!({
                "id": "", "suite": "mine", "seed": seed,
                "plan": format!("seed = {seed}\n[[step]]\nprobe = \"timer\"\n"),
                "subject": { "name": "rt", "kernel": "k", "boot": "", "bench": "virtual" },
                "state": state, "started": "2026-05-01T00:00:00Z",
                "finished": "2026-05-01T00:00:01Z", "punctual": "0.1.0",
                "machine": MachineRecord::Virtual(VirtualMachine::default()),
                "shards": 1, "steps": [], "recordings": [], "unsupported": [], "console": "",
            });
            store.add(&serde_json::from_value(run).unwrap()).unwrap();
        }
        store
    }

    #[test]
    fn nothing_is_removed_if_one_of_the_runs_cannot_be() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        let store = three_runs(&path, "finished");
        store.set_baseline("stable", &["r2".to_owned()]).unwrap();
        let remove = |words: &[&str]| {
            let command = Remove {
                runs: words.iter().map(ToString::to_string).collect(),
                store: StoreArgs {
                    db: Some(path.clone().into()),
                },
            };
            command.run().map_err(|error| error.to_string())
        };
        for (words, why) in [
            (["r3", "r9"], "there is no run \"r9\""),
            (["r1", "r2"], "run r2 belongs to baseline \"stable\""),
        ] {
            let said = remove(&words).unwrap_err();
            assert!(said.starts_with(why), "{said}");
            assert_eq!(store.list().unwrap().len(), 3, "{words:?}");
        }
        assert_eq!(remove(&["r1", "r3"]), Ok(ExitStatus::Done));
        assert_eq!(store.list().unwrap().len(), 1);
    }

    #[test]
    fn a_run_that_is_damaged_may_be_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        drop(three_runs(&path, "failed"));
        let mut bytes = fs::read(&path).unwrap();
        let places = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"failed"));
        for at in places.collect::<Vec<_>>() {
            bytes[at..at + 6].copy_from_slice(b"fallen");
        }
        fs::write(&path, bytes).unwrap();
        let store = Store::open(&path).unwrap();
        assert!(store.summary("r2").is_err());
        check(&store, &["r2".to_owned()]).unwrap();
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual remove`: forgets runs.

use anyhow::Result;
use clap::Args;

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
        store.check_removable(&ids)?;
        for id in ids {
            store.remove(&id)?;
            say!("{id} is removed");
        }
        Ok(ExitStatus::Done)
    }
}

#[cfg(test)]
pub mod tests {
    use std::path::Path;

    use punctual_store::Store;

    use super::*;
    use crate::fixtures::run;

    /// A store of three finished runs.
    pub fn three_runs(path: &Path) -> Store {
        let store = Store::open(path).unwrap();
        for seed in 1..=3 {
            store.add(&run("", seed)).unwrap();
        }
        store
    }

    #[test]
    fn nothing_is_removed_if_one_of_the_runs_cannot_be() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        let store = three_runs(&path);
        store.set_baseline("stable", &["r2".to_owned()]).unwrap();
        // This process writes it.
        assert_eq!(store.begin(&run("", 4)).unwrap(), "r4");
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
            (["r3", "r4"], "run r4 is being written by process "),
        ] {
            let said = remove(&words).unwrap_err();
            assert!(said.starts_with(why), "{said}");
            assert_eq!(store.list().unwrap().len(), 4, "{words:?}");
        }
        assert_eq!(remove(&["r1", "r3"]), Ok(ExitStatus::Done));
        assert_eq!(store.list().unwrap().len(), 2);
    }
}

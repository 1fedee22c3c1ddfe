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
        for id in ids {
            store.remove(&id)?;
            say!("{id} is removed");
        }
        Ok(ExitStatus::Done)
    }
}

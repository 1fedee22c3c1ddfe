// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual remove`: forgets runs.

use anyhow::Result;
use clap::Args;

use super::{StoreArgs, id};
use crate::ExitStatus;
use crate::output::say;

/// Remove runs for good
#[derive(Debug, Args)]
pub struct Remove {
    /// The runs
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
}

impl Remove {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let store = self.store.open()?;
        for name in &self.runs {
            let id = id(&store, name)?;
            store.remove(&id)?;
            say!("{id} is removed");
        }
        Ok(ExitStatus::Done)
    }
}

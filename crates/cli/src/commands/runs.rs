// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual runs`: what has been measured so far.

use anyhow::Result;
use clap::Args;
use punctual_store::Summary;
use serde_json::json;

use super::{NO_RUNS, StoreArgs};
use crate::output::say;
use crate::{ExitStatus, output};

/// List all runs, newest first
#[derive(Debug, Args)]
pub struct Runs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Runs {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        // That nothing was measured yet is no mistake here, as long as no file is named.
        let is_new = self.store.db.is_none() && !self.store.path()?.exists();
        let runs = if is_new {
            Vec::new()
        } else {
            self.store.open()?.list()?
        };
        if self.json {
            let runs: Vec<_> = runs.iter().map(as_json).collect();
            output::print_json(&json!({ "schema": "punctual.list/1", "runs": runs }))?;
        } else if runs.is_empty() {
            say!("{NO_RUNS}");
        } else {
            let head = [
                "RUN", "STARTED", "SUITE", "SUBJECT", "SEED", "STATE", "DIGEST",
            ];
            let mut rows = vec![head.map(str::to_owned).to_vec()];
            rows.extend(runs.iter().map(row));
            output::print(&output::columns(&rows, usize::MAX))?;
        }
        Ok(ExitStatus::Done)
    }
}

fn row(run: &Summary) -> Vec<String> {
    let digest = run.digest.as_deref().unwrap_or("-");
    vec![
        run.id.clone(),
        run.started
            .replace('T', " ")
            .trim_end_matches('Z')
            .to_owned(),
        run.suite.clone(),
        run.subject.name.clone(),
        run.seed.to_string(),
        run.state.to_string(),
        digest.chars().take(12).collect(),
    ]
}

fn as_json(run: &Summary) -> serde_json::Value {
    json!({
        "id": run.id,
        "suite": run.suite,
        "subject": {
            "name": run.subject.name,
            "kernel": run.subject.kernel,
            "boot": run.subject.boot,
            "bench": run.subject.bench,
        },
        "seed": run.seed,
        "state": run.state.name(),
        "started": run.started,
        "finished": run.finished,
        "digest": run.digest,
        "recordings": run.recordings,
    })
}

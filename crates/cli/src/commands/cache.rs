// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual cache`: what is kept because it is costly to make.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use punctual_bench::cache::{self, Entry};
use punctual_kernels::paths;
use punctual_model::Nanos;

use crate::output::say;
use crate::scale_args::parse_duration;
use crate::{ExitStatus, output};

/// Show or prune the booted guests in the cache
#[derive(Debug, Args)]
pub struct Cache {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Remove booted guests that have not been used for some time; all can be made anew
    Prune {
        /// Keep what was used within this time (12h, 7d)
        #[arg(long, value_name = "TIME", default_value = "30d", value_parser = parse_duration)]
        older_than: Nanos,
        /// Remove all of them
        #[arg(long, conflicts_with = "older_than")]
        all: bool,
    },
}

impl Cache {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        let directory = paths::cache_dir()?;
        match self.action {
            None => list(&directory)?,
            Some(Action::Prune { older_than, all }) => {
                let age = if all { 0 } else { older_than.0.unsigned_abs() };
                // What is older than the clock's beginning is none.
                let limit = SystemTime::now().checked_sub(Duration::from_nanos(age));
                let removed = cache::prune(&directory, limit.unwrap_or(SystemTime::UNIX_EPOCH))?;
                say!("removed {}", size(removed));
            }
        }
        Ok(ExitStatus::Done)
    }
}

fn list(directory: &Path) -> Result<()> {
    let entries = cache::list(directory)?;
    let mut rows = vec![["KIND", "SIZE", "USED", "WHAT"].map(str::to_owned).to_vec()];
    rows.extend(entries.iter().map(row));
    let total = size(entries.iter().map(|entry| entry.bytes).sum());
    output::print(&format!("{}\n", directory.display()))?;
    output::print(&output::columns(&rows, output::width()))?;
    output::print(&format!("{total} in all\n"))
}

fn row(entry: &Entry) -> Vec<String> {
    let used =
        Timestamp::try_from(entry.used).map(|used| used.strftime("%Y-%m-%d %H:%M").to_string());
    vec![
        entry.kind.to_owned(),
        size(entry.bytes),
        used.unwrap_or_default(),
        entry.what.clone(),
    ]
}

fn size(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

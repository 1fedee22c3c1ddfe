//! `punctual cache`: what is kept because it is costly to make.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::{Args, Subcommand};
use punctual_bench::cache::{self, Entry};
use punctual_kernels::paths;

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
        /// Keep what was used within so many days
        #[arg(long, default_value_t = 30)]
        days: u64,
        /// Remove all of them
        #[arg(long, conflicts_with = "days")]
        all: bool,
    },
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Cache {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        let directory = paths::cache_dir()?;
        match self.action {
            None => {
                let entries = cache::list(&directory)?;
                output::print(&format!("{}\n", directory.display()))?;
                output::print(&output::columns(
                    &entries.iter().map(row).collect::<Vec<_>>(),
                ))?;
                output::print(&format!(
                    "{} in all\n",
                    size(entries.iter().map(|e| e.bytes).sum())
                ))?;
            }
            Some(Action::Prune { days, all }) => {
                let age = if all {
                    Duration::ZERO
                } else {
                    DAY * u32::try_from(days)?
                };
                let removed = cache::prune(&directory, SystemTime::now() - age)?;
                eprintln!("removed {}", size(removed));
            }
        }
        Ok(ExitStatus::Done)
    }
}

fn row(entry: &Entry) -> Vec<String> {
    vec![entry.kind.to_owned(), size(entry.bytes), entry.what.clone()]
}

fn size(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual cache`: files that are kept because they are costly to make.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use bytesize::ByteSize;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use punctual_bench::cache::{self, Entry, Keep};
use punctual_kernels::paths;
use punctual_model::Nanos;

use crate::output::say;
use crate::scale_args::parse_duration;
use crate::{ExitStatus, UsageError, output};

/// Show or prune the booted guests in the cache
#[derive(Debug, Args)]
pub struct Cache {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    _store: super::NoStoreArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Remove booted guests that have not been used for some time; all can be made anew
    ///
    /// What a run works with just now stays. A new booted guest makes room by itself: those
    /// used longest ago go where all together take more than `PUNCTUAL_CACHE_SIZE`.
    Prune {
        /// Keep what was used within this time (12h, 7d) [default: 30d]
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        older_than: Option<Nanos>,
        /// Keep at most so much (5GiB), of what was used last
        #[arg(long, value_name = "SIZE", value_parser = parse_size)]
        max_size: Option<ByteSize>,
        /// Remove all of them
        #[arg(long, conflicts_with_all = ["older_than", "max_size"])]
        all: bool,
    },
}

/// The variable for the space that booted guests may take.
const SIZE_VARIABLE: &str = "PUNCTUAL_CACHE_SIZE";

/// The space that booted guests may take in the cache, in bytes.
pub fn limit() -> Result<u64, UsageError> {
    let Some(text) = std::env::var_os(SIZE_VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(cache::LIMIT);
    };
    let size = parse_size(&text.to_string_lossy());
    let size = size.map_err(|error| UsageError(format!("{SIZE_VARIABLE}: {error}")));
    Ok(size?.as_u64())
}

fn parse_size(text: &str) -> Result<ByteSize, String> {
    text.parse()
        .map_err(|_| format!("expected a size such as 10GiB, found \"{text}\""))
}

impl Cache {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let directory = paths::cache_dir()?;
        match self.action {
            None => list(&directory)?,
            Some(Action::Prune {
                older_than,
                max_size,
                all,
            }) => {
                let removed = cache::prune(&directory, keep(older_than, max_size, all))?;
                say!("removed {}", size(removed));
            }
        }
        Ok(ExitStatus::Done)
    }
}

/// The entries to keep; an age by default, if no size is given.
fn keep(older_than: Option<Nanos>, max_size: Option<ByteSize>, all: bool) -> Keep {
    const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);
    let age = match (older_than, max_size) {
        (Some(age), _) => Some(Duration::from_nanos(age.0.unsigned_abs())),
        (None, Some(_)) => None,
        (None, None) => Some(if all { Duration::ZERO } else { MONTH }),
    };
    // What is older than the clock's beginning is none.
    let since = age.and_then(|age| SystemTime::now().checked_sub(age));
    Keep {
        since: since.unwrap_or(SystemTime::UNIX_EPOCH),
        bytes: max_size.map_or(u64::MAX, |size| size.as_u64()),
    }
}

fn list(directory: &Path) -> Result<()> {
    let entries = cache::list(directory)?;
    let mut rows = vec![["KIND", "SIZE", "USED", "WHAT"].map(str::to_owned).to_vec()];
    rows.extend(entries.iter().map(row));
    let sum = |kernels| -> u64 {
        let entries = entries.iter();
        let of_kind = entries.filter(|entry| (entry.kind == "kernel") == kernels);
        of_kind.map(|entry| entry.bytes).sum()
    };
    let (kernels, others) = (size(sum(true)), size(sum(false)));
    let limit = size(limit()?);
    output::print(&format!("{}\n", directory.display()))?;
    output::print(&output::columns(&rows, output::text_width()))?;
    output::print(&format!(
        "kernels {kernels}, all else {others} of {limit} ({SIZE_VARIABLE})\n"
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_is_none_is_told_by_one_that_is() {
        assert_eq!(parse_size("5GiB"), Ok(ByteSize::gib(5)));
        let wrong = "expected a size such as 10GiB, found \"lots\"";
        assert_eq!(parse_size("lots"), Err(wrong.to_owned()));
    }
}

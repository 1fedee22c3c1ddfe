// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual import`: what other programs have measured.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_model::Nanos;
use punctual_model::run::State;
use punctual_runner::import::{Told, import};
use punctual_store::End;

use super::StoreArgs;
use crate::output::say;
use crate::scale_args::parse_duration;
use crate::{ExitStatus, UsageError};

const EXAMPLES: &str = "\
Examples:
  cyclictest -m -p 80 -a -t -D 1h -q -h 1000 --json=c.json
  punctual import c.json --subject mine --load stress-ng
  punctual judge last --limits limits.toml
  rtla timerlat hist -d 1h > t.txt; punctual import t.txt
  latmus -T 1h -g evl.txt; punctual import evl.txt --subject evl
  latency -h -T 3600 > latency.txt; punctual import latency.txt --subject xenomai

Such a run has the probe timer, so limits and comparisons meet it. Values are as
they are written: in whole microseconds, rounded down. What a file does not say
stands in the run's provenance as not known.";

/// Make runs of what cyclictest (JSON, or the histogram of -h), rtla timerlat hist,
/// jitterdebugger (results.json), EVL's latmus (-g) or Xenomai's latency (-h) have
/// written
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Import {
    /// Their files, each of which becomes a run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What tables call the subject; else the kernel's release
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// The load that was under way; else unknown
    #[arg(long, value_name = "NAME")]
    load: Option<String>,
    /// The time between two samples, where the file does not say it (1ms)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    interval: Option<Nanos>,
    /// The histogram's values are nanoseconds (cyclictest -N)
    #[arg(short = 'N', long)]
    nanoseconds: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Import {
    /// Does it: all files are read before the first is stored.
    pub fn run(self) -> Result<ExitStatus> {
        let told = Told {
            subject: self.subject.clone(),
            load: self.load.clone(),
            interval: self.interval,
            nanoseconds: self.nanoseconds,
        };
        let read = |path: &PathBuf| -> Result<_> {
            let text = fs::read_to_string(path)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Ok(import(&name, &text, &told)?)
        };
        let mut runs = Vec::new();
        for path in &self.files {
            let run = read(path).with_context(|| path.display().to_string())?;
            runs.push((path.display(), run));
        }
        let store = self.store.open_or_make()?;
        for (path, run) in runs {
            if let Some(known) = store.find_equal(&run)? {
                let known = known.id;
                let wrong = format!("{path}: expected a new file, found that of {known}");
                return Err(UsageError(wrong).into());
            }
            let id = store.begin(&run)?;
            let digest = run.digest();
            let end = End {
                state: State::Finished,
                error: None,
                finished: run.finished.as_deref().unwrap_or_default(),
                console: "",
                digest: digest.as_deref(),
            };
            store.end(&id, &end)?;
            let count = run.recordings.len();
            say!("{id} is {path}, {}: {count} recordings", run.suite);
        }
        Ok(ExitStatus::Done)
    }
}

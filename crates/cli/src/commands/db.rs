// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual db`: stores as a whole.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::Ordering;

use anyhow::Result;
use clap::{Args, Subcommand};
use punctual_store::{Place, Store, StoreError, Transferred};

use super::{check_file, open};
use crate::output::say;
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual db copy ~/.local/share/punctual/runs.db \\
      postgres://ann@db.example/punctual
  punctual db copy postgres://ann@db.example/punctual backup.db
  punctual db copy node1.db runs.db

Exit status: 0 copied; 3 a damaged run was left out, or Ctrl-C has ended it;
1 an error; 2 a wrong request.";

/// Copy stores: from a file to a server, and back
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Db {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    _store: super::NoStoreArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Copy all runs and baselines of one store into another, each once
    ///
    /// What is there already stays as it is, and a run that is being written is left out. What
    /// was interrupted goes on when it is begun again. A run keeps its id where the other store
    /// has never given it; else it gets a new one, which is printed.
    Copy {
        /// The store with the runs: a file, or `postgres://USER@HOST/DATABASE`
        from: OsString,
        /// The store that gets them, which is made where there is none
        to: OsString,
        /// Print nothing of runs that keep their ids
        #[arg(short, long)]
        quiet: bool,
    },
}

impl Db {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        match self.action {
            Action::Copy { from, to, quiet } => copy(&from, &to, quiet),
        }
    }
}

/// The progress so far.
#[derive(Default)]
struct Done {
    copied: usize,
    known: usize,
    left_out: usize,
    damaged: usize,
}

fn copy(from: &OsString, to: &OsString, quiet: bool) -> Result<ExitStatus> {
    let (from, to) = (Place::parse(from)?, Place::parse(to)?);
    check_file(&from)?;
    if is_same(&from, &to) {
        return Err(UsageError(format!("{from}: expected two stores, found one")).into());
    }
    if let Some(path) = to.file() {
        output::check_parent(path)?;
    }
    let cancel = interrupt::flag()?;
    // A database without a store is not made one: a wrong name must not pass for an empty store.
    let (from, to) = (Store::open_to_read(&from)?, open(&to)?);
    let mut done = Done::default();
    let result = from.copy_into(&to, |one| {
        if let Some(line) = done.count(one, quiet) {
            // A reader that has gone is no reason to end.
            _ = output::print(&line);
        }
        if cancel.load(Ordering::SeqCst) {
            return Err(StoreError::Cancelled);
        }
        Ok(())
    });
    let Done {
        copied,
        known,
        left_out,
        damaged,
    } = done;
    say!("{copied} copied, {known} there already, {left_out} left out");
    match result {
        Err(StoreError::Cancelled) => {
            say!("punctual: interrupted: the same command goes on");
            Ok(ExitStatus::Incomplete)
        }
        result => {
            result?;
            Ok(if damaged == 0 {
                ExitStatus::Done
            } else {
                ExitStatus::Incomplete
            })
        }
    }
}

/// Returns true if both are one store, by whatever names.
fn is_same(from: &Place, to: &Place) -> bool {
    let file = |place: &Place| {
        let file = place.file()?.metadata().ok()?;
        Some((file.dev(), file.ino()))
    };
    from == to || file(from).is_some_and(|own| Some(own) == file(to))
}

impl Done {
    /// Counts a run, and returns anything that a user must know about it.
    fn count(&mut self, one: Transferred, quiet: bool) -> Option<String> {
        match one {
            Transferred::Copied { from, to } => {
                self.copied += 1;
                if from == to {
                    (!quiet).then(|| format!("{from}\n"))
                } else {
                    Some(format!("{from} is {to} there\n"))
                }
            }
            Transferred::Known { from, to, stories } => {
                self.known += 1;
                let is = (from != to).then(|| format!("{from} is {to} there"));
                let new = (stories > 0).then(|| {
                    let of = if stories == 1 { "story" } else { "stories" };
                    format!("{stories} {of} of {from} copied")
                });
                let told: Vec<String> = is.into_iter().chain(new).collect();
                (!told.is_empty()).then(|| format!("{}\n", told.join("; ")))
            }
            Transferred::Running { from } => {
                self.left_out += 1;
                Some(format!("{from} is being written, and left out\n"))
            }
            Transferred::Damaged { from, why } => {
                self.damaged += 1;
                self.left_out += 1;
                Some(format!("{from} is damaged, and left out: {why}\n"))
            }
            Transferred::Baseline { name } => (!quiet).then(|| format!("baseline {name}\n")),
            Transferred::Campaign { name } => (!quiet).then(|| format!("campaign {name}\n")),
            Transferred::CampaignUnderWay { name } => {
                self.left_out += 1;
                Some(format!("campaign {name} is under way, and left out\n"))
            }
            Transferred::OtherBaseline { name } => {
                self.left_out += 1;
                Some(format!(
                    "baseline {name} is left out: there it has other runs, or one of its runs is \
                     not there\n"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_store_is_the_same_by_another_name() {
        let directory = tempfile::tempdir().unwrap();
        let (own, link) = (
            directory.path().join("own.db"),
            directory.path().join("link.db"),
        );
        let is_same =
            |from: &Path, to: &Path| is_same(&from.to_owned().into(), &to.to_owned().into());
        assert!(!is_same(&own, &link), "neither is there");
        std::fs::write(&own, "").unwrap();
        assert!(!is_same(&own, &link));
        std::os::unix::fs::symlink(&own, &link).unwrap();
        assert!(is_same(&own, &link) && is_same(&own, &directory.path().join("./own.db")));
        let hard = directory.path().join("hard.db");
        std::fs::hard_link(&own, &hard).unwrap();
        assert!(is_same(&own, &hard));
    }
}

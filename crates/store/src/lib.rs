// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs, kept in one `SQLite` file.
//!
//! A run is written as it happens: [`Store::begin`] makes its row, each recording is a
//! transaction of its own, [`Store::end`] closes it. Whatever kills the process between
//! two of these, all that was stored stays, and the run shows as
//! [`State::Interrupted`] because the process that owned it is gone.
//!
//! Any number of threads and processes may use a store at the same time.
#![forbid(unsafe_code)]

mod baselines;
mod body;
mod connect;
mod copy;
mod error;
mod migrate;
mod owner;
mod rows;
mod sql;
#[cfg(test)]
mod tests;
mod version_1;

/// The reader of stored recordings, for `fuzz`.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::body::{decode, encode};
}

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use punctual_model::record::{Provenance, StepRecord, Unsupported};
use punctual_model::run::State;
use punctual_model::{Recording, Run, Subject};
use rusqlite::{Connection, Transaction, TransactionBehavior, named_params};

use crate::connect::{Sharing, connect};
use crate::error::Fault;
pub use crate::error::StoreError;
use crate::owner::Owner;

/// The runs in one file.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    earlier: Option<PathBuf>,
    connection: Mutex<Connection>,
}

/// A run in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The run's id: `r17`.
    pub id: String,
    /// The suite's name.
    pub suite: String,
    /// What was judged.
    pub subject: Subject,
    /// The seed.
    pub seed: u64,
    /// How far it got.
    pub state: State,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// When it ended, RFC 3339, UTC.
    pub finished: Option<String>,
    /// The digest over what was measured.
    pub digest: Option<String>,
    /// How many recordings it has.
    pub recordings: usize,
}

/// What came of a run that was to be [added](Store::add).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It has this id now.
    New(String),
    /// The store had it, under this id.
    Known(String),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End<'a> {
    /// How far it got.
    pub state: State,
    /// Why it failed or was interrupted.
    pub error: Option<&'a str>,
    /// When it ended, RFC 3339, UTC.
    pub finished: &'a str,
    /// What the subject's console showed.
    pub console: &'a str,
    /// [`Run::digest`].
    pub digest: Option<&'a str>,
}

impl Store {
    /// Opens the store in a file; makes the file and its directories where they are missing.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        make_parent(path)?;
        let connect = |sharing| connect(path, sharing).map_err(|fault| fault.at(path));
        let opened = connect(Sharing::Shared).or_else(|error| match error {
            StoreError::Full { .. } => connect(Sharing::Alone).map_err(|_| error),
            error => Err(error),
        });
        let (connection, earlier) = opened?;
        Ok(Self {
            path: path.to_owned(),
            earlier,
            connection: Mutex::new(connection),
        })
    }

    /// The copy of the store as it was, where opening it has migrated it from an earlier version.
    pub fn copy_of_earlier(&self) -> Option<&Path> {
        self.earlier.as_deref()
    }

    /// Where runs are kept unless the user says otherwise:
    /// `$XDG_DATA_HOME/punctual/runs.db`, else `~/.local/share/punctual/runs.db`.
    pub fn default_path() -> Result<PathBuf, StoreError> {
        let variable = std::env::var_os;
        resolve(variable("XDG_DATA_HOME"), variable("HOME")).ok_or(StoreError::NoHome)
    }

    /// Begins a run that the calling process owns, and returns the id that it gets: `r`
    /// and a number, easy to type, never given twice.
    ///
    /// Stored is all that `run` holds, but for `id`, `finished` and `state`: it is
    /// running now.
    pub fn begin(&self, run: &Run) -> Result<String, StoreError> {
        let owner = Owner::this().map_err(StoreError::Owner)?;
        self.transact(TransactionBehavior::Immediate, |transaction| {
            Ok(rows::id_of(insert(transaction, run, &owner)?))
        })
    }

    /// Stores a run that has ended elsewhere, as a whole or not at all, unless the store has it:
    /// to the last sample, whatever it is called.
    ///
    /// # Panics
    /// If its state is [`State::Running`].
    pub fn add(&self, run: &Run) -> Result<Added, StoreError> {
        assert_ne!(run.state, State::Running, "a run that goes on is not added");
        let owner = Owner::this().map_err(StoreError::Owner)?;
        self.transact(TransactionBehavior::Immediate, |transaction| {
            if let Some(number) = rows::select_same(transaction, run)? {
                return Ok(Added::Known(rows::id_of(number)));
            }
            let number = insert(transaction, run, &owner)?;
            rows::end_as(transaction, number, run)?;
            Ok(Added::New(rows::id_of(number)))
        })
    }

    /// The id of the newest finished run that was made as `run` would be, without its samples:
    /// what [`find_equal`](Self::find_equal) would return.
    pub fn id_of_equal(&self, run: &Run) -> Result<Option<String>, StoreError> {
        self.transact(TransactionBehavior::Deferred, |transaction| {
            Ok(rows::select_equal(transaction, run)?.map(rows::id_of))
        })
    }

    /// Stores what the target read back from the running kernel.
    pub fn set_provenance(&self, id: &str, provenance: &Provenance) -> Result<(), StoreError> {
        self.write(id, |transaction, number| {
            rows::update_provenance(transaction, number, provenance)
        })
    }

    /// Stores what a probe delivered, or what it has measured so far, in place of what was
    /// stored so before.
    pub fn put_recording(&self, id: &str, recording: &Recording) -> Result<(), StoreError> {
        self.write(id, |transaction, number| {
            rows::insert_recording(transaction, number, recording)
        })
    }

    /// Stores what the load of a step did.
    pub fn add_step(&self, id: &str, step: &StepRecord) -> Result<(), StoreError> {
        self.write(id, |transaction, number| {
            rows::insert_step(transaction, number, step)
        })
    }

    /// Stores that a probe could not run, and why.
    pub fn add_unsupported(&self, id: &str, unsupported: &Unsupported) -> Result<(), StoreError> {
        self.write(id, |transaction, number| {
            rows::insert_unsupported(transaction, number, unsupported)
        })
    }

    /// Ends a run; it takes nothing more after this.
    ///
    /// # Panics
    /// If its state is [`State::Running`]: a run does not end by running.
    pub fn end(&self, id: &str, end: &End) -> Result<(), StoreError> {
        assert_ne!(end.state, State::Running, "a run does not end by running");
        self.write(id, |transaction, number| {
            rows::end_run(transaction, number, end)
        })
    }

    /// All runs, newest first.
    pub fn list(&self) -> Result<Vec<Summary>, StoreError> {
        let orphan = |run: &Summary| is_orphan(run.state, run.finished.as_deref());
        self.read(rows::select_summaries, |runs| runs.iter().any(orphan))
    }

    /// A whole run, raw samples included; an error if any part of it is damaged.
    pub fn load(&self, id: &str) -> Result<Run, StoreError> {
        self.read(
            |transaction| rows::select_run(transaction, rows::find(transaction, id)?),
            |run| is_orphan(run.state, run.finished.as_deref()),
        )
    }

    /// The newest finished run that was made as `run` would be: the same plan, subject and
    /// machine, by the same version.
    pub fn find_equal(&self, run: &Run) -> Result<Option<Run>, StoreError> {
        self.transact(TransactionBehavior::Deferred, |transaction| {
            let number = rows::select_equal(transaction, run)?;
            number
                .map(|number| rows::select_run(transaction, number))
                .transpose()
        })
    }

    /// Removes a run with all that belongs to it, unless it is still being written.
    pub fn remove(&self, id: &str) -> Result<(), StoreError> {
        self.transact(TransactionBehavior::Immediate, |transaction| {
            let number = rows::find(transaction, id)?;
            let (state, owner) = rows::select_owner(transaction, number)?;
            if state == State::Running {
                let (id, pid) = (rows::id_of(number), owner.pid);
                return Err(StoreError::Alive { id, pid }.into());
            }
            baselines::check_not_needed(transaction, number)?;
            transaction.execute(sql::DELETE_RUN, named_params! { ":run": number })?;
            Ok(())
        })
    }

    /// Gives runs a name under which others are compared with them; a baseline of that name
    /// is replaced.
    ///
    /// # Panics
    /// Without a run: a baseline of nothing compares with nothing.
    pub fn set_baseline(&self, name: &str, ids: &[String]) -> Result<(), StoreError> {
        assert!(!ids.is_empty(), "a baseline has runs");
        self.transact(TransactionBehavior::Immediate, |transaction| {
            baselines::set(transaction, name, ids)
        })
    }

    /// All baselines, by name, with the ids of their runs.
    pub fn baselines(&self) -> Result<Vec<(String, Vec<String>)>, StoreError> {
        self.transact(TransactionBehavior::Deferred, baselines::all)
    }

    /// The ids of a baseline's runs, in the order in which they were named.
    pub fn baseline(&self, name: &str) -> Result<Vec<String>, StoreError> {
        self.transact(TransactionBehavior::Deferred, |transaction| {
            baselines::runs_of(transaction, name)
        })
    }

    /// Forgets a baseline's name; its runs stay.
    pub fn remove_baseline(&self, name: &str) -> Result<(), StoreError> {
        self.transact(TransactionBehavior::Immediate, |transaction| {
            baselines::remove(transaction, name)
        })
    }

    /// Reads, and reads again where a run's owner is gone: it may have ended the run
    /// between our reading and our look at the process. Gone, it can do so no more.
    fn read<T>(
        &self,
        read: impl Fn(&Transaction) -> Result<T, Fault>,
        has_orphan: impl Fn(&T) -> bool,
    ) -> Result<T, StoreError> {
        let first = self.transact(TransactionBehavior::Deferred, &read)?;
        if has_orphan(&first) {
            return self.transact(TransactionBehavior::Deferred, read);
        }
        Ok(first)
    }

    /// Writes to a run that has not ended.
    fn write(
        &self,
        id: &str,
        write: impl Fn(&Transaction, i64) -> Result<(), Fault>,
    ) -> Result<(), StoreError> {
        self.transact(TransactionBehavior::Immediate, |transaction| {
            let number = rows::find(transaction, id)?;
            match rows::select_owner(transaction, number)? {
                (State::Running, _) => write(transaction, number),
                (state, _) => {
                    let id = rows::id_of(number);
                    Err(StoreError::Ended { id, state }.into())
                }
            }
        })
    }

    /// One transaction: all of it or nothing. One that will write says so at its
    /// beginning, because `SQLite` waits for other writers only there.
    fn transact<T>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        // A thread that panicked has had its transaction rolled back: nothing is half done.
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let attempt = || {
            let transaction = connection.transaction_with_behavior(behavior)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        attempt().map_err(|fault: Fault| fault.at(&self.path))
    }
}

/// Stores all that a run holds; returns the number that it gets.
fn insert(transaction: &Transaction, run: &Run, owner: &Owner) -> Result<i64, Fault> {
    let number = rows::insert_run(transaction, run, owner)?;
    if let Some(provenance) = &run.provenance {
        rows::update_provenance(transaction, number, provenance)?;
    }
    for step in &run.steps {
        rows::insert_step(transaction, number, step)?;
    }
    for recording in &run.recordings {
        rows::insert_recording(transaction, number, recording)?;
    }
    for unsupported in &run.unsupported {
        rows::insert_unsupported(transaction, number, unsupported)?;
    }
    Ok(number)
}

/// Whether a run's owner was gone before it ended the run.
fn is_orphan(state: State, finished: Option<&str>) -> bool {
    state == State::Interrupted && finished.is_none()
}

fn make_parent(path: &Path) -> Result<(), StoreError> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => {
            std::fs::create_dir_all(parent).map_err(|source| StoreError::Directory {
                path: parent.to_owned(),
                source,
            })
        }
        _ => Ok(()),
    }
}

/// The XDG base directory specification has relative paths ignored.
fn resolve(xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(xdg)
        .or_else(|| absolute(home).map(|home| home.join(".local/share")))
        .map(|base| base.join("punctual/runs.db"))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs, kept in an `SQLite` file or in a database of a `PostgreSQL` server.
//!
//! A run is written as it happens: [`Store::begin`] makes its row, each recording is a transaction
//! of its own, and [`Store::end`] closes it. If the process is killed between two of these,
//! everything stored stays, and the run shows as [`State::Interrupted`] because the process that
//! owned it is gone.
//!
//! Any number of threads and processes may use a store at the same time.
#![forbid(unsafe_code)]
// What only servers need stays, unused.
#![cfg_attr(not(feature = "postgresql"), allow(dead_code, unused_variables))]

#[cfg(feature = "postgresql")]
mod address;
mod baselines;
mod body;
mod campaigns;
mod connect;
mod database;
mod error;
mod filter;
mod owner;
#[cfg(feature = "postgresql")]
mod password;
mod place;
#[cfg_attr(not(feature = "postgresql"), path = "no_postgresql.rs")]
mod postgresql;
mod rows;
mod sql;
mod stories;
#[cfg(test)]
mod tests;
#[cfg(feature = "postgresql")]
mod tls;
mod transfer;

/// The decoder and encoder of stored recordings, for `fuzz`.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::body::{decode, encode};
}

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use punctual_model::campaign::Asked;
use punctual_model::record::{Provenance, StepRecord, Unsupported};
use punctual_model::run::State;
use punctual_model::{Nanos, Recording, RecordingKey, Run, Subject};
use rusqlite::{Connection, TransactionBehavior, named_params};

pub use crate::campaigns::{Campaign, CampaignSummary, PlannedRun, RunAt};
use crate::connect::{Sharing, connect, is_whole};
use crate::database::{Kind, Row, Transaction};
use crate::error::Fault;
pub use crate::error::StoreError;
pub use crate::filter::Filter;
use crate::owner::Owner;
pub use crate::place::Place;
pub use crate::postgresql::Address;
use crate::postgresql::Server;
pub use crate::stories::Story;
pub use crate::transfer::Transferred;

/// The runs in one place.
pub struct Store {
    place: Place,
    database: Database,
    /// The device and inode of the file at the time it was opened.
    file: Option<(u64, u64)>,
    sharing: Sharing,
    /// What showed that the file was written to, when it was opened.
    written: Option<Written>,
    /// When dropped, ends the thread that reports that this process is alive.
    alive: OnceLock<Sender<()>>,
}

/// The database that keeps the runs.
enum Database {
    File(Mutex<Connection>),
    Server(Arc<Server>),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// The interval between signs of life from a process that writes to a server. Others consider it
/// dead after six times as long.
const BEAT: Duration = Duration::from_secs(10);

/// A run in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The run's id: `r17`.
    pub id: String,
    /// The suite's name.
    pub suite: String,
    /// The subject that was measured.
    pub subject: Subject,
    /// The seed.
    pub seed: u64,
    /// Its state.
    pub state: State,
    /// The time at which it began, RFC 3339, UTC.
    pub started: String,
    /// The time at which it ended, RFC 3339, UTC.
    pub finished: Option<String>,
    /// The digest over its measurements.
    pub digest: Option<String>,
    /// The number of recordings it has.
    pub recordings: usize,
    /// The name of the machine that wrote it.
    pub host: String,
}

/// The longest sample of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Longest {
    /// The run's id.
    pub run: String,
    /// The key of the recording: the probe, the load and the variant.
    pub key: RecordingKey,
    /// The length of the sample.
    pub value: Nanos,
}

/// The result of [adding](Store::add) a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// The run was added under this id.
    New(String),
    /// The store already had it, under this id.
    Known(String),
}

/// The result of [beginning](Store::begin_unless_known) a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The run was begun under this id, and the calling process owns it.
    New(String),
    /// The store already has an equal run, finished, under this id.
    Known(String),
    /// An equal run is in progress under this id, in this process or another.
    Elsewhere(String),
}

/// The prefix of the key of a run that another program has measured; the rest identifies its
/// content.
const IMPORTED: &str = "imported-";

/// The identity of a run, as a short word. Runs of the same suite, plan, subject and machine, by
/// the same version, have the same key, whatever they measured. For a run that another program has
/// measured, the key depends on its content, whatever its name.
///
/// # Panics
/// Never: the model's types can be written as JSON.
pub fn key(run: &Run) -> String {
    if run.is_imported() {
        let mut content = punctual_model::digest::content(run);
        content.truncate(24);
        return format!("{IMPORTED}{content}");
    }
    let what = (&run.suite, &run.plan, run.seed, &run.subject, &run.punctual);
    let mut sum = punctual_model::digest::sha256(rows::json(&(what, &run.machine)).as_bytes());
    sum.truncate(24);
    sum
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End<'a> {
    /// The state in which it ended.
    pub state: State,
    /// The reason why it failed or was interrupted.
    pub error: Option<&'a str>,
    /// The time at which it ended, RFC 3339, UTC.
    pub finished: &'a str,
    /// The output of the subject's console.
    pub console: &'a str,
    /// [`Run::digest`].
    pub digest: Option<&'a str>,
}

impl Store {
    /// Opens the store in a file; makes the file and its directories if they are missing. One that
    /// can only be read is opened for reading, whatever is asked of it later.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        make_parent(path)?;
        let written = written(path);
        let connect = |sharing| match connect(path, sharing) {
            Ok(connection) => Ok((connection, sharing)),
            Err(fault) => Err(fault.at(&path.to_owned().into())),
        };
        let opened = connect(Sharing::Shared).or_else(|error| match error {
            StoreError::Full { .. } => connect(Sharing::Alone).map_err(|_| error),
            error if error.is_of_permission() && is_whole(path) => {
                connect(Sharing::Unlocked).map_err(|_| error)
            }
            error => Err(error),
        });
        let (connection, sharing) = opened?;
        Ok(Self {
            file: identity(path),
            sharing,
            written,
            place: path.to_owned().into(),
            database: Database::File(Mutex::new(connection)),
            alive: OnceLock::new(),
        })
    }

    /// Opens the store in a file, as [`Self::open`] does, or in a server's database, where it is
    /// made if there is none.
    pub fn at(place: &Place) -> Result<Self, StoreError> {
        match place {
            Place::File(path) => Self::open(path),
            Place::Server(address) => Self::on(address, false),
        }
    }

    /// Opens an existing store for reading; none of its runs can be changed through it.
    pub fn open_to_read(place: &Place) -> Result<Self, StoreError> {
        let path = match place {
            Place::Server(address) => return Self::on(address, true),
            Place::File(path) => path,
        };
        if !path.exists() {
            return Err(StoreError::NoStore(place.clone()));
        }
        let store = Self::open(path)?;
        if let Database::File(connection) = &store.database {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let only = connection.pragma_update(None, "query_only", true);
            only.map_err(|error| Fault::from(error).at(place))?;
        }
        Ok(store)
    }

    fn on(address: &Address, read_only: bool) -> Result<Self, StoreError> {
        let server = Server::open(address, read_only);
        server.map(|server| Self {
            place: address.clone().into(),
            file: None,
            sharing: Sharing::Shared,
            written: None,
            database: Database::Server(Arc::new(server)),
            alive: OnceLock::new(),
        })
    }

    /// The place of the store.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Returns true if others can use the store while this one is open, and this one sees what they
    /// write. Where the disk is full, or the store cannot be written to, it is not so: such a store
    /// is closed as soon as possible.
    pub fn is_shared(&self) -> bool {
        self.sharing == Sharing::Shared
    }

    /// Returns an error if the file was written to since it was opened, and nothing kept the writer
    /// out: what was read may be half of one moment and half of another.
    fn check_unwritten(&self) -> Result<(), StoreError> {
        match &self.place {
            Place::File(path)
                if self.sharing == Sharing::Unlocked && written(path) != self.written =>
            {
                Err(StoreError::Written { path: path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if the opened file no longer has its name: it was deleted, or another one
    /// was put in its place. Nobody will read what is written to it.
    pub fn check_in_place(&self) -> Result<(), StoreError> {
        match (&self.place, self.file) {
            (Place::File(path), Some(_)) if identity(path) != self.file => {
                Err(StoreError::Replaced { path: path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The number of bytes that the stored parts of a run take; the cost of loading it is
    /// proportional to that.
    pub fn weight(&self, id: &str) -> Result<u64, StoreError> {
        self.transact(Kind::Read, |transaction| {
            let of_run = named_params! { ":run": rows::find(transaction, id)? };
            let bytes = |row: &Row| row.get::<i64>("bytes");
            let bytes = transaction.first(sql::SELECT_WEIGHT, of_run, bytes)?;
            Ok(bytes.unwrap_or_default().unsigned_abs())
        })
    }

    /// The file for runs unless the user says otherwise: `$XDG_DATA_HOME/punctual/runs.db`, else
    /// `~/.local/share/punctual/runs.db`.
    pub fn default_path() -> Result<PathBuf, StoreError> {
        let variable = std::env::var_os;
        resolve(variable("XDG_DATA_HOME"), variable("HOME")).ok_or(StoreError::NoHome)
    }

    /// Begins a run that the calling process owns, and returns its new id: `r` and a number, easy
    /// to type, never given twice.
    ///
    /// Stores everything in `run` except `id`, `finished` and `state`: it is running now.
    pub fn begin(&self, run: &Run) -> Result<String, StoreError> {
        let owner = Owner::this().map_err(StoreError::Owner)?;
        let uid = owner::new_uid().map_err(StoreError::Owner)?;
        self.stay_alive(&owner)?;
        self.transact(Kind::Write, |transaction| {
            Ok(rows::id_of(insert(transaction, run, &uid, &owner)?))
        })
    }

    /// Begins a run as [`Self::begin`] does, unless the store has an equal one that is finished or
    /// in progress. If several processes ask, one of them measures it.
    pub fn begin_unless_known(&self, run: &Run) -> Result<Begun, StoreError> {
        let owner = Owner::this().map_err(StoreError::Owner)?;
        let uid = owner::new_uid().map_err(StoreError::Owner)?;
        self.stay_alive(&owner)?;
        let key = key(run);
        self.transact(Kind::Write, |transaction| {
            transaction.hold_adding()?;
            if let Some(number) = rows::select_equal(transaction, &key)? {
                return Ok(Begun::Known(rows::id_of(number)));
            }
            if let Some(number) = rows::select_running_equal(transaction, &key)? {
                return Ok(Begun::Elsewhere(rows::id_of(number)));
            }
            let number = insert(transaction, run, &uid, &owner)?;
            Ok(Begun::New(rows::id_of(number)))
        })
    }

    /// Stores a run that has ended elsewhere, as a whole or not at all, unless the store already
    /// has it. A run counts as the same if it is equal to the last sample, whatever its name. A run
    /// that another program has measured is compared by the content of its file, so that copies of
    /// the file are one run. If several processes add one at once, one of them stores it.
    ///
    /// # Panics
    /// If its state is [`State::Running`].
    pub fn add(&self, run: &Run) -> Result<Added, StoreError> {
        assert_ne!(run.state, State::Running, "a run that goes on is not added");
        let owner = Owner::this().map_err(StoreError::Owner)?;
        let uid = owner::new_uid().map_err(StoreError::Owner)?;
        self.transact(Kind::Write, |transaction| {
            transaction.hold_adding()?;
            let known = if run.is_imported() {
                rows::select_equal(transaction, &key(run))?
            } else {
                rows::select_same(transaction, run)?
            };
            if let Some(number) = known {
                return Ok(Added::Known(rows::id_of(number)));
            }
            let number = insert(transaction, run, &uid, &owner)?;
            rows::end_as(transaction, number, run)?;
            Ok(Added::New(rows::id_of(number)))
        })
    }

    /// The id of the newest finished run that was made as `run` would be, without its samples. It
    /// is the run that [`find_equal`](Self::find_equal) would return.
    pub fn id_of_equal(&self, run: &Run) -> Result<Option<String>, StoreError> {
        self.transact(Kind::Read, |transaction| {
            Ok(rows::select_equal(transaction, &key(run))?.map(rows::id_of))
        })
    }

    /// Stores the facts that the target read back from the running kernel.
    pub fn set_provenance(&self, id: &str, provenance: &Provenance) -> Result<(), StoreError> {
        self.write(id, |transaction, number| {
            rows::update_provenance(transaction, number, provenance)
        })
    }

    /// Stores a probe's recording, or its interim result, which replaces the one stored before.
    pub fn put_recording(&self, id: &str, recording: &Recording) -> Result<(), StoreError> {
        self.write(id, |transaction, number| {
            rows::insert_recording(transaction, number, recording)
        })
    }

    /// Stores the work that the load of a step did.
    pub fn add_step(&self, id: &str, step: &StepRecord) -> Result<(), StoreError> {
        self.write(id, |transaction, number| {
            rows::insert_step(transaction, number, step)
        })
    }

    /// Stores that a probe could not run, with the reason.
    pub fn add_unsupported(&self, id: &str, unsupported: &Unsupported) -> Result<(), StoreError> {
        self.write(id, |transaction, number| {
            rows::insert_unsupported(transaction, number, unsupported)
        })
    }

    /// Ends a run; it accepts nothing more after this.
    ///
    /// # Panics
    /// If its state is [`State::Running`]: a run does not end by running.
    pub fn end(&self, id: &str, end: &End) -> Result<(), StoreError> {
        assert_ne!(end.state, State::Running, "a run does not end by running");
        self.write(id, |transaction, number| {
            rows::end_run(transaction, number, end)
        })
    }

    /// Runs that pass a filter, newest first: at most `limit` of them, and, if `before` is given,
    /// only those before the run with that id.
    pub fn page(
        &self,
        filter: &Filter,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Summary>, StoreError> {
        let orphan = |run: &Summary| is_orphan(run.state, run.finished.as_deref());
        self.read(
            |transaction| filter::page(transaction, filter, before, limit),
            |runs| runs.iter().any(orphan),
        )
    }

    /// The longest sample of each recording that these runs have, by their ids.
    pub fn longest(&self, ids: &[&str]) -> Result<Vec<Longest>, StoreError> {
        self.transact(Kind::Read, |transaction| filter::longest(transaction, ids))
    }

    /// The summary of one run; `None` if there is no such run.
    pub fn summary(&self, id: &str) -> Result<Option<Summary>, StoreError> {
        self.transact(Kind::Read, |transaction| {
            let number = match rows::find(transaction, id) {
                Err(Fault::Store(StoreError::Unknown { .. })) => return Ok(None),
                number => number?,
            };
            let statement = format!("{} WHERE number = :run", sql::SELECT_SUMMARIES);
            transaction.first(&statement, named_params! { ":run": number }, rows::summary)
        })
    }

    /// The id of the newest run.
    pub fn newest(&self) -> Result<Option<String>, StoreError> {
        let first = self.page(&Filter::default(), None, 1)?;
        Ok(first.into_iter().next().map(|run| run.id))
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

    /// The newest finished run that was made as `run` would be: the same plan, subject and machine,
    /// by the same version.
    pub fn find_equal(&self, run: &Run) -> Result<Option<Run>, StoreError> {
        self.transact(Kind::Read, |transaction| {
            let number = rows::select_equal(transaction, &key(run))?;
            number
                .map(|number| rows::select_run(transaction, number))
                .transpose()
        })
    }

    /// Stores an explanation of late samples of a run as it was told; each story once.
    pub fn add_story(&self, id: &str, story: &Story) -> Result<(), StoreError> {
        self.transact(Kind::Write, |transaction| {
            let number = rows::find(transaction, id)?;
            transaction.hold_run(number)?;
            stories::add(transaction, number, story).map(drop)
        })
    }

    /// The stories of a run, in the order in which they were told.
    pub fn stories(&self, id: &str) -> Result<Vec<Story>, StoreError> {
        self.transact(Kind::Read, |transaction| {
            stories::all(transaction, rows::find(transaction, id)?)
        })
    }

    /// Returns an error if one of these runs cannot be removed: it does not exist, it is still being
    /// written, or a baseline holds it.
    pub fn check_removable(&self, ids: &[String]) -> Result<(), StoreError> {
        self.transact(Kind::Read, |transaction| {
            for id in ids {
                check_removable(transaction, rows::find(transaction, id)?)?;
            }
            Ok(())
        })
    }

    /// Removes a run with everything that belongs to it, unless it is still being written.
    pub fn remove(&self, id: &str) -> Result<(), StoreError> {
        self.transact(Kind::Write, |transaction| {
            let number = rows::find(transaction, id)?;
            transaction.hold_baselines()?;
            transaction.hold_run(number)?;
            check_removable(transaction, number)?;
            transaction.execute(sql::DELETE_RUN, named_params! { ":run": number })?;
            Ok(())
        })
    }

    /// Gives runs a name under which others are compared with them; replaces a baseline of that
    /// name.
    ///
    /// # Panics
    /// Without a run: a baseline of nothing compares with nothing.
    pub fn set_baseline(&self, name: &str, ids: &[String]) -> Result<(), StoreError> {
        assert!(!ids.is_empty(), "a baseline has runs");
        self.transact(Kind::Write, |transaction| {
            baselines::set(transaction, name, ids)
        })
    }

    /// All baselines, by name, with the ids of their runs.
    pub fn baselines(&self) -> Result<Vec<(String, Vec<String>)>, StoreError> {
        self.transact(Kind::Read, baselines::all)
    }

    /// The ids of a baseline's runs, in the order in which they were named.
    pub fn baseline(&self, name: &str) -> Result<Vec<String>, StoreError> {
        self.transact(Kind::Read, |transaction| {
            baselines::runs_of(transaction, name)
        })
    }

    /// Forgets a baseline's name; its runs stay.
    pub fn remove_baseline(&self, name: &str) -> Result<(), StoreError> {
        self.transact(Kind::Write, |transaction| {
            baselines::remove(transaction, name)
        })
    }

    /// Begins a campaign, or takes it up again: one with the same name and an equal request is the
    /// same campaign. The calling process works on it from now on. Returns its id: `c` and a
    /// number.
    pub fn begin_campaign(
        &self,
        asked: &Asked,
        planned: &[PlannedRun],
        begun: &str,
    ) -> Result<String, StoreError> {
        let owner = Owner::this().map_err(StoreError::Owner)?;
        self.stay_alive(&owner)?;
        self.transact(Kind::Write, |transaction| {
            transaction.hold_adding()?;
            campaigns::begin(transaction, asked, planned, begun, &owner)
        })
    }

    /// Notes that the calling process has stopped working on a campaign, and the text that it left.
    pub fn end_campaign(&self, id: &str, ended: &str, told: &str) -> Result<(), StoreError> {
        let owner = Owner::this().map_err(StoreError::Owner)?;
        self.transact(Kind::Write, |transaction| {
            campaigns::end(transaction, id, ended, told, &owner)
        })
    }

    /// All campaigns, newest first. A damaged one hides no other: its summary says what is wrong.
    pub fn campaigns(&self) -> Result<Vec<CampaignSummary>, StoreError> {
        self.transact(Kind::Read, campaigns::all)
    }

    /// A campaign, with the state of each of its runs.
    pub fn campaign(&self, id: &str) -> Result<Campaign, StoreError> {
        self.transact(Kind::Read, |transaction| campaigns::one(transaction, id))
    }

    /// Reads, and reads again if a run's owner is gone: it may have ended the run between the first
    /// read and the look at the process. Once gone, it cannot do so.
    fn read<T>(
        &self,
        read: impl Fn(&Transaction) -> Result<T, Fault>,
        has_orphan: impl Fn(&T) -> bool,
    ) -> Result<T, StoreError> {
        let first = self.transact(Kind::Read, &read)?;
        if has_orphan(&first) {
            return self.transact(Kind::Read, read);
        }
        Ok(first)
    }

    /// Writes to a run that has not ended.
    fn write(
        &self,
        id: &str,
        write: impl Fn(&Transaction, i64) -> Result<(), Fault>,
    ) -> Result<(), StoreError> {
        self.transact(Kind::Write, |transaction| {
            let number = rows::find(transaction, id)?;
            transaction.hold_run(number)?;
            match rows::select_owner(transaction, number)? {
                (State::Running, _) => write(transaction, number),
                (state, _) => {
                    let id = rows::id_of(number);
                    Err(StoreError::Ended { id, state }.into())
                }
            }
        })
    }

    /// Runs one transaction, which takes effect as a whole or not at all.
    fn transact<T>(
        &self,
        kind: Kind,
        work: impl Fn(&Transaction) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let connection = match &self.database {
            Database::Server(server) => return server.transact(kind, work),
            Database::File(connection) => connection,
        };
        if kind == Kind::Write {
            self.check_in_place()?;
        }
        // A thread that panicked has had its transaction rolled back: nothing is half done.
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        // One that will write says so at its beginning, because SQLite waits for other writers
        // only there.
        let behavior = match kind {
            Kind::Read => TransactionBehavior::Deferred,
            Kind::Write => TransactionBehavior::Immediate,
        };
        let mut attempt = || {
            let transaction = connection.transaction_with_behavior(behavior)?;
            let transaction = Transaction::File(transaction);
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        let value = attempt().map_err(|fault: Fault| fault.at(&self.place));
        // What is torn may look damaged.
        self.check_unwritten()?;
        let value = value?;
        if kind == Kind::Write {
            self.check_in_place()?;
        }
        Ok(value)
    }

    /// On a server, lets others know from now on that this process is alive: they may be on
    /// machines from which it cannot be seen.
    fn stay_alive(&self, owner: &Owner) -> Result<(), StoreError> {
        let Database::Server(server) = &self.database else {
            return Ok(());
        };
        let says = |transaction: &Transaction, owner: &Owner| {
            let values = named_params! {
                ":pid": owner.pid, ":start": owner.start as i64, ":boot": owner.boot,
            };
            transaction.execute(sql::SEE_OWNER, values)
        };
        if self.alive.get().is_some() {
            return Ok(());
        }
        self.transact(Kind::Write, |transaction| {
            transaction.execute(sql::FORGET_OWNERS, &[])?;
            transaction.execute(sql::FORGET_COMMITS, &[])?;
            says(transaction, owner)
        })?;
        let (sender, receiver) = channel();
        if self.alive.set(sender).is_ok() {
            let (server, owner) = (Arc::clone(server), owner.clone());
            thread::spawn(move || {
                while receiver.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                    // Where the server is away, the next beat tries again; a writer says why.
                    _ = server
                        .transact_at_once(Kind::Write, |transaction| says(transaction, &owner));
                }
            });
        }
        Ok(())
    }
}

/// Stores everything that a run holds; returns its new number.
fn insert(transaction: &Transaction, run: &Run, uid: &str, owner: &Owner) -> Result<i64, Fault> {
    let number = rows::insert_run(transaction, run, uid, owner)?;
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

/// Returns an error if a run is still being written, or a baseline holds it.
fn check_removable(transaction: &Transaction, number: i64) -> Result<(), Fault> {
    if let Some(owner) = rows::select_writer(transaction, number)? {
        let (id, pid) = (rows::id_of(number), owner.pid);
        let host = (!owner.is_here()).then_some(owner.host);
        return Err(StoreError::Alive { id, pid, host }.into());
    }
    baselines::check_not_needed(transaction, number)
}

/// Returns true if a run's owner was gone before it ended the run.
fn is_orphan(state: State, finished: Option<&str>) -> bool {
    state == State::Interrupted && finished.is_none()
}

/// The device and inode of a file; `None` if it does not exist.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

/// The size of a file in bytes, and the time at which it was written to: seconds since 1970, and
/// nanoseconds.
type Written = (u64, i64, i64);

/// What shows that a file was written to; `None` if it does not exist.
fn written(path: &Path) -> Option<Written> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.len(), file.mtime(), file.mtime_nsec()))
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

/// The path of the file for runs by these variables. Relative paths are ignored, as the XDG base
/// directory specification demands.
fn resolve(xdg: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(xdg)
        .or_else(|| absolute(home).map(|home| home.join(".local/share")))
        .map(|base| base.join("punctual/runs.db"))
}

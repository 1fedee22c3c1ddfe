// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors of a store.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use punctual_model::run::State;
use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};
use rusqlite::types::FromSqlError;
use thiserror::Error;

use crate::connect::beside;
use crate::place::Place;
use crate::postgresql;

/// An error of a store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Neither `XDG_DATA_HOME` nor `HOME` names a directory for files.
    #[error(
        "expected an absolute path in XDG_DATA_HOME or in HOME, found none: \
         set one of them"
    )]
    NoHome,
    /// The directory of the file could not be made.
    #[error("cannot make the directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is not an `SQLite` database.
    #[error("expected an SQLite database in {}, found something else", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a database of another program.
    #[error("expected a store of Punctual in {place}, found a database of another program")]
    Foreign {
        /// The file, or the server's database.
        place: Place,
    },
    /// The store was written by a later version of this program.
    #[error(
        "{place} has schema version {found}, this program knows versions up to {known}: \
         use a newer punctual"
    )]
    Newer {
        /// The file, or the server's database.
        place: Place,
        /// The version of the store.
        found: i64,
        /// The latest version that this program knows.
        known: i64,
    },
    /// The store was written before the first release.
    #[error(
        "{place} is a store of version {found}, which no release wrote, and this program needs \
         {known}: `punctual export` of the program that wrote it brings its runs into a file, and \
         `punctual import` from there into another store"
    )]
    Earlier {
        /// The file, or the server's database.
        place: Place,
        /// The version of the store.
        found: i64,
        /// The version that this program needs.
        known: i64,
    },
    /// The file was a store, and parts of it are wrong or missing.
    #[error(
        "the store {0} is damaged: restore it from a copy, or save what can be saved with \
         `sqlite3 {0} .recover`", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error of `SQLite`.
        source: rusqlite::Error,
    },
    /// Nothing more can be written. Runs stored before stay readable.
    #[error(
        "cannot write to {}: the disk is full, or a limit for the size of files is reached; \
         what was stored before is kept: free space",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// The error that `SQLite` got from the system.
        source: rusqlite::Error,
    },
    /// This user may not write to the file, or not to its directory.
    #[error(
        "expected permission to write to {} and to its directory, found none{}: ask its owner for \
         it; without it the store can be read after its owner has opened and closed it, as \
         `punctual runs` does", path.display(), of_others(foreign)
    )]
    NotWritable {
        /// The file.
        path: PathBuf,
        /// The files beside it that belong to another user than the file.
        foreign: Vec<PathBuf>,
        /// The error of `SQLite`.
        source: rusqlite::Error,
    },
    /// A file that was read without locks was written to meanwhile.
    #[error(
        "expected nobody to write to {} while it was read without permission to lock it, found \
         that somebody did: read it again", path.display()
    )]
    Written {
        /// The file.
        path: PathBuf,
    },
    /// The file of this name has been replaced or deleted.
    #[error(
        "the store {} was deleted or replaced while it was open: what was written since then is lost; move it only while nothing measures and nothing is served",
        path.display()
    )]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// Another process kept the file locked for too long.
    #[error(
        "{} was locked by another process for more than {waited_s} s: end that process",
        path.display()
    )]
    Busy {
        /// The file.
        path: PathBuf,
        /// The time waited, in seconds.
        waited_s: u64,
    },
    /// Any other error of `SQLite`.
    #[error("cannot use the store {}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error of `SQLite`.
        source: rusqlite::Error,
    },
    /// A URL that names no database.
    #[error("expected postgres://USER@HOST/DATABASE, found another form: {reason}")]
    Url {
        /// The fault in the URL.
        reason: String,
    },
    /// A server was named, but this build cannot reach any.
    #[error(
        "expected a file: this build of Punctual has no PostgreSQL; `./build` makes one that has"
    )]
    NoServers,
    /// The certificates by which a server proves its identity cannot be read.
    #[error("cannot read the certificates that this machine trusts")]
    Roots(#[source] io::Error),
    /// No server answers.
    #[error("cannot reach the server of {place}: does it run, and does it listen there?")]
    Unreachable {
        /// The server's database.
        place: Place,
        /// The error of the connection.
        source: postgresql::Error,
    },
    /// A server that answered before has not come back.
    #[error(
        "the server of {place} went away and has not come back for {waited_s} s: what it had \
         acknowledged is kept; start it, and go on with --resume"
    )]
    Lost {
        /// The server's database.
        place: Place,
        /// The time waited, in seconds.
        waited_s: u64,
        /// The error of the last attempt.
        source: postgresql::Error,
    },
    /// The server does not let this user log in.
    #[error(
        "the server of {place} does not let this user in: set PGPASSWORD, or write a line into \
         ~/.pgpass, which nobody else may be able to read (chmod 600)"
    )]
    Login {
        /// The server's database.
        place: Place,
        /// The answer of the server.
        source: postgresql::Error,
    },
    /// The server has no such database.
    #[error("there is no database of that name at {place}: `createdb` makes one")]
    NoDatabase {
        /// The server's database.
        place: Place,
    },
    /// The copying was cancelled by whoever asked for it.
    #[error("ended before all was copied")]
    Cancelled,
    /// Nothing has ever been stored there.
    #[error("there are no runs in {0} yet")]
    NoStore(Place),
    /// Any other error of a server.
    #[error("cannot use the store {place}")]
    Server {
        /// The server's database.
        place: Place,
        /// The answer of the server.
        source: postgresql::Error,
    },
    /// A column holds something that this program does not store there.
    #[error("column {column} of the store {place} is damaged: restore the store from a copy")]
    Value {
        /// The place of the store.
        place: Place,
        /// The column.
        column: String,
        /// The error, which names what was expected.
        source: FromSqlError,
    },
    /// There is no such run.
    #[error("there is no run \"{id}\"{}", hint(close))]
    Unknown {
        /// The id that was asked for.
        id: String,
        /// Ids that look like it.
        close: Vec<String>,
    },
    /// A run that has ended accepts nothing more: its digest covers what it has.
    #[error("run {id} is {state}: expected one that is running; begin a new run")]
    Ended {
        /// The run.
        id: String,
        /// Its state.
        state: State,
    },
    /// A run that is still being written cannot be removed.
    #[error(
        "run {id} is being written by process {pid}{}: wait for that process, or end it",
        on(host.as_deref())
    )]
    Alive {
        /// The run.
        id: String,
        /// The process.
        pid: u32,
        /// The machine on which it runs, if it is not this one.
        host: Option<String>,
    },
    /// A run with which others are compared cannot be removed.
    #[error(
        "run {id} belongs to baseline \"{baseline}\": `punctual baseline remove \"{baseline}\"` \
         forgets it, and keeps its runs"
    )]
    Needed {
        /// The run.
        id: String,
        /// The baseline.
        baseline: String,
    },
    /// There is no such campaign.
    #[error("there is no campaign {id}")]
    UnknownCampaign {
        /// The id that was asked for.
        id: String,
    },
    /// There is no such baseline.
    #[error("there is no baseline \"{name}\"{}", hint(close))]
    UnknownBaseline {
        /// The name that was asked for.
        name: String,
        /// Names that look like it.
        close: Vec<String>,
    },
    /// What a campaign asks for differs from what was stored.
    #[error(
        "campaign {id}: what it asks for is damaged ({reason}): restore the store from a copy, or \
         begin the campaign again"
    )]
    Campaign {
        /// The campaign.
        id: String,
        /// The difference.
        reason: String,
    },
    /// A part of a run differs from what was stored.
    #[error(
        "run {id}: {part} is damaged ({reason}): restore the store from a copy, \
         or remove the run and repeat it"
    )]
    Part {
        /// The run.
        id: String,
        /// The part: a recording's title, or the name of a column.
        part: String,
        /// The expected and the found values.
        reason: String,
    },
    /// The calling process could not be told apart from others.
    #[error("cannot read this process's identity from /proc: is it mounted?")]
    Owner(#[source] io::Error),
}

fn hint(close: &[String]) -> String {
    match close {
        [] => String::new(),
        close => format!(": did you mean {}?", close.join(" or ")),
    }
}

fn of_others(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|one| one.display().to_string()).collect();
    match &names[..] {
        [] => String::new(),
        [one] => format!(" ({one} belongs to another user)"),
        all => format!(" ({} belong to another user)", all.join(" and ")),
    }
}

fn on(host: Option<&str>) -> String {
    host.map_or_else(String::new, |host| format!(" on {host}"))
}

/// The time that a writer waits for others, in seconds; the longest wait is for one large
/// recording.
pub const PATIENCE_S: u64 = 60;

/// A [`StoreError`], or an error that does not yet know its store.
#[derive(Debug)]
pub enum Fault {
    /// An error of `SQLite`.
    Sqlite(rusqlite::Error),
    /// An error of a server, or of the connection to it.
    Server(postgresql::Error),
    /// A column holds something that this program does not store there.
    Value {
        /// The column.
        column: String,
        /// The error, which names what was expected.
        source: FromSqlError,
    },
    /// An error that this crate found.
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<postgresql::Error> for Fault {
    fn from(error: postgresql::Error) -> Self {
        Self::Server(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Fault {
    /// Adds the store in which the error was found.
    pub fn at(self, place: &Place) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Value { column, source } => StoreError::Value {
                place: place.clone(),
                column,
                source,
            },
            Self::Sqlite(source) => of_sqlite(source, place),
            Self::Server(source) => postgresql::error(source, place),
        }
    }
}

impl StoreError {
    /// Returns true if the request is wrong rather than the store.
    pub fn is_request(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. }
                | Self::UnknownBaseline { .. }
                | Self::UnknownCampaign { .. }
                | Self::Needed { .. }
                | Self::Url { .. }
                | Self::NoServers
        )
    }

    /// Returns true if the file, or one beside it, cannot be opened as it was tried.
    pub(crate) fn is_of_permission(&self) -> bool {
        match self {
            Self::NotWritable { .. } => true,
            Self::Sqlite { source, path } => {
                let code = source.sqlite_error_code();
                code == Some(ErrorCode::CannotOpen) && can_be_read(path)
            }
            _ => false,
        }
    }
}

fn of_sqlite(source: rusqlite::Error, place: &Place) -> StoreError {
    let path = place.file().unwrap_or("".as_ref()).to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::NotADatabase { path },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path, source },
        Some(ErrorCode::DiskFull) => StoreError::Full { path, source },
        Some(ErrorCode::SystemIoFailure) if failed_to_grow(&source) => {
            StoreError::Full { path, source }
        }
        Some(ErrorCode::DatabaseBusy) => StoreError::Busy {
            path,
            waited_s: PATIENCE_S,
        },
        Some(ErrorCode::ReadOnly) => not_writable(path, source),
        // It could be opened but for what is there besides.
        Some(ErrorCode::CannotOpen) if !others(&path).is_empty() && can_be_read(&path) => {
            not_writable(path, source)
        }
        _ => StoreError::Sqlite { path, source },
    }
}

/// Returns true if the file itself can be opened. It cannot where a process has no descriptor left.
fn can_be_read(path: &Path) -> bool {
    std::fs::File::open(path).is_ok()
}

fn not_writable(path: PathBuf, source: rusqlite::Error) -> StoreError {
    let owner = |path: &Path| path.metadata().ok().map(|file| file.uid());
    let mut foreign = others(&path);
    foreign.retain(|one| owner(one) != owner(&path));
    StoreError::NotWritable {
        path,
        foreign,
        source,
    }
}

/// The files that `SQLite` has beside a store while it is open, or after its process was killed.
fn others(path: &Path) -> Vec<PathBuf> {
    let others = ["-wal", "-shm"].map(|end| beside(path, end));
    others.into_iter().filter(|one| one.is_file()).collect()
}

/// Returns true if a write failed because a file could not grow. `SQLite` says "disk full" for
/// `ENOSPC` only; quotas and limits on file sizes come as failed writes.
fn failed_to_grow(error: &rusqlite::Error) -> bool {
    let grow = [
        SQLITE_IOERR_WRITE,
        SQLITE_IOERR_SHMOPEN,
        SQLITE_IOERR_SHMSIZE,
    ];
    error
        .sqlite_error()
        .is_some_and(|error| grow.contains(&error.extended_code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_user_are_named() {
        let text = |foreign: &str| {
            let error = StoreError::NotWritable {
                path: "runs.db".into(),
                foreign: foreign.split_whitespace().map(PathBuf::from).collect(),
                source: rusqlite::Error::InvalidQuery,
            };
            error.to_string()
        };
        let expected = "expected permission to write to runs.db and to its directory, found none";
        for (foreign, found) in [
            ("", ": ask its owner"),
            (
                "runs.db-shm",
                " (runs.db-shm belongs to another user): ask its owner",
            ),
            (
                "runs.db-wal runs.db-shm",
                " (runs.db-wal and runs.db-shm belong to another user): ask its owner",
            ),
        ] {
            let text = text(foreign);
            let rest = text.strip_prefix(expected);
            assert!(rest.is_some_and(|rest| rest.starts_with(found)), "{text}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

use punctual_model::run::State;
use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};
use thiserror::Error;

/// What can go wrong with a store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Neither `XDG_DATA_HOME` nor `HOME` says where files belong.
    #[error(
        "expected an absolute path in XDG_DATA_HOME or in HOME, found none: \
         set one of them"
    )]
    NoHome,
    /// The directory of the file cannot be made.
    #[error("cannot make the directory {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The copy that a store is migrated after cannot be made.
    #[error(
        "cannot copy the store to {}, and without a copy it is not migrated to this version: \
         repair the cause",
        path.display()
    )]
    Copy {
        /// The copy.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is something else.
    #[error("expected an SQLite database in {}, found something else", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a database, but of another program.
    #[error(
        "expected a store of Punctual in {}, found a database of another program",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a later version of this program.
    #[error(
        "{} has schema version {found}, this program knows versions up to {known}: \
         use a newer punctual", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version that it has.
        found: i64,
        /// The latest version that this program knows.
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
        /// What `SQLite` found.
        source: rusqlite::Error,
    },
    /// Nothing more can be written. What was stored before stays readable.
    #[error(
        "cannot write to {}: the disk is full, or a limit for the size of files is reached; \
         what was stored before is kept: free space",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// What `SQLite` was told by the system.
        source: rusqlite::Error,
    },
    /// Another process kept the file locked for too long.
    #[error(
        "{} was locked by another process for more than {waited_s} s: end that process",
        path.display()
    )]
    Busy {
        /// The file.
        path: PathBuf,
        /// How long was waited, in seconds.
        waited_s: u64,
    },
    /// Anything else that `SQLite` says: no permission, for instance.
    #[error("cannot use the store {}: repair the cause", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What `SQLite` says.
        source: rusqlite::Error,
    },
    /// There is no such run.
    #[error("there is no run \"{id}\"{}", hint(close))]
    Unknown {
        /// The id that was asked for.
        id: String,
        /// Ids that look like it.
        close: Vec<String>,
    },
    /// A run that has ended takes nothing more: its digest covers what it has.
    #[error("run {id} is {state}: expected one that is running; begin a new run")]
    Ended {
        /// The run.
        id: String,
        /// Its state.
        state: State,
    },
    /// A run that is being written cannot be removed.
    #[error("run {id} is being written by process {pid}: wait for that process, or end it")]
    Alive {
        /// The run.
        id: String,
        /// The process.
        pid: u32,
    },
    /// A run that others are compared with cannot be removed.
    #[error("run {id} belongs to baseline \"{baseline}\": `punctual baseline remove` it first")]
    Needed {
        /// The run.
        id: String,
        /// The baseline.
        baseline: String,
    },
    /// There is no such baseline.
    #[error("there is no baseline \"{name}\"{}", hint(close))]
    UnknownBaseline {
        /// The name that was asked for.
        name: String,
        /// Names that look like it.
        close: Vec<String>,
    },
    /// A part of a run is not what was stored.
    #[error(
        "run {id}: {part} is damaged ({reason}): restore the store from a copy, \
         or remove the run and repeat it"
    )]
    Part {
        /// The run.
        id: String,
        /// The part: a recording's title, or the name of a column.
        part: String,
        /// What was expected and what was found.
        reason: String,
    },
    /// The process that asks could not be told apart from others.
    #[error("cannot read this process's identity from /proc: is it mounted?")]
    Owner(#[source] io::Error),
}

fn hint(close: &[String]) -> String {
    match close {
        [] => String::new(),
        close => format!(": did you mean {}?", close.join(" or ")),
    }
}

/// How long a writer waits for others; the longest wait is for one large recording.
pub const PATIENCE_S: u64 = 60;

/// A [`StoreError`], or an error of `SQLite` that does not yet know its file.
#[derive(Debug)]
pub enum Fault {
    /// What `SQLite` said.
    Sqlite(rusqlite::Error),
    /// What this crate found.
    Store(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Fault {
    /// The error, with the file in which it was found.
    pub fn at(self, path: &Path) -> StoreError {
        let source = match self {
            Self::Store(error) => return error,
            Self::Sqlite(source) => source,
        };
        let path = path.to_owned();
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
            _ => StoreError::Sqlite { path, source },
        }
    }
}

/// `SQLite` says "disk full" for `ENOSPC` only; quotas and limits for the size of files
/// come as failed writes.
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens the file, and turns it into a store if it is new.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::{Fault, PATIENCE_S, StoreError};
use crate::place::Place;
use crate::sql;

const PATIENCE: Duration = Duration::from_secs(PATIENCE_S);

/// The way in which a connection shares its file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Processes coordinate through a small file in shared memory beside the store.
    Shared,
    /// This process keeps the others out and needs no second file. It is the only way to read if
    /// the disk is full.
    Alone,
    /// This process locks nothing and writes nothing: it may read the file, but not make the second
    /// one. Nothing keeps writers out.
    Unlocked,
}

/// Connects to the store in `path`, which is made if it is missing.
pub fn connect(path: &Path, sharing: Sharing) -> Result<Connection, Fault> {
    if sharing == Sharing::Unlocked {
        return connect_unlocked(path);
    }
    // Without the default's URI flag: a file may be called "file:x".
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    if sharing == Sharing::Alone {
        connection.pragma_update(None, "locking_mode", "exclusive")?;
    }
    let found = examine(&*connection.transaction()?, path)?;
    if found == Found::New {
        // A file that shrinks when a run is removed; to be said before the first table.
        connection.pragma_update(None, "auto_vacuum", "full")?;
    }
    write_ahead(&connection)?;
    // Each commit reaches the disk. There is one per recording, not thousands.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    if found == Found::New {
        create(&mut connection, path)?;
    }
    Ok(connection)
}

/// Connects to a store that cannot be written to.
fn connect_unlocked(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(immutable(path), flags)?;
    let found = examine(&*connection.transaction()?, path)?;
    match found {
        Found::Present => Ok(connection),
        Found::New => Err(StoreError::NoStore(path.to_owned().into()).into()),
    }
}

/// The address by which `SQLite` reads a file and nothing beside it.
fn immutable(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            _ = write!(uri, "%{byte:02X}");
        }
    }
    uri + "?immutable=1"
}

/// Returns true if all that was stored is in the file itself, not in a journal beside it.
pub fn is_whole(path: &Path) -> bool {
    let journals = ["-wal", "-journal"].map(|end| beside(path, end));
    path.is_file() && !journals.iter().any(|journal| journal.is_file())
}

/// The file that `SQLite` keeps beside a store, by the end of its name.
pub fn beside(path: &Path, end: &str) -> PathBuf {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

/// The content of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Nothing yet.
    New,
    /// A store of this version.
    Present,
}

/// Determines what the file holds; returns an error unless it is nothing or a store.
fn examine(connection: &Connection, path: &Path) -> Result<Found, Fault> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get(0));
    let (application, found): (i64, i64) = (number("application_id")?, number("user_version")?);
    let objects: i64 = connection.query_row(sql::COUNT_OBJECTS, [], |row| row.get(0))?;
    let place = Place::File(path.to_owned());
    let known = sql::SCHEMA_VERSION;
    match (application, found, objects) {
        (0, 0, 0) => Ok(Found::New),
        (sql::APPLICATION_ID, found, _) if found > known => Err(StoreError::Newer {
            place,
            found,
            known,
        }
        .into()),
        (sql::APPLICATION_ID, found, _) if found == known => Ok(Found::Present),
        (sql::APPLICATION_ID, 1.., _) => Err(StoreError::Earlier {
            place,
            found,
            known,
        }
        .into()),
        _ => Err(StoreError::Foreign { place }.into()),
    }
}

/// Lets readers and a writer work at the same time. If the file system cannot do that, `SQLite`
/// keeps its rollback journal, which is as safe.
fn write_ahead(connection: &Connection) -> Result<(), Fault> {
    let begun = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "wal") {
            // SQLite does not wait by itself here when two processes switch at once.
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && begun.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            done => return Ok(done?),
        }
    }
}

fn create(connection: &mut Connection, path: &Path) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Asked again: another process may have been the first.
    if examine(&transaction, path)? == Found::New {
        transaction.execute_batch(sql::SCHEMA)?;
        transaction.pragma_update(None, "application_id", sql::APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", sql::SCHEMA_VERSION)?;
    }
    Ok(transaction.commit()?)
}

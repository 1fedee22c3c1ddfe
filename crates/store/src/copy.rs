// SPDX-License-Identifier: MIT OR Apache-2.0
//! A copy of a store, taken before it is migrated: `runs.db.version-1` beside `runs.db`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempPath;

use crate::error::{Fault, StoreError};
use crate::sql;

/// A copy that has no name yet. It goes again unless it gets one.
pub struct Copy {
    file: TempPath,
    named: PathBuf,
}

impl Copy {
    /// Copies the store in `path`, of a schema version, as it is without what a transaction that
    /// is under way has changed. The caller keeps other processes from writing to it.
    pub fn take(path: &Path, version: i64) -> Result<Self, Fault> {
        let named = beside(path, &format!(".version-{version}"));
        let part = beside(&named, ".part");
        let fault = |source| StoreError::Copy {
            path: named.clone(),
            source,
        };
        // What a process has left that was killed.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(fault(error).into());
            }
            _ => {}
        }
        let file = TempPath::try_from_path(&part).map_err(fault)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // A path need not be UTF-8.
        let into = ToSqlOutput::Borrowed(ValueRef::Text(part.as_os_str().as_bytes()));
        Connection::open_with_flags(path, flags)?.execute(sql::COPY, [into])?;
        let permissions = fs::metadata(path).map_err(fault)?.permissions();
        fs::set_permissions(&part, permissions).map_err(fault)?;
        File::open(&part)
            .and_then(|file| file.sync_all())
            .map_err(fault)?;
        Ok(Self { file, named })
    }

    /// Gives it its name, with a number where an earlier copy has that; returns its path.
    pub fn keep(self) -> Result<PathBuf, Fault> {
        let (mut file, mut path) = (self.file, self.named.clone());
        for number in 2.. {
            match file.persist_noclobber(&path) {
                Ok(()) => break,
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                    file = error.path;
                    path = beside(&self.named, &format!(".{number}"));
                }
                Err(error) => {
                    let source = error.error;
                    return Err(StoreError::Copy { path, source }.into());
                }
            }
        }
        Ok(path)
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place of a store: a file, or a database of a server.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::postgresql::Address;

/// The place of a store. It is displayed as the user named it, without the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An `SQLite` file.
    File(PathBuf),
    /// A database of a `PostgreSQL` server.
    Server(Address),
}

impl Place {
    /// Parses a server's database if the text begins with `postgres://` or `postgresql://`, else a
    /// file.
    pub fn parse(text: &OsStr) -> Result<Self, StoreError> {
        let is_of = |scheme: &str| text.as_bytes().starts_with(scheme.as_bytes());
        if !["postgres://", "postgresql://"].into_iter().any(is_of) {
            return Ok(Self::File(text.into()));
        }
        let reason = || "it is not UTF-8".to_owned();
        let text = text
            .to_str()
            .ok_or_else(|| StoreError::Url { reason: reason() })?;
        Address::parse(text).map(Self::Server)
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Server(_) => None,
        }
    }
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl From<Address> for Place {
    fn from(address: Address) -> Self {
        Self::Server(address)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(address) => address.fmt(f),
        }
    }
}

#[cfg(all(test, feature = "postgresql"))]
mod tests {
    use super::*;

    #[test]
    fn what_begins_with_a_scheme_is_a_server_and_all_else_a_file() {
        let place = |text: &str| Place::parse(text.as_ref());
        for file in ["runs.db", "file:x", "postgres:x", "./postgres://x"] {
            assert_eq!(place(file).unwrap(), Place::File(file.into()));
        }
        for url in ["postgres://a@h/db", "postgresql://a@h:7/db"] {
            assert!(matches!(place(url), Ok(Place::Server(_))), "{url}");
        }
        let wrong = place("postgres://a@h/db?colour=red")
            .unwrap_err()
            .to_string();
        assert!(wrong.contains("colour"), "{wrong}");
    }

    #[test]
    fn a_password_is_never_shown() {
        let shown = |text: &str| {
            let place = Place::parse(text.as_ref()).unwrap();
            let (shown, debug) = (place.to_string(), format!("{place:?}"));
            assert!(
                !shown.contains("s3cret") && !debug.contains("s3cret"),
                "{debug}"
            );
            shown
        };
        assert_eq!(shown("postgres://a:s3cret@h/db"), "postgres://a@h/db");
        assert_eq!(shown("postgres://a:s3cret@h:7/db"), "postgres://a@h:7/db");
        let socket = "postgres://a@/db?host=/run/x";
        assert_eq!(shown(&format!("{socket}&password=s3cret")), socket);
    }
}

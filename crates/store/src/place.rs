// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a store is: in a file, or on a server.

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use postgres::Config;
use postgres::config::Host;

use crate::error::StoreError;
use crate::password;

/// Where a store is. It shows as the user named it, without the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An `SQLite` file.
    File(PathBuf),
    /// A database of a `PostgreSQL` server.
    Server(Address),
}

/// A database of a `PostgreSQL` server, and who asks it.
#[derive(Clone, Debug)]
pub struct Address {
    /// Its `Debug` form has no password.
    config: Arc<Config>,
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Address {}

/// Where Debian's servers listen.
const SOCKETS: &str = "/var/run/postgresql";

/// For how long a server may be silent before it is asked whether it is still there.
const IDLE: Duration = Duration::from_secs(30);

/// For how long an answer to a connection is waited for.
const ANSWER: Duration = Duration::from_secs(20);

impl Place {
    /// A server's database where the text begins with `postgres://` or `postgresql://`; else a
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

impl Address {
    /// What the URL does not say is taken from the variables that `psql` knows, too.
    fn parse(url: &str) -> Result<Self, StoreError> {
        let mut config: Config = url.parse().map_err(|error: postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            StoreError::Url {
                reason: cause.unwrap_or_else(|| error.to_string()),
            }
        })?;
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        if config.get_hosts().is_empty() {
            config.host(&variable("PGHOST").unwrap_or_else(|| SOCKETS.to_owned()));
        }
        let port = || variable("PGPORT").filter(|_| config.get_ports().is_empty());
        if let Some(port) = port() {
            let reason = format!("expected a number in PGPORT, found \"{port}\"");
            config.port(port.parse().map_err(|_| StoreError::Url { reason })?);
        }
        if config.get_user().is_none() {
            let user = ["PGUSER", "USER", "LOGNAME"].into_iter().find_map(variable);
            config.user(&user.unwrap_or_else(|| "postgres".to_owned()));
        }
        if config.get_dbname().is_none() {
            let user = config.get_user().unwrap_or_default().to_owned();
            config.dbname(&variable("PGDATABASE").unwrap_or(user));
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(ANSWER);
        }
        config.keepalives_idle(IDLE);
        config.keepalives_interval(IDLE / 3);
        config.tcp_user_timeout(2 * IDLE);
        config.application_name("punctual");
        Ok(Self {
            config: Arc::new(config),
        })
    }

    /// How a connection is made, with the password where one is known.
    pub fn config(&self) -> Config {
        let mut config = Config::clone(&self.config);
        if config.get_password().is_none() {
            if let Some(password) = password::of(&self.host(), self.port(), self.names()) {
                config.password(password);
            }
        }
        config
    }

    /// The user, and the database.
    pub fn names(&self) -> (&str, &str) {
        let known = |name: Option<_>| name.unwrap_or_default();
        (
            known(self.config.get_user()),
            known(self.config.get_dbname()),
        )
    }

    fn host(&self) -> String {
        match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            Some(Host::Unix(path)) => path.display().to_string(),
            None => String::new(),
        }
    }

    fn port(&self) -> u16 {
        self.config.get_ports().first().copied().unwrap_or(5432)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((user, database), host) = (self.names(), self.host());
        if host.starts_with('/') {
            write!(f, "postgres://{user}@/{database}?host={host}")?;
            return match self.port() {
                5432 => Ok(()),
                port => write!(f, "&port={port}"),
            };
        }
        match self.port() {
            5432 => write!(f, "postgres://{user}@{host}/{database}"),
            port => write!(f, "postgres://{user}@{host}:{port}/{database}"),
        }
    }
}

#[cfg(test)]
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

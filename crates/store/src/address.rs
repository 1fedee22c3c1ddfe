// SPDX-License-Identifier: MIT OR Apache-2.0
//! The database of a `PostgreSQL` server to use, and the user who connects to it.

use std::env;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use postgres::Config;
use postgres::config::Host;

use crate::error::StoreError;
use crate::password;

/// A database of a `PostgreSQL` server, and the user who connects to it.
#[derive(Clone, Debug)]
pub struct Address {
    /// The connection settings; their `Debug` form has no password.
    config: Arc<Config>,
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Address {}

/// The directory in which Debian's servers listen.
const SOCKETS: &str = "/var/run/postgresql";

/// The time that a server may be silent before it is asked whether it is still there.
const IDLE: Duration = Duration::from_secs(30);

/// The time to wait for an answer to a connection.
const ANSWER: Duration = Duration::from_secs(20);

impl Address {
    /// Reads a URL. Parts that it leaves out come from the variables that `psql` knows.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
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

    /// The settings for a connection, with the password if one is known.
    pub fn config(&self) -> Config {
        let mut config = Config::clone(&self.config);
        if config.get_password().is_none() {
            if let Some(password) = password::of(&self.host(), self.port(), self.names()) {
                config.password(password);
            }
        }
        config
    }

    /// The user and the database.
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

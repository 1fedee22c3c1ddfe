// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a board is reached: by OpenSSH's client, or by that of labgrid.

use std::fmt;
use std::io;
use std::process::Command;

use super::client::End;
use super::shell::last_line;
use super::{Destination, Error};
use crate::labgrid::Client;

/// The environment variable that names another command in place of `ssh`: words between blanks.
pub const VARIABLE: &str = "PUNCTUAL_SSH";

/// The exit status of `ssh` where the fault is in the connection.
const NO_CONNECTION: i32 = 255;

/// How a board is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// By `ssh`.
    Ssh(Destination),
    /// By `labgrid-client ssh`.
    Labgrid(Client),
}

/// Where the fault is when a command was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no connection, which may be another time.
    Connection,
    /// The client does not connect.
    Client,
    /// The board.
    Board,
}

impl Route {
    /// What the board is called.
    pub fn name(&self) -> &str {
        match self {
            Self::Ssh(destination) => &destination.host,
            Self::Labgrid(client) => &client.place,
        }
    }

    /// The directory there; the usual one where none is named.
    pub fn directory(&self) -> Option<&str> {
        match self {
            Self::Ssh(destination) => destination.directory.as_deref(),
            Self::Labgrid(client) => client.directory.as_deref(),
        }
    }

    /// As `--bench` has it, without a directory.
    pub fn bench(&self) -> String {
        match self {
            Self::Ssh(destination) => format!("ssh:{}", destination.host),
            Self::Labgrid(client) => format!("labgrid:{}", client.place),
        }
    }

    /// A command that has the board's shell run a line. Nobody is asked for a password: the
    /// connection is made again when it is lost, and nobody may be there then.
    pub fn command(&self, line: &str) -> Command {
        match self {
            Self::Ssh(destination) => {
                let mut command = named(VARIABLE, "ssh");
                command
                    .args(["-T", "-o", "BatchMode=yes", "--", &destination.host])
                    .arg(line);
                command
            }
            Self::Labgrid(client) => client.ssh(line),
        }
    }

    /// How the command has its end.
    pub fn end(&self) -> End {
        match self {
            Self::Ssh(_) => End::Killed,
            Self::Labgrid(_) => End::Asked,
        }
    }

    /// The command itself cannot be run.
    pub fn no_client(&self, command: &Command, error: &io::Error) -> Error {
        let program = command.get_program().to_string_lossy().into_owned();
        let error = error.to_string();
        match self {
            Self::Ssh(_) => Error::NoSsh { program, error },
            Self::Labgrid(_) => crate::labgrid::Error::NoClient { program, error }.into(),
        }
    }

    /// Where the fault is, by the command's exit status.
    pub fn fault(&self, code: Option<i32>) -> Fault {
        match (self, code) {
            (_, None | Some(NO_CONNECTION)) => Fault::Connection,
            (Self::Labgrid(_), Some(code)) => crate::labgrid::fault(code),
            (Self::Ssh(_), Some(_)) => Fault::Board,
        }
    }

    /// What of the command's complaints says why.
    pub fn complaint(&self, stderr: &str) -> String {
        match self {
            Self::Ssh(_) => last_line(stderr),
            Self::Labgrid(_) => crate::labgrid::complaint(stderr),
        }
    }
}

/// As the run's record has it: a destination, or `labgrid:PLACE`, which is none.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh(destination) => destination.fmt(f),
            Self::Labgrid(client) => client.fmt(f),
        }
    }
}

/// The command that a variable names, words between blanks; else this one.
pub fn named(variable: &str, usual: &str) -> Command {
    let named = std::env::var(variable).unwrap_or_default();
    let mut words = named.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(usual));
    command.args(words);
    command
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way to a board: OpenSSH's client, or labgrid's.

use std::fmt;
use std::io;
use std::process::Command;

use super::client::End;
use super::shell::last_line;
use super::{Destination, Error};
use crate::labgrid::Client;

/// The environment variable that names another command in place of `ssh`, as words separated by
/// blanks.
pub const VARIABLE: &str = "PUNCTUAL_SSH";

/// The exit status of `ssh` if the connection is at fault.
const NO_CONNECTION: i32 = 255;

/// The way to a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// By `ssh`.
    Ssh(Destination),
    /// By `labgrid-client ssh`.
    Labgrid(Client),
}

/// The location of the fault when a command was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is missing; a later attempt may succeed.
    Connection,
    /// The client does not connect.
    Client,
    /// The board is at fault.
    Board,
}

impl Route {
    /// The name of the board.
    pub fn name(&self) -> &str {
        match self {
            Self::Ssh(destination) => &destination.host,
            Self::Labgrid(client) => &client.place,
        }
    }

    /// The directory on the board; `None` for the usual one.
    pub fn directory(&self) -> Option<&str> {
        match self {
            Self::Ssh(destination) => destination.directory.as_deref(),
            Self::Labgrid(client) => client.directory.as_deref(),
        }
    }

    /// The form that `--bench` takes, without a directory.
    pub fn bench(&self) -> String {
        match self {
            Self::Ssh(destination) => {
                let host = destination.host.clone();
                let directory = None;
                format!("ssh:{}", Destination { host, directory })
            }
            Self::Labgrid(client) => format!("labgrid:{}", client.place),
        }
    }

    /// A command that has the board's shell run a line. It never asks for a password: a lost
    /// connection is made again, and nobody may be there then. It waits for two minutes for a
    /// machine that does not answer, which may be busy, before and after it is connected.
    pub fn command(&self, line: &str) -> Command {
        match self {
            Self::Ssh(destination) => {
                let mut command = named(VARIABLE, "ssh");
                command
                    .args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=120"])
                    .args([
                        "-o",
                        "ServerAliveInterval=15",
                        "-o",
                        "ServerAliveCountMax=8",
                    ])
                    .args(["--", &destination.host])
                    .arg(line);
                command
            }
            Self::Labgrid(client) => client.ssh(line),
        }
    }

    /// The way in which the command is ended.
    pub fn end(&self) -> End {
        match self {
            Self::Ssh(_) => End::Killed,
            Self::Labgrid(_) => End::Asked,
        }
    }

    /// The error for a command that cannot be run at all.
    pub fn no_client(&self, command: &Command, error: &io::Error) -> Error {
        let program = command.get_program().to_string_lossy().into_owned();
        let error = error.to_string();
        match self {
            Self::Ssh(_) => Error::NoSsh { program, error },
            Self::Labgrid(_) => crate::labgrid::Error::NoClient { program, error }.into(),
        }
    }

    /// Locates the fault by the command's exit status.
    pub fn fault(&self, code: Option<i32>) -> Fault {
        match (self, code) {
            (_, None | Some(NO_CONNECTION)) => Fault::Connection,
            (Self::Labgrid(_), Some(code)) => crate::labgrid::fault(code),
            (Self::Ssh(_), Some(_)) => Fault::Board,
        }
    }

    /// Picks the reason from the command's complaints.
    pub fn complaint(&self, stderr: &str) -> String {
        match self {
            Self::Ssh(_) => last_line(stderr),
            Self::Labgrid(_) => crate::labgrid::complaint(stderr),
        }
    }
}

/// The form in the run's record: a destination, or `labgrid:PLACE`, which is no destination.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ssh(destination) => destination.fmt(f),
            Self::Labgrid(client) => client.fmt(f),
        }
    }
}

/// The command that a variable names, as words separated by blanks, or the usual one.
pub fn named(variable: &str, usual: &str) -> Command {
    let named = std::env::var(variable).unwrap_or_default();
    let mut words = named.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(usual));
    command.args(words);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_falls_silent_is_not_waited_for_for_ever() {
        let command = Route::Ssh("board".parse().unwrap()).command("true");
        let seconds = |name: &str| {
            let mut words = command.get_args().filter_map(|word| word.to_str());
            let value = words.find_map(|word| word.strip_prefix(name));
            value.and_then(|value| value.parse::<u32>().ok()).unwrap()
        };
        let silence = seconds("ServerAliveInterval=") * seconds("ServerAliveCountMax=");
        assert_eq!(silence, seconds("ConnectTimeout="));
    }

    #[test]
    fn a_bench_is_named_as_the_user_has_to_type_it() {
        let bench = |text: &str| Route::Ssh(text.parse().unwrap()).bench();
        assert_eq!(bench("root@board:/data"), "ssh:root@board");
        assert_eq!(
            bench("root@[fe80::1%eth0]:/data"),
            "ssh:root@[fe80::1%eth0]"
        );
        assert_eq!(bench("[::1]"), "ssh:[::1]");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages between a workstation and the target on a board, one message to a
//! [frame](crate::frame).
//!
//! The measurement is a *job* on the board: a directory with the plan, and with the stream and
//! the console, which grow there, connected or not. A conversation begins a job, follows one from
//! any offset, ends it and removes it. It may break off at any moment and be started again.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use serde::{Deserialize, Serialize};

use crate::status_page::Progress;

/// Name of the abstract Unix socket whose holder measures on a machine.
const ALONE: &[u8] = b"punctual-host";

/// Makes the caller the only one to measure on the machine, no matter whose runs there are, since
/// two runs at a time would measure one another. The kernel frees the socket when its last holder
/// dies. Returns an [`AddrInUse`](io::ErrorKind::AddrInUse) error if somebody else holds it.
pub fn alone() -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(ALONE)?)
}

/// A message from the workstation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Begin a job with this plan; answered by [`Answer::Begun`] or [`Answer::Refused`]. If a job
    /// of this name already exists, it is the one that was begun.
    Begin {
        /// The job's name, which no other job has.
        job: String,
        /// The plan, in TOML.
        plan: String,
        /// True if a job with an equal plan that nobody has fetched takes its place.
        take_up: bool,
    },
    /// Send everything that a job has written from these offsets on, and will write from now on.
    Follow {
        /// The job's name.
        job: String,
        /// The number of bytes of its stream that are known.
        stream: u64,
        /// The number of bytes of its console that are known.
        console: u64,
    },
    /// End a job after its sample.
    Stop {
        /// The job's name.
        job: String,
    },
    /// End a job if it has not ended, and remove it; answered by [`Answer::Removed`].
    Remove {
        /// The job's name.
        job: String,
    },
    /// Keeps the connection alive.
    Alive,
}

/// A message from the target on the board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Sent first: a description of the board.
    Hello(Hello),
    /// A job runs, or has run, under this name.
    Begun {
        /// The job's name.
        job: String,
    },
    /// No job can begin.
    Refused(Refusal),
    /// The next bytes of the job's stream.
    Stream(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The next bytes of its console.
    Console(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The progress of its step.
    Progress(Progress),
    /// The job has ended, with this description; all its output was sent.
    Ended(String),
    /// There is no job with that name.
    Gone,
    /// The job was removed.
    Removed,
    /// Keeps the connection alive.
    Alive,
}

/// A description of the other end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The target's own SHA-256, in lower-case hexadecimal digits; `None` if it cannot read
    /// itself.
    pub target_sha256: Option<String>,
    /// The board's name for itself.
    pub host: String,
    /// The release of its kernel.
    pub release: String,
    /// The command line that its kernel was booted with.
    pub cmdline: String,
    /// The number of its CPUs; `None` if it is not known.
    pub cpus: Option<u32>,
}

/// The reason why no job can begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Somebody else measures there.
    #[error(
        "another run is measuring there, and two at a time would measure one another: wait until it has ended"
    )]
    NotAlone,
    /// The job to be taken up belongs to another workstation.
    #[error("that run is being fetched already: wait until it has ended")]
    Followed,
    /// A file cannot be used.
    #[error("{0}")]
    Io(String),
}

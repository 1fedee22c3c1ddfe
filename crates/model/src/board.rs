// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a workstation and the target on a board say to each other, one message to a
//! [frame](crate::frame).
//!
//! The measurement is a *job* on the board: a directory with the plan, and with the stream and
//! the console that grow there, connected or not. A conversation begins a job, follows one from
//! any offset, ends it and removes it; it may break off at any moment and be begun anew.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use serde::{Deserialize, Serialize};

use crate::status_page::Progress;

/// Who holds the abstract Unix socket of this name measures on a machine.
const ALONE: &[u8] = b"punctual-host";

/// Two runs at a time would measure one another: who holds this is the only one on the
/// machine, whoever's the runs are. The kernel gives it back when its last holder dies; an
/// error of kind [`AddrInUse`](io::ErrorKind::AddrInUse) where somebody has it.
pub fn alone() -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(ALONE)?)
}

/// What the workstation says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Begin a job of this plan; answered by [`Answer::Begun`] or [`Answer::Refused`]. A job of
    /// this name that is there already is the one that was begun.
    Begin {
        /// Its name: no other one has it.
        job: String,
        /// The plan, in TOML.
        plan: String,
        /// Whether one of an equal plan, which nobody has fetched, takes its place.
        take_up: bool,
    },
    /// Tell what a job has said from these offsets on, and all that it says from now on.
    Follow {
        /// Its name.
        job: String,
        /// How many bytes of its stream are known.
        stream: u64,
        /// How many bytes of its console are known.
        console: u64,
    },
    /// End a job after its sample.
    Stop {
        /// Its name.
        job: String,
    },
    /// End a job if it has not ended, and remove it; answered by [`Answer::Removed`].
    Remove {
        /// Its name.
        job: String,
    },
    /// Nothing, but the workstation is there.
    Alive,
}

/// What the target on the board says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// First of all: where it is.
    Hello(Hello),
    /// A job runs, or has run, under this name.
    Begun {
        /// Its name.
        job: String,
    },
    /// No job can be begun.
    Refused(Refusal),
    /// The next bytes of the job's stream.
    Stream(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The next bytes of its console.
    Console(#[serde(with = "serde_bytes")] Vec<u8>),
    /// How far its step is.
    Progress(Progress),
    /// It has ended, as these words say, and all of it was told.
    Ended(String),
    /// There is no job of that name.
    Gone,
    /// Nothing is left of it.
    Removed,
    /// Nothing, but the board is there.
    Alive,
}

/// Who is at the other end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The target's own SHA-256, lower-case hexadecimal digits; `None` where it cannot read
    /// itself.
    pub target_sha256: Option<String>,
    /// The board's name for itself.
    pub host: String,
    /// The release of its kernel.
    pub release: String,
    /// The command line that its kernel was booted with.
    pub cmdline: String,
    /// How many CPUs it has; `None` where that is not known.
    pub cpus: Option<u32>,
}

/// Why no job can be begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// Somebody measures there.
    #[error(
        "another run is measuring there, and two at a time would measure one another: wait until it has ended"
    )]
    NotAlone,
    /// The job that is to be taken up is another workstation's.
    #[error("that run is being fetched already: wait until it has ended")]
    Followed,
    /// A file cannot be used.
    #[error("{0}")]
    Io(String),
}

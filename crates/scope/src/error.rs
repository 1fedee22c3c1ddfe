// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why a run cannot be repeated.

use std::io;
use std::path::{Path, PathBuf};

use punctual_bench::RunError;
use punctual_trace::ReadError;

/// The reason why a run cannot be repeated.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    /// The run was measured in real time.
    #[error(
        "{0} was measured in real time, on a host: only runs of the virtual bench can be repeated"
    )]
    Host(String),
    /// The run's kernel is not understood.
    #[error("{0} cannot be explained, surveyed or bounded: {1}")]
    NotUnderstood(String, String),
    /// The run's guest has several CPUs.
    #[error("{0} was measured on {1} CPUs: the theorem is one of one CPU, and so is its bound")]
    ManyCpus(String, u32),
    /// The run's plan or provenance is not what this program writes.
    #[error("{0} cannot be repeated: {1}")]
    Unreadable(String, String),
    /// The probe's samples cannot be explained, or the arrivals of the run cannot be reported.
    #[error("{0}: {1}")]
    NotTold(String, String),
    /// The thing to be explained is not part of the run.
    #[error("{0} has {1}")]
    NoSuch(String, String),
    /// Something has changed since the run.
    #[error("{run} cannot be repeated: {what} was {then}, and is now {now}: measure again")]
    Changed {
        /// The run.
        run: String,
        /// The thing that has changed.
        what: String,
        /// Its state then.
        then: String,
        /// Its state now.
        now: String,
    },
    /// The guest's files are gone.
    #[error(
        "{run} cannot be repeated: its guest's files (initramfs {sha256:.12}) are gone from the cache: measure again"
    )]
    Gone {
        /// The run.
        run: String,
        /// The initramfs's checksum.
        sha256: String,
    },
    /// The plugin is missing.
    #[error("expected the scope's plugin at {}, found none: build it (./build), or name it with PUNCTUAL_PLUGIN", .0.display())]
    NoPlugin(PathBuf),
    /// QEMU does not accept the plugin.
    #[error(
        "this QEMU does not load the scope's plugin (it is made for QEMU 7.2 to 11.1, built with TCG plugins): {0}"
    )]
    Refused(String),
    /// The guest did something else this time.
    #[error(
        "{run} is not what comes out when it is repeated: {what} differs; nothing is explained: measure again"
    )]
    Differs {
        /// The run.
        run: String,
        /// The difference.
        what: String,
    },
    /// The watched samples did not occur.
    #[error(
        "{0} of the chosen samples did not come by: the run's program does not mark them, as a Punctual with the scope does: measure again"
    )]
    Unmarked(usize),
    /// Everything came out as before, but the trace has no end.
    #[error(
        "the run's program did not mark where its plan ends, as a Punctual with the scope does ({0}): measure again"
    )]
    NoEnd(ReadError),
    /// The guest's kernel does not show its symbols.
    #[error("no names for the guest's code: {0}")]
    NoSymbols(String),
    /// The run that repeats it did not get to its end.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The plugin's output cannot be read.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// A file cannot be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// Makes an error of [`io::Error`] that names the path.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> ScopeError + use<> {
    let path = path.to_owned();
    move |error| ScopeError::Io { path, error }
}

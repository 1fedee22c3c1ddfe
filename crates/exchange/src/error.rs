// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in a file of runs.

use std::io;

/// An error in a file of runs.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// It is something else.
    #[error("expected runs as `punctual export` writes them, found something else")]
    Foreign,
    /// It has a later form.
    #[error("expected {expected}, found {found}, of Punctual {punctual}: use a newer punctual")]
    Newer {
        /// The form that this program knows.
        expected: &'static str,
        /// The form of the file.
        found: String,
        /// The version that wrote it.
        punctual: String,
    },
    /// Its end is missing.
    #[error("expected the end of the file after line {0}, found none: it was not copied whole")]
    Torn(u64),
    /// Something follows its end.
    #[error("expected nothing after the last line, found more: the file is damaged")]
    Trailing,
    /// Its bytes are not those that were written.
    #[error("expected SHA-256 {expected}, found {found}: the file is damaged")]
    Checksum {
        /// The checksum in the file.
        expected: String,
        /// The checksum of its lines.
        found: String,
    },
    /// A line is not what belongs there.
    #[error("line {number}: {what}")]
    Line {
        /// Its number, from 1.
        number: u64,
        /// The expected content, and what was found instead.
        what: String,
    },
    /// No file can hold the run, or it has not ended.
    #[error("run {id}: {what}")]
    Run {
        /// The run.
        id: String,
        /// The fault in the run.
        what: String,
    },
    /// It cannot be signed, or what was signed cannot be read.
    #[error("{0}")]
    Signature(String),
    /// It cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

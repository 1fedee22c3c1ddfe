// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why runs cannot be prepared or stored.

use std::cmp::Reverse;
use std::io;
use std::path::{Path, PathBuf};

use punctual_bench::{ssh, virtual_bench};
use punctual_kernels::KernelError;
use punctual_kernels::initramfs::InitramfsError;
use punctual_kernels::kmod::KmodError;
use punctual_kernels::userland::UserlandError;
use punctual_published::PublishedError;
use punctual_store::StoreError;

/// The reason why runs cannot be prepared or stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request names something that does not exist, or contradicts itself.
    #[error("{0}")]
    Request(String),
    /// There is no such kernel.
    #[error("there is no kernel \"{id}\"{likely} (there are: {known})")]
    UnknownKernel {
        /// The id that was asked for.
        id: String,
        /// The name that was probably meant, as a question; empty if there is none.
        likely: String,
        /// The kernels that exist.
        known: String,
    },
    /// A kernel does not offer the preemption model that a subject asks for.
    #[error("{0}")]
    NotOffered(String),
    /// A file cannot be read.
    #[error("{}: {}", .path.display(), found(error))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A kernel is not available.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The guest's files cannot be made.
    #[error(transparent)]
    Initramfs(#[from] InitramfsError),
    /// A userland cannot be a guest's, or lacks the program to run.
    #[error(transparent)]
    Userland(#[from] UserlandError),
    /// A kernel module cannot be built.
    #[error(transparent)]
    Module(#[from] KmodError),
    /// The virtual bench does not work.
    #[error(transparent)]
    Bench(#[from] virtual_bench::Error),
    /// A board cannot be used.
    #[error(transparent)]
    Board(#[from] ssh::Error),
    /// Runs cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A published document is not well-formed.
    #[error(transparent)]
    Published(#[from] PublishedError),
}

impl Error {
    /// Turns an [`io::Error`] into an error that names the path.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }

    /// Returns true if the fault is in the request.
    pub fn is_request(&self) -> bool {
        match self {
            Self::Request(_)
            | Self::UnknownKernel { .. }
            | Self::NotOffered(_)
            | Self::Userland(_) => true,
            // Suites, limits, campaigns and loads are files that the user names.
            Self::Io { error, .. } => matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory
            ),
            Self::Kernel(error) => error.is_request(),
            _ => false,
        }
    }

    /// The error for an unknown name; it lists the known names and suggests the one that was
    /// probably meant.
    pub fn unknown(kind: &str, name: &str, known: &[&str]) -> Self {
        let hint = did_you_mean(name, known);
        let known = known.join(", ");
        Self::Request(format!(
            "there is no {kind} \"{name}\"{hint} (there are: {known})"
        ))
    }
}

/// What was found in place of a file; other errors as the system names them.
fn found(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "expected a file, found none of this name".to_owned(),
        io::ErrorKind::IsADirectory => "expected a file, found a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// `; did you mean …?` if one of the known names is close to this one, else nothing.
pub fn did_you_mean(name: &str, known: &[&str]) -> String {
    let distance = |candidate: &str| strsim::osa_distance(name, candidate);
    let alike = |candidate: &str| {
        let both = name.bytes().zip(candidate.bytes());
        both.take_while(|(own, other)| own == other).count()
    };
    // Of two that are as close, the one with the nearer version; then what is alike for longer:
    // mistakes are made at ends.
    let close = known
        .iter()
        .min_by_key(|one| (distance(one), apart(name, one), Reverse(alike(one))));
    let close = close.filter(|close| distance(close) <= 2);
    close.map_or(String::new(), |close| format!("; did you mean {close}?"))
}

/// How far apart the numbers in two names are, the first one first; names with as many numbers come
/// before others.
fn apart(one: &str, other: &str) -> (bool, Vec<u64>) {
    let numbers = |name: &str| -> Vec<u64> {
        let words = name.split(|c: char| !c.is_ascii_digit());
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let (one, other) = (numbers(one), numbers(other));
    let apart = one.iter().zip(&other);
    let apart = apart.map(|(one, other)| one.abs_diff(*other)).collect();
    (one.len() != other.len(), apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_none_is_told_in_words_and_is_a_wrong_request() {
        for (kind, expected) in [
            (
                io::ErrorKind::NotFound,
                "x.toml: expected a file, found none of this name",
            ),
            (
                io::ErrorKind::IsADirectory,
                "x.toml: expected a file, found a directory",
            ),
        ] {
            let error = Error::at(Path::new("x.toml"))(kind.into());
            assert_eq!(error.to_string(), expected);
            assert!(error.is_request());
        }
    }

    #[test]
    fn a_near_miss_is_named() {
        let error = |name| Error::unknown("suite", name, &["celf", "demo"]).to_string();
        assert!(
            error("dmeo").contains("did you mean demo?"),
            "{}",
            error("dmeo")
        );
        let kernels = ["debian-6.1-rt", "debian-6.12-rt"];
        let near = did_you_mean("debian-6.12rt", &kernels);
        assert_eq!(near, "; did you mean debian-6.12-rt?");
        let kernels = ["debian-5.10", "debian-6.1", "debian-6.12", "debian-7.2"];
        for name in ["debian-6.13", "debian-6.14", "debian-612"] {
            assert_eq!(did_you_mean(name, &kernels), "; did you mean debian-6.12?");
        }
        assert_eq!(
            did_you_mean("debian-6.2", &kernels),
            "; did you mean debian-6.1?"
        );
        let far = error("xyz");
        assert!(!far.contains("mean") && far.contains("celf, demo"), "{far}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why a kernel is not available, or cannot be added or removed.

use std::io;
use std::path::{Path, PathBuf};

use crate::apt::AptError;
use crate::image::ImageError;
use crate::module::ModuleError;
use crate::source::SourceError;

/// The reason why a kernel is not available, or cannot be added or removed.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The id is not well-formed.
    #[error(
        "expected a kernel id of lower-case letters, digits and . _ + - that starts with a letter or digit, perhaps with @VERSION of a package, found \"{0}\""
    )]
    BadId(String),
    /// A kernel of the user's own has one version.
    #[error(
        "{0}: expected a kernel id without @VERSION, for only packages have versions to choose from: leave it out"
    )]
    NotPinned(String),
    /// The kernel does not exist.
    #[error("there is no kernel \"{id}\" (there are: {known})")]
    Unknown {
        /// The id that was asked for.
        id: String,
        /// The kernels that exist.
        known: String,
    },
    /// The kernel is a single release, or has no line.
    #[error(
        "expected a line of kernels, such as debian-6.12-rt, found \"{0}\", which has no releases"
    )]
    NoReleases(String),
    /// The kernel has a source, but is not in the cache.
    #[error("{0}: expected the kernel in the cache, found it not fetched yet")]
    NotFetched(String),
    /// The kernel to be removed is not in the cache.
    #[error("expected the id of a kernel in the cache, found \"{id}\" ({})", there(.cached))]
    NotCached {
        /// The id that was asked for.
        id: String,
        /// The kernels in the cache.
        cached: Vec<String>,
    },
    /// A kernel with this id already exists.
    #[error("{0}: expected a new kernel id, found one that exists: choose another")]
    Taken(String),
    /// The kernel was not built from source.
    #[error("{0}: expected a kernel that `punctual kernel build` made, found another")]
    NotBuilt(String),
    /// The name belongs to a source.
    #[error(
        "{0}: expected a kernel id of your own, found that of a kernel to be fetched: choose another, such as my-{0}"
    )]
    Reserved(String),
    /// A file in the cache has changed since it was put there.
    #[error("{}: expected sha256 {expected}, as when it was put there, found {found}", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// The checksum in its record.
        expected: String,
        /// The checksum of the file.
        found: String,
        /// The kernel.
        id: String,
        /// True if it is one of the user's own, which cannot be fetched again.
        is_own: bool,
    },
    /// A kernel's record cannot be understood.
    #[error("{}: expected the record of a kernel, found: {error}: remove kernel {id}, then fetch or add it again", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The kernel.
        id: String,
        /// The error.
        error: String,
    },
    /// The image is not a kernel for this bench.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A module does not fit the kernel.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The package is not available.
    #[error(transparent)]
    Apt(#[from] AptError),
    /// A source is not well-formed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Files cannot be read or written.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

impl KernelError {
    /// Returns true if the fault is in the request, such as the name of a kernel that does not
    /// exist.
    pub fn is_request(&self) -> bool {
        match self {
            Self::Unknown { .. }
            | Self::NotCached { .. }
            | Self::BadId(_)
            | Self::NotPinned(_)
            | Self::NoReleases(_)
            | Self::Taken(_)
            | Self::NotBuilt(_)
            | Self::Reserved(_) => true,
            Self::Apt(error) => error.is_request(),
            _ => false,
        }
    }
}

/// Lists the kernels in the cache.
fn there(cached: &[String]) -> String {
    match cached {
        [] => "there is none".to_owned(),
        some => format!("there are: {}", some.join(", ")),
    }
}

/// Turns an [`io::Error`] into an error that names the path.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> KernelError + '_ {
    move |error| KernelError::Io {
        path: path.to_owned(),
        error,
    }
}

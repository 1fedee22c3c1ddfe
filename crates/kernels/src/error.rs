// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a kernel cannot be had, added or removed.

use std::io;
use std::path::{Path, PathBuf};

use crate::apt::AptError;
use crate::image::ImageError;
use crate::module::ModuleError;
use crate::source::SourceError;

/// Why a kernel cannot be had, added or removed.
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
    /// There is no such kernel.
    #[error("there is no kernel \"{id}\" (there are: {known})")]
    Unknown {
        /// What was asked for.
        id: String,
        /// What there is.
        known: String,
    },
    /// It is one release, or has no line.
    #[error(
        "expected a line of kernels, such as debian-6.12-rt, found \"{0}\", which has no releases"
    )]
    NoReleases(String),
    /// It has a source, and is not in the cache.
    #[error("{0}: expected the kernel in the cache, found it not fetched yet")]
    NotFetched(String),
    /// There is a kernel of this name.
    #[error("{0}: expected a new kernel id, found one that exists: choose another")]
    Taken(String),
    /// It is no kernel that was built from source.
    #[error("{0}: expected a kernel that `punctual kernel build` made, found another")]
    NotBuilt(String),
    /// The name belongs to a source.
    #[error(
        "{0}: expected a kernel id of your own, found that of a kernel to be fetched: choose another, such as my-{0}"
    )]
    Reserved(String),
    /// A file in the cache is not what was put there.
    #[error("{}: expected sha256 {expected}, as when it was put there, found {found}", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What its record says.
        expected: String,
        /// What it is.
        found: String,
        /// The kernel.
        id: String,
        /// Whether it is one of the user's own, and cannot be fetched again.
        is_own: bool,
    },
    /// A kernel's record cannot be understood.
    #[error("{}: expected the record of a kernel, found: {error}: remove kernel {id}, then fetch or add it again", .path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The kernel.
        id: String,
        /// What is wrong.
        error: String,
    },
    /// The image is no kernel for this bench.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A module does not fit.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The package cannot be had.
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
        /// What is wrong.
        error: io::Error,
    },
}

impl KernelError {
    /// Whether a kernel was named that does not exist: the fault is in what was asked for.
    pub fn is_request(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. } | Self::BadId(_) | Self::NotBuilt(_)
        )
    }
}

/// Makes an error of [`io::Error`] that names the path.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> KernelError + '_ {
    move |error| KernelError::Io {
        path: path.to_owned(),
        error,
    }
}

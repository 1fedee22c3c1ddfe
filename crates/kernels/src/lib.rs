// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels as data: their origins and their places in the cache, Punctual's own modules for them
//! ([`kmod`]), and the file system of a guest ([`initramfs`]).
//!
//! [`build`] makes kernels from their source.
//!
//! A *source* is a file in `kernels/` that names packages of the distribution. A [`Catalog`] holds
//! the kernels that were fetched from sources and those that users added, each with its provenance.
//! A [`Kernel`] is one of these, ready to be booted: its files exist, and are unchanged since they
//! were put there.
#![forbid(unsafe_code)]

mod apt;
pub mod build;
pub mod busybox;
mod catalog;
pub mod checksum;
pub mod child;
pub mod disk;
pub mod elf;
mod error;
mod id;
pub mod image;
pub mod initramfs;
pub mod kmod;
mod module;
pub mod network;
mod packaged;
mod packed;
pub mod paths;
mod record;
mod source;
pub mod tree;
pub mod userland;

/// Parsers of foreign bytes that are not otherwise public, for `fuzz`.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::apt::choose_in;
    pub use crate::image::judge;
    pub use crate::module::check;

    /// The reason why a configuration refuses a setting, by the text of its `Kconfig` files.
    pub fn why_refused(kconfig: &str, config: &str, setting: &crate::build::Setting) -> String {
        let texts = std::iter::once(kconfig.to_owned());
        crate::build::why_refused_by(texts, setting, &crate::build::Config::parse(config))
    }
}

use std::path::PathBuf;

use punctual_model::Architecture;

pub use apt::AptError;
pub use catalog::{Catalog, Listed, Release, State};
pub use error::KernelError;
pub use image::{ImageError, ImageInfo, inspect};
pub use module::ModuleError;
pub use source::{Releases, Source, SourceError};

/// A kernel that can be booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name that users give.
    pub id: String,
    /// The output of `uname -r` there.
    pub release: String,
    /// The architecture of its processor.
    pub architecture: Architecture,
    /// The image.
    pub image: PathBuf,
    /// The image's SHA-256.
    pub image_sha256: String,
    /// Boot arguments with which it is always started.
    pub boot: String,
    /// Modules for the guest, unpacked, in the order in which they are loaded.
    pub modules: Vec<PathBuf>,
    /// Its origin, for a run's provenance.
    pub origin: String,
    /// The configuration with which it was built, if known.
    pub config: Option<PathBuf>,
    /// The suites of Debian in which it was found; empty for the system's, or if it is the user's
    /// own.
    pub suites: Vec<String>,
    /// The distribution's package from which it came, if any.
    pub package: Option<Package>,
    /// The directory with the other built files, if `punctual kernel build` made it.
    pub built: Option<PathBuf>,
}

/// A package of the distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The file's SHA-256, from apt's signed index.
    pub sha256: String,
}

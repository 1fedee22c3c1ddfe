// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why an initramfs cannot be made.

use std::io;
use std::path::PathBuf;

use punctual_model::Architecture;

/// The reason why an initramfs cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum InitramfsError {
    /// A file cannot be read.
    #[error("{}: expected {expected}, found: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The kind of file that was expected.
        expected: &'static str,
        /// The error.
        error: io::Error,
    },
    /// The target program is missing.
    #[error("{}: expected the program that measures, found no such file: build it with `{}`", .path.display(), build_command(*.architecture))]
    NoTarget {
        /// The path where it should be.
        path: PathBuf,
        /// The architecture of the guest.
        architecture: Architecture,
    },
    /// The target program is not a static program for the guest's processor.
    #[error("{}: expected a static {architecture} program, found {found}: build it with `{}`", .path.display(), build_command(*.architecture))]
    Target {
        /// The file.
        path: PathBuf,
        /// The architecture of the guest.
        architecture: Architecture,
        /// The kind of file that was found.
        found: String,
    },
    /// No busybox was found.
    #[error(
        "expected busybox in /bin, /usr/bin or the PATH, found none: install a static one (`apt-get install busybox-static`)"
    )]
    NoBusybox,
    /// That busybox does not run in the guest, or does not list its applets here.
    #[error("{}: expected a static busybox for {architecture}, found {found}: install one (`apt-get install busybox-static`)", .path.display())]
    Busybox {
        /// The file.
        path: PathBuf,
        /// The architecture of the guest.
        architecture: Architecture,
        /// The kind of file that was found.
        found: String,
    },
    /// A program is not built for the guest's processor.
    #[error("{}: expected an {architecture} program, found {found}: name a program that was built for {architecture}", .path.display())]
    Program {
        /// The file.
        path: PathBuf,
        /// The architecture of the guest.
        architecture: Architecture,
        /// The kind of file that was found.
        found: String,
    },
    /// A library is missing on this machine.
    #[error("{}: expected its library {library} in {searched}, found none: install the package that has it, or link the program statically", .program.display())]
    NoLibrary {
        /// The program.
        program: PathBuf,
        /// The library's name.
        library: String,
        /// The directories that were searched.
        searched: String,
    },
    /// Two different files would have the same path in the guest.
    #[error(
        "{0}: expected one file of this path in the guest, found two that differ: leave one out or rename it"
    )]
    Conflict(String),
    /// A path is not possible in the guest.
    #[error("{0:?}: expected an absolute path of plain names for the guest: rename the file")]
    BadPath(String),
    /// A module cannot be loaded as it is.
    #[error("{}: expected a kernel module (ELF), found {found}: name an unpacked .ko file", .path.display())]
    Module {
        /// The file.
        path: PathBuf,
        /// The kind of file that was found.
        found: String,
    },
    /// The file is too large for the format.
    #[error("{0}: expected a file below 4 GiB: leave it out")]
    TooLarge(String),
    /// The archive cannot be written to memory.
    #[error("expected to write the initramfs to memory, found: {0}")]
    Archive(io::Error),
}

/// The command that builds the programs for guests of an architecture.
pub fn build_command(architecture: Architecture) -> String {
    if architecture.is_foreign() {
        format!("./build --targets {}", architecture.machine())
    } else {
        "./build".to_owned()
    }
}

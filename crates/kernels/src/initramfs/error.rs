// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an initramfs cannot be made.

use std::io;
use std::path::PathBuf;

use punctual_model::Architecture;

/// Why an initramfs cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum InitramfsError {
    /// A file cannot be read.
    #[error("{}: expected {expected}, found: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What it is to be.
        expected: &'static str,
        /// What is wrong.
        error: io::Error,
    },
    /// The target program is not there.
    #[error("{}: expected punctual-target, found no such file: build it with `{}`", .path.display(), build_command(*.architecture))]
    NoTarget {
        /// Where it is to be.
        path: PathBuf,
        /// What it is to run on.
        architecture: Architecture,
    },
    /// The target program is not a static one for the guest's processor.
    #[error("{}: expected punctual-target as a static {architecture} program, found {found}: build it with `{}`", .path.display(), build_command(*.architecture))]
    Target {
        /// The file.
        path: PathBuf,
        /// What it is to run on.
        architecture: Architecture,
        /// What it is.
        found: String,
    },
    /// There is no busybox.
    #[error(
        "expected busybox in /bin, /usr/bin or the PATH, found none: install a static one (`apt-get install busybox-static`)"
    )]
    NoBusybox,
    /// That busybox does not run in the guest, or tells no applets here.
    #[error("{}: expected a static busybox for {architecture}, found {found}: install one (`apt-get install busybox-static`)", .path.display())]
    Busybox {
        /// The file.
        path: PathBuf,
        /// What it is to run on.
        architecture: Architecture,
        /// What it is.
        found: String,
    },
    /// A program is not one for the guest's processor.
    #[error("{}: expected an {architecture} program, found {found}: name a program that was built for {architecture}", .path.display())]
    Program {
        /// The file.
        path: PathBuf,
        /// What it is to run on.
        architecture: Architecture,
        /// What it is.
        found: String,
    },
    /// A library is missing on this machine.
    #[error("{}: expected its library {library} in {searched}, found none: install the package that has it, or link the program statically", .program.display())]
    NoLibrary {
        /// The program.
        program: PathBuf,
        /// The library's name.
        library: String,
        /// Where it was looked for.
        searched: String,
    },
    /// Two different things are to have one path in the guest.
    #[error(
        "{0}: expected one file of this path in the guest, found two that differ: leave one out or rename it"
    )]
    Conflict(String),
    /// A path that cannot be one in the guest.
    #[error("{0:?}: expected an absolute path of plain names for the guest: rename the file")]
    BadPath(String),
    /// A module is not ready to be loaded.
    #[error("{}: expected a kernel module (ELF), found {found}: name an unpacked .ko file", .path.display())]
    Module {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// The format has an end.
    #[error("{0}: expected a file below 4 GiB: leave it out")]
    TooLarge(String),
    /// The archive cannot be written to memory.
    #[error("expected to write the initramfs to memory, found: {0}")]
    Archive(io::Error),
}

/// What builds the programs of guests of an architecture.
pub fn build_command(architecture: Architecture) -> String {
    if architecture.is_foreign() {
        format!("./build --targets {}", architecture.machine())
    } else {
        "./build".to_owned()
    }
}

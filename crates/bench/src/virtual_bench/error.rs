// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why the virtual bench does not work.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use punctual_kernels::initramfs::InitramfsError;
use rustix::fs::statvfs;

use super::qmp::QmpError;
use crate::error::{RunError, describe};

/// The reason why the virtual bench does not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// QEMU is not installed.
    #[error("expected {0} in the PATH, found none: install it (`apt-get install {1}`)")]
    NoQemu(&'static str, &'static str),
    /// QEMU is too old for several CPUs, or for a card.
    #[error(
        "expected QEMU 8.1 or later for more than one CPU (before, one CPU takes the turns of the others) and for the card igb, found {0}: install a later one, or fetch one beside it (`tools/other-qemu`, from Debian's backports)"
    )]
    UnfairQemu(String),
    /// QEMU is installed and does not work.
    #[error("{}: expected a QEMU that tells its version, found: {found}: install it anew", .path.display())]
    BrokenQemu {
        /// The program.
        path: PathBuf,
        /// What it did instead.
        found: String,
    },
    /// The plugin that watches guests does not know this QEMU.
    #[error("expected QEMU 7.2 or later to watch a guest, found one that says {0:?} of itself")]
    NoPluginApi(String),
    /// QEMU does not load the plugin that watches guests.
    #[error("this QEMU does not load the plugin that watches guests: {0}")]
    Plugin(String),
    /// `setpriv`, which makes sure that QEMU does not outlive its parent, is missing.
    #[error("expected setpriv in the PATH, found none: install it (`apt-get install util-linux`)")]
    NoSetpriv,
    /// A file of the bench cannot be used.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A kernel's image is no longer the one that was looked up.
    #[error(
        "{}: the kernel was replaced while this command ran: start the command again",
        .0.display()
    )]
    Replaced(PathBuf),
    /// An initramfs in the cache is not the one that was put there.
    #[error("{}: the initramfs is damaged: measure again, which writes it anew", .0.display())]
    Damaged(PathBuf),
    /// QEMU ended before the guest ran.
    #[error("QEMU does not start this machine ({status}): {said}")]
    NotStarted {
        /// Description of how it ended.
        status: String,
        /// Its error output.
        said: String,
    },
    /// QEMU ended instead of resuming a guest: another build of the same version may have kept it.
    #[error(
        "expected QEMU to resume the booted guest that the cache keeps, found {status}: {said}"
    )]
    NotResumed {
        /// Description of how it ended.
        status: String,
        /// Its error output.
        said: String,
    },
    /// QEMU is too old for the machine, or too new.
    #[error(
        "this QEMU has no machine pc-q35-7.2 (for arm64: virt-7.2), and every virtual subject is one (QEMU 7.2 was the first to have it, 13.1 is to be the last): another QEMU is needed"
    )]
    NoMachine,
    /// The guest's machine was reset before the kernel printed a word.
    #[error(
        "the kernel has reset its machine before it said a word: has the guest enough memory, and is the kernel made for any CPU of its architecture?"
    )]
    Mute,
    /// The guest ended early, and there may have been no room for its memory or for its output.
    #[error(
        "the guest has ended early, and in {}, where its memory of {needed_mib} MiB is kept, only {free_mib} MiB are free: free space, or set XDG_CACHE_HOME",
        path.display()
    )]
    NoRoom {
        /// The cache.
        path: PathBuf,
        /// The space that a guest may need there, in MiB.
        needed_mib: u64,
        /// The free space, in MiB.
        free_mib: u64,
    },
    /// QEMU does not do what it is told.
    #[error("{0}")]
    Qmp(#[from] QmpError),
    /// A snapshot cannot be written or read back.
    #[error("the booted guest cannot be kept or resumed ({0}): is the disk full?")]
    Snapshot(io::Error),
    /// The guest's files cannot be made.
    #[error(transparent)]
    Initramfs(#[from] InitramfsError),
}

impl Error {
    /// The error for a kernel that has not printed a word: there is no room for its memory in the
    /// cache, or something else is wrong.
    pub(super) fn mute(cache: &Path, needed_mib: u64) -> Self {
        Self::no_room(cache, needed_mib).unwrap_or(Self::Mute)
    }

    /// The error for a guest that may have ended early because there is no room for it in the
    /// cache; `None` if there is.
    pub(super) fn no_room(cache: &Path, needed_mib: u64) -> Option<Self> {
        let disk = statvfs(cache).ok()?;
        let free_mib = disk.f_bavail.saturating_mul(disk.f_frsize) >> 20;
        (free_mib < needed_mib).then(|| Self::NoRoom {
            path: cache.to_owned(),
            needed_mib,
            free_mib,
        })
    }

    /// Turns an [`io::Error`] into an error that names the path.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }

    /// The same error where a guest is resumed.
    pub(super) fn when_resumed(self) -> Self {
        match self {
            Self::NotStarted { status, said } => Self::NotResumed { status, said },
            other => other,
        }
    }

    /// The error for a QEMU that ended before the bench could talk to it; its output is in
    /// `directory`. Warnings are not reasons: they are left out, unless there is nothing else.
    pub(super) fn exited(status: ExitStatus, directory: &Path) -> Self {
        let said = fs::read_to_string(directory.join("stderr")).unwrap_or_default();
        if said.contains("unsupported machine type") {
            return Self::NoMachine;
        }
        let reason = without_warnings(&said);
        if reason.contains("plugin") {
            return Self::Plugin(reason);
        }
        Self::NotStarted {
            status: describe(status),
            said: reason,
        }
    }
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        Self::bench(error)
    }
}

impl From<QmpError> for RunError {
    fn from(error: QmpError) -> Self {
        Error::from(error).into()
    }
}

fn without_warnings(said: &str) -> String {
    let reasons = said.lines().filter(|line| !line.contains(": warning: "));
    let reasons = reasons.collect::<Vec<_>>().join("\n");
    let kept = if reasons.trim().is_empty() {
        said
    } else {
        &reasons
    };
    kept.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_does_not_hide_the_reason() {
        let warning = "qemu-system-x86_64: warning: Machine type 'pc-q35-7.2' is deprecated";
        let reason = "qemu-system-x86_64: Could not load plugin p.so";
        let said = format!("{warning}\n{reason}\n");
        assert_eq!(without_warnings(&said), reason);
        assert_eq!(without_warnings(&format!("{warning}\n")), warning);
        assert_eq!(without_warnings(""), "");
    }

    #[test]
    fn a_full_disk_is_named_where_a_guest_has_not_said_a_word() {
        let cache = std::env::temp_dir();
        let told = |needed| Error::mute(&cache, needed).to_string();
        assert!(
            told(u64::MAX).contains("MiB are free: free space"),
            "{}",
            told(u64::MAX)
        );
        assert!(told(0).contains("before it said a word"), "{}", told(0));
    }
}

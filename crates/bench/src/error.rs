//! Why a run could not be carried out to its end.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use punctual_model::frame::FrameError;

use crate::virtual_bench::{PROGRAM, QmpError};

/// Why a run could not be carried out to its end.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// QEMU is not installed.
    #[error(
        "expected {} in the PATH, found none: install it (`apt-get install qemu-system-x86`)",
        PROGRAM
    )]
    NoQemu,
    /// QEMU is there and does not work.
    #[error("{}: expected a QEMU that tells its version, found: {found}: install it anew", .path.display())]
    BrokenQemu {
        /// The program.
        path: PathBuf,
        /// What it did.
        found: String,
    },
    /// The scope's plugin does not know this QEMU.
    #[error("the scope needs QEMU 7.2 or later, and this one says of itself {0:?}")]
    NoPluginApi(String),
    /// `setpriv` sees to it that QEMU does not outlive its parent.
    #[error("expected setpriv in the PATH, found none: install it (`apt-get install util-linux`)")]
    NoSetpriv,
    /// Somebody measures on this machine already.
    #[error(
        "another run is measuring on this machine, and two at a time would measure one another: wait until it has ended"
    )]
    NotAlone,
    /// A file of the bench cannot be used.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// QEMU ended before the guest ran.
    #[error("QEMU does not start this machine ({status}): {said}")]
    NotStarted {
        /// How it ended.
        status: String,
        /// What it said.
        said: String,
    },
    /// QEMU is too old for the machine, or too new.
    #[error(
        "this QEMU has no machine pc-q35-7.2, and every virtual subject is one (QEMU 7.2 was the first to have it, 13.1 is to be the last): another QEMU is needed"
    )]
    NoMachine,
    /// The guest's kernel has failed.
    #[error("{0}")]
    Guest(&'static str),
    /// The guest's machine was reset before there was a word from the kernel.
    #[error(
        "the kernel has reset its machine before it said a word: has the guest enough memory (--memory), and is the kernel made for any x86-64 CPU?"
    )]
    Mute,
    /// QEMU, or the target on a host, has ended, and the plan had not been carried out.
    #[error("the subject has ended before its work was done ({0})")]
    Ended(String),
    /// The subject has said nothing for too long.
    #[error(
        "the subject has said nothing for {0} s of its time: it hangs, or its step takes longer than that (then allow more with --patience)"
    )]
    Silent(u64),
    /// The subject has not run at all.
    #[error("the subject has not run for {0} s: was it stopped?")]
    Stopped(u64),
    /// The record stream is damaged.
    #[error("the record stream is damaged: {0}")]
    Stream(#[from] FrameError),
    /// The target does not accept its plan.
    #[error("the target refuses the plan: {0}")]
    Refused(String),
    /// QEMU does not do as it is told.
    #[error("{0}")]
    Qmp(#[from] QmpError),
    /// A snapshot cannot be written or read back.
    #[error(
        "the booted guest cannot be kept or resumed ({0}): is the disk full? `punctual cache prune` makes room, --cold does without"
    )]
    Snapshot(String),
    /// Somebody asked for the end.
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    /// Makes an error of an [`io::Error`] that names the path.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }

    /// A process has ended before its work was done.
    pub fn ended(status: ExitStatus) -> Self {
        Self::Ended(describe(status))
    }

    /// QEMU has ended before it could be spoken to; what it said is in `directory`. Its
    /// warnings are no reason: they are left out, unless there is nothing else.
    pub fn exited(status: ExitStatus, directory: &Path) -> Self {
        let said = fs::read_to_string(directory.join("stderr")).unwrap_or_default();
        if said.contains("unsupported machine type") {
            return Self::NoMachine;
        }
        Self::NotStarted {
            status: describe(status),
            said: without_warnings(&said),
        }
    }
}

impl From<io::Error> for BenchError {
    fn from(error: io::Error) -> Self {
        Self::Io {
            path: "a file of the subject".into(),
            error,
        }
    }
}

/// How a process ended, in words.
fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
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
}

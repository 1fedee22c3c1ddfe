// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to the kernel's tracer.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use punctual_model::Reason;
use rustix::mount::{UnmountFlags, unmount};

use crate::sys::mount;

/// The mount point of tracefs, since Linux 4.1. (The one in debugfs is mounted by looking for it,
/// and that would change the machine.)
const PLACE: &str = "/sys/kernel/tracing";

/// The mounted tracefs; one that was mounted for this is unmounted when it is dropped.
#[derive(Debug)]
pub struct Tracefs {
    directory: PathBuf,
    is_own: bool,
}

impl Tracefs {
    /// Finds or mounts it; an error is the reason why there is none.
    pub fn reach() -> Result<Self, Reason> {
        if is_locked_down() {
            let denied = io::Error::from_raw_os_error(libc::EPERM);
            return Err(refused("the kernel's tracer", &denied));
        }
        if let Some(directory) = found() {
            let is_own = false;
            return Ok(Self { directory, is_own });
        }
        let directory = PathBuf::from(PLACE);
        if !directory.is_dir() {
            return Err("the kernel has no tracer (CONFIG_FTRACE is not set)".into());
        }
        match mount::mount("tracefs", &directory) {
            // Linux 6.12 has a bug: where it is locked down the file system has no files, and
            // to unmount it ends in list_del corruption.
            Ok(()) => Ok(Self {
                is_own: directory.join("available_tracers").exists(),
                directory,
            }),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                Err("the kernel has no tracefs (CONFIG_TRACING is not set)".into())
            }
            Err(error) => Err(refused("tracefs", &error)),
        }
    }

    /// Returns the path of a file or directory in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if self.is_own {
            // Where somebody uses it by now it stays.
            let _ = unmount(&self.directory, UnmountFlags::empty());
        }
    }
}

/// Returns the place where it is mounted already, if it is.
pub fn found() -> Option<PathBuf> {
    let place = Path::new(PLACE);
    place.join("instances").is_dir().then(|| place.into())
}

/// Writes a word into one of its files.
pub fn write(path: &Path, word: &str) -> Result<(), Reason> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let written = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.write_all(word.as_bytes())
    };
    written().map_err(|error| refused(&format!("\"{word}\" in tracefs's {name}"), &error))
}

/// Returns the reason for a refusal, with advice on what can be done about it.
pub fn refused(what: &str, error: &io::Error) -> Reason {
    let is_root = rustix::process::geteuid().is_root();
    Reason::Refused {
        what: what.into(),
        error: error.to_string(),
        hint: hint(error.kind(), is_root, is_locked_down()).into(),
    }
}

/// Returns advice on what can be done about it.
fn hint(kind: io::ErrorKind, is_root: bool, is_locked_down: bool) -> &'static str {
    match kind {
        io::ErrorKind::PermissionDenied if !is_root => "the kernel's tracer is root's: run as root",
        io::ErrorKind::PermissionDenied if is_locked_down => {
            "the kernel is locked down: boot it with lockdown=integrity or none"
        }
        io::ErrorKind::PermissionDenied => {
            "root may not: is this a container, or the kernel locked down \
             (lockdown=confidentiality)?"
        }
        io::ErrorKind::ResourceBusy => "somebody else uses that tracer",
        _ => "",
    }
}

/// Returns true if the kernel reports that it shows its memory to nobody.
fn is_locked_down() -> bool {
    let said = fs::read_to_string("/sys/kernel/security/lockdown");
    let asked = || fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let by_boot = || {
        asked()
            .split_whitespace()
            .any(|word| word == "lockdown=confidentiality")
    };
    said.map_or_else(|_| by_boot(), |said| said.contains("[confidentiality]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_refused_is_told_what_to_do() {
        let denied = io::ErrorKind::PermissionDenied;
        for (kind, is_root, is_locked_down, expected) in [
            (denied, false, true, "run as root"),
            (denied, true, true, "lockdown=integrity or none"),
            (denied, true, false, "a container"),
            (io::ErrorKind::ResourceBusy, true, false, "somebody else"),
        ] {
            let told = hint(kind, is_root, is_locked_down);
            assert!(told.contains(expected), "{told}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The places of Punctual's files, and the ways in which two processes share them.
//!
//! Files appear whole or not at all ([`write_atomically`]), and costly files are made once, under a
//! [`Lock`].

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Neither an XDG variable nor `HOME` names a directory for files.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an absolute path in {variable} or in HOME, found none: set {variable}")]
pub struct NoHome {
    variable: &'static str,
}

/// The directory for files that can be fetched or built again: `~/.cache/punctual`.
pub fn cache_dir() -> Result<PathBuf, NoHome> {
    from_environment("XDG_CACHE_HOME", ".cache")
}

/// The directory of the user's own settings: `~/.config/punctual`.
pub fn config_dir() -> Result<PathBuf, NoHome> {
    from_environment("XDG_CONFIG_HOME", ".config")
}

fn from_environment(variable: &'static str, below_home: &str) -> Result<PathBuf, NoHome> {
    let directory = resolve(
        std::env::var_os(variable),
        std::env::var_os("HOME"),
        below_home,
    );
    directory.ok_or(NoHome { variable })
}

/// The directory by these variables. Relative paths are ignored, as the XDG base directory
/// specification demands.
fn resolve(xdg: Option<OsString>, home: Option<OsString>, below_home: &str) -> Option<PathBuf> {
    let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(xdg)
        .or_else(|| absolute(home).map(|home| home.join(below_home)))
        .map(|base| base.join("punctual"))
}

/// Writes a file so that nobody ever sees half of it. Missing directories are made.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = parent(path)?;
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    // A temporary file is for its owner's eyes only; what it becomes is not.
    file.as_file()
        .set_permissions(Permissions::from_mode(0o644))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

fn parent(path: &Path) -> io::Result<&Path> {
    match path.parent() {
        Some(directory) if directory.as_os_str().is_empty() => Ok(Path::new(".")),
        Some(directory) => Ok(directory),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("expected the path of a file, found {}", path.display()),
        )),
    }
}

/// An advisory lock among Punctual's processes, and among the threads of one.
///
/// It is released when it is dropped, and by the kernel when its process dies. Its file stays:
/// removing it would let two processes each hold a lock of the same name.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock; waits while somebody else has it.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        Self::wait(path, FlockOperation::LockExclusive)
    }

    /// Takes the lock together with everyone else who shares it; waits while somebody has it alone.
    pub fn share(path: &Path) -> io::Result<Self> {
        Self::wait(path, FlockOperation::LockShared)
    }

    fn wait(path: &Path, operation: FlockOperation) -> io::Result<Self> {
        let file = open_lock(path)?;
        loop {
            match flock(&file, operation) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(()) => return Ok(Self { _file: file }),
            }
        }
    }

    /// Takes the lock unless somebody else has it.
    pub fn try_acquire(path: &Path) -> io::Result<Option<Self>> {
        let file = open_lock(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
            Ok(()) => Ok(Some(Self { _file: file })),
        }
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    fs::create_dir_all(parent(path)?)?;
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(xdg: Option<&str>, home: Option<&str>) -> Option<PathBuf> {
        resolve(xdg.map(Into::into), home.map(Into::into), ".cache")
    }

    #[test]
    fn the_variable_comes_first_and_must_be_absolute() {
        let at_home = Some(PathBuf::from("/home/ada/.cache/punctual"));
        assert_eq!(
            resolved(Some("/c"), Some("/home/ada")),
            Some("/c/punctual".into())
        );
        assert_eq!(resolved(Some("c"), Some("/home/ada")), at_home);
        assert_eq!(resolved(Some(""), Some("/home/ada")), at_home);
        assert_eq!(resolved(None, Some("/home/ada")), at_home);
        assert_eq!(resolved(None, Some("")), None);
        assert_eq!(resolved(None, None), None);
    }

    #[test]
    fn an_atomic_write_replaces_the_file_and_leaves_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/file");
        write_atomically(&path, b"first, and longer").unwrap();
        write_atomically(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
    }

    #[test]
    fn a_lock_keeps_others_out_until_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("locks/one");
        let lock = Lock::acquire(&path).unwrap();
        assert!(Lock::try_acquire(&path).unwrap().is_none());
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || Lock::acquire(&path).map(drop)
        });
        drop(lock);
        waiting.join().unwrap().unwrap();
        assert!(Lock::try_acquire(&path).unwrap().is_some());
        let shared = [Lock::share(&path).unwrap(), Lock::share(&path).unwrap()];
        assert!(Lock::try_acquire(&path).unwrap().is_none());
        drop(shared);
        assert!(Lock::try_acquire(&path).unwrap().is_some());
    }
}

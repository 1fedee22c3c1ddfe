// SPDX-License-Identifier: MIT OR Apache-2.0
//! Private directories: for the files of loads, and of a probe that needs some.
//!
//! The directory of temporary files is shared by everybody. A private directory is one that did not
//! exist before, that only its user may enter, and that is known by a descriptor instead of its
//! name: by the time that it is removed, the name may stand for another's.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

/// The permissions of others than the owner, in a file's mode.
const OTHERS: u32 = 0o77;

/// The beginning of private directories' names, followed by the process and a number.
const PREFIX: &str = "punctual-";

/// A directory of its own. It is locked as long as it is used, and removed, with all that is
/// in it, when this is dropped.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
    handle: File,
}

impl PrivateDirectory {
    /// Creates a new one below `parent`.
    pub fn new_in(parent: &Path) -> io::Result<Self> {
        let names = (0..10_000).map(|number| format!("{PREFIX}{}-{number}", std::process::id()));
        for path in names.map(|name| parent.join(name)) {
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                // Another's, or one of this process's own.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            if let Some(directory) = Self::take(&path)? {
                return Ok(directory);
            }
        }
        let text = format!("no name is free for a directory in {}", parent.display());
        Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
    }

    /// Takes an existing directory; `None` if it is not this user's alone, or is in use.
    fn take(path: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let handle = match open(path, flags, Mode::empty()) {
            Ok(handle) => File::from(handle),
            // A link, a file, another's, or gone.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::ACCESS | Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let found = handle.metadata()?;
        let is_ours =
            found.uid() == rustix::process::geteuid().as_raw() && found.mode() & OTHERS == 0;
        if !is_ours || flock(&handle, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        // Whoever sweeps may have removed it before it was locked.
        let is_there = fs::symlink_metadata(path).is_ok_and(|there| there.ino() == found.ino());
        let path = path.to_owned();
        Ok(is_there.then_some(Self { path, handle }))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes its content, whatever its name stands for by now.
    fn clear(&self) -> io::Result<()> {
        let inside = PathBuf::from(format!("/proc/self/fd/{}/", self.handle.as_raw_fd()));
        for entry in fs::read_dir(&inside)? {
            let entry = entry?;
            // Neither of them follows a link.
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // What cannot be removed is in the directory of temporary files, where it is cleared.
        let _ = self.clear();
        // Removes an empty directory and nothing else.
        let _ = fs::remove_dir(&self.path);
    }
}

/// A private directory in which this process and its children are until it is dropped.
///
/// (To change the directory in a child only, between fork and exec, takes a fork that copies
/// the address space, and a measuring thread would pay for the copies.)
#[derive(Debug)]
pub struct ScratchDirectory {
    before: PathBuf,
    _directory: PrivateDirectory,
}

impl ScratchDirectory {
    /// Makes a new one and changes to it.
    pub fn enter() -> io::Result<Self> {
        let directory = PrivateDirectory::new_in(&env::temp_dir())?;
        // Where this process is may be gone already.
        let before = env::current_dir().unwrap_or_else(|_| "/".into());
        rustix::process::fchdir(&directory.handle)?;
        Ok(Self {
            before,
            _directory: directory,
        })
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let _ = env::set_current_dir(&self.before);
    }
}

/// Removes the private directories that targets of this user left behind when they were
/// killed.
pub fn remove_left_behind() {
    remove_left_in(&env::temp_dir());
}

fn remove_left_in(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if is_private(&entry.file_name().to_string_lossy()) {
            // Dropping it is what removes it.
            let _ = PrivateDirectory::take(&entry.path());
        }
    }
}

/// Returns true if a directory of this name may be one of these: `punctual-17-0`.
fn is_private(name: &str) -> bool {
    let numbers = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_directory_leaves_with_its_files_and_nobody_else_may_enter_it() {
        let parent = tempfile::tempdir().unwrap();
        let private = PrivateDirectory::new_in(parent.path()).unwrap();
        let path = private.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::create_dir(path.join("deep")).unwrap();
        fs::write(path.join("deep/bigfile"), [0; 100]).unwrap();
        drop(private);
        assert!(!path.exists());
    }

    #[test]
    fn a_name_that_is_taken_is_not_entered_and_links_are_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let victim = tempfile::tempdir().unwrap();
        fs::write(victim.path().join("file"), "kept").unwrap();
        let name = |number| {
            parent
                .path()
                .join(format!("{PREFIX}{}-{number}", std::process::id()))
        };
        symlink(victim.path(), name(0)).unwrap();
        fs::create_dir(name(1)).unwrap();
        fs::set_permissions(name(1), fs::Permissions::from_mode(0o777)).unwrap();
        let private = PrivateDirectory::new_in(parent.path()).unwrap();
        assert_eq!(private.path(), name(2));
        symlink(victim.path(), private.path().join("link")).unwrap();
        // Somebody puts a link in its place.
        fs::rename(private.path(), parent.path().join("elsewhere")).unwrap();
        symlink(victim.path(), name(2)).unwrap();
        drop(private);
        let moved = fs::read_dir(parent.path().join("elsewhere")).unwrap();
        assert_eq!(moved.count(), 0, "its content is gone, wherever it is");
        remove_left_in(parent.path());
        assert!(name(1).exists(), "others may enter it: it is not ours");
        assert_eq!(
            fs::read_to_string(victim.path().join("file")).unwrap(),
            "kept"
        );
    }

    #[test]
    fn what_a_dead_target_left_is_removed_and_what_is_used_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let used = PrivateDirectory::new_in(parent.path()).unwrap();
        let left = parent.path().join("punctual-1-0");
        DirBuilder::new().mode(0o700).create(&left).unwrap();
        fs::write(left.join("bigfile"), [0; 100]).unwrap();
        let other = parent.path().join("punctual-store");
        DirBuilder::new().mode(0o700).create(&other).unwrap();
        remove_left_in(parent.path());
        assert!(used.path().exists() && other.exists() && !left.exists());
    }
}

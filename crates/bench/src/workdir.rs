// SPDX-License-Identifier: MIT OR Apache-2.0
//! A directory for the files of one QEMU, or of a watched one, that does not outlive its user for
//! long.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

use punctual_kernels::paths::Lock;

/// A directory of its own below `CACHE/work`. It is removed when this is dropped; anything that a
/// killed process leaves behind is removed when the next process makes its own.
#[derive(Debug)]
pub struct WorkDir {
    directory: TempDir,
    _lock: Lock,
}

const LOCK: &str = "lock";

impl WorkDir {
    /// Makes a new directory, and removes those whose users have died.
    pub fn new(cache: &Path) -> io::Result<Self> {
        let work = cache.join("work");
        fs::create_dir_all(&work)?;
        // Whoever sweeps must not take one that is just being made and not locked yet.
        let _sweeping = Lock::acquire(&work.join(LOCK))?;
        sweep(&work)?;
        let directory = tempfile::Builder::new().prefix("qemu-").tempdir_in(&work)?;
        let lock = Lock::acquire(&directory.path().join(LOCK))?;
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn sweep(work: &Path) -> io::Result<()> {
    for entry in fs::read_dir(work)? {
        let path = entry?.path();
        match sweep_one(&path) {
            // Otherwise its user has removed it meanwhile, or is about to.
            Err(error) if error.kind() != io::ErrorKind::NotFound && path.exists() => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Removes a directory if its user has died.
fn sweep_one(path: &Path) -> io::Result<()> {
    let lock = path.join(LOCK);
    if path.is_dir() && Lock::try_acquire(&lock)?.is_some() {
        fs::remove_dir_all(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_the_dead_left_is_swept_and_what_the_living_use_is_not() {
        let cache = tempfile::tempdir().unwrap();
        let living = WorkDir::new(cache.path()).unwrap();
        let dead = cache.path().join("work/qemu-dead");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("stream"), "half").unwrap();
        let other = WorkDir::new(cache.path()).unwrap();
        assert!(!dead.exists());
        assert!(living.path().exists() && other.path().exists());
        let path = other.path().to_owned();
        drop(other);
        assert!(!path.exists() && living.path().exists());
    }

    #[test]
    fn who_ends_while_another_sweeps_is_no_error() {
        let cache = tempfile::tempdir().unwrap();
        let make = || {
            for _ in 0..200 {
                let own = WorkDir::new(cache.path()).unwrap();
                for name in ["plan", "stream", "console", "stderr"] {
                    fs::write(own.path().join(name), "").unwrap();
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(make);
            }
        });
    }
}

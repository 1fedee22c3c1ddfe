//! A directory for the files of loads, which leaves with the process that made it.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, in which this process and what it starts is until it is dropped;
/// then it is removed with everything in it.
///
/// (To change the directory in a child only, between fork and exec, takes a fork that copies
/// the address space, and whoever measures would pay for the copies.)
#[derive(Debug)]
pub struct ScratchDirectory {
    path: PathBuf,
    before: PathBuf,
}

impl ScratchDirectory {
    /// Makes a new, empty one and goes there.
    pub fn enter() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let path = root().join(NEXT.fetch_add(1, Ordering::SeqCst).to_string());
        // Where this process is may be gone already.
        let before = env::current_dir().unwrap_or_else(|_| "/".into());
        fs::create_dir_all(&path)?;
        env::set_current_dir(&path)?;
        Ok(Self { path, before })
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let _ = env::set_current_dir(&self.before);
        // What cannot be removed is in the directory of temporary files, where it is cleared.
        let _ = fs::remove_dir_all(&self.path);
        // Another load of this process may have files in it.
        let _ = fs::remove_dir(root());
    }
}

/// Removes what this process, or the program that it was before, has left.
pub fn remove_left_behind() {
    let _ = fs::remove_dir_all(root());
}

/// The directory of all scratch directories of this process.
fn root() -> PathBuf {
    std::env::temp_dir().join(format!("punctual-load-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_leaves_with_its_files() {
        let scratch = ScratchDirectory::enter().unwrap();
        let path = scratch.path.clone();
        fs::write(path.join("bigfile"), [0; 100]).unwrap();
        drop(scratch);
        assert!(!path.exists());
    }
}

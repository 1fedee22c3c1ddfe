//! A directory for the files of loads, which leaves with the process that made it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, removed with everything in it when it is dropped.
#[derive(Debug)]
pub struct ScratchDirectory(pub PathBuf);

impl ScratchDirectory {
    /// A new, empty one.
    pub fn new() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let path = root().join(NEXT.fetch_add(1, Ordering::SeqCst).to_string());
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // What cannot be removed is in the directory of temporary files, where it is cleared.
        let _ = fs::remove_dir_all(&self.0);
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
    fn a_directory_leaves_with_its_files_and_others_stay() {
        let (first, second) = (
            ScratchDirectory::new().unwrap(),
            ScratchDirectory::new().unwrap(),
        );
        let path = first.0.clone();
        fs::write(path.join("bigfile"), [0; 100]).unwrap();
        drop(first);
        assert!(!path.exists() && second.0.is_dir());
    }
}

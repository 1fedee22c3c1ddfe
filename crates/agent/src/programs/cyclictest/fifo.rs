// SPDX-License-Identifier: MIT OR Apache-2.0
//! A named pipe whose readers are told about progress (`-F`).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::fs::{CWD, Mode, mkfifoat};

/// A pipe that exists as long as this value lives.
#[derive(Debug)]
pub struct Fifo {
    path: PathBuf,
}

impl Fifo {
    /// Makes a pipe. An existing pipe is replaced; any other file is an error.
    pub fn new(path: PathBuf) -> Result<Self> {
        if is_fifo(&path) {
            fs::remove_file(&path).with_context(|| creating(&path))?;
        }
        mkfifoat(CWD, &path, Mode::from_raw_mode(0o666)).with_context(|| creating(&path))?;
        Ok(Self { path })
    }

    /// Writes a text if somebody wants to read it, and ends the pipe for them. A reader that does
    /// not take all of it gets a part; nobody is waited for.
    pub fn offer(&self, text: impl FnOnce() -> String) {
        if let Ok(mut reader) = self.open() {
            let _ = reader.write_all(text().as_bytes());
        }
    }

    fn open(&self) -> io::Result<File> {
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let mut options = File::options();
        options.write(true).custom_flags(flags).open(&self.path)
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        if is_fifo(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn creating(path: &Path) -> String {
    format!("Error creating fifo {}", path.display())
}

fn is_fifo(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_fifo())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn who_reads_gets_one_text_and_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("status");
        let fifo = Fifo::new(path.clone()).unwrap();
        fifo.offer(|| panic!("nobody reads"));
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut reader = options.open(&path).unwrap();
        fifo.offer(|| "one\n".into());
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\n");
        // More than a pipe holds is cut off, and nobody waits.
        fifo.offer(|| "x".repeat(1 << 22));
        drop(fifo);
        assert!(!path.exists());
    }

    #[test]
    fn a_pipe_that_is_left_over_gives_way_and_another_file_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("status");
        std::mem::forget(Fifo::new(path.clone()).unwrap());
        drop(Fifo::new(path.clone()).unwrap());
        fs::write(&path, "mine").unwrap();
        let error = Fifo::new(path.clone()).unwrap_err().to_string();
        assert!(error.starts_with("Error creating fifo "), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A named pipe from a process that may end at any time.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags};

/// The capacity that is requested for the pipe, in bytes.
const ROOM: usize = 1 << 20;
/// The wait before the pipe is looked into again.
const PAUSE: Duration = Duration::from_micros(200);

/// The reader's end.
pub struct Pipe {
    file: File,
    over: Arc<AtomicBool>,
}

impl Pipe {
    /// Makes a pipe. It ends when it is empty after `over` has become true.
    pub fn new(path: &Path, over: Arc<AtomicBool>) -> io::Result<Self> {
        rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        // It works with less, too, only slower.
        let _ = rustix::pipe::fcntl_setpipe_size(&file, ROOM);
        Ok(Self { file, over })
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let over = self.over.load(Ordering::SeqCst);
            match self.file.read(buffer) {
                Ok(0) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            if over {
                return Ok(0);
            }
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn what_was_written_is_read_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let over = Arc::new(AtomicBool::new(false));
        let mut pipe = Pipe::new(&path, Arc::clone(&over)).unwrap();
        let writer = thread::spawn(move || {
            let mut file = File::options().write(true).open(path).unwrap();
            file.write_all(&vec![7; 300_000]).unwrap();
            drop(file);
            over.store(true, Ordering::SeqCst);
        });
        let mut read = Vec::new();
        pipe.read_to_end(&mut read).unwrap();
        writer.join().unwrap();
        assert_eq!(read, vec![7; 300_000]);
    }
}

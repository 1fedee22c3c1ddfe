//! Locks on files, which end with the process that holds them.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Locks a file for this process alone; `WouldBlock` where another one has it.
pub fn try_exclusive(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open, and no memory is handed over.
    super::check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) })?;
    Ok(())
}

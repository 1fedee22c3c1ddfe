//! Pipes, and waiting for a descriptor.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use punctual_model::Nanos;

/// A pipe: its reading end, its writing end.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for two descriptors.
    super::check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: both descriptors were just made and nobody else has them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Waits until there is something to read, or the other end is gone; at most for `limit`
/// (for ever if `None`). Says whether there is.
pub fn wait_readable(fd: BorrowedFd<'_>, limit: Option<Nanos>) -> io::Result<bool> {
    let timeout = limit.map_or(-1, |span| (span.0.max(0) / 1_000_000) as libc::c_int);
    let mut entry = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    loop {
        // SAFETY: `entry` is live, and one is its number.
        match super::check(unsafe { libc::poll(&raw mut entry, 1, timeout) }) {
            Ok(ready) => return Ok(ready > 0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

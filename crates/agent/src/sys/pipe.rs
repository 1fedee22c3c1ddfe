// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pipes, and waiting for a descriptor.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use punctual_model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::time::now;

/// Creates a pipe: its reading end, its writing end.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Waits until there is something to read, or the other end is gone; for at most `limit`
/// (forever if `None`), signals or not. Returns true if there is.
pub fn wait_readable(fd: BorrowedFd<'_>, limit: Option<Nanos>) -> io::Result<bool> {
    let deadline = limit.map(|span| now() + span);
    loop {
        let left = deadline.map(|deadline| timespec((deadline - now()).max(Nanos::ZERO)));
        let mut wanted = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        match poll(&mut wanted, left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Converts a span to the form of system calls.
pub(super) fn timespec(span: Nanos) -> Timespec {
    Timespec {
        tv_sec: span.0 / 1_000_000_000,
        tv_nsec: span.0 % 1_000_000_000,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_wait_lasts_as_long_as_it_is_told_below_a_millisecond_and_above_a_month_too() {
        let (reader, writer) = pipe().unwrap();
        let limit = Nanos(900_000);
        let begun = now();
        assert!(!wait_readable(reader.as_fd(), Some(limit)).unwrap());
        assert!(now() - begun >= limit);
        std::fs::File::from(writer).write_all(b"x").unwrap();
        let month = Nanos::from_millis(1_000 * 86_400 * 40);
        assert!(wait_readable(reader.as_fd(), Some(month)).unwrap());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! POSIX semaphores of the C library, as applications use them.
//!
//! The C library's own are used instead of bare futex calls, because real-time programs wait on
//! semaphores: on a free one neither operation enters the kernel, on one that is waited
//! for both are one futex call. The kernel wakes waiters in order of priority.

use std::cell::UnsafeCell;
use std::io;

/// An unnamed semaphore for the threads of this process.
pub struct Semaphore {
    // Boxed, because its address is its identity.
    raw: Box<UnsafeCell<libc::sem_t>>,
}

// SAFETY: a semaphore is made for use by several threads at once.
unsafe impl Send for Semaphore {}
// SAFETY: as above; all access goes through the C library's functions.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// Creates a semaphore with count zero.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a sem_t is plain bytes, and is initialised before it is used.
        let raw: Box<UnsafeCell<libc::sem_t>> = Box::new(unsafe { std::mem::zeroed() });
        // SAFETY: the memory is live, and stays where it is until it is destroyed.
        super::check(unsafe { libc::sem_init(raw.get(), 0, 0) })?;
        Ok(Self { raw })
    }

    /// Takes one from the count; blocks while it is zero. Continues to wait after a signal.
    #[inline]
    pub fn wait(&self) {
        // SAFETY: the semaphore is initialised and live. The call's only error is EINTR.
        while unsafe { libc::sem_wait(self.raw.get()) } != 0 {}
    }

    /// Adds one to the count, and wakes a waiting thread.
    ///
    /// # Panics
    /// Panics if the count is at its limit, above two thousand million.
    #[inline]
    pub fn post(&self) {
        // SAFETY: the semaphore is initialised and live.
        let result = unsafe { libc::sem_post(self.raw.get()) };
        assert!(result == 0, "the semaphore's count is at its limit");
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: initialised, and with `&mut self` nobody waits on it.
        unsafe { libc::sem_destroy(self.raw.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_kept_for_whoever_waits_later_and_wakes_whoever_waits_now() {
        let (there, back) = (Semaphore::new().unwrap(), Semaphore::new().unwrap());
        there.post();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                there.wait();
                there.wait();
                back.post();
            });
            there.post();
            back.wait();
        });
    }
}

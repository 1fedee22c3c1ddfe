//! Memory that stays where it is.

use std::io;
use std::sync::atomic::AtomicU64;

/// Locks all memory of the process, present and future.
pub fn lock_all() -> io::Result<()> {
    // SAFETY: the call takes plain numbers and changes no content.
    super::check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) })?;
    Ok(())
}

/// Touches the next 16 KiB of the calling thread's stack, so that no sample meets a page fault.
#[inline(never)]
pub fn touch_stack() {
    let mut pages = [0_u8; 16 * 1024];
    for byte in pages.iter_mut().step_by(4096) {
        // SAFETY: the reference is to a live byte; volatile, so that it is not optimised away.
        unsafe { std::ptr::write_volatile(byte, 1) };
    }
}

/// A counter that a process shares with the children that it forks.
#[derive(Clone, Copy, Debug)]
pub struct SharedCounter(&'static AtomicU64);

impl SharedCounter {
    /// A new counter at zero; its page lives as long as the process.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the page is zeroed, aligned, writable, and never unmapped; all access
        // to it is atomic.
        Ok(Self(unsafe { &*page.cast::<AtomicU64>() }))
    }

    /// The counter itself.
    pub fn get(self) -> &'static AtomicU64 {
        self.0
    }
}

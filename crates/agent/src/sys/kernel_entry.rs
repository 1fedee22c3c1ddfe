// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detection of interruptions of the calling thread by the kernel, as the processor shows them.
//!
//! When an x86 processor returns from an interrupt or an exception to a program, it clears a data
//! segment register that holds a null selector other than 0 (`IRET` in Intel's and AMD's
//! manuals). 64-bit programs have no use for `ES`, so it is set, and read later. Reading
//! it costs an instruction, needs no privilege, and misses no interruption, however short.
//! `SYSRET` leaves it alone: a system call is no interruption. So does `ERETU`, the return of
//! FRED, with which this method does not work.
//!
//! On arm64, in guests, the exclusive monitor shows it.

use std::hint::black_box;
use std::io;
use std::ptr::null_mut;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munlock, munmap};

use super::arch;
pub use super::arch::NOT_TOLD;

/// Starts to notice interruptions from here on.
#[inline]
pub fn arm() {
    arch::arm_interruption();
}

/// Returns true if there was one since.
#[inline]
pub fn has_come() -> bool {
    arch::was_interrupted()
}

/// Returns true if this processor and kernel show it: tried with an exception, a page fault.
pub fn is_told() -> io::Result<bool> {
    const LENGTH: usize = 4096;
    if !arch::tells_interruptions() {
        return Ok(false);
    }
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new page at an address of the kernel's choice, readable, writable, which
    // nobody else knows of, and which is given back in the end.
    unsafe {
        let page = mmap_anonymous(null_mut(), LENGTH, access, flags)?;
        munlock(page, LENGTH)?;
        madvise(page, LENGTH, Advice::LinuxDontNeed)?;
        arm();
        let before = has_come();
        black_box(page.cast::<u8>()).write_volatile(1);
        let told = !before && has_come();
        munmap(page, LENGTH)?;
        Ok(told)
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_told() {
        // A processor with FRED does not.
        let fred =
            std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" fred"));
        assert!(is_told().unwrap() || fred);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that stays in place.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::mem;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, MlockAllFlags, ProtFlags, mlockall, mmap, mmap_anonymous};

/// Locks all memory of the process, present and future.
pub fn lock_all() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

/// Returns the calling thread's page faults since it began, without and with input from a device.
pub fn faults() -> io::Result<(i64, i64)> {
    // SAFETY: a rusage is made of integers, for which all zeros is valid.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is live.
    super::check(unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) })?;
    Ok((super::long(usage.ru_minflt), super::long(usage.ru_majflt)))
}

/// Touches the next 16 KiB of the calling thread's stack, so that no sample meets a page fault.
#[inline(never)]
pub fn touch_stack() {
    let mut pages = [0_u8; 16 * 1024];
    for byte in pages.iter_mut().step_by(4096) {
        *black_box(byte) = 1;
    }
    black_box(&pages);
}

/// Returns new words, all zero, that a process shares with the children that it forks.
pub fn shared_words(count: usize) -> io::Result<&'static [AtomicU64]> {
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory; it
    // is as long as the words, page-aligned, readable, writable, and never unmapped. All
    // access to it is atomic, in the children too.
    unsafe {
        let words = mmap_anonymous(null_mut(), count * 8, access, flags)?;
        Ok(std::slice::from_raw_parts(words.cast(), count))
    }
}

/// Maps the words of a file, shared with others that map it too; an error if it is shorter.
pub fn words_of(file: &File, count: usize) -> io::Result<&'static [AtomicU64]> {
    if file.metadata()?.len() < count as u64 * 8 {
        let text = format!(
            "expected a file of {} bytes, found a shorter one",
            count * 8
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: as for `shared_words`. The file is that long; who cuts it off ends this process.
    unsafe {
        let words = mmap(null_mut(), count * 8, access, MapFlags::SHARED, file, 0)?;
        Ok(std::slice::from_raw_parts(words.cast(), count))
    }
}

#[cfg(test)]
mod tests {
    use rustix::mm::{Advice, madvise, munlock};

    use super::*;

    #[test]
    fn each_page_that_is_touched_for_the_first_time_is_a_fault() {
        const PAGES: usize = 64;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping, as for `shared_words`, which nothing refers to. Another test
        // may have all memory locked, and so filled: that is undone.
        let pages = unsafe {
            let pages = mmap_anonymous(null_mut(), PAGES * 4096, access, flags).unwrap();
            munlock(pages, PAGES * 4096).unwrap();
            madvise(pages, PAGES * 4096, Advice::LinuxNoHugepage).ok();
            madvise(pages, PAGES * 4096, Advice::LinuxDontNeed).unwrap();
            std::slice::from_raw_parts_mut(pages.cast::<u8>(), PAGES * 4096)
        };
        let (minor, _) = faults().unwrap();
        for byte in pages.iter_mut().step_by(4096) {
            *black_box(byte) = 1;
        }
        assert!(faults().unwrap().0 - minor >= PAGES as i64);
    }
}

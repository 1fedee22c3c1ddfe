// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's memory, seen from outside: how far its step is, and the request to end it.
//!
//! The bench reads and writes QEMU's memory by `/proc/PID/mem`. QEMU does nothing for it and
//! notices nothing of it, so that a guest that is looked at lives through the very same
//! instructions as one that is not.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use punctual_model::Progress;
use punctual_model::status_page::{MAGIC, MAGIC_WORD, STOP, STOP_WORD};

const PAGE: usize = 4096;
/// How often the page is looked for, until it is found: that takes some milliseconds.
const LOOK: Duration = Duration::from_secs(1);

/// In an entry of `/proc/PID/pagemap`: the page is there, and is no page of a file. What a
/// guest has written to is never a file's, as its memory is private to QEMU.
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;

/// The memory of the guest of one QEMU.
#[derive(Debug)]
pub struct GuestMemory {
    qemu: u32,
    bytes: u64,
    page: Option<u64>,
    looked: Option<Instant>,
}

impl GuestMemory {
    /// Of the guest of a QEMU with this process number that has so many mebibytes.
    pub fn new(qemu: u32, mib: u32) -> Self {
        Self {
            qemu,
            bytes: u64::from(mib) << 20,
            page: None,
            looked: None,
        }
    }

    /// How far the guest's step is.
    pub fn progress(&mut self) -> Option<Progress> {
        let (mem, page) = self.find(false)?;
        let mut bytes = [0; PAGE];
        mem.read_exact_at(&mut bytes, page).ok()?;
        Progress::read(&bytes)
    }

    /// Asks the target in the guest to end; whether there is one that can be asked.
    pub fn request_stop(&mut self) -> bool {
        let Some((mem, page)) = self.find(true) else {
            return false;
        };
        mem.write_all_at(&STOP.to_ne_bytes(), page + STOP_WORD as u64 * 8)
            .is_ok()
    }

    /// QEMU's memory, and where the status page is in it, looked for `now` if need be.
    fn find(&mut self, now: bool) -> Option<(File, u64)> {
        let path = format!("/proc/{}/mem", self.qemu);
        let mem = File::options().read(true).write(now).open(path).ok()?;
        if let Some(page) = self.page.filter(|page| is_status_page(&mem, *page)) {
            return Some((mem, page));
        }
        if !now && self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return None;
        }
        self.looked = Some(Instant::now());
        self.page = self.search(&mem).ok().flatten();
        self.page.map(|page| (mem, page))
    }

    fn search(&self, mem: &File) -> io::Result<Option<u64>> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.qemu))?;
        let pagemap = File::open(format!("/proc/{}/pagemap", self.qemu))?;
        for range in maps.lines().filter_map(writable) {
            if range.end - range.start < self.bytes {
                continue;
            }
            let pages = (range.end - range.start) / PAGE as u64;
            let mut entries = vec![0; usize::try_from(pages * 8).unwrap_or(0)];
            pagemap.read_exact_at(&mut entries, range.start / PAGE as u64 * 8)?;
            for (entry, number) in entries.chunks_exact(8).zip(0..) {
                let page = range.start + number * PAGE as u64;
                let entry = entry
                    .first_chunk()
                    .map_or(0, |bytes| u64::from_ne_bytes(*bytes));
                if entry & PRESENT != 0 && entry & OF_FILE == 0 && is_status_page(mem, page) {
                    return Ok(Some(page));
                }
            }
        }
        Ok(None)
    }
}

fn is_status_page(mem: &File, page: u64) -> bool {
    let mut word = [0; 8];
    let read = mem.read_exact_at(&mut word, page + MAGIC_WORD as u64 * 8);
    read.is_ok() && u64::from_ne_bytes(word) == MAGIC
}

/// The addresses in a line of `/proc/PID/maps` that holds data which can be written to (QEMU's
/// translated code, which is executable too, is longer than most guests).
fn writable(line: &str) -> Option<Range<u64>> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let range = number(start)?..number(end)?;
    words.next()?.starts_with("rw-").then_some(range)
}

#[cfg(test)]
mod tests {
    use punctual_model::status_page::STEP_WORD;

    use super::*;

    /// This process is the QEMU.
    #[test]
    fn the_page_is_found_among_others_read_and_written_to() {
        let mib = 16;
        let words = (usize::try_from(mib).unwrap() << 20) / 8;
        let mut memory = vec![7_u64; words + PAGE / 8];
        let first = (memory.as_ptr().addr().wrapping_neg() % PAGE) / 8;
        let page = first + 100 * PAGE / 8;
        let mut guest = GuestMemory::new(std::process::id(), mib);
        assert_eq!(guest.progress(), None);
        memory[page..page + 512].fill(0);
        memory[page + MAGIC_WORD] = MAGIC;
        memory[page + STEP_WORD] = 3;
        memory[page + 3] = 1;
        memory[page + 8] = 42;
        let memory = std::hint::black_box(memory);
        guest.looked = None;
        let progress = guest.progress().unwrap();
        assert_eq!((progress.step, progress.count), (2, 42));
        assert!(guest.request_stop());
        assert_eq!(std::hint::black_box(&memory)[page + STOP_WORD], 1);
    }

    #[test]
    fn only_memory_that_can_be_written_to_counts() {
        let line = "7f00-7f10 rw-p 00000000 00:00 0 [heap]";
        assert_eq!(writable(line), Some(0x7f00..0x7f10));
        assert_eq!(writable("7f00-7f10 r--p 00000000 00:00 0"), None);
        assert_eq!(writable(""), None);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's memory, seen from outside: the progress of its step, and the request to end it.
//!
//! The bench reads and writes QEMU's memory through `/proc/PID/mem`. QEMU takes no part in this and
//! notices nothing, so a guest that is looked at executes the very same instructions as one that is
//! not.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use punctual_model::Progress;
use punctual_model::status_page::{
    MAGIC, MAGIC_WORD, RING_MAGIC, RING_SLOT_WORD, RINGS, Reader, STOP, STOP_WORD,
};

const PAGE: usize = 4096;
/// The interval between two searches for the pages, until they are found: a search takes some
/// milliseconds.
const LOOK: Duration = Duration::from_secs(1);

/// Bit in an entry of `/proc/PID/pagemap`: the page is present. `OF_FILE` marks a page of a file; a
/// page that a guest has written to is never one, as the guest's memory is private to QEMU.
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;

/// The memory of the guest of one QEMU.
#[derive(Debug)]
pub struct GuestMemory {
    qemu: u32,
    bytes: u64,
    found: Option<Found>,
    looked: Option<Instant>,
    reader: Reader,
}

/// The addresses of pages in QEMU's memory; they need not lie side by side as in the guest's.
#[derive(Clone, Copy, Debug)]
struct Found {
    page: u64,
    /// The ring of each slot, from 1.
    rings: [Option<u64>; RINGS],
}

impl GuestMemory {
    /// The memory of the guest of the QEMU with this process number; the guest has `mib` mebibytes.
    pub fn new(qemu: u32, mib: u32) -> Self {
        Self {
            qemu,
            bytes: u64::from(mib) << 20,
            found: None,
            looked: None,
            reader: Reader::default(),
        }
    }

    /// The progress of the guest's step.
    pub fn progress(&mut self) -> Option<Progress> {
        let (mem, found) = self.find(false)?;
        let bytes = page_at(&mem, found.page)?;
        let mut is_missing = false;
        let ring = |slot: usize| {
            let at = *found.rings.get(slot - 1)?;
            is_missing |= at.is_none();
            page_at(&mem, at?)
        };
        let progress = self.reader.read_with(&bytes, ring);
        if is_missing && self.may_look() {
            self.search_again(&mem);
        }
        progress
    }

    /// Asks the target in the guest to end; returns true if there is one that can be asked.
    pub fn request_stop(&mut self) -> bool {
        let Some((mem, found)) = self.find(true) else {
            return false;
        };
        mem.write_all_at(&STOP.to_ne_bytes(), found.page + STOP_WORD as u64 * 8)
            .is_ok()
    }

    /// QEMU's memory, and the addresses of the pages in it, looked for at once if `now` and need
    /// be.
    fn find(&mut self, now: bool) -> Option<(File, Found)> {
        let path = format!("/proc/{}/mem", self.qemu);
        let mem = File::options().read(true).write(now).open(path).ok()?;
        let is_there = |found: &Found| word_at(&mem, found.page, MAGIC_WORD) == Some(MAGIC);
        if self.found.as_ref().is_none_or(|found| !is_there(found)) {
            if !now && !self.may_look() {
                return None;
            }
            self.search_again(&mem);
        }
        Some((mem, self.found?))
    }

    fn may_look(&self) -> bool {
        self.looked.is_none_or(|looked| looked.elapsed() >= LOOK)
    }

    fn search_again(&mut self, mem: &File) {
        self.looked = Some(Instant::now());
        self.found = self.search(mem).ok().flatten();
    }

    /// Searches all pages that the guest has written to.
    fn search(&self, mem: &File) -> io::Result<Option<Found>> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.qemu))?;
        let pagemap = File::open(format!("/proc/{}/pagemap", self.qemu))?;
        let mut status = None;
        let mut rings = [None; RINGS];
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
                if entry & PRESENT == 0 || entry & OF_FILE != 0 {
                    continue;
                }
                match word_at(mem, page, MAGIC_WORD) {
                    Some(MAGIC) if status.is_none() => status = Some(page),
                    Some(RING_MAGIC) => {
                        let slot = word_at(mem, page, RING_SLOT_WORD).unwrap_or(0);
                        let ring = (slot as usize).checked_sub(1);
                        if let Some(ring) = ring.and_then(|ring| rings.get_mut(ring)) {
                            *ring = Some(page);
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(status.map(|page| Found { page, rings }))
    }
}

fn page_at(mem: &File, address: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; PAGE];
    mem.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

/// A word of a page.
fn word_at(mem: &File, page: u64, at: usize) -> Option<u64> {
    let mut word = [0; 8];
    mem.read_exact_at(&mut word, page + at as u64 * 8).ok()?;
    Some(u64::from_ne_bytes(word))
}

/// The address range in a line of `/proc/PID/maps` that stands for writable data. QEMU's translated
/// code, which is also executable and longer than most guests, does not count.
fn writable(line: &str) -> Option<Range<u64>> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let range = number(start)?..number(end)?;
    words.next()?.starts_with("rw-").then_some(range)
}

#[cfg(test)]
mod tests {
    use punctual_model::Nanos;
    use punctual_model::status_page::{
        COUNT_WORD, RING_COUNT_WORD, RING_FIRST_WORD, SLOTS_WORD, STEP_WORD, slot_of,
    };

    use super::*;

    /// This test process takes the part of QEMU.
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
        memory[page + SLOTS_WORD] = 1;
        memory[page + slot_of(1) + COUNT_WORD] = 42;
        // Its ring is elsewhere.
        let ring = first + 7 * PAGE / 8;
        memory[ring] = RING_MAGIC;
        memory[ring + RING_SLOT_WORD] = 1;
        memory[ring + RING_COUNT_WORD] = 2;
        memory[ring + RING_FIRST_WORD] = 11;
        memory[ring + RING_FIRST_WORD + 1] = 12;
        let memory = std::hint::black_box(memory);
        guest.looked = None;
        let progress = guest.progress().unwrap();
        assert_eq!((progress.step, progress.count), (2, 42));
        assert_eq!(progress.threads[0].recent, [Nanos(11), Nanos(12)]);
        assert!(guest.progress().unwrap().threads[0].recent.is_empty());
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

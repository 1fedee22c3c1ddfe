// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's memory, which is mapped in this process: QEMU's plugin API shows addresses but no
//! values, and writes nothing.
//!
//! The bench keeps the memory of a guest that it resumes in the file `memory` in QEMU's working
//! directory, mapped privately. A guest that it boots afresh has the only anonymous mapping of that
//! length. Up to 2 GiB of it are the guest's physical addresses from 0 on.
//!
//! The argument for soundness: the mapping exists as long as QEMU lives. It is read and written, as
//! the guest does, between two instructions of its only virtual CPU.
#![allow(unsafe_code)]

use std::fs;

/// The addresses at which kernels map all memory, with four and with five levels of pages, if they
/// are told not to choose at random (`nokaslr`).
const DIRECT: [u64; 2] = [0xffff_8880_0000_0000, 0xff11_0000_0000_0000];

/// The largest memory that is one range of physical addresses.
const MOST: u64 = 2 << 30;

/// The name of the file that holds a guest's memory.
const FILE: &str = "/memory";

/// The guest's memory.
#[derive(Clone, Copy, Debug)]
pub struct Ram {
    begin: usize,
    words: usize,
}

impl Ram {
    /// Returns the memory of the guest of this process, which has this many bytes; `None` if it is
    /// not found.
    pub fn of_this_process(bytes: u64) -> Option<Self> {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let (begin, length) = find(&maps, bytes)?;
        Some(Self {
            begin,
            words: length / 8,
        })
    }

    /// Returns the word that the kernel has at an address of its own; `None` if that is elsewhere.
    pub fn word(&self, address: u64) -> Option<u64> {
        let base = DIRECT.into_iter().rev().find(|base| {
            let end = base + self.words as u64 * 8;
            (*base..end).contains(&address)
        })?;
        let at = usize::try_from(address - base).ok()?;
        if at + 8 > self.words * 8 {
            return None;
        }
        let place = std::ptr::with_exposed_provenance::<u64>(self.begin + at);
        // SAFETY: it lies within the mapping, by the lines above.
        Some(unsafe { place.read_unaligned() })
    }

    /// Writes `to` wherever these two words stand. Returns the number of places.
    pub fn replace(&self, from: [u64; 2], to: [u64; 2]) -> usize {
        let mut found = 0;
        let at =
            |number: usize| std::ptr::with_exposed_provenance_mut::<u64>(self.begin + number * 8);
        for number in 0..self.words.saturating_sub(1) {
            // SAFETY: both words lie within the mapping.
            unsafe {
                if at(number).read_volatile() == from[0]
                    && at(number + 1).read_volatile() == from[1]
                {
                    at(number).write_volatile(to[0]);
                    at(number + 1).write_volatile(to[1]);
                    found += 1;
                }
            }
        }
        found
    }
}

/// Returns the address and the length of a guest's memory with this many bytes, by the text of
/// `/proc/self/maps`: the mapping of its file, or else the only one of that length.
fn find(maps: &str, bytes: u64) -> Option<(usize, usize)> {
    let length = usize::try_from(bytes).ok().filter(|_| bytes <= MOST)?;
    let mut pieces: Vec<(usize, usize, bool)> = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let range = words.next().and_then(|range| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16).ok();
        let Some((begin, end)) = range.and_then(|(from, to)| Some((number(from)?, number(to)?)))
        else {
            continue;
        };
        if !words.next().is_some_and(|rights| rights.starts_with("rw-")) {
            continue;
        }
        let is_file = words.nth(3).is_some_and(|path| path.ends_with(FILE));
        match pieces.last_mut() {
            // What QEMU says of a part of it has the kernel show it in pieces.
            Some(last) if last.1 == begin && last.2 && is_file => last.1 = end,
            _ => pieces.push((begin, end, is_file)),
        }
    }
    pieces.retain(|(begin, end, _)| end - begin == length);
    let of_file = pieces.iter().find(|(.., is_file)| *is_file);
    let begin = match (of_file, pieces.as_slice()) {
        (Some((begin, ..)), _) | (None, [(begin, ..)]) => *begin,
        _ => return None,
    };
    Some((begin, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_memory_is_that_of_its_file_or_the_only_one_of_its_length() {
        let file = "7f0000000000-7f0010000000 rw-p 00000000 fe:00 77 /tmp/work.1/memory\n";
        let other = "7e0000000000-7e0010000000 rw-p 00000000 00:00 0 \n";
        let code = "7d0000000000-7d0010000000 rwxp 00000000 00:00 0 \n";
        let length = 0x1000_0000;
        let found = |maps: &str| find(maps, length as u64);
        assert_eq!(
            found(&[other, file].concat()),
            Some((0x7f00_0000_0000, length))
        );
        assert_eq!(found(&[code, other].concat()), found(other));
        let further = other.replace("7e", "7c");
        assert_eq!(found(&[&*further, other].concat()), None);
        assert_eq!(found(other), Some((0x7e00_0000_0000, length)));
        assert_eq!(found(&other.replace("rw-p", "r--p")), None);
        assert_eq!(find(file, 4 << 30), None);
    }

    #[test]
    fn words_are_read_where_the_kernel_maps_all_memory_and_replaced_in_pairs() {
        let mut memory = vec![0_u64; 64];
        (memory[7], memory[8], memory[20], memory[30]) = (3, 500, 3, 500);
        let ram = Ram {
            begin: memory.as_mut_ptr().expose_provenance(),
            words: memory.len(),
        };
        assert_eq!(ram.word(DIRECT[0] + 56), Some(3));
        assert_eq!(ram.word(DIRECT[1] + 64), Some(500));
        assert_eq!(ram.word(DIRECT[0] + 508), None);
        assert_eq!(ram.word(0xffff_ffff_8100_0000), None);
        assert_eq!(ram.replace([3, 500], [2, 900]), 1);
        assert_eq!(ram.replace([3, 500], [2, 900]), 0);
        let memory = std::hint::black_box(memory);
        assert_eq!(
            (memory[7], memory[8], memory[20], memory[30]),
            (2, 900, 3, 500)
        );
    }
}

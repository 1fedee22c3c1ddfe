// SPDX-License-Identifier: MIT OR Apache-2.0
//! The submissions and completions of an `io_uring`.
//!
//! All entries of a submission are equal: each is entry 0 of the ring, since a ring's array of
//! indices begins with zeros, and nobody writes to it.

use std::sync::atomic::{AtomicU32, Ordering};

/// `struct io_uring_params`: the positions of parts of a ring's memory. They are the same for all
/// rings of a kernel.
static TOLD: [AtomicU32; 30] = [const { AtomicU32::new(0) }; 30];

/// Fields of it, by their positions.
const SQ_HEAD: usize = 10;
const SQ_TAIL: usize = 11;
const CQ_HEAD: usize = 20;
const CQ_TAIL: usize = 21;

/// `IORING_OFF_SQ_RING`: both rings, with their counters at the start.
const COUNTERS: i64 = 0;
/// `IORING_OFF_SQES`: the entries.
const ENTRIES: i64 = 0x1000_0000;
/// `IORING_ENTER_GETEVENTS`.
const GET_EVENTS: i64 = 1;

const PAGE: usize = 4096;
/// The size of an entry.
const ENTRY: usize = 64;

/// Returns the address where `io_uring_setup` puts it.
pub fn told() -> i64 {
    TOLD.as_ptr() as usize as i64
}

/// Memory of a ring, at least a page, mapped as briefly as possible: a mapped ring does not end
/// when it is closed.
struct Mapped(*mut libc::c_void, usize);

impl Mapped {
    /// Maps the page with its counters.
    fn counters(ring: i64) -> Option<Self> {
        Self::of(ring, COUNTERS, PAGE)
    }

    /// Maps all entries of a ring of this size: the kernel refuses to map a part of them.
    fn entries(ring: i64, room: i64) -> Option<Self> {
        let room = usize::try_from(room).ok()?.checked_next_power_of_two()?;
        Self::of(ring, ENTRIES, room.checked_mul(ENTRY)?.max(PAGE))
    }

    fn of(ring: i64, offset: i64, length: usize) -> Option<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: maps memory where there is none.
        let place = unsafe {
            let (nowhere, ring) = (std::ptr::null_mut(), ring as libc::c_int);
            libc::mmap(
                nowhere,
                length,
                access,
                libc::MAP_SHARED,
                ring,
                offset as libc::off_t,
            )
        };
        (place != libc::MAP_FAILED).then_some(Self(place, length))
    }

    /// Returns the counter at the position in this field. `None` if no ring was set up yet.
    fn counter(&self, field: usize) -> Option<&AtomicU32> {
        let offset = TOLD[field].load(Ordering::Relaxed) as usize;
        let is_told = TOLD[SQ_TAIL].load(Ordering::Relaxed) != 0;
        if !is_told || offset % 4 != 0 || offset >= PAGE {
            return None;
        }
        // SAFETY: it is in the first page, which lives as long as `self`; the kernel, too, reads and writes
        // it as a whole.
        Some(unsafe { AtomicU32::from_ptr(self.0.byte_add(offset).cast()) })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: nothing refers to it any more.
        unsafe { libc::munmap(self.0, self.1) };
    }
}

/// Submits entries. The arguments are a ring, its entries, the number of repetitions, and the
/// entry: the operation with its flags, a descriptor, offset, address, length, the operation's
/// flags, user data, buffer, third address; the last ones may be omitted. Returns the number of
/// submissions, or a number below 0 if the kernel has not taken all of them.
pub fn submit(arguments: &[i64]) -> i64 {
    let [ring, room, count, fields @ ..] = arguments else {
        return -1;
    };
    let (Some(counters), Some(entries)) = (Mapped::counters(*ring), Mapped::entries(*ring, *room))
    else {
        return -1;
    };
    let (Some(head), Some(tail)) = (counters.counter(SQ_HEAD), counters.counter(SQ_TAIL)) else {
        return -1;
    };
    // SAFETY: it is the begin of the entries; the kernel reads it within the calls below only.
    unsafe { entries.0.cast::<[u64; 8]>().write_volatile(entry(fields)) };
    let mut left = *count;
    while left > 0 {
        let some = left.min(*room).max(1);
        tail.fetch_add(some as u32, Ordering::Release);
        if enter(*ring, some, 0) != some {
            // The others are none of the next submission.
            tail.store(head.load(Ordering::Acquire), Ordering::Release);
            return -1;
        }
        left -= some;
    }
    *count
}

/// Builds an entry in the kernel's form.
fn entry(fields: &[i64]) -> [u64; 8] {
    let field = |number: usize| fields.get(number).copied().unwrap_or(0) as u64;
    let both = |low: usize, high: usize| field(low) & 0xffff_ffff | field(high) << 32;
    [
        both(0, 1),
        field(2),
        field(3),
        both(4, 5),
        field(6),
        field(7),
        field(8),
        0,
    ]
}

/// Takes all completions of a ring, and lets the kernel add those for which there was no room.
pub fn complete(arguments: &[i64]) -> i64 {
    let [ring] = arguments else {
        return -1;
    };
    let Some(counters) = Mapped::counters(*ring) else {
        return -1;
    };
    let (Some(head), Some(tail)) = (counters.counter(CQ_HEAD), counters.counter(CQ_TAIL)) else {
        return -1;
    };
    head.store(tail.load(Ordering::Acquire), Ordering::Release);
    enter(*ring, 0, GET_EVENTS)
}

fn enter(ring: i64, count: i64, flags: i64) -> i64 {
    super::call(libc::SYS_io_uring_enter, &[ring, count, 0, flags, 0, 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_as_the_kernel_has_it() {
        // A read from descriptor -1, by a worker.
        let read = entry(&[0x1016, -1, 2, 3, 4, 5, 6, 7, 8]);
        let first = 0xffff_ffff_0000_1016;
        assert_eq!(read, [first, 2, 3, 0x5_0000_0004, 6, 7, 8, 0]);
        assert_eq!(entry(&[0]), [0; 8]);
    }

    /// Returns a counter of a ring.
    fn counted(ring: i64, field: usize) -> u32 {
        let counters = Mapped::counters(ring).expect("the ring's memory");
        let counter = counters.counter(field).expect("it was told of");
        counter.load(Ordering::Acquire)
    }

    #[test]
    fn what_is_submitted_is_done_or_waits_until_it_is_cancelled() {
        let ring = super::super::call(libc::SYS_io_uring_setup, &[4, told()]);
        if ring < 0 {
            // Where the kernel has no io_uring, submissions are refused.
            assert_eq!(submit(&[ring, 4, 1, 0]), -1);
            assert_eq!(complete(&[ring]), -1);
            return;
        }
        let completed = |ring| counted(ring, CQ_TAIL);
        // More than there is room for at once.
        assert_eq!(submit(&[ring, 4, 7, 0]), 7);
        assert_eq!(completed(ring), 7);
        // One more has room, then none: the kernel keeps the others.
        assert_eq!(submit(&[ring, 4, 3, 0]), 3);
        assert_eq!(completed(ring), 8);
        assert!(complete(&[ring]) >= 0);
        assert_eq!(completed(ring), 10);
        assert!(complete(&[ring]) >= 0);
        // Timeouts an hour from now, and a cancellation of all there is.
        let hour = [3600_u64, 0];
        let hour = hour.as_ptr() as usize as i64;
        assert_eq!(submit(&[ring, 4, 2, 11, -1, 0, hour, 1]), 2);
        assert_eq!(completed(ring), 10);
        assert_eq!(submit(&[ring, 4, 1, 14, -1, 0, 0, 0, 5]), 1);
        assert_eq!(completed(ring), 13);
        // The kernel stops at what it does not know, and nothing is left for the next submission.
        assert_eq!(submit(&[ring, 4, 3, 255]), -1);
        assert_eq!(completed(ring), 14);
        assert_eq!(counted(ring, SQ_TAIL), counted(ring, SQ_HEAD));
        // A ring of many pages, whose size is the next power of two.
        let large = super::super::call(libc::SYS_io_uring_setup, &[1500, told()]);
        assert_eq!(submit(&[large, 1500, 4096, 0]), 4096);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The four rings of a socket, and memory that is shared with the kernel.

use std::io;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::c_int;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::{INCOMING, OUTGOING, at, mmap_offsets, set};

/// Memory that is unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) start: *mut u8,
    pub(super) length: usize,
}

// SAFETY: the memory belongs to the process, not to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    /// Maps new memory, all of whose pages are there.
    pub(super) fn anonymous(length: usize) -> io::Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { mmap_anonymous(null_mut(), length, Self::ACCESS, flags)? }.cast();
        Ok(Self { start, length })
    }

    /// Maps the memory that a socket has at this offset.
    fn of(socket: &OwnedFd, offset: u64, length: usize) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as for `anonymous`.
        let start = unsafe { mmap(null_mut(), length, Self::ACCESS, flags, socket, offset)? };
        let start = start.cast();
        Ok(Self { start, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one, and no reference into it outlives `self`. It can only
        // fail for a range that was never mapped.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}

/// The four rings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Fill,
    Completion,
    Received,
    Outgoing,
}

impl Kind {
    /// Returns the number and the name of the option that makes the ring, how many entries it has,
    /// and at which offset the socket has it.
    ///
    /// The `libc` crate has these offsets as numbers of 32 bits with a sign on some machines.
    fn facts(self) -> (c_int, &'static str, u32, u64) {
        match self {
            Self::Fill => {
                let name = "XDP_UMEM_FILL_RING";
                (libc::XDP_UMEM_FILL_RING, name, INCOMING, 0x1_0000_0000)
            }
            Self::Completion => {
                let (option, name) = (libc::XDP_UMEM_COMPLETION_RING, "XDP_UMEM_COMPLETION_RING");
                (option, name, OUTGOING, 0x1_8000_0000)
            }
            Self::Received => (libc::XDP_RX_RING, "XDP_RX_RING", INCOMING, 0),
            Self::Outgoing => (libc::XDP_TX_RING, "XDP_TX_RING", OUTGOING, 0x8000_0000),
        }
    }

    fn offsets(self, all: &libc::xdp_mmap_offsets) -> &libc::xdp_ring_offset {
        match self {
            Self::Fill => &all.fr,
            Self::Completion => &all.cr,
            Self::Received => &all.rx,
            Self::Outgoing => &all.tx,
        }
    }
}

/// A ring of entries that a socket shares with the kernel: one of both puts entries in, the other
/// takes them out.
///
/// Each side owns an index that only grows. An index is stored with `Release` when the entry is
/// written or read, and the other side loads it with `Acquire`.
#[derive(Debug)]
pub(super) struct Ring<T> {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
    count: u32,
    kind: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// Makes a ring of a socket, and maps it.
    pub(super) fn new(socket: &OwnedFd, kind: Kind) -> io::Result<Self> {
        let (option, name, count, offset) = kind.facts();
        set(socket, option, name, &count)?;
        let all = mmap_offsets(socket)?;
        let offsets = kind.offsets(&all);
        let (producer, consumer) = (offsets.producer as usize, offsets.consumer as usize);
        let entries = offsets.desc as usize;
        let length = entries + count as usize * mem::size_of::<T>();
        let memory = at(name, Mapping::of(socket, offset, length))?;
        Ok(Self {
            memory,
            producer,
            consumer,
            entries,
            count,
            kind: PhantomData,
        })
    }

    /// Puts an entry in. There is room for it: a ring has as many entries as there are chunks that
    /// can be in it.
    pub(super) fn put(&self, entry: T) {
        let producer = self.index(self.producer);
        let next = producer.load(Ordering::Relaxed);
        // SAFETY: the process owns this entry until the index is stored.
        unsafe { self.entry(next).write(entry) };
        producer.store(next.wrapping_add(1), Ordering::Release);
    }

    /// Takes an entry out, if there is one.
    pub(super) fn take(&self) -> Option<T> {
        let consumer = self.index(self.consumer);
        let next = consumer.load(Ordering::Relaxed);
        if next == self.index(self.producer).load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the process owns this entry until the index is stored; the kernel has written it.
        let entry = unsafe { self.entry(next).read() };
        consumer.store(next.wrapping_add(1), Ordering::Release);
        Some(entry)
    }

    fn index(&self, place: usize) -> &AtomicU32 {
        // SAFETY: the kernel has an aligned index at this place of the ring, which is mapped as
        // long as `self` lives. Both sides access it atomically.
        unsafe { AtomicU32::from_ptr(self.memory.start.add(place).cast()) }
    }

    /// Returns where an entry is. Their number is a power of two.
    fn entry(&self, index: u32) -> *mut T {
        let place = (index & (self.count - 1)) as usize;
        // SAFETY: the mapping ends after `count` aligned entries from here on.
        unsafe {
            let first = self.memory.start.add(self.entries).cast::<T>();
            first.add(place)
        }
    }
}

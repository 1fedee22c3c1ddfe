// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sockets for whole frames that bypass the kernel's network stack (`AF_XDP`).
//!
//! A BPF program sees each frame that an interface receives before the network stack does. It
//! redirects the frames of one type to the socket, and leaves all others to the kernel.
//!
//! The frames lie in chunks of memory that the process shares with the kernel. Four rings pass the
//! chunks to and fro:
//!
//! | ring | who fills it | entry |
//! |---|---|---|
//! | fill | the process | a chunk for a frame that is to come |
//! | received | the kernel | a frame that has come |
//! | outgoing | the process | a frame that is to be sent |
//! | completion | the kernel | a chunk whose frame is sent |
//!
//! The kernel's `Documentation/networking/af_xdp.rst` describes this interface, and its
//! `uapi/linux/bpf.h`, `if_link.h` and `if_xdp.h` have the numbers.

use std::io;
use std::marker::PhantomData;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use libc::{c_int, xdp_desc};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::net;

/// The size of a chunk in bytes. The kernel leaves 256 bytes of it free before a received frame,
/// and some cards fill whole kibibytes of the rest only (igb, igc): in chunks of 2,048 bytes they
/// cut frames of more than 1,024.
const CHUNK: usize = 4_096;
/// The number of chunks for received frames, which drivers that use them without a copy need for
/// their own queues.
const INCOMING: u32 = 1_024;
/// The number of chunks for frames to send, which come after the others: one for each bit of
/// `XdpSocket::free`.
const OUTGOING: u32 = u64::BITS;
/// The size of the memory that all chunks make up, in bytes.
const SIZE: usize = (INCOMING + OUTGOING) as usize * CHUNK;

/// The length of an Ethernet header in bytes, and the place of the type in it.
const HEADER: usize = 14;
const TYPE_AT: i16 = 12;

/// The queue of the interface.
const QUEUE: u32 = 0;

/// The number of attempts to have the kernel send a frame.
const ATTEMPTS: u32 = 16;
/// The number of requests for a queue that another socket has, and the pause between two of them:
/// the kernel frees the queue of a closed socket a little later.
const REQUESTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// A socket for whole frames that bypasses the kernel's network stack (`AF_XDP`).
///
/// It belongs to one thread at a time, and can be moved into another. Neither sending nor receiving
/// allocates. Once it is dropped, the kernel gets all frames again; frames that the card has not
/// sent yet may be lost.
#[derive(Debug)]
pub struct XdpSocket {
    // These are dropped in this order: no frame comes any more, then nobody uses the memory.
    _link: OwnedFd,
    /// It has a timeout and options as any socket; frames go by the rings.
    socket: UdpSocket,
    fill: Ring<u64>,
    completion: Ring<u64>,
    received: Ring<xdp_desc>,
    outgoing: Ring<xdp_desc>,
    chunks: Mapping,
    /// The chunks for frames to send that are free, a bit for each.
    free: AtomicU64,
    /// How long `recv` waits, in nanoseconds.
    timeout: AtomicU64,
    mode: Mode,
}

impl XdpSocket {
    /// Opens a socket on queue 0 of an interface of the calling thread's network namespace. Frames
    /// of type `ethertype` come to it; all others go on to the kernel.
    ///
    /// An error names the step that failed. It is `EPERM` itself if the process lacks
    /// `CAP_NET_RAW`, `CAP_NET_ADMIN` or `CAP_BPF` (or, before Linux 5.11, if its `RLIMIT_MEMLOCK`
    /// is too low), and `ErrorKind::Unsupported` if the kernel has no such sockets.
    ///
    /// Some drivers switch the link off and on again for this, which takes a second or two.
    pub fn open(interface: &str, ethertype: u16) -> io::Result<Self> {
        let index = at(interface, net::index(interface))?;
        let socket = socket()?;
        let chunks = at("mmap", Mapping::anonymous(SIZE))?;
        register(&socket, &chunks)?;
        let fill: Ring<u64> = Ring::new(&socket, Kind::Fill)?;
        let completion = Ring::new(&socket, Kind::Completion)?;
        let received = Ring::new(&socket, Kind::Received)?;
        let outgoing = Ring::new(&socket, Kind::Outgoing)?;
        for number in 0..INCOMING {
            fill.put(address_of(number));
        }
        let sockets = create_map()?;
        let program = load(&program(sockets.as_raw_fd(), ethertype))?;
        let (link, mode) = attach(&program, index)?;
        bind(&socket, index, mode)?;
        enter(&sockets, &socket)?;
        Ok(Self {
            _link: link,
            socket: socket.into(),
            fill,
            completion,
            received,
            outgoing,
            chunks,
            free: AtomicU64::new(u64::MAX),
            timeout: AtomicU64::new(u64::MAX),
            mode,
        })
    }

    /// Returns the socket itself, to set its options.
    pub fn descriptor(&self) -> &UdpSocket {
        &self.socket
    }

    /// Sets how long [`recv`](Self::recv) waits for a frame; without it, there is no limit.
    pub fn set_read_timeout(&self, timeout: Duration) {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        self.timeout.store(timeout, Ordering::Relaxed);
    }

    /// Returns how the interface runs the program: `native`, in its driver, or `generic`, behind it,
    /// if the driver cannot.
    pub fn mode(&self) -> &'static str {
        match self.mode {
            Mode::Native => "native",
            Mode::Generic => "generic",
        }
    }

    /// Sends a frame of 14 to 4,096 bytes, and returns its length.
    ///
    /// The card may send it after this call. After an error of the kernel, it may still go out with
    /// the next frame.
    pub fn send(&self, frame: &[u8]) -> io::Result<usize> {
        if !(HEADER..=CHUNK).contains(&frame.len()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let address = self.take_free()?;
        // SAFETY: the frame is no longer than a chunk. This one is in no ring: the kernel does not
        // use it, and neither does another thread, as this type is not `Sync`.
        unsafe {
            let to = self.chunks.start.add(address);
            to.copy_from_nonoverlapping(frame.as_ptr(), frame.len());
        }
        self.outgoing.put(xdp_desc {
            addr: address as u64,
            len: frame.len() as u32,
            options: 0,
        });
        self.wake()?;
        Ok(frame.len())
    }

    /// Receives a frame, and returns its length; if it is longer than `room`, its end is lost.
    ///
    /// The error is `ErrorKind::WouldBlock` if none comes in time, and `ErrorKind::Interrupted` if a
    /// signal comes first.
    pub fn recv(&self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = self.received.take() {
                return self.copy_out(frame, room);
            }
            let timeout = Duration::from_nanos(self.timeout.load(Ordering::Relaxed));
            let timeout = Timespec {
                tv_sec: timeout.as_secs() as _,
                tv_nsec: timeout.subsec_nanos().into(),
            };
            let mut wanted = [PollFd::new(&self.socket, PollFlags::IN)];
            // This also wakes a driver that has run out of chunks and waits for the fill ring.
            if poll(&mut wanted, Some(&timeout))? == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            // `IN` means that the ring has an entry. Anything else is an error: the interface is gone.
            if !wanted[0].revents().contains(PollFlags::IN) {
                return Err(io::ErrorKind::NotConnected.into());
            }
        }
    }

    /// Copies a received frame, and gives its chunk back.
    fn copy_out(&self, frame: xdp_desc, room: &mut [u8]) -> io::Result<usize> {
        let (begin, length) = (frame.addr as usize, frame.len as usize);
        if begin >= INCOMING as usize * CHUNK || length > CHUNK - begin % CHUNK {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let length = length.min(room.len());
        // SAFETY: these bytes are in one chunk, which the kernel does not use until it is in the
        // fill ring again.
        unsafe {
            let from = self.chunks.start.add(begin);
            from.copy_to_nonoverlapping(room.as_mut_ptr(), length);
        }
        self.fill.put((begin - begin % CHUNK) as u64);
        Ok(length)
    }

    /// Takes the free chunk with the lowest number, which is most likely in a cache.
    fn take_free(&self) -> io::Result<usize> {
        let mut free = self.reclaim();
        if free == 0 {
            // They may wait for a call that has failed.
            self.wake()?;
            free = self.reclaim();
        }
        if free == 0 {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        self.free.store(free & (free - 1), Ordering::Relaxed);
        Ok(address_of(INCOMING + free.trailing_zeros()) as usize)
    }

    /// Adds the chunks whose frames are sent to the free ones, and returns these.
    fn reclaim(&self) -> u64 {
        let mut free = self.free.load(Ordering::Relaxed);
        while let Some(address) = self.completion.take() {
            let number = (address / CHUNK as u64).wrapping_sub(INCOMING.into());
            // Any other number would be none of these chunks.
            if number < OUTGOING.into() {
                free |= 1 << number;
            }
        }
        self.free.store(free, Ordering::Relaxed);
        free
    }

    /// Has the kernel send what is in the ring.
    fn wake(&self) -> io::Result<()> {
        let (number, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
        let mut attempt = 1;
        loop {
            // SAFETY: the call has neither a buffer nor an address.
            let sent = unsafe { libc::sendto(number, null_mut(), 0, flags, null_mut(), 0) };
            if sent >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            let passes = [libc::EAGAIN, libc::EBUSY, libc::ENOBUFS];
            if attempt == ATTEMPTS || !error.raw_os_error().is_some_and(|it| passes.contains(&it)) {
                return Err(error);
            }
            attempt += 1;
        }
    }
}

/// How the interface runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Native,
    Generic,
}

/// Returns where a chunk begins in their memory, as the rings have it.
fn address_of(chunk: u32) -> u64 {
    u64::from(chunk) * CHUNK as u64
}

/// Names the step that an error comes from. `EPERM` stays the kernel's own error.
fn at<T>(step: &str, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| {
        let kind = match error.raw_os_error() {
            Some(libc::EPERM) => return error,
            Some(libc::EAFNOSUPPORT) => io::ErrorKind::Unsupported,
            _ => error.kind(),
        };
        io::Error::new(kind, format!("{step}: {error}"))
    })
}

/// Memory that is unmapped when dropped.
#[derive(Debug)]
struct Mapping {
    start: *mut u8,
    length: usize,
}

// SAFETY: the memory belongs to the process, not to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    /// Maps new memory, all of whose pages are there.
    fn anonymous(length: usize) -> io::Result<Self> {
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
enum Kind {
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
struct Ring<T> {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    entries: usize,
    count: u32,
    kind: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// Makes a ring of a socket, and maps it.
    fn new(socket: &OwnedFd, kind: Kind) -> io::Result<Self> {
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
    fn put(&self, entry: T) {
        let producer = self.index(self.producer);
        let next = producer.load(Ordering::Relaxed);
        // SAFETY: the process owns this entry until the index is stored.
        unsafe { self.entry(next).write(entry) };
        producer.store(next.wrapping_add(1), Ordering::Release);
    }

    /// Takes an entry out, if there is one.
    fn take(&self) -> Option<T> {
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

fn socket() -> io::Result<OwnedFd> {
    // SAFETY: the call takes plain numbers, and what it returns belongs to nobody else.
    unsafe {
        let number = libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        let step = "socket(AF_XDP), which needs a kernel with XDP_SOCKETS";
        Ok(OwnedFd::from_raw_fd(at(step, super::check(number))?))
    }
}

/// Sets an option of a socket to this value, of the type that the option has.
fn set<T: Copy>(socket: &OwnedFd, option: c_int, name: &str, value: &T) -> io::Result<()> {
    let (number, size) = (socket.as_raw_fd(), mem::size_of::<T>() as libc::socklen_t);
    let value = (&raw const *value).cast();
    // SAFETY: the kernel reads a value of this size, which lives here.
    let result = unsafe { libc::setsockopt(number, libc::SOL_XDP, option, value, size) };
    at(name, super::check(result)).map(drop)
}

/// Makes memory the chunks of a socket.
fn register(socket: &OwnedFd, chunks: &Mapping) -> io::Result<()> {
    let memory = libc::xdp_umem_reg {
        addr: chunks.start as u64,
        len: chunks.length as u64,
        chunk_size: CHUNK as u32,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(socket, libc::XDP_UMEM_REG, "XDP_UMEM_REG", &memory)
}

/// Returns where indexes and entries are in the rings of a socket.
fn mmap_offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all zeros is a valid xdp_mmap_offsets.
    let mut all: libc::xdp_mmap_offsets = unsafe { mem::zeroed() };
    let expected = mem::size_of_val(&all) as libc::socklen_t;
    let (number, mut size) = (socket.as_raw_fd(), expected);
    let (option, value) = (libc::XDP_MMAP_OFFSETS, (&raw mut all).cast());
    // SAFETY: the kernel writes at most this size, which lives here.
    let result = unsafe { libc::getsockopt(number, libc::SOL_XDP, option, value, &raw mut size) };
    at("XDP_MMAP_OFFSETS", super::check(result))?;
    if size != expected {
        let text = format!("XDP_MMAP_OFFSETS: expected {expected} bytes, found {size}");
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    Ok(all)
}

/// Binds a socket to the queue of an interface.
///
/// The driver may use the chunks itself if it also runs the program; else, or if it cannot, the
/// kernel copies each frame.
fn bind(socket: &OwnedFd, index: i32, mode: Mode) -> io::Result<()> {
    let choices = match mode {
        Mode::Native => &[0, libc::XDP_COPY][..],
        Mode::Generic => &[libc::XDP_COPY],
    };
    let mut result = Ok(());
    for choice in choices {
        result = bind_so(socket, index, choice | libc::XDP_USE_NEED_WAKEUP);
        if result.is_ok() {
            break;
        }
    }
    at("bind(AF_XDP)", result)
}

/// Binds a socket in this way, as soon as no other has the queue any more.
fn bind_so(socket: &OwnedFd, index: i32, flags: u16) -> io::Result<()> {
    let own = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as _,
        sxdp_flags: flags,
        sxdp_ifindex: index as u32,
        sxdp_queue_id: QUEUE,
        sxdp_shared_umem_fd: 0,
    };
    let (number, size) = (
        socket.as_raw_fd(),
        mem::size_of_val(&own) as libc::socklen_t,
    );
    let mut request = 1;
    loop {
        // SAFETY: the kernel reads a sockaddr_xdp of this size, which lives here.
        let result = super::check(unsafe { libc::bind(number, (&raw const own).cast(), size) });
        match result {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && request < REQUESTS => {
                request += 1;
                thread::sleep(PAUSE);
            }
            result => return result.map(drop),
        }
    }
}

/// An instruction of BPF (the kernel's `struct bpf_insn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Instruction {
    code: u8,
    /// The destination in the lower four bits, the source in the upper ones.
    registers: u8,
    offset: i16,
    immediate: i32,
}

// The registers: result, first arguments, which a call overwrites; a program begins with its
// context in the first argument.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;

/// The program's verdict that leaves a frame to the kernel.
const XDP_PASS: i32 = 2;
/// The kernel's function `bpf_redirect_map`: map, key, verdict if the map has no such key.
const REDIRECT_MAP: i32 = 51;
// The places in the program's context (`struct xdp_md`).
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE_INDEX: i16 = 16;

const fn instruction(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    let registers = from << 4 | to;
    Instruction {
        code,
        registers,
        offset,
        immediate,
    }
}

/// Loads 32 bits from this place behind an address.
const fn load_word(to: u8, from: u8, place: i16) -> Instruction {
    instruction(0x61, to, from, place, 0)
}

/// Loads 16 bits from this place behind an address.
const fn load_half(to: u8, from: u8, place: i16) -> Instruction {
    instruction(0x69, to, from, place, 0)
}

const fn copy(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}

const fn assign(to: u8, number: i32) -> Instruction {
    instruction(0xb7, to, 0, 0, number)
}

const fn add(to: u8, number: i32) -> Instruction {
    instruction(0x07, to, 0, 0, number)
}

/// Skips so many instructions if one register is greater than another.
const fn skip_if_greater(one: u8, other: u8, count: i16) -> Instruction {
    instruction(0x2d, one, other, count, 0)
}

/// Skips so many instructions if a register is not this number.
const fn skip_unless(register: u8, number: i32, count: i16) -> Instruction {
    instruction(0x55, register, 0, count, number)
}

/// Loads the address of the map behind a descriptor: the first half of it, and the second.
const fn load_map(to: u8, map: RawFd) -> [Instruction; 2] {
    const FROM_DESCRIPTOR: u8 = 1;
    [
        instruction(0x18, to, FROM_DESCRIPTOR, 0, map),
        instruction(0, 0, 0, 0, 0),
    ]
}

const fn call(function: i32) -> Instruction {
    instruction(0x85, 0, 0, 0, function)
}

const fn exit() -> Instruction {
    instruction(0x95, 0, 0, 0, 0)
}

/// Returns the program that redirects each frame of a type to the socket that the map has for its
/// queue, and leaves all others to the kernel.
fn program(map: RawFd, ethertype: u16) -> [Instruction; 15] {
    let ethertype = i32::from(ethertype.to_be());
    let [map, rest_of_map] = load_map(R1, map);
    [
        load_word(R2, R1, DATA_END),
        load_word(R3, R1, DATA),
        copy(R4, R3),
        add(R4, HEADER as i32),
        skip_if_greater(R4, R2, 8),
        load_half(R4, R3, TYPE_AT),
        skip_unless(R4, ethertype, 6),
        load_word(R2, R1, RX_QUEUE_INDEX),
        map,
        rest_of_map,
        assign(R3, XDP_PASS),
        call(REDIRECT_MAP),
        exit(),
        assign(R0, XDP_PASS),
        exit(),
    ]
}

/// Calls bpf(2), and returns its result.
///
/// # Safety
/// The attributes must begin as the kernel's `union bpf_attr` does for this command, and the
/// addresses in it must be those of live memory of the size that the command expects.
unsafe fn bpf<T>(command: c_int, attributes: &T) -> io::Result<c_int> {
    let (size, attributes) = (mem::size_of::<T>(), &raw const *attributes);
    // SAFETY: these attributes live, and the caller vouches for the rest.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size) };
    super::check(result as c_int)
}

/// Creates the map from queues to sockets.
fn create_map() -> io::Result<OwnedFd> {
    const BPF_MAP_CREATE: c_int = 0;
    const BPF_MAP_TYPE_XSKMAP: u32 = 17;
    #[repr(C)]
    struct Attributes {
        map_type: u32,
        key_size: u32,
        value_size: u32,
        max_entries: u32,
    }
    let attributes = Attributes {
        map_type: BPF_MAP_TYPE_XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: 64,
    };
    // SAFETY: these attributes have no address, and what the call returns belongs to nobody else.
    unsafe {
        let map = bpf(BPF_MAP_CREATE, &attributes);
        Ok(OwnedFd::from_raw_fd(at("BPF_MAP_CREATE", map)?))
    }
}

/// Makes a socket the one that the map has for its queue.
fn enter(map: &OwnedFd, socket: &OwnedFd) -> io::Result<()> {
    const BPF_MAP_UPDATE_ELEM: c_int = 2;
    #[repr(C)]
    struct Attributes {
        map_fd: u32,
        padding: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let (key, value) = (QUEUE, socket.as_raw_fd() as u32);
    let attributes = Attributes {
        map_fd: map.as_raw_fd() as u32,
        padding: 0,
        key: &raw const key as u64,
        value: &raw const value as u64,
        flags: 0,
    };
    // SAFETY: key and value live, and have the sizes that `create_map` gives.
    let result = unsafe { bpf(BPF_MAP_UPDATE_ELEM, &attributes) };
    at("BPF_MAP_UPDATE_ELEM", result).map(drop)
}

/// Loads a program, which the kernel checks.
fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    const BPF_PROG_LOAD: c_int = 5;
    const BPF_PROG_TYPE_XDP: u32 = 6;
    #[repr(C)]
    struct Attributes {
        prog_type: u32,
        insn_cnt: u32,
        insns: u64,
        license: u64,
    }
    let attributes = Attributes {
        prog_type: BPF_PROG_TYPE_XDP,
        insn_cnt: program.len() as u32,
        insns: program.as_ptr() as u64,
        // None of the kernel's functions that it calls is for GPL programs only.
        license: c"MIT".as_ptr() as u64,
    };
    // SAFETY: instructions and licence live; a zero ends the licence. What the call returns belongs
    // to nobody else.
    unsafe {
        let program = bpf(BPF_PROG_LOAD, &attributes);
        Ok(OwnedFd::from_raw_fd(at("BPF_PROG_LOAD", program)?))
    }
}

/// Attaches a program to an interface as long as the descriptor that it returns is open: natively
/// if the driver can.
fn attach(program: &OwnedFd, index: i32) -> io::Result<(OwnedFd, Mode)> {
    let native = match attach_so(program, index, Mode::Native) {
        Ok(link) => return Ok((link, Mode::Native)),
        Err(error) => error,
    };
    // Drivers have many errors for what they cannot do. Any other obstacle is also one here.
    match attach_so(program, index, Mode::Generic) {
        Ok(link) => Ok((link, Mode::Generic)),
        Err(error) => at(
            &format!("BPF_LINK_CREATE: native: {native}; generic"),
            Err(error),
        ),
    }
}

/// Attaches a program in this mode.
fn attach_so(program: &OwnedFd, index: i32, mode: Mode) -> io::Result<OwnedFd> {
    const BPF_LINK_CREATE: c_int = 28;
    const BPF_XDP: u32 = 37;
    const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
    const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
    #[repr(C)]
    struct Attributes {
        prog_fd: u32,
        target_ifindex: u32,
        attach_type: u32,
        flags: u32,
    }
    let attributes = Attributes {
        prog_fd: program.as_raw_fd() as u32,
        target_ifindex: index as u32,
        attach_type: BPF_XDP,
        flags: match mode {
            Mode::Native => XDP_FLAGS_DRV_MODE,
            Mode::Generic => XDP_FLAGS_SKB_MODE,
        },
    };
    // SAFETY: these attributes have no address, and what the call returns belongs to nobody else.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(BPF_LINK_CREATE, &attributes)?)) }
}

#[cfg(test)]
mod tests {
    use crate::sys::counting_allocator::allocations;

    use super::*;

    /// Two types that IEEE 802 reserves for experiments.
    const OURS: u16 = 0x88b5;
    const FOREIGN: u16 = 0x88b6;

    /// Returns a frame with this number in it.
    fn frame(ethertype: u16, number: u64) -> [u8; 60] {
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        frame[14..22].copy_from_slice(&number.to_ne_bytes());
        frame
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_program_compares_the_type_in_network_order_and_jumps_to_its_last_verdict() {
        let program = program(7, 0x88b5);
        let bytes = |place: usize| {
            let Instruction {
                code, registers, ..
            } = program[place];
            let [low, high] = program[place].offset.to_le_bytes();
            let [a, b, c, d] = program[place].immediate.to_le_bytes();
            [code, registers, low, high, a, b, c, d]
        };
        // `strace -v` reads them so.
        assert_eq!(bytes(0), [0x61, 0x12, 4, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(4), [0x2d, 0x24, 8, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(5), [0x69, 0x34, 12, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(6), [0x55, 0x04, 6, 0, 0x88, 0xb5, 0, 0]);
        assert_eq!(bytes(8), [0x18, 0x11, 0, 0, 7, 0, 0, 0]);
        assert_eq!(bytes(9), [0; 8]);
        assert_eq!(bytes(11), [0x85, 0, 0, 0, 51, 0, 0, 0]);
        assert_eq!(mem::size_of_val(&program), 15 * 8);
        for jump in [4, 6] {
            let to = jump + 1 + program[jump].offset as usize;
            assert_eq!(program[to..], [assign(R0, XDP_PASS), exit()]);
        }
    }

    #[test]
    fn the_steps_of_errors_are_named_and_a_lack_of_rights_stays_recognisable() {
        let error = |number| at::<()>("bind", Err(io::Error::from_raw_os_error(number)));
        let refused = error(libc::EPERM).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        let busy = error(libc::EBUSY).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy);
        assert!(busy.to_string().starts_with("bind: "), "{busy}");
        let unknown = error(libc::EAFNOSUPPORT).unwrap_err();
        assert_eq!(unknown.kind(), io::ErrorKind::Unsupported);
    }

    /// Moves the calling thread into a new network namespace, and sends and receives on the loopback
    /// interface there. Returns an error if the thread may not, or if no socket can be opened.
    fn talk_to_myself() -> io::Result<()> {
        // SAFETY: no memory and no descriptor is unshared.
        super::super::check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
        net::switch_on_loopback().unwrap();
        let socket = XdpSocket::open("lo", OURS)?;
        assert_eq!(socket.mode(), "generic");
        let ordinary = net::frames("lo", FOREIGN).unwrap();
        let patience = Duration::from_secs(60);
        socket.set_read_timeout(patience);
        ordinary.set_read_timeout(Some(patience)).unwrap();
        let (mut room, before) = ([0; CHUNK], allocations());

        // Five times as many frames as chunks.
        for number in 0..5 * u64::from(INCOMING) {
            let sent = frame(OURS, number);
            assert_eq!(socket.send(&sent).unwrap(), sent.len());
            assert_eq!(socket.recv(&mut room).unwrap(), sent.len());
            assert_eq!(room[..sent.len()], sent);
        }
        // More frames than there are chunks to send, all of which wait for their receiver.
        for number in 0..100 {
            socket.send(&frame(OURS, number)).unwrap();
        }
        for number in 0..100 {
            assert_eq!(socket.recv(&mut room[..30]).unwrap(), 30);
            assert_eq!(room[..30], frame(OURS, number)[..30]);
        }
        for unfit in [13, CHUNK + 1] {
            let error = socket.send(&vec![0; unfit]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }

        // Frames of other types go on to the kernel.
        socket.set_read_timeout(Duration::from_millis(1));
        socket.send(&frame(FOREIGN, 0)).unwrap();
        let none = socket.recv(&mut room).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(allocations(), before + 2, "only the unfit frames");
        assert_eq!(ordinary.recv(&mut room).unwrap(), 60);
        assert_eq!(room[..60], frame(FOREIGN, 0));

        // A dropped socket leaves its queue to the next one, which another thread uses.
        drop(socket);
        let socket = XdpSocket::open("lo", FOREIGN)?;
        socket.set_read_timeout(patience);
        thread::spawn(move || {
            socket.send(&frame(FOREIGN, 1)).unwrap();
            assert_eq!(socket.recv(&mut room).unwrap(), 60);
        })
        .join()
        .unwrap();
        Ok(())
    }

    #[test]
    fn frames_of_one_type_come_back_over_loopback_and_others_reach_the_kernel() {
        match thread::spawn(talk_to_myself).join().unwrap() {
            Ok(()) => {}
            Err(error)
                if error.raw_os_error() == Some(libc::EPERM)
                    || error.kind() == io::ErrorKind::Unsupported =>
            {
                punctual_skip::skip(&format!("AF_XDP: {error}"));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

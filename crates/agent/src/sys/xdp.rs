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

mod program;
mod ring;

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use libc::{c_int, xdp_desc};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::net;
use program::{attach, create_map, enter, load, program};
use ring::{Kind, Mapping, Ring};

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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time stamps that a network card takes of frames by its own clock, as Linux's
//! `Documentation/networking/timestamping.rst` describes them.

use std::io;
use std::mem;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;

use punctual_model::Nanos;

use super::net::{ask, request};

const SIOCSHWTSTAMP: libc::Ioctl = 0x89b0;
const SIOCGHWTSTAMP: libc::Ioctl = 0x89b1;
/// `HWTSTAMP_TX_ON`.
const SENDS_ON: i32 = 1;
/// `HWTSTAMP_FILTER_NONE`.
const NO_FILTER: i32 = 0;
/// The filters that include PTP's event messages over Ethernet, the narrowest first:
/// `HWTSTAMP_FILTER_PTP_V2_L2_EVENT`, `HWTSTAMP_FILTER_PTP_V2_EVENT`, `HWTSTAMP_FILTER_ALL`.
const FILTERS: [i32; 3] = [9, 12, 1];

/// The option, and the message that carries a stamp, with 64 bits for each number on all machines.
const SO_TIMESTAMPING_NEW: libc::c_int = 65;
/// The message that carries a sent frame's number.
const PACKET_TX_TIMESTAMP: libc::c_int = 16;

/// `struct hwtstamp_config`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Config {
    flags: i32,
    sends: i32,
    receives: i32,
}

/// `struct sock_extended_err`; `data` is the frame's number.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Extended {
    errno: u32,
    kind: [u8; 4],
    info: u32,
    data: u32,
}

/// A card that stamps PTP's event messages until this is dropped.
#[derive(Debug)]
pub struct Stamping {
    interface: String,
    /// The configuration to go back to; `None` if the card stamped them before, or if its driver
    /// does not tell.
    before: Option<Config>,
    /// The configuration that was set, once one was.
    set: Option<Config>,
}

impl Stamping {
    /// Has the interface's card stamp what it sends, and the event messages that it receives.
    ///
    /// # Errors
    /// If the card or its driver cannot, if the caller may not (`CAP_NET_ADMIN`), or if somebody
    /// else has it stamp other frames (`EBUSY`).
    pub fn start(interface: &str) -> io::Result<Self> {
        let interface = interface.to_owned();
        // A driver that does not tell may have been told by somebody: it is left as it is then.
        let before = configure(&interface, SIOCGHWTSTAMP, Config::default()).ok();
        if let Some(before) = before.filter(|before| before.receives != NO_FILTER) {
            if before.sends != SENDS_ON || !FILTERS.contains(&before.receives) {
                return Err(io::Error::from_raw_os_error(libc::EBUSY));
            }
            return Ok(Self {
                interface,
                before: None,
                set: None,
            });
        }
        let mut own = Self {
            interface,
            before,
            set: None,
        };
        let mut failed = io::Error::from_raw_os_error(libc::ERANGE);
        for receives in FILTERS {
            let asked = Config {
                flags: 0,
                sends: SENDS_ON,
                receives,
            };
            // A driver may answer with a wider filter than it was asked for.
            match configure(&own.interface, SIOCSHWTSTAMP, asked) {
                Ok(set) => {
                    own.set = Some(set);
                    if FILTERS.contains(&set.receives) {
                        return Ok(own);
                    }
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

impl Drop for Stamping {
    fn drop(&mut self) {
        let now = configure(&self.interface, SIOCGHWTSTAMP, Config::default()).ok();
        // What another program has set meanwhile stays.
        if let Some(before) = self.before.filter(|_| now == self.set) {
            let _ = configure(&self.interface, SIOCSHWTSTAMP, before);
        }
    }
}

fn configure(interface: &str, what: libc::Ioctl, mut config: Config) -> io::Result<Config> {
    let mut asked = request(interface)?;
    asked.ifr_ifru.ifru_data = (&raw mut config).cast();
    ask(what, asked)?;
    Ok(config)
}

/// Asks for the card's stamps of all frames that a socket sends and receives. Sent frames are
/// numbered from 0, beginning with the next one.
pub fn ask_for_stamps(socket: &UdpSocket) -> io::Result<()> {
    let flags: u32 = libc::SOF_TIMESTAMPING_TX_HARDWARE
        | libc::SOF_TIMESTAMPING_RX_HARDWARE
        | libc::SOF_TIMESTAMPING_RAW_HARDWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    let size = mem::size_of_val(&flags) as libc::socklen_t;
    let value = (&raw const flags).cast();
    let level = libc::SOL_SOCKET;
    // SAFETY: the kernel reads a number of this size, which lives here.
    super::check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, SO_TIMESTAMPING_NEW, value, size)
    })?;
    Ok(())
}

/// Receives a frame into `room`: returns its length, and the card's stamp if it has one.
pub fn receive(socket: &UdpSocket, room: &mut [u8]) -> io::Result<(usize, Option<Nanos>)> {
    let (length, _, stamp) = message(socket, room, 0)?;
    Ok((length, stamp))
}

/// Takes the stamp of a sent frame, if one is there: returns the frame's number and the stamp.
pub fn sent(socket: &UdpSocket) -> io::Result<Option<(u32, Nanos)>> {
    let queue = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    loop {
        match message(socket, &mut [0; 64], queue) {
            Ok((_, Some(number), Some(stamp))) => return Ok(Some((number, stamp))),
            // Of another kind.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// Receives a message: its length, a sent frame's number, and the card's stamp, as far as they are
/// there.
fn message(
    socket: &UdpSocket,
    room: &mut [u8],
    flags: libc::c_int,
) -> io::Result<(usize, Option<u32>, Option<Nanos>)> {
    let mut part = libc::iovec {
        iov_base: room.as_mut_ptr().cast(),
        iov_len: room.len(),
    };
    // Of words, so that its messages are aligned.
    let mut control = [0_u64; 32];
    // SAFETY: all zeros is a valid msghdr.
    let mut header: libc::msghdr = unsafe { mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = mem::size_of_val(&control) as _;
    // SAFETY: the kernel writes at most as many bytes as `room` and `control` have.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    let (mut number, mut stamp) = (None, None);
    // SAFETY: the kernel has filled in the header, and its messages lie within `control`.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    while !next.is_null() {
        // SAFETY: it is the header of a message in `control`, and data of the size that its kind
        // has follows; what is read need not be aligned.
        unsafe {
            let data = libc::CMSG_DATA(next);
            match ((*next).cmsg_level, (*next).cmsg_type) {
                (libc::SOL_SOCKET, SO_TIMESTAMPING_NEW) => {
                    // The software's, none, and the card's: seconds and nanoseconds each.
                    let times: [i64; 6] = data.cast::<[i64; 6]>().read_unaligned();
                    let nanos = times[4].saturating_mul(1_000_000_000) + times[5];
                    stamp = Some(Nanos(nanos)).filter(|stamp| stamp.0 != 0);
                }
                (libc::SOL_PACKET, PACKET_TX_TIMESTAMP) => {
                    number = Some(data.cast::<Extended>().read_unaligned().data);
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(&raw const header, next);
        }
    }
    Ok((length, number, stamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_a_card_takes_no_stamps() {
        let error = Stamping::start("lo").unwrap_err();
        let errors = [libc::EOPNOTSUPP, libc::EPERM];
        assert!(
            error
                .raw_os_error()
                .is_some_and(|error| errors.contains(&error)),
            "{error}"
        );
    }

    #[test]
    fn a_frame_without_a_stamp_is_received_all_the_same() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        ask_for_stamps(&socket).unwrap();
        socket
            .send_to(b"frame", socket.local_addr().unwrap())
            .unwrap();
        assert_eq!(receive(&socket, &mut [0; 9]).unwrap(), (5, None));
        assert_eq!(sent(&socket).unwrap(), None);
    }
}

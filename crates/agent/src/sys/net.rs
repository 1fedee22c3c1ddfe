// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network interfaces, network namespaces, and sockets for whole frames.
//!
//! An interface is identified by its name in the namespace of the calling thread.

use std::fs::File;
use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;

use rustix::mount::mount_bind;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The path of a thread's own network namespace.
const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";

/// Switches the loopback interface on, as the scripts of a distribution do at boot.
pub fn switch_on_loopback() -> io::Result<()> {
    switch_on("lo")
}

/// Switches an interface on.
pub fn switch_on(name: &str) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    ask(libc::SIOCSIFFLAGS as _, request).map(drop)
}

/// Returns true if an interface is on, and connected to another end that is on.
pub fn is_joined(name: &str) -> io::Result<bool> {
    let found = ask(libc::SIOCGIFFLAGS as _, request(name)?)?;
    // SAFETY: what the kernel has answered is this field.
    let flags = unsafe { found.ifr_ifru.ifru_flags };
    Ok(libc::c_int::from(flags) & libc::IFF_RUNNING != 0)
}

/// Renames an interface that is off.
pub fn rename(name: &str, new: &str) -> io::Result<()> {
    let mut asked = request(name)?;
    asked.ifr_ifru.ifru_newname = request(new)?.ifr_name;
    ask(libc::SIOCSIFNAME as _, asked).map(drop)
}

/// Gives an interface an address, in the network of its class.
pub fn set_address(name: &str, address: Ipv4Addr) -> io::Result<()> {
    let mut asked = request(name)?;
    // SAFETY: all zeros is a valid sockaddr_in.
    let mut own: libc::sockaddr_in = unsafe { mem::zeroed() };
    own.sin_family = libc::AF_INET as _;
    own.sin_addr.s_addr = u32::from(address).to_be();
    // SAFETY: both are plain data of one size; the kernel reads it as the former.
    asked.ifr_ifru.ifru_addr = unsafe { mem::transmute::<libc::sockaddr_in, libc::sockaddr>(own) };
    ask(libc::SIOCSIFADDR as _, asked).map(drop)
}

/// Returns an interface's address.
pub fn address(name: &str) -> io::Result<Ipv4Addr> {
    let found = ask(libc::SIOCGIFADDR as _, request(name)?)?;
    // SAFETY: what the kernel has answered is a sockaddr_in, of the size of a sockaddr.
    let own =
        unsafe { mem::transmute::<libc::sockaddr, libc::sockaddr_in>(found.ifr_ifru.ifru_addr) };
    Ok(u32::from_be(own.sin_addr.s_addr).into())
}

/// Returns an interface's hardware address.
pub fn hardware_address(name: &str) -> io::Result<[u8; 6]> {
    let found = ask(libc::SIOCGIFHWADDR as _, request(name)?)?;
    // SAFETY: what the kernel has answered is this field.
    let address = unsafe { found.ifr_ifru.ifru_hwaddr }.sa_data;
    Ok(std::array::from_fn(|place| address[place] as u8))
}

/// Returns an interface's number.
pub fn index(name: &str) -> io::Result<i32> {
    let found = ask(libc::SIOCGIFINDEX as _, request(name)?)?;
    // SAFETY: what the kernel has answered is this field.
    Ok(unsafe { found.ifr_ifru.ifru_ifindex })
}

/// Opens a socket that sends and receives whole frames of one type on an interface.
pub fn frames(name: &str, ethertype: u16) -> io::Result<UdpSocket> {
    let ethertype = ethertype.to_be();
    let socket = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    // SAFETY: all zeros is a valid sockaddr_ll.
    let mut own: libc::sockaddr_ll = unsafe { mem::zeroed() };
    own.sll_family = libc::AF_PACKET as _;
    own.sll_protocol = ethertype;
    own.sll_ifindex = index(name)?;
    let size = mem::size_of_val(&own) as libc::socklen_t;
    // SAFETY: the kernel reads a sockaddr_ll of this size, which lives here.
    super::check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const own).cast(), size) })?;
    // It sends, receives and has a timeout as any socket of datagrams.
    Ok(socket.into())
}

/// Opens a socket that sends echo requests to an address, and receives the answers to them
/// (icmp(7)); `net.ipv4.ping_group_range` names the groups that may use it.
pub fn echo_requests(to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP)?;
    let socket = UdpSocket::from(socket);
    socket.connect(to)?;
    Ok(socket)
}

/// Sets for how many microseconds a thread that waits at a socket looks for frames at the card
/// itself (`SO_BUSY_POLL`).
pub fn set_busy_poll(socket: &UdpSocket, us: u32) -> io::Result<()> {
    let us = us as libc::c_int;
    let size = mem::size_of_val(&us) as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_BUSY_POLL);
    // SAFETY: the kernel reads a number of this size, which lives here.
    super::check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const us).cast(),
            size,
        )
    })?;
    Ok(())
}

/// Moves the calling thread into a network namespace.
pub fn enter(namespace: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(
        std::os::fd::AsFd::as_fd(namespace),
        Some(LinkNameSpaceType::Network),
    )?)
}

/// Moves the calling thread into a new network namespace, which exists as long as the file system
/// has it at `path`, an empty file.
pub fn enter_new(path: &Path) -> io::Result<()> {
    // SAFETY: no memory and no descriptor is unshared.
    super::check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    Ok(mount_bind(OWN_NAMESPACE, path)?)
}

/// Moves an interface into another network namespace.
pub fn move_to(name: &str, namespace: &File) -> io::Result<()> {
    let message = set_namespace(index(name)?, namespace.as_raw_fd());
    let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
    let socket = UdpSocket::from(socket);
    socket.send(&message)?;
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer)?;
    let error = answer.get(16..20).filter(|_| length >= 20);
    match error.and_then(|bytes| bytes.try_into().ok()) {
        Some(error) => match i32::from_ne_bytes(error) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        },
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Builds the message of rtnetlink(7) for that: header, `ifinfomsg`, one attribute.
fn set_namespace(index: i32, namespace: i32) -> [u8; 40] {
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
    let mut message = [0; 40];
    let mut put = |at: usize, bytes: &[u8]| message[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &40_u32.to_ne_bytes());
    put(4, &libc::RTM_SETLINK.to_ne_bytes());
    put(6, &flags.to_ne_bytes());
    put(20, &index.to_ne_bytes());
    put(32, &8_u16.to_ne_bytes());
    put(34, &libc::IFLA_NET_NS_FD.to_ne_bytes());
    put(36, &namespace.to_ne_bytes());
    message
}

fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call takes plain numbers, and what it returns belongs to nobody else.
    unsafe {
        let number = super::check(libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol))?;
        Ok(OwnedFd::from_raw_fd(number))
    }
}

/// Builds a request that names an interface.
pub(super) fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // A zero ends the name.
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Carries out a request of netdevice(7), and returns it as filled in by the kernel.
pub(super) fn ask(what: libc::Ioctl, mut request: libc::ifreq) -> io::Result<libc::ifreq> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: the kernel reads and writes an ifreq, which lives here.
    super::check(unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) })?;
    Ok(request)
}

/// Sets the priority of a socket's frames in the queue of their interface (`SO_PRIORITY`).
#[cfg(feature = "wire")]
pub fn set_priority(socket: &UdpSocket, priority: u32) -> io::Result<()> {
    let size = mem::size_of_val(&priority) as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PRIORITY);
    let value = (&raw const priority).cast();
    // SAFETY: the kernel reads a number of this size, which lives here.
    super::check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value, size) })?;
    Ok(())
}

/// Returns the address of an interface's device on its bus, as in `/sys/bus/pci/devices`
/// (`ETHTOOL_GDRVINFO`).
#[cfg(feature = "wire")]
pub fn bus_address(name: &str) -> io::Result<String> {
    const ETHTOOL_GDRVINFO: u32 = 3;
    /// `struct ethtool_drvinfo`.
    #[repr(C)]
    struct DriverInfo {
        command: u32,
        names: [[u8; 32]; 3],
        bus: [u8; 32],
        rest: [u32; 16],
    }
    let mut info = DriverInfo {
        command: ETHTOOL_GDRVINFO,
        names: [[0; 32]; 3],
        bus: [0; 32],
        rest: [0; 16],
    };
    let mut asked = request(name)?;
    asked.ifr_ifru.ifru_data = (&raw mut info).cast();
    ask(libc::SIOCETHTOOL as _, asked)?;
    let end = info
        .bus
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(info.bus.len());
    Ok(String::from_utf8_lossy(&info.bus[..end]).into_owned())
}

/// Receives a frame of any interface, into `room`: returns its length, the number of the interface
/// and the sender's hardware address.
#[cfg(feature = "wire")]
pub fn frame_from(socket: &UdpSocket, room: &mut [u8]) -> io::Result<(usize, libc::sockaddr_ll)> {
    // SAFETY: all zeros is a valid sockaddr_ll.
    let mut from: libc::sockaddr_ll = unsafe { mem::zeroed() };
    let mut size = mem::size_of_val(&from) as libc::socklen_t;
    // SAFETY: the kernel writes at most as many bytes as `room` has, and an address of this size.
    let length = unsafe {
        libc::recvfrom(
            socket.as_raw_fd(),
            room.as_mut_ptr().cast(),
            room.len(),
            0,
            (&raw mut from).cast(),
            &raw mut size,
        )
    };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    Ok((length, from))
}

/// Sends a frame on the interface that an address names.
#[cfg(feature = "wire")]
pub fn send_frame(socket: &UdpSocket, frame: &[u8], to: &libc::sockaddr_ll) -> io::Result<()> {
    let size = mem::size_of_val(to) as libc::socklen_t;
    // SAFETY: the kernel reads the frame and an address of this size.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            0,
            (&raw const *to).cast(),
            size,
        )
    };
    usize::try_from(sent)
        .map(drop)
        .map_err(|_| io::Error::last_os_error())
}

/// Opens a socket that receives whole frames of one type on all interfaces.
#[cfg(feature = "wire")]
pub fn frames_of_all(ethertype: u16) -> io::Result<UdpSocket> {
    let protocol = libc::c_int::from(ethertype.to_be());
    Ok(socket(libc::AF_PACKET, libc::SOCK_RAW, protocol)?.into())
}

/// Has a socket of whole frames receive those only that have this number at this place, in the
/// byte order of networks (`SO_ATTACH_FILTER`, Linux's `Documentation/networking/filter.rst`).
/// Frames that have come before stay.
#[cfg(feature = "wire")]
pub fn only_frames_with(socket: &UdpSocket, place: u32, number: u32) -> io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, place),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    let size = mem::size_of_val(&program) as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER);
    let value = (&raw const program).cast();
    // SAFETY: the kernel reads a program of this size and its steps, which live here.
    super::check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value, size) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_a_number_and_no_interface_has_too_long_a_name() {
        assert!(index("lo").unwrap() > 0);
        assert_eq!(hardware_address("lo").unwrap(), [0; 6]);
        let long = index("a-name-of-16-let").unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::InvalidInput);
        let none = index("no-such-wire").unwrap_err();
        assert_eq!(none.raw_os_error(), Some(libc::ENODEV));
    }

    #[cfg(feature = "wire")]
    #[test]
    fn frames_without_the_number_do_not_come_in() {
        let [near, far] = std::array::from_fn(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        // What a socket of datagrams filters begins with their header of 8 bytes.
        only_frames_with(&far, 8 + 2, 0x7063_746c).unwrap();
        for text in [&b"..clock"[..], b"..pctl", b"short"] {
            near.send_to(text, far.local_addr().unwrap()).unwrap();
        }
        far.set_nonblocking(true).unwrap();
        let mut room = [0; 9];
        assert_eq!(far.recv(&mut room).unwrap(), 6);
        assert_eq!(
            far.recv(&mut room).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
    }
}

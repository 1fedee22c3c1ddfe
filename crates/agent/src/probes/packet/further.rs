// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of `packet` that only `punctual-wire` has: `AF_XDP`, frames that the card stamps,
//! a receiver and interrupts on CPUs of their own, a priority for frames, and another machine at
//! the other end.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use punctual_model::{CpuId, Nanos, Reason, Recording};
use serde::Deserialize;
use toml::{Table, Value};

use super::stamped::{self, Collector, SYNC, Stamped};
use super::{
    ECHO_REQUEST, ETHERTYPE, End, Kind, LOST, NO_BUSY_POLL, NOT_COUNTED, PORTS, Packet, TRIALS, Way,
};
use crate::probes::{Context, Measurement, within};
use crate::setting::SettingGuard;
use crate::sys::net;
use crate::sys::xdp::XdpSocket;
use crate::threads::ThreadSpec;

/// The names of these parameters.
const NAMES: [&str; 4] = ["receiver_cpu", "interrupt_cpu", "so_priority", "peer"];

/// The kind of frames that go by `AF_XDP`; they are raw frames.
const XDP: &str = "xdp";

/// The kind of frames that the sending card stamps; they are raw frames, too.
const PTP: &str = "ptp";

/// The length of a hardware address, of which a frame begins with two.
const ADDRESS: usize = 6;

/// The highest priority that `SO_PRIORITY` takes without `CAP_NET_ADMIN`.
const SO_PRIORITY_MAX: u8 = 6;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Further {
    /// True if frames bypass the kernel's network stack, by `AF_XDP`.
    #[serde(skip)]
    xdp: bool,
    /// True if frames are messages of the Precision Time Protocol, which the sending card stamps.
    #[serde(skip)]
    ptp: bool,
    /// The CPU that the receiver is bound to, if it is not the sender's.
    receiver_cpu: Option<CpuId>,
    /// The CPU that handles the interrupts of both cards, if it is not the kernel's choice.
    interrupt_cpu: Option<CpuId>,
    /// The frames' priority in the queue of the sending interface (`SO_PRIORITY`).
    so_priority: u8,
    /// The address of another machine, where `punctual-wire echo` or the kernel answers.
    peer: Option<Ipv4Addr>,
    /// The way in which the XDP program is attached, once it is.
    #[serde(skip)]
    mode: OnceLock<&'static str>,
    /// The thread that takes the card's time stamps, while frames are sent.
    #[serde(skip)]
    collector: Arc<Mutex<Option<Collector>>>,
}

/// The probe with all of its parameters.
#[derive(Debug)]
struct Wired {
    packet: Packet,
    cpus: Vec<CpuId>,
}

/// Reads the parameters of both: these, and those of [`Packet`].
pub(super) fn parse(table: &Table) -> Result<Box<dyn Measurement>, String> {
    let (further, mut table): (Table, Table) = table
        .clone()
        .into_iter()
        .partition(|(name, _)| NAMES.contains(&name.as_str()));
    let mistake = |error: toml::de::Error| error.message().to_owned();
    let mut further: Further = further.try_into().map_err(mistake)?;
    let kind = table.get("kind").and_then(Value::as_str);
    (further.xdp, further.ptp) = (kind == Some(XDP), kind == Some(PTP));
    if further.xdp || further.ptp {
        table.insert("kind".into(), "raw".into());
    }
    let mut packet: Packet = table.try_into().map_err(|error| with_all_kinds(&error))?;
    if (further.peer.is_some() || further.ptp) && packet.way.is_none() {
        packet.way = Some(Way::RoundTrip);
    }
    packet.check()?;
    further.check(&packet)?;
    let placed = [further.receiver_cpu, further.interrupt_cpu];
    let cpus = match placed {
        [None, None] => Vec::new(),
        _ => [Some(packet.cpu)]
            .into_iter()
            .chain(placed)
            .flatten()
            .collect(),
    };
    packet.further = further;
    Ok(Box::new(Wired { packet, cpus }))
}

/// Adds the kinds that [`Packet`] does not know to an error that lists the kinds.
fn with_all_kinds(error: &toml::de::Error) -> String {
    error.message().replace("`icmp`", "`icmp`, `xdp`, `ptp`")
}

impl Further {
    fn check(&self, packet: &Packet) -> Result<(), String> {
        within("so_priority", self.so_priority, 0, SO_PRIORITY_MAX)?;
        let answers_itself = packet.kind == Kind::Icmp || self.peer.is_some();
        if self.receiver_cpu.is_some() && answers_itself {
            return Err("receiver_cpu is for a receiver on this machine, and there is none".into());
        }
        if self.peer.is_some() && packet.way() == Way::OneWay {
            return Err(
                "peer needs way = \"round-trip\": the clocks of two machines are not one".into(),
            );
        }
        if self.peer.is_some() && self.xdp {
            return Err("kind = \"xdp\" has no peer yet: kind = \"raw\" has".into());
        }
        if self.ptp && packet.way() == Way::OneWay {
            return Err(
                "kind = \"ptp\" needs way = \"round-trip\": the clocks of two cards are not one"
                    .into(),
            );
        }
        if self.xdp && self.so_priority > 0 {
            return Err("kind = \"xdp\" passes no queue that knows a so_priority".into());
        }
        Ok(())
    }

    /// Creates the ends as [`Packet::ends`] does, and with these parameters.
    pub(super) fn ends(&self, packet: &Packet) -> Result<(End, Option<End>), Reason> {
        let (near, far) = match self.peer {
            Some(peer) => (self.end_to(packet, peer)?, None),
            None if self.ptp => {
                let (near, far) = packet.raw_ends(packet.payload() as usize)?;
                let near = packet.here(|| with_sync(&near, &packet.from))?;
                let to = |far: End| packet.there(move || with_sync(&far, &packet.to));
                let far = far.map(to).transpose()?;
                let (near, far) = packet.tried_out(near, far)?;
                (self.stamped(packet, near)?, far)
            }
            None if self.xdp => {
                let payload = packet.payload() as usize;
                let (near, far) = packet.raw_ends(payload)?;
                let near = packet.here(|| self.by_xdp(&packet.from, near))?;
                let to = |far: End| packet.there(|| self.by_xdp(&packet.to, far));
                let far = far.map(to).transpose()?;
                packet.tried_out(near, far)?
            }
            None => packet.ends()?,
        };
        for end in [Some(&near), far.as_ref()].into_iter().flatten() {
            if (self.ptp || self.xdp) && self.peer.is_none() && packet.busy_poll_us > 0 {
                let set = net::set_busy_poll(&end.socket, packet.busy_poll_us);
                set.map_err(|error| format!("SO_BUSY_POLL: {error}: {NO_BUSY_POLL}"))?;
            }
            let set = net::set_priority(&end.socket, self.so_priority.into());
            set.map_err(|error| format!("SO_PRIORITY: {error}"))?;
        }
        Ok((near, far))
    }

    /// Has the card stamp what an end sends and receives from now on.
    fn stamped(&self, packet: &Packet, end: End) -> Result<End, Reason> {
        let frames = packet.all() as usize;
        let socket = end.socket.try_clone();
        let stamped = socket.and_then(|socket| stamped::stamped(&packet.from, socket, frames));
        let (socket, collector) = stamped.map_err(|error| format!("{}: {error}", packet.from))?;
        *self.collector() = Some(collector);
        Ok(End {
            socket: Socket::Stamped(socket),
            ..end
        })
    }

    fn collector(&self) -> std::sync::MutexGuard<'_, Option<Collector>> {
        self.collector
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces an end's socket by one that bypasses the kernel's network stack.
    fn by_xdp(&self, interface: &str, end: End) -> io::Result<End> {
        let socket = XdpSocket::open(interface, ETHERTYPE)?;
        socket.set_read_timeout(LOST);
        self.mode.get_or_init(|| socket.mode());
        Ok(End {
            socket: Socket::Xdp(Box::new(socket)),
            ..end
        })
    }

    /// Creates the sending end of a way to another machine, once that answers.
    fn end_to(&self, packet: &Packet, peer: Ipv4Addr) -> Result<End, Reason> {
        let told = |what: &str, error: io::Error| -> Reason {
            let refused = error.kind() == io::ErrorKind::PermissionDenied;
            let echo = match packet.kind {
                Kind::Icmp if refused => "; net.ipv4.ping_group_range has the groups that may \
                    send it echo requests"
                    .into(),
                Kind::Icmp => String::new(),
                _ => format!("; `punctual-wire echo` answers there, on port {}", PORTS[1]),
            };
            format!("{peer}: {what}{error}{echo}").into()
        };
        let payload = packet.payload() as usize;
        let place = SocketAddr::new(peer.into(), PORTS[1]);
        let opened = match packet.kind {
            Kind::Udp => datagrams_to(place).map(|socket| End::new(socket, &[], payload)),
            Kind::Tcp => connection_to(place).map(|socket| End {
                stream: true,
                ..End::new(socket, &[], payload)
            }),
            Kind::Icmp => {
                net::echo_requests(place).map(|socket| End::new(socket, &ECHO_REQUEST, payload))
            }
            Kind::Raw => frames_to(&packet.from, peer)
                .map(|(socket, header)| End::new(socket, &header, payload)),
        };
        let mut end = opened.map_err(|error| told("", error))?;
        if self.ptp {
            end = with_sync(&end, &packet.from).map_err(|error| told("", error))?;
        }
        let set = end.socket.set_read_timeout(Some(LOST));
        set.map_err(|error| told("SO_RCVTIMEO: ", error))?;
        if packet.busy_poll_us > 0 {
            let set = net::set_busy_poll(&end.socket, packet.busy_poll_us);
            set.map_err(|error| told("SO_BUSY_POLL: ", error))?;
        }
        end.number(NOT_COUNTED);
        for _ in 0..TRIALS {
            end.send().map_err(|error| told("", error))?;
            match end.receive() {
                Ok(Some(_)) if self.ptp => return self.stamped(packet, end),
                Ok(Some(_)) => return Ok(end),
                // Nobody listens yet, or the answer is lost.
                Ok(None) => {}
                Err(error) => return Err(told("", error)),
            }
        }
        let none = format!("no answer within {TRIALS} s");
        Err(told("", io::Error::other(none)))
    }

    /// Binds the receiver to its CPU, if it has one of its own.
    pub(super) fn place<'a>(&self, spec: ThreadSpec<'a>) -> ThreadSpec<'a> {
        match self.receiver_cpu {
            Some(cpu) => spec.on(cpu),
            None => spec,
        }
    }

    /// Moves the interrupts of both cards to their CPU, until what is returned is dropped.
    fn move_interrupts(&self, packet: &Packet) -> Result<Vec<SettingGuard>, Reason> {
        let Some(CpuId(cpu)) = self.interrupt_cpu else {
            return Ok(Vec::new());
        };
        let mut found = packet.here(|| interrupts(&packet.from))?;
        if self.peer.is_none() {
            found.extend(packet.there(|| interrupts(&packet.to))?);
        }
        found.sort_unstable();
        found.dedup();
        let moved = found.iter().map(|number| {
            let file = format!("/proc/irq/{number}/smp_affinity_list");
            SettingGuard::set(&file, &cpu.to_string())
        });
        Ok(moved.collect::<Result<_, _>>()?)
    }

    /// Adds to a recording what these parameters have made of it.
    fn tell(&self, packet: &Packet, recording: &mut Recording) {
        let mut variant = recording.key.variant.clone();
        if self.xdp || self.ptp {
            let kind = if self.xdp { XDP } else { PTP };
            variant = variant.replacen(Kind::Raw.name(), kind, 1);
        }
        let to = self
            .receiver_cpu
            .map(|to| format!("{} to {to}", packet.cpu));
        let interrupts = self.interrupt_cpu.map(|cpu| format!("interrupts {cpu}"));
        let priority = (self.so_priority > 0).then(|| format!("priority {}", self.so_priority));
        let stamped = self.ptp.then(|| "stamped".to_owned());
        let parts = [Some(variant), to, interrupts, priority, stamped];
        recording.key.variant = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let mode = self.mode.get().map(|mode| ("xdp", (*mode).to_owned()));
        let peer = self.peer.map(|peer| ("to", peer.to_string()));
        for (name, text) in mode.into_iter().chain(peer) {
            recording.settings.insert(name.into(), text.into());
        }
        if self.peer.is_some() && packet.kind != Kind::Raw {
            // The kernel chooses the interface.
            for name in ["from", "driver"] {
                recording.settings.remove(name);
            }
        }
    }
}

impl Measurement for Wired {
    fn nominal(&self) -> Nanos {
        self.packet.nominal()
    }

    fn cpus(&self) -> &[CpuId] {
        &self.cpus
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let further = &self.packet.further;
        let _moved = further.move_interrupts(&self.packet)?;
        let measured = self.packet.run(context);
        let collector = further.collector().take();
        let mut recordings = measured?;
        for recording in &mut recordings {
            further.tell(&self.packet, recording);
        }
        if let (Some(collector), [recording]) = (collector, recordings.as_mut_slice()) {
            collector.finish(recording);
        }
        Ok(recordings)
    }
}

fn datagrams_to(place: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(place)?;
    Ok(socket)
}

fn connection_to(place: SocketAddr) -> io::Result<UdpSocket> {
    let stream = TcpStream::connect_timeout(&place, LOST * TRIALS)?;
    stream.set_nodelay(true)?;
    Ok(std::os::fd::OwnedFd::from(stream).into())
}

/// Makes an end for raw frames one for messages of the Precision Time Protocol, of the same length.
fn with_sync(end: &End, interface: &str) -> io::Result<End> {
    let header = [
        &end.frame[..2 * ADDRESS],
        &stamped::ETHERTYPE.to_be_bytes(),
        &SYNC,
    ];
    let header = header.concat();
    let payload = end.frame.len() - header.len();
    let socket = stamped::frames(interface)?;
    socket.set_read_timeout(Some(LOST))?;
    Ok(End::new(socket, &header, payload))
}

/// Opens a socket for frames on an interface, with the header of frames to a machine that can be
/// reached over it. The kernel finds out the machine's hardware address: it has to send a datagram
/// there.
fn frames_to(interface: &str, peer: Ipv4Addr) -> io::Result<(UdpSocket, Vec<u8>)> {
    let asked = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut address = None;
    for _ in 0..TRIALS {
        asked.send_to(&[0], (peer, PORTS[0]))?;
        crate::sys::time::sleep(Nanos::from_millis(500));
        address = neighbour(&fs::read_to_string("/proc/net/arp")?, interface, peer);
        if address.is_some() {
            break;
        }
    }
    let far = address.ok_or_else(|| {
        io::Error::other(format!("it is no neighbour on {interface} (/proc/net/arp)"))
    })?;
    let header = [
        &far[..],
        &net::hardware_address(interface)?,
        &ETHERTYPE.to_be_bytes(),
    ];
    Ok((net::frames(interface, ETHERTYPE)?, header.concat()))
}

/// Returns the hardware address of a neighbour in the kernel's table (arp(7)), if it is complete.
fn neighbour(table: &str, interface: &str, peer: Ipv4Addr) -> Option<[u8; 6]> {
    const COMPLETE: u32 = 2;
    let peer = peer.to_string();
    let row = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|row| row.len() == 6 && row[0] == peer && row[5] == interface)?;
    let flags = u32::from_str_radix(row[2].strip_prefix("0x")?, 16).ok()?;
    let bytes: Option<Vec<u8>> = row[3]
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect();
    (flags & COMPLETE != 0).then_some(bytes?.try_into().ok()?)
}

/// Returns the numbers of an interface's interrupts.
fn interrupts(interface: &str) -> io::Result<Vec<u32>> {
    let address = net::bus_address(interface)?;
    let device = format!("/sys/bus/pci/devices/{address}");
    let numbers = |names: Vec<String>| names.iter().filter_map(|name| name.parse().ok()).collect();
    let found: Vec<u32> = if let Ok(entries) = fs::read_dir(format!("{device}/msi_irqs")) {
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        numbers(names.collect())
    } else {
        let line = fs::read_to_string(format!("{device}/irq")).unwrap_or_default();
        numbers(vec![line.trim().to_owned()])
    };
    if found.is_empty() {
        let none = "interrupt_cpu: it has no interrupt of its own";
        return Err(io::Error::other(none));
    }
    Ok(found)
}

/// A socket of either kind.
#[derive(Debug)]
pub(super) enum Socket {
    /// Of the kernel's network stack.
    Plain(UdpSocket),
    /// Beside it.
    Xdp(Box<XdpSocket>),
    /// Of the stack, for frames that the card stamps.
    Stamped(Stamped),
}

impl From<UdpSocket> for Socket {
    fn from(socket: UdpSocket) -> Self {
        Self::Plain(socket)
    }
}

impl Deref for Socket {
    type Target = UdpSocket;

    fn deref(&self) -> &UdpSocket {
        match self {
            Self::Plain(socket) => socket,
            Self::Xdp(socket) => socket.descriptor(),
            Self::Stamped(stamped) => &stamped.socket,
        }
    }
}

impl Socket {
    pub(super) fn send(&self, frame: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.send(frame),
            Self::Xdp(socket) => socket.send(frame),
            Self::Stamped(stamped) => stamped.send(frame),
        }
    }

    pub(super) fn recv(&self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.recv(room),
            Self::Xdp(socket) => socket.recv(room),
            Self::Stamped(stamped) => stamped.recv(room),
        }
    }

    pub(super) fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.set_read_timeout(time),
            Self::Xdp(socket) => {
                socket.set_read_timeout(time.unwrap_or(LOST));
                Ok(())
            }
            Self::Stamped(stamped) => stamped.socket.set_read_timeout(time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, String> {
        parse(&text.parse().unwrap()).map(|measurement| format!("{measurement:?}"))
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let refused = |text: &str, why: &str| {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        };
        refused("kind = \"icmp\"\nreceiver_cpu = 1", "there is none");
        refused("peer = \"192.0.2.7\"\nreceiver_cpu = 1", "there is none");
        refused("peer = \"192.0.2.7\"\nway = \"one-way\"", "round-trip");
        refused("peer = \"somewhere\"", "IPv4");
        refused("kind = \"xdp\"\nso_priority = 6", "no queue");
        refused("so_priority = 7", "so_priority");
        refused("kind = \"ptp\"\nway = \"one-way\"", "round-trip");
        refused("kind = \"ipx\"", "`xdp`, `ptp`");
        refused("receiver = 1", "receiver");
        let wired = parsed("peer = \"192.0.2.7\"\nkind = \"udp\"").unwrap();
        assert!(wired.contains("RoundTrip"), "{wired}");
        let wired = parsed("kind = \"ptp\"").unwrap();
        assert!(wired.contains("RoundTrip") && wired.contains("ptp: true"));
        let wired = parsed("kind = \"xdp\"\nreceiver_cpu = 1").unwrap();
        assert!(wired.contains("xdp: true") && wired.contains("cpus: [CpuId(0), CpuId(1)]"));
    }

    #[test]
    fn a_neighbour_is_one_whose_address_is_known() {
        let table = "IP address       HW type     Flags       HW address            Mask     Device\n\
             192.0.2.7        0x1         0x2         52:54:00:00:00:02     *        wire0\n\
             192.0.2.8        0x1         0x0         00:00:00:00:00:00     *        wire0\n";
        let found = |peer: &str, on: &str| neighbour(table, on, peer.parse().unwrap());
        assert_eq!(found("192.0.2.7", "wire0"), Some([0x52, 0x54, 0, 0, 0, 2]));
        assert_eq!(found("192.0.2.7", "eth0"), None);
        assert_eq!(found("192.0.2.8", "wire0"), None);
        assert_eq!(found("192.0.2.9", "wire0"), None);
    }
}

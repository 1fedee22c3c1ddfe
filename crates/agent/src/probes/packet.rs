// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `packet`: network latency, from before `send` to after `recv`.
//!
//! A frame goes from one network interface to another, over a wire. One thread sends it, another
//! waits for it at the other end, with a higher priority on the same CPU. In between are the
//! system call, the queueing discipline, the driver, the card's interrupt and its thread, NAPI,
//! the socket and the wake-up.

use std::io;
#[cfg(not(feature = "wire"))]
use std::net::UdpSocket as Socket;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use punctual_model::network::{FAR, MODULE, NAMESPACE, NEAR};
use punctual_model::probe::{ProbeInfo, Shape, View, Watched, Windows};
use punctual_model::{CpuId, Finding, Findings, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, within};
use crate::event_log::{self, Event, EventLog};
use crate::network::{self, ETHERTYPE, MAKE_A_PAIR, PORTS};
use crate::stall::{self, Stall};
use crate::sys::net;
use crate::sys::time::sleep;
use crate::threads::{self, ThreadSpec};

#[cfg(feature = "wire")]
mod further;
#[cfg(feature = "wire")]
use further::Socket;

/// This probe.
pub const PROBE: Probe = Probe {
    name: "packet",
    summary: "network latency over a wire: frames, UDP, TCP or pings, one way or round trip",
    #[cfg(not(feature = "wire"))]
    parse: |table| super::parameters::<Packet>(table, Packet::check),
    #[cfg(feature = "wire")]
    parse: further::parse,
};

const LONGEST_PHASE: Nanos = Nanos::from_millis(4);
/// The time from the end of the pause before its sample to the start of a stall: the thread that
/// makes it leaves the CPU, and the sender is back from its sleep and sends.
const STALL_OFFSET: Nanos = Nanos(9_000);

/// The time after which a frame that has not arrived is lost.
const LOST: Duration = Duration::from_secs(1);
/// The number of frames that are sent beforehand, until one arrives: the first one waits for the
/// other end's hardware address.
const TRIALS: u32 = 3;

/// The length of the headers before the payload; ICMP's header is as long as UDP's.
const ETHERNET: u32 = 14;
const ETHERNET_IP_UDP: u32 = ETHERNET + 20 + 8;
/// The length with time stamps, which Linux has switched on.
const ETHERNET_IP_TCP: u32 = ETHERNET + 20 + 20 + 12;
/// The length of a frame's number, which is in each frame.
const NUMBER: u32 = 8;
/// The smallest frame.
const SHORTEST: u32 = 60;

/// Events that a thread notes.
const SENDS: Event = 0;
const RECEIVES: Event = 1;

/// The header of an echo request; the kernel fills in the rest.
const ECHO_REQUEST: [u8; 8] = [8, 0, 0, 0, 0, 0, 0, 0];
const NO_BUSY_POLL: &str = "the kernel has it with NET_RX_BUSY_POLL only";

/// The kind of frames that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Raw,
    Udp,
    Tcp,
    Icmp,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Icmp => "icmp",
        }
    }

    /// Returns the number of bytes of a frame before the payload.
    fn headers(self) -> u32 {
        match self {
            Self::Raw => ETHERNET,
            Self::Udp | Self::Icmp => ETHERNET_IP_UDP,
            Self::Tcp => ETHERNET_IP_TCP,
        }
    }

    /// Returns the number of bytes of the smallest frame.
    fn shortest(self) -> u32 {
        SHORTEST.max(self.headers() + NUMBER)
    }
}

/// The end of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    OneWay,
    RoundTrip,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Packet {
    /// The kind of frames: frames of a type of their own, UDP, TCP, or echo requests, which the
    /// other end's kernel answers.
    kind: Kind,
    /// The end of a sample: at the other end, or when the answer from there is back. If none, the
    /// former, except for requests that the kernel answers.
    way: Option<Way>,
    /// The number of frames that are measured; all are kept.
    samples: u64,
    /// The number of first frames that are not counted.
    warmup: u32,
    /// The sender's pause before each frame.
    interval_us: u32,
    /// The size of the whole frame, without its check sequence; if none, the smallest of its kind.
    bytes: Option<u32>,
    /// The sender's `SCHED_FIFO` priority; the thread at the other end has the next one above.
    priority: u8,
    /// The CPU that both threads are bound to.
    cpu: CpuId,
    /// The interface that sends.
    from: String,
    /// The interface that receives.
    to: String,
    /// The network namespace of the receiving interface; if empty, the target's own.
    namespace: String,
    /// The time for which a thread looks for frames at the card itself before it sleeps
    /// (`SO_BUSY_POLL`); with 0 it sleeps at once.
    busy_poll_us: u32,
    /// A stall that falls into one sample.
    stall: Option<Stall>,
    /// The parameters that only guests with a wire have.
    #[cfg(feature = "wire")]
    #[serde(skip)]
    further: further::Further,
}

impl Default for Packet {
    fn default() -> Self {
        Self {
            kind: Kind::Raw,
            way: None,
            samples: 1_000,
            warmup: 10,
            interval_us: 997,
            bytes: None,
            priority: 80,
            cpu: CpuId(0),
            from: NEAR.into(),
            to: FAR.into(),
            namespace: NAMESPACE.into(),
            busy_poll_us: 0,
            stall: None,
            #[cfg(feature = "wire")]
            further: further::Further::default(),
        }
    }
}

impl Packet {
    fn check(&self) -> Result<(), String> {
        within("samples", self.samples, 1, 1_000_000)?;
        within("warmup", self.warmup, 0, 1_000_000)?;
        within("interval_us", self.interval_us, 50, 1_000_000)?;
        within("bytes", self.bytes(), SHORTEST, ROOM as u32)?;
        within("priority", self.priority, 1, 98)?;
        within("busy_poll_us", self.busy_poll_us, 0, 10_000)?;
        if self.namespace.contains('/') {
            return Err("namespace is a name in /run/netns, or empty".into());
        }
        let (kind, shortest) = (self.kind.name(), self.kind.shortest());
        if self.bytes() < shortest {
            return Err(format!(
                "the smallest frame of kind = \"{kind}\" has {shortest} bytes"
            ));
        }
        if (self.kind, self.way) == (Kind::Icmp, Some(Way::OneWay)) {
            return Err("kind = \"icmp\" is answered by the kernel: way is \"round-trip\"".into());
        }
        let (is_raw, is_one) = (self.kind == Kind::Raw, self.from == self.to);
        if is_raw && is_one && self.namespace.is_empty() {
            return Err(format!(
                "kind = \"raw\" needs two interfaces: on {} a frame comes back to who sent it",
                self.from
            ));
        }
        if !is_raw && !is_one && self.namespace.is_empty() {
            return Err(format!(
                "kind = \"{kind}\" needs the ends in two namespaces: within one the kernel hands \
                 packets over by its loopback interface; that is measured by from = \"lo\" and \
                 to = \"lo\""
            ));
        }
        self.stall.map_or(Ok(()), |stall| stall.check(self.samples))
    }

    fn all(&self) -> u64 {
        self.samples + u64::from(self.warmup)
    }

    fn interval(&self) -> Nanos {
        Nanos::from_micros(self.interval_us.into())
    }

    fn way(&self) -> Way {
        let otherwise = match self.kind {
            Kind::Icmp => Way::RoundTrip,
            Kind::Raw | Kind::Udp | Kind::Tcp => Way::OneWay,
        };
        self.way.unwrap_or(otherwise)
    }

    fn bytes(&self) -> u32 {
        self.bytes.unwrap_or(self.kind.shortest())
    }

    fn payload(&self) -> u32 {
        self.bytes() - self.kind.headers()
    }

    fn variant(&self) -> String {
        let (kind, bytes) = (self.kind.name(), self.bytes());
        let way = match self.way() {
            Way::OneWay => "one way",
            Way::RoundTrip => "round trip",
        };
        match self.busy_poll_us {
            0 => format!("{kind} {bytes} {way}"),
            polled => format!("{kind} {bytes} {way}, polled {polled} us"),
        }
    }

    /// Runs `body` in the network namespace of the receiving interface.
    fn there<T: Send>(&self, body: impl FnOnce() -> io::Result<T> + Send) -> Result<T, Reason> {
        network::within(&self.namespace, body).map_err(|error| self.no_wire(&self.to, &error))
    }

    /// Runs `body` in the network namespace of the sending interface.
    fn here<T>(&self, body: impl FnOnce() -> io::Result<T>) -> Result<T, Reason> {
        body().map_err(|error| self.no_wire(&self.from, &error))
    }

    fn no_wire(&self, interface: &str, error: &io::Error) -> Reason {
        if error.raw_os_error() == Some(libc::EPERM) {
            return format!("{interface}: {error}: sockets for frames are root's").into();
        }
        if std::process::id() == 1 {
            let text = network::failure().map_or_else(
                || format!("{error}; `network = true` in a suite gives its guests two cards"),
                |why| format!("{error}; {why}"),
            );
            return Reason::no_device(interface, MODULE, text);
        }
        let to = match self.namespace.as_str() {
            "" => String::new(),
            namespace => format!(", the latter in the network namespace {namespace}"),
        };
        let (from, other) = (&self.from, &self.to);
        format!(
            "{interface}: {error}: expected two interfaces that are joined, {from} and \
             {other}{to}; a pair is made by `{MAKE_A_PAIR}`"
        )
        .into()
    }

    /// Creates both ends, after test frames have passed between them; only the sending end if the
    /// other one's kernel answers.
    fn ends(&self) -> Result<(End, Option<End>), Reason> {
        let payload = self.payload() as usize;
        let stream = self.kind == Kind::Tcp;
        let end = |socket| End {
            stream,
            ..End::new(socket, &[], payload)
        };
        let (near, far) = match self.kind {
            Kind::Raw => self.raw_ends(payload)?,
            Kind::Udp => {
                let [near, far] = self.datagrams(self.places()?)?.map(end);
                (near, Some(far))
            }
            Kind::Tcp => {
                let [near, far] = self.connection(self.places()?)?.map(end);
                (near, Some(far))
            }
            Kind::Icmp => {
                let [_, far] = self.places()?;
                let socket = self.here(|| net::echo_requests(far))?;
                (End::new(socket, &ECHO_REQUEST, payload), None)
            }
        };
        for end in [Some(&near), far.as_ref()].into_iter().flatten() {
            let set = end.socket.set_read_timeout(Some(LOST));
            set.map_err(|error| format!("SO_RCVTIMEO: {error}"))?;
            if self.busy_poll_us > 0 {
                let set = net::set_busy_poll(&end.socket, self.busy_poll_us);
                set.map_err(|error| format!("SO_BUSY_POLL: {error}: {NO_BUSY_POLL}"))?;
            }
        }
        self.tried_out(near, far)
    }

    fn raw_ends(&self, payload: usize) -> Result<(End, Option<End>), Reason> {
        let near = self.here(|| net::hardware_address(&self.from))?;
        let far = self.there(|| net::hardware_address(&self.to))?;
        let header = |to: [u8; 6], from| [to, from].concat();
        let end = |socket, mut header: Vec<u8>| {
            header.extend(ETHERTYPE.to_be_bytes());
            End::new(socket, &header, payload)
        };
        let from = self.here(|| net::frames(&self.from, ETHERTYPE))?;
        let to = self.there(|| net::frames(&self.to, ETHERTYPE))?;
        Ok((
            end(from, header(far, near)),
            Some(end(to, header(near, far))),
        ))
    }

    fn places(&self) -> Result<[SocketAddr; 2], Reason> {
        let near = self.here(|| net::address(&self.from))?;
        let far = self.there(|| net::address(&self.to))?;
        let place = |address: Ipv4Addr, port| SocketAddr::new(address.into(), port);
        Ok([place(near, PORTS[0]), place(far, PORTS[1])])
    }

    fn datagrams(&self, [near, far]: [SocketAddr; 2]) -> Result<[UdpSocket; 2], Reason> {
        Ok([
            self.here(|| datagrams(near, far))?,
            self.there(|| datagrams(far, near))?,
        ])
    }

    /// Creates the ends of a TCP connection. Once connected, they send and receive like others.
    /// Each write is sent at once (`TCP_NODELAY`).
    fn connection(&self, [_, far]: [SocketAddr; 2]) -> Result<[UdpSocket; 2], Reason> {
        let listener = self.there(|| TcpListener::bind(far))?;
        let near = self.here(|| TcpStream::connect_timeout(&far, LOST * TRIALS))?;
        let (other, _) = self.here(|| listener.accept())?;
        let ends = [near, other];
        let set = ends.iter().try_for_each(|end| end.set_nodelay(true));
        set.map_err(|error| format!("TCP_NODELAY: {error}"))?;
        Ok(ends.map(|end| OwnedFd::from(end).into()))
    }

    /// Tries out the ends with frames that are not measured: without an arrival there is no wire.
    fn tried_out(&self, mut near: End, far: Option<End>) -> Result<(End, Option<End>), Reason> {
        let Some(mut far) = far else {
            self.try_out(&mut near, None)?;
            return Ok((near, None));
        };
        self.try_out(&mut near, Some(&mut far))?;
        self.try_out(&mut far, Some(&mut near))?;
        Ok((near, Some(far)))
    }

    /// Tries the way from one end to the other, or back to it if the other's kernel answers.
    fn try_out(&self, from: &mut End, mut to: Option<&mut End>) -> Result<(), Reason> {
        let failed = |error: io::Error| self.no_wire(&self.from, &error);
        from.number(NOT_COUNTED);
        for _ in 0..TRIALS {
            from.send().map_err(failed)?;
            let end = to.as_deref_mut().unwrap_or(&mut *from);
            if end.receive().map_err(failed)?.is_some() {
                return Ok(());
            }
        }
        let text = format!("no frame reaches {} within {TRIALS} s", self.to);
        Err(failed(io::Error::other(text)))
    }

    fn measure(&self, phase: Nanos) -> Result<Recording, Reason> {
        #[cfg(not(feature = "wire"))]
        let (near, far) = self.ends()?;
        #[cfg(feature = "wire")]
        let (near, far) = self.further.ends(self)?;
        let wire = Wire {
            stamps: EventLog::new(2 * self.all() as usize),
            arrived: AtomicU64::new(0),
            over: AtomicBool::new(false),
        };
        let stalled = |sample| u64::from(self.warmup) + sample;
        let stall = stall::Within::of(self.stall, stalled, STALL_OFFSET)?;
        let sender = ThreadSpec::new(self.priority, || {
            wire.send(self, near, phase, stall.as_ref());
        });
        let other_end = far.map(|far| {
            let life = || wire.receive(far, self.way());
            let spec = ThreadSpec::new(self.priority + 1, life);
            #[cfg(feature = "wire")]
            let spec = self.further.place(spec);
            spec
        });
        let members: Vec<_> = [sender].into_iter().chain(other_end).collect();
        let roles = &["sender", "receiver"][..members.len()];
        let found = threads::run(self.cpu, members)?;
        let received = wire.arrived.into_inner();
        let stamps = wire.stamps.finish()?;
        let sent = stamps.iter().filter(|stamp| stamp.event == SENDS).count();
        let measured = stamps.get(2 * self.warmup as usize..).unwrap_or_default();
        let first = event_log::first(measured);
        let spans = event_log::spans(first.unwrap_or_default(), measured, (SENDS, RECEIVES));
        let key = RecordingKey::of_variant(self.variant());
        let mut recording = event_log::record(&spans).finish(key);
        recording.warmup = self.warmup.into();
        recording.settings = threads::common(&found, roles);
        recording.settings.extend(self.facts());
        recording.findings = Findings::from([
            ("sent".into(), Finding::Count(sent as u64)),
            ("received".into(), Finding::Count(received)),
        ]);
        let recordings = std::slice::from_mut(&mut recording);
        stall::tell(stall, first, recordings)?;
        Ok(recording)
    }

    fn facts(&self) -> crate::rt::Settings {
        let driver = Path::new("/sys/class/net")
            .join(&self.from)
            .join("device/driver");
        let driver = std::fs::read_link(driver).ok();
        let driver = driver.as_deref().and_then(Path::file_name);
        let driver = driver.map_or_else(|| "none".into(), |name| name.to_string_lossy().into());
        let texts = [
            ("from", self.from.clone()),
            ("to", self.to.clone()),
            ("driver", driver),
        ];
        texts
            .into_iter()
            .map(|(name, text)| (name.into(), text.into()))
            .collect()
    }
}

impl Measurement for Packet {
    fn nominal(&self) -> Nanos {
        self.interval() * self.all() as i64
    }

    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason> {
        let phase = context.phases.below(LONGEST_PHASE);
        Ok(vec![self.measure(phase)?])
    }
}

fn datagrams(from: SocketAddr, to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(from)?;
    socket.connect(to)?;
    Ok(socket)
}

/// One end of the wire.
struct End {
    socket: Socket,
    /// The frame to send.
    frame: Vec<u8>,
    /// The buffer for received frames.
    room: Box<[u8; ROOM]>,
    /// The position of a frame's number, in both.
    place: usize,
    /// True if a stream is received: a frame's bytes may arrive in pieces.
    stream: bool,
    /// The number of a frame's bytes that have arrived.
    come: usize,
}

impl End {
    fn new(socket: UdpSocket, header: &[u8], payload: usize) -> Self {
        let mut frame = header.to_vec();
        frame.resize(header.len() + payload, 0);
        Self {
            socket: Socket::from(socket),
            frame,
            room: Box::new([0; ROOM]),
            place: header.len(),
            stream: false,
            come: 0,
        }
    }

    /// Puts a number on the next frame.
    fn number(&mut self, number: u64) {
        self.frame[self.place..self.place + NUMBER as usize].copy_from_slice(&number.to_be_bytes());
    }

    fn send(&self) -> io::Result<()> {
        self.socket.send(&self.frame).map(drop)
    }

    /// Returns the number of the next frame; `None` if none has arrived in time.
    fn receive(&mut self) -> io::Result<Option<u64>> {
        loop {
            let end = if self.stream { self.frame.len() } else { ROOM };
            let length = match self.socket.recv(&mut self.room[self.come..end]) {
                Ok(0) if self.stream => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.come + length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
                Err(error) => return Err(error),
            };
            self.come = if self.stream && length < end {
                length
            } else {
                0
            };
            if self.come == 0 {
                let number = self.room[..length].get(self.place..self.place + NUMBER as usize);
                let number = number.and_then(|bytes| bytes.try_into().ok());
                return Ok(Some(number.map_or(NOT_COUNTED, u64::from_be_bytes)));
            }
        }
    }
}

/// The state that the threads share.
struct Wire {
    stamps: EventLog,
    /// The number of sent frames that have arrived.
    arrived: AtomicU64,
    over: AtomicBool,
}

impl Wire {
    /// Runs the sender for its whole life. By its first sample the receiver has long since blocked.
    fn send(&self, probe: &Packet, mut near: End, phase: Nanos, stall: Option<&stall::Within>) {
        sleep(probe.interval() + phase);
        let mut number = 0;
        threads::lead(0..probe.all(), probe.interval(), stall, || {
            let before = self.arrived.load(SeqCst);
            near.number(number);
            self.stamps.begin(SENDS, 0);
            // What cannot be sent does not arrive, and is missed.
            let _ = near.send();
            match probe.way() {
                Way::OneWay => self.wait_beyond(before),
                Way::RoundTrip => self.take_answer(&mut near, number),
            }
            number += 1;
        });
        self.over.store(true, SeqCst);
        near.number(NOT_COUNTED);
        let _ = near.send();
    }

    /// Waits for a frame that is still on its way, carried by a lower priority than the sender's.
    fn wait_beyond(&self, before: u64) {
        const POLL: Nanos = Nanos::from_micros(500);
        let mut polls = LOST.as_nanos() as i64 / POLL.0;
        while self.arrived.load(SeqCst) == before && polls > 0 {
            sleep(POLL);
            polls -= 1;
        }
    }

    fn take_answer(&self, near: &mut End, number: u64) {
        while let Ok(Some(answer)) = near.receive() {
            if answer == number {
                self.stamps.end(RECEIVES, 1);
                self.arrived.fetch_add(1, SeqCst);
                return;
            }
        }
    }

    /// Runs the thread at the other end for its whole life.
    fn receive(&self, mut far: End, way: Way) {
        let mut next = 0;
        while !self.over.load(SeqCst) {
            match far.receive() {
                Ok(Some(number)) if (next..NOT_COUNTED).contains(&number) => {
                    next = number + 1;
                    match way {
                        Way::OneWay => {
                            self.stamps.end(RECEIVES, 1);
                            self.arrived.fetch_add(1, SeqCst);
                        }
                        Way::RoundTrip => {
                            far.number(number);
                            let _ = far.send();
                        }
                    }
                }
                Ok(_) => {}
                // An interface that was switched off while it was waited at: nothing arrives.
                Err(_) => sleep(Nanos::from_millis(1)),
            }
        }
    }
}

/// The probe's description for the workstation.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    #[cfg(not(feature = "wire"))]
    view: View::of_samples(Shape::Latency, "frame over the wire"),
    #[cfg(feature = "wire")]
    view: View {
        findings: &[
            stamped::shown("own_median", "this end, median"),
            stamped::shown("own_worst", "this end, worst stamped"),
            stamped::shown("beyond_median", "beyond the card, median"),
            stamped::shown("beyond_worst", "beyond the card, worst stamped"),
            stamped::shown("stamped", "stamped"),
        ],
        ..View::of_samples(Shape::Latency, "frame over the wire")
    },
    scope: Ok(Watched::handover(Windows::OneAfterTheOther)),
};

/// The number of a frame that is not a sample.
const NOT_COUNTED: u64 = u64::MAX;
/// The longest frame.
const ROOM: usize = 1_514;

#[cfg(feature = "wire")]
pub(crate) mod stamped;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn parsed(text: &str) -> Result<(), String> {
        (PROBE.parse)(&text.parse().unwrap()).map(|_| ())
    }

    #[test]
    fn datagrams_do_not_go_over_a_wire_within_one_namespace() {
        assert!(parsed("namespace = \"\"").is_ok());
        let loopback = "namespace = \"\"\nfrom = \"lo\"\nto = \"lo\"\n";
        assert!(parsed(&format!("{loopback}kind = \"udp\"")).is_ok());
        let error = parsed(loopback).unwrap_err();
        assert!(error.contains("two interfaces"), "{error}");
        assert!(parsed("kind = \"udp\"").is_ok());
        let error = parsed("kind = \"udp\"\nnamespace = \"\"").unwrap_err();
        assert!(error.contains("loopback"), "{error}");
        assert!(parsed("namespace = \"../wire\"").is_err());
    }

    #[test]
    fn the_size_is_that_of_the_frame() {
        let of = |kind| Packet {
            kind,
            ..Packet::default()
        };
        let sizes = [Kind::Raw, Kind::Udp, Kind::Tcp, Kind::Icmp].map(|kind| {
            let probe = of(kind);
            (probe.bytes(), probe.payload())
        });
        assert_eq!(sizes, [(60, 46), (60, 18), (74, 8), (60, 18)]);
        let error = parsed("kind = \"icmp\"\nway = \"one-way\"").unwrap_err();
        assert!(error.contains("round-trip"), "{error}");
        let error = parsed("kind = \"tcp\"\nbytes = 73").unwrap_err();
        assert!(error.contains("74 bytes"), "{error}");
    }

    /// A frame that a stream brings in pieces is one, and two that it brings together are two.
    #[test]
    fn frames_of_a_stream_are_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut from = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = OwnedFd::from(listener.accept().unwrap().0).into();
        let mut end = End {
            stream: true,
            ..End::new(socket, &[], 12)
        };
        end.socket.set_read_timeout(Some(LOST)).unwrap();
        let frame = |number: u64| [&number.to_be_bytes()[..], &[0; 4]].concat();
        let sent = [frame(7), frame(8), frame(9)].concat();
        from.write_all(&sent[..29]).unwrap();
        assert_eq!(end.receive().unwrap(), Some(7));
        assert_eq!(end.receive().unwrap(), Some(8));
        from.write_all(&sent[29..]).unwrap();
        assert_eq!(end.receive().unwrap(), Some(9));
        drop(from);
        assert!(end.receive().is_err());
    }

    /// Measuring over the loopback interface needs neither root nor a second interface.
    #[test]
    fn datagrams_and_connections_go_over_the_loopback_interface_and_back() {
        for kind in [Kind::Udp, Kind::Tcp] {
            let probe = Packet {
                kind,
                from: "lo".into(),
                to: "lo".into(),
                namespace: String::new(),
                ..Packet::default()
            };
            let (mut near, far) = probe.ends().unwrap();
            let mut far = far.unwrap();
            near.number(7);
            near.send().unwrap();
            assert_eq!(far.receive().unwrap(), Some(7), "{kind:?}");
            far.number(7);
            far.send().unwrap();
            assert_eq!(near.receive().unwrap(), Some(7), "{kind:?}");
        }
    }

    #[test]
    fn without_a_pair_of_interfaces_the_reason_says_how_one_is_made() {
        let probe = Packet {
            from: "no-such-wire".into(),
            ..Packet::default()
        };
        let reason = probe.measure(Nanos::ZERO).unwrap_err().to_string();
        assert!(reason.contains("type veth"), "{reason}");
    }
}

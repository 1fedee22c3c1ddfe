// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe `packet`: network latency, from before `send` to behind `recv`.
//!
//! A frame goes from one network interface to another, over a wire. A thread sends it, another
//! one waits for it at the other end, with a higher priority on the same CPU. In between are the
//! system call, the queueing discipline, the driver, the card's interrupt and its thread, NAPI,
//! the socket and the wake-up.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use punctual_model::network::{FAR, MODULE, NAMESPACE, NEAR};
use punctual_model::probe::{ProbeInfo, Shape, View, Watched, Windows};
use punctual_model::{CpuId, Finding, Findings, Nanos, Reason, Recording, RecordingKey};
use serde::Deserialize;

use super::{Context, Measurement, Probe, parameters, within};
use crate::event_log::{self, Event, EventLog};
use crate::network;
use crate::stall::{self, Stall};
use crate::sys::net;
use crate::sys::time::sleep;
use crate::threads::{self, ThreadSpec};

/// This probe.
pub const PROBE: Probe = Probe {
    name: "packet",
    summary: "network latency over a wire: frames or UDP, one way or round trip",
    parse: |table| parameters::<Packet>(table, Packet::check),
};

/// How it is shown and explained.
pub const INFO: ProbeInfo = ProbeInfo {
    name: PROBE.name,
    view: View::of_samples(Shape::Latency, "frame over the wire"),
    scope: Ok(Watched::handover(Windows::OneAfterTheOther)),
};

const LONGEST_PHASE: Nanos = Nanos::from_millis(4);
/// So long after the end of the pause before its sample a stall begins: the thread that makes
/// it leaves the CPU, and the sender is back from its sleep and sends.
const STALL_OFFSET: Nanos = Nanos(9_000);

/// A frame that has not come by then is lost.
const LOST: Duration = Duration::from_secs(1);
/// Frames that are sent before, until one comes: the first one waits for the other end's
/// hardware address.
const TRIALS: u32 = 3;

/// The type of raw frames: of those that IEEE 802 leaves to experiments.
const ETHERTYPE: u16 = 0x88b5;
const PORT: u16 = 20_997;

/// What comes before the payload.
const ETHERNET: u32 = 14;
const ETHERNET_IP_UDP: u32 = ETHERNET + 20 + 8;

/// What a thread notes.
const SENDS: Event = 0;
const RECEIVES: Event = 1;

/// How a pair of interfaces is made where there is none.
const MAKE_A_PAIR: &str = "ip netns add wire && \
    ip link add wire0 type veth peer name wire1 netns wire && \
    ip addr add 198.18.0.1/24 dev wire0 && ip link set wire0 up && \
    ip -n wire addr add 198.18.0.2/24 dev wire1 && ip -n wire link set wire1 up";

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Raw,
    Udp,
}

/// What a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    OneWay,
    RoundTrip,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Packet {
    /// What is sent: frames of a type of their own, or UDP.
    kind: Kind,
    /// Whether a sample ends at the other end, or when the answer from there is back.
    way: Way,
    /// How many frames are measured; all are kept.
    samples: u64,
    /// Frames that come first and are not counted.
    warmup: u32,
    /// The sender's pause before each frame.
    interval_us: u32,
    /// The size of the whole frame, without its check sequence.
    bytes: u32,
    /// The sender's `SCHED_FIFO` priority; the thread at the other end has the next one above.
    priority: u8,
    /// The CPU that both threads are bound to.
    cpu: CpuId,
    /// The interface that sends.
    from: String,
    /// The interface that receives.
    to: String,
    /// The network namespace that the latter is in; empty: the target's own.
    namespace: String,
    /// A stall that falls into one sample.
    stall: Option<Stall>,
}

impl Default for Packet {
    fn default() -> Self {
        Self {
            kind: Kind::Raw,
            way: Way::OneWay,
            samples: 1_000,
            warmup: 10,
            interval_us: 997,
            bytes: 60,
            priority: 80,
            cpu: CpuId(0),
            from: NEAR.into(),
            to: FAR.into(),
            namespace: NAMESPACE.into(),
            stall: None,
        }
    }
}

impl Packet {
    fn check(&self) -> Result<(), String> {
        within("samples", self.samples, 1, 1_000_000)?;
        within("warmup", self.warmup, 0, 1_000_000)?;
        within("interval_us", self.interval_us, 50, 1_000_000)?;
        within("bytes", self.bytes, 60, 1_514)?;
        within("priority", self.priority, 1, 98)?;
        if self.namespace.contains('/') {
            return Err("namespace is a name in /run/netns, or empty".into());
        }
        if self.kind == Kind::Udp && self.namespace.is_empty() {
            return Err(
                "kind = \"udp\" needs the ends in two namespaces: within one the kernel hands \
                 datagrams over by its loopback interface"
                    .into(),
            );
        }
        self.stall.map_or(Ok(()), |stall| stall.check(self.samples))
    }

    fn all(&self) -> u64 {
        self.samples + u64::from(self.warmup)
    }

    fn interval(&self) -> Nanos {
        Nanos::from_micros(self.interval_us.into())
    }

    fn payload(&self) -> u32 {
        self.bytes
            - match self.kind {
                Kind::Raw => ETHERNET,
                Kind::Udp => ETHERNET_IP_UDP,
            }
    }

    fn variant(&self) -> String {
        let kind = match self.kind {
            Kind::Raw => "raw",
            Kind::Udp => "udp",
        };
        let way = match self.way {
            Way::OneWay => "one way",
            Way::RoundTrip => "round trip",
        };
        format!("{kind} {} {way}", self.bytes)
    }

    /// Does something where the receiving interface is.
    fn there<T: Send>(&self, body: impl FnOnce() -> io::Result<T> + Send) -> Result<T, Reason> {
        network::within(&self.namespace, body).map_err(|error| self.no_wire(&self.to, &error))
    }

    /// Does something where the sending interface is.
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

    /// Both ends, over which frames have gone already.
    fn ends(&self) -> Result<[End; 2], Reason> {
        let payload = self.payload() as usize;
        let ends = match self.kind {
            Kind::Raw => {
                let addresses = [
                    self.here(|| net::hardware_address(&self.from))?,
                    self.there(|| net::hardware_address(&self.to))?,
                ];
                let [near, far] = addresses;
                [
                    End::new(
                        self.here(|| net::frames(&self.from, ETHERTYPE))?,
                        &[&far[..], &near, &ETHERTYPE.to_be_bytes()].concat(),
                        payload,
                    ),
                    End::new(
                        self.there(|| net::frames(&self.to, ETHERTYPE))?,
                        &[&near[..], &far, &ETHERTYPE.to_be_bytes()].concat(),
                        payload,
                    ),
                ]
            }
            Kind::Udp => {
                let near = self.here(|| net::address(&self.from))?;
                let far = self.there(|| net::address(&self.to))?;
                let [near, far] = [near, far].map(|address| SocketAddr::new(address.into(), PORT));
                [
                    End::new(self.here(|| datagrams(near, far))?, &[], payload),
                    End::new(self.there(|| datagrams(far, near))?, &[], payload),
                ]
            }
        };
        let timeout = |end: &End| end.socket.set_read_timeout(Some(LOST));
        let set = ends.iter().try_for_each(timeout);
        set.map_err(|error| format!("SO_RCVTIMEO: {error}"))?;
        let [mut near, mut far] = ends;
        self.try_out(&mut near, &mut far)?;
        self.try_out(&mut far, &mut near)?;
        Ok([near, far])
    }

    /// The first frames are sent at leisure: what cannot be received is no wire.
    fn try_out(&self, from: &mut End, to: &mut End) -> Result<(), Reason> {
        let failed = |error: io::Error| self.no_wire(&self.from, &error);
        from.number(NOT_COUNTED);
        for _ in 0..TRIALS {
            from.send().map_err(failed)?;
            if to.receive().map_err(failed)?.is_some() {
                return Ok(());
            }
        }
        let text = format!("no frame reaches {} within {TRIALS} s", self.to);
        Err(failed(io::Error::other(text)))
    }

    fn measure(&self, phase: Nanos) -> Result<Recording, Reason> {
        let [near, far] = self.ends()?;
        let wire = Wire {
            stamps: EventLog::new(2 * self.all() as usize),
            arrived: AtomicU64::new(0),
            over: AtomicBool::new(false),
        };
        let stalled = |sample| u64::from(self.warmup) + sample;
        let stall = stall::Within::of(self.stall, stalled, STALL_OFFSET)?;
        let members = vec![
            ThreadSpec::new(self.priority, || {
                wire.send(self, near, phase, stall.as_ref());
            }),
            ThreadSpec::new(self.priority + 1, || wire.receive(far, self.way)),
        ];
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
        recording.settings = threads::common(&found, &["sender", "receiver"]);
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

/// The number of a frame that is no sample.
const NOT_COUNTED: u64 = u64::MAX;
/// The longest frame.
const ROOM: usize = 1_514;

/// One end of the wire.
struct End {
    socket: UdpSocket,
    /// What is sent.
    frame: Vec<u8>,
    /// What is received.
    room: Box<[u8; ROOM]>,
    /// Where a frame's number is, in both.
    place: usize,
}

impl End {
    fn new(socket: UdpSocket, header: &[u8], payload: usize) -> Self {
        let mut frame = header.to_vec();
        frame.resize(header.len() + payload, 0);
        Self {
            socket,
            frame,
            room: Box::new([0; ROOM]),
            place: header.len(),
        }
    }

    /// Puts a number on the next frame.
    fn number(&mut self, number: u64) {
        self.frame[self.place..self.place + 8].copy_from_slice(&number.to_be_bytes());
    }

    fn send(&self) -> io::Result<()> {
        self.socket.send(&self.frame).map(drop)
    }

    /// The number of the next frame; `None` where none has come in time.
    fn receive(&mut self) -> io::Result<Option<u64>> {
        match self.socket.recv(&mut *self.room) {
            Ok(length) => {
                let number = self.room[..length].get(self.place..self.place + 8);
                let number = number.and_then(|bytes| bytes.try_into().ok());
                Ok(Some(number.map_or(NOT_COUNTED, u64::from_be_bytes)))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What the threads share.
struct Wire {
    stamps: EventLog,
    /// How many of the frames that were sent have come.
    arrived: AtomicU64,
    over: AtomicBool,
}

impl Wire {
    /// The sender's whole life. By its first sample the receiver has long since blocked.
    fn send(&self, probe: &Packet, mut near: End, phase: Nanos, stall: Option<&stall::Within>) {
        sleep(probe.interval() + phase);
        let mut number = 0;
        threads::lead(0..probe.all(), probe.interval(), stall, || {
            let before = self.arrived.load(SeqCst);
            near.number(number);
            self.stamps.begin(SENDS, 0);
            // What cannot be sent does not arrive, and is missed.
            let _ = near.send();
            match probe.way {
                Way::OneWay => self.wait_beyond(before),
                Way::RoundTrip => self.take_answer(&mut near, number),
            }
            number += 1;
        });
        self.over.store(true, SeqCst);
        near.number(NOT_COUNTED);
        let _ = near.send();
    }

    /// Where what brings the frame is lower than the sender, it has not come yet.
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

    /// The whole life of the thread at the other end.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(), String> {
        (PROBE.parse)(&text.parse().unwrap()).map(|_| ())
    }

    #[test]
    fn datagrams_do_not_go_over_a_wire_within_one_namespace() {
        assert!(parsed("namespace = \"\"").is_ok());
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
        assert_eq!(of(Kind::Raw).payload(), 46);
        assert_eq!(of(Kind::Udp).payload(), 18);
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

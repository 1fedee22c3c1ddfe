// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that the sending card stamps (`kind = "ptp"`): the share of a round trip that lies beyond
//! the card, by the card's own clock, and the share of this end.

use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use punctual_model::probe::{FindingView, Form};
use punctual_model::{Finding, Nanos, Recording};

use crate::sys::net;
use crate::sys::stamping::{self, Stamping};
use crate::sys::time::sleep;

/// The type of the Precision Time Protocol's frames. Most cards that stamp frames stamp these, and
/// many no others.
pub(crate) const ETHERTYPE: u16 = 0x88F7;

/// The header of a frame's message, by which a card knows that it is to be stamped: a Sync of
/// version 2 (IEEE 1588-2019, 13.3). Its domain is one of those that no clock uses, and its clock's
/// identity says whose it is: cards and switches write into other fields. A frame's number follows,
/// which ends in the sequence's.
pub(crate) const SYNC: [u8; 24] = {
    let mut message = [0; 24];
    message[1] = 2;
    message[3] = 44;
    message[4] = 255;
    let mut at = 0;
    while at < MARK.1.len() {
        message[20 + at] = MARK.1[at];
        at += 1;
    }
    message
};

/// The way in which a finding of these frames is shown: by their variants only.
pub(super) const fn shown(key: &'static str, label: &'static str) -> FindingView {
    FindingView::new(key, label, Form::Plain).only_of("stamped")
}

/// The place in a frame of the first half of that identity, and what it is.
const MARK: (u32, [u8; 4]) = (14 + 20, *b"pctl");

/// The stack of the thread that takes stamps: the memory of the target is locked.
const STACK: usize = 64 * 1024;

/// The interval at which stamps are taken: the kernel keeps some 270 of a socket.
const LOOK: Nanos = Nanos::from_millis(5);

/// Stamps of sent frames, by their number on the socket.
type Sent = BTreeMap<u32, Nanos>;
/// Stamps of the answers, each with the number of its frame.
type Answered = Vec<(u32, Nanos)>;

/// The stamps of one socket.
#[derive(Debug, Default)]
struct Stamps {
    sent: Mutex<Sent>,
    answered: Mutex<Answered>,
    over: AtomicBool,
}

/// A socket whose frames are stamped.
#[derive(Debug)]
pub(super) struct Stamped {
    pub(super) socket: UdpSocket,
    /// The number of the next frame that is sent.
    next: AtomicU32,
    stamps: Arc<Stamps>,
}

impl Stamped {
    pub(super) fn send(&self, frame: &[u8]) -> io::Result<usize> {
        self.next.fetch_add(1, SeqCst);
        self.socket.send(frame)
    }

    pub(super) fn recv(&self, room: &mut [u8]) -> io::Result<usize> {
        let (length, stamp) = stamping::receive(&self.socket, room)?;
        if let Some(stamp) = stamp {
            let number = self.next.load(SeqCst).wrapping_sub(1);
            let answered = self.stamps.answered.lock();
            let mut answered = answered.unwrap_or_else(PoisonError::into_inner);
            // The thread that measures waits for no memory.
            if answered.len() < answered.capacity() {
                answered.push((number, stamp));
            }
        }
        Ok(length)
    }
}

/// The thread that takes the stamps of sent frames, and the card that makes them. Both stop when
/// this is dropped.
#[derive(Debug)]
pub(super) struct Collector {
    stamps: Arc<Stamps>,
    thread: Option<JoinHandle<io::Result<()>>>,
    _card: Stamping,
}

/// Opens a socket for frames of this kind on an interface. Messages of clocks on the same port do
/// not come in.
pub(super) fn frames(interface: &str) -> io::Result<UdpSocket> {
    let socket = net::frames(interface, ETHERTYPE)?;
    only_own(&socket)?;
    Ok(socket)
}

/// Has a socket receive frames of this kind only.
pub(crate) fn only_own(socket: &UdpSocket) -> io::Result<()> {
    let (place, mark) = MARK;
    net::only_frames_with(socket, place, u32::from_be_bytes(mark))
}

/// Begins to stamp what a socket sends and receives on an interface, up to this number of frames.
/// The next frame has the number 0.
pub(super) fn stamped(
    interface: &str,
    socket: UdpSocket,
    frames: usize,
) -> io::Result<(Stamped, Collector)> {
    let card = Stamping::start(interface).map_err(|error| {
        let hint = match error.raw_os_error() {
            Some(libc::EPERM) => "time stamps of a card are root's (CAP_NET_ADMIN)",
            Some(libc::EBUSY) => "it stamps other frames already, for another program or a switch",
            _ => "its card stamps no frames (`ethtool -T` shows what it can)",
        };
        io::Error::other(format!("SIOCSHWTSTAMP: {error}: {hint}"))
    })?;
    stamping::ask_for_stamps(&socket)
        .map_err(|error| io::Error::other(format!("SO_TIMESTAMPING: {error}")))?;
    let stamps = Arc::new(Stamps {
        answered: Mutex::new(Vec::with_capacity(frames)),
        ..Stamps::default()
    });
    let (queue, own) = (socket.try_clone()?, Arc::clone(&stamps));
    let thread = std::thread::Builder::new().stack_size(STACK);
    let thread = thread.spawn(move || take(&queue, &own))?;
    let collector = Collector {
        stamps: Arc::clone(&stamps),
        thread: Some(thread),
        _card: card,
    };
    let next = AtomicU32::new(0);
    let socket = Stamped {
        socket,
        next,
        stamps,
    };
    Ok((socket, collector))
}

/// Takes the stamps of sent frames until it is over and none is left.
fn take(queue: &UdpSocket, stamps: &Stamps) -> io::Result<()> {
    loop {
        let is_over = stamps.over.load(SeqCst);
        while let Some((number, stamp)) = stamping::sent(queue)? {
            let sent = stamps.sent.lock();
            sent.unwrap_or_else(PoisonError::into_inner)
                .insert(number, stamp);
        }
        if is_over {
            return Ok(());
        }
        sleep(LOOK);
    }
}

impl Collector {
    /// Ends it, and adds to a recording of what the socket sent and received the shares of its
    /// samples.
    pub(super) fn finish(mut self, recording: &mut Recording) {
        // The last stamp may come after the last answer.
        sleep(LOOK);
        match self.end() {
            Ok(()) => {
                let sent = self.stamps.sent.lock();
                let sent = sent.unwrap_or_else(PoisonError::into_inner);
                let answered = self.stamps.answered.lock();
                let answered = answered.unwrap_or_else(PoisonError::into_inner);
                split(recording, &sent, &answered);
            }
            Err(error) => {
                let absent = Finding::Absent(format!("time stamps were lost: {error}").into());
                recording.findings.insert("stamped".into(), absent);
            }
        }
    }

    /// Ends the thread, once it has taken what is there.
    fn end(&mut self) -> io::Result<()> {
        self.stamps.over.store(true, SeqCst);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.map_or(Ok(()), |ended| {
            ended.unwrap_or_else(|_| Err(io::Error::other("the thread that takes them failed")))
        })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Adds to a recording the shares of its samples: beyond the card, and of this end. The warm-up has
/// the first numbers on the socket.
fn split(recording: &mut Recording, sent: &BTreeMap<u32, Nanos>, answered: &[(u32, Nanos)]) {
    let first = recording.warmup as u32;
    let both = answered.iter().filter_map(|(number, back)| {
        let out = sent.get(number)?;
        Some((*number, *back - *out))
    });
    let beyond: BTreeMap<u32, Nanos> = both.collect();
    // Each of a warm-up as well: without it, samples have other numbers.
    let lost = recording.findings.get("received") != recording.findings.get("sent");
    let shares: Vec<(Nanos, Nanos)> = recording
        .samples
        .iter()
        .filter_map(|sample| {
            let number = first.checked_add(u32::try_from(sample.seq).ok()?)?;
            let beyond = *beyond.get(&number)?;
            Some((beyond, sample.value - beyond))
        })
        // A clock that was set between the two stamps tells nothing.
        .filter(|(beyond, own)| !lost && beyond.0 >= 0 && own.0 >= 0)
        .collect();
    let (count, of) = (shares.len() as u64, recording.count);
    let findings = &mut recording.findings;
    if shares.is_empty() {
        let why = if lost {
            "frames were lost: it is not known which stamp belongs to which sample".to_owned()
        } else {
            let (sent, answered) = (sent.len(), answered.len());
            format!("the card has stamped {sent} frames that it sent, and {answered} answers")
        };
        findings.insert("stamped".into(), Finding::Absent(why.into()));
        return;
    }
    findings.insert("stamped".into(), Finding::Share { count, of });
    let own = shares.iter().map(|(_, own)| *own).collect();
    let beyond = shares.iter().map(|(beyond, _)| *beyond).collect();
    for (name, mut times) in [("own", own), ("beyond", beyond)] {
        let times: &mut Vec<Nanos> = &mut times;
        times.sort_unstable();
        let found = [
            ("median", times[(times.len() - 1) / 2]),
            ("worst", times[times.len() - 1]),
        ];
        for (figure, time) in found {
            findings.insert(format!("{name}_{figure}"), Finding::Nanos(time));
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::{Recorder, RecordingKey};

    use super::*;

    /// A recording behind a warm-up of three frames, of which so many were lost.
    fn recording(values: &[i64], lost: u64) -> Recording {
        let mut recorder = Recorder::new(values.len());
        for (value, at) in values.iter().zip(0..) {
            recorder.record(Nanos(at), Nanos(*value));
        }
        let sent = 3 + values.len() as u64;
        let key = RecordingKey::of_variant("ptp 60 round trip, stamped");
        Recording {
            warmup: 3,
            findings: BTreeMap::from([
                ("sent".into(), Finding::Count(sent)),
                ("received".into(), Finding::Count(sent - lost)),
            ]),
            ..recorder.finish(key)
        }
    }

    #[test]
    fn a_sample_is_split_by_the_stamps_of_its_own_frame() {
        let sent = [(2, 7), (3, 1_000), (4, 2_000), (6, 3_000)];
        let sent = sent.map(|(number, stamp)| (number, Nanos(stamp)));
        let answered = [
            (2, Nanos(8)),
            (3, Nanos(1_020)),
            (4, Nanos(2_030)),
            (5, Nanos(9)),
            (6, Nanos(2_999)),
        ];
        // Three frames come before the first sample; the third one's answer has a stamp only, and
        // the clock was set back before the fourth one's.
        let mut own = recording(&[100, 130, 120, 110], 0);
        split(&mut own, &sent.into(), &answered);
        assert_eq!(own.findings["stamped"], Finding::Share { count: 2, of: 4 });
        assert_eq!(own.findings["own_worst"], Finding::Nanos(Nanos(100)));
        assert_eq!(own.findings["own_median"], Finding::Nanos(Nanos(80)));
        assert_eq!(own.findings["beyond_worst"], Finding::Nanos(Nanos(30)));
    }

    #[test]
    fn what_cannot_be_assigned_is_not_told() {
        let sent = BTreeMap::from([(3, Nanos(20))]);
        let mut lost = recording(&[100], 1);
        split(&mut lost, &sent, &[(3, Nanos(30))]);
        let mut never = recording(&[100], 0);
        split(&mut never, &sent, &[]);
        for (recording, why) in [
            (lost, "lost"),
            (never, "1 frames that it sent, and 0 answers"),
        ] {
            assert_eq!(recording.findings.len(), 3);
            match &recording.findings["stamped"] {
                Finding::Absent(reason) => assert!(reason.to_string().contains(why)),
                other => panic!("{other:?}"),
            }
        }
    }
}

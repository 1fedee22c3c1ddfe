// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that the sending card stamps (`kind = "ptp"`): the share of a round trip that lies beyond
//! the card, by the card's own clock, and the share of this machine.

use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use punctual_model::probe::{FindingView, Form};
use punctual_model::{Finding, Nanos, Recording};

use crate::sys::stamping::{self, Stamping};

/// The type of the Precision Time Protocol's frames. Most cards that stamp frames stamp these, and
/// many no others.
pub(crate) const ETHERTYPE: u16 = 0x88F7;

/// The header of a frame's message, by which a card knows that it is to be stamped: a Sync of
/// version 2 (IEEE 1588-2019, 13.3). Its domain is one of those that no clock uses, and its
/// reserved bytes say whose it is.
pub(crate) const SYNC: [u8; 34] = {
    let mut message = [0; 34];
    message[1] = 2;
    message[3] = 44;
    message[4] = 255;
    let (mut at, mark) = (0, b"pctl");
    while at < mark.len() {
        message[16 + at] = mark[at];
        at += 1;
    }
    message
};

/// The way in which a finding of these frames is shown: by their variants only.
pub(super) const fn shown(key: &'static str, label: &'static str) -> FindingView {
    FindingView::new(key, label, Form::Plain).only_of("stamped")
}

/// The interval at which the thread that takes stamps looks if it is to end.
const LOOK_MS: i32 = 50;

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

/// The thread that takes the stamps of sent frames, and the card that makes them.
#[derive(Debug)]
pub(super) struct Collector {
    stamps: Arc<Stamps>,
    thread: JoinHandle<io::Result<()>>,
    /// The card stops stamping when this is dropped.
    _card: Stamping,
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
            _ => "its card stamps no frames (`ethtool -T` shows what it can)",
        };
        io::Error::other(format!("SIOCSHWTSTAMP: {error}: {hint}"))
    })?;
    stamping::ask_for_stamps(&socket)?;
    let stamps = Arc::new(Stamps {
        answered: Mutex::new(Vec::with_capacity(frames)),
        ..Stamps::default()
    });
    let (queue, own) = (socket.try_clone()?, Arc::clone(&stamps));
    let thread = std::thread::spawn(move || take(&queue, &own));
    let collector = Collector {
        stamps: Arc::clone(&stamps),
        thread,
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
        match stamping::sent(queue, LOOK_MS)? {
            Some((number, stamp)) => {
                let sent = stamps.sent.lock();
                sent.unwrap_or_else(PoisonError::into_inner)
                    .insert(number, stamp);
            }
            None if is_over => return Ok(()),
            None => {}
        }
    }
}

impl Collector {
    /// Ends it, and adds to a recording of what the socket sent and received the shares of its
    /// samples.
    pub(super) fn finish(self, recording: &mut Recording) -> io::Result<()> {
        let (sent, answered) = self.taken()?;
        split(recording, &sent, &answered);
        Ok(())
    }

    /// Returns the stamps of sent frames and of their answers, by a frame's number on the socket.
    fn taken(self) -> io::Result<(Sent, Answered)> {
        self.stamps.over.store(true, SeqCst);
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("the thread that takes stamps failed")))?;
        let sent = self.stamps.sent.lock();
        let sent = std::mem::take(&mut *sent.unwrap_or_else(PoisonError::into_inner));
        let answered = self.stamps.answered.lock();
        let answered = std::mem::take(&mut *answered.unwrap_or_else(PoisonError::into_inner));
        Ok((sent, answered))
    }
}

/// Adds to a recording the shares of its samples: beyond the card, and of this machine. The warm-up
/// has the first numbers on the socket.
fn split(recording: &mut Recording, sent: &BTreeMap<u32, Nanos>, answered: &[(u32, Nanos)]) {
    let first = recording.warmup as u32;
    let both = answered.iter().filter_map(|(number, back)| {
        let out = sent.get(number)?;
        Some((*number, *back - *out))
    });
    let beyond: BTreeMap<u32, Nanos> = both.collect();
    let lost = recording.missed > 0;
    let shares: Vec<(Nanos, Nanos)> = recording
        .samples
        .iter()
        .filter_map(|sample| {
            let number = first.checked_add(u32::try_from(sample.seq).ok()?)?;
            let beyond = *beyond.get(&number)?;
            Some((beyond, sample.value - beyond))
        })
        .filter(|_| !lost)
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

    fn recording(values: &[i64], missed: u64) -> Recording {
        let mut recorder = Recorder::new(values.len());
        for (value, at) in values.iter().zip(0..) {
            recorder.record(Nanos(at), Nanos(*value));
        }
        recorder.miss(missed);
        let key = RecordingKey::of_variant("ptp 60 round trip, stamped");
        Recording {
            warmup: 3,
            ..recorder.finish(key)
        }
    }

    #[test]
    fn a_sample_is_split_by_the_stamps_of_its_own_frame() {
        let sent = BTreeMap::from([(2, Nanos(7)), (3, Nanos(1_000)), (4, Nanos(2_000))]);
        let answered = [
            (2, Nanos(8)),
            (3, Nanos(1_020)),
            (4, Nanos(2_030)),
            (5, Nanos(9)),
        ];
        // Three frames come before the first sample; the last one has no stamp.
        let mut own = recording(&[100, 130, 120], 0);
        split(&mut own, &sent, &answered);
        assert_eq!(own.findings["stamped"], Finding::Share { count: 2, of: 3 });
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
            assert_eq!(recording.findings.len(), 1);
            match &recording.findings["stamped"] {
                Finding::Absent(reason) => assert!(reason.to_string().contains(why)),
                other => panic!("{other:?}"),
            }
        }
    }
}

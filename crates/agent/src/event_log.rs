// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time stamps that the threads of a probe take in one common sequence, without a lock.
//!
//! The threads only note what they are about to do or have just done, and when. The results
//! are computed afterwards, from the finished sequence. That keeps the measured
//! path short and makes the evaluation a pure function of the stamps.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering::Relaxed};

use punctual_model::{Nanos, Reason, Recorder};

use crate::sys::marker;
use crate::sys::time::now;

/// An event, by a number that the probe gives it.
pub type Event = u32;

/// A time stamp: the event, its thread and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The event.
    pub event: Event,
    /// The thread's number within the probe.
    pub thread: u32,
    /// The time.
    pub at: Nanos,
}

/// A sequence of stamps that any thread may add to; memory is allocated, and touched, beforehand.
///
/// The order of the sequence is the order of events only among threads that share one CPU,
/// which is where all probes that use it run. `Relaxed` suffices there, and the sequence is
/// read only after the threads were joined.
#[derive(Debug)]
pub struct EventLog {
    next: AtomicUsize,
    slots: Box<[Slot]>,
}

/// Returns the part of each span that goes into taking its two stamps: the shortest of many pairs
/// of stamps with nothing between them. So a span that is corrected by it is
/// never made too short.
pub fn overhead() -> Nanos {
    const PAIRS: usize = 1_000;
    let stamps = EventLog::new(2 * PAIRS);
    for _ in 0..PAIRS {
        stamps.mark(0, 0);
        stamps.mark(1, 1);
    }
    let pairs = stamps.slots.chunks_exact(2);
    let at = |slot: &Slot| slot.at.load(Relaxed);
    let shortest = pairs.map(|pair| at(&pair[1]) - at(&pair[0])).min();
    Nanos(shortest.unwrap_or_default())
}

#[derive(Debug)]
struct Slot {
    event: AtomicU32,
    thread: AtomicU32,
    at: AtomicI64,
}

impl EventLog {
    /// Creates an empty sequence with room for `capacity` stamps.
    pub fn new(capacity: usize) -> Self {
        let unused = || Slot {
            event: AtomicU32::new(Event::MAX),
            thread: AtomicU32::new(u32::MAX),
            at: AtomicI64::new(-1),
        };
        Self {
            next: AtomicUsize::new(0),
            slots: (0..capacity).map(|_| unused()).collect(),
        }
    }

    /// Adds a stamp. The clock is read first: the stamp is noted after the moment that it names,
    /// which is returned.
    ///
    /// It is one function, not inlined, so that it costs each of its callers the same, which
    /// is what [`overhead`] measures.
    #[inline(never)]
    pub fn mark(&self, event: Event, thread: u32) -> Nanos {
        let at = now();
        // One past the end is counted, and told by `finish`.
        if let Some(slot) = self.slots.get(self.next.fetch_add(1, Relaxed)) {
            slot.event.store(event, Relaxed);
            slot.thread.store(thread, Relaxed);
            slot.at.store(at.0, Relaxed);
        }
        at
    }

    /// Adds the stamp with which a sample begins, and marks it for a watcher of instructions. Each
    /// such stamp is followed by one that [`Self::end`] adds, before there is another.
    #[inline]
    pub fn begin(&self, event: Event, thread: u32) {
        marker::armed();
        self.mark(event, thread);
    }

    /// Adds the stamp with which a sample ends, if one has begun.
    #[inline]
    pub fn end(&self, event: Event, thread: u32) -> Nanos {
        let at = self.mark(event, thread);
        marker::taken();
        at
    }

    /// Returns the finished sequence; an error if it had too little room.
    pub fn finish(self) -> Result<Vec<Stamp>, Reason> {
        let (taken, room) = (self.next.into_inner(), self.slots.len());
        if taken > room {
            return Err(
                format!("{taken} time stamps were taken, but there was room for {room}").into(),
            );
        }
        let stamp = |slot: Slot| Stamp {
            event: slot.event.into_inner(),
            thread: slot.thread.into_inner(),
            at: Nanos(slot.at.into_inner()),
        };
        let taken = self.slots.into_iter().take(taken);
        Ok(taken.map(stamp).collect())
    }
}

/// The time between two stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The time at which it began, counted from the origin of its recording.
    pub at: Nanos,
    /// Its length.
    pub value: Nanos,
}

/// Returns the time of the first stamp.
pub fn first(stamps: &[Stamp]) -> Option<Nanos> {
    stamps.first().map(|stamp| stamp.at)
}

/// Returns, for each stamp of the event `from`, the span to the stamp that follows it, if that
/// is the event `to` in another thread; otherwise it was not the switch to be measured. Spans
/// are counted from `origin`.
pub fn spans(origin: Nanos, stamps: &[Stamp], (from, to): (Event, Event)) -> Vec<Option<Span>> {
    let begins = stamps.iter().enumerate();
    begins
        .filter(|(_, begin)| begin.event == from)
        .map(|(place, begin)| {
            let end = stamps.get(place + 1)?;
            (end.event == to && end.thread != begin.thread).then(|| Span {
                at: begin.at - origin,
                value: end.at - begin.at,
            })
        })
        .collect()
}

/// Converts spans to samples; a missing span counts as missed.
pub fn record(spans: &[Option<Span>]) -> Recorder {
    let mut recorder = Recorder::new(spans.len());
    for span in spans {
        match span {
            Some(span) => recorder.record(span.at, span.value),
            None => recorder.miss(1),
        }
    }
    recorder
}

#[cfg(test)]
mod tests {
    use punctual_model::RecordingKey;

    use super::*;

    fn stamp(event: Event, thread: u32, at: i64) -> Stamp {
        let at = Nanos(at);
        Stamp { event, thread, at }
    }

    #[test]
    fn a_span_ends_with_the_very_next_stamp_in_another_thread_or_is_missed() {
        let stamps = [
            stamp(1, 0, 100),
            stamp(2, 1, 107),
            stamp(1, 1, 110),
            stamp(2, 1, 119), // the same thread: no switch
            stamp(1, 1, 120),
            stamp(3, 0, 130), // something else came first
            stamp(1, 0, 140), // nothing followed
        ];
        let found = spans(Nanos(100), &stamps, (1, 2));
        let (at, value) = (Nanos(0), Nanos(7));
        assert_eq!(found, [Some(Span { at, value }), None, None, None]);
        let recording = record(&found).finish(RecordingKey::new("switch", "idle", "N=2"));
        assert_eq!((recording.count, recording.missed), (1, 3));
    }

    #[test]
    fn stamps_come_out_in_order_and_one_too_many_is_an_error() {
        let stamps = EventLog::new(2);
        stamps.mark(7, 1);
        stamps.mark(8, 2);
        let overfull = EventLog::new(0);
        overfull.mark(7, 1);
        let stamps = stamps.finish().unwrap();
        assert_eq!((stamps[0].event, stamps[1].thread), (7, 2));
        assert!(stamps[0].at <= stamps[1].at);
        assert!(
            overfull
                .finish()
                .unwrap_err()
                .to_string()
                .contains("room for 0")
        );
    }

    #[test]
    fn two_stamps_take_some_time_and_no_more_than_any_pair() {
        let cost = overhead();
        assert!(
            cost >= Nanos::ZERO && cost < Nanos::from_millis(1_000),
            "{cost}"
        );
    }

    #[test]
    fn taking_a_stamp_allocates_nothing() {
        let stamps = EventLog::new(10);
        let before = crate::sys::counting_allocator::allocations();
        // Twice as many as there is room for, so that both sides of the limit are seen.
        for _ in 0..20 {
            stamps.mark(1, 1);
        }
        assert_eq!(crate::sys::counting_allocator::allocations(), before);
    }
}

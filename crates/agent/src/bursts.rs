// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bursts: threads that hand over to each other without a pause, for a tick of the kernel's
//! clock at a time.
//!
//! Each burst lasts as long as a tick, so that each meets one wherever it begins. The size
//! of a test is the number of ticks that it has met; a count of handovers would not tell, as they
//! take less time on a faster machine. Threads that never sleep leave nothing to others, for which
//! the kernel has two remedies: real-time throttling, and from 6.12 on the fair server. Either
//! would take the CPU for 50 ms in each second and look like a handover of 50 ms. So they sleep
//! between bursts, for longer than the bursts last.
//!
//! The first round of each burst is recorded separately: its threads come from a sleep, to caches
//! others have used.

use punctual_model::{Nanos, Reason};

use crate::event_log::{Event, EventLog, Stamp};
use crate::phases::Phases;
use crate::probes::{Extent, within};
use crate::stall::{self, Stall};
use crate::sys::time;
use crate::threads;

/// The pause between bursts: no multiple of a tick, and several times as long as most.
const PAUSE: Nanos = Nanos::from_micros(19_997);
/// The time from the start of its burst to the start of a stall: after the first round, if
/// threads are few.
const STALL_OFFSET: Nanos = Nanos(1_700_000);
/// The most bursts in one recording of a guest, which has little memory.
const AT_ONCE: u64 = 50;
const MOST: u32 = 250;

/// Further events of the leading thread: a burst of a kind begins, its first round is over,
/// the test is over.
const BEGINS: Event = Event::MAX - 3;
const GOES_ON: Event = Event::MAX - 2;
const ENDS: Event = Event::MAX - 1;

/// The length and the number of a test's bursts, and the position of a stall in them.
#[derive(Debug)]
pub struct Bursts {
    count: u64,
    tick: Nanos,
    phase: Nanos,
    stall: Option<stall::Within>,
}

/// A test's stamps.
#[derive(Debug, PartialEq)]
pub struct Parts {
    /// The time of the first stamp.
    pub origin: Nanos,
    /// The first rounds of all bursts, one after the other.
    pub first: Vec<Stamp>,
    /// All other rounds, by the kind of their burst.
    pub others: Vec<Vec<Stamp>>,
}

/// Checks a probe's parameters `ticks` and `stall`.
pub fn check(ticks: u32, stall: Option<Stall>) -> Result<(), String> {
    within("ticks", ticks, 1, MOST)?;
    stall.map_or(Ok(()), |stall| stall.check(ticks.into()))
}

/// Returns the time that bursts of a number of ticks take, with pauses, on a kernel of 250 Hz.
pub fn nominal(ticks: u64) -> Nanos {
    (PAUSE + Nanos::from_millis(4)) * ticks as i64
}

/// Returns the extent of a test.
pub fn extent(ticks: u32) -> Extent {
    Extent {
        parameter: "ticks",
        each: nominal(1),
        most: AT_ONCE,
        own: Some(ticks.into()),
    }
}

impl Bursts {
    /// Creates the given number of bursts; `stall.sample` is the number of one of them.
    pub fn new(count: u64, phases: &mut Phases, stall: Option<Stall>) -> Result<Self, Reason> {
        let tick = time::tick().map_err(|error| format!("clock_getres: {error}"))?;
        Ok(Self {
            count,
            tick,
            phase: phases.below(tick),
            stall: stall::Within::of(stall, |sample| sample, STALL_OFFSET)?,
        })
    }

    /// Creates a log with room for all of them: `events` for each round, none of which is shorter
    /// than `shortest`, and `first` for the first round of each burst.
    pub fn log(&self, (shortest, events): (Nanos, u64), first: u64) -> EventLog {
        // A round that is begun within a burst is gone through; a tick prolongs it.
        let rounds = (self.tick.0 / shortest.0.max(1)) as u64 + 2;
        EventLog::new((self.count * (rounds * events + first + 2) + 1 + first) as usize)
    }

    /// A tick of the kernel's clock: the duration of a burst without its first round.
    pub fn tick(&self) -> Nanos {
        self.tick
    }

    /// Runs the pauses in the leading thread, each followed by `burst`.
    pub fn each(&self, burst: impl FnMut()) {
        time::sleep(self.phase);
        threads::lead(0..self.count, PAUSE, self.stall.as_ref(), burst);
    }

    /// Runs the rounds of all bursts, in the thread that leads them. Bursts take turns between
    /// `kinds` kinds; each round is given the kind of its burst.
    pub fn lead(&self, log: &EventLog, kinds: u32, mut round: impl FnMut(u32)) {
        let mut turns = (0..kinds).cycle();
        self.each(|| {
            let kind = turns.next().unwrap_or_default();
            log.mark(BEGINS, kind);
            round(kind);
            log.mark(GOES_ON, kind);
            let end = time::now() + self.tick;
            while time::now() < end {
                round(kind);
            }
        });
        log.mark(ENDS, 0);
    }

    /// Describes the stall in the recording into whose sample it fell.
    pub fn tell(
        self,
        origin: Option<Nanos>,
        recordings: &mut [punctual_model::Recording],
    ) -> Result<(), Reason> {
        stall::tell(self.stall, origin, recordings)
    }
}

impl Parts {
    /// Divides the stamps by the kinds of bursts. Stamps after the last burst
    /// belong to none.
    pub fn of(stamps: &[Stamp], kinds: u32) -> Self {
        let mut parts = Self {
            origin: stamps.first().map(|stamp| stamp.at).unwrap_or_default(),
            first: Vec::new(),
            others: vec![Vec::new(); kinds as usize],
        };
        let mut part = None;
        for stamp in stamps {
            match stamp.event {
                BEGINS => part = Some(None),
                GOES_ON => part = Some(Some(stamp.thread as usize)),
                ENDS => part = None,
                _ => match part {
                    None => {}
                    Some(None) => parts.first.push(*stamp),
                    Some(Some(kind)) => parts.others[kind].push(*stamp),
                },
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_told_apart_by_their_place_in_a_burst_and_its_kind() {
        let stamp = |(event, thread): (Event, u32), at: i64| Stamp {
            event,
            thread,
            at: Nanos(at),
        };
        let noted = [
            (BEGINS, 0),
            (1, 7),
            (GOES_ON, 0),
            (2, 7),
            (3, 7),
            (BEGINS, 1),
            (4, 7),
            (GOES_ON, 1),
            (5, 7),
            (ENDS, 0),
            (6, 7),
        ];
        let stamps: Vec<Stamp> = noted
            .into_iter()
            .zip(100..)
            .map(|(n, at)| stamp(n, at))
            .collect();
        let parts = Parts::of(&stamps, 2);
        let events = |part: &[Stamp]| part.iter().map(|one| one.event).collect::<Vec<_>>();
        assert_eq!(parts.origin, Nanos(100));
        assert_eq!(events(&parts.first), [1, 4]);
        assert_eq!(events(&parts.others[0]), [2, 3]);
        assert_eq!(events(&parts.others[1]), [5]);
    }

    #[test]
    fn a_burst_lasts_a_tick_after_its_first_round_and_kinds_take_turns() {
        let bursts = Bursts::new(4, &mut Phases::new(1, 1), None).unwrap();
        let log = bursts.log((Nanos(50), 1), 1);
        let mut kinds = Vec::new();
        bursts.lead(&log, 3, |kind| {
            if kinds.last() != Some(&kind) {
                kinds.push(kind);
            }
            log.mark(1, 0);
        });
        assert_eq!(kinds, [0, 1, 2, 0]);
        let stamps = log.finish().unwrap();
        assert_eq!(Parts::of(&stamps, 3).first.len(), 4);
        let marks = stamps.iter().filter(|stamp| stamp.event != 1);
        let marks: Vec<&Stamp> = marks.collect();
        for pair in marks.windows(2).filter(|pair| pair[0].event == GOES_ON) {
            assert!(pair[1].at - pair[0].at >= bursts.tick, "{pair:?}");
        }
    }
}

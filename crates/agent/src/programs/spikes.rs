// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values above a trigger, with their threads and moments (`--spike`).

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize};

use punctual_model::Nanos;

/// Counts all values above a trigger, and keeps the first of them. Threads add to it without
/// waiting for each other.
#[derive(Debug)]
pub struct Spikes {
    above: Nanos,
    count: AtomicU64,
    kept: Box<[Slot]>,
}

#[derive(Debug, Default)]
struct Slot {
    thread: AtomicUsize,
    at: AtomicI64,
    value: AtomicI64,
}

/// A value above the trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spike {
    /// The number of the thread that measured it.
    pub thread: usize,
    /// The time of the value, by the thread's clock.
    pub at: Nanos,
    /// The value.
    pub value: Nanos,
}

impl Spikes {
    /// Creates a counter that keeps the first `most` values above `above`.
    pub fn new(above: Nanos, most: usize) -> Self {
        Self {
            above,
            count: AtomicU64::new(0),
            kept: (0..most).map(|_| Slot::default()).collect(),
        }
    }

    /// Checks a value that this thread has measured at this moment.
    #[inline]
    pub fn check(&self, thread: usize, at: Nanos, value: Nanos) {
        if value <= self.above {
            return;
        }
        let number = self.count.fetch_add(1, Relaxed);
        if let Some(slot) = self.kept.get(number as usize) {
            slot.thread.store(thread, Relaxed);
            slot.at.store(at.0, Relaxed);
            slot.value.store(value.0, Relaxed);
        }
    }

    /// Returns the number of values above the trigger.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Iterates over the kept values, in the order in which they came, once all threads have ended.
    pub fn kept(&self) -> impl Iterator<Item = Spike> + '_ {
        let count = self.kept.len().min(self.count() as usize);
        self.kept[..count].iter().map(|slot| Spike {
            thread: slot.thread.load(Relaxed),
            at: Nanos(slot.at.load(Relaxed)),
            value: Nanos(slot.value.load(Relaxed)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_values_above_the_trigger_are_kept_and_all_are_counted() {
        let spikes = Spikes::new(Nanos(100), 2);
        assert_eq!((spikes.count(), spikes.kept().count()), (0, 0));
        for (at, value) in [(1, 100), (2, 101), (3, 7), (4, 500), (5, 600)] {
            spikes.check(at as usize * 10, Nanos(at), Nanos(value));
        }
        let spike = |at: i64, value| Spike {
            thread: at as usize * 10,
            at: Nanos(at),
            value: Nanos(value),
        };
        let kept: Vec<Spike> = spikes.kept().collect();
        assert_eq!(kept, [spike(2, 101), spike(4, 500)]);
        assert_eq!(spikes.count(), 3);
    }
}

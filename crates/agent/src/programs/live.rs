// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples that a program shows while they are taken.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

use anyhow::Result;
use punctual_model::Nanos;

use super::spikes::Spikes;
use super::tracing::Tracing;
use crate::real_machine::SmiCounter;
use crate::sink::Sink;
use crate::sys::process;

/// The most values that can wait to be printed one by one.
const WAITING: usize = 1 << 14;

/// The state that all threads of a program share.
#[derive(Debug, Default)]
pub struct Common {
    /// True if all threads are to stop.
    pub over: AtomicBool,
    /// The limit above which a value ends the program.
    pub limit: Option<Limit>,
    /// The thread whose value was too long, and the value; 0 while there is none.
    pub broken: (AtomicU64, AtomicI64),
    /// The values above a trigger, if they are kept.
    pub spikes: Option<Spikes>,
}

/// A value above which everything ends.
#[derive(Debug)]
pub struct Limit {
    /// The value.
    pub above: Nanos,
    /// The tracer that is stopped then.
    pub tracing: Option<Tracing>,
}

impl Limit {
    /// Creates a limit, with the kernel's tracer if it can be reached; it must be reachable if
    /// marks are to be written into it.
    pub fn new(above: Nanos, with_marks: bool) -> Result<Self> {
        let tracing = match Tracing::open(with_marks) {
            Ok(tracing) => Some(tracing),
            Err(why) if with_marks => return Err(why),
            // It ends at such a value all the same.
            Err(_) => None,
        };
        Ok(Self { above, tracing })
    }
}

/// Returns the longest time of no more than the given number of whole microseconds, which the
/// originals compare.
pub fn whole_micros(count: u64) -> Nanos {
    Nanos(count as i64 * 1_000 + 999)
}

impl Common {
    /// Ends the program.
    pub fn end(&self) {
        self.over.store(true, Relaxed);
    }

    /// Returns true if the program has ended.
    pub fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    fn check(&self, value: Nanos) {
        let Some(limit) = self.limit.as_ref().filter(|limit| value > limit.above) else {
            return;
        };
        if self.over.swap(true, Relaxed) {
            return;
        }
        if let Some(tracing) = &limit.tracing {
            tracing.stop("hit latency threshold");
        }
        self.broken.1.store(value.0, Relaxed);
        self.broken.0.store(process::thread_id() as u64, Relaxed);
    }
}

/// One thread's numbers: written by the thread, read by the one that prints.
#[derive(Debug)]
pub struct Shared {
    /// The thread's id; 0 before it runs.
    pub tid: AtomicU64,
    cycles: AtomicU64,
    sum: AtomicI64,
    min: AtomicI64,
    act: AtomicI64,
    max: AtomicI64,
    smis: AtomicU64,
    /// Values, with the number of SMIs that occurred meanwhile.
    waiting: Box<[(AtomicI64, AtomicU64)]>,
}

/// One thread's numbers at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The number of values.
    pub cycles: u64,
    /// Their sum.
    pub sum: Nanos,
    /// The smallest value; `None` if there is none.
    pub min: Option<Nanos>,
    /// The last value.
    pub act: Nanos,
    /// The largest value; zero if there is none.
    pub max: Nanos,
    /// The number of SMIs, if they are counted.
    pub smis: u64,
}

impl Shared {
    /// Creates empty numbers; with `each`, values wait to be printed one by one.
    pub fn new(each: bool) -> Self {
        let slots = if each { WAITING } else { 0 };
        Self {
            tid: AtomicU64::new(0),
            cycles: AtomicU64::new(0),
            sum: AtomicI64::new(0),
            min: AtomicI64::new(i64::MAX),
            act: AtomicI64::new(0),
            max: AtomicI64::new(0),
            smis: AtomicU64::new(0),
            waiting: (0..slots).map(|_| Default::default()).collect(),
        }
    }

    /// Returns the current numbers.
    pub fn seen(&self) -> Seen {
        let cycles = self.cycles.load(Relaxed);
        let min = Nanos(self.min.load(Relaxed));
        Seen {
            cycles,
            sum: Nanos(self.sum.load(Relaxed)),
            min: (cycles > 0).then_some(min),
            act: Nanos(self.act.load(Relaxed)),
            max: Nanos(self.max.load(Relaxed)),
            smis: self.smis.load(Relaxed),
        }
    }

    /// Returns the values from number `from` on that still wait to be printed: number, value, and
    /// the SMIs that occurred meanwhile.
    pub fn values(&self, from: u64) -> impl Iterator<Item = (u64, Nanos, u64)> + '_ {
        let cycles = self.cycles.load(std::sync::atomic::Ordering::Acquire);
        let slots = self.waiting.len() as u64;
        (from.max(cycles.saturating_sub(slots))..cycles).map(move |number| {
            let (value, smis) = &self.waiting[(number % slots) as usize];
            (number, Nanos(value.load(Relaxed)), smis.load(Relaxed))
        })
    }
}

/// A table of counts for values from zero on; values above it are counted separately.
#[derive(Debug, Default)]
pub struct Table {
    /// A bin's width in nanoseconds.
    pub width_ns: i64,
    /// The counts. A value's bin is its number of whole widths.
    pub bins: Vec<u64>,
    /// The number of values without a bin.
    pub overflows: u64,
    /// The numbers of the first of these values, as many as there are bins.
    pub overflow_cycles: Vec<u64>,
}

impl Table {
    /// Creates an empty table; all its memory is allocated and touched.
    pub fn new(width_ns: i64, bins: usize) -> Self {
        let touched = |value| {
            let mut numbers = vec![1_u64; bins];
            numbers.fill(value);
            numbers
        };
        let mut overflow_cycles = touched(0);
        overflow_cycles.clear();
        Self {
            width_ns,
            bins: touched(0),
            overflows: 0,
            overflow_cycles,
        }
    }

    fn count(&mut self, cycle: u64, value: Nanos) {
        if self.width_ns == 0 {
            return;
        }
        let bin = usize::try_from(value.0.max(0) / self.width_ns);
        if let Some(count) = bin.ok().and_then(|bin| self.bins.get_mut(bin)) {
            *count += 1;
            return;
        }
        self.overflows += 1;
        if self.overflow_cycles.len() < self.overflow_cycles.capacity() {
            self.overflow_cycles.push(cycle);
        }
    }
}

/// Takes samples for one thread.
#[derive(Debug)]
pub struct Live<'a> {
    common: &'a Common,
    shared: &'a Shared,
    /// Counts by value.
    pub table: Table,
    /// The thread's number, and the moment from which its samples' times are counted: a spike is
    /// recorded with both.
    pub origin: (usize, Nanos),
    /// The counter of SMIs of the thread's CPU, if requested. A counter that cannot be read
    /// any more ends the program.
    pub smis: Option<SmiCounter>,
    /// The reason why the counter could not be read.
    pub unread: Option<io::Error>,
    duration: Option<Nanos>,
    over: bool,
    seen: Seen,
}

impl<'a> Live<'a> {
    /// Takes samples into `shared` and `table`, for `duration` at most.
    pub fn new(
        common: &'a Common,
        shared: &'a Shared,
        table: Table,
        duration: Option<Nanos>,
    ) -> Self {
        shared.tid.store(process::thread_id() as u64, Relaxed);
        Self {
            common,
            shared,
            table,
            origin: (0, Nanos::ZERO),
            smis: None,
            unread: None,
            duration,
            over: false,
            seen: shared.seen(),
        }
    }

    /// Returns the number of SMIs since the last sample.
    fn more_smis(&mut self) -> u64 {
        match self.smis.as_mut().map_or(Ok(0), SmiCounter::more) {
            Ok(more) => more,
            Err(error) => {
                self.unread = Some(error);
                self.common.end();
                0
            }
        }
    }
}

impl Sink for Live<'_> {
    #[inline]
    fn record(&mut self, at: Nanos, value: Nanos) {
        let smis = self.more_smis();
        let (seen, shared) = (&mut self.seen, self.shared);
        self.table.count(seen.cycles, value);
        if !shared.waiting.is_empty() {
            let slot = seen.cycles % shared.waiting.len() as u64;
            let slot = &shared.waiting[slot as usize];
            slot.0.store(value.0, Relaxed);
            slot.1.store(smis, Relaxed);
        }
        if let Some(spikes) = &self.common.spikes {
            spikes.check(self.origin.0, self.origin.1 + at + value, value);
        }
        seen.cycles += 1;
        seen.sum += value;
        seen.smis += smis;
        let min = seen.min.map_or(value, |min| min.min(value));
        (seen.min, seen.max) = (Some(min), seen.max.max(value));
        shared.sum.store(seen.sum.0, Relaxed);
        shared.min.store(min.0, Relaxed);
        shared.act.store(value.0, Relaxed);
        shared.max.store(seen.max.0, Relaxed);
        shared.smis.store(seen.smis, Relaxed);
        // Last, so that who sees the number sees the values too.
        let released = std::sync::atomic::Ordering::Release;
        shared.cycles.store(seen.cycles, released);
        self.over = self.duration.is_some_and(|duration| at + value >= duration);
        self.common.check(value);
    }

    #[inline]
    fn miss(&mut self, _periods: u64) {}

    #[inline]
    fn is_over(&mut self) -> bool {
        self.over || self.common.is_over()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn each_value_is_counted_once_and_nothing_past_the_table() {
        let (common, shared) = (Common::default(), Shared::new(false));
        let mut live = Live::new(&common, &shared, Table::new(1_000, 3), None);
        for value in [0, 999, 1_000, 2_999, 3_000, i64::MAX / 8, -5] {
            live.record(Nanos::ZERO, Nanos(value));
        }
        assert_eq!(live.table.bins, [3, 1, 1]);
        assert_eq!(
            (live.table.overflows, &live.table.overflow_cycles[..]),
            (2, &[4, 5][..])
        );
        assert_eq!(shared.seen().cycles, 7);
        assert_eq!(shared.seen().min, Some(Nanos(-5)));
    }

    #[test]
    fn values_wait_until_they_are_printed_and_the_oldest_give_way() {
        let (common, shared) = (Common::default(), Shared::new(true));
        let mut live = Live::new(&common, &shared, Table::default(), None);
        for value in 0..WAITING as i64 + 5 {
            live.record(Nanos::ZERO, Nanos(value));
        }
        let values: Vec<_> = shared.values(2).collect();
        assert_eq!((values.len(), values[0]), (WAITING, (5, Nanos(5), 0)));
        assert_eq!(shared.values(WAITING as u64 + 4).count(), 1);
    }

    #[test]
    fn a_value_above_the_limit_or_the_end_of_the_time_ends_it() {
        let above = Nanos(100);
        let tracing = None;
        let common = Common {
            limit: Some(Limit { above, tracing }),
            ..Common::default()
        };
        let shared = Shared::new(false);
        let mut live = Live::new(&common, &shared, Table::default(), Some(Nanos(1_000)));
        live.record(Nanos(0), Nanos(100));
        assert!(!live.is_over());
        live.record(Nanos(950), Nanos(50));
        assert!(live.is_over() && !common.is_over());
        live.record(Nanos(951), Nanos(101));
        assert!(common.is_over());
        assert_eq!(common.broken.1.load(Relaxed), 101);
        assert_ne!(common.broken.0.load(Relaxed), 0);
    }

    #[test]
    fn whole_microseconds_are_compared() {
        assert_eq!(whole_micros(7), Nanos(7_999));
        let limit = Limit::new(whole_micros(7), false).unwrap();
        assert_eq!(limit.above, Nanos(7_999));
    }

    #[test]
    fn smis_are_told_with_each_value_and_together_until_they_cannot_be_read() {
        let registers = tempfile::NamedTempFile::new().unwrap();
        let set = |count: u64| registers.as_file().write_all_at(&count.to_ne_bytes(), 0x34);
        set(0xffff_fffe).unwrap();
        let (common, shared) = (Common::default(), Shared::new(true));
        let mut live = Live::new(&common, &shared, Table::default(), None);
        live.smis = Some(SmiCounter::new(registers.reopen().unwrap()).unwrap());
        for count in [0xffff_fffe, 1, 2] {
            set(count).unwrap();
            live.record(Nanos::ZERO, Nanos(10));
        }
        let told = shared.values(0).map(|(_, _, smis)| smis);
        assert_eq!(told.collect::<Vec<_>>(), [0, 3, 1]);
        assert_eq!(shared.seen().smis, 4);
        assert!(live.unread.is_none() && !common.is_over());
        registers.as_file().set_len(0).unwrap();
        live.record(Nanos::ZERO, Nanos(10));
        assert!(live.unread.is_some() && common.is_over());
    }

    #[test]
    fn taking_a_sample_allocates_nothing() {
        let (common, shared) = (Common::default(), Shared::new(true));
        let common = Common {
            spikes: Some(Spikes::new(Nanos(10), 20)),
            ..common
        };
        let mut live = Live::new(&common, &shared, Table::new(1_000, 3), None);
        let before = crate::sys::counting_allocator::allocations();
        for value in 0..10_000 {
            live.record(Nanos(value), Nanos(value));
        }
        assert_eq!(crate::sys::counting_allocator::allocations(), before);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A histogram of nanoseconds that never loses values silently.

use std::collections::BTreeMap;
use std::iter;

use hdrhistogram::Histogram as Hdr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::Nanos;

/// Values above this are counted in [`Histogram::overflow`] instead of a bin.
pub const HIGHEST: Nanos = Nanos(1 << 40); // 18 minutes

/// The most samples that a [correction](Histogram::corrected_for) adds: a thousand stalls of
/// ten seconds at 1 kHz.
pub const CORRECTIONS_MAX: u64 = 10_000_000;

/// The number of significant decimal digits to which a value is kept.
///
/// With three digits a bin is never wider than 0.1 % of its value, and values
/// below 2,048 ns are kept exactly.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Counts of samples by value: log-linear bins, fixed range, no allocation when recording.
///
/// Counts from other programs have bins of their own: [`record_between`](Self::record_between)
/// keeps their edges as they are, from a single value up to "somewhere between the smallest and
/// the largest".
///
/// The sum of all bins, plus [`overflow`](Self::overflow), plus
/// [`negative`](Self::negative) is always the number of values recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bins: Hdr<u64>,
    /// Bins with edges of their own, both included.
    foreign: BTreeMap<(i64, i64), u64>,
    overflow: u64,
    negative: u64,
}

impl Histogram {
    /// Creates an empty histogram. All memory that it will ever need is allocated here.
    ///
    /// # Panics
    /// Never: the bounds are constants that are valid.
    pub fn new() -> Self {
        let bins = Hdr::new_with_bounds(1, HIGHEST.0 as u64, SIGNIFICANT_DIGITS)
            .expect("the constants above are valid bounds");
        Self {
            bins,
            foreign: BTreeMap::new(),
            overflow: 0,
            negative: 0,
        }
    }

    /// Counts one value. Neither allocates nor locks.
    pub fn record(&mut self, value: Nanos) {
        self.record_n(value, 1);
    }

    /// Counts one value `n` times.
    pub fn record_n(&mut self, value: Nanos, n: u64) {
        if value < Nanos::ZERO {
            self.negative = self.negative.saturating_add(n);
        } else if value > HIGHEST || self.bins.record_n(value.0 as u64, n).is_err() {
            self.overflow = self.overflow.saturating_add(n);
        }
    }

    /// Counts `n` values, of which it is only known that each is from `low` to `high`.
    pub fn record_between(&mut self, low: Nanos, high: Nanos, n: u64) {
        let (low, high) = (low.min(high), low.max(high));
        if n > 0 {
            let count = self.foreign.entry((low.0, high.0)).or_default();
            *count = count.saturating_add(n);
        }
    }

    /// Iterates over the bins with the edges that all histograms have, lowest first.
    pub fn own(&self) -> impl Iterator<Item = Bin> + '_ {
        self.bins.iter_recorded().map(|bin| Bin {
            low: Nanos(self.bins.lowest_equivalent(bin.value_iterated_to()) as i64),
            high: Nanos(self.bins.highest_equivalent(bin.value_iterated_to()) as i64),
            count: bin.count_at_value(),
        })
    }

    /// Iterates over the bins with edges of their own, lowest first.
    pub fn foreign(&self) -> impl Iterator<Item = Bin> + '_ {
        let bins = self.foreign.iter();
        bins.map(|(&(low, high), &count)| Bin {
            low: Nanos(low),
            high: Nanos(high),
            count,
        })
    }

    /// Forgets all values, but keeps its memory.
    pub fn clear(&mut self) {
        self.bins.reset();
        self.foreign.clear();
        (self.overflow, self.negative) = (0, 0);
    }

    /// Adds all values of another histogram.
    ///
    /// # Panics
    /// Never: all histograms have the same bounds.
    pub fn add(&mut self, other: &Self) {
        self.bins
            .add(&other.bins)
            .expect("all histograms have the same bounds");
        for bin in other.foreign() {
            self.record_between(bin.low, bin.high, bin.count);
        }
        self.overflow = self.overflow.saturating_add(other.overflow);
        self.negative = self.negative.saturating_add(other.negative);
    }

    /// The number of values recorded, including those outside of the bins.
    pub fn count(&self) -> u64 {
        let outside = self.overflow.saturating_add(self.negative);
        self.inside().saturating_add(outside)
    }

    /// The number of values in bins.
    fn inside(&self) -> u64 {
        let foreign = self.foreign.values().copied();
        foreign.fold(self.bins.len(), u64::saturating_add)
    }

    /// The number of values above [`HIGHEST`].
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// The number of values below zero.
    pub fn negative(&self) -> u64 {
        self.negative
    }

    /// Returns the value that a share `q` (0 to 1) of all values does not exceed, as the upper edge
    /// of a bin. `None` if the histogram cannot tell: it is empty, the rank falls among the values
    /// outside of its bins, or the bin is wider than one of its own would be.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        let (low, high) = self.quantile_between(q)?;
        is_close(low, high).then_some(high)
    }

    /// Returns the bounds of that quantile, lowest and highest; `None` if the histogram is empty,
    /// or if the rank falls among the values outside of its bins.
    pub fn quantile_between(&self, q: f64) -> Option<(Nanos, Nanos)> {
        let rank = ((q * self.count() as f64).ceil() as u64).max(1);
        let rank = rank.checked_sub(self.negative)?;
        if rank == 0 || rank > self.inside() {
            return None;
        }
        if self.foreign.is_empty() {
            let inside_q = rank as f64 / self.bins.len() as f64;
            let high = self.bins.value_at_quantile(inside_q);
            let low = self.bins.lowest_equivalent(high);
            return Some((Nanos(low as i64), Nanos(high as i64)));
        }
        // Bins may overlap: as low as if each value were at its bin's lower edge.
        let mut highs: Vec<(Nanos, u64)> = self.bins().map(|bin| (bin.high, bin.count)).collect();
        highs.sort_unstable();
        let low = at_rank(self.bins().map(|bin| (bin.low, bin.count)), rank)?;
        Some((low, at_rank(highs.into_iter(), rank)?))
    }

    /// Iterates over the bins that are not empty, lowest first. Those of another program may
    /// overlap.
    pub fn bins(&self) -> impl Iterator<Item = Bin> + '_ {
        let (mut own, mut foreign) = (self.own().peekable(), self.foreign().peekable());
        iter::from_fn(move || match (own.peek(), foreign.peek()) {
            (Some(one), Some(other)) if other.low < one.low => foreign.next(),
            (None, _) => foreign.next(),
            _ => own.next(),
        })
    }

    /// Returns the histogram that a source would have seen if it took a sample every
    /// `interval`, no matter whether the previous one was late: a value of 3.2
    /// intervals also counts as 2.2, 1.2 and 0.2 intervals.
    ///
    /// This is the correction for coordinated omission of Gil Tene's `HdrHistogram`
    /// (`recordValueWithExpectedInterval`), made from the bins after the fact. `None` if there is
    /// no interval, if bins are too wide to tell by how much a value was late, or if more than
    /// [`CORRECTIONS_MAX`] samples would have to be
    /// added: such values are no latencies of that interval.
    pub fn corrected_for(&self, interval: Nanos) -> Option<Self> {
        if interval <= Nanos::ZERO || !self.foreign().all(|bin| is_close(bin.low, bin.high)) {
            return None;
        }
        let steps = |bin: Bin| ((bin.high.0 - 1) / interval.0).unsigned_abs();
        if self.bins().map(steps).sum::<u64>() > CORRECTIONS_MAX {
            return None;
        }
        let mut corrected = self.clone();
        for bin in self.bins() {
            let mut omitted = bin.high - interval;
            while omitted > Nanos::ZERO {
                corrected.record_n(omitted, bin.count);
                omitted = omitted - interval;
            }
        }
        Some(corrected)
    }
}

/// Returns true if a bin with these edges is no wider than a histogram's own bin may be.
pub fn is_close(low: Nanos, high: Nanos) -> bool {
    let width = high.0.abs_diff(low.0);
    width <= low.0.unsigned_abs().max(high.0.unsigned_abs()) / 1_000
}

/// Returns the value of the given rank, from 1.
fn at_rank(sorted: impl Iterator<Item = (Nanos, u64)>, rank: u64) -> Option<Nanos> {
    let mut seen = 0_u64;
    let mut found = sorted.filter(|(_, count)| {
        seen = seen.saturating_add(*count);
        seen >= rank
    });
    found.next().map(|(value, _)| value)
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// A bin of a [`Histogram`]: `count` values from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The lowest value that falls into the bin.
    pub low: Nanos,
    /// The highest value that falls into the bin.
    pub high: Nanos,
    /// The number of values that fell into it.
    pub count: u64,
}

/// The form in which a histogram is sent: bins that are not empty, and values outside of them.
#[derive(Serialize, Deserialize)]
struct Sparse {
    bins: Vec<(i64, u64)>,
    overflow: u64,
    negative: u64,
    /// Bins with edges of their own: lowest value, highest value, count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    foreign: Vec<(i64, i64, u64)>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let own = self.own().map(|bin| (bin.low.0, bin.count));
        let foreign = self.foreign();
        Sparse {
            bins: own.collect(),
            foreign: foreign
                .map(|one| (one.low.0, one.high.0, one.count))
                .collect(),
            overflow: self.overflow,
            negative: self.negative,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sparse = Sparse::deserialize(deserializer)?;
        let mut histogram = Self::new();
        for (low, count) in sparse.bins {
            if !(0..=HIGHEST.0).contains(&low) {
                let found = format!("a histogram bin at {low} ns, outside 0 to {}", HIGHEST.0);
                return Err(serde::de::Error::custom(found));
            }
            histogram.record_n(Nanos(low), count);
        }
        for (low, high, count) in sparse.foreign {
            if low > high {
                let found = format!("a histogram bin from {low} to {high} ns");
                return Err(serde::de::Error::custom(found));
            }
            histogram.record_between(Nanos(low), Nanos(high), count);
        }
        histogram.overflow = histogram.overflow.saturating_add(sparse.overflow);
        histogram.negative = sparse.negative;
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bins_and_what_fell_outside_add_up_to_the_count(
            values in prop::collection::vec(any::<i64>(), 0..200)
        ) {
            let mut histogram = Histogram::new();
            for value in &values {
                histogram.record(Nanos(*value));
            }
            let inside: u64 = histogram.bins().map(|bin| bin.count).sum();
            prop_assert_eq!(histogram.count(), values.len() as u64);
            prop_assert_eq!(
                inside + histogram.overflow() + histogram.negative(),
                values.len() as u64
            );
        }

        #[test]
        fn what_travels_comes_back_the_same(
            values in prop::collection::vec(-10_i64..2_000_000_000_000, 0..200)
        ) {
            let mut histogram = Histogram::new();
            for value in values {
                histogram.record(Nanos(value));
            }
            let mut bytes = Vec::new();
            ciborium::into_writer(&histogram, &mut bytes).unwrap();
            let back: Histogram = ciborium::from_reader(bytes.as_slice()).unwrap();
            prop_assert_eq!(back.bins().collect::<Vec<_>>(), histogram.bins().collect::<Vec<_>>());
            prop_assert_eq!(back.count(), histogram.count());
        }
    }

    #[test]
    fn a_quantile_is_a_value_that_was_recorded_to_three_digits() {
        let mut histogram = Histogram::new();
        for value in 1..=1000 {
            histogram.record(Nanos(value));
        }
        assert_eq!(histogram.quantile(0.5), Some(Nanos(500)));
        assert_eq!(histogram.quantile(1.0), Some(Nanos(1000)));
        assert_eq!(Histogram::new().quantile(0.5), None);
    }

    #[test]
    fn a_quantile_lies_between_the_edges_of_a_bin_of_any_width() {
        let mut counted = Histogram::new();
        let between = |low, high| Some((Nanos(low), Nanos(high)));
        // Whole microseconds, as they are written.
        counted.record_between(Nanos(5_000), Nanos(5_000), 9);
        counted.record_between(Nanos(9_000), Nanos(9_000), 1);
        assert_eq!(counted.quantile(0.5), Some(Nanos(5_000)));
        assert_eq!(counted.quantile_between(1.0), between(9_000, 9_000));
        // Somewhere between the smallest and the largest.
        let mut unknown = Histogram::new();
        unknown.record_between(Nanos(1), Nanos(1), 1);
        unknown.record_between(Nanos(1), Nanos(99), 98);
        unknown.record_between(Nanos(99), Nanos(99), 1);
        assert_eq!(unknown.quantile_between(0.01), between(1, 1));
        assert_eq!(unknown.quantile_between(0.5), between(1, 99));
        assert_eq!((unknown.quantile(0.5), unknown.count()), (None, 100));
        assert_eq!(unknown.corrected_for(Nanos(10)), None);
        // Bins of both kinds, and such that overlap.
        counted.record_n(Nanos(7_000), 5);
        counted.record_between(Nanos(4_000), Nanos(8_000), 5);
        let lows: Vec<i64> = counted.bins().map(|bin| bin.low.0).collect();
        assert_eq!(lows, [4_000, 5_000, 7_000, 9_000]);
        assert_eq!(counted.quantile_between(0.5), between(5_000, 7_003));
        let mut bytes = Vec::new();
        ciborium::into_writer(&counted, &mut bytes).unwrap();
        let back: Histogram = ciborium::from_reader(bytes.as_slice()).unwrap();
        assert_eq!(back, counted);
        let mut twice = counted.clone();
        twice.add(&back);
        assert_eq!(twice.count(), 40);
    }

    #[test]
    fn a_quantile_that_falls_into_the_overflow_is_unknown_not_invented() {
        let mut histogram = Histogram::new();
        histogram.record(Nanos(10));
        histogram.record(Nanos(i64::MAX));
        assert_eq!(histogram.quantile(0.5), Some(Nanos(10)));
        assert_eq!(histogram.quantile(0.9), None);
    }

    #[test]
    fn the_correction_adds_the_samples_that_a_late_one_displaced() {
        let mut histogram = Histogram::new();
        histogram.record(Nanos(100));
        histogram.record(Nanos(3_200));
        let corrected = histogram.corrected_for(Nanos(1_000)).unwrap();
        let values: Vec<i64> = corrected.bins().map(|bin| bin.high.0).collect();
        assert_eq!(values, [100, 201, 1_201, 2_201, 3_201]);
        assert_eq!(corrected.count(), 5);
    }

    #[test]
    fn a_correction_without_end_is_refused() {
        let mut histogram = Histogram::new();
        histogram.record(HIGHEST);
        assert_eq!(histogram.corrected_for(Nanos(1)), None);
        assert_eq!(histogram.corrected_for(Nanos::ZERO), None);
        assert!(histogram.corrected_for(Nanos(1_000_000)).is_some());
    }

    #[test]
    fn counts_at_the_end_of_their_range_do_not_wrap() {
        let mut histogram = Histogram::new();
        for value in [-1, 5, i64::MAX] {
            histogram.record_n(Nanos(value), u64::MAX);
        }
        histogram.add(&histogram.clone());
        assert_eq!(histogram.count(), u64::MAX);
        assert!(histogram.bins().count() == 1);
    }
}

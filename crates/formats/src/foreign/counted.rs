// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of one thread: its bins, checked against its other figures.

use std::collections::BTreeMap;

/// The counts of a thread, in the file's unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// Name of the thread: `cpu0`, `thread 1`.
    pub variant: String,
    /// Counts by the lowest value of their bin.
    pub bins: BTreeMap<u64, u64>,
    /// The number of values in a bin; 1 if values are counted as they are written.
    pub width: u64,
    /// True if bins hold absolute values: values below zero are counted as if they were above.
    pub is_absolute: bool,
    /// The number of samples without a bin.
    pub over: u64,
    /// The smallest possible value of a sample without a bin.
    pub over_from: u64,
    /// The number of samples.
    pub count: u64,
    /// The smallest sample, if it is stated.
    pub min: Option<i64>,
    /// The largest sample.
    pub max: Option<i64>,
    /// The bounds of the mean, as it is stated.
    pub mean: Option<(f64, f64)>,
    /// The nominal time between two samples, in microseconds, if it is stated for this thread.
    pub interval_us: Option<u64>,
    /// Its real-time priority, if it is stated for this thread.
    pub priority: Option<u64>,
    /// Its id, as the kernel counts threads, if it is stated.
    pub tid: Option<u64>,
    /// The reason why the distribution is known only in part, and the way to get the whole.
    pub gap: Option<String>,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            variant: String::new(),
            bins: BTreeMap::new(),
            width: 1,
            is_absolute: false,
            over: 0,
            over_from: 0,
            count: 0,
            min: None,
            max: None,
            mean: None,
            interval_us: None,
            priority: None,
            tid: None,
            gap: None,
        }
    }
}

/// Samples that are only known to lie between two values, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest possible value.
    pub low: i64,
    /// The largest possible value.
    pub high: i64,
    /// The number of samples.
    pub count: u64,
}

/// All that is known about a thread's samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// All samples.
    pub ranges: Vec<Range>,
    /// The bounds of their mean.
    pub mean: (f64, f64),
}

impl Counted {
    /// Returns all that is known about the samples.
    ///
    /// # Errors
    /// Fails if two numbers of the file contradict each other, and names them.
    pub fn distribution(&self) -> Result<Distribution, String> {
        let binned = self.bins.values().copied().fold(0, u64::saturating_add);
        let found = binned.saturating_add(self.over);
        if found != self.count {
            let without = match self.over {
                0 => String::new(),
                over => format!(" and {over} without a bin"),
            };
            let count = self.count;
            return Err(format!(
                "expected {count} samples, found {binned} in its bins{without}"
            ));
        }
        if self.count == 0 {
            return Ok(Distribution::default());
        }
        let max = self.max.ok_or("expected its largest sample, found none")?;
        let min = self.min;
        if let Some(min) = min.filter(|min| *min > max) {
            return Err(format!(
                "its smallest sample is {min}, and its largest {max}"
            ));
        }
        let mut ranges = self.ranges(max)?;
        self.place_extremes(&mut ranges, min, max)?;
        for range in &mut ranges {
            // What is below zero is counted as if it were above.
            if let Some(min) = min.filter(|min| self.is_early() && range.low <= -*min) {
                range.low = range.low.min(-range.high.min(-min));
            }
            range.high = range.high.min(max);
            range.low = range.low.max(min.unwrap_or(i64::MIN)).min(range.high);
            range.high = range.high.max(range.low);
        }
        let mean = self.mean_of(&ranges)?;
        Ok(Distribution { ranges, mean })
    }

    /// Returns true if bins also hold values below zero.
    fn is_early(&self) -> bool {
        self.is_absolute && self.min.is_some_and(|min| min < 0)
    }

    /// Returns the bins, and the samples that have no bin.
    fn ranges(&self, max: i64) -> Result<Vec<Range>, String> {
        let mut ranges = Vec::new();
        for (bin, count) in self.bins.iter().filter(|(_, count)| **count > 0) {
            let low = i64::try_from(*bin).map_err(|_| format!("expected a time, found {bin}"))?;
            let width = i64::try_from(self.width.max(1) - 1).unwrap_or(i64::MAX);
            let high = low.saturating_add(width);
            let count = *count;
            ranges.push(Range { low, high, count });
        }
        if self.over > 0 {
            let low = i64::try_from(self.over_from).unwrap_or(i64::MAX);
            if max < low {
                let over = self.over;
                return Err(format!(
                    "its largest sample is {max}, and {over} are said to be {low} or more"
                ));
            }
            let count = self.over;
            ranges.push(Range {
                low,
                high: max,
                count,
            });
        }
        Ok(ranges)
    }

    /// Moves the smallest and the largest sample out of their bins.
    fn place_extremes(
        &self,
        ranges: &mut Vec<Range>,
        min: Option<i64>,
        max: i64,
    ) -> Result<(), String> {
        let (lowest, highest) = (ranges.first().copied(), ranges.last().copied());
        let (Some(lowest), Some(highest)) = (lowest, highest) else {
            return Ok(());
        };
        let is_early = self.is_early();
        let holds = |range: &Range, value: i64| {
            let value = if is_early {
                value.saturating_abs()
            } else {
                value
            };
            (range.low..=range.high).contains(&value)
        };
        // Of absolute values the farthest from zero is in the last bin.
        let farthest = min.filter(|min| is_early && -min > max).unwrap_or(max);
        if !holds(&highest, farthest) {
            return Err(format!(
                "its largest sample is {max}, and its last bin {}",
                shown(&highest)
            ));
        }
        if let Some(min) = min.filter(|min| !is_early && !holds(&lowest, *min)) {
            return Err(format!(
                "its smallest sample is {min}, and its first bin {}",
                shown(&lowest)
            ));
        }
        let mut take = |value: i64| -> Result<(), String> {
            let mut all = ranges.iter_mut().rev();
            let own = all.find(|range| range.count > 0 && holds(range, value));
            let own = own.ok_or_else(|| format!("no bin has a sample for its {value}"))?;
            own.count -= 1;
            Ok(())
        };
        take(max)?;
        if let Some(min) = min.filter(|_| self.count > 1) {
            take(min)?;
        } else if min.is_some_and(|min| min != max) {
            return Err(format!(
                "it has one sample, which cannot be both {} and {max}",
                min.unwrap_or(max)
            ));
        }
        let one = |value| Range {
            low: value,
            high: value,
            count: 1,
        };
        ranges.retain(|range| range.count > 0);
        ranges.push(one(max));
        ranges.extend(min.filter(|_| self.count > 1).map(one));
        Ok(())
    }

    /// Returns the bounds of the mean, from both the bins and the stated mean.
    fn mean_of(&self, ranges: &[Range]) -> Result<(f64, f64), String> {
        let sum = |edge: fn(&Range) -> i64| {
            let parts = ranges.iter();
            let parts = parts.map(|range| edge(range) as f64 * range.count as f64);
            parts.sum::<f64>() / self.count as f64
        };
        let (low, high) = (sum(|range| range.low), sum(|range| range.high));
        let Some((least, most)) = self.mean else {
            return Ok((low, high));
        };
        // Both are sums of many numbers, by a program that rounds.
        let slack = high.abs() * 1e-9 + 1e-9;
        if least > high + slack || most < low - slack {
            return Err(format!(
                "its mean is {}, and its bins have one from {} to {}",
                short(least),
                short(low),
                short(high)
            ));
        }
        let between = (low.max(least), high.min(most));
        Ok((between.0.min(between.1), between.1.max(between.0)))
    }
}

fn shown(range: &Range) -> String {
    if range.low == range.high {
        format!("is {}", range.low)
    } else {
        format!("is from {} to {}", range.low, range.high)
    }
}

/// Formats a number, with two decimals if it has any.
fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    text.strip_suffix(".00").map_or(text.clone(), str::to_owned)
}

/// Returns the bounds of a mean that is printed this way: a whole number was cut off; any other
/// number was rounded or cut off at its last decimal.
pub fn printed_mean(word: &str) -> Option<(f64, f64)> {
    let mean: f64 = word.parse().ok()?;
    if !mean.is_finite() || mean.abs() > 1e18 {
        return None;
    }
    match word.split_once('.') {
        None => Some((mean, mean + 1.0)),
        Some((_, decimals)) => {
            let step = 0.1_f64.powi(decimals.len().min(9) as i32);
            Some((mean - step, mean + step))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(bins: &[(u64, u64)], min: i64, max: i64, mean: (f64, f64)) -> Counted {
        Counted {
            bins: bins.iter().copied().collect(),
            count: bins.iter().map(|(_, count)| count).sum(),
            min: Some(min),
            max: Some(max),
            mean: Some(mean),
            ..Counted::default()
        }
    }

    fn error(counted: &Counted) -> String {
        counted.distribution().unwrap_err()
    }

    #[test]
    fn a_value_is_what_is_written() {
        let found = counted(&[(5, 9_000), (9, 1_000)], 5, 9, (5.0, 6.0));
        let found = found.distribution().unwrap();
        assert!(found.ranges.iter().all(|range| range.low == range.high));
        assert_eq!(found.mean, (5.4, 5.4));
        let all: u64 = found.ranges.iter().map(|range| range.count).sum();
        assert_eq!(all, 10_000);
    }

    #[test]
    fn wide_bins_reach_no_farther_than_the_extremes() {
        let mut wide = counted(&[(0, 2), (10, 5)], 3, 17, (8.0, 9.0));
        wide.width = 10;
        let found = wide.distribution().unwrap();
        let edges: Vec<_> = found
            .ranges
            .iter()
            .map(|one| (one.low, one.high, one.count))
            .collect();
        assert_eq!(edges, [(3, 9, 1), (10, 17, 4), (17, 17, 1), (3, 3, 1)]);
        // By its bins the mean is from 9 to 14.2.
        wide.mean = Some((9.0, 10.0));
        let (low, high) = wide.distribution().unwrap().mean;
        assert!(low >= 9.0 && high <= 10.0, "{low} {high}");
        wide.mean = Some((15.0, 16.0));
        assert!(error(&wide).contains("its mean is 15"), "{}", error(&wide));
    }

    #[test]
    fn what_has_no_bin_lies_above_the_last_one() {
        let mut over = counted(&[(25, 5), (998, 1)], 25, 3_030, (500.0, 1_000.0));
        (over.over, over.over_from, over.count) = (2, 1_000, 8);
        let found = over.distribution().unwrap();
        assert!(found.ranges.contains(&Range {
            low: 1_000,
            high: 3_030,
            count: 1
        }));
        over.max = Some(998);
        assert!(error(&over).contains("its largest sample is 998, and 2"));
        // No bin at all.
        let mut plain = counted(&[], 1, 50, (3.0, 4.0));
        (plain.over, plain.over_from, plain.count) = (100, 1, 100);
        let found = plain.distribution().unwrap();
        assert_eq!((found.ranges.len(), found.mean), (3, (3.0, 4.0)));
    }

    #[test]
    fn what_contradicts_itself_is_told_with_both_numbers() {
        let sound = || counted(&[(5, 9), (9, 1)], 5, 9, (5.0, 6.0));
        let wrong = |change: fn(&mut Counted)| {
            let mut counted = sound();
            change(&mut counted);
            error(&counted)
        };
        for (change, expected) in [
            (
                (|one| one.count = 11) as fn(&mut Counted),
                "expected 11 samples, found 10",
            ),
            (
                |one| one.min = Some(4),
                "smallest sample is 4, and its first bin is 5",
            ),
            (
                |one| one.max = Some(10),
                "largest sample is 10, and its last bin is 9",
            ),
            (
                |one| one.max = Some(5),
                "largest sample is 5, and its last bin is 9",
            ),
            (
                |one| one.min = Some(10),
                "smallest sample is 10, and its largest 9",
            ),
            (
                |one| one.mean = Some((6.0, 7.0)),
                "mean is 6, and its bins have one from 5.40",
            ),
            (|one| one.max = None, "expected its largest"),
        ] {
            let error = wrong(change);
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let mut one = counted(&[(5, 1)], 5, 5, (5.0, 6.0));
        assert!(one.distribution().is_ok());
        one.width = 3;
        one.max = Some(6);
        assert!(error(&one).contains("cannot be both 5 and 6"));
    }

    #[test]
    fn absolute_values_may_have_been_below_zero() {
        let mut signed = counted(
            &[(0, 9_000), (2_000, 10_999), (52_000, 1)],
            -343,
            52_299,
            (1_000.0, 2_866.0),
        );
        (signed.width, signed.is_absolute) = (1_000, true);
        let found = signed.distribution().unwrap();
        let first = found.ranges[0];
        assert_eq!((first.low, first.high, first.count), (-343, 999, 8_999));
        // The smallest may be the farthest from zero.
        let mut early = counted(&[(0, 5), (7_000, 1)], -7_500, 400, (-2_000.0, 0.0));
        (early.width, early.is_absolute) = (1_000, true);
        assert!(early.distribution().is_ok());
    }

    #[test]
    fn a_mean_is_cut_off_or_rounded() {
        assert_eq!(printed_mean("00017"), Some((17.0, 18.0)));
        let (low, high) = printed_mean("41.54").unwrap();
        assert!(low < 41.535 && high > 41.545 && high - low < 0.03);
        assert_eq!(printed_mean("-nan"), None);
        assert_eq!(printed_mean("x"), None);
    }
}

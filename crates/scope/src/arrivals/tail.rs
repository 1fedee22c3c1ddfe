// SPDX-License-Identifier: MIT OR Apache-2.0
//! The share of the time in which arrivals are later than a value.

use std::collections::BTreeMap;

use super::path::{Paths, State};

/// Time in which what is off would delay an arrival, from `most` down to `least`, one nanosecond
/// less each nanosecond. Then the path follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slope {
    /// The delay at its start.
    pub most: u64,
    /// The delay at its end.
    pub least: u64,
}

/// The measurements of one state.
#[derive(Clone, Debug, Default)]
struct Part {
    /// Starts and ends of slopes.
    most: Sums,
    least: Sums,
    /// Time in which nothing is off, by the extra that comes on top of the path.
    flat: BTreeMap<u64, u64>,
    /// The paths, each as likely as the others.
    paths: Vec<u64>,
}

/// Values, and the sums of the greatest of them.
#[derive(Clone, Debug, Default)]
struct Sums {
    values: Vec<u64>,
    sums: Vec<u128>,
}

impl Sums {
    fn sort(&mut self) {
        self.values.sort_unstable();
        let mut sum = 0;
        self.sums = self
            .values
            .iter()
            .rev()
            .map(|value| {
                sum += u128::from(*value);
                sum
            })
            .collect();
    }

    /// Returns the sum, over all values, of the part above `x`.
    fn above(&self, x: i64) -> f64 {
        let below = self.values.partition_point(|value| *value as i64 <= x);
        let above = self.values.len() - below;
        let sum = above.checked_sub(1).map_or(0, |last| self.sums[last]);
        sum as f64 - above as f64 * x as f64
    }
}

/// The share of the time in which arrivals are later than a value, over all arrivals.
#[derive(Clone, Debug, Default)]
pub struct Tail {
    parts: BTreeMap<State, Part>,
    /// The whole time.
    pub time: u64,
}

impl Tail {
    /// Adds a slope of a state.
    pub fn slope(&mut self, state: State, slope: Slope) {
        let part = self.parts.entry(state).or_default();
        part.most.values.push(slope.most);
        part.least.values.push(slope.least);
        self.time += slope.most - slope.least;
    }

    /// Adds time of a state in which nothing is off, but `besides` comes on top of the path.
    pub fn flat(&mut self, state: State, besides: u64, time: u64) {
        let part = self.parts.entry(state).or_default();
        *part.flat.entry(besides).or_default() += time;
        self.time += time;
    }

    /// Sorts, once all are known.
    pub fn sort(&mut self, paths: &Paths) {
        for (state, part) in &mut self.parts {
            part.most.sort();
            part.least.sort();
            part.paths = paths.some_of(*state);
        }
    }

    /// Returns the time in which something is off and after which no sample's path is known.
    pub fn unlearnt(&self) -> u64 {
        let parts = self.parts.values().filter(|part| part.paths.is_empty());
        let of = |part: &Part| {
            let sum = |sums: &Sums| sums.values.iter().sum::<u64>();
            sum(&part.most) - sum(&part.least) + part.flat.values().sum::<u64>()
        };
        parts.map(of).sum()
    }

    /// Returns the share of the time in which an arrival is later than `x`.
    pub fn later(&self, x: u64) -> f64 {
        let of = |part: &Part| {
            let one = |path: &u64| {
                let off = x as i64 - *path as i64;
                // Below nothing all of a slope is later.
                let slopes = part.most.above(off) - part.least.above(off);
                let flat = part.flat.iter();
                let flat = flat.filter(|(besides, _)| **besides as i64 > off);
                slopes + flat.map(|(_, time)| *time as f64).sum::<f64>()
            };
            let paths = &part.paths;
            paths.iter().map(one).sum::<f64>() / paths.len().max(1) as f64
        };
        self.parts.values().map(of).sum::<f64>() / self.time.max(1) as f64
    }

    /// Returns the least value that is exceeded in at most this share of the time.
    pub fn quantile(&self, share: f64) -> u64 {
        let (mut low, mut high) = (0, self.most());
        while low < high {
            let middle = u64::midpoint(low, high);
            if self.later(middle) <= share {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Returns the lateness of the latest arrival.
    pub fn most(&self) -> u64 {
        let of = |part: &Part| {
            let slopes = part.most.values.last().copied().unwrap_or(0);
            let flat = part.flat.keys().next_back().copied().unwrap_or(0);
            slopes.max(flat) + part.paths.iter().max().copied().unwrap_or(0)
        };
        self.parts.values().map(of).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::{From, Walked};
    use super::*;

    const STATE: State = State::open(From::Preempt, 0);

    fn tail(paths: &[u64]) -> Tail {
        let mut known = Paths::default();
        paths
            .iter()
            .for_each(|path| known.learn(STATE, *path, 0, Walked::default()));
        known.sort();
        let mut tail = Tail::default();
        // 1,000 ns from 100 down to 0 in ten sections, 9,000 ns in which nothing is off.
        for _ in 0..10 {
            tail.slope(
                STATE,
                Slope {
                    most: 100,
                    least: 0,
                },
            );
        }
        tail.flat(STATE, 0, 9_000);
        tail.sort(&known);
        tail
    }

    #[test]
    fn each_nanosecond_of_a_section_is_one_less_late_than_the_one_before() {
        let tail = tail(&[50; 7]);
        assert_eq!(tail.time, 10_000);
        for (x, later) in [
            (0, 1.0),
            (49, 1.0),
            (50, 0.1),
            (100, 0.05),
            (149, 0.001),
            (150, 0.0),
        ] {
            assert!(
                (tail.later(x) - later).abs() < 1e-12,
                "{x}: {}",
                tail.later(x)
            );
        }
        assert_eq!(
            (tail.quantile(0.05), tail.quantile(0.001), tail.most()),
            (100, 149, 150)
        );
    }

    #[test]
    fn each_path_is_as_likely_as_the_others() {
        let tail = tail(&[50, 50, 50, 50, 150, 150, 150, 150]);
        assert!(
            (tail.later(100) - 0.525).abs() < 1e-12,
            "{}",
            tail.later(100)
        );
        assert!(
            (tail.later(200) - 0.025).abs() < 1e-12,
            "{}",
            tail.later(200)
        );
    }
}

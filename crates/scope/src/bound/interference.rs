// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long interrupts keep the CPU in a window, by five models.

use punctual_model::Nanos;

use crate::survey::{Delays, Interrupt};

/// The models of interference, as in the paper (ECRTS 2020, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interference {
    /// Without interrupts.
    None,
    /// One interrupt, the longest.
    WorstSingle,
    /// Each vector as often as its smallest distance allows, with its longest interrupt each time.
    Sporadic,
    /// The most that was observed in any window of that length.
    SlidingWindow,
    /// The same, with each interrupt as long as its vector's longest.
    SlidingWindowWorst,
}

impl Interference {
    /// All models, in their order.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::WorstSingle,
        Self::Sporadic,
        Self::SlidingWindow,
        Self::SlidingWindowWorst,
    ];

    /// Returns the model in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::WorstSingle => "worst single",
            Self::Sporadic => "sporadic",
            Self::SlidingWindow => "sliding window",
            Self::SlidingWindowWorst => "sliding window with oWCET",
        }
    }
}

/// The observations of a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// The entry of its interrupts.
    pub name: String,
    /// The number of interrupts.
    pub count: u64,
    /// Length of the longest: the observed worst-case execution time, oWCET.
    pub longest: Nanos,
    /// The smallest distance between two: the observed minimal inter-arrival time, oMIAT. Sleep is
    /// not counted, so it can be shorter than it was, never longer. `None` if there was only one.
    pub distance: Option<Nanos>,
}

/// The interrupts of several runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// The vectors, the one with the longest first.
    pub vectors: Vec<Vector>,
    /// The interrupts of each run, in the order of time, with the numbers of the vectors above.
    runs: Vec<Vec<Interrupt>>,
}

impl Interrupts {
    /// Pools the interrupts of runs.
    pub fn of<'a>(runs: impl Iterator<Item = &'a Delays>) -> Self {
        let mut pooled = Self::default();
        for delays in runs {
            let names = delays.vectors.iter();
            let numbers: Vec<usize> = names.map(|name| pooled.number(name)).collect();
            let number = |one: &Interrupt| Interrupt {
                vector: numbers[one.vector],
                ..*one
            };
            let run: Vec<Interrupt> = delays.interrupts.iter().map(number).collect();
            pooled.observe(&run);
            pooled.runs.push(run);
        }
        pooled
    }

    fn number(&mut self, name: &str) -> usize {
        let known = self.vectors.iter().position(|vector| vector.name == name);
        known.unwrap_or_else(|| {
            self.vectors.push(Vector {
                name: name.to_owned(),
                count: 0,
                longest: Nanos::ZERO,
                distance: None,
            });
            self.vectors.len() - 1
        })
    }

    fn observe(&mut self, run: &[Interrupt]) {
        let mut before: Vec<Option<Nanos>> = vec![None; self.vectors.len()];
        for one in run {
            let vector = &mut self.vectors[one.vector];
            vector.count += 1;
            vector.longest = vector.longest.max(one.length);
            if let Some(before) = before[one.vector].replace(one.at) {
                let distance = one.at - before;
                vector.distance = Some(
                    vector
                        .distance
                        .map_or(distance, |least| least.min(distance)),
                );
            }
        }
    }

    /// Returns the longest time for which interrupts keep the CPU in a window of this length;
    /// `None` if that has no bound.
    pub fn keep(&self, told: Interference, window: Nanos) -> Option<Nanos> {
        match told {
            Interference::None => Some(Nanos::ZERO),
            Interference::WorstSingle => {
                let longest = self.vectors.iter().map(|vector| vector.longest);
                Some(longest.max().unwrap_or_default())
            }
            Interference::Sporadic => {
                let mut each = self.vectors.iter().map(|vector| sporadic(vector, window));
                each.try_fold(Nanos::ZERO, |sum, one| Some(sum + one?))
            }
            Interference::SlidingWindow => {
                let each = self.runs.iter().map(|run| busiest(run, window));
                Some(each.max().unwrap_or_default())
            }
            Interference::SlidingWindowWorst => {
                let each = self.runs.iter().map(|run| self.worst(run, window));
                Some(each.max().unwrap_or_default())
            }
        }
    }

    /// Returns the most that the interrupts of any window come to, each as long as its vector's
    /// longest.
    fn worst(&self, run: &[Interrupt], window: Nanos) -> Nanos {
        let longest = |one: &Interrupt| self.vectors[one.vector].longest;
        let (mut most, mut sum, mut next) = (Nanos::ZERO, Nanos::ZERO, 0);
        for first in run {
            // The window begins where no more than this one's last nanosecond is within.
            let end = first.at + first.length + window;
            while let Some(one) = run.get(next).filter(|one| is_within(one, first, end)) {
                sum += longest(one);
                next += 1;
            }
            most = most.max(sum);
            sum = sum - longest(first);
        }
        most
    }
}

/// Returns the interference of a vector's interrupts, as often as the distance allows.
fn sporadic(vector: &Vector, window: Nanos) -> Option<Nanos> {
    let Some(distance) = vector.distance else {
        return Some(vector.longest);
    };
    let distance = u64::try_from(distance.0)
        .ok()
        .filter(|distance| *distance > 0)?;
    let times = window.0.max(0).unsigned_abs().div_ceil(distance);
    Some(vector.longest * i64::try_from(times).ok()?)
}

/// Returns true if an interrupt begins before a moment, with no sleep since the first.
fn is_within(one: &Interrupt, first: &Interrupt, end: Nanos) -> bool {
    one.sleeps == first.sleeps && one.at < end
}

/// Returns the most time that interrupts took in any window of this length. The window with the
/// most begins with an interrupt, or ends with one.
fn busiest(run: &[Interrupt], window: Nanos) -> Nanos {
    let ended = |one: &Interrupt| one.at + one.length;
    let (mut most, mut sum, mut next) = (Nanos::ZERO, Nanos::ZERO, 0);
    for (number, first) in run.iter().enumerate() {
        let end = first.at + window;
        while let Some(one) = run.get(next).filter(|one| is_within(one, first, end)) {
            sum += one.length;
            next += 1;
        }
        let cut = next.checked_sub(1).filter(|last| *last >= number);
        let cut = cut.map_or(Nanos::ZERO, |last| {
            (ended(&run[last]) - end).max(Nanos::ZERO)
        });
        most = most.max(sum - cut);
        sum = sum - first.length;
    }
    let (mut sum, mut first) = (Nanos::ZERO, 0);
    for last in run {
        let begin = ended(last) - window;
        sum += last.length;
        while run[first].sleeps != last.sleeps || ended(&run[first]) <= begin {
            sum = sum - run[first].length;
            first += 1;
        }
        let cut = (begin - run[first].at).max(Nanos::ZERO);
        most = most.max(sum - cut);
    }
    most
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Creates interrupts, each with its moment, length, vector and number of sleeps before.
    fn delays(interrupts: &[(i64, i64, usize, u64)]) -> Delays {
        let one = |(at, length, vector, sleeps): &(i64, i64, usize, u64)| Interrupt {
            at: Nanos(*at),
            length: Nanos(*length),
            vector: *vector,
            sleeps: *sleeps,
        };
        Delays {
            vectors: vec!["timer".to_owned(), "disk".to_owned()],
            interrupts: interrupts.iter().map(one).collect(),
            ..Delays::default()
        }
    }

    fn keep(interrupts: &Interrupts, told: Interference, window: i64) -> i64 {
        interrupts.keep(told, Nanos(window)).unwrap().0
    }

    #[test]
    fn each_way_to_tell_interference_is_what_it_says() {
        let run = delays(&[
            (0, 30, 0, 0),
            (100, 20, 0, 0),
            (110 + 15, 40, 1, 0),
            (400, 10, 0, 0),
        ]);
        let all = Interrupts::of([&run].into_iter());
        assert_eq!(all.vectors[0].distance, Some(Nanos(100)));
        assert_eq!(all.vectors[1].distance, None);
        assert_eq!(keep(&all, Interference::None, 1000), 0);
        assert_eq!(keep(&all, Interference::WorstSingle, 1), 40);
        // The timer twice and thrice, the disk once.
        assert_eq!(keep(&all, Interference::Sporadic, 200), 2 * 30 + 40);
        assert_eq!(keep(&all, Interference::Sporadic, 201), 3 * 30 + 40);
        // From 100 on: 20, and 25 of the 40 from 125 on.
        assert_eq!(keep(&all, Interference::SlidingWindow, 50), 40 + 5);
        assert_eq!(keep(&all, Interference::SlidingWindow, 65), 20 + 40);
        assert_eq!(keep(&all, Interference::SlidingWindowWorst, 65), 30 + 40);
        assert_eq!(keep(&all, Interference::SlidingWindow, 10_000), 100);
        assert_eq!(keep(&all, Interference::SlidingWindowWorst, 10_000), 130);
    }

    #[test]
    fn no_window_reaches_across_sleep_and_runs_are_not_added_up() {
        let run = delays(&[(0, 30, 0, 0), (40, 30, 0, 1)]);
        let all = Interrupts::of([&run, &run].into_iter());
        assert_eq!(keep(&all, Interference::SlidingWindow, 1_000), 30);
        assert_eq!(keep(&all, Interference::SlidingWindowWorst, 1_000), 30);
        assert_eq!(
            (all.vectors[0].count, all.vectors[0].distance),
            (4, Some(Nanos(40)))
        );
    }

    #[test]
    fn interrupts_at_one_moment_have_no_sporadic_bound() {
        let all = Interrupts::of([&delays(&[(5, 1, 0, 0), (5, 1, 0, 0)])].into_iter());
        assert_eq!(all.keep(Interference::Sporadic, Nanos(10)), None);
    }

    proptest! {
        /// Compares with all windows, one by one.
        #[test]
        fn the_busiest_window_is_the_busiest_of_all(
            gaps in prop::collection::vec((0..12_i64, 1..9_i64, prop::bool::ANY), 1..12),
            window in 1..60_i64,
        ) {
            let (mut at, mut sleeps, mut run) = (0, 0, Vec::new());
            for (gap, length, slept) in gaps {
                sleeps += u64::from(slept);
                run.push((at + gap, length, 0, sleeps));
                at += gap + length;
            }
            let all = Interrupts::of([&delays(&run)].into_iter());
            let within = |from: i64, sleeps: u64| -> i64 {
                let of = run.iter().filter(|one| one.3 == sleeps);
                of.map(|(at, length, ..)| {
                    ((at + length).min(from + window) - (*at).max(from)).max(0)
                }).sum()
            };
            let windows = (-window..at + window).flat_map(|from| (0..=sleeps).map(move |s| (from, s)));
            let most = windows.map(|(from, sleeps)| within(from, sleeps)).max().unwrap();
            prop_assert_eq!(keep(&all, Interference::SlidingWindow, window), most);
            prop_assert!(keep(&all, Interference::SlidingWindowWorst, window) >= most);
        }
    }
}

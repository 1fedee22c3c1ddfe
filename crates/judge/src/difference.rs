// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares two runs with one seed, sample by sample.

use std::slice;

use punctual_model::digest::digest;
use punctual_model::{Nanos, Recording, Run, Sample};

/// A run, and one of its recordings.
type Found<'a> = (&'a Run, &'a Recording);

/// The difference between two recordings of one measurement with one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of samples that both kept.
    pub compared: u64,
    /// The number of these that differ, in value or time.
    pub differing: u64,
    /// The first differing sample, there and here; `None` if no kept sample differs.
    pub first: Option<(Sample, Sample)>,
    /// The median of the differences of all samples, equal ones included: positive if longer here.
    pub middle: Nanos,
    /// The difference, positive or negative, of the sample that differs most.
    pub most: Nanos,
    /// The number of samples counted there and here, including those that were not kept.
    pub counts: (u64, u64),
}

impl Difference {
    /// Compares two recordings; `None` if they are equal, including the load's work.
    pub fn of(there: Found<'_>, here: Found<'_>) -> Option<Self> {
        if digest_of(there) == digest_of(here) {
            return None;
        }
        let pairs = || there.1.samples.iter().zip(here.1.samples.iter());
        let is_other = |(there, here): &(Sample, Sample)| there != here;
        let mut longer: Vec<Nanos> = pairs()
            .map(|(there, here)| here.value - there.value)
            .collect();
        let compared = longer.len();
        let most = longer.iter().copied().max_by_key(|by| by.0.abs());
        let middle = match compared {
            0 => Nanos::ZERO,
            count => *longer.select_nth_unstable(count / 2).1,
        };
        Some(Self {
            compared: compared as u64,
            differing: pairs().filter(is_other).count() as u64,
            first: pairs().find(is_other),
            middle,
            most: most.unwrap_or(Nanos::ZERO),
            counts: (there.1.count, here.1.count),
        })
    }
}

/// Returns true if two subjects behaved the same in a measurement, to the last sample: in virtual
/// time, with the same seeds, each run like the other's.
pub fn is_identical(of: &[Found<'_>], than: &[Found<'_>]) -> bool {
    let digests = |all: &[Found<'_>]| {
        let of_run = |found: &Found<'_>| (found.0.seed, digest_of(*found));
        let mut digests: Vec<_> = all.iter().map(of_run).collect();
        digests.sort();
        digests
    };
    let mut all = of.iter().chain(than);
    !of.is_empty() && all.all(|(run, _)| run.is_virtual()) && digests(of) == digests(than)
}

/// The digest of one recording and its load's work.
fn digest_of((run, recording): Found<'_>) -> String {
    digest(slice::from_ref(recording), &run.steps, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn difference(there: &Run, here: &Run) -> Option<Difference> {
        Difference::of((there, &there.recordings[0]), (here, &here.recordings[0]))
    }

    #[test]
    fn the_first_sample_that_differs_is_named_and_all_are_counted() {
        let there = synthetic::run("rt", 1, &[5, 6, 7, 8, 9]);
        let here = synthetic::run("rt", 1, &[5, 6, 9, 8, 4]);
        assert_eq!(difference(&there, &there), None);
        let found = difference(&there, &here).unwrap();
        assert_eq!((found.compared, found.differing), (5, 2));
        let (before, after) = found.first.unwrap();
        assert_eq!(
            (before.seq, before.value, after.value),
            (2, Nanos(7), Nanos(9))
        );
        assert_eq!((found.middle, found.most), (Nanos::ZERO, Nanos(-5)));
    }

    #[test]
    fn a_difference_in_what_was_not_kept_or_in_the_load_is_one() {
        let there = synthetic::run("rt", 1, &[5, 6, 7]);
        let mut here = there.clone();
        here.steps[0].work[0].amount += 1;
        let found = difference(&there, &here).unwrap();
        assert_eq!((found.differing, found.first), (0, None));
        let mut longer = there.clone();
        longer.recordings[0] = synthetic::recording(&[5, 6, 7, 8], 3);
        let found = difference(&there, &longer).unwrap();
        assert_eq!((found.differing, found.counts), (0, (3, 4)));
    }

    #[test]
    fn identical_are_the_same_seeds_in_virtual_time() {
        let runs = [1, 2].map(|seed| synthetic::run("rt", seed, &[5, 6]));
        let all = runs.each_ref().map(|run| (run, &run.recordings[0]));
        assert!(is_identical(&all, &all));
        assert!(!is_identical(&all, &all[..1]));
        assert!(!is_identical(&[], &[]));
    }
}

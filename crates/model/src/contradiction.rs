// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a recording that do not follow from its samples or its bins.
//!
//! A verdict reads the largest sample, the sum, the interval. Anyone who can write a file can
//! forge any of them, so each is compared with the data that it was computed from.

use crate::histogram::{Bin, HIGHEST, Histogram};
use crate::recording::{Recording, Sample, Tally, WORST_KEPT};
use crate::units::Nanos;

/// The longest nominal time between samples: a day.
const INTERVAL_MOST: Nanos = Nanos(86_400_000_000_000);

/// The greatest distance of a moment or a sample from zero: 146 years.
const TIME_MOST: i64 = 1 << 62;

/// A check that a figure follows from a recording's bins, and the fault if it does not.
type Rule = (fn(&Recording, &[Bin]) -> bool, &'static str);

/// Returns the first figure that differs from what samples and bins say.
pub(crate) fn figures(recording: &Recording) -> Option<&'static str> {
    if !times_are_possible(recording) {
        return Some("a time that no clock shows");
    }
    if recording.is_complete() && recording.count > 0 {
        return of_samples(recording).or_else(|| interval(recording));
    }
    let bins: Vec<Bin> = recording.histogram.bins().collect();
    let rules: [Rule; 5] = [
        (extremes_are_in_bins, "extremes that no bin holds"),
        (kept_are_in_bins, "kept samples that no bin holds"),
        (
            worst_are_the_largest,
            "worst samples that are not the largest of its bins",
        ),
        (sum_is_in_bins, "a sum that its bins do not add up to"),
        (
            kept_are_no_worse,
            "kept samples that are missing among the worst",
        ),
    ];
    let broken = rules.iter().find(|(holds, _)| !holds(recording, &bins));
    broken
        .map(|(_, what)| *what)
        .or_else(|| interval(recording))
}

/// Returns true if moments can be added up without leaving their range.
fn times_are_possible(recording: &Recording) -> bool {
    let mut at = 0_i128;
    let kept = recording.samples.steps().iter().all(|step| {
        at += i128::from(step.0);
        at.abs() < i128::from(TIME_MOST)
    });
    let is_possible = |one: &Sample| one.at.0.abs() < TIME_MOST;
    kept && recording
        .worst
        .iter()
        .chain(&recording.maxima)
        .all(is_possible)
}

/// If all samples were kept, checks that each figure is what it was while they were taken.
fn of_samples(recording: &Recording) -> Option<&'static str> {
    let mut tally = Tally::new();
    let mut sum = 0_i128;
    for sample in recording.samples.iter() {
        tally.take(sample.at, sample.value);
        sum += i128::from(sample.value.0);
    }
    let own = tally.finish(recording.key.clone());
    let rules = [
        (
            own.extremes == recording.extremes,
            "extremes that are not those of its samples",
        ),
        (
            sum == i128::from(recording.sum.0),
            "a sum that is not that of its samples",
        ),
        (
            own.histogram == recording.histogram,
            "bins that are not those of its samples",
        ),
        (
            own.worst == recording.worst,
            "worst samples that are not those of its samples",
        ),
    ];
    let broken = rules.iter().find(|(holds, _)| !holds);
    broken.map(|(_, what)| *what)
}

/// Checks a nominal interval against its samples' moments: so many samples take so long.
/// A sample is never early; a tenth, an interval and a second are allowed for a late start.
fn interval(recording: &Recording) -> Option<&'static str> {
    let nominal = recording.interval?;
    if nominal <= Nanos::ZERO || nominal > INTERVAL_MOST {
        return Some("an interval that nobody measures at");
    }
    let is_possible = |sample: &Sample| {
        let due = i128::from(nominal.0) * (i128::from(sample.seq) - 1);
        i128::from(sample.at.0) * 10 + 10_000_000_000 >= due * 9
    };
    let last = recording.samples.iter().last();
    let all = recording.worst.iter().all(is_possible) && last.as_ref().is_none_or(is_possible);
    (!all).then_some("an interval that its samples' moments do not leave room for")
}

/// Checks that the smallest and the largest of all samples lie where the bins allow them to.
fn extremes_are_in_bins(recording: &Recording, bins: &[Bin]) -> bool {
    let Some((min, max)) = recording.extremes else {
        return true;
    };
    let (negative, overflow) = (
        recording.histogram.negative(),
        recording.histogram.overflow(),
    );
    let lowest = |edge: fn(&Bin) -> Nanos| bins.iter().map(edge).min();
    let highest = |edge: fn(&Bin) -> Nanos| bins.iter().map(edge).max();
    let min_is_there = match (lowest(|bin| bin.low), lowest(|bin| bin.high)) {
        _ if negative > 0 => min < Nanos::ZERO,
        (Some(least), Some(most)) => (least..=most).contains(&min),
        _ => min > HIGHEST,
    };
    let max_is_there = match (highest(|bin| bin.low), highest(|bin| bin.high)) {
        _ if overflow > 0 => max > HIGHEST,
        (Some(least), Some(most)) => (least..=most).contains(&max),
        _ => max < Nanos::ZERO,
    };
    min_is_there && max_is_there
}

/// Checks that the sum is that of the worst samples, each of which is known, plus the others: these
/// add up to a value between the sums of all lower and all upper edges of their bins, none of them
/// above the least of the worst.
fn sum_is_in_bins(recording: &Recording, bins: &[Bin]) -> bool {
    let Some((min, max)) = recording.extremes else {
        return recording.sum == Nanos::ZERO;
    };
    let worst = &recording.worst;
    let least_worst = worst.last().map_or(max, |one| one.value);
    let (negative, overflow) = (
        recording.histogram.negative(),
        recording.histogram.overflow(),
    );
    let all = bins.iter().map(|bin| (bin.low, bin.high, bin.count));
    let all =
        all.chain([(min, Nanos(-1), negative)])
            .chain([(Nanos(HIGHEST.0 + 1), max, overflow)]);
    let mut bounds = [0_i128; 2];
    for (low, high, count) in all {
        let is_in = |one: &&Sample| (low..=high).contains(&one.value);
        let known = worst.iter().filter(is_in);
        let sum: i128 = known.clone().map(|one| i128::from(one.value.0)).sum();
        let others = i128::from(count) - known.count() as i128;
        bounds[0] += sum + others * i128::from(low.max(min).0);
        bounds[1] += sum + others * i128::from(high.min(least_worst).0);
    }
    let sum = i128::from(recording.sum.0);
    // A sum that is known only in part is that of what is known.
    let unknown = recording.mean_within() * i128::from(recording.count);
    sum + unknown >= bounds[0] && sum <= bounds[1]
}

/// Checks that each bin holds at least the samples in its range that were kept.
fn kept_are_in_bins(recording: &Recording, bins: &[Bin]) -> bool {
    let Some((min, max)) = recording.extremes else {
        return recording.samples.is_empty();
    };
    let mut kept = Histogram::new();
    for sample in recording.samples.iter() {
        if !(min..=max).contains(&sample.value) {
            return false;
        }
        kept.record(sample.value);
    }
    let mut all = bins.iter();
    let mut own = kept.bins();
    own.all(|bin| all.any(|other| other.low == bin.low && other.count >= bin.count))
        && kept.overflow() <= recording.histogram.overflow()
        && kept.negative() <= recording.histogram.negative()
}

/// Checks that the worst samples are the largest, largest first. A counter keeps none.
fn worst_are_the_largest(recording: &Recording, bins: &[Bin]) -> bool {
    let worst = &recording.worst;
    let (Some(first), Some(last)) = (worst.first(), worst.last()) else {
        return recording.samples.is_empty();
    };
    let is_sorted = worst.is_sorted_by(|one, other| one.value >= other.value);
    let is_full = worst.len() as u64 == recording.count.min(WORST_KEPT as u64);
    if !is_sorted || !is_full || Some(first.value) != recording.max() {
        return false;
    }
    let overflow = recording.histogram.overflow();
    let above = bins.iter().filter(|bin| bin.low > last.value);
    let counted: u64 = above.clone().map(|bin| bin.count).sum();
    let is_above = |one: &&Sample| {
        let mut above = above.clone();
        one.value <= HIGHEST && above.any(|bin| (bin.low..=bin.high).contains(&one.value))
    };
    let beyond = worst.iter().filter(|one| one.value > HIGHEST).count() as u64;
    let all_beyond = last.value > HIGHEST;
    counted == worst.iter().filter(is_above).count() as u64
        && (all_beyond || beyond == overflow)
        && beyond <= overflow
}

/// Checks that each kept sample that is larger than the least of the worst is one of them.
fn kept_are_no_worse(recording: &Recording, _bins: &[Bin]) -> bool {
    let Some(least) = recording.worst.last().map(|one| one.value) else {
        return true;
    };
    let mut worst: Vec<Nanos> = recording.worst.iter().map(|one| one.value).collect();
    recording
        .samples
        .iter()
        .filter(|one| one.value > least)
        .all(|one| {
            let place = worst.iter().position(|value| *value == one.value);
            place.map(|place| worst.swap_remove(place)).is_some()
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::RecordingKey;
    use crate::recording::Recorder;

    const INTERVAL: i64 = 1_000;

    fn record(values: &[i64], keep: usize) -> Recording {
        let mut recorder = Recorder::new(keep);
        for (value, number) in values.iter().zip(0..) {
            recorder.record(Nanos(number * INTERVAL), Nanos(*value));
        }
        let mut recording = recorder.finish(RecordingKey::new("timer", "idle", "cpu0"));
        recording.interval = Some(Nanos(INTERVAL));
        recording
    }

    fn values() -> impl Strategy<Value = Vec<i64>> {
        let value = prop_oneof![
            3 => 0_i64..3_000,
            3 => 0_i64..1_000_000_000,
            1 => -1_000_i64..0,
            1 => (1_i64 << 40)..(1 << 50),
        ];
        prop::collection::vec(value, 1..60)
    }

    proptest! {
        #[test]
        fn what_was_recorded_contradicts_nothing(
            values in values(), others in values(), keep in 0_usize..80
        ) {
            let one = record(&values, keep);
            prop_assert_eq!(figures(&one), None);
            prop_assert_eq!(one.contradiction(), None);
            let pooled = one.pooled(record(&others, 0));
            prop_assert_eq!(figures(&pooled), None);
        }

        #[test]
        fn a_largest_sample_that_is_made_smaller_is_told(
            values in values(), keep in 0_usize..80, less in 1_i64..1_000_000
        ) {
            let mut one = record(&values, keep);
            let (min, max) = one.extremes.unwrap();
            one.extremes = Some((min.min(max - Nanos(less)), max - Nanos(less)));
            prop_assert!(one.contradiction().is_some());
            one.worst[0].value = max - Nanos(less);
            one.worst.sort_by_key(|one| -one.value.0);
            // Within the bin of one that was only counted nobody can tell; all that are below zero
            // are counted together. Where the worst are all there are, each is known.
            let width = if max < Nanos::ZERO { 1_000 } else { (max.0 / 1_000).max(1) };
            let is_counted = values.len() > WORST_KEPT && !one.is_complete();
            prop_assert!(one.contradiction().is_some() || (is_counted && less <= width));
        }
    }

    #[test]
    fn the_only_sample_is_its_sum_also_below_zero() {
        let mut one = record(&[-2], 0);
        one.extremes = Some((Nanos(-4), Nanos(-4)));
        one.worst[0].value = Nanos(-4);
        assert!(one.contradiction().is_some());
    }

    /// An emulated board stands still before its first sample, and then catches up.
    #[test]
    fn a_first_sample_that_is_late_is_no_forgery() {
        let interval = Nanos(5_000_000);
        for keep in [0, 100] {
            let mut recorder = Recorder::new(keep);
            for number in 0..100 {
                let at = (interval * number - Nanos(300_000_000)).max(Nanos(number * 20_000));
                recorder.record(at, Nanos(100_000 - number));
            }
            let mut recording = recorder.finish(RecordingKey::new("irq", "idle", "cpu0"));
            recording.interval = Some(interval);
            assert_eq!(recording.contradiction(), None, "{keep}");
        }
    }

    #[test]
    fn each_figure_is_held_against_samples_and_bins() {
        type Forgery = (fn(&mut Recording), &'static str);
        let forgeries: [Forgery; 9] = [
            (
                |one| one.extremes = Some((Nanos(1), Nanos(1_000))),
                "extremes",
            ),
            (|one| one.sum = Nanos(7), "a sum"),
            (|one| one.interval = Some(Nanos(0)), "an interval"),
            (|one| one.interval = Some(Nanos(1 << 62)), "an interval"),
            (
                |one| one.interval = Some(Nanos(10_000_000_000)),
                "an interval",
            ),
            (|one| one.worst.truncate(3), "worst samples"),
            (|one| one.worst[0].value = Nanos(9_000_000), "worst samples"),
            (|one| one.worst.reverse(), "worst samples"),
            (|one| one.worst[0].at = Nanos(i64::MAX), "a time"),
        ];
        let values: Vec<i64> = (0..100).map(|number| 1_000 + number * 50).collect();
        for keep in [0, 20, 100] {
            let sound = record(&values, keep);
            assert_eq!(sound.contradiction(), None, "{keep}");
            for (forgery, expected) in forgeries {
                let mut forged = sound.clone();
                forgery(&mut forged);
                let told = forged.contradiction();
                assert!(
                    told.is_some_and(|told| told.starts_with(expected)),
                    "{expected}, {told:?}"
                );
            }
        }
        // Other bins than its samples': as many, and smaller.
        let mut forged = record(&values, 100);
        forged.histogram = record(&[5; 100], 0).histogram;
        assert_eq!(
            forged.contradiction(),
            Some("bins that are not those of its samples")
        );
        let mut forged = record(&values, 20);
        forged.histogram = record(&[5; 100], 0).histogram;
        assert_eq!(forged.contradiction(), Some("extremes that no bin holds"));
    }
}

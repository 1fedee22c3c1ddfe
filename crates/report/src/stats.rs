// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of one cell, over all of its seeds.

use punctual_model::histogram::is_close;
pub use punctual_model::quantiles::supports;
use punctual_model::{Nanos, Quantiles, Recording, Sample};

use crate::arrivals::Watched;
use crate::matrix::Measured;

/// The figures of one subject's recordings of one measurement.
#[derive(Clone, Debug)]
pub struct Stats {
    /// The number of samples, over all seeds.
    pub count: u64,
    /// The mean of all samples, if it is known as closely as a histogram tells a value.
    pub mean: Option<Nanos>,
    /// The least and the most that the mean may be.
    /// They are the same, but for files of other programs.
    pub mean_between: Option<(Nanos, Nanos)>,
    /// The smallest and the largest sample of all seeds.
    pub extremes: Option<(Nanos, Nanos)>,
    /// Periods in which no sample could be taken.
    pub missed: u64,
    /// True if these were counted.
    pub counts_missed: bool,
    /// The part of each sample that is the taking of its time stamps; the least, where it differs.
    pub tracing: Option<Nanos>,
    /// Page faults of the measuring threads.
    pub faults: i64,
    /// Samples above the histogram's range.
    pub overflow: u64,
    /// The worst case of each seed that has samples.
    pub worst_by_seed: Vec<(u64, Nanos)>,
    /// The knowledge of every arrival.
    pub watched: Watched,
    quantiles: Quantiles,
}

impl Stats {
    /// Gathers recordings of the same measurement.
    pub fn of(found: &[Measured<'_>]) -> Self {
        let all = || found.iter().map(|measured| measured.recording);
        let count: u64 = all().map(|recording| recording.count).sum();
        let mean_between = mean_between(all(), count);
        let mean = mean_between.filter(|(low, high)| is_close(*low, *high));
        let lowest = all().filter_map(Recording::min).min();
        let highest = all().filter_map(Recording::max).max();
        let worst = |one: &Measured<'_>| Some((one.run.seed, one.recording.max()?));
        Self {
            count,
            mean: mean.map(|(mean, _)| mean),
            mean_between,
            extremes: lowest.zip(highest),
            missed: all().map(|recording| recording.missed).sum(),
            counts_missed: all().all(|recording| recording.missed_periods().is_some()),
            tracing: all().map(Recording::tracing_overhead).min().flatten(),
            faults: all().filter_map(Recording::page_faults).sum(),
            overflow: all().map(|recording| recording.histogram.overflow()).sum(),
            worst_by_seed: found.iter().filter_map(worst).collect(),
            watched: Watched::of(found),
            quantiles: Quantiles::of(all()),
        }
    }

    /// A sample, or a mean, without the part that is the taking of its time stamps.
    pub fn corrected(&self, value: Nanos) -> Option<Nanos> {
        self.tracing.map(|tracing| value - tracing)
    }

    /// The worst case over all seeds.
    pub fn worst(&self) -> Option<Nanos> {
        self.extremes.map(|(_, worst)| worst)
    }

    /// Returns the largest distance of a sample from zero, to either side.
    pub fn farthest(&self) -> Option<Nanos> {
        let (low, high) = self.extremes?;
        Some(Nanos(low.0.abs().max(high.0.abs())))
    }

    /// The lowest and the highest worst case, where there are several seeds.
    pub fn worst_range(&self) -> Option<(Nanos, Nanos)> {
        let worst = || self.worst_by_seed.iter().map(|(_, worst)| *worst);
        let range = worst().min().zip(worst().max());
        range.filter(|_| self.worst_by_seed.len() > 1)
    }

    /// The value that a share `q` of all samples does not exceed.
    /// `None` if there are too few samples to tell.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        supports(self.count, q).then(|| self.quantiles.at(q))?
    }

    /// Returns the lowest and the highest value that the quantile may be.
    /// They are the edges of a bin, where another program has counted samples in wide ones.
    pub fn quantile_between(&self, q: f64) -> Option<(Nanos, Nanos)> {
        supports(self.count, q).then(|| self.quantiles.between(q))?
    }

    /// The middle sample, of however few.
    pub fn median(&self) -> Option<Nanos> {
        match self.count {
            0 => None,
            1 => self.worst(),
            _ => self.quantile(0.5),
        }
    }
}

/// The samples of a recording that are known one by one, in their order: those that were kept, the
/// worst of all, and, where it was reported in parts, the worst of each.
pub fn known_samples(recording: &Recording) -> Vec<Sample> {
    let mut known: Vec<Sample> = recording.samples.iter().collect();
    let kept = known.len() as u64;
    let mut worst = [&recording.maxima[..], &recording.worst].concat();
    worst.retain(|sample| sample.seq >= kept);
    worst.sort_unstable_by_key(|sample| sample.seq);
    worst.dedup_by_key(|sample| sample.seq);
    known.extend(worst);
    known
}

/// The least and the most that the mean of `count` samples may be.
fn mean_between<'a>(
    all: impl Iterator<Item = &'a Recording> + Clone,
    count: u64,
) -> Option<(Nanos, Nanos)> {
    let sum: i128 = all.clone().map(|one| i128::from(one.sum.0)).sum();
    let within = all.filter_map(|one| {
        let (low, high) = one.mean_between()?;
        Some((high - low) * one.count as f64)
    });
    let within: f64 = within.sum();
    let mean = |sum: f64| Nanos((sum / count as f64).round() as i64);
    (count > 0).then(|| (mean(sum as f64), mean(sum as f64 + within)))
}

#[cfg(test)]
mod tests {
    use punctual_model::recording::{FAULTS, TRACING_OVERHEAD};

    use super::*;
    use crate::fixtures;
    use crate::matrix::Matrix;

    #[test]
    fn a_thousand_samples_support_three_nines_and_no_more() {
        assert!(supports(1_000, 0.999));
        assert!(!supports(999, 0.999));
        assert!(!supports(1_000, 0.9999));
        assert!(!supports(0, 0.5));
    }

    #[test]
    fn what_tracing_costs_is_subtracted_only_where_every_recording_knows_it() {
        let mut runs = fixtures::seeds(2);
        let tracing = |runs: &[punctual_model::Run]| {
            let matrix = Matrix::new(runs);
            let stats = Stats::of(&matrix.columns[0].found(&matrix.rows[1]));
            let corrected = stats.tracing.map(|cost| Nanos(500) - cost);
            assert_eq!(stats.corrected(Nanos(500)), corrected);
            (stats.tracing, stats.faults)
        };
        let mut know = |run: usize, cost: i64| {
            for recording in &mut runs[run].recordings {
                let settings = [(TRACING_OVERHEAD, cost), (FAULTS[0], 2), (FAULTS[1], 1)];
                let settings = settings.map(|(name, value)| (name.into(), value.into()));
                recording.settings.extend(settings);
            }
            tracing(&runs)
        };
        assert_eq!(know(0, 90), (None, 3));
        assert_eq!(know(1, 83), (Some(Nanos(83)), 6));
    }

    #[test]
    fn seeds_are_gathered_with_the_worst_of_them() {
        let runs = fixtures::seeds(3);
        let matrix = Matrix::new(&runs);
        let stats = Stats::of(&matrix.columns[0].found(&matrix.rows[1]));
        assert_eq!(stats.count, 3 * fixtures::SAMPLES);
        assert_eq!(stats.worst_by_seed.len(), 3);
        assert_eq!(stats.worst(), stats.worst_range().map(|(_, high)| high));
        assert!(stats.worst_range().is_some_and(|(low, high)| low < high));
    }

    #[test]
    fn quantiles_agree_between_samples_and_histogram() {
        let stats = |run: &punctual_model::Run| {
            let recording = &run.recordings[1];
            Stats::of(&[Measured { run, recording }])
        };
        let kept = stats(&fixtures::run("none", 1));
        let counted = stats(&fixtures::run_without_samples("none", 1));
        for q in [0.5, 0.9, 0.999] {
            let (exact, close) = (kept.quantile(q).unwrap().0, counted.quantile(q).unwrap().0);
            let is_close = (exact - close).abs() * 1_000 <= exact;
            assert!(is_close, "{q}: {exact} and {close}");
        }
    }
}

//! The figures of one cell, over all of its seeds.

use punctual_model::histogram::Histogram;
use punctual_model::recording::Recording;
use punctual_model::units::Nanos;

use crate::matrix::Measured;

/// The figures of one subject's recordings of one measurement.
#[derive(Clone, Debug)]
pub struct Stats {
    /// How many samples there are, over all seeds.
    pub count: u64,
    /// The mean of all samples.
    pub mean: Option<Nanos>,
    /// The smallest and the largest sample of all seeds.
    pub extremes: Option<(Nanos, Nanos)>,
    /// Periods in which no sample could be taken.
    pub missed: u64,
    /// Samples above the histogram's range.
    pub overflow: u64,
    /// The worst case of each seed that has samples.
    pub worst_by_seed: Vec<(u64, Nanos)>,
    values: Values,
}

/// What quantiles are taken from.
#[derive(Clone, Debug)]
enum Values {
    /// Every sample was kept; sorted.
    Exact(Vec<Nanos>),
    /// Some were only counted.
    Counted(Box<Histogram>),
}

impl Stats {
    /// Gathers recordings of the same measurement.
    pub fn of(found: &[Measured<'_>]) -> Self {
        let all = || found.iter().map(|measured| measured.recording);
        let count: u64 = all().map(|recording| recording.count).sum();
        let sum: i128 = all().map(|recording| i128::from(recording.sum.0)).sum();
        let mean = (count > 0).then(|| Nanos((sum as f64 / count as f64).round() as i64));
        let lowest = all().filter_map(Recording::min).min();
        let highest = all().filter_map(Recording::max).max();
        Self {
            count,
            mean,
            extremes: lowest.zip(highest),
            missed: all().map(|recording| recording.missed).sum(),
            overflow: all().map(|recording| recording.histogram.overflow()).sum(),
            worst_by_seed: found
                .iter()
                .filter_map(|one| Some((one.run.seed, one.recording.max()?)))
                .collect(),
            values: Values::of(found),
        }
    }

    /// The worst case over all seeds.
    pub fn worst(&self) -> Option<Nanos> {
        self.extremes.map(|(_, worst)| worst)
    }

    /// The lowest and the highest worst case, where there are several seeds.
    pub fn worst_range(&self) -> Option<(Nanos, Nanos)> {
        let worst = || self.worst_by_seed.iter().map(|(_, worst)| *worst);
        (self.worst_by_seed.len() > 1)
            .then(|| worst().min().zip(worst().max()))
            .flatten()
    }

    /// The value that a share `q` of all samples does not exceed; `None` where there
    /// are too few samples to tell.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        if !supports(self.count, q) {
            return None;
        }
        match &self.values {
            Values::Exact(sorted) => {
                let rank = ((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
                Some(sorted[rank - 1])
            }
            Values::Counted(histogram) => histogram.quantile(q),
        }
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

impl Values {
    fn of(found: &[Measured<'_>]) -> Self {
        let recordings = || found.iter().map(|measured| measured.recording);
        if recordings().all(Recording::is_complete) {
            let mut values: Vec<Nanos> = recordings()
                .flat_map(|recording| recording.samples.iter().map(|sample| sample.value))
                .collect();
            values.sort_unstable();
            return Self::Exact(values);
        }
        let mut gathered = Histogram::new();
        for histogram in recordings().map(|recording| &recording.histogram) {
            for bin in histogram.bins() {
                gathered.record_n(bin.high, bin.count);
            }
            // What fell outside keeps its place at the ends, so that ranks stay right.
            gathered.record_n(Nanos(i64::MAX), histogram.overflow());
            gathered.record_n(Nanos(i64::MIN), histogram.negative());
        }
        Self::Counted(Box::new(gathered))
    }
}

/// Whether `count` samples are enough to speak of the quantile `q`: at least one of
/// them must lie above it.
pub fn supports(count: u64, q: f64) -> bool {
    // Without the allowance, 1,000 × (1 − 0.999) is a little less than 1.
    count as f64 * (1.0 - q) >= 1.0 - 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::matrix::{Cell, Matrix};

    #[test]
    fn a_thousand_samples_support_three_nines_and_no_more() {
        assert!(supports(1_000, 0.999));
        assert!(!supports(999, 0.999));
        assert!(!supports(1_000, 0.9999));
        assert!(!supports(0, 0.5));
    }

    #[test]
    fn seeds_are_gathered_with_the_worst_of_them() {
        let runs = fixtures::seeds(3);
        let matrix = Matrix::new(&runs);
        let Cell::Measured { found, .. } = matrix.columns[0].cell(&matrix.rows[1]) else {
            panic!("the fixture measures timer under stress");
        };
        let stats = Stats::of(&found);
        assert_eq!(stats.count, 3 * fixtures::SAMPLES);
        assert_eq!(stats.worst_by_seed.len(), 3);
        assert_eq!(stats.worst(), stats.worst_range().map(|(_, high)| high));
        assert!(stats.worst_range().is_some_and(|(low, high)| low < high));
    }

    #[test]
    fn quantiles_agree_between_samples_and_histogram() {
        let (kept, counted) = (
            fixtures::run("none", 1),
            fixtures::run_without_samples("none", 1),
        );
        let stats = |run: &punctual_model::Run| {
            let recording = &run.recordings[1];
            Stats::of(&[Measured { run, recording }])
        };
        let (kept, counted) = (stats(&kept), stats(&counted));
        for q in [0.5, 0.9, 0.999] {
            let (exact, close) = (kept.quantile(q).unwrap().0, counted.quantile(q).unwrap().0);
            assert!(
                (exact - close).abs() * 1_000 <= exact,
                "{q}: {exact} and {close}"
            );
        }
    }
}

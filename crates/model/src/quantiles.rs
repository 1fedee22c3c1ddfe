// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quantiles of samples: exact if every sample was kept, else as fine as the histogram.

use crate::histogram::{Histogram, is_close};
use crate::recording::Recording;
use crate::units::Nanos;

/// The data that quantiles are taken from. It is built once; each quantile then costs little.
#[derive(Clone, Debug)]
pub enum Quantiles {
    /// Every sample was kept; smallest first.
    Exact(Vec<Nanos>),
    /// Some samples were only counted.
    Counted {
        /// Histogram of all samples.
        histogram: Box<Histogram>,
        /// The smallest and the largest sample, which are known exactly.
        reach: Option<(Nanos, Nanos)>,
    },
}

impl Quantiles {
    /// Builds the quantiles of all samples of some recordings.
    pub fn of<'a>(recordings: impl Iterator<Item = &'a Recording> + Clone) -> Self {
        if recordings.clone().all(Recording::is_complete) {
            let samples = recordings.flat_map(|recording| recording.samples.iter());
            let mut values: Vec<Nanos> = samples.map(|sample| sample.value).collect();
            values.sort_unstable();
            return Self::Exact(values);
        }
        let mut histogram = Box::new(Histogram::new());
        let lowest = recordings.clone().filter_map(Recording::min).min();
        let highest = recordings.clone().filter_map(Recording::max).max();
        for recording in recordings {
            histogram.add(&recording.histogram);
        }
        let reach = lowest.zip(highest);
        Self::Counted { histogram, reach }
    }

    /// Returns the value that a share `q` of all samples does not exceed; `None` if there is no
    /// sample, if that sample was not placed in a bin, or if its bin is too wide to name one
    /// value.
    pub fn at(&self, q: f64) -> Option<Nanos> {
        let (low, high) = self.between(q)?;
        is_close(low, high).then_some(high)
    }

    /// Returns the lowest and the highest value that the quantile may have: equal if samples were
    /// kept, else the edges of a bin. `None` if there is no sample, or if that sample was not
    /// placed in a bin.
    pub fn between(&self, q: f64) -> Option<(Nanos, Nanos)> {
        match self {
            Self::Exact(sorted) => {
                let rank = (q * sorted.len() as f64).ceil() as usize;
                let found = sorted.get(rank.clamp(1, sorted.len().max(1)) - 1)?;
                Some((*found, *found))
            }
            Self::Counted { histogram, reach } => {
                let (low, high) = histogram.quantile_between(q)?;
                let within =
                    |value: Nanos| reach.map_or(value, |(least, most)| value.max(least).min(most));
                Some((within(low), within(high)))
            }
        }
    }
}

/// Returns true if `count` samples are enough to speak of the quantile `q`: at least one of
/// them must lie above it.
pub fn supports(count: u64, q: f64) -> bool {
    // Without the allowance, 1,000 × (1 − 0.999) is a little less than 1.
    count as f64 * (1.0 - q) >= 1.0 - 1e-9
}

#[cfg(test)]
mod tests {
    use std::iter;

    use proptest::prelude::*;

    use super::*;
    use crate::key::RecordingKey;
    use crate::recording::Recorder;

    fn record(values: &[i64], keep: usize) -> Recording {
        let mut recorder = Recorder::new(keep);
        for value in values {
            recorder.record(Nanos::ZERO, Nanos(*value));
        }
        recorder.finish(RecordingKey::new("timer", "idle", "cpu0"))
    }

    fn quantile(recording: &Recording, q: f64) -> Option<Nanos> {
        Quantiles::of(iter::once(recording)).at(q)
    }

    proptest! {
        #[test]
        fn kept_samples_have_exact_quantiles(
            values in prop::collection::vec(-1_000_000_i64..1_000_000, 1..200)
        ) {
            let recording = record(&values, 1_000);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            prop_assert_eq!(quantile(&recording, 0.5), Some(Nanos(sorted[(values.len() - 1) / 2])));
            prop_assert_eq!(quantile(&recording, 0.0), Some(Nanos(sorted[0])));
            prop_assert_eq!(quantile(&recording, 1.0), sorted.last().map(|last| Nanos(*last)));
        }
    }

    #[test]
    fn samples_that_were_only_counted_have_quantiles_too_and_none_has_none() {
        assert_eq!(quantile(&record(&[5, 9, 7, 1], 2), 1.0), Some(Nanos(9)));
        assert_eq!(quantile(&record(&[], 10), 0.5), None);
        assert_eq!(quantile(&record(&[-5, 1 << 41], 0), 1.0), None);
        let both = [record(&[1, 2], 0), record(&[3, 4], 2)];
        assert_eq!(Quantiles::of(both.iter()).at(0.75), Some(Nanos(3)));
    }

    #[test]
    fn a_bin_reaches_no_farther_than_the_samples_do() {
        let counted = record(&[5_000, 9_000], 0);
        let all = Quantiles::of(iter::once(&counted));
        assert_eq!(all.at(1.0), Some(Nanos(9_000)));
        assert_eq!(all.between(0.5), Some((Nanos(5_000), Nanos(5_003))));
    }

    #[test]
    fn a_thousand_samples_support_three_nines_and_no_more() {
        assert!(supports(1_000, 0.999) && !supports(1_000, 0.9999));
        assert!(supports(2, 0.5) && !supports(1, 0.5) && !supports(999, 0.999));
    }
}

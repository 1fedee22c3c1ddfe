// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predicts the largest sample of a longer measurement from extreme values, in real time only.
//! Peaks over a threshold follow a generalised Pareto distribution (Pickands 1975) if samples are
//! independent and alike; if they are not, there is no prediction.
//!
//! Source: S. Coles, *An Introduction to Statistical Modeling of Extreme Values* (2001), 4.3.

use fastrand::Rng;
use statrs::distribution::{ChiSquared, ContinuousCDF as _};

use crate::pareto::{Pareto, ljung_box};

/// The fewest samples above the threshold; fewer tell nothing.
pub const EXCEEDANCES_MIN: usize = 50;
/// The largest share of equal values; beyond it a density is no description.
const TIES_MAX: f64 = 0.05;
/// The shape from which on the tail has no variance, and a level no useful interval.
const SHAPE_MAX: f64 = 0.5;
/// The level of the tests for samples that are not independent, or have another tail.
const LEVEL: f64 = 0.01;
/// The number of lags in Ljung and Box's test.
const LAGS: usize = 10;
/// The number of tails drawn to find what is to be expected of one.
const DRAWS: usize = 999;

/// The tail of some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// The value above which the tail is described.
    pub threshold: f64,
    /// The number of samples above it.
    pub exceedances: usize,
    /// Their share of all samples.
    pub share: f64,
    /// The distribution of the excess over the threshold.
    pub pareto: Pareto,
}

/// The level that is exceeded once in a number of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReturnLevel {
    /// The number of samples.
    pub samples: u64,
    /// The level.
    pub level: f64,
    /// Its 95 % interval, by the profile of the likelihood.
    pub interval: (f64, f64),
}

/// The reason why there is no level.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoExtremes {
    /// The run is no complete answer about its kernel, for this reason.
    #[error("{0}")]
    Incomplete(String),
    /// The samples are in virtual time.
    #[error(
        "in virtual time a latency is a discrete function of the phase: its largest value is \
         met or not, and follows no tail"
    )]
    Virtual,
    /// Not all samples are present, in their order.
    #[error("expected all samples in their order, found {kept} of {count}")]
    NotKept {
        /// The number of samples kept.
        kept: u64,
        /// The number of all samples.
        count: u64,
    },
    /// There are too few.
    #[error(
        "expected {EXCEEDANCES_MIN} samples above the threshold in either half, found {0}: it \
         takes 5,000 samples in all"
    )]
    Few(usize),
    /// Too many samples are equal.
    #[error("expected at most 5 % equal values above the threshold, found {:.0} %", .0 * 100.0)]
    Ties(f64),
    /// Samples depend on one another.
    #[error("samples above the threshold depend on one another (Ljung and Box: p = {0:.4})")]
    Dependent(f64),
    /// The tail is not of this kind.
    #[error("the tail is no generalised Pareto distribution (Anderson and Darling: p = {0:.3})")]
    Misfit(f64),
    /// The tail is too heavy.
    #[error("expected a shape below 0.5, found {0:.2}: the tail is too heavy to tell a level")]
    Heavy(f64),
    /// The prediction from the first half is wrong for the second.
    #[error(
        "the first half foretells a maximum of {low:.0} to {high:.0} for the second half, which \
         has {found:.0}: samples are not alike"
    )]
    HeldBack {
        /// Lower end of the interval.
        low: f64,
        /// Upper end of the interval.
        high: f64,
        /// The largest sample found.
        found: f64,
    },
}

/// The tail of samples in the order of time: the largest √n of n. The first half must predict the
/// maximum of the second.
pub fn tail(values: &[f64]) -> Result<Tail, NoExtremes> {
    let (first, second) = values.split_at(values.len() / 2);
    let half = fitted(first)?;
    let all = fitted(values)?;
    let found = second.iter().copied().fold(f64::MIN, f64::max);
    let (low, high) = half.foretold_maximum(second.len());
    if found < low || found > high {
        return Err(NoExtremes::HeldBack { low, high, found });
    }
    Ok(all)
}

fn fitted(values: &[f64]) -> Result<Tail, NoExtremes> {
    let wanted = (values.len() as f64).sqrt().ceil() as usize;
    if wanted < EXCEEDANCES_MIN {
        return Err(NoExtremes::Few(wanted));
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let threshold = sorted[sorted.len() - wanted - 1];
    let above = values
        .iter()
        .enumerate()
        .filter(|(_, value)| **value > threshold);
    let (places, excesses): (Vec<usize>, Vec<f64>) = above
        .map(|(place, value)| (place, value - threshold))
        .unzip();
    let exceedances = excesses.len();
    let mut distinct = sorted[sorted.len() - exceedances..].to_vec();
    distinct.dedup();
    let ties = 1.0 - distinct.len() as f64 / exceedances.max(1) as f64;
    if ties > TIES_MAX {
        return Err(NoExtremes::Ties(ties));
    }
    if exceedances < EXCEEDANCES_MIN {
        return Err(NoExtremes::Few(exceedances));
    }
    let gaps: Vec<f64> = places
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    let chance = [&excesses, &gaps].map(|series| ljung_box(series, LAGS));
    let chance = chance.into_iter().fold(1.0, f64::min);
    if chance < LEVEL {
        return Err(NoExtremes::Dependent(chance));
    }
    let pareto = Pareto::fit(&excesses);
    if pareto.shape >= SHAPE_MAX {
        return Err(NoExtremes::Heavy(pareto.shape));
    }
    let chance = misfit(&pareto, &excesses);
    if chance < LEVEL {
        return Err(NoExtremes::Misfit(chance));
    }
    Ok(Tail {
        threshold,
        exceedances,
        share: exceedances as f64 / values.len() as f64,
        pareto,
    })
}

/// The chance that samples of this very distribution, each time fitted anew, have an Anderson and
/// Darling statistic as large as these have.
fn misfit(pareto: &Pareto, excesses: &[f64]) -> f64 {
    let found = pareto.anderson_darling(excesses);
    let mut random = Rng::with_seed(1);
    let as_large = (0..DRAWS).filter(|_| {
        let drawn = pareto.draw(&mut random, excesses.len());
        Pareto::fit(&drawn).anderson_darling(&drawn) >= found
    });
    (as_large.count() + 1) as f64 / (DRAWS + 1) as f64
}

impl Tail {
    /// The range of the largest of this many further samples, in 99 of 100 cases, for a tail as
    /// uncertain as this one.
    fn foretold_maximum(&self, samples: usize) -> (f64, f64) {
        let expected = samples as f64 * self.share;
        let mut random = Rng::with_seed(2);
        let maximum = |_| {
            let drawn = self.pareto.draw(&mut random, self.exceedances);
            let chance = -random.f64().max(f64::MIN_POSITIVE).ln() / expected;
            // Where all further samples are below the threshold, it is all that is known.
            self.threshold + Pareto::fit(&drawn).exceeded_by(chance.min(1.0))
        };
        let mut maxima: Vec<f64> = (0..DRAWS).map(maximum).collect();
        maxima.sort_by(f64::total_cmp);
        (maxima[DRAWS / 200], maxima[DRAWS - 1 - DRAWS / 200])
    }

    /// The level that is exceeded once in `samples` samples; `values` are the ones the tail is
    /// from.
    pub fn return_level(&self, values: &[f64], samples: u64) -> ReturnLevel {
        let above = values.iter().filter(|value| **value > self.threshold);
        let excesses: Vec<f64> = above.map(|value| value - self.threshold).collect();
        let times = samples as f64 * self.share;
        let (low, high) = self.pareto.level_interval(&excesses, times, critical());
        ReturnLevel {
            samples,
            level: self.threshold + self.pareto.exceeded_by(1.0 / times),
            interval: (self.threshold + low, self.threshold + high),
        }
    }
}

/// The amount by which twice the log-likelihood may fall short of its maximum, at 95 %.
fn critical() -> f64 {
    ChiSquared::new(1.0).map_or(f64::INFINITY, |chi| chi.inverse_cdf(0.95))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(count: usize, seed: u64) -> Vec<f64> {
        let pareto = Pareto {
            shape: 0.1,
            scale: 1_000.0,
        };
        pareto.draw(&mut Rng::with_seed(seed), count)
    }

    #[test]
    fn a_sound_tail_is_described() {
        let values = sound(20_000, 7);
        let found = tail(&values).unwrap();
        assert_eq!(found.exceedances, 142);
        assert!((-0.2..0.4).contains(&found.pareto.shape), "{found:?}");
        let level = found.return_level(&values, 1_000_000);
        // The truth: exceeded once in a million.
        let truth = 1_000.0 / 0.1 * (1e6_f64.powf(0.1) - 1.0);
        let (low, high) = level.interval;
        assert!(low < truth && truth < high, "{truth}: {level:?}");
        assert!(low < level.level && level.level < high, "{level:?}");
    }

    #[test]
    fn what_is_no_such_tail_is_refused() {
        assert_eq!(tail(&sound(4_000, 1)), Err(NoExtremes::Few(45)));
        let rounded: Vec<f64> = sound(20_000, 1)
            .iter()
            .map(|one| (one / 500.0).floor())
            .collect();
        assert!(matches!(tail(&rounded), Err(NoExtremes::Ties(_))));
        // Each sample like the one before.
        let slow: Vec<f64> = sound(1_000, 1)
            .iter()
            .flat_map(|one| (0..20).map(move |n| one + f64::from(n) / 7.0))
            .collect();
        assert!(
            matches!(tail(&slow), Err(NoExtremes::Dependent(_))),
            "{:?}",
            tail(&slow)
        );
        let heavy = Pareto {
            shape: 1.0,
            scale: 10.0,
        };
        let heavy = heavy.draw(&mut Rng::with_seed(3), 20_000);
        assert!(
            matches!(tail(&heavy), Err(NoExtremes::Heavy(_))),
            "{:?}",
            tail(&heavy)
        );
        // The second half is ten times as late.
        let mut later = sound(20_000, 7);
        later[10_000..].iter_mut().for_each(|one| *one += 30_000.0);
        assert!(matches!(
            tail(&later),
            Err(NoExtremes::HeldBack { .. } | NoExtremes::Dependent(_))
        ));
        later = sound(20_000, 7);
        later[15_000] = 200_000.0;
        assert!(matches!(
            tail(&later),
            Err(NoExtremes::HeldBack { .. } | NoExtremes::Misfit(_))
        ));
    }

    #[test]
    fn two_heaps_are_no_tail() {
        // One sample in 150 is of another kind: a heap far out, as rare as the tail is.
        let mut values = sound(40_000, 5);
        let mut random = Rng::with_seed(9);
        for value in values.iter_mut().filter(|_| random.u32(0..400) == 0) {
            *value += 20_000.0;
        }
        let found = tail(&values);
        assert!(matches!(found, Err(NoExtremes::Misfit(_))), "{found:?}");
    }
}

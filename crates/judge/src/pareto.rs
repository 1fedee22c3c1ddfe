// SPDX-License-Identifier: MIT OR Apache-2.0
//! The generalised Pareto distribution: its likelihood, and two tests.

use fastrand::Rng;
use statrs::distribution::{ChiSquared, ContinuousCDF as _};

/// A generalised Pareto distribution from 0 on. A positive shape means a heavy tail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pareto {
    /// ξ.
    pub shape: f64,
    /// σ.
    pub scale: f64,
}

/// Shapes nearer to 0 than this are treated as the exponential distribution's.
const FLAT: f64 = 1e-9;

impl Pareto {
    /// The distribution under which these excesses, all above 0, are most likely.
    ///
    /// Source: S. D. Grimshaw, *Computing maximum likelihood estimates for the generalized
    /// Pareto distribution* (1993): with τ = ξ/σ, ξ is the mean of ln(1 + τx), so that one
    /// unknown is left.
    pub fn fit(excesses: &[f64]) -> Self {
        let count = excesses.len() as f64;
        let mean = excesses.iter().sum::<f64>() / count;
        let largest = excesses.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let of = |logarithm: f64| {
            let ratio = logarithm.exp() - 1.0 / largest;
            if (ratio * mean).abs() < FLAT {
                return Self {
                    shape: 0.0,
                    scale: mean,
                };
            }
            let shape = excesses.iter().map(|x| (ratio * x).ln_1p()).sum::<f64>() / count;
            let scale = shape / ratio;
            Self { shape, scale }
        };
        let likelihood = |logarithm: f64| {
            let Self { shape, scale } = of(logarithm);
            -count * (scale.ln() + shape + 1.0)
        };
        let (low, high) = ((1e-3 / largest).ln(), (100.0 / mean).ln());
        of(highest(likelihood, low, high))
    }

    /// The log-likelihood of these excesses.
    pub fn log_likelihood(&self, excesses: &[f64]) -> f64 {
        let Self { shape, scale } = *self;
        if scale <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let one = |x: &f64| {
            if shape.abs() < FLAT {
                return x / scale;
            }
            let inner = 1.0 + shape * x / scale;
            if inner > 0.0 {
                (1.0 + 1.0 / shape) * inner.ln()
            } else {
                f64::INFINITY
            }
        };
        -(excesses.len() as f64 * scale.ln() + excesses.iter().map(one).sum::<f64>())
    }

    /// The value that this share of all exceeds.
    pub fn exceeded_by(&self, share: f64) -> f64 {
        if self.shape.abs() < FLAT {
            return -self.scale * share.ln();
        }
        self.scale / self.shape * (share.powf(-self.shape) - 1.0)
    }

    /// The share that exceeds this value.
    fn survival(&self, x: f64) -> f64 {
        if self.shape.abs() < FLAT {
            return (-x / self.scale).exp();
        }
        (1.0 + self.shape * x / self.scale)
            .max(0.0)
            .powf(-1.0 / self.shape)
    }

    /// Draws values by chance.
    pub fn draw(&self, random: &mut Rng, count: usize) -> Vec<f64> {
        let one = |_| self.exceeded_by(1.0 - random.f64());
        (0..count).map(one).collect()
    }

    /// Anderson and Darling's statistic (1954).
    pub fn anderson_darling(&self, excesses: &[f64]) -> f64 {
        let mut sorted = excesses.to_vec();
        sorted.sort_by(f64::total_cmp);
        let least = f64::MIN_POSITIVE;
        let above: Vec<f64> = sorted
            .iter()
            .map(|x| self.survival(*x).max(least))
            .collect();
        let pairs = above.iter().zip(above.iter().rev()).zip((1..).step_by(2));
        let terms = pairs.map(|((own, other), weight)| {
            f64::from(weight) * ((1.0 - own).max(least).ln() + other.ln())
        });
        let count = excesses.len() as f64;
        -count - terms.sum::<f64>() / count
    }

    /// The interval for the value that is exceeded once in `times`: there the profile of the
    /// likelihood is at most `critical` / 2 below its maximum (Coles 2001, 4.3.3). This must be the
    /// fit of `excesses`.
    pub fn level_interval(&self, excesses: &[f64], times: f64, critical: f64) -> (f64, f64) {
        let level = self.exceeded_by(1.0 / times);
        let most = self.log_likelihood(excesses);
        let profile = |level: f64| {
            let with = |shape: f64| {
                let scale = if shape.abs() < FLAT {
                    level / times.ln()
                } else {
                    level * shape / (times.powf(shape) - 1.0)
                };
                Self { shape, scale }.log_likelihood(excesses)
            };
            with(highest(with, self.shape - 1.0, self.shape + 1.5))
        };
        let is_within = |level: f64| 2.0 * (most - profile(level)) <= critical;
        (edge(level, 0.5, is_within), edge(level, 2.0, is_within))
    }
}

/// The place, going from `inside` by factors towards `factor`, at which a condition ceases to hold.
fn edge(inside: f64, factor: f64, is_within: impl Fn(f64) -> bool) -> f64 {
    let (mut inside, mut outside) = (inside, inside * factor);
    for _ in 0..60 {
        if !is_within(outside) {
            break;
        }
        (inside, outside) = (outside, outside * factor);
    }
    for _ in 0..50 {
        let middle = f64::midpoint(inside, outside);
        if is_within(middle) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    inside
}

/// Finds the maximum of a function with one summit, by the golden section. Below some value it may
/// be −∞: for a level below the largest sample, shapes that end before that sample.
fn highest(of: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut of_left, mut of_right) = (of(left), of(right));
    for _ in 0..60 {
        if of_left >= of_right && of_left > f64::NEG_INFINITY {
            (high, right, of_right) = (right, left, of_left);
            left = high - golden * (high - low);
            of_left = of(left);
        } else {
            (low, left, of_left) = (left, right, of_right);
            right = low + golden * (high - low);
            of_right = of(right);
        }
    }
    f64::midpoint(low, high)
}

/// The chance that independent values correlate as much with those up to `lags` before them (Ljung
/// and Box 1978).
pub fn ljung_box(series: &[f64], lags: usize) -> f64 {
    let count = series.len() as f64;
    let mean = series.iter().sum::<f64>() / count;
    let centred: Vec<f64> = series.iter().map(|one| one - mean).collect();
    let variance: f64 = centred.iter().map(|one| one * one).sum();
    let term = |lag: usize| {
        let pairs = centred.iter().zip(&centred[lag..]);
        let correlation = pairs.map(|(one, other)| one * other).sum::<f64>() / variance;
        correlation * correlation / (count - lag as f64)
    };
    let sum: f64 = (1..=lags.min(series.len().saturating_sub(1)))
        .map(term)
        .sum();
    let statistic = count * (count + 2.0) * sum;
    ChiSquared::new(lags as f64).map_or(0.0, |chi| chi.sf(statistic))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    /// The quantiles (i - 1/2)/80 of a distribution, rounded to three decimals.
    fn quantiles(shape: f64, scale: f64) -> Vec<f64> {
        let pareto = Pareto { shape, scale };
        let one = |i: i32| pareto.exceeded_by(1.0 - (f64::from(i) - 0.5) / 80.0);
        (1..=80)
            .map(|i| (one(i) * 1_000.0).round() / 1_000.0)
            .collect()
    }

    fn near(found: f64, expected: f64, share: f64) {
        let off = (found - expected).abs();
        assert!(
            off <= share * expected.abs(),
            "{found}, expected {expected}"
        );
    }

    /// Expected: `scipy.stats.genpareto.fit(x, floc=0)`, scipy 1.17.1.
    #[test]
    fn a_fit_is_that_of_scipy() {
        for (shape, scale, expected, likelihood) in [
            (0.2, 10.0, (0.178_915_86, 10.158_682_4), -279.779_576_57),
            (-0.3, 5.0, (-0.328_777_47, 5.127_157_7), -184.462_189_31),
        ] {
            let values = quantiles(shape, scale);
            let found = Pareto::fit(&values);
            near(found.shape, expected.0, 1e-4);
            near(found.scale, expected.1, 1e-4);
            near(found.log_likelihood(&values), likelihood, 1e-9);
        }
    }

    /// Expected: the same likelihood, maximised and cut by scipy's `minimize_scalar` and `brentq`,
    /// for the value that is exceeded once in 800.
    #[test]
    fn a_levels_interval_is_that_of_the_profile() {
        let values = quantiles(0.2, 10.0);
        let fit = Pareto::fit(&values);
        near(fit.exceeded_by(1.0 / 800.0), 130.978_434, 1e-3);
        let (low, high) = fit.level_interval(&values, 800.0, 3.841_459);
        near(low, 72.412_801, 1e-3);
        near(high, 485.967_285, 1e-3);
    }

    #[test]
    fn dependence_is_found_and_chance_is_not_taken_for_it() {
        let mut random = Rng::with_seed(4);
        let series: Vec<f64> = (0..400).map(|_| random.f64()).collect();
        assert!(ljung_box(&series, 10) > 0.05);
        let wave: Vec<f64> = (0..400).map(|n| (f64::from(n) * PI / 20.0).sin()).collect();
        assert!(ljung_box(&wave, 10) < 1e-9);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate of something in measured time: samples above a bound, missed periods.

use punctual_model::Nanos;
use statrs::distribution::{Binomial, ChiSquared, ContinuousCDF as _, Discrete as _};
use statrs::distribution::{DiscreteCDF as _, Gamma};

use crate::rank_sum::RankSum;

/// Occasions are taken for independent if the chance that independent ones are spread so unevenly
/// over runs is above this.
const EVEN: f64 = 0.1;

/// The occasions in each run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occasions {
    /// For each run, the number of occasions and the measured time.
    pub runs: Vec<(u64, Nanos)>,
}

/// Bounds of a rate, in occasions per second, each at the level asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateBounds {
    /// The lowest rate.
    pub lower: f64,
    /// The highest rate.
    pub upper: f64,
}

/// A comparison of two rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoreOften {
    /// True if the first rate is the higher one.
    pub is_higher: bool,
    /// The two-sided chance of rates so far apart.
    pub p: f64,
    /// True if runs were compared instead of occasions, because these come in clusters.
    pub is_by_run: bool,
}

impl Occasions {
    /// The number of occasions in all runs.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(|(count, _)| count).sum()
    }

    /// The measured time of all runs.
    pub fn time(&self) -> Nanos {
        self.runs.iter().fold(Nanos::ZERO, |sum, (_, time)| {
            Nanos(sum.0.saturating_add(time.0))
        })
    }

    /// Pearson's statistic of the counts against equal rates in all runs.
    fn unevenness(&self) -> f64 {
        let (count, time) = (self.count() as f64, self.time().as_secs_f64());
        let of_run = |(own, own_time): &(u64, Nanos)| {
            let expected = count * own_time.as_secs_f64() / time;
            (*own as f64 - expected).powi(2) / expected
        };
        self.runs.iter().map(of_run).sum()
    }

    /// The number of occasions that come together: 1 if they are as even as chance makes them.
    ///
    /// Source: `McCullagh` and Nelder, *Generalized Linear Models*, 6.2 (the dispersion
    /// of counts).
    pub fn cluster_size(&self) -> f64 {
        match (self.count(), self.runs.len()) {
            (0, _) => 1.0,
            (count, 1) => count as f64,
            (count, runs) => {
                let size = self.unevenness() / (runs - 1) as f64;
                // With a run without a time nothing is known of how they are spread.
                if size.is_finite() {
                    size.max(1.0)
                } else {
                    count as f64
                }
            }
        }
    }

    /// Returns true if the occasions come in clusters, as far as these runs tell. One run can never
    /// show that they do not.
    fn is_clustered(&self) -> bool {
        if self.count() < 2 {
            return false;
        }
        let Ok(even) = ChiSquared::new(self.runs.len() as f64 - 1.0) else {
            return true;
        };
        let unevenness = self.unevenness();
        !unevenness.is_finite() || even.sf(unevenness) < EVEN
    }

    /// The bounds of the rate that these occasions allow: each bound is wrong with a chance of at
    /// most `level`. `None` if no time was measured.
    ///
    /// Source: F. Garwood, *Fiducial limits for the Poisson distribution* (1936); counts and times
    /// are first divided by the size of clusters.
    ///
    /// # Panics
    /// If `level` is not between 0 and 1.
    pub fn rate(&self, level: f64) -> Option<RateBounds> {
        let time = self.time().as_secs_f64();
        if time <= 0.0 {
            return None;
        }
        let size = self.cluster_size();
        let clusters = self.count() as f64 / size;
        let quantile = |shape: f64, share: f64| {
            let gamma = Gamma::new(shape, 1.0).expect("the shape is above zero");
            gamma.inverse_cdf(share)
        };
        let lower = match self.count() {
            0 => 0.0,
            _ => quantile(clusters, level),
        };
        Some(RateBounds {
            lower: lower * size / time,
            upper: quantile(clusters + 1.0, 1.0 - level) * size / time,
        })
    }

    /// The rate of each run, in occasions per second.
    fn rates(&self) -> Vec<f64> {
        let timed = self.runs.iter().filter(|(_, time)| *time > Nanos::ZERO);
        let rate = |(count, time): &(u64, Nanos)| *count as f64 / time.as_secs_f64();
        timed.map(rate).collect()
    }
}

/// Compares two rates; `None` if one side has no time, or neither has an occasion.
///
/// Given the sum of both counts, the first is binomial. The p is the middle one (half of the chance
/// of what was observed). If occasions come in clusters, the rates of runs are compared instead, by
/// the permutation of run labels.
///
/// Sources: J. Przyborowski and H. Wilenski, *Homogeneity of results in testing samples from
/// Poisson series* (1940); H. O. Lancaster, *Significance tests in discrete distributions*
/// (1961) for the middle p.
pub fn more_often(one: &Occasions, other: &Occasions) -> Option<MoreOften> {
    let (time, others) = (one.time().as_secs_f64(), other.time().as_secs_f64());
    let (count, all) = (one.count(), one.count() + other.count());
    if time <= 0.0 || others <= 0.0 || all == 0 {
        return None;
    }
    if one.is_clustered() || other.is_clustered() {
        let sum = RankSum::of(&one.rates(), &other.rates());
        return Some(MoreOften {
            is_higher: !sum.is_low(),
            p: sum.p(),
            is_by_run: true,
        });
    }
    let given = Binomial::new(time / (time + others), all).ok()?;
    let half = given.pmf(count) / 2.0;
    let (below, above) = (given.cdf(count) - half, given.sf(count) + half);
    Some(MoreOften {
        is_higher: above < below,
        p: (2.0 * below.min(above)).min(1.0),
        is_by_run: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos(1_000_000_000);

    fn occasions(counts: &[u64]) -> Occasions {
        Occasions {
            runs: counts.iter().map(|count| (*count, SECOND)).collect(),
        }
    }

    #[test]
    fn what_never_happened_is_excluded_by_the_rule_of_three() {
        let bounds = occasions(&[0; 10]).rate(0.05).unwrap();
        assert!(bounds.lower.abs() < f64::EPSILON);
        assert!((bounds.upper - 0.299_573).abs() < 1e-5, "{bounds:?}");
        assert_eq!(Occasions::default().rate(0.05), None);
    }

    #[test]
    fn bounds_are_those_of_tables() {
        // Garwood's 95 % interval of 5: 1.6235 to 11.6683.
        let bounds = occasions(&[1, 1, 1, 1, 1]).rate(0.025).unwrap();
        assert!((bounds.lower * 5.0 - 1.6235).abs() < 1e-3, "{bounds:?}");
        assert!((bounds.upper * 5.0 - 11.6683).abs() < 1e-3, "{bounds:?}");
    }

    #[test]
    fn a_burst_in_one_run_counts_about_once() {
        let burst = occasions(&[0, 0, 20, 0, 0]);
        assert!((burst.cluster_size() - 20.0).abs() < 1e-9);
        let even = occasions(&[4, 4, 4, 4, 4]);
        assert!((even.cluster_size() - 1.0).abs() < 1e-9);
        let (burst, even) = (burst.rate(0.05).unwrap(), even.rate(0.05).unwrap());
        assert!(burst.lower < even.lower / 10.0 && burst.upper > 2.0 * even.upper);
        assert!((occasions(&[7]).cluster_size() - 7.0).abs() < 1e-9);
    }

    #[test]
    fn a_run_without_a_time_shows_no_even_spread_and_breaks_nothing() {
        for (count, expected) in [(0, 20.0), (3, 23.0)] {
            let mut untimed = occasions(&[0, 0, 20, 0]);
            untimed.runs.push((count, Nanos::ZERO));
            assert!((untimed.cluster_size() - expected).abs() < 1e-9);
            let bounds = untimed.rate(0.05).unwrap();
            assert!(bounds.lower < 1.0 && bounds.upper > 20.0, "{bounds:?}");
            let found = more_often(&untimed, &occasions(&[0; 5])).unwrap();
            assert!(found.is_by_run, "{found:?}");
        }
    }

    #[test]
    fn rates_are_compared_by_the_middle_p() {
        // 10 against 2 in the same time: of 12 tosses 10 or more, 79 of 4,096, less half of
        // the 66 of exactly 10; twice that.
        let one = occasions(&[2, 2, 2, 2, 2]);
        let other = occasions(&[1, 0, 1, 0, 0]);
        let found = more_often(&one, &other).unwrap();
        assert!(found.is_higher && !found.is_by_run);
        assert!((found.p - 2.0 * 46.0 / 4096.0).abs() < 1e-9, "{}", found.p);
        let burst = occasions(&[0, 0, 50, 0, 0]);
        let found = more_often(&burst, &occasions(&[0; 5])).unwrap();
        assert!(found.is_by_run && found.p > 0.4, "{found:?}");
        assert_eq!(more_often(&occasions(&[0]), &occasions(&[0])), None);
    }
}

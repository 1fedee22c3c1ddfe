// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares one subject's runs with another's: lower or higher.

use statrs::distribution::{ContinuousCDF as _, Normal};

use crate::rank_sum::{RankSum, quotients_left_out};
use crate::rule::{Rule, TooFewRuns, least_p};
use crate::step_down::{Family, adjusted};

/// The figures of two subjects: one for each run, all of one unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    /// The figures of the subject that is judged.
    pub of: Vec<f64>,
    /// The figures of the subject that it is compared with.
    pub than: Vec<f64>,
    /// The runs that both have these figures of, in this order: rows of the same runs are judged
    /// together.
    pub runs: Vec<String>,
    /// True if both behaved the same to the last sample: their digests are equal.
    pub is_identical: bool,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The verdict.
    pub verdict: Verdict,
    /// The ratio of these figures to the other's; `None` if one is not above zero.
    pub ratio: Option<Interval>,
    /// The chance of so large a difference, adjusted for all rows; `None` if nothing was tested.
    pub p: Option<f64>,
}

/// The verdict on one subject's figures against another's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// They are lower.
    Lower,
    /// They are higher.
    Higher,
    /// They cannot be told apart.
    NotSeparated {
        /// The number of further runs of each side that would find the smallest effect worth
        /// finding; 0 if the present ones would have. `None` if the figures do not tell.
        more: Option<u32>,
    },
    /// Both behaved the same to the last sample.
    Identical,
    /// There are too few runs.
    Undecided(TooFewRuns),
}

/// A ratio and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The ratio itself.
    pub estimate: f64,
    /// Its lower and its upper bound; `None` if there are too few runs for any.
    pub bounds: Option<(f64, f64)>,
}

impl Interval {
    /// Ends it at 1 beside *lower* or *higher*: ties may leave it wider than the test. The test
    /// excludes 1 and all that lies beyond, and nothing that lies before.
    fn beside(self, verdict: &Verdict) -> Self {
        const BELOW: f64 = 1.0 - f64::EPSILON / 2.0;
        const ABOVE: f64 = 1.0 + f64::EPSILON;
        let bounds = self.bounds.map(|(low, high)| match verdict {
            Verdict::Lower => (low.min(BELOW), high.min(BELOW)),
            Verdict::Higher => (low.max(ABOVE), high.max(ABOVE)),
            _ => (low, high),
        });
        Self { bounds, ..self }
    }
}

/// A single comparison: [`compare_rows`] of one row.
pub fn compare(of: &[f64], than: &[f64], rule: &Rule) -> Comparison {
    let row = Pair {
        of: of.to_vec(),
        than: than.to_vec(),
        ..Pair::default()
    };
    compare_rows(&[row], rule).remove(0)
}

/// Several comparisons at once. The chance that any of them finds a difference where there is none
/// is no more than the rule's level.
///
/// Each is the exact permutation test of run labels on the rank sum, and p is adjusted by the
/// permutation of whole runs in all rows at once. The ratio is the median of all quotients of
/// one run's figure by another's, with the interval that inverts the test of its row by
/// itself.
///
/// Source of ratio and interval: J. L. Hodges and E. L. Lehmann, *Estimates of location based
/// on rank tests* (1963), on logarithms.
///
/// # Panics
/// If a figure is not a number.
pub fn compare_rows(rows: &[Pair], rule: &Rule) -> Vec<Comparison> {
    let sums: Vec<Option<RankSum>> = rows.iter().map(Pair::rank_sum).collect();
    let tested = sums.iter().flatten().count();
    let ps = adjusted(&families(rows, &sums), rows.len());
    let compared = rows.iter().zip(&sums).zip(ps);
    compared
        .map(|((row, sum), p)| row.compared(sum.as_ref(), p, rule, &rule.share(tested)))
        .collect()
}

/// The rows that are tested, those of the same runs together.
fn families<'a>(rows: &[Pair], sums: &'a [Option<RankSum>]) -> Vec<Family<'a>> {
    let mut families: Vec<(&Pair, Family<'a>)> = Vec::new();
    for (number, (row, sum)) in rows.iter().zip(sums).enumerate() {
        let Some(sum) = sum else { continue };
        let is_own = |(other, _): &&mut (&Pair, Family<'_>)| {
            (&other.runs, other.have()) == (&row.runs, row.have())
        };
        match families.iter_mut().find(is_own) {
            Some((_, family)) => family.rows.push((number, sum)),
            None => families.push((
                row,
                Family {
                    rows: vec![(number, sum)],
                },
            )),
        }
    }
    families.into_iter().map(|(_, family)| family).collect()
}

impl Comparison {
    /// Returns true if a difference by this factor is ruled out, either way.
    pub fn excludes(&self, effect: f64) -> bool {
        let bounds = self.ratio.and_then(|ratio| ratio.bounds);
        bounds.is_some_and(|(low, high)| low > 1.0 / effect && high < effect)
    }

    const IDENTICAL: Self = Self {
        verdict: Verdict::Identical,
        ratio: Some(Interval {
            estimate: 1.0,
            bounds: Some((1.0, 1.0)),
        }),
        p: None,
    };
}

impl Pair {
    /// The result of the comparison. `p` is adjusted for all rows; `share` is the rule for one row
    /// if each paid for all.
    fn compared(&self, sum: Option<&RankSum>, p: f64, rule: &Rule, share: &Rule) -> Comparison {
        if self.is_identical {
            return Comparison::IDENTICAL;
        }
        let have = self.have();
        // As far apart as can be, and yet it may be chance in one of so many rows.
        let is_apart = |sum: &RankSum| sum.p() <= least_p(have.0, have.1) * (1.0 + 1e-9);
        let few = match sum {
            Some(sum) if is_apart(sum) => TooFewRuns::of(have, share.level),
            _ => TooFewRuns::of(have, rule.level),
        };
        let verdict = match (sum, few) {
            (Some(sum), _) if p <= rule.level && sum.is_low() => Verdict::Lower,
            (Some(_), _) if p <= rule.level => Verdict::Higher,
            (_, Some(few)) => Verdict::Undecided(few),
            (_, None) => Verdict::NotSeparated {
                more: self.more(share),
            },
        };
        let ratio = self.ratio(rule.level);
        Comparison {
            verdict,
            ratio: ratio.map(|ratio| ratio.beside(&verdict)),
            p: sum.map(|_| p),
        }
    }

    fn have(&self) -> (usize, usize) {
        (self.of.len(), self.than.len())
    }

    fn rank_sum(&self) -> Option<RankSum> {
        let figures = || self.of.iter().chain(&self.than);
        assert!(!figures().any(|one| one.is_nan()), "a figure is no number");
        let is_tested = !self.is_identical && !self.of.is_empty() && !self.than.is_empty();
        is_tested.then(|| RankSum::of(&self.of, &self.than))
    }

    fn is_positive(&self) -> bool {
        self.of.iter().chain(&self.than).all(|one| *one > 0.0)
    }

    /// The ratio of these figures to the other's.
    fn ratio(&self, level: f64) -> Option<Interval> {
        let (of, than) = self.have();
        if !self.is_positive() || of == 0 || than == 0 {
            return None;
        }
        let each = |of: &f64| {
            let of = *of;
            self.than.iter().map(move |than| of / than)
        };
        let mut quotients: Vec<f64> = self.of.iter().flat_map(each).collect();
        quotients.sort_by(f64::total_cmp);
        let last = quotients.len() - 1;
        let middle = (quotients[last / 2] * quotients[quotients.len() / 2]).sqrt();
        let left_out = quotients_left_out(of, than, level);
        Some(Interval {
            estimate: middle,
            bounds: left_out.map(|count| (quotients[count], quotients[last - count])),
        })
    }

    /// The number of further runs of each side that would find the smallest effect worth finding.
    ///
    /// Source: G. E. Noether, *Sample size determination for some common nonparametric tests*,
    /// Journal of the American Statistical Association 82 (1987); the chance that one run is below
    /// another is taken from the spread of the logarithms, as if these were normal. If that effect
    /// is more than either side's whole range, the sides would be apart, and the fewest runs that
    /// can tell anything suffice.
    fn more(&self, rule: &Rule) -> Option<u32> {
        let (of, than) = self.have();
        let freedom = (of + than).checked_sub(2).filter(|left| *left > 0)?;
        if !self.is_positive() {
            return None;
        }
        let least = TooFewRuns::of((0, 0), rule.level).map_or(1, |few| few.needed);
        let effect = rule.effect.ln();
        let is_apart = range_of_logs(&self.of).max(range_of_logs(&self.than)) < effect;
        let squares = squares_of_logs(&self.of) + squares_of_logs(&self.than);
        let spread = (squares / freedom as f64).sqrt();
        let normal = Normal::standard();
        let below = normal.cdf(effect / (spread * 2.0_f64.sqrt()));
        let quantiles = normal.inverse_cdf(1.0 - rule.level / 2.0) + normal.inverse_cdf(rule.power);
        // Half of Noether's total: as many of each side.
        let each = quantiles.powi(2) / (6.0 * (below - 0.5).powi(2));
        let each = if is_apart {
            least as u32
        } else {
            (each.ceil() as u32).max(least as u32)
        };
        Some(each.saturating_sub(of.min(than) as u32))
    }
}

/// The sum of the squares of the logarithms' distances from their mean.
fn squares_of_logs(figures: &[f64]) -> f64 {
    let logs = || figures.iter().map(|one| one.ln());
    let mean = logs().sum::<f64>() / figures.len() as f64;
    logs().map(|log| (log - mean).powi(2)).sum()
}

/// The distance from the smallest logarithm to the largest.
fn range_of_logs(figures: &[f64]) -> f64 {
    let most = figures.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    (most / least).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: [f64; 5] = [7.0, 7.2, 7.1, 6.9, 7.3];
    const HIGH: [f64; 5] = [380.0, 900.0, 716.0, 500.0, 610.0];

    fn pair(of: &[f64], than: &[f64]) -> Pair {
        Pair {
            of: of.to_vec(),
            than: than.to_vec(),
            ..Pair::default()
        }
    }

    #[test]
    fn five_runs_that_are_apart_are_lower_or_higher_with_a_ratio() {
        let rule = Rule::default();
        let found = compare(&LOW, &HIGH, &rule);
        assert_eq!(found.verdict, Verdict::Lower);
        assert!((found.p.unwrap() - 2.0 / 252.0).abs() < 1e-12);
        assert_eq!(compare(&HIGH, &LOW, &rule).verdict, Verdict::Higher);
        // The third smallest and the third largest of 25 quotients.
        let (low, high) = found.ratio.unwrap().bounds.unwrap();
        assert!((low - 7.1 / 900.0).abs() < 1e-12, "{low}");
        assert!((high - 7.1 / 380.0).abs() < 1e-12, "{high}");
    }

    #[test]
    fn a_lower_number_alone_is_no_verdict() {
        let (one, other) = ([6.39, 6.5, 6.7, 6.4, 6.6], [6.44, 6.45, 6.8, 6.3, 6.55]);
        let found = compare(&one, &other, &Rule::default());
        // These would have found a ratio of 1.2: none is likely.
        assert_eq!(found.verdict, Verdict::NotSeparated { more: Some(0) });
        let (low, high) = found.ratio.unwrap().bounds.unwrap();
        assert!(low < 1.0 && high > 1.0);
        let spread: Vec<f64> = one.iter().map(|one| (one - 6.0) * 100.0).collect();
        let other: Vec<f64> = other.iter().map(|one| (one - 6.0) * 100.0).collect();
        let found = compare(&spread, &other, &Rule::default());
        let Verdict::NotSeparated { more: Some(more) } = found.verdict else {
            panic!("{found:?}")
        };
        assert!(more > 20, "{more}");
    }

    #[test]
    fn beside_lower_or_higher_the_interval_never_contains_one_also_with_ties() {
        let of = |one: &[f64], other: &[f64]| compare(one, other, &Rule::default());
        let found = of(&[1.0, 2.0, 3.0, 3.0, 3.0], &[2.0, 4.0, 4.0, 4.0, 4.0]);
        let (low, high) = found.ratio.unwrap().bounds.unwrap();
        assert_eq!(found.verdict, Verdict::Lower);
        assert!((low - 0.25).abs() < 1e-12 && high < 1.0 && high > 0.999);
        let mut random = fastrand::Rng::with_seed(3);
        let mut ended = 0;
        for round in 0..2_000 {
            let most = 2 + round % 5;
            let mut side = || -> Vec<f64> {
                let size = random.usize(4..9);
                (0..size).map(|_| f64::from(random.u32(1..=most))).collect()
            };
            let (one, other) = (side(), side());
            let found = of(&one, &other);
            let ratio = found.ratio.unwrap();
            let (low, high) = ratio.bounds.unwrap();
            assert!(low <= high, "{one:?} {other:?}");
            let is_right = match found.verdict {
                Verdict::Lower => high < 1.0 && ratio.estimate <= 1.0,
                Verdict::Higher => low > 1.0 && ratio.estimate >= 1.0,
                _ => true,
            };
            assert!(is_right, "{one:?} {other:?}: {found:?}");
            let nearest = (low - 1.0).abs().min((high - 1.0).abs());
            let is_told = matches!(found.verdict, Verdict::Lower | Verdict::Higher);
            ended += u32::from(is_told && nearest < 1e-9);
        }
        assert!(ended > 0, "ties leave some wider");
    }

    #[test]
    fn too_few_runs_are_refused_with_how_many_it_takes() {
        let found = compare(&LOW[..3], &HIGH[..3], &Rule::default());
        let few = TooFewRuns {
            have: (3, 3),
            needed: 4,
        };
        assert_eq!(found.verdict, Verdict::Undecided(few));
        assert_eq!(found.ratio.unwrap().bounds, None);
        let none = compare(&[], &HIGH, &Rule::default());
        assert!(matches!(none.verdict, Verdict::Undecided(_)) && none.ratio.is_none());
    }

    #[test]
    fn rows_that_say_the_same_are_judged_as_one_and_identical_ones_ask_for_nothing() {
        let mut rows = vec![pair(&LOW, &HIGH); 20];
        let mut same = pair(&LOW, &LOW);
        same.is_identical = true;
        rows.push(same);
        let found = compare_rows(&rows, &Rule::default());
        assert!(found[..20].iter().all(|one| one.verdict == Verdict::Lower));
        assert_eq!(found[20].verdict, Verdict::Identical);
        // Each interval is of its row by itself.
        assert_eq!(found[0].ratio, compare(&LOW, &HIGH, &Rule::default()).ratio);
    }

    #[test]
    fn rows_that_say_something_else_ask_for_more_runs_and_so_do_other_runs() {
        let apart = pair(&LOW[..4], &HIGH[..4]);
        // Four of its runs are further from the others than those of the row above.
        let mixed = pair(&[1.0, 1e6, 1.1, 1.2e6], &[1.05, 1.1e6, 1.15, 1.3e6]);
        let few = Verdict::Undecided(TooFewRuns {
            have: (4, 4),
            needed: 5,
        });
        let verdicts = |rows: &[Pair]| -> Vec<Verdict> {
            let found = compare_rows(rows, &Rule::default());
            found.iter().map(|one| one.verdict).collect()
        };
        assert_eq!(verdicts(std::slice::from_ref(&apart)), [Verdict::Lower]);
        assert_eq!(verdicts(&[apart.clone(), mixed])[0], few);
        let mut other = apart.clone();
        other.runs = vec!["r1".to_owned()];
        assert_eq!(verdicts(&[apart, other]), [few, few]);
    }

    #[test]
    fn figures_at_or_below_zero_are_ranked_and_have_no_ratio() {
        let found = compare(
            &[0.0, -1.0, -2.0, -3.0],
            &[1.0, 2.0, 3.0, 4.0],
            &Rule::default(),
        );
        assert_eq!((found.verdict, found.ratio), (Verdict::Lower, None));
        let equal = compare(&[0.0; 5], &[0.0; 5], &Rule::default());
        assert_eq!(equal.verdict, Verdict::NotSeparated { more: None });
        let equal = compare(&[7.0; 5], &[7.0; 5], &Rule::default());
        assert_eq!(equal.verdict, Verdict::NotSeparated { more: Some(0) });
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The certainty of a verdict, and the effect worth finding.

use std::fmt;

use statrs::function::factorial::binomial;

/// The most runs of each side that are ever asked for.
const RUNS_MOST: u64 = 1_000;

/// The certainty of a verdict, and the effect worth finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The chance of finding a difference where there is none: above 0, below 1.
    pub level: f64,
    /// The smallest ratio worth finding, above 1.
    pub effect: f64,
    /// The chance of finding a difference of that ratio: above 0, below 1.
    pub power: f64,
}

impl Default for Rule {
    /// 5 %; a ratio of 1.2, four times in five.
    fn default() -> Self {
        Self {
            level: 0.05,
            effect: 1.2,
            power: 0.8,
        }
    }
}

impl Rule {
    /// The confidence in per cent, such as `95`.
    pub fn confidence_percent(&self) -> f64 {
        percent(1.0 - self.level)
    }

    /// The fewest runs that each side needs for any verdict.
    pub fn runs(&self) -> usize {
        TooFewRuns::of((0, 0), self.level).map_or(1, |few| few.needed)
    }

    /// The same rule for one of `rows` comparisons (Bonferroni's share of the level).
    #[must_use]
    pub fn share(&self, rows: usize) -> Self {
        Self {
            level: self.level / rows.max(1) as f64,
            ..*self
        }
    }
}

/// A share in per cent, as people write it: without rounding, 0.07 would be 7.000000000000001 %.
pub fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// The smallest two-sided p that a permutation of `one` and `other` runs can have.
pub(crate) fn least_p(one: usize, other: usize) -> f64 {
    let all = binomial((one + other) as u64, one as u64);
    (2.0 / all).min(1.0)
}

/// The reason why there is no verdict: not even runs that are all apart would be enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFewRuns {
    /// The runs of the first and of the second side.
    pub have: (usize, usize),
    /// The fewest runs that each side needs.
    pub needed: usize,
}

impl TooFewRuns {
    /// The runs that `have` lacks for a comparison at a level; `None` if it suffices.
    pub(crate) fn of(have: (usize, usize), level: f64) -> Option<Self> {
        if have.0 > 0 && have.1 > 0 && least_p(have.0, have.1) <= level {
            return None;
        }
        let enough = |runs: &u64| least_p(*runs as usize, *runs as usize) <= level;
        let needed = (1..RUNS_MOST).find(enough).unwrap_or(RUNS_MOST) as usize;
        Some(Self { have, needed })
    }
}

impl fmt::Display for TooFewRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, other) = self.have;
        match (one, other) {
            (0, 0) => return write!(f, "neither side has measured it"),
            (0, _) | (_, 0) => return write!(f, "one side has not measured it"),
            _ => {}
        }
        write!(f, "too few runs: {one} and {other}, ")?;
        write!(f, "{} each are needed at this level", self.needed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_in_per_cent_has_no_more_digits_than_people_write() {
        assert_eq!(percent(0.07).to_string(), "7");
        assert_eq!(percent(0.001_25).to_string(), "0.125");
        assert_eq!(Rule::default().confidence_percent().to_string(), "95");
    }

    #[test]
    fn five_against_five_can_be_one_in_126_and_three_against_three_one_in_ten() {
        assert!((least_p(5, 5) - 2.0 / 252.0).abs() < 1e-12);
        let of = |comparisons| Rule::default().share(comparisons).runs();
        assert_eq!([of(1), of(13), of(100)], [4, 6, 8]);
        assert!((least_p(3, 3) - 0.1).abs() < 1e-12);
        assert_eq!(TooFewRuns::of((4, 4), 0.05), None);
        assert_eq!(TooFewRuns::of((2, 20), 0.05), None, "2 of 231");
        let few = TooFewRuns::of((3, 3), 0.05).unwrap();
        assert_eq!(few.needed, 4);
        assert_eq!(
            few.to_string(),
            "too few runs: 3 and 3, 4 each are needed at this level"
        );
        assert_eq!(TooFewRuns::of((5, 5), 0.005).unwrap().needed, 6);
        let one_sided = TooFewRuns::of((0, 9), 0.05).unwrap();
        assert_eq!(one_sided.needed, 4);
        assert_eq!(one_sided.to_string(), "one side has not measured it");
    }
}

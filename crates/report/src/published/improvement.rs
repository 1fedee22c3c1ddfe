// SPDX-License-Identifier: MIT OR Apache-2.0
//! The average improvement of all tests' worst cases, as the paper on 2.6.33 and 3.6.6 has it.

use punctual_model::units::Nanos;
use punctual_published::Measure;

use super::measure::{figure, rows};
use crate::matrix::{Column, Matrix};

/// What became of one test's worst case.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// `switch, max`.
    pub name: String,
    /// The older kernel's, or why there is none.
    pub older: Result<Nanos, String>,
    /// The newer kernel's, or why there is none.
    pub newer: Result<Nanos, String>,
}

impl Test {
    /// By how many per cent of the older kernel's worst case the newer one's is shorter; below
    /// zero where it is longer. `None` where one of the two is missing.
    pub fn percent(&self) -> Option<f64> {
        let (older, newer) = (self.older.as_ref().ok()?, self.newer.as_ref().ok()?);
        (older.0 > 0).then(|| (older.0 - newer.0) as f64 * 100.0 / older.0 as f64)
    }
}

/// All tests on two kernels.
pub fn tests(
    matrix: &Matrix<'_>,
    older: &Column<'_>,
    newer: &Column<'_>,
    what: &[Measure],
) -> Vec<Test> {
    let test = |measure: &Measure| {
        let rows = rows(matrix, measure, None);
        Test {
            name: measure.name(),
            older: figure(older, &rows, measure.statistic),
            newer: figure(newer, &rows, measure.statistic),
        }
    };
    what.iter().map(test).collect()
}

/// The arithmetic mean of all percentages, and of how many; `None` where there is none.
pub fn average(tests: &[Test]) -> Option<(f64, usize)> {
    let percents: Vec<f64> = tests.iter().filter_map(Test::percent).collect();
    let count = percents.len();
    (count > 0).then(|| (percents.iter().sum::<f64>() / count as f64, count))
}

#[cfg(test)]
mod cases {
    use super::*;

    fn test(older: i64, newer: i64) -> Test {
        Test {
            name: String::new(),
            older: Ok(Nanos(older)),
            newer: Ok(Nanos(newer)),
        }
    }

    #[test]
    fn the_papers_two_sustained_intervals_improved_by_a_quarter_and_a_third() {
        // 36.8 to 25 µs and 47.4 to 36 µs, by hand 32.07 % and 24.05 %.
        let tests = [test(36_800, 25_000), test(47_400, 36_000)];
        assert!((tests[0].percent().unwrap() - 32.065).abs() < 0.001);
        assert!((tests[1].percent().unwrap() - 24.051).abs() < 0.001);
        let (average, count) = average(&tests).unwrap();
        assert!((average - 28.058).abs() < 0.001 && count == 2, "{average}");
    }

    #[test]
    fn a_longer_worst_case_counts_against_it_and_a_missing_one_not_at_all() {
        let mut tests = vec![test(10, 5), test(10, 30)];
        assert_eq!(average(&tests), Some((-75.0, 2)));
        tests.push(Test {
            newer: Err("not measured".into()),
            ..test(10, 1)
        });
        assert_eq!(average(&tests), Some((-75.0, 2)));
        assert_eq!(average(&tests[2..]), None);
    }
}

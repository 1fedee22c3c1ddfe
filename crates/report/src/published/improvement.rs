// SPDX-License-Identifier: MIT OR Apache-2.0
//! The average improvement of all tests' worst cases, seed by seed; in real time, run by run.
//! The paper on 2.6.33 and 3.6.6 has it so.

use std::collections::BTreeSet;

use punctual_published::{Improved, Measure};

use super::measure::{OfRun, by_run, independent, rows};
use super::roles::subjects;
use crate::matrix::{Column, Matrix};

/// Two kernels, test by test.
#[derive(Clone, Debug)]
pub struct Improvement {
    /// The kernel that the other is compared with.
    pub older: String,
    /// The other.
    pub newer: String,
    /// The name of what tells a kernel's runs from each other: `seed`, or `run` in real time.
    pub unit: &'static str,
    /// The tests.
    pub tests: Vec<Test>,
}

/// The worst case of each run, in nanoseconds, or the reason why there is none. Each stands behind
/// the number that pairs it with a run of the other kernel: in virtual time its seed, in real time,
/// where seeds may be equal, its place among all runs of its kernel.
type Worst = Result<Vec<(u64, f64)>, String>;

/// The change of one test's worst case.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// `switch, max`.
    pub name: String,
    /// The older kernel's.
    pub older: Worst,
    /// The newer kernel's.
    pub newer: Worst,
}

impl Test {
    /// Returns the improvement for each number, such as a seed, that both have.
    /// It is in per cent of the older kernel's worst case, and below zero if the newer one's is
    /// longer.
    pub fn percents(&self) -> Vec<(u64, f64)> {
        let (Ok(older), Ok(newer)) = (&self.older, &self.newer) else {
            return Vec::new();
        };
        let percent = |(number, newer): &(u64, f64)| {
            let same = |(other, older): &&(u64, f64)| other == number && *older > 0.0;
            let (_, older) = older.iter().find(same)?;
            Some((*number, (older - newer) * 100.0 / older))
        };
        newer.iter().filter_map(percent).collect()
    }
}

/// Returns the worst cases of an older and of a newer kernel.
/// If the subjects have no such pair, it compares the first subject with each other one.
pub fn improvements(matrix: &Matrix<'_>, improved: &Improved) -> Vec<Improvement> {
    let (newer, older) = (
        subjects(matrix, improved.of),
        subjects(matrix, improved.than),
    );
    let pairs: Vec<(&Column<'_>, &Column<'_>)> = if newer.is_empty() || older.is_empty() {
        let others = matrix.columns.iter().skip(1);
        others.map(|other| (&matrix.columns[0], other)).collect()
    } else {
        let with_all = |newer| older.iter().map(move |older| (*older, newer));
        newer.into_iter().flat_map(with_all).collect()
    };
    // Times of different clocks are never divided by each other.
    let alike = pairs
        .into_iter()
        .filter(|(older, newer)| older.clock == newer.clock);
    alike
        .map(|(older, newer)| Improvement {
            older: older.name.clone(),
            newer: newer.name.clone(),
            unit: newer.unit(),
            tests: tests(matrix, older, newer, &improved.what),
        })
        .collect()
}

/// A test's figure of each run of a kernel, or the reason why there is none.
type Figures<'a> = Result<Vec<OfRun<'a>>, String>;

fn tests(
    matrix: &Matrix<'_>,
    older: &Column<'_>,
    newer: &Column<'_>,
    what: &[Measure],
) -> Vec<Test> {
    let number = |run: &OfRun<'_>| {
        if newer.is_virtual() {
            run.seed
        } else {
            run.number as u64
        }
    };
    let of_measure = |measure: &Measure| {
        let rows = rows(matrix, measure, None);
        [older, newer].map(|column| by_run(column, &rows, measure.statistic))
    };
    let all: Vec<_> = what.iter().map(of_measure).collect();
    let runs = || all.iter().flatten().flatten().flatten();
    let numbers: BTreeSet<u64> = runs().map(number).collect();
    // Seeds that changed nothing in any test, on either kernel, are one draw.
    let draw = |own: &u64| OfRun {
        number: 0,
        seed: *own,
        value: 0.0,
        recordings: runs()
            .filter(|run| number(run) == *own)
            .flat_map(|run| run.recordings.iter().copied())
            .collect(),
    };
    let draws = independent(numbers.iter().map(draw).collect());
    let draws: BTreeSet<u64> = draws.iter().map(|draw| draw.seed).collect();
    let worst = |runs: Figures<'_>| -> Worst {
        let runs = runs?;
        let worst = runs.iter().map(|run| (number(run), run.value));
        Ok(worst.filter(|(own, _)| draws.contains(own)).collect())
    };
    let test = |(measure, [older, newer]): (&Measure, [Figures<'_>; 2])| Test {
        name: measure.name(),
        older: worst(older),
        newer: worst(newer),
    };
    what.iter().zip(all).map(test).collect()
}

/// Returns the arithmetic mean for each seed, or run, of the percentages of all tests.
/// Tests count that both kernels have; their number is returned, too.
pub fn average(tests: &[Test]) -> (Vec<f64>, usize) {
    let percents = tests.iter().map(Test::percents);
    let percents: Vec<_> = percents.filter(|all| !all.is_empty()).collect();
    let count = percents.len();
    let Some((first, others)) = percents.split_first() else {
        return (Vec::new(), 0);
    };
    let of_number = |number: u64, all: &Vec<(u64, f64)>| {
        let mut all = all.iter();
        all.find(|(other, _)| *other == number)
            .map(|(_, value)| *value)
    };
    let mean = |(number, value): &(u64, f64)| {
        let others: Option<f64> = others.iter().map(|all| of_number(*number, all)).sum();
        Some((value + others?) / count as f64)
    };
    (first.iter().filter_map(mean).collect(), count)
}

#[cfg(test)]
mod cases {
    use super::*;

    fn test(older: f64, newer: f64) -> Test {
        Test {
            name: String::new(),
            older: Ok(vec![(1, older)]),
            newer: Ok(vec![(1, newer)]),
        }
    }

    #[test]
    fn the_papers_two_sustained_intervals_improved_by_a_quarter_and_a_third() {
        // 36.8 to 25 µs and 47.4 to 36 µs, by hand 32.07 % and 24.05 %.
        let tests = [test(36_800.0, 25_000.0), test(47_400.0, 36_000.0)];
        assert!((tests[0].percents()[0].1 - 32.065).abs() < 0.001);
        assert!((tests[1].percents()[0].1 - 24.051).abs() < 0.001);
        let (average, count) = average(&tests);
        assert!(
            (average[0] - 28.058).abs() < 0.001 && count == 2,
            "{average:?}"
        );
    }

    #[test]
    fn a_longer_worst_case_counts_against_it_and_a_missing_one_not_at_all() {
        let mut tests = vec![test(10.0, 5.0), test(10.0, 30.0)];
        assert_eq!(average(&tests), (vec![-75.0], 2));
        tests.push(Test {
            newer: Err("not measured".into()),
            ..test(10.0, 1.0)
        });
        assert_eq!(average(&tests), (vec![-75.0], 2));
        assert_eq!(average(&tests[2..]), (Vec::new(), 0));
    }

    #[test]
    fn each_seed_has_an_average_of_its_own_and_none_of_half_its_tests() {
        let both = |values: [f64; 2]| Ok(vec![(1, values[0]), (2, values[1])]);
        let mut tests = vec![
            Test {
                name: String::new(),
                older: both([10.0, 20.0]),
                newer: both([5.0, 20.0]),
            };
            2
        ];
        assert_eq!(average(&tests), (vec![50.0, 0.0], 2));
        tests[1].older = Ok(vec![(2, 20.0)]);
        assert_eq!(average(&tests), (vec![0.0], 2));
    }
}

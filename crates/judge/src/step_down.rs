// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several comparisons at once: the permutation of whole runs over all rows together.
//!
//! A run has a figure in each row. If nothing but chance divided the runs into two sides, each
//! division would be as likely in all rows at once: so the same divisions count in all rows,
//! and what rows have in common (one slow run is slow in many of them) is paid for once.
//!
//! Source: P. H. Westfall and S. S. Young, *Resampling-Based Multiple Testing* (1993),
//! algorithm 2.8 (step-down, smallest p).

use std::cmp::Ordering;

use statrs::function::factorial::binomial;

use crate::rank_sum::RankSum;

/// The most divisions that all count; above it, as many are drawn by chance.
const DIVISIONS: u32 = 100_000;
/// The seed of the draws, which are the same at each call.
const SEED: u64 = 2;
/// The largest p at which divisions are told apart: those above decide nothing, and are many.
const TOLD_APART: f64 = 0.05;
/// The most by which two sums of the same shares differ if added in another order.
const ROUNDING: f64 = 1e-9;

/// Rows of the same runs, which are divided in all of them at once.
#[derive(Debug)]
pub struct Family<'a> {
    /// The number of each row among all, and its rank sum.
    pub rows: Vec<(usize, &'a RankSum)>,
}

/// The unlikelihood of a division in a row: its p, and for divisions with the same p, the distance
/// of their sides. The least likely is first.
///
/// The p of few runs has few values, and in each row two divisions have the smallest. A planted
/// difference is told from the two that sort a row without any difference by the distance of its
/// sides. Any order may be used, because it treats all divisions alike.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Unlikely {
    p: f64,
    apart: f64,
}

impl Unlikely {
    const NOT: Self = Self { p: 1.0, apart: 0.0 };

    fn of(sum: &RankSum) -> Self {
        let p = sum.p();
        let apart = if p <= TOLD_APART { sum.apart() } else { 0.0 };
        Self { p, apart }
    }

    /// The unlikelihood of another division, if it may be less likely than this.
    fn of_division(&self, sum: &RankSum, chosen: &[usize]) -> Option<Self> {
        let p = sum.p_of(chosen);
        if p > self.p {
            return None;
        }
        let apart = if p <= TOLD_APART {
            sum.apart_of(chosen)
        } else {
            0.0
        };
        let other = Self { p, apart };
        other.order(self).is_lt().then_some(other)
    }

    /// Orders by unlikelihood, the less likely first.
    fn order(&self, other: &Self) -> Ordering {
        let by_p = self.p.total_cmp(&other.p);
        by_p.then(other.apart.total_cmp(&self.apart))
    }

    /// Returns true if this is as unlikely as another, or more.
    fn is_as(&self, other: &Self) -> bool {
        let is_same = (self.p - other.p).abs() <= other.p * ROUNDING;
        if is_same {
            self.apart >= other.apart * (1.0 - ROUNDING)
        } else {
            self.p < other.p
        }
    }
}

/// Each row's p, adjusted. A difference counts if its p is at most the level, and the chance that
/// one of all rows is wrong is then no more than the level. Each of `rows` rows is in one family.
/// Families are divided by themselves; their chances add up, as in Holm's procedure.
pub fn adjusted(families: &[Family<'_>], rows: usize) -> Vec<f64> {
    let mut observed = vec![Unlikely::NOT; rows];
    for (row, sum) in families.iter().flat_map(|family| &family.rows) {
        observed[*row] = Unlikely::of(sum);
    }
    if rows == 1 {
        return vec![observed[0].p];
    }
    let mut order: Vec<usize> = (0..rows).collect();
    order.sort_by(|one, other| observed[*one].order(&observed[*other]));
    let mut chances = vec![0.0; rows];
    for family in families {
        family.add_chances(&order, &observed, &mut chances);
    }
    let (mut adjusted, mut least) = (vec![1.0; rows], 0.0_f64);
    for row in order {
        least = least.max(chances[row].max(observed[row].p).min(1.0));
        adjusted[row] = least;
    }
    adjusted
}

impl Family<'_> {
    /// Adds to the chance of each row the share of divisions that make one of the family's rows
    /// that are no less likely as unlikely as that row.
    fn add_chances(&self, order: &[usize], observed: &[Unlikely], chances: &mut [f64]) {
        let Some((_, first)) = self.rows.first() else {
            return;
        };
        let own = |row: &usize| self.rows.iter().find(|(own, _)| own == row);
        let order: Vec<(usize, Option<&RankSum>)> = order
            .iter()
            .rev()
            .map(|row| (*row, own(row).map(|(_, sum)| *sum)))
            .collect();
        let (size, all) = first.sizes();
        let mut counts = vec![0_u32; observed.len()];
        let mut divisions = Divisions::new(size, all);
        let mut tried: u32 = 0;
        while let Some(chosen) = divisions.next() {
            tried += 1;
            let mut least = Unlikely::NOT;
            for (row, sum) in &order {
                least = sum
                    .and_then(|sum| least.of_division(sum, chosen))
                    .unwrap_or(least);
                counts[*row] += u32::from(least.is_as(&observed[*row]));
            }
        }
        // A division that was drawn by chance: the observed one is one of them.
        let more = u32::from(divisions.is_drawn());
        for (chance, count) in chances.iter_mut().zip(counts) {
            *chance += f64::from(count + more) / f64::from(tried + more);
        }
    }
}

/// The divisions of some runs into two sides: the numbers of those on the first.
enum Divisions {
    /// Every division, in lexicographic order.
    All {
        chosen: Vec<usize>,
        of: usize,
        is_new: bool,
    },
    /// As many as are left, drawn by chance.
    Drawn {
        shuffled: Vec<usize>,
        size: usize,
        random: fastrand::Rng,
        left: u32,
    },
}

impl Divisions {
    fn new(size: usize, of: usize) -> Self {
        if binomial(of as u64, size as u64) <= f64::from(DIVISIONS) {
            let chosen = (0..size).collect();
            return Self::All {
                chosen,
                of,
                is_new: true,
            };
        }
        Self::Drawn {
            shuffled: (0..of).collect(),
            size,
            random: fastrand::Rng::with_seed(SEED),
            left: DIVISIONS,
        }
    }

    fn is_drawn(&self) -> bool {
        matches!(self, Self::Drawn { .. })
    }

    fn next(&mut self) -> Option<&[usize]> {
        match self {
            Self::All { chosen, of, is_new } => {
                if !std::mem::take(is_new) {
                    // The last that can move on does, and those behind it follow.
                    let size = chosen.len();
                    let can_move = |at: &usize| chosen[*at] < *of - size + *at;
                    let at = (0..size).rev().find(can_move)?;
                    let from = chosen[at] + 1;
                    for (run, next) in chosen[at..].iter_mut().zip(from..) {
                        *run = next;
                    }
                }
                Some(chosen)
            }
            Self::Drawn {
                shuffled,
                size,
                random,
                left,
            } => {
                *left = left.checked_sub(1)?;
                random.shuffle(shuffled);
                Some(&shuffled[..*size])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: &[f64], expected: &[f64]) {
        let is_close = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-9;
        assert!(found.iter().zip(expected).all(is_close), "{found:?}");
        assert_eq!(found.len(), expected.len());
    }

    fn of_one_family(rows: &[(Vec<f64>, Vec<f64>)]) -> Vec<f64> {
        let sums: Vec<RankSum> = rows
            .iter()
            .map(|(one, other)| RankSum::of(one, other))
            .collect();
        let family = Family {
            rows: sums.iter().enumerate().collect(),
        };
        adjusted(&[family], rows.len())
    }

    fn apart() -> (Vec<f64>, Vec<f64>) {
        (vec![1.0, 2.0, 3.0, 4.0], vec![5.0, 6.0, 7.0, 8.0])
    }

    fn mixed() -> (Vec<f64>, Vec<f64>) {
        (vec![1.0, 3.0, 5.0, 7.0], vec![2.0, 4.0, 6.0, 8.0])
    }

    #[test]
    fn rows_that_say_the_same_cost_nothing() {
        // Of 70 divisions the one observed and its mirror.
        close(&of_one_family(&vec![apart(); 20]), &[2.0 / 70.0; 20]);
    }

    #[test]
    fn a_row_pays_for_those_that_other_divisions_would_have_set_apart() {
        let alone = RankSum::of(&mixed().0, &mixed().1).p();
        // Two divisions set the first row apart, two others the second; the last pays for none.
        close(&of_one_family(&[apart(), mixed()]), &[4.0 / 70.0, alone]);
    }

    #[test]
    fn a_row_that_is_far_apart_does_not_pay_for_rows_that_are_sorted_by_chance() {
        let far = (vec![1.0, 1.1, 1.2, 1.3], vec![7.0, 7.1, 7.2, 7.3]);
        let alone = RankSum::of(&mixed().0, &mixed().1).p();
        // No division of the second row sets its sides as far apart.
        let expected = [2.0 / 70.0, alone];
        close(&of_one_family(&[far.clone(), mixed()]), &expected);
        // The order of rows is none of their figures.
        close(&of_one_family(&[mixed(), far]), &[alone, 2.0 / 70.0]);
    }

    #[test]
    fn families_are_divided_by_themselves_as_in_holms_procedure() {
        // By R: p.adjust(c(2/70, 2/70, p), "holm"), where p is the last row's.
        let (one, other) = (RankSum::of(&apart().0, &apart().1), apart());
        let last = RankSum::of(&mixed().0, &mixed().1);
        let two = RankSum::of(&other.0, &other.1);
        let families = [&one, &two, &last].map(|sum| sum);
        let families: Vec<Family<'_>> = families
            .iter()
            .enumerate()
            .map(|(row, sum)| Family {
                rows: vec![(row, *sum)],
            })
            .collect();
        let found = adjusted(&families, 3);
        // The last row's smallest p are 2/70, too: three times, twice, once.
        assert!((found[0] - 6.0 / 70.0).abs() < 1e-9 && (found[1] - found[0]).abs() < 1e-9);
        assert!((found[2] - last.p()).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn all_divisions_are_met_once() {
        let mut divisions = Divisions::new(3, 6);
        let mut all = Vec::new();
        while let Some(chosen) = divisions.next() {
            all.push(chosen.to_vec());
        }
        assert_eq!((all.len(), divisions.is_drawn()), (20, false));
        assert_eq!(
            (&all[0][..], &all[19][..]),
            (&[0, 1, 2][..], &[3, 4, 5][..])
        );
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 20);
    }

    #[test]
    fn many_runs_are_drawn_and_the_chance_is_never_zero() {
        let many: Vec<f64> = (0..12).map(f64::from).collect();
        let more: Vec<f64> = (100..112).map(f64::from).collect();
        let found = of_one_family(&[(many.clone(), more.clone()), (more, many)]);
        assert!(found.iter().all(|p| *p > 0.0 && *p < 1e-4), "{found:?}");
        assert!(Divisions::new(12, 24).is_drawn());
    }
}

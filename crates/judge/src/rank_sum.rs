// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rank sum of some runs among all, compared with every division of the same runs into two
//! sides.
//!
//! Sources: F. Wilcoxon, *Individual comparisons by ranking methods* (1945); the exact
//! distribution, also with ties, by the shift algorithm of B. Streitberg and J. Röhmel,
//! *Exact distributions for permutation and rank tests* (1986).

/// The most runs for which every division counts; above it, [`DRAWS`] of them.
const EXACT_MOST: usize = 100;
/// The number of divisions drawn if there are too many runs.
const DRAWS: u32 = 100_000;
/// The seed of the draws, which are the same at each call.
const SEED: u64 = 1;

/// A rank sum. It is doubled, so that ties, which have the mean of their ranks, have whole ranks.
#[derive(Debug)]
pub struct RankSum {
    /// The figure of each run, those of the first side first: its logarithm, if all are above zero.
    figures: Vec<f64>,
    /// The doubled rank of each run, those of the first side first.
    ranks: Vec<usize>,
    /// The number of runs on the first side.
    size: usize,
    /// The mean doubled rank sum of all divisions.
    mean: f64,
    /// The two-sided p of each doubled rank sum, from 0.
    ps: Vec<f64>,
}

impl RankSum {
    /// The rank sum of `one` among both. Neither side may be empty, or hold anything but numbers.
    pub fn of(one: &[f64], other: &[f64]) -> Self {
        let all: Vec<f64> = one.iter().chain(other).copied().collect();
        let ranks = doubled_ranks(&all);
        let is_exact = all.len() <= EXACT_MOST;
        let shares = if is_exact {
            exact(&ranks, one.len())
        } else {
            drawn(ranks.clone(), one.len())
        };
        let sums = shares.iter().enumerate();
        let is_positive = all.iter().all(|one| *one > 0.0);
        let figure = |one: f64| if is_positive { one.ln() } else { one };
        Self {
            figures: all.into_iter().map(figure).collect(),
            ranks,
            size: one.len(),
            mean: sums.map(|(sum, share)| sum as f64 * share).sum(),
            ps: two_sided(&shares, (!is_exact).then_some(DRAWS)),
        }
    }

    /// The two-sided p: twice the smaller share of divisions that are as far to one side.
    pub fn p(&self) -> f64 {
        self.ps[self.observed()]
    }

    /// The p of another division of the same runs; `chosen` has the numbers of those on the first
    /// side.
    pub fn p_of(&self, chosen: &[usize]) -> f64 {
        self.ps[chosen.iter().map(|run| self.ranks[*run]).sum::<usize>()]
    }

    /// The distance of the two sides: that of their means, in standard deviations within the sides.
    /// It tells divisions with the same p apart.
    pub fn apart(&self) -> f64 {
        let own: Vec<usize> = (0..self.size).collect();
        self.apart_of(&own)
    }

    /// The distance for another division, as in [`Self::apart`].
    pub fn apart_of(&self, chosen: &[usize]) -> f64 {
        let sums = |runs: &mut dyn Iterator<Item = f64>| {
            runs.fold((0.0, 0.0), |(sum, squares), one| {
                (sum + one, squares + one * one)
            })
        };
        let (all, all_squares) = sums(&mut self.figures.iter().copied());
        let (own, _) = sums(&mut chosen.iter().map(|run| self.figures[*run]));
        let (size, others) = (
            chosen.len() as f64,
            (self.figures.len() - chosen.len()) as f64,
        );
        let (mean, other) = (own / size, (all - own) / others);
        let distance = (mean - other).abs();
        let within = all_squares - size * mean * mean - others * other * other;
        // What rounding leaves of nothing is nothing.
        let least = all_squares * 1e-12;
        match (distance * distance > least, within > least) {
            (false, _) => 0.0,
            (true, false) => f64::INFINITY,
            (true, true) => distance / (within / (size + others)).sqrt(),
        }
    }

    /// The number of runs on the first side, and on both.
    pub fn sizes(&self) -> (usize, usize) {
        (self.size, self.ranks.len())
    }

    /// Returns true if the first side's ranks are below their average by chance.
    pub fn is_low(&self) -> bool {
        (self.observed() as f64) < self.mean
    }

    fn observed(&self) -> usize {
        self.ranks[..self.size].iter().sum()
    }
}

/// The two-sided p of each sum. For sums drawn by chance, the observed one counts as one more.
fn two_sided(shares: &[f64], draws: Option<u32>) -> Vec<f64> {
    let add = |sum: &mut f64, share: &f64| {
        *sum += share;
        Some(*sum)
    };
    let below: Vec<f64> = shares.iter().scan(0.0, add).collect();
    let above: Vec<f64> = shares.iter().rev().scan(0.0, add).collect();
    let p = |(below, above): (&f64, &f64)| {
        let tail = below.min(*above);
        let tail = draws.map_or(tail, |draws| {
            (tail * f64::from(draws) + 1.0) / (f64::from(draws) + 1.0)
        });
        (2.0 * tail).min(1.0)
    };
    below.iter().zip(above.iter().rev()).map(p).collect()
}

/// The number of the smallest of all `one · other` quotients that an interval at `level` leaves out
/// at each end; `None` if it would have no end.
pub fn quotients_left_out(one: usize, other: usize, level: f64) -> Option<usize> {
    let ranks: Vec<usize> = (1..=one + other).map(|rank| 2 * rank).collect();
    let shares = if ranks.len() <= EXACT_MOST {
        exact(&ranks, one)
    } else {
        drawn(ranks, one)
    };
    let least = one * (one + 1);
    let mut below = 0.0;
    // The count of quotients below one is the rank sum less the smallest that it can be.
    let within = |count: &usize| {
        below += shares[least + 2 * count];
        below <= level / 2.0 * (1.0 + 1e-12)
    };
    (0..=one * other).take_while(within).last()
}

/// Twice the rank of each value; ranks count from 1.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let rank = |value: &f64| {
        let below = values
            .iter()
            .filter(|other| other.total_cmp(value).is_lt())
            .count();
        let equal = values
            .iter()
            .filter(|other| other.total_cmp(value).is_eq())
            .count();
        2 * below + equal + 1
    };
    values.iter().map(rank).collect()
}

/// The share of each sum over all choices of `size` ranks.
fn exact(ranks: &[usize], size: usize) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    // ways[n][s]: how many choices of n ranks have the sum s.
    let mut ways = vec![vec![0.0_f64; total + 1]; size + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for chosen in (1..=size).rev() {
            let (fewer, more) = ways.split_at_mut(chosen);
            for sum in *rank..=total {
                more[0][sum] += fewer[chosen - 1][sum - rank];
            }
        }
    }
    let mut shares = ways.swap_remove(size);
    let all: f64 = shares.iter().sum();
    for share in &mut shares {
        *share /= all;
    }
    shares
}

/// Like [`exact`], but estimated from divisions drawn by chance.
fn drawn(mut ranks: Vec<usize>, size: usize) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut shares = vec![0.0; ranks.iter().sum::<usize>() + 1];
    for _ in 0..DRAWS {
        random.shuffle(&mut ranks);
        shares[ranks[..size].iter().sum::<usize>()] += 1.0 / f64::from(DRAWS);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every division, one by one.
    fn by_hand(one: &[f64], other: &[f64]) -> f64 {
        let all: Vec<f64> = one.iter().chain(other).copied().collect();
        let ranks = doubled_ranks(&all);
        let observed: usize = ranks[..one.len()].iter().sum();
        let sums = (0_u32..1 << all.len())
            .filter(|chosen| chosen.count_ones() as usize == one.len())
            .map(|chosen| {
                let chosen = |at: &usize| chosen >> at & 1 == 1;
                (0..all.len()).filter(chosen).map(|at| ranks[at]).sum()
            });
        let sums: Vec<usize> = sums.collect();
        let share = |tail: &dyn Fn(usize) -> bool| {
            sums.iter().filter(|sum| tail(**sum)).count() as f64 / sums.len() as f64
        };
        let (below, above) = (share(&|sum| sum <= observed), share(&|sum| sum >= observed));
        (2.0 * below.min(above)).min(1.0)
    }

    #[test]
    fn the_exact_distribution_is_that_of_all_divisions_also_with_ties() {
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..300 {
            let most = if round % 2 == 0 { 4 } else { 1_000 };
            let mut side = || -> Vec<f64> {
                let size = random.usize(1..6);
                (0..size).map(|_| f64::from(random.u32(0..most))).collect()
            };
            let (one, other) = (side(), side());
            let (found, expected) = (RankSum::of(&one, &other).p(), by_hand(&one, &other));
            assert!((found - expected).abs() < 1e-9, "{one:?} {other:?}");
        }
    }

    #[test]
    fn ties_have_the_mean_of_their_ranks() {
        assert_eq!(doubled_ranks(&[7.0, 1.0, 3.0, 3.0]), [8, 2, 5, 5]);
    }

    #[test]
    fn sides_that_are_apart_have_the_least_p_and_know_which_is_low() {
        let (low, high) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
        let sum = RankSum::of(&low, &high);
        assert!((sum.p() - 2.0 / 252.0).abs() < 1e-12 && sum.is_low());
        assert!(!RankSum::of(&high, &low).is_low());
        assert!((RankSum::of(&low, &low).p() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn draws_agree_with_what_is_exact_and_are_the_same_each_time() {
        let ranks: Vec<usize> = (1..=40).map(|rank| 2 * rank).collect();
        let tail = |shares: &[f64]| shares[..=720].iter().sum::<f64>();
        let (exact, drawn_) = (tail(&exact(&ranks, 20)), tail(&drawn(ranks.clone(), 20)));
        assert!((exact - drawn_).abs() < 0.01, "{exact} {drawn_}");
        assert!((drawn_ - tail(&drawn(ranks, 20))).abs() < f64::EPSILON);
        let many: Vec<f64> = (0..60).map(f64::from).collect();
        let more: Vec<f64> = (100..160).map(f64::from).collect();
        let p = RankSum::of(&many, &more).p();
        assert!(p > 0.0 && p < 1e-4, "never zero: {p}");
    }

    #[test]
    fn an_interval_leaves_out_what_tables_say() {
        // Critical values of the Mann-Whitney U, two-sided 5 %: U <= 2 for 5 and 5, 0 for 4
        // and 4, 23 for 10 and 10; none for 3 and 3.
        for (one, other, left_out) in [(5, 5, Some(2)), (4, 4, Some(0)), (10, 10, Some(23))] {
            assert_eq!(quotients_left_out(one, other, 0.05), left_out);
        }
        assert_eq!(quotients_left_out(3, 3, 0.05), None);
    }
}

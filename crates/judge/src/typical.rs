// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether the typical run keeps to a bound.

use statrs::distribution::{Binomial, DiscreteCDF as _};

/// The most runs that are ever asked for.
const RUNS_MOST: usize = 1_000;

/// The position of the typical (median) run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typical {
    /// It is at the bound or below.
    Within,
    /// It is above.
    Above,
    /// It is undecided.
    Undecided {
        /// The number of further runs that decide it, if they all are where most of these are.
        more: usize,
    },
}

/// The sign test, on one side at `level`: more than half of all runs keep to the bound, or
/// more than half break it.
///
/// Source: W. J. Conover, *Practical Nonparametric Statistics*, chapter 3.
pub fn typical(figures: &[f64], bound: f64, level: f64) -> Typical {
    let within = figures.iter().filter(|one| **one <= bound).count();
    let above = figures.len() - within;
    if chance(figures.len(), within) <= level {
        return Typical::Within;
    }
    if chance(figures.len(), above) <= level {
        return Typical::Above;
    }
    let most = within.max(above);
    let is_told = |more: &usize| chance(figures.len() + more, most + more) <= level;
    let more = (1..RUNS_MOST).find(is_told).unwrap_or(RUNS_MOST);
    Typical::Undecided { more }
}

/// The number of runs that, if all keep to a bound, show that the typical one does.
pub fn runs_for_typical(level: f64) -> usize {
    let is_told = |runs: &usize| chance(*runs, *runs) <= level;
    (1..RUNS_MOST).find(is_told).unwrap_or(RUNS_MOST)
}

/// The chance that at least `count` of `all` tosses of a coin are heads.
fn chance(all: usize, count: usize) -> f64 {
    if count == 0 {
        return 1.0;
    }
    let coin = Binomial::new(0.5, all as u64).expect("a half is a probability");
    coin.sf(count as u64 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_runs_of_five_tell_it_and_four_do_not() {
        assert_eq!(runs_for_typical(0.05), 5);
        assert_eq!(runs_for_typical(0.01), 7);
        assert_eq!(typical(&[1.0; 5], 1.0, 0.05), Typical::Within);
        assert_eq!(typical(&[1.1; 5], 1.0, 0.05), Typical::Above);
        assert_eq!(
            typical(&[1.0; 4], 1.0, 0.05),
            Typical::Undecided { more: 1 }
        );
        assert_eq!(typical(&[], 1.0, 0.05), Typical::Undecided { more: 5 });
    }

    #[test]
    fn one_run_that_breaks_it_asks_for_eight() {
        let mut figures = vec![1.0; 5];
        figures.push(2.0);
        // Of eight tosses, seven or more: 9 of 256.
        assert_eq!(typical(&figures, 1.0, 0.05), Typical::Undecided { more: 2 });
        figures.extend([1.0, 1.0]);
        assert_eq!(typical(&figures, 1.0, 0.05), Typical::Within);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how often the rules are wrong, and how often they find a real effect, on random runs
//! whose truth is known. `cargo run -p punctual-judge --example trials` prints the table of
//! `docs/JUDGE.md`.

use fastrand::Rng;
use punctual_model::Nanos;
use statrs::distribution::{Beta, ContinuousCDF as _};

use crate::compare::{Pair, Verdict, compare, compare_rows};
use crate::extremes::tail;
use crate::occasions::{Occasions, more_often};
use crate::rule::Rule;
use crate::typical::{Typical, runs_for_typical, typical};

/// The level of the rules on trial.
const LEVEL: f64 = 0.05;
/// The effects to be found.
pub const EFFECTS: [f64; 4] = [1.2, 1.5, 2.0, 5.0];
/// Samples of one run.
const SAMPLES: usize = 50;
/// The variation from run to run: the standard deviation of logarithms.
const BETWEEN_RUNS: f64 = 0.15;

/// A rule on trial.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// The rule and its situation.
    pub name: &'static str,
    /// The share of wrong findings that is allowed.
    pub level: f64,
    /// Tries the rule on random runs with this effect (1 is none). True if it finds one.
    finds: fn(&mut Rng, f64) -> bool,
}

/// A share with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The share.
    pub value: f64,
    /// The ends of its interval.
    pub interval: (f64, f64),
}

impl Trial {
    /// The share of trials in which the rule finds an effect of this size; the same for the same
    /// seed.
    pub fn share(&self, effect: f64, trials: u64, seed: u64) -> Share {
        let mut random = Rng::with_seed(seed);
        let found = (0..trials)
            .filter(|_| (self.finds)(&mut random, effect))
            .count();
        Share::of(found as u64, trials)
    }
}

impl Share {
    /// The share that `count` is of `all`.
    ///
    /// Source: C. J. Clopper and E. S. Pearson, *The use of confidence or fiducial limits
    /// illustrated in the case of the binomial* (1934).
    pub fn of(count: u64, all: u64) -> Self {
        let quantile = |one: u64, other: u64, share: f64| {
            Beta::new(one as f64, other as f64).map_or(0.0, |beta| beta.inverse_cdf(share))
        };
        let low = if count == 0 {
            0.0
        } else {
            quantile(count, all - count + 1, 0.025)
        };
        let high = if count == all {
            1.0
        } else {
            quantile(count + 1, all - count, 0.975)
        };
        Self {
            value: count as f64 / all as f64,
            interval: (low, high),
        }
    }
}

/// All rules.
pub const ALL: &[Trial] = &[
    Trial {
        name: "lower or higher, worst of 5 runs against 5",
        level: LEVEL,
        finds: |random, effect| is_separated(&pair(random, effect, 5)),
    },
    Trial {
        name: "lower or higher, worst of 10 runs against 10",
        level: LEVEL,
        finds: |random, effect| is_separated(&pair(random, effect, 10)),
    },
    Trial {
        name: "any of 9 rows, 5 runs against 5",
        level: LEVEL,
        finds: |random, effect| {
            let rows: Vec<Pair> = (0..9).map(|_| pair(random, effect, 5)).collect();
            is_any_found(&rows, 0)
        },
    },
    Trial {
        name: "any of 9 rows, 7 runs against 7",
        level: LEVEL,
        finds: |random, effect| {
            let rows: Vec<Pair> = (0..9).map(|_| pair(random, effect, 7)).collect();
            is_any_found(&rows, 0)
        },
    },
    Trial {
        name: "any of 8 rows beside one that is 5 times as long, 5 runs against 5",
        level: LEVEL,
        finds: |random, effect| {
            let others = (0..8).map(|_| effect);
            let effects: Vec<f64> = std::iter::once(5.0).chain(others).collect();
            let rows: Vec<Pair> = effects.iter().map(|one| pair(random, *one, 5)).collect();
            is_any_found(&rows, 1)
        },
    },
    Trial {
        name: "a gate's median, p99 and worst of 6 rows, one with the effect, 5 runs against 5",
        level: LEVEL,
        finds: |random, effect| is_any_found(&gate(random, effect, 6, 5), 0),
    },
    Trial {
        name: "the same of 2 rows, looked at after 5 and 8 runs",
        level: LEVEL,
        finds: |random, effect| {
            let rows = gate(random, effect, 2, 8);
            let looks = [(5, 2.0), (8, 4.0)];
            looks.iter().any(|(runs, price)| {
                let first = |all: &Vec<f64>| all[..*runs].to_vec();
                let of_look = |row: &Pair| Pair {
                    of: first(&row.of),
                    than: first(&row.than),
                    ..Pair::default()
                };
                let rows: Vec<Pair> = rows.iter().map(of_look).collect();
                let found = compare_rows(&rows, &rule(LEVEL / price));
                found.iter().any(|one| is_found(one.verdict))
            })
        },
    },
    Trial {
        name: "the typical of 10 runs keeps to a bound",
        level: LEVEL,
        finds: |random, effect| {
            typical(&figures(random, 1.0, 10), bound(effect), LEVEL) == Typical::Within
        },
    },
    Trial {
        name: "the same, looked at after 6, 12 and 24 runs",
        level: LEVEL,
        finds: |random, effect| {
            let runs = figures(random, 1.0, 24);
            let first = runs_for_typical(LEVEL / 2.0);
            let looks = [(first, 2.0), (2 * first, 4.0), (4 * first, 8.0)];
            looks.iter().any(|(count, price)| {
                let (runs, level) = (&runs[..*count], LEVEL / price);
                typical(runs, bound(effect), level) == Typical::Within
            })
        },
    },
    Trial {
        name: "a share of another subject is kept to, 10 runs against 10",
        level: LEVEL,
        finds: |random, effect| {
            // The truth is the limit divided by the effect: with none it lies on the limit.
            let found = pair(random, 1.0 / effect, 10);
            let ratio = compare(&found.of, &found.than, &rule(2.0 * LEVEL)).ratio;
            let bounds = ratio.and_then(|ratio| ratio.bounds);
            bounds.is_some_and(|(_, high)| high <= 1.0)
        },
    },
    Trial {
        name: "events are rarer than the limit, which allows 20 in all",
        level: LEVEL,
        finds: |random, effect| rarer(&occasions(random, 2.0 / effect, 1)),
    },
    Trial {
        name: "the same, in bursts of 4",
        level: LEVEL,
        finds: |random, effect| rarer(&occasions(random, 0.5 / effect, 4)),
    },
    Trial {
        name: "events come more often than the limit, which allows 20 in all",
        level: LEVEL,
        finds: |random, effect| {
            let rate = occasions(random, 2.0 * effect, 1).rate(LEVEL);
            rate.is_some_and(|rate| rate.lower > 2.0)
        },
    },
    Trial {
        name: "events here and there, 20 in all here, by the middle p",
        level: LEVEL,
        finds: |random, effect| {
            let (one, other) = (
                occasions(random, 2.0 * effect, 1),
                occasions(random, 2.0, 1),
            );
            more_often(&one, &other).is_some_and(|found| found.p <= LEVEL)
        },
    },
    Trial {
        name: "events here and there, in bursts of 4",
        level: LEVEL,
        finds: |random, effect| {
            let (one, other) = (
                occasions(random, 0.5 * effect, 4),
                occasions(random, 0.5, 4),
            );
            more_often(&one, &other).is_some_and(|found| found.p <= LEVEL)
        },
    },
];

/// Samples whose tail is known.
#[derive(Clone, Copy, Debug)]
pub struct TailTrial {
    /// Description of the samples.
    pub name: &'static str,
    /// Draws samples, one after another.
    draw: fn(&mut Rng, usize) -> Vec<f64>,
    /// The value that this share of them exceeds; `None` for samples whose tail must be refused.
    exceeded_by: Option<fn(f64) -> f64>,
}

/// The results of trials of a tail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailShares {
    /// The share of trials in which the tail was refused.
    pub refused: Share,
    /// Among the others, the shares in which the interval contained the level of as many samples,
    /// and of ten times as many. `None` if there is no truth, or every trial was refused.
    pub contained: Option<[Share; 2]>,
}

/// Samples in one trial of a tail: the tail is the largest hundred.
const TAIL_SAMPLES: usize = 10_000;

impl TailTrial {
    /// Runs the trials; the result is the same for the same seed.
    pub fn shares(&self, trials: u64, seed: u64) -> TailShares {
        let mut random = Rng::with_seed(seed);
        let (mut told, mut contained) = (0, [0; 2]);
        for _ in 0..trials {
            let values = (self.draw)(&mut random, TAIL_SAMPLES);
            let Ok(found) = tail(&values) else { continue };
            told += 1;
            let truth = self.exceeded_by.unwrap_or(|_| f64::NAN);
            for (count, times) in contained.iter_mut().zip([1, 10]) {
                let samples = TAIL_SAMPLES as u64 * times;
                let (low, high) = found.return_level(&values, samples).interval;
                let truth = truth(1.0 / samples as f64);
                *count += u64::from(low <= truth && truth <= high);
            }
        }
        let is_known = told > 0 && self.exceeded_by.is_some();
        TailShares {
            refused: Share::of(trials - told, trials),
            contained: is_known.then(|| contained.map(|count| Share::of(count, told))),
        }
    }
}

/// Independent samples, drawn as the values that a random share between 0 and 1 exceeds.
fn independent(random: &mut Rng, count: usize, exceeded_by: fn(f64) -> f64) -> Vec<f64> {
    (0..count)
        .map(|_| exceeded_by(1.0 - random.f64()))
        .collect()
}

fn exponential_tail(share: f64) -> f64 {
    -share.ln()
}

fn heavier_tail(share: f64) -> f64 {
    (share.powf(-0.2) - 1.0) / 0.2
}

fn bounded_tail(share: f64) -> f64 {
    (1.0 - share.powf(0.3)) / 0.3
}

fn weibull_tail(share: f64) -> f64 {
    (-share.ln()).powf(1.5)
}

fn heaviest_tail(share: f64) -> f64 {
    1.0 / share - 1.0
}

/// All tails: those that must be described, and those that must be refused.
pub const TAILS: &[TailTrial] = &[
    TailTrial {
        name: "exponential",
        draw: |random, count| independent(random, count, exponential_tail),
        exceeded_by: Some(exponential_tail),
    },
    TailTrial {
        name: "generalised Pareto, shape 0.2",
        draw: |random, count| independent(random, count, heavier_tail),
        exceeded_by: Some(heavier_tail),
    },
    TailTrial {
        name: "generalised Pareto, shape -0.3: bounded",
        draw: |random, count| independent(random, count, bounded_tail),
        exceeded_by: Some(bounded_tail),
    },
    TailTrial {
        name: "Weibull, shape 2/3",
        draw: |random, count| independent(random, count, weibull_tail),
        exceeded_by: Some(weibull_tail),
    },
    TailTrial {
        name: "generalised Pareto, shape 1: too heavy",
        draw: |random, count| independent(random, count, heaviest_tail),
        exceeded_by: None,
    },
    TailTrial {
        name: "exponential, each sample nine tenths of the one before",
        draw: |random, count| {
            let mut sample = 0.0;
            let next = |_| {
                sample = 0.9 * sample + exponential(random);
                sample
            };
            (0..count).map(next).collect()
        },
        exceeded_by: None,
    },
    TailTrial {
        name: "exponential, rounded to half its mean",
        draw: |random, count| {
            let rounded = |share: f64| (2.0 * exponential_tail(share)).floor() / 2.0;
            independent(random, count, rounded)
        },
        exceeded_by: None,
    },
    TailTrial {
        name: "exponential, the second half twice as large",
        draw: |random, count| {
            let mut values = independent(random, count, exponential_tail);
            values[count / 2..]
                .iter_mut()
                .for_each(|value| *value *= 2.0);
            values
        },
        exceeded_by: None,
    },
];

fn rule(level: f64) -> Rule {
    Rule {
        level,
        ..Rule::default()
    }
}

fn is_found(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Lower | Verdict::Higher)
}

/// Returns true if a difference is found in one of these rows, without the first `left_out`.
fn is_any_found(rows: &[Pair], left_out: usize) -> bool {
    let found = compare_rows(rows, &rule(LEVEL));
    found[left_out..].iter().any(|one| is_found(one.verdict))
}

fn is_separated(pair: &Pair) -> bool {
    is_found(compare(&pair.of, &pair.than, &rule(LEVEL)).verdict)
}

/// Two subjects with this many runs each; the first takes `effect` times as long.
fn pair(random: &mut Rng, effect: f64, runs: usize) -> Pair {
    Pair {
        of: figures(random, effect, runs),
        than: figures(random, 1.0, runs),
        ..Pair::default()
    }
}

/// The worst case of each of some runs. The samples of one run depend on each other: half of each
/// sample is carried over to the next, and all share the run's factor.
fn figures(random: &mut Rng, scale: f64, runs: usize) -> Vec<f64> {
    let worst = |_| {
        let (mut sample, mut worst) = (0.0, 0.0_f64);
        for _ in 0..SAMPLES {
            sample = 0.5 * sample + exponential(random);
            worst = worst.max(sample);
        }
        scale * worst * (BETWEEN_RUNS * normal(random)).exp()
    };
    (0..runs).map(worst).collect()
}

/// Median, p99 and worst of some measurements of two subjects, with this many runs of each; in the
/// first measurement the first subject takes `effect` times as long.
fn gate(random: &mut Rng, effect: f64, rows: usize, runs: usize) -> Vec<Pair> {
    let row = |number: usize| {
        let scale = if number == 0 { effect } else { 1.0 };
        let [of, than] = [scale, 1.0].map(|scale| {
            let run = |_: usize| three_figures(random, scale);
            (0..runs).map(run).collect::<Vec<_>>()
        });
        [0, 1, 2].map(|figure| Pair {
            of: of.iter().map(|run| run[figure]).collect(),
            than: than.iter().map(|run| run[figure]).collect(),
            ..Pair::default()
        })
    };
    (0..rows).flat_map(row).collect()
}

/// Median, p99 and worst of the samples of a run, which are made as in [`figures`].
fn three_figures(random: &mut Rng, scale: f64) -> [f64; 3] {
    let scale = scale * (BETWEEN_RUNS * normal(random)).exp();
    let mut samples: Vec<f64> = Vec::with_capacity(2 * SAMPLES);
    let mut sample = 0.0;
    for _ in 0..2 * SAMPLES {
        sample = 0.5 * sample + exponential(random);
        samples.push(scale * sample);
    }
    samples.sort_by(f64::total_cmp);
    [
        samples[SAMPLES],
        samples[2 * SAMPLES - 2],
        samples[2 * SAMPLES - 1],
    ]
}

/// The bound that the typical run is below by the effect. The median of what [`figures`] makes was
/// found from four million runs.
fn bound(effect: f64) -> f64 {
    MEDIAN * effect
}

/// See [`bound`].
const MEDIAN: f64 = 5.350;

/// Ten runs of one second with bursts at a rate, each burst of this many events.
fn occasions(random: &mut Rng, bursts_per_second: f64, burst: u64) -> Occasions {
    let run = |_| {
        let (mut at, mut count) = (0.0, 0);
        loop {
            at += exponential(random) / bursts_per_second;
            if at > 1.0 {
                return (count * burst, Nanos::from_millis(1_000));
            }
            count += 1;
        }
    };
    Occasions {
        runs: (0..10).map(run).collect(),
    }
}

/// Returns true if two events per second are excluded.
fn rarer(occasions: &Occasions) -> bool {
    occasions.rate(LEVEL).is_some_and(|rate| rate.upper < 2.0)
}

fn exponential(random: &mut Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}

/// A normally distributed number, by Box and Muller.
fn normal(random: &mut Rng) -> f64 {
    (2.0 * exponential(random)).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A short form of the table: no rule is wrong more often than its level allows, and a larger
    /// effect is found more often.
    #[test]
    fn no_rule_is_wrong_more_often_than_it_says() {
        for trial in ALL {
            let alarms = trial.share(1.0, 200, 1);
            assert!(
                alarms.interval.0 <= trial.level,
                "{}: {alarms:?}",
                trial.name
            );
            let (little, much) = (trial.share(1.2, 50, 2), trial.share(5.0, 50, 3));
            assert!(
                much.value > little.value.max(0.5),
                "{}: {much:?}",
                trial.name
            );
        }
    }

    /// A short form of the second table.
    #[test]
    fn tails_are_told_or_refused() {
        for trial in TAILS {
            let found = trial.shares(10, 1);
            match (trial.exceeded_by, found.contained) {
                (Some(_), Some(contained)) => {
                    let has = |share: &Share| share.value >= 0.7 && share.interval.1 >= 0.9;
                    assert!(contained.iter().all(has), "{}: {found:?}", trial.name);
                    assert!(found.refused.value < 0.6, "{}: {found:?}", trial.name);
                }
                (Some(_), None) => panic!("{} is refused", trial.name),
                (None, _) => assert!(found.refused.value > 0.5, "{}: {found:?}", trial.name),
            }
        }
    }

    #[test]
    fn the_median_of_a_run_made_by_chance_is_the_one_noted() {
        let mut all = figures(&mut Rng::with_seed(4), 1.0, 20_001);
        all.sort_by(f64::total_cmp);
        assert!((all[10_000] / MEDIAN - 1.0).abs() < 0.01, "{}", all[10_000]);
    }

    #[test]
    fn a_share_has_the_interval_of_tables() {
        // Clopper and Pearson, 10 of 100: 4.90 % to 17.62 %.
        let share = Share::of(10, 100);
        assert!((share.interval.0 - 0.0490).abs() < 1e-4, "{share:?}");
        assert!((share.interval.1 - 0.1762).abs() < 1e-4, "{share:?}");
    }
}

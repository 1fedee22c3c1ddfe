// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts with a stated confidence: pure functions of runs.
//!
//! The *run* (a seed of its own) is the unit everywhere, never the pooled sample: samples of one
//! run depend on one another. `docs/JUDGE.md` lists each rule with its source and its error rate.
#![forbid(unsafe_code)]

mod answer;
mod bisection;
mod change_points;
mod compare;
mod difference;
mod evidence;
mod extremes;
mod fitness;
#[cfg(test)]
mod made_up;
mod mends;
mod occasions;
mod pareto;
mod rank_sum;
mod rule;
mod sequential;
mod step_down;
mod subjects;
#[cfg(test)]
mod synthetic;
pub mod trials;
mod typical;

pub use answer::{Answer, Decisive, Fitness, Judgement, More, Why};
pub use bisection::{Bisection, Found, Known};
pub use change_points::{ChangePoint, change_points, could_change_last};
pub use compare::{Comparison, Interval, Pair, Verdict, compare, compare_rows};
pub use difference::{Difference, is_identical};
pub use evidence::{beyond_the_kernel, fate, short_of_step, shortcoming};
pub use extremes::{NoExtremes, ReturnLevel, Tail, tail};
pub use fitness::{Baselines, Unanswered, forecast_margin, judge, judge_each, judge_with};
pub use occasions::{MoreOften, Occasions, RateBounds, more_often};
pub use pareto::Pareto;
pub use rule::{Rule, TooFewRuns, percent};
pub use sequential::Sequential;
pub use subjects::{Independent, independent, two_machines};
pub use typical::{Typical, runs_for_typical, typical};

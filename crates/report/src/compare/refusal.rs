// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs that cannot be compared, and the reasons.

use std::collections::BTreeSet;
use std::fmt;

use punctual_judge::fate;
use punctual_model::Plan;
use punctual_model::run::{Run, State};

/// The reason why runs are not compared, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// Creates the refusal of two runs that did not measure the same.
    pub(crate) fn of_two(one: &Run, other: &Run, what: &str) -> Self {
        let (one, other) = (&one.id, &other.id);
        Self(format!("{one} and {other} cannot be compared: {what}"))
    }
}

/// Checks that every run has finished.
/// Every run must have measured the same as the first, in the same kind of time.
pub fn check(runs: &[Run]) -> Result<(), Refusal> {
    for run in runs {
        if run.state != State::Finished {
            let (id, name) = (&run.id, &run.subject.name);
            return Err(Refusal(format!(
                "{id} ({name}) cannot be compared: {}",
                fate(run)
            )));
        }
    }
    let mut seen = BTreeSet::new();
    for run in runs {
        if !seen.insert(&run.id) {
            return Err(Refusal(format!("{} is named twice", run.id)));
        }
    }
    difference(runs).map_or(Ok(()), |why| Err(Refusal(why)))
}

/// Finds a run that measured something else than the first, and tells the difference.
/// `r1 and r4 cannot be compared: …`
pub fn difference(runs: &[Run]) -> Option<String> {
    let (first, others) = runs.split_first()?;
    let mut different = others.iter().filter_map(|other| {
        let what = of_two(first, other)?;
        if first.suite != other.suite {
            return Some(format!(
                "{} is of suite {}, {} of suite {}: measure both with one suite",
                first.id, first.suite, other.id, other.suite
            ));
        }
        let (one, other) = (&first.id, &other.id);
        Some(format!("{one} and {other} cannot be compared: {what}"))
    });
    different.next()
}

/// Returns the reason why two runs are two different measurements.
pub fn of_two(one: &Run, other: &Run) -> Option<String> {
    let differ = |what: &str, one: &str, other: &str| {
        (one != other).then(|| format!("the {what} is {one} here and {other} there"))
    };
    let rate = |run: &Run| {
        let clock = run.clock().map(|clock| clock.to_string());
        clock.unwrap_or_else(|| "real".to_owned())
    };
    differ("suite", &one.suite, &other.suite)
        .or_else(|| differ("bench", &one.subject.bench, &other.subject.bench))
        .or_else(|| differ("time", &rate(one), &rate(other)))
        .or_else(|| plans(&one.plan, &other.plan))
        .or_else(|| punctual_model::imported::difference(one, other))
}

/// Returns the difference between two plans, in TOML.
/// The seed, and anything that could not be brought along, do not count. Returns `None` if the
/// plans measure the same.
pub fn plans(one: &str, other: &str) -> Option<String> {
    if one == other {
        return None;
    }
    let read = |text: &str| toml::from_str::<Plan>(text);
    let (Ok(one), Ok(other)) = (read(one), read(other)) else {
        return Some("a plan cannot be read".to_owned());
    };
    one.difference(&other)
}

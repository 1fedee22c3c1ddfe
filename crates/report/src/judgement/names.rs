// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of answers, where names are words without spaces.

use std::collections::BTreeSet;

use punctual_judge::Answer;
use punctual_model::limit::{Demand, Figure};
use punctual_model::units::Nanos;

/// Returns the demand in a word: `worst`, `p99.9`, `above-50us`.
fn demand(answer: &Answer) -> String {
    let figure = |figure: &Figure| match figure {
        Figure::Cpu => "cpu".to_owned(),
        Figure::Work(unit) => format!("work-{unit}"),
        figure => figure.to_string(),
    };
    match &answer.limit.demand {
        Demand::Never(_) => "worst".to_owned(),
        Demand::Arrival { reached: true, .. } => "reached".to_owned(),
        Demand::Arrival { .. } => "arrival".to_owned(),
        Demand::Missed(_) => "missed".to_owned(),
        Demand::Jitter(_) => "jitter".to_owned(),
        Demand::Rare { above, .. } => format!("above-{}ns", above.0),
        Demand::Typical(of, _) => figure(of),
        Demand::Relative(of, _, than) => format!("{}-of-{than}", figure(of)),
    }
}

/// The parts of an answer's name, each of letters, digits, `.`, `_` and `-`.
pub fn parts(answer: &Answer) -> Vec<String> {
    let key = &answer.key;
    let parts = [
        key.probe.clone(),
        key.load.clone(),
        key.label(),
        demand(answer),
    ];
    parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| word(part))
        .collect()
}

/// Makes each name unique: a repeated one gets a number, with which it equals no other name.
pub fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let names: Vec<String> = names.collect();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let own = |name: &String| {
        let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
        let numbered = numbered.filter(|one| !names.contains(one));
        let mut own = std::iter::once(name.clone()).chain(numbered);
        let own = own.find(|one| !seen.contains(one)).unwrap_or_default();
        seen.insert(own.clone());
        own
    };
    names.iter().map(own).collect()
}

/// Text as one word.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    text.chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect()
}

/// The time that was measured for a limit of single samples: the worst sample.
pub fn measured(answer: &Answer) -> Option<Nanos> {
    answer.sample.as_ref().map(|one| one.value)
}

#[cfg(test)]
mod tests {
    use super::distinct;

    #[test]
    fn a_repeated_name_never_takes_that_of_another() {
        let names = ["rt", "rt", "rt-2", "rt", "none"].map(str::to_owned);
        let found = distinct(names.into_iter());
        assert_eq!(found, ["rt", "rt-3", "rt-2", "rt-4", "none"]);
    }
}

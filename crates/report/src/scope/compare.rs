// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two stories side by side: stage by stage, function by function.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use punctual_model::Nanos;

use punctual_scope::breakdown::{Breakdown, PathStage};

use crate::text::{cut, exact};

/// How wide a column of times is.
const COLUMN: usize = 14;

/// How long each stage took.
pub fn stages(story: &Breakdown) -> [Nanos; PathStage::ALL.len()] {
    PathStage::ALL.map(|stage| {
        let of_stage = story.parts.iter().filter(|part| part.stage == stage);
        of_stage.fold(Nanos::ZERO, |sum, part| sum + part.length)
    })
}

/// How long each function ran itself, without what it called.
pub fn own_times(story: &Breakdown) -> BTreeMap<&str, Nanos> {
    let mut times = BTreeMap::new();
    for (stack, time) in &story.flame {
        let function = stack.rsplit(';').next().unwrap_or_default();
        *times.entry(function).or_insert(Nanos::ZERO) += *time;
    }
    times
}

/// The functions of both, with their own times in each, those that differ most first.
pub fn differences<'a>(one: &'a Breakdown, other: &'a Breakdown) -> Vec<(&'a str, Nanos, Nanos)> {
    let (one, other) = (own_times(one), own_times(other));
    let time =
        |times: &BTreeMap<&str, Nanos>, name: &str| times.get(name).copied().unwrap_or(Nanos::ZERO);
    let mut names: Vec<&str> = one.keys().chain(other.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let mut found: Vec<_> = names
        .into_iter()
        .map(|name| (name, time(&one, name), time(&other, name)))
        .collect();
    found.sort_by_key(|(name, one, other)| (-(other.0 - one.0).abs(), *name));
    found
}

/// Both, side by side, no line longer than `width`; `names` are what the two are called.
pub fn text(
    names: [&str; 2],
    one: &Breakdown,
    other: &Breakdown,
    top: usize,
    width: usize,
) -> String {
    let head = |title: &str| {
        let [a, b] = names.map(|name| cut(name, COLUMN));
        format!(
            "{a:>COLUMN$} {b:>COLUMN$} {:>COLUMN$}  {title}\n",
            "difference"
        )
    };
    let line = |a: Nanos, b: Nanos, name: &str| {
        let [a, b, difference] = [a, b, b - a].map(exact);
        let name = cut(name, width.saturating_sub(3 * COLUMN + 4).max(8));
        format!("{a:>COLUMN$} {b:>COLUMN$} {difference:>COLUMN$}  {name}\n")
    };
    let mut text = head("stage, ns");
    let (a, b) = (stages(one), stages(other));
    for (number, stage) in PathStage::ALL.iter().enumerate() {
        if (a[number], b[number]) != (Nanos::ZERO, Nanos::ZERO) {
            text.push_str(&line(a[number], b[number], stage.name()));
        }
    }
    text.push_str(&line(one.late, other.late, "all"));
    let _ = write!(text, "\n{}", head("function itself, ns"));
    for (name, a, b) in differences(one, other).into_iter().take(top) {
        text.push_str(&line(a, b, name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::probe::SampleSpan;

    fn story(flame: &[(&str, i64)]) -> Breakdown {
        let late = Nanos(flame.iter().map(|(_, time)| time).sum());
        Breakdown {
            span: SampleSpan::Lateness,
            late,
            parts: Vec::new(),
            culprit: None,
            flame: flame
                .iter()
                .map(|(stack, t)| ((*stack).to_owned(), Nanos(*t)))
                .collect(),
            functions: Vec::new(),
            blocks: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn functions_that_differ_most_come_first() {
        let one = story(&[("a;f", 10), ("b;f", 5), ("a;g", 7)]);
        let other = story(&[("a;f", 16), ("a;h", 40)]);
        let ns = Nanos;
        assert_eq!(
            differences(&one, &other),
            [
                ("h", ns(0), ns(40)),
                ("g", ns(7), ns(0)),
                ("f", ns(15), ns(16))
            ]
        );
        let text = text(["none", "rt"], &one, &other, 1, 80);
        assert!(text.contains("40             40  h"), "{text}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two stories side by side: stage by stage, function by function.

use std::collections::BTreeMap;

use punctual_model::Nanos;

use punctual_scope::breakdown::{Breakdown, PathStage};

use crate::text::{cut, exact};

/// The width of a column of times.
const COLUMN: usize = 14;

/// The time that each function ran itself, without its callees.
pub type OwnTimes<'a> = BTreeMap<&'a str, Nanos>;

/// Returns the time of each stage in either, and that of all.
pub fn stages(one: &Breakdown, other: &Breakdown) -> Vec<(&'static str, Nanos, Nanos)> {
    let time = |story: &Breakdown, stage: PathStage| {
        let of_stage = story.parts.iter().filter(|part| part.stage == stage);
        of_stage.fold(Nanos::ZERO, |sum, part| sum + part.length)
    };
    let stages = PathStage::ALL.map(|stage| (stage.name(), time(one, stage), time(other, stage)));
    let some = stages.into_iter().filter(|(_, a, b)| *a + *b > Nanos::ZERO);
    some.chain([("all", one.late, other.late)]).collect()
}

/// Returns the time that each function ran itself, without its callees.
pub fn own_times(story: &Breakdown) -> OwnTimes<'_> {
    let mut times = BTreeMap::new();
    for (stack, time) in &story.flame {
        let function = stack.rsplit(';').next().unwrap_or_default();
        *times.entry(function).or_insert(Nanos::ZERO) += *time;
    }
    times
}

/// The functions of both, with their own times in each, those that differ most first.
pub fn differences<'a>(one: &OwnTimes<'a>, other: &OwnTimes<'a>) -> Vec<(&'a str, Nanos, Nanos)> {
    let mut times: BTreeMap<&str, [Nanos; 2]> = BTreeMap::new();
    for (number, own) in [one, other].into_iter().enumerate() {
        for (name, time) in own {
            times.entry(name).or_default()[number] = *time;
        }
    }
    let found = times
        .into_iter()
        .map(|(name, [one, other])| (name, one, other));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(name, one, other)| (-(other.0 - one.0).abs(), *name));
    found
}

/// Both, side by side, no line longer than `width`; `names` are the names of the two.
pub fn text(
    names: &[String; 2],
    one: &Breakdown,
    other: &Breakdown,
    top: usize,
    width: usize,
) -> String {
    let columns = |[a, b, c]: [&str; 3], what: &str| {
        format!("{a:>COLUMN$} {b:>COLUMN$} {c:>COLUMN$}  {what}\n")
    };
    let [a, b] = [0, 1].map(|at| cut(&names[at], COLUMN));
    let head = |what| columns([&a, &b, "difference"], what);
    let line = |(name, a, b): (&str, Nanos, Nanos)| {
        let [a, b, difference] = [a, b, b - a].map(exact);
        let name = cut(name, width.saturating_sub(3 * COLUMN + 4).max(8));
        columns([&a, &b, &difference], &name)
    };
    let functions = differences(&own_times(one), &own_times(other));
    let mut text = head("stage, ns");
    text.extend(stages(one, other).into_iter().map(line));
    text += &("\n".to_owned() + &head("function itself, ns"));
    text.extend(functions.into_iter().take(top).map(line));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::assert_has;
    use punctual_model::probe::SampleSpan;

    fn story(flame: &[(&str, i64)]) -> Breakdown {
        let late = Nanos(flame.iter().map(|(_, time)| time).sum());
        let own = |(stack, time): &(&str, i64)| ((*stack).to_owned(), Nanos(*time));
        Breakdown {
            flame: flame.iter().map(own).collect(),
            ..Breakdown::empty(SampleSpan::Lateness, late)
        }
    }

    #[test]
    fn functions_that_differ_most_come_first() {
        let one = story(&[("a;f", 10), ("b;f", 5), ("a;g", 7)]);
        let other = story(&[("a;f", 16), ("a;h", 40)]);
        let expected = [("h", 0, 40), ("g", 7, 0), ("f", 15, 16)];
        let expected = expected.map(|(name, a, b)| (name, Nanos(a), Nanos(b)));
        assert_eq!(differences(&own_times(&one), &own_times(&other)), expected);
        let names = ["none", "rt"].map(str::to_owned);
        let text = text(&names, &one, &other, 1, 80);
        assert_has(&text, &["40             40  h"]);
    }
}

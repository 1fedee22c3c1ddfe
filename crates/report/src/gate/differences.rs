// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences of a measurement that are no figures: samples, seed by seed, and findings.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use punctual_judge::{Comparison, Difference, Pair, Rule, Verdict, compare_rows};
use punctual_model::probe::FindingView;
use punctual_model::{Finding, Recording, Run};

use crate::compare::{Cell, found, word};
use crate::matrix::{Column, Measurement};
use crate::views;

/// The differences of a measurement.
pub(super) struct Differences {
    /// Those of samples, by seed; none in real time.
    pub samples: Vec<(u64, Difference)>,
    /// True if a finding differs with a seed.
    pub has_other_findings: bool,
    /// The first difference of findings that matters, in words.
    pub told: Option<String>,
}

impl Differences {
    /// Finds them. `numbers` are the findings that are numbers, compared; `effect` is the smallest
    /// ratio worth finding.
    pub(super) fn of(
        row: &Measurement,
        own: &Column<'_>,
        other: &Column<'_>,
        numbers: &Numbers,
        effect: f64,
    ) -> Self {
        let [there, here] = [other, own].map(|column| found(column, row));
        let (mut samples, mut has_other_findings) = (Vec::new(), false);
        for here in here.iter().filter(|here| here.0.is_virtual()) {
            let there = there.iter().find(|there| there.0.seed == here.0.seed);
            let Some(there) = there else { continue };
            let difference = Difference::of(*there, *here);
            samples.extend(difference.map(|difference| (here.0.seed, difference)));
            let is_other = |one| Told::of(one, there) != Told::of(one, here);
            has_other_findings |= worded(row).any(is_other);
        }
        let mut told = worded(row).filter_map(|finding| {
            let label = finding.label;
            let compared = numbers.get(finding.key);
            if let Some(apart) = apart(finding, &there, &here, compared, effect) {
                return Some(format!("{label}: {apart}"));
            }
            let [there, here] = [other, own].map(|column| word(column, row, finding));
            match (there, here) {
                (Cell::Word(there), Cell::Word(here)) if there != here => {
                    Some(format!("{label}: {here}, where the baseline has {there}"))
                }
                (Cell::Absent(there), Cell::Word(_)) => {
                    Some(format!("{label}: {there} in the baseline"))
                }
                (Cell::Word(_), Cell::Absent(here)) => Some(format!("{label}: {here}")),
                _ => None,
            }
        });
        let told = told.next();
        Self {
            samples,
            has_other_findings,
            told,
        }
    }
}

/// The findings of a measurement that are numbers in all runs, compared run by run, each by its
/// name.
pub(super) type Numbers = BTreeMap<&'static str, Comparison>;

/// Compares the numbers among the findings of all rows by the same divisions of the runs.
pub(super) fn numbers(
    rows: &[Measurement],
    own: &Column<'_>,
    other: &Column<'_>,
    rule: &Rule,
) -> Vec<Numbers> {
    let drawn: Vec<Vec<(&'static str, Pair)>> =
        rows.iter().map(|row| drawn(row, own, other)).collect();
    let pairs = drawn.iter().flatten();
    let pairs: Vec<Pair> = pairs.map(|(_, pair)| pair.clone()).collect();
    let mut compared = compare_rows(&pairs, rule).into_iter();
    let of_row = |row: Vec<(&'static str, Pair)>| {
        let compared: Vec<Comparison> = compared.by_ref().take(row.len()).collect();
        row.into_iter().map(|one| one.0).zip(compared).collect()
    };
    drawn.into_iter().map(of_row).collect()
}

/// The numbers among the findings of a row, run by run.
fn drawn(row: &Measurement, own: &Column<'_>, other: &Column<'_>) -> Vec<(&'static str, Pair)> {
    let [there, here] = [other, own].map(|column| found(column, row));
    let runs = here.iter().chain(&there).map(|(run, _)| run.id.clone());
    let runs: Vec<String> = runs.collect();
    let pair = |finding: &'static FindingView| {
        let numbers = |found: &[(&Run, &Recording)]| -> Option<Vec<f64>> {
            let all = found.iter().map(|one| Told::of(finding, one).number);
            all.collect()
        };
        let pair = Pair {
            of: numbers(&here)?,
            than: numbers(&there)?,
            runs: runs.clone(),
            is_identical: false,
        };
        Some((finding.key, pair))
    };
    worded(row).filter_map(pair).collect()
}

/// The findings that stand beside a measurement's samples. The shares of a round trip are none: they
/// vary as its samples do, which are judged.
pub(super) fn worded(row: &Measurement) -> impl Iterator<Item = &'static FindingView> {
    let all = row.view().findings(&row.variant);
    all.filter(|_| row.probe != "packet")
}

/// A finding of one run.
#[derive(PartialEq)]
struct Told {
    seed: u64,
    /// Its value, if it is a number.
    number: Option<f64>,
    text: String,
}

impl Told {
    fn of(finding: &FindingView, (run, recording): &(&Run, &Recording)) -> Self {
        Self {
            seed: run.seed,
            number: recording.findings.get(finding.key).and_then(number),
            text: views::told(finding, &recording.findings).text,
        }
    }
}

/// Returns the difference between findings that vary from run to run: numbers that do not overlap,
/// or are separated and perhaps by as much as `effect`; or words that differ with one seed. In real
/// time no run stands for another, so all words count.
///
/// Beside samples numbers vary as these do, which are judged. Without any, a number that differs
/// with one seed counts as a word does; in real time it counts unless a difference by `effect` is
/// ruled out.
fn apart(
    finding: &FindingView,
    there: &[(&Run, &Recording)],
    here: &[(&Run, &Recording)],
    compared: Option<&Comparison>,
    effect: f64,
) -> Option<String> {
    let is_virtual = here.iter().all(|(run, _)| run.is_virtual());
    let is_sampled = there.iter().chain(here).any(|(_, one)| one.count > 0);
    let [there, here] = [there, here]
        .map(|found| -> Vec<Told> { found.iter().map(|one| Told::of(finding, one)).collect() });
    let varies = |found: &[Told]| found.iter().any(|one| one.text != found[0].text);
    if !varies(&there) && !varies(&here) {
        return None;
    }
    let sorted = |found: &[Told]| {
        let mut texts: Vec<String> = found.iter().map(|one| one.text.clone()).collect();
        texts.sort();
        texts
    };
    let is_same = sorted(&there) == sorted(&here);
    if let (Some((low, high)), Some((least, most))) = (ends(&there), ends(&here)) {
        let is_close = compared.is_some_and(|one| one.excludes(effect));
        let verdict = compared.map(|one| one.verdict);
        let is_separated = matches!(verdict, Some(Verdict::Lower | Verdict::Higher));
        let is_apart =
            least.number > high.number || most.number < low.number || (is_separated && !is_close);
        if is_apart || !(is_sampled || is_virtual || is_same || is_close) {
            let [least, most, low, high] = [least, most, low, high].map(|one| &one.text);
            return Some(format!(
                "{least} to {most}, where the baseline has {low} to {high}"
            ));
        }
        if is_sampled || !is_virtual {
            return None;
        }
    }
    if !is_virtual {
        return (!is_same).then(|| "it varies from run to run, and not as in the baseline".into());
    }
    here.iter().find_map(|own| {
        let is_other = |one: &&Told| one.seed == own.seed && one.text != own.text;
        let other = there.iter().find(is_other)?;
        Some(format!(
            "{} with seed {}, where the baseline has {}",
            own.text, own.seed, other.text
        ))
    })
}

/// The least and the greatest of some findings, if all of them are numbers.
fn ends(found: &[Told]) -> Option<(&Told, &Told)> {
    let by_number = |one: &&Told, other: &&Told| one.number.partial_cmp(&other.number);
    let by_number = |one: &&Told, other: &&Told| by_number(one, other).unwrap_or(Ordering::Equal);
    let is_of_numbers = found.iter().all(|one| one.number.is_some());
    let both = (
        found.iter().min_by(by_number)?,
        found.iter().max_by(by_number)?,
    );
    is_of_numbers.then_some(both)
}

/// Returns a finding as a number, in its own unit.
fn number(finding: &Finding) -> Option<f64> {
    match finding {
        Finding::Count(count) | Finding::Share { count, .. } | Finding::Bytes(count) => {
            Some(*count as f64)
        }
        Finding::Nanos(time) => Some(time.0 as f64),
        Finding::Ratio(value) | Finding::PerSecond(value) | Finding::Estimate { value, .. } => {
            Some(*value).filter(|value| !value.is_nan())
        }
        Finding::Verdict { .. }
        | Finding::Answer { .. }
        | Finding::Text(_)
        | Finding::Absent(_) => None,
    }
}

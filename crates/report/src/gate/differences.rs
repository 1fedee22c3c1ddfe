// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences of a measurement that are no figures: samples, seed by seed, and findings.

use std::cmp::Ordering;

use punctual_judge::Difference;
use punctual_model::probe::FindingView;
use punctual_model::{Finding, Recording, Run};

use crate::compare::{Cell, found, word};
use crate::matrix::{Column, Measurement};
use crate::views;

/// Returns the differences of a measurement, by seed; none in real time.
/// For a probe that tells words, it also says which of them differ.
pub(super) fn differences(
    row: &Measurement,
    own: &Column<'_>,
    other: &Column<'_>,
) -> (Vec<(u64, Difference)>, Option<String>) {
    let [there, here] = [other, own].map(|column| found(column, row));
    let mut differences = Vec::new();
    for here in here.iter().filter(|here| here.0.is_virtual()) {
        let there = there.iter().find(|there| there.0.seed == here.0.seed);
        let difference = there.and_then(|there| Difference::of(*there, *here));
        differences.extend(difference.map(|difference| (here.0.seed, difference)));
    }
    let findings = worded(row);
    let mut told = findings.filter_map(|finding| {
        let label = finding.label;
        if let Some(by_seed) = apart(finding, &there, &here) {
            return Some(format!("{label}: {by_seed}"));
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
    (differences, told)
}

/// The findings that stand beside a measurement's samples. The shares of a round trip are none: they
/// vary as its samples do, which are judged.
pub(super) fn worded(row: &Measurement) -> impl Iterator<Item = &'static FindingView> {
    let all = row.view().findings(&row.variant);
    all.filter(|_| row.probe != "packet")
}

/// A finding of one run.
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
/// or words that differ with one seed. In real time no run stands for another, so all words count.
fn apart(
    finding: &FindingView,
    there: &[(&Run, &Recording)],
    here: &[(&Run, &Recording)],
) -> Option<String> {
    let is_virtual = here.iter().all(|(run, _)| run.is_virtual());
    let [there, here] = [there, here]
        .map(|found| -> Vec<Told> { found.iter().map(|one| Told::of(finding, one)).collect() });
    let varies = |found: &[Told]| found.iter().any(|one| one.text != found[0].text);
    if !varies(&there) && !varies(&here) {
        return None;
    }
    if let (Some((low, high)), Some((least, most))) = (ends(&there), ends(&here)) {
        let is_apart = least.number > high.number || most.number < low.number;
        return is_apart.then(|| {
            let [least, most, low, high] = [least, most, low, high].map(|one| &one.text);
            format!("{least} to {most}, where the baseline has {low} to {high}")
        });
    }
    if !is_virtual {
        let sorted = |found: &[Told]| {
            let mut texts: Vec<String> = found.iter().map(|one| one.text.clone()).collect();
            texts.sort();
            texts
        };
        let is_same = sorted(&there) == sorted(&here);
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
            Some(*value)
        }
        Finding::Verdict { .. }
        | Finding::Answer { .. }
        | Finding::Text(_)
        | Finding::Absent(_) => None,
    }
}

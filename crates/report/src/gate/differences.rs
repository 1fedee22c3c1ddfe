// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences of a measurement that are no figures: samples, seed by seed, and findings.

use punctual_judge::Difference;
use punctual_model::probe::FindingView;
use punctual_model::{Finding, Recording, Run};

use crate::compare::{Cell, found, word};
use crate::matrix::{Column, Measurement};
use crate::views;

/// Returns the differences of a measurement, by seed.
/// For a probe that tells words, it also says which of them differ.
pub(super) fn differences(
    row: &Measurement,
    own: &Column<'_>,
    other: &Column<'_>,
) -> (Vec<(u64, Difference)>, Option<String>) {
    let [there, here] = [other, own].map(|column| found(column, row));
    let mut differences = Vec::new();
    for here in &here {
        let there = there.iter().find(|there| there.0.seed == here.0.seed);
        let difference = there.and_then(|there| Difference::of(*there, *here));
        differences.extend(difference.map(|difference| (here.0.seed, difference)));
    }
    let findings = row.view().findings(&row.variant);
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

/// Returns the difference between findings that vary from run to run: numbers that do not overlap,
/// or words that differ with one seed.
fn apart(
    finding: &FindingView,
    there: &[(&Run, &Recording)],
    here: &[(&Run, &Recording)],
) -> Option<String> {
    let told = |(run, recording): &(&Run, &Recording)| {
        let number = recording.findings.get(finding.key).and_then(number);
        (
            run.seed,
            number,
            views::told(finding, &recording.findings).text,
        )
    };
    let [there, here] = [there, here].map(|found| found.iter().map(told).collect::<Vec<_>>());
    let varies = |found: &[(u64, Option<f64>, String)]| found.iter().any(|one| one.2 != found[0].2);
    if !varies(&there) && !varies(&here) {
        return None;
    }
    let numbers = |found: &[(u64, Option<f64>, String)]| -> Option<Vec<f64>> {
        found.iter().map(|one| one.1).collect()
    };
    if let (Some(before), Some(after)) = (numbers(&there), numbers(&here)) {
        let ends = |of: &[f64]| {
            let least = of.iter().copied().fold(f64::INFINITY, f64::min);
            (least, of.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        };
        let ((low, high), (least, most)) = (ends(&before), ends(&after));
        let text = |found: &[(u64, Option<f64>, String)], wanted: f64| {
            let mut found = found.iter();
            let one = found.find(|one| one.1 == Some(wanted));
            one.map_or_else(String::new, |one| one.2.clone())
        };
        return (least > high || most < low).then(|| {
            format!(
                "{} to {}, where the baseline has {} to {}",
                text(&here, least),
                text(&here, most),
                text(&there, low),
                text(&there, high)
            )
        });
    }
    here.iter().find_map(|(seed, _, here)| {
        let (_, _, there) = there.iter().find(|one| one.0 == *seed && one.2 != *here)?;
        Some(format!(
            "{here} with seed {seed}, where the baseline has {there}"
        ))
    })
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

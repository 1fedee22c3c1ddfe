// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a subject is lower or higher than the first one, row by row.

use punctual_judge::{Comparison as Judged, Pair, Rule, Verdict, compare_rows, is_identical};
use punctual_model::probe::Shape;
use punctual_model::units::Nanos;
use punctual_model::{Recording, Run};

use super::{Comparison, Digests};
use crate::matrix::{Cell as Found, Column, Matrix, Measurement};
use crate::stats::Stats;
use crate::text::times;

/// The verdicts of one subject against the first, by the leading figure of each row; one for
/// each row, `None` where that has no such figure. Each run gives one figure.
pub fn verdicts(
    matrix: &Matrix<'_>,
    column: &Column<'_>,
    digests: Digests,
    rule: &Rule,
) -> Vec<Option<Judged>> {
    let pair = |row: &Measurement| {
        let figure = leading(row)?;
        let of = |column| figures(column, row, figure);
        Some(Pair {
            of: of(column),
            than: of(&matrix.columns[0]),
            is_identical: digests == Digests::Equal
                || is_identical(&found(column, row), &found(&matrix.columns[0], row)),
        })
    };
    let pairs: Vec<Option<Pair>> = matrix.rows.iter().map(pair).collect();
    let tested: Vec<Pair> = pairs.iter().flatten().cloned().collect();
    let mut judged = compare_rows(&tested, rule).into_iter();
    let of_row = |pair: Option<Pair>| pair.and_then(|_| judged.next());
    pairs.into_iter().map(of_row).collect()
}

fn found<'a>(column: &Column<'a>, row: &Measurement) -> Vec<(&'a Run, &'a Recording)> {
    let found = column.found(row).into_iter();
    found.map(|one| (one.run, one.recording)).collect()
}

/// What counts of a run, where samples do.
fn leading(row: &Measurement) -> Option<fn(&Stats) -> Option<Nanos>> {
    match row.view().shape {
        Shape::Latency | Shape::Steps => Some(Stats::worst),
        Shape::Jitter => Some(Stats::farthest),
        Shape::Work => Some(Stats::median),
        Shape::Findings | Shape::List => None,
    }
}

/// One figure of each run that has one.
fn figures(
    column: &Column<'_>,
    row: &Measurement,
    figure: fn(&Stats) -> Option<Nanos>,
) -> Vec<f64> {
    let Found::Measured { found, .. } = column.cell(row) else {
        return Vec::new();
    };
    let of_run = |one| Some(figure(&Stats::of(&[one]))?.0 as f64);
    found.into_iter().filter_map(of_run).collect()
}

/// A verdict's word.
pub fn name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Lower => "lower",
        Verdict::Higher => "higher",
        Verdict::NotSeparated { .. } => "not separated",
        Verdict::Identical => "identical",
        Verdict::Undecided(_) => "undecided",
    }
}

/// A verdict with its ratio and what would tell more, in words.
pub fn told(judged: &Judged, rule: &Rule) -> String {
    let ratio = judged.ratio.map_or(String::new(), |ratio| {
        let range = ratio.bounds.map_or(String::new(), |(low, high)| {
            format!(" ({} to {})", times(low), times(high))
        });
        format!(" {}{range}", times(ratio.estimate))
    });
    let more = match &judged.verdict {
        Verdict::Undecided(few) => format!("; {few}"),
        Verdict::NotSeparated { more: Some(0) } => {
            format!("; {} would have been found", times(rule.effect))
        }
        Verdict::NotSeparated { more: Some(more) } => {
            format!(
                "; {more} more seeds of each would find {}",
                times(rule.effect)
            )
        }
        _ => String::new(),
    };
    format!("{}{ratio}{more}", name(&judged.verdict))
}

/// All verdicts in sentences: one for each row; one for all, where there are no figures to be
/// told.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    (1..comparison.subjects.len())
        .flat_map(|at| of_subject(comparison, at))
        .collect()
}

fn of_subject(comparison: &Comparison, at: usize) -> Vec<String> {
    let rows = comparison.sections.iter();
    let rows: Vec<(String, &Judged)> = rows
        .filter_map(|section| Some((section.row.title(), section.verdicts[at].as_ref()?)))
        .collect();
    let both = format!(
        "{} against {}",
        comparison.subjects[at], comparison.subjects[0]
    );
    match rows.as_slice() {
        [] => vec![format!("{both}: no row can be judged.")],
        [(_, one), others @ ..] if others.iter().all(|(_, other)| is_alike(one, other)) => {
            let what = match &one.verdict {
                Verdict::Undecided(few) => format!("undecided: {few}"),
                verdict => name(verdict).to_owned(),
            };
            vec![format!("{both}: {what}.")]
        }
        rows => rows
            .iter()
            .map(|(title, judged)| format!("{both}, {title}: {}.", told(judged, &comparison.rule)))
            .collect(),
    }
}

/// Whether one sentence says both: there are no figures to be told.
fn is_alike(one: &Judged, other: &Judged) -> bool {
    let is_plain =
        |verdict: &Verdict| matches!(verdict, Verdict::Undecided(_) | Verdict::Identical);
    is_plain(&one.verdict) && one.verdict == other.verdict
}

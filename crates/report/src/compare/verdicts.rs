// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verdict of lower or higher than the first subject, row by row.

use punctual_judge::{Comparison as Judged, Pair, Rule, Verdict, compare_rows, is_identical};
use punctual_model::probe::Shape;
use punctual_model::run::State;
use punctual_model::units::Nanos;
use punctual_model::{Recording, Run};

use super::{Comparison, Digests, refusal};
use crate::arrivals::as_far_as_foretold;
use crate::matrix::{Column, Matrix, Measured, Measurement};
use crate::stats::Stats;
use crate::text::{counted, is_or_are, times};

/// The figure of a run that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leading {
    /// Of its samples.
    Samples,
    /// The latest of its arrivals.
    Arrivals,
}

impl Leading {
    /// Chooses the latest arrival over the worst sample, which is drawn by lot.
    /// That takes knowledge of every arrival in all runs of all subjects that have the measurement.
    pub fn of(matrix: &Matrix<'_>, row: &Measurement) -> Self {
        let is_known = |(run, recording): &(&Run, &Recording)| {
            let arrivals = run.arrivals_of(recording);
            arrivals.is_some_and(|one| one.gap.is_none())
        };
        let columns = matrix.columns.iter();
        let found: Vec<_> = columns.map(|column| found(column, row)).collect();
        let mut all = found.iter().flatten().peekable();
        let is_latency = row.view().shape == Shape::Latency;
        if is_latency && all.peek().is_some() && all.all(is_known) {
            Self::Arrivals
        } else {
            Self::Samples
        }
    }

    /// Returns the figure of a run that counts; `None` if no figure does.
    fn figure(self, row: &Measurement) -> Option<fn(&Stats) -> Option<Nanos>> {
        match row.view().shape {
            _ if self == Self::Arrivals => Some(|stats| stats.watched.worst()),
            Shape::Latency | Shape::Steps => Some(Stats::worst),
            Shape::Jitter => Some(Stats::farthest),
            Shape::Work => Some(Stats::median),
            Shape::Findings | Shape::List => None,
        }
    }

    /// Returns true if it is equal whenever all samples are.
    /// On another machine or kernel, equal samples say nothing of what happens between them.
    fn follows_samples(self, own: &[(&Run, &Recording)], other: &[(&Run, &Recording)]) -> bool {
        let mut both = own.iter().zip(other);
        self == Self::Samples || both.all(|((own, _), (other, _))| own.is_made_like(other))
    }
}

/// Returns the verdicts of each subject against the first, row by row.
/// They are `None` for the first itself, and for runs that cannot be compared.
pub fn against_first(
    matrix: &Matrix<'_>,
    rule: &Rule,
    leading: impl Fn(&Measurement) -> Leading,
) -> Vec<Vec<Option<Judged>>> {
    let rows: Vec<(&Measurement, Leading)> =
        matrix.rows.iter().map(|row| (row, leading(row))).collect();
    let first = matrix.columns.first();
    let of_column = |(at, column): (usize, &Column<'_>)| match first {
        Some(first) if at > 0 => of_pair(&rows, column, first, rule),
        _ => vec![None; matrix.rows.len()],
    };
    matrix.columns.iter().enumerate().map(of_column).collect()
}

/// Returns the verdicts of one subject against another, by the leading figure of each row.
/// There is one for each row, `None` if the row has no such figure. Each run gives one figure.
pub fn of_pair(
    rows: &[(&Measurement, Leading)],
    of: &Column<'_>,
    than: &Column<'_>,
    rule: &Rule,
) -> Vec<Option<Judged>> {
    if of
        .runs
        .iter()
        .any(|run| refusal::of_two(than.runs[0], run).is_some())
    {
        return vec![None; rows.len()];
    }
    let pair = |(row, leading): &(&Measurement, Leading)| {
        let figure = leading.figure(row)?;
        let [own, other] = [of, than].map(|column| found(column, row));
        let [ones, others] = [&own, &other].map(|found| figures(found, figure));
        let runs = ones.iter().chain(&others).map(|(run, _)| run.id.clone());
        let values = |all: &[(&Run, f64)]| all.iter().map(|(_, value)| *value).collect();
        Some(Pair {
            is_identical: is_identical(&own, &other) && leading.follows_samples(&own, &other),
            of: values(&ones),
            than: values(&others),
            runs: runs.collect(),
        })
    };
    let pairs: Vec<Option<Pair>> = rows.iter().map(pair).collect();
    let tested: Vec<Pair> = pairs.iter().flatten().cloned().collect();
    let mut judged = compare_rows(&tested, rule).into_iter();
    let of_row = |(pair, (_, leading)): (Option<Pair>, &(&Measurement, Leading))| {
        let pair = pair?;
        let judged = judged.next()?;
        Some(match leading {
            Leading::Arrivals => as_far_as_foretold(judged, &pair),
            Leading::Samples => judged,
        })
    };
    pairs.into_iter().zip(rows).map(of_row).collect()
}

/// Returns the recordings of a measurement in whole runs.
/// Runs of one seed in virtual time are the same: of these it returns the first.
pub fn found<'a>(column: &Column<'a>, row: &Measurement) -> Vec<(&'a Run, &'a Recording)> {
    let mut kept: Vec<(&Run, &Recording)> = Vec::new();
    for Measured { run, recording } in column.found(row) {
        let is_same = |(other, _): &(&Run, _)| run.is_virtual() && other.seed == run.seed;
        if run.state == State::Finished && !kept.iter().any(is_same) {
            kept.push((run, recording));
        }
    }
    kept
}

/// Each run that has a figure, with it. A recording that tells less than it should has none: what
/// ended early had less time for a worst case.
fn figures<'a>(
    found: &[(&'a Run, &Recording)],
    figure: fn(&Stats) -> Option<Nanos>,
) -> Vec<(&'a Run, f64)> {
    let of_run = |(run, recording): &(&'a Run, &Recording)| {
        let (run, recording) = (*run, *recording);
        if recording.shortcoming().is_some() {
            return None;
        }
        let stats = Stats::of(&[Measured { run, recording }]);
        Some((run, figure(&stats)?.0 as f64))
    };
    found.iter().filter_map(of_run).collect()
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

/// A verdict with its ratio and the further seeds that would tell more, in words.
pub fn told(judged: &Judged, rule: &Rule) -> String {
    told_in(judged, rule, "seed")
}

/// `1 more seed of each is`, `4 more seeds of each are`. `unit` is the name of one: `seed`, `run`.
pub fn enough(more: u32, unit: &str) -> String {
    let one = format!("more {unit}");
    let verb = is_or_are(more as usize);
    format!("{} of each {verb}", counted(more as usize, &one))
}

/// The same; `unit` is what further runs differ by, `seed`, or in real time just `run`.
fn told_in(judged: &Judged, rule: &Rule, unit: &str) -> String {
    let ratio = judged.ratio.map_or(String::new(), |ratio| {
        let range = ratio.bounds.map_or(String::new(), |(low, high)| {
            format!(" ({} to {})", times(low), times(high))
        });
        format!(" {}{range}", times(ratio.estimate))
    });
    let more = match &judged.verdict {
        Verdict::Undecided(few) => format!("; {few}"),
        Verdict::NotSeparated { more: Some(0) } => {
            format!("; these are enough to see {}", times(rule.effect))
        }
        Verdict::NotSeparated { more: Some(more) } => {
            let (more, effect) = (enough(*more, unit), times(rule.effect));
            format!("; {more} enough to see {effect}")
        }
        _ => String::new(),
    };
    format!("{}{ratio}{more}", name(&judged.verdict))
}

/// All verdicts in sentences: one for each row, or one for all if there are no figures to tell.
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
    let unit = match comparison.digests[at] {
        Digests::RealTime => "run",
        _ => "seed",
    };
    let told = |judged: &Judged| told_in(judged, &comparison.rule, unit);
    match rows.as_slice() {
        [] => vec![format!("{both}: no row can be judged.")],
        // A single row with figures to tell is not alike even itself.
        [(_, one), ..] if rows.iter().all(|(_, other)| is_alike(one, other)) => {
            let what = match &one.verdict {
                Verdict::Undecided(few) => format!("undecided: {few}"),
                verdict => name(verdict).to_owned(),
            };
            vec![format!("{both}: {what}.")]
        }
        rows => rows
            .iter()
            .map(|(title, judged)| format!("{both}, {title}: {}.", told(judged)))
            .collect(),
    }
}

/// Returns true if one sentence covers both, with no figures to tell.
fn is_alike(one: &Judged, other: &Judged) -> bool {
    let is_plain =
        |verdict: &Verdict| matches!(verdict, Verdict::Undecided(_) | Verdict::Identical);
    is_plain(&one.verdict) && one.verdict == other.verdict
}

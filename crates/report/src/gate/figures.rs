// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of each row, judged by the same permutation of whole runs.

use punctual_judge::{Comparison, Pair, Rule, Verdict, compare_rows, is_identical};
use punctual_model::probe::Shape;
use punctual_model::{Nanos, Recording, Run};

use super::{Row, Standing, Terms, differences, middle};
use crate::compare::found;
use crate::matrix::{Column, Measured, Measurement};
use crate::stats::Stats;

/// A figure of a row, there and here.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What it is called: `median`, `p99`, `worst`.
    pub name: &'static str,
    /// Which of a run's samples it is: the one that is not shorter than this share of all.
    pub share: f64,
    /// Whether it is the one that counts most of this measurement.
    pub leads: bool,
    /// How it stands.
    pub standing: Standing,
    /// The baseline's middle run.
    pub there: Nanos,
    /// The middle run here.
    pub here: Nanos,
    /// With how many of the seeds that both have it is higher here.
    pub higher: usize,
    /// How many seeds both have.
    pub seeds: usize,
    /// Run by run: lower, higher, not separated.
    pub compared: Comparison,
}

impl Judged {
    /// How many times the baseline's figure it is.
    pub fn ratio(&self) -> Option<f64> {
        self.compared.ratio.map(|ratio| ratio.estimate)
    }
}

type Value = fn(&Stats) -> Option<Nanos>;

/// A figure, before it is judged.
#[derive(Clone, Copy)]
struct Figure {
    name: &'static str,
    share: f64,
    value: Value,
    /// Whether a row without it is none: where there are samples, there is a worst one.
    leads: bool,
}

const fn figure(name: &'static str, share: f64, value: Value, leads: bool) -> Figure {
    Figure {
        name,
        share,
        value,
        leads,
    }
}

const LATENCY: &[Figure] = &[
    figure("median", 0.5, Stats::median, false),
    figure("p99", 0.99, |stats| stats.quantile(0.99), false),
    figure("worst", 1.0, Stats::worst, true),
];
/// Samples lie on both sides of zero: what counts is how far they lie apart, and from zero.
const JITTER: &[Figure] = &[
    figure("p1 to p99", 0.99, spread, false),
    figure("farthest", 1.0, Stats::farthest, true),
];
const WORK: &[Figure] = &[
    figure("median", 0.5, Stats::median, true),
    figure("p99", 0.99, |stats| stats.quantile(0.99), false),
    figure("longest", 1.0, Stats::worst, false),
];

fn spread(stats: &Stats) -> Option<Nanos> {
    Some(stats.quantile(0.99)? - stats.quantile(0.01)?)
}

fn figures_of(row: &Measurement) -> &'static [Figure] {
    match row.view().shape {
        Shape::Jitter => JITTER,
        Shape::Work => WORK,
        // What tells words may have samples, too.
        Shape::Latency | Shape::Steps | Shape::Findings | Shape::List => LATENCY,
    }
}

/// A figure of whole runs there and here, by seed.
struct Drawn {
    figure: Figure,
    there: Vec<(u64, Nanos)>,
    here: Vec<(u64, Nanos)>,
    pair: Pair,
}

/// All rows: each figure of each of them is judged by the same divisions of the runs.
pub(super) fn rows(
    rows: &[Measurement],
    own: &Column<'_>,
    other: &Column<'_>,
    terms: &Terms,
) -> Vec<Row> {
    let drawn: Vec<Result<Vec<Drawn>, String>> =
        rows.iter().map(|row| drawn(row, own, other)).collect();
    let pairs = drawn.iter().flatten().flatten();
    let pairs: Vec<Pair> = pairs.map(|drawn| drawn.pair.clone()).collect();
    let mut compared = compare_rows(&pairs, &terms.rule).into_iter();
    let rows = rows.iter().zip(drawn);
    let row = |(row, drawn): (&Measurement, Result<Vec<Drawn>, String>)| {
        let (differences, told) = differences(row, own, other);
        let (drawn, gap) = match drawn {
            Ok(drawn) => (drawn, told),
            Err(gap) => (Vec::new(), Some(gap)),
        };
        let compared: Vec<Comparison> = compared.by_ref().take(drawn.len()).collect();
        let figures = judged(&drawn, &compared, terms);
        let samples = found(own, row).iter().map(|(_, one)| one.count).sum();
        let mut row = Row {
            samples,
            row: row.clone(),
            standing: Standing::Undecided,
            figures,
            gap,
            differences,
        };
        row.stand();
        row
    };
    rows.map(row).collect()
}

/// The figures that there are samples for on both sides; an error, where something is missing
/// on one side, or on both.
fn drawn(row: &Measurement, own: &Column<'_>, other: &Column<'_>) -> Result<Vec<Drawn>, String> {
    let [here, there] = [own, other].map(|column| found(column, row));
    for (found, column, side) in [(&here, own, ""), (&there, other, " in the baseline")] {
        if found.is_empty() {
            return Err(format!("not measured{side}"));
        }
        let is_found = |run: &&Run| found.iter().any(|(own, _)| own.seed == run.seed);
        if let Some(run) = column.runs.iter().find(|run| !is_found(run)) {
            return Err(format!("not measured{side} with seed {}", run.seed));
        }
    }
    let counts = || {
        here.iter()
            .chain(&there)
            .map(|(_, recording)| recording.count)
    };
    if counts().all(|count| count == 0) && row.view().findings(&row.variant).next().is_some() {
        return Ok(Vec::new());
    }
    let [own, other] = [&here, &there].map(|found| stats(found));
    let identical = is_identical(&here, &there);
    let runs: Vec<String> = here
        .iter()
        .chain(&there)
        .map(|(run, _)| run.id.clone())
        .collect();
    let mut all = Vec::new();
    for figure in figures_of(row) {
        let values = |stats: &[(u64, Stats)]| -> Vec<(u64, Nanos)> {
            let value = |(seed, stats): &(u64, Stats)| Some((*seed, (figure.value)(stats)?));
            stats.iter().filter_map(value).collect()
        };
        let (here, there) = (values(&own), values(&other));
        let is_whole = (here.len(), there.len()) == (own.len(), other.len());
        if !is_whole && (figure.leads || !(here.is_empty() && there.is_empty())) {
            let name = figure.name;
            return Err(format!("{name}: too few samples in one of the runs"));
        }
        if !is_whole {
            continue;
        }
        let numbers = |values: &[(u64, Nanos)]| values.iter().map(|one| one.1.0 as f64).collect();
        let pair = Pair {
            of: numbers(&here),
            than: numbers(&there),
            runs: runs.clone(),
            is_identical: identical,
        };
        all.push(Drawn {
            figure: *figure,
            there,
            here,
            pair,
        });
    }
    Ok(all)
}

fn stats(found: &[(&Run, &Recording)]) -> Vec<(u64, Stats)> {
    let of_run = |(run, recording): &(&Run, &Recording)| {
        let (run, recording) = (*run, *recording);
        (run.seed, Stats::of(&[Measured { run, recording }]))
    };
    found.iter().map(of_run).collect()
}

fn judged(drawn: &[Drawn], compared: &[Comparison], terms: &Terms) -> Vec<Judged> {
    let times = |values: &[(u64, Nanos)]| values.iter().map(|one| one.1).collect();
    let median = drawn.iter().find(|one| one.figure.name == "median");
    let median = median.and_then(|one| middle(times(&one.there)));
    let one = |(drawn, compared): (&Drawn, &Comparison)| {
        let there = middle(times(&drawn.there)).unwrap_or_default();
        let here = middle(times(&drawn.here)).unwrap_or_default();
        let both = drawn.here.iter().filter_map(|(seed, here)| {
            let there = drawn.there.iter().find(|(own, _)| own == seed)?;
            Some(*here > there.1)
        });
        let both: Vec<bool> = both.collect();
        let matters = terms.tolerance * median.unwrap_or(there).0.abs() as f64;
        Judged {
            name: drawn.figure.name,
            share: drawn.figure.share,
            leads: drawn.figure.leads,
            standing: standing(compared, &terms.rule, there.0 as f64, matters),
            there,
            here,
            higher: both.iter().filter(|is_higher| **is_higher).count(),
            seeds: both.len(),
            compared: *compared,
        }
    };
    drawn.iter().zip(compared).map(one).collect()
}

/// *Not worse* is shown, not assumed: the ratio's upper bound is below the smallest effect
/// worth finding. *Worse* is higher by more than `matters`, for certain; what is higher for
/// certain, and by less, is tolerated.
fn standing(compared: &Comparison, rule: &Rule, there: f64, matters: f64) -> Standing {
    let bounds = compared.ratio.and_then(|ratio| ratio.bounds);
    let by = bounds.map(|(low, high)| [low, high].map(|bound| (bound - 1.0) * there));
    match (compared.verdict, by) {
        (Verdict::Identical, _) => Standing::Unchanged,
        (Verdict::Lower, _) => Standing::NotWorse,
        (Verdict::Higher, Some([_, most])) if most <= matters => Standing::Tolerated,
        (Verdict::Higher, Some([least, _])) if least < matters => Standing::Undecided,
        (Verdict::Higher, _) => Standing::Worse,
        _ if bounds.is_some_and(|(_, high)| high <= rule.effect) => Standing::NotWorse,
        (Verdict::NotSeparated { .. } | Verdict::Undecided(_), _) => Standing::Undecided,
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of kernels, release by release: their measurements, changes, and the causes.

mod csv;
mod json;
mod news;
mod page;
mod text;

use std::fmt;

use punctual_judge::{ChangePoint, Rule, change_points, fate};
use punctual_model::Nanos;
use punctual_model::probe::Shape;
use punctual_model::run::{Run, State};

use crate::asked::Asked;
use crate::matrix::{Column, Matrix, Measured, Measurement, distinct};
use crate::stats::Stats;
use crate::why::Why;

pub use csv::series_csv;
pub use json::series_json;
pub use news::{Change, News, Standing, Told, ToldLine};
pub use page::series_page;
pub use text::series_text;

/// The sample of a run that stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The largest.
    Worst,
    /// The middle one: the usual path.
    Median,
    /// No sample: the latest of every arrival, as it is foretold.
    Arrival,
    /// No sample: the latest aimed one.
    Reached,
}

impl Figure {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Worst => "worst",
            Self::Median => "median",
            Self::Arrival => "arrival",
            Self::Reached => "reached",
        }
    }

    /// Returns the share of all samples that are not longer.
    /// Returns `None` if no sample of a run stands for it.
    pub fn share(self) -> Option<f64> {
        match self {
            Self::Worst => Some(1.0),
            Self::Median => Some(0.5),
            Self::Arrival | Self::Reached => None,
        }
    }

    /// Its value in what a run recorded.
    pub fn of(self, stats: &Stats) -> Option<Nanos> {
        match self {
            Self::Worst => stats.worst(),
            Self::Median => stats.median(),
            Self::Arrival => stats.watched.worst(),
            Self::Reached => stats.watched.reached(),
        }
    }
}

/// A line of kernels: its releases, the oldest first.
#[derive(Debug)]
pub struct Line {
    /// The kernels' common name, without versions; boot arguments behind it.
    pub name: String,
    /// The suite that measured it, or was to.
    pub suite: String,
    /// Each release.
    pub releases: Vec<Release>,
    /// The releases that could not be had.
    pub left_out: Vec<LeftOut>,
    /// Each figure of each measurement.
    pub rows: Vec<Row>,
}

/// A release that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its kernel.
    pub kernel: String,
    /// The reason.
    pub why: String,
    /// True if its line has none that is newer.
    pub is_newest: bool,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kernel, self.why)
    }
}

/// One release of a line.
#[derive(Debug)]
pub struct Release {
    /// The subject's name.
    pub subject: String,
    /// Its version, as short as tells it from the others of its line: `6.12.43`.
    pub version: String,
    /// The reasons why runs of it have not finished, if any has not.
    pub gaps: Vec<String>,
}

/// One figure of one measurement, release by release.
#[derive(Debug)]
pub struct Row {
    /// The measurement.
    pub row: Measurement,
    /// The figure of the measurement.
    pub figure: Figure,
    /// Of each release the figures of its runs, in the order of their seeds.
    pub values: Vec<Vec<OfRun>>,
    /// The points where it changes.
    pub changes: Vec<ChangePoint>,
    /// The causes of changes, by the number of the release that is different.
    pub why: Vec<(usize, Why)>,
}

/// A run's figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfRun {
    /// The run.
    pub run: String,
    /// Its seed.
    pub seed: u64,
    /// Its digest; `None` in real time.
    pub digest: Option<String>,
    /// The figure.
    pub value: Nanos,
}

/// Releases without a change between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The first and the last of them that have figures, by their numbers.
    pub releases: (usize, usize),
    /// The middle figure of all their runs.
    pub middle: Nanos,
    /// The smallest and the largest.
    pub ends: (Nanos, Nanos),
    /// The change that it begins with.
    pub change: Option<ChangePoint>,
}

impl Row {
    /// Returns its title: `timer, stress, cpu0: worst`.
    pub fn title(&self) -> String {
        format!("{}: {}", self.row.title(), self.figure.name())
    }

    /// The levels between its changes; those without a figure of any release are left out.
    pub fn levels(&self) -> Vec<Level> {
        let starts = std::iter::once(0).chain(self.changes.iter().map(|one| one.at));
        let ends = self.changes.iter().map(|one| one.at);
        let ends = ends.chain([self.values.len()]);
        let level = |(from, to): (usize, usize)| {
            let values = self.values[from..to].iter().flatten();
            let mut values: Vec<Nanos> = values.map(|one| one.value).collect();
            values.sort_unstable();
            // Nothing is known of releases without figures, at either end.
            let mut measured = (from..to).filter(|at| !self.values[*at].is_empty());
            let first = measured.next()?;
            Some(Level {
                releases: (first, measured.next_back().unwrap_or(first)),
                middle: *values.get(values.len() / 2)?,
                ends: (*values.first()?, *values.last()?),
                change: self.changes.iter().find(|one| one.at == from).copied(),
            })
        };
        starts.zip(ends).filter_map(level).collect()
    }
}

/// The lines of some runs. Runs of one line are in the order of its releases.
pub fn lines(runs: &[Run], rule: &Rule) -> Vec<Line> {
    let matrix = Matrix::new(runs);
    let names = distinct(matrix.columns.iter().map(line_of));
    let suite = runs.first().map_or("", |run| run.suite.as_str());
    let line = |name: &String| {
        let own = matrix.columns.iter().filter(|one| line_of(one) == *name);
        let columns: Vec<&Column<'_>> = own.collect();
        Line {
            name: name.clone(),
            suite: suite.to_owned(),
            releases: releases(&columns),
            left_out: Vec::new(),
            rows: rows(&matrix.rows, &columns, rule),
        }
    };
    names.iter().map(line).collect()
}

/// Returns the lines of some runs of a suite, with the releases that could not be had.
/// A line without any release that could be had is one without releases.
pub fn whole_lines(runs: &[Run], rule: &Rule, suite: &str, left_out: &[LeftOut]) -> Vec<Line> {
    let mut all = lines(runs, rule);
    for one in left_out {
        let kernel = without_version(&one.kernel);
        // Behind the kernel stand boot arguments.
        let is_own = |line: &Line| line.name.split(' ').next() == Some(kernel);
        if !all.iter().any(is_own) {
            all.push(Line {
                name: kernel.to_owned(),
                suite: suite.to_owned(),
                releases: Vec::new(),
                left_out: Vec::new(),
                rows: Vec::new(),
            });
        }
        for line in all.iter_mut().filter(|line| is_own(line)) {
            line.left_out.push(one.clone());
        }
    }
    all
}

fn without_version(kernel: &str) -> &str {
    kernel.split('@').next().unwrap_or_default()
}

/// The kernel's name without its version, and boot arguments.
fn line_of(column: &Column<'_>) -> String {
    let kernel = without_version(&column.subject.kernel);
    format!("{kernel} {}", column.subject.boot)
        .trim()
        .to_owned()
}

fn releases(columns: &[&Column<'_>]) -> Vec<Release> {
    let kernels: Vec<&str> = columns.iter().map(|one| &*one.subject.kernel).collect();
    let gaps = |column: &&Column<'_>| {
        column
            .runs
            .iter()
            .flat_map(|run| {
                let why = |why: String| format!("{} (seed {}): {why}", run.id, run.seed);
                let ended = (run.state != State::Finished).then(|| fate(run));
                let lacking = run
                    .unsupported
                    .iter()
                    .map(|one| format!("{}, {}: {}", one.probe, one.load, one.reason));
                let cut_short = run.recordings.iter().filter_map(|one| {
                    let why = one
                        .interruption()
                        .filter(|_| run.state == State::Finished)?;
                    Some(format!("{}: {why}", one.title()))
                });
                ended
                    .into_iter()
                    .chain(lacking)
                    .chain(cut_short)
                    .map(why)
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    let release = |(column, version): (&&Column<'_>, String)| Release {
        subject: column.name.clone(),
        version,
        gaps: gaps(column),
    };
    columns
        .iter()
        .zip(versions(&kernels))
        .map(release)
        .collect()
}

/// The versions of a line's kernels, each as short as tells it from the others: `6.12.43`.
pub fn versions(kernels: &[&str]) -> Vec<String> {
    fn version<'a>(kernel: &&'a str) -> &'a str {
        kernel
            .split_once('@')
            .map_or("newest", |(_, version)| version)
    }
    // A revision of the distribution's begins with a digit; `-rc1` is a part of the version.
    let upstream = |version: &str| {
        let is_revision = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        let mut ends = version.match_indices('-').map(|(at, _)| at);
        let end = ends.find(|at| is_revision(&version[at + 1..]));
        version[..end.unwrap_or(version.len())].to_owned()
    };
    let short = |kernel: &&str| {
        let own = version(kernel);
        let is_same = |other: &&&str| upstream(version(other)) == upstream(own);
        if kernels.iter().filter(is_same).count() > 1 {
            return own.split('~').next().unwrap_or_default().to_owned();
        }
        upstream(own)
    };
    kernels.iter().map(short).collect()
}

fn rows(all: &[Measurement], columns: &[&Column<'_>], rule: &Rule) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for row in all {
        for figure in figures(row) {
            let of_column = |column: &&Column<'_>| values(column, row, *figure);
            let values: Vec<Vec<OfRun>> = columns.iter().map(of_column).collect();
            if values.iter().any(|release| !release.is_empty()) {
                rows.push(Row {
                    row: row.clone(),
                    figure: *figure,
                    values,
                    changes: Vec::new(),
                    why: Vec::new(),
                });
            }
        }
    }
    let level = level_of_each(rule, rows.len());
    for row in &mut rows {
        let of_release = |release: &Vec<OfRun>| -> Vec<f64> {
            release.iter().map(|one| one.value.0 as f64).collect()
        };
        let series: Vec<Vec<f64>> = row.values.iter().map(of_release).collect();
        row.changes = measured_changes(&series, change_points(&series, level));
    }
    rows
}

/// Returns the changes, each at the first release from there on that has figures: those without are
/// not known to be different. A change with figures on one side only is none.
fn measured_changes(series: &[Vec<f64>], found: Vec<ChangePoint>) -> Vec<ChangePoint> {
    let has_figures = |release: &Vec<f64>| !release.is_empty();
    let measured = |one: ChangePoint| {
        let (before, since) = series.split_at(one.at);
        let gaps = since.iter().position(has_figures)?;
        let at = one.at + gaps;
        before
            .iter()
            .any(has_figures)
            .then_some(ChangePoint { at, ..one })
    };
    let mut changes: Vec<ChangePoint> = found.into_iter().filter_map(measured).collect();
    changes.dedup_by_key(|one| one.at);
    changes
}

/// The level of each of so many rows, which pays its share.
fn level_of_each(rule: &Rule, rows: usize) -> f64 {
    rule.level / rows.max(1) as f64
}

/// The figures that count of a measurement.
pub(crate) fn figures(row: &Measurement) -> &'static [Figure] {
    match row.view().shape {
        Shape::Latency | Shape::Steps => &[
            Figure::Worst,
            Figure::Median,
            Figure::Arrival,
            Figure::Reached,
        ],
        Shape::Work => &[Figure::Median],
        Shape::Jitter | Shape::Findings | Shape::List => &[],
    }
}

/// The figures of a column's runs, by seed.
pub(crate) fn values(column: &Column<'_>, row: &Measurement, figure: Figure) -> Vec<OfRun> {
    let of_run = |one: &Measured<'_>| {
        let is_whole = one.run.state == State::Finished && !one.recording.interrupted;
        let stats = Stats::of(std::slice::from_ref(one));
        let value = figure.of(&stats).filter(|_| is_whole)?;
        Some(OfRun {
            run: one.run.id.clone(),
            seed: one.run.seed,
            digest: one.run.digest(),
            value,
        })
    };
    let mut found: Vec<OfRun> = column.found(row).iter().filter_map(of_run).collect();
    found.sort_by_key(|one| one.seed);
    found
}

/// A change to explain.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The number of its row.
    pub row: usize,
    /// The number of the release that is different.
    pub at: usize,
    /// A sample of that release, and one of the release before.
    /// Each is of the run with the release's middle figure.
    pub asked: Asked,
}

/// Returns the largest changes of a line, at most so many.
/// Of one probe under one load, there is one for each release. Only changes that are asked for
/// count, by row and release.
pub fn questions(
    line: &Line,
    most: usize,
    is_asked: &dyn Fn(usize, usize) -> bool,
) -> Vec<Question> {
    let mut found: Vec<(f64, Question)> = Vec::new();
    for (number, row) in line.rows.iter().enumerate() {
        let Some(share) = row.figure.share() else {
            continue;
        };
        for pair in row.levels().windows(2) {
            let [before, after] = pair else { continue };
            if !is_asked(number, after.releases.0) {
                continue;
            }
            let middle = |release: &[OfRun]| {
                let mut runs = release.to_vec();
                runs.sort_by_key(|one| one.value);
                runs.get(runs.len() / 2).map(|one| one.run.clone())
            };
            let releases = [after.releases.0, before.releases.1];
            let [Some(here), Some(there)] = releases.map(|at| middle(&row.values[at])) else {
                continue;
            };
            let ratio = after.middle.0 as f64 / before.middle.0.max(1) as f64;
            let question = Question {
                row: number,
                at: after.releases.0,
                asked: Asked {
                    key: row.row.key(),
                    share,
                    runs: [here, there],
                },
            };
            found.push((ratio.ln().abs(), question));
        }
    }
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut asked: Vec<Question> = Vec::new();
    for (_, question) in found {
        let about = |one: &Question| {
            let key = &one.asked.key;
            (one.at, key.probe.clone(), key.load.clone())
        };
        if asked.len() < most && !asked.iter().any(|one| about(one) == about(&question)) {
            asked.push(question);
        }
    }
    asked
}

#[cfg(test)]
mod tests;

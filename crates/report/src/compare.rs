// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs against each other: each subject's figures beside the first one's.

mod csv;
mod json;
mod refusal;
mod text;
mod verdicts;

use std::collections::BTreeMap;

use punctual_judge::{Comparison as Judged, Rule, independent};
use punctual_model::RecordingKey;
use punctual_model::probe::{FindingView, Shape};
use punctual_model::run::Run;
use punctual_model::units::Nanos;

use crate::arrivals::{FORECASTS, MEANING};
use crate::matrix::{
    Availability as Found, Column, Matrix, Measured, Measurement, called, is_one_subject,
};
use crate::stats::{Stats, supports};
use crate::views::{self, Tone};

pub use csv::comparison_csv;
pub use json::{Compared, comparison_json};
pub(crate) use refusal::of_two;
pub use refusal::{Refusal, difference, plans as plan_difference};
pub use text::comparison_text;
pub(crate) use verdicts::{Leading, against_first, enough, found, of_pair};
pub use verdicts::{name as verdict_name, sentences as verdict_sentences, told as verdict_told};

/// Runs that may be compared.
/// If one subject has two runs with one seed, each run is a subject of its own. Runs of other
/// programs have no seeds: each is a subject of its own unless they are independent measurements of
/// one of several subjects.
#[derive(Debug)]
pub struct Comparable(Vec<Run>);

impl Comparable {
    /// Refuses runs that did not finish, and sets of runs that did not all measure the same.
    pub fn new(mut runs: Vec<Run>) -> Result<Self, Refusal> {
        refusal::check(&runs)?;
        let same = |one: &Run, other: &Run| one.seed == other.seed && is_one_subject(one, other);
        let is_apart = |run: &Run| {
            let alike: Vec<&Run> = runs.iter().filter(|other| same(run, other)).collect();
            if !run.is_imported() || alike.len() == runs.len() {
                return alike.len() > 1;
            }
            let counted = independent(&alike);
            counted.gap.is_some() || counted.runs.len() < alike.len()
        };
        let twice: Vec<bool> = runs.iter().map(is_apart).collect();
        for (run, twice) in runs.iter_mut().zip(twice) {
            if twice {
                run.subject.name = format!("{} {}", run.subject.name, run.id);
            }
        }
        number_by_plan(&mut runs);
        Ok(Self(runs))
    }

    /// Returns the reason why there is nothing to compare.
    /// Either all runs are seeds of one subject, or no two subjects have measured the same.
    pub fn nothing_to_compare(&self) -> Option<String> {
        let ids: Vec<String> = self.0.iter().map(|run| run.id.clone()).collect();
        let runs = crate::text::list(&ids);
        let matrix = Matrix::new(&self.0);
        let columns = &matrix.columns;
        if columns.len() == 1 {
            let ids = ids.join(" ");
            return Some(format!(
                "{runs} are seeds of one subject: nothing to compare; `punctual show {ids}` shows \
                 them together"
            ));
        }
        let has = |column: &&Column<'_>, row: &&Measurement| !column.found(row).is_empty();
        let is_common = |row: &Measurement| columns.iter().filter(|one| has(one, &row)).count() > 1;
        if matrix.rows.iter().any(is_common) {
            return None;
        }
        let of = |column: &Column<'_>| {
            let rows = matrix.rows.iter().filter(|row| has(&column, row));
            let titles: Vec<String> = rows.map(Measurement::title).collect();
            format!("{}: {}", column.name, titles.join("; "))
        };
        let each: Vec<String> = columns.iter().map(of).collect();
        let each = each.join("\n  ");
        Some(format!(
            "{runs} have measured nothing in common: nothing to compare\n  {each}"
        ))
    }

    /// The runs.
    pub fn runs(&self) -> &[Run] {
        &self.0
    }
}

/// Numbers recordings of one name by the step that made them.
/// A run numbers those that it has: if the first of two steps of one name recorded nothing there,
/// what the second recorded would stand beside the first of another run.
fn number_by_plan(runs: &mut [Run]) {
    let name = |key: &RecordingKey| {
        let key = key.clone();
        (key.probe, key.load, key.variant)
    };
    // The most that a step recorded under a name, in any of the runs.
    let mut most: BTreeMap<_, BTreeMap<u32, u32>> = BTreeMap::new();
    for run in runs.iter().filter(|run| !run.is_imported()) {
        let mut own: BTreeMap<_, u32> = BTreeMap::new();
        for recording in &run.recordings {
            let (name, step) = (name(&recording.key), recording.key.step);
            let count = own.entry((name.clone(), step)).or_default();
            *count += 1;
            let most = most.entry(name).or_default().entry(step).or_default();
            *most = (*most).max(*count);
        }
    }
    for run in runs.iter_mut().filter(|run| !run.is_imported()) {
        let mut own: BTreeMap<_, u32> = BTreeMap::new();
        for recording in &mut run.recordings {
            let (name, step) = (name(&recording.key), recording.key.step);
            let before: u32 = most[&name].range(..step).map(|(_, count)| count).sum();
            let within = own.entry((name, step)).or_default();
            *within += 1;
            recording.key.repetition = before + *within;
        }
    }
}

/// Subjects side by side.
#[derive(Debug)]
pub struct Comparison {
    /// The subjects' names; the others are compared with the first.
    pub subjects: Vec<String>,
    /// One for each measurement.
    pub sections: Vec<Section>,
    /// The comparison of each subject's digests with the first one's.
    pub digests: Vec<Digests>,
    /// Notes without which it may be misread.
    pub notes: Vec<String>,
    /// The confidence rule for the verdicts.
    pub rule: Rule,
}

/// One measurement.
#[derive(Debug)]
pub struct Section {
    /// The measurement.
    pub row: Measurement,
    /// The names of its figures: the one that counts stands first.
    pub figures: Vec<&'static str>,
    /// For each subject a cell for each figure.
    pub cells: Vec<Vec<Cell>>,
    /// Lower or higher than the first, for each subject, by the leading figure of each run.
    /// `None` for the first itself, and where no figure leads.
    pub verdicts: Vec<Option<Judged>>,
}

impl Section {
    /// Returns the cells as people are shown them: the ratio of the leading figure is the one that
    /// is judged, run by run, which is not always that of the two values shown.
    pub fn shown(&self) -> Vec<Vec<Cell>> {
        let mut shown = self.cells.clone();
        for (cells, judged) in shown.iter_mut().zip(&self.verdicts) {
            let run_by_run = judged.and_then(|judged| judged.ratio);
            if let (Some(Cell::Time { ratio, .. }), Some(judged)) = (cells.first_mut(), run_by_run)
            {
                *ratio = Some(judged.estimate);
            }
        }
        shown
    }
}

/// A subject's figure beside the first one's.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A time.
    Time {
        /// The time.
        value: Nanos,
        /// The ratio to the first one's value.
        /// `None` for the first itself, and where the two cannot be divided.
        ratio: Option<f64>,
    },
    /// A word that a probe told.
    Word(String),
    /// The reason why there is none.
    Absent(String),
}

impl Cell {
    /// Returns the percentage by which it is above the first one's.
    pub fn percent(&self) -> Option<f64> {
        match self {
            Self::Time { ratio, .. } => ratio.map(|ratio| (ratio - 1.0) * 100.0),
            _ => None,
        }
    }
}

/// The comparison of a subject's behaviour with the first one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digests {
    /// It is the first.
    First,
    /// It is equal to the last sample.
    Equal,
    /// It is different.
    Different,
    /// The seeds differ.
    OtherSeeds,
    /// In real time no two runs are equal.
    RealTime,
    /// Nothing was measured in a run of either side: nothing is equal to nothing.
    Unmeasured,
}

impl Digests {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "what the others are compared with",
            Self::Equal => "equal: the same behaviour to the last sample",
            Self::Different => "different",
            Self::OtherSeeds => "not compared: other seeds",
            Self::RealTime => "not compared: in real time no two runs are equal",
            Self::Unmeasured => "none: nothing was measured",
        }
    }
}

/// Compares all subjects with the first.
/// The figures are over all runs; the verdicts are run by run, and hold for all rows of a subject
/// together.
pub fn compare(runs: &Comparable) -> Comparison {
    compare_by(runs, Rule::default())
}

/// The same by a rule of one's own.
pub fn compare_by(runs: &Comparable, rule: Rule) -> Comparison {
    let matrix = Matrix::new(runs.runs());
    let columns = &matrix.columns;
    let digests: Vec<Digests> = columns
        .iter()
        .map(|column| digests(&columns[0], column))
        .collect();
    let judged = against_first(&matrix, &rule, |row| Leading::of(&matrix, row));
    let sections = matrix.rows.iter().enumerate().map(|(at, row)| {
        let mut section = section(&matrix, row);
        section.verdicts.extend(judged.iter().map(|rows| rows[at]));
        section
    });
    let sections: Vec<Section> = sections.collect();
    let mut notes = notes(&matrix);
    notes.extend(of_arrivals(&matrix, &sections));
    Comparison {
        subjects: columns.iter().map(|column| column.name.clone()).collect(),
        sections,
        notes,
        digests,
        rule,
    }
}

type Figure = (&'static str, fn(&Stats) -> Option<Nanos>);

const LATENCY: &[Figure] = &[
    ("worst", Stats::worst),
    ("mean", |stats| stats.mean),
    ("p99.9", |stats| stats.quantile(0.999)),
    (ARRIVAL, |stats| stats.watched.worst()),
    (REACHED, |stats| stats.watched.reached()),
];
/// The names of the figures of every arrival, shown where these are known of any subject.
const ARRIVAL: &str = "arrival";
const REACHED: &str = "reached";
const JITTER: &[Figure] = &[("farthest", Stats::farthest), ("longest", Stats::worst)];
const WORK: &[Figure] = &[("median", Stats::median), ("longest", Stats::worst)];

fn section(matrix: &Matrix<'_>, row: &Measurement) -> Section {
    let all = match row.view().shape {
        Shape::Latency | Shape::Steps => LATENCY,
        Shape::Jitter => JITTER,
        Shape::Work => WORK,
        Shape::Findings | Shape::List if has_samples(matrix, row) => LATENCY,
        Shape::Findings | Shape::List => &[],
    };
    let stats: Vec<_> = matrix
        .columns
        .iter()
        .map(|column| stats(column, row))
        .collect();
    let fewest = stats.iter().flatten().map(|stats| stats.count).min();
    let is_watched = stats.iter().flatten().any(|stats| stats.watched.is_any());
    let told = |name: &str| match name {
        "p99.9" => fewest.is_some_and(|count| supports(count, 0.999)),
        ARRIVAL | REACHED => is_watched,
        _ => true,
    };
    let is_by_arrival = Leading::of(matrix, row) == Leading::Arrivals;
    let mut all: Vec<&Figure> = all.iter().filter(|(name, _)| told(name)).collect();
    // What counts stands first.
    all.sort_by_key(|(name, _)| !is_by_arrival || *name != ARRIVAL);
    let findings: Vec<_> = row.view().findings(&row.variant).collect();
    let cells = matrix.columns.iter().zip(&stats).map(|(column, own)| {
        let mut cells: Vec<Cell> = all
            .iter()
            .map(|figure| {
                let first = stats.first();
                let first = first.filter(|_| column.name != matrix.columns[0].name);
                time(own, first, figure)
            })
            .collect();
        cells.extend(findings.iter().map(|finding| word(column, row, finding)));
        cells
    });
    let cells = cells.collect();
    let mut figures: Vec<&'static str> = all.iter().map(|(name, _)| *name).collect();
    figures.extend(findings.iter().map(|finding| finding.label));
    Section {
        row: row.clone(),
        figures,
        cells,
        verdicts: Vec::new(),
    }
}

fn has_samples(matrix: &Matrix<'_>, row: &Measurement) -> bool {
    matrix
        .columns
        .iter()
        .any(|column| stats(column, row).is_ok())
}

/// The samples' figures; an error where there are none.
fn stats(column: &Column<'_>, row: &Measurement) -> Result<Stats, String> {
    match column.cell(row) {
        Found::Measured { found, absent } => {
            if let Some(absent) = absent.first() {
                return Err(format!("{}: {}", called(absent.run), absent.word()));
            }
            let stats = Stats::of(&found);
            let some = stats.count > 0;
            some.then_some(stats).ok_or_else(|| "no sample".to_owned())
        }
        Found::Unsupported(_) => Err("unsupported".to_owned()),
        Found::Missing(_) => Err("not measured".to_owned()),
    }
}

fn time(
    own: &Result<Stats, String>,
    first: Option<&Result<Stats, String>>,
    (name, value): &Figure,
) -> Cell {
    let stats = match own {
        Ok(own) => own,
        Err(why) => return Cell::Absent(why.clone()),
    };
    let Some(own) = value(stats) else {
        return Cell::Absent(match *name {
            ARRIVAL => stats.watched.no_worst(),
            REACHED => stats.watched.no_reached(),
            _ => "unknown".to_owned(),
        });
    };
    let first = first.and_then(|first| value(first.as_ref().ok()?));
    let first = first.filter(|first| first.0 > 0);
    Cell::Time {
        value: own,
        ratio: first.map(|first| own.0 as f64 / first.0 as f64),
    }
}

/// Returns a probe's word, if it is the same in all runs of a subject.
pub(crate) fn word(column: &Column<'_>, row: &Measurement, finding: &FindingView) -> Cell {
    let Found::Measured { found, .. } = column.cell(row) else {
        return Cell::Absent(stats(column, row).err().unwrap_or_default());
    };
    let told = found
        .iter()
        .map(|one| views::told(finding, &one.recording.findings));
    let told: Vec<_> = told.collect();
    match told.as_slice() {
        [first, others @ ..] if others.iter().all(|other| other.text == first.text) => {
            match first.tone {
                Tone::Unknown => Cell::Absent(first.text.clone()),
                _ => Cell::Word(first.text.clone()),
            }
        }
        _ => Cell::Word(format!("differs by {}", column.unit())),
    }
}

fn digests(first: &Column<'_>, column: &Column<'_>) -> Digests {
    let of = |column: &Column<'_>| {
        let runs = column.runs.iter();
        let mut all: Vec<_> = runs.map(|run| (run.seed, run.digest())).collect();
        all.sort();
        all
    };
    let seeds = |all: &[(u64, Option<String>)]| all.iter().map(|one| one.0).collect::<Vec<_>>();
    let (base, own) = (of(first), of(column));
    if first.name == column.name {
        Digests::First
    } else if !column.is_virtual() {
        Digests::RealTime
    } else if seeds(&base) != seeds(&own) {
        Digests::OtherSeeds
    } else if base.iter().chain(&own).any(|(_, digest)| digest.is_none()) {
        Digests::Unmeasured
    } else if base == own {
        Digests::Equal
    } else {
        Digests::Different
    }
}

/// Explains figures of every arrival, where they are shown.
fn of_arrivals(matrix: &Matrix<'_>, sections: &[Section]) -> Vec<String> {
    let is_shown = |section: &Section| section.figures.contains(&ARRIVAL);
    let of = |section: &Section| {
        let columns = matrix.columns.iter();
        let all = columns.filter_map(|column| stats(column, &section.row).ok());
        all.map(|stats| stats.watched).collect::<Vec<_>>()
    };
    let shown: Vec<&Section> = sections.iter().filter(|one| is_shown(one)).collect();
    let mut notes = Vec::new();
    notes.extend((!shown.is_empty()).then(|| MEANING.to_owned()));
    if sections
        .iter()
        .any(|one| one.figures.first() == Some(&ARRIVAL))
    {
        notes.push(
            "Where every arrival of all runs is known, the latest of each run is judged; 2 % or \
             1.2 µs apart, whichever is more, counts as no difference: forecasts have been that \
             far off."
                .to_owned(),
        );
    }
    let is_forecast = shown
        .iter()
        .flat_map(|one| of(one))
        .any(|one| one.is_forecast);
    notes.extend(is_forecast.then(|| FORECASTS.to_owned()));
    notes
}

/// Lists differences between the runs that do not make them another measurement.
fn notes(matrix: &Matrix<'_>) -> Vec<String> {
    type Version = fn(&Run) -> Option<&str>;

    let mut notes = Vec::new();
    for column in matrix.columns.iter().filter(|column| column.runs.len() > 1) {
        let runs = column.runs.iter();
        let runs: Vec<String> = runs
            .map(|run| match run.clock() {
                Some(_) => format!("{} (seed {})", run.id, run.seed),
                None => run.id.clone(),
            })
            .collect();
        notes.push(format!(
            "{}: {} together.",
            column.name,
            crate::text::list(&runs)
        ));
    }
    let counts = |column: &Column<'_>| column.runs.len();
    let first = counts(&matrix.columns[0]);
    if matrix.columns.iter().any(|column| counts(column) != first) {
        notes.push(
            "The subjects have different numbers of runs: more runs find worse cases by chance."
                .to_owned(),
        );
    }
    let kinds: [(Version, &str); 2] = [
        (
            |run| run.machine.as_virtual().map(|machine| &*machine.qemu),
            "QEMU",
        ),
        (|run| Some(&run.punctual), "Punctual"),
    ];
    for (version, what) in kinds {
        let mut versions: Vec<&str> = matrix.runs().filter_map(version).collect();
        versions.sort_unstable();
        versions.dedup();
        if versions.len() > 1 {
            notes.push(format!(
                "Measured with different versions of {what}: {}.",
                versions.join("; ")
            ));
        }
    }
    for row in &matrix.rows {
        for column in &matrix.columns {
            for Measured { run, recording } in column.found(row) {
                if let Some(why) = recording.shortcoming() {
                    let (name, title, run) = (&column.name, row.title(), called(run));
                    notes.push(format!(
                        "{name}, {title}: {run}: {why}; no verdict counts it."
                    ));
                }
            }
            if let Ok(stats) = stats(column, row) {
                if stats.missed > 0 {
                    let missed = crate::text::thousands(stats.missed);
                    notes.push(format!(
                        "{}, {}: {missed} missed.",
                        column.name,
                        row.title()
                    ));
                }
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests;

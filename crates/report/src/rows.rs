//! The table's contents, before they become text or HTML: every cell says something.

use punctual_model::histogram::HIGHEST;
use punctual_model::run::State;
use punctual_model::units::Nanos;

use crate::matrix::{Absent, Cell, Column, Matrix, Measurement, fate};
use crate::stats::{Stats, seconds, seconds_span, span, supports, thousands};

/// The quantiles shown, best first, and what each is called.
const QUANTILES: [(f64, &str); 4] = [
    (0.999, "p99.9"),
    (0.99, "p99"),
    (0.9, "p90"),
    (0.5, "median"),
];

/// Where the range of the worst case over seeds stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Beside the worst case: `381 µs (355–381)`.
    Beside,
    /// In a line of its own: narrower.
    Below,
}

/// All contents of a table.
#[derive(Debug)]
pub struct Sheet {
    /// What stands above the columns.
    pub heads: Vec<Head>,
    /// The measurements.
    pub sections: Vec<Section>,
    /// The footnotes; a cell's notes count from 1.
    pub notes: Vec<String>,
}

/// What stands above a column.
#[derive(Debug)]
pub struct Head {
    /// The subject's name.
    pub name: String,
    /// Which clock its times are of; only where the table holds several.
    pub clock: Option<String>,
    /// The footnotes that it refers to.
    pub notes: Vec<usize>,
}

/// One measurement's lines.
#[derive(Debug)]
pub struct Section {
    /// What was measured.
    pub title: String,
    /// Its figures, the one that counts first.
    pub lines: Vec<Line>,
}

/// One figure of all subjects.
#[derive(Debug)]
pub struct Line {
    /// What figure it is.
    pub label: String,
    /// Whether it is the one that counts.
    pub strong: bool,
    /// One cell per subject.
    pub cells: Vec<Shown>,
}

/// What a cell shows.
#[derive(Debug)]
pub struct Shown {
    /// The text; never empty.
    pub text: String,
    /// The footnotes that it refers to.
    pub notes: Vec<usize>,
    /// How it compares with the others of its line.
    pub rank: Rank,
}

/// How a figure compares with the others of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Nothing is to be said.
    Plain,
    /// The lowest.
    Lowest,
    /// The highest.
    Highest,
}

impl Sheet {
    /// Fills the table.
    pub fn new(matrix: &Matrix<'_>, range: Range) -> Self {
        let mut notes = Notes::default();
        let mixed = matrix.is_mixed();
        let heads = matrix
            .columns
            .iter()
            .map(|column| head(column, mixed, &mut notes))
            .collect();
        let sections = matrix
            .rows
            .iter()
            .map(|row| {
                let entries = matrix
                    .columns
                    .iter()
                    .map(|column| entry(column, row, &mut notes));
                section(row, &entries.collect::<Vec<_>>(), range, !mixed)
            })
            .collect();
        Self {
            heads,
            sections,
            notes: notes.0,
        }
    }
}

/// Footnotes, each text once.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    /// The number under which `text` stands.
    fn number(&mut self, text: String) -> usize {
        if let Some(at) = self.0.iter().position(|note| *note == text) {
            return at + 1;
        }
        self.0.push(text);
        self.0.len()
    }
}

/// A cell, with its figures or what stands in their place.
struct Entry {
    content: Result<Stats, String>,
    notes: Vec<usize>,
}

fn head(column: &Column<'_>, mixed: bool, notes: &mut Notes) -> Head {
    let clock = match column.ns_per_insn {
        Some(1) => "(virtual)".to_owned(),
        Some(ns) => format!("(virtual ×{ns})"),
        None => "(real)".to_owned(),
    };
    let partial = column
        .runs
        .iter()
        .filter(|run| run.state != State::Finished);
    Head {
        name: column.name.clone(),
        clock: mixed.then_some(clock),
        notes: partial
            .map(|run| notes.number(format!("{}, seed {}: {}", column.name, run.seed, fate(run))))
            .collect(),
    }
}

fn entry(column: &Column<'_>, row: &Measurement, notes: &mut Notes) -> Entry {
    let why = |absent: &Absent<'_>| match absent.unsupported {
        Some(reason) => format!("{}, {}: {reason}", row.probe, row.load),
        None if absent.run.state == State::Finished => format!(
            "{}, seed {}: the run finished without {}",
            column.name,
            absent.run.seed,
            row.title()
        ),
        None => format!(
            "{}, seed {}: {}",
            column.name,
            absent.run.seed,
            fate(absent.run)
        ),
    };
    let mut refer = |absent: &[Absent<'_>]| {
        let mut numbers: Vec<usize> = absent.iter().map(|one| notes.number(why(one))).collect();
        numbers.dedup();
        numbers
    };
    match column.cell(row) {
        Cell::Measured { found, absent } => {
            let mut numbers = refer(&absent);
            let stats = Stats::of(&found);
            if stats.overflow > 0 {
                numbers.push(notes.number(format!(
                    "{}, {}: {} of {} samples are longer than {HIGHEST}; they are counted, not placed",
                    column.name,
                    row.title(),
                    thousands(stats.overflow),
                    thousands(stats.count),
                )));
            }
            let content = if stats.count > 0 {
                Ok(stats)
            } else {
                Err("no sample".to_owned())
            };
            Entry {
                content,
                notes: numbers,
            }
        }
        Cell::Unsupported(reason) => Entry {
            content: Err("unsupported".to_owned()),
            notes: vec![notes.number(format!("{}, {}: {reason}", row.probe, row.load))],
        },
        Cell::Missing(absent) => Entry {
            content: Err(absent
                .first()
                .map_or("not measured", Absent::word)
                .to_owned()),
            notes: refer(&absent),
        },
    }
}

fn section(row: &Measurement, entries: &[Entry], range: Range, ranked: bool) -> Section {
    let mut lines = if row.is_throughput() {
        throughput_lines(entries, ranked)
    } else {
        latency_lines(entries, range, ranked)
    };
    if entries.iter().all(|entry| entry.content.is_err()) {
        // Lines of nothing but dashes would say nothing more.
        lines.truncate(1);
    }
    Section {
        title: row.title(),
        lines,
    }
}

fn latency_lines(entries: &[Entry], range: Range, ranked: bool) -> Vec<Line> {
    let worst = |stats: &Stats| stats.worst();
    let mut lines = vec![first_line("worst", entries, ranked, worst, |stats| {
        let worst = stats.worst().map(|worst| worst.to_string());
        match (worst, stats.worst_range()) {
            (Some(worst), Some((low, high))) if range == Range::Beside => {
                format!("{worst} ({})", bare_span(low, high))
            }
            (worst, _) => or_unknown(worst),
        }
    })];
    let several =
        |entry: &Entry| matches!(&entry.content, Ok(stats) if stats.worst_range().is_some());
    if range == Range::Below && entries.iter().any(several) {
        lines.push(line("range", entries, |stats| {
            let range = stats.worst_range().map(|(low, high)| span(low, high));
            range.unwrap_or_else(|| "one seed".to_owned())
        }));
    }
    lines.push(line("mean", entries, |stats| {
        or_unknown(stats.mean.map(|mean| mean.to_string()))
    }));
    if let Some((q, name)) = best_quantile(entries) {
        lines.push(line(name, entries, |stats| {
            or_unknown(stats.quantile(q).map(|value| value.to_string()))
        }));
    }
    lines.push(line("missed", entries, |stats| thousands(stats.missed)));
    lines
}

fn throughput_lines(entries: &[Entry], ranked: bool) -> Vec<Line> {
    let median = first_line("median", entries, ranked, Stats::median, |stats| {
        or_unknown(stats.median().map(seconds))
    });
    let spread = line("spread", entries, |stats| match stats.extremes {
        Some((low, high)) if stats.count > 1 => seconds_span(low, high),
        _ => "one sample".to_owned(),
    });
    vec![median, spread]
}

/// A range without its unit, which stands before it; with it where the units differ.
fn bare_span(low: Nanos, high: Nanos) -> String {
    let text = span(low, high);
    let units = text.matches(' ').count();
    match text.rsplit_once(' ') {
        Some((numbers, _)) if units == 1 => numbers.to_owned(),
        _ => text,
    }
}

fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| "unknown".to_owned())
}

/// The best quantile that every subject's samples support.
fn best_quantile(entries: &[Entry]) -> Option<(f64, &'static str)> {
    let counts = entries
        .iter()
        .filter_map(|entry| entry.content.as_ref().ok());
    let fewest = counts.map(|stats| stats.count).min()?;
    QUANTILES.into_iter().find(|(q, _)| supports(fewest, *q))
}

/// The line that counts: it says what is missing, and why.
fn first_line(
    label: &str,
    entries: &[Entry],
    ranked: bool,
    value: impl Fn(&Stats) -> Option<Nanos>,
    show: impl Fn(&Stats) -> String,
) -> Line {
    let values: Vec<Option<Nanos>> = entries
        .iter()
        .map(|entry| entry.content.as_ref().ok().and_then(&value))
        .collect();
    let (lowest, highest) = (values.iter().flatten().min(), values.iter().flatten().max());
    let rank = |value: Option<Nanos>| match value.as_ref() {
        Some(_) if !ranked || lowest == highest => Rank::Plain,
        some @ Some(_) if some == lowest => Rank::Lowest,
        some @ Some(_) if some == highest => Rank::Highest,
        _ => Rank::Plain,
    };
    let cells = entries.iter().zip(&values).map(|(entry, value)| Shown {
        text: match &entry.content {
            Ok(stats) => show(stats),
            Err(word) => word.clone(),
        },
        notes: entry.notes.clone(),
        rank: rank(*value),
    });
    Line {
        label: label.to_owned(),
        strong: true,
        cells: cells.collect(),
    }
}

/// A further line: what is missing was said in the first, here stands a dash.
fn line(label: &str, entries: &[Entry], show: impl Fn(&Stats) -> String) -> Line {
    let cells = entries.iter().map(|entry| Shown {
        text: entry
            .content
            .as_ref()
            .map_or_else(|_| "–".to_owned(), &show),
        notes: Vec::new(),
        rank: Rank::Plain,
    });
    Line {
        label: label.to_owned(),
        strong: false,
        cells: cells.collect(),
    }
}

/// What must stand below a table of these runs; `None` where all times are real.
pub fn clock_note(matrix: &Matrix<'_>) -> Option<String> {
    let mut rates: Vec<u32> = matrix
        .columns
        .iter()
        .filter_map(|column| column.ns_per_insn)
        .collect();
    rates.sort_unstable();
    rates.dedup();
    if rates.is_empty() {
        return None;
    }
    let rates: Vec<String> = rates.iter().map(ToString::to_string).collect();
    let mut note = format!(
        "Virtual time: {} ns per instruction. These are lengths of code paths, not microseconds of a certain CPU.",
        rates.join(" or ")
    );
    if matrix.is_mixed() {
        note.push_str(" Columns with different clocks must not be compared with each other.");
    }
    Some(note)
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of one section: the figures that a measurement shows, in their order.

use punctual_model::units::Nanos;

use super::{Entry, Line, Notes, Range, Rank, RowGroup, Shown};
use crate::arrivals::FORECAST;
use crate::matrix::{Measured, Measurement, called};
use crate::stats::{Stats, supports};
use crate::text::{seconds, seconds_span, span, thousands};
use crate::views::{self, FindingText, Tone};
use punctual_model::probe::{FindingView, Shape, View};
use punctual_model::recording::{ENDED_WITHIN, UNTOLD};

/// The quantiles shown, best first, and their names.
const QUANTILES: [(f64, &str); 4] = [
    (0.999, "p99.9"),
    (0.99, "p99"),
    (0.9, "p90"),
    (0.5, "median"),
];

/// Returns one measurement's lines: a verdict, the figures, the probe's other findings.
pub fn section(
    row: &Measurement,
    entries: &[Entry<'_>],
    range: Range,
    notes: &mut Notes,
) -> RowGroup {
    let view = row.view();
    let mut told = |leads: bool| -> Vec<Line> {
        let findings = view.findings(&row.variant);
        let findings = findings.filter(|finding| finding.leads() == leads);
        findings
            .filter(|finding| !EXCEPTIONS.contains(&finding.key) || has(entries, finding.key))
            .map(|finding| finding_line(row, finding, entries, notes))
            .collect()
    };
    let (mut lines, besides) = (told(true), told(false));
    lines.extend(match view.shape {
        Shape::Work => work_lines(entries),
        Shape::Findings | Shape::List => Vec::new(),
        Shape::Latency | Shape::Steps => {
            let mut lines = latency_lines("worst", entries, range);
            lines.extend(arrival_lines(row, entries, notes));
            lines
        }
        Shape::Jitter => jitter_lines(entries, range),
    });
    lines.extend(besides);
    if entries.iter().all(|entry| is_silent(entry, view)) {
        // Lines of nothing but dashes would say nothing more.
        lines.truncate(1);
    }
    if let Some(first) = lines.first_mut() {
        lead(first, entries);
    }
    let title = row.title();
    RowGroup { title, lines }
}

/// Steps of one probe: a line for each, the worst case and the mean beside each other.
pub fn steps(rows: &[(&Measurement, Vec<Entry<'_>>)], notes: &mut Notes) -> RowGroup {
    let lines = rows.iter().map(|(row, entries)| {
        let mut label = row.label();
        if label.is_empty() {
            "steps".clone_into(&mut label);
        }
        let mut line = ranked_line(&label, entries, |stats| {
            let both = stats.worst().zip(stats.mean);
            both.map_or_else(unknown, |(worst, mean)| pair(worst, mean))
        });
        line.strong = false;
        for (cell, entry) in line.cells.iter_mut().zip(entries) {
            cell.notes.clone_from(&entry.notes);
            cell.notes.extend(missed_note(row, entry, notes));
        }
        line
    });
    let mut lines: Vec<Line> = lines.collect();
    let ((first, entries), n) = (&rows[0], counts(rows));
    if entries.iter().any(knows_tracing) {
        let tracing = |stats: &Stats| or_unknown(stats.tracing);
        lines.push(line("of it tracing", entries, tracing));
    }
    let title = format!("{}, {}: worst / mean{n}", first.probe, first.load);
    RowGroup { title, lines }
}

/// Describes the number of samples of each step: `, n = 1,000`.
fn counts(rows: &[(&Measurement, Vec<Entry<'_>>)]) -> String {
    let entries = rows.iter().flat_map(|(_, entries)| entries);
    let counts = entries.filter_map(|entry| Some(entry.content.as_ref().ok()?.count));
    let counts: Vec<u64> = counts.collect();
    match (counts.iter().min(), counts.iter().max()) {
        (Some(low), Some(high)) if low == high => format!(", n = {}", thousands(*low)),
        (Some(low), Some(high)) => format!(", n = {}–{}", thousands(*low), thousands(*high)),
        _ => String::new(),
    }
}

/// Returns a note of missed samples, which a line has no room for and must not lose.
fn missed_note(row: &Measurement, entry: &Entry<'_>, notes: &mut Notes) -> Option<usize> {
    let stats = entry.content.as_ref().ok()?;
    let (column, title, missed) = (entry.column, row.title(), thousands(stats.missed));
    (stats.missed > 0).then(|| notes.number(format!("{column}, {title}: {missed} missed")))
}

/// `21.8 / 1.30 µs`.
fn pair(worst: Nanos, mean: Nanos) -> String {
    let (worst, mean) = (worst.to_string(), mean.to_string());
    match (worst.split_once(' '), mean.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} / {mean}"),
        _ => format!("{worst} / {mean}"),
    }
}

/// Returns true if a subject has nothing to show.
fn is_silent(entry: &Entry<'_>, view: &View) -> bool {
    if view.is_without_samples() {
        return entry.found.is_empty();
    }
    entry.content.is_err()
}

/// The first line says what is missing, and why.
fn lead(line: &mut Line, entries: &[Entry<'_>]) {
    line.strong = true;
    for (cell, entry) in line.cells.iter_mut().zip(entries) {
        let own = std::mem::replace(&mut cell.notes, entry.notes.clone());
        cell.notes.extend(own);
        let is_dash = cell.rank == Rank::Absent && cell.text == DASH;
        if let (true, Err(word)) = (is_dash, &entry.content) {
            cell.text.clone_from(word);
        }
    }
}

fn latency_lines(label: &str, entries: &[Entry<'_>], range: Range) -> Vec<Line> {
    let is_beside = range == Range::Beside;
    let worst = |stats: &Stats| match (or_unknown(stats.worst()), stats.worst_range()) {
        (worst, Some((low, high))) if is_beside => format!("{worst} ({})", bare_span(low, high)),
        (worst, _) => worst,
    };
    let mut lines = vec![ranked_line(label, entries, worst)];
    let several =
        |entry: &Entry<'_>| matches!(&entry.content, Ok(stats) if stats.worst_range().is_some());
    if range == Range::Below && entries.iter().any(several) {
        lines.push(line("range", entries, |stats| {
            let range = stats.worst_range().map(|(low, high)| span(low, high));
            range.unwrap_or_else(|| "one run".to_owned())
        }));
    }
    lines.push(line("mean", entries, |stats| {
        one_or_between(stats.mean, stats.mean_between)
    }));
    if let Some((q, name)) = best_quantile(entries) {
        lines.push(line(name, entries, |stats| {
            one_or_between(stats.quantile(q), stats.quantile_between(q))
        }));
    }
    lines.extend(corrected_lines(label, entries));
    lines.push(line("missed", entries, |stats| {
        or_unknown(stats.counts_missed.then(|| thousands(stats.missed)))
    }));
    lines.push(samples(entries));
    lines
}

/// Returns the lines of every arrival, if it is known of any subject.
fn arrival_lines(row: &Measurement, entries: &[Entry<'_>], notes: &mut Notes) -> Vec<Line> {
    let stats = |entry: &Entry<'_>| {
        entry
            .content
            .as_ref()
            .ok()
            .map(|stats| stats.watched.clone())
    };
    if !entries.iter().filter_map(stats).any(|known| known.is_any()) {
        return Vec::new();
    }
    let mut worst = line("arrival", entries, |stats| {
        let known = &stats.watched;
        known
            .worst()
            .map_or_else(|| known.no_worst(), |worst| worst.to_string())
    });
    for (cell, entry) in worst.cells.iter_mut().zip(entries) {
        if stats(entry).is_some_and(|known| known.is_forecast) {
            let note = format!("{}, arrival: {FORECAST}", row.title());
            cell.notes.push(notes.number(note));
        }
    }
    let reached = line("reached", entries, |stats| {
        let known = &stats.watched;
        known
            .reached()
            .map_or_else(|| known.no_reached(), |late| late.to_string())
    });
    vec![worst, reached]
}

/// Shows a figure, or the two ends between which it lies if it is known less closely.
fn one_or_between(one: Option<Nanos>, between: Option<(Nanos, Nanos)>) -> String {
    match (one, between) {
        (None, Some((low, high))) => span(low, high),
        (one, _) => or_unknown(one),
    }
}

fn knows_tracing(entry: &Entry<'_>) -> bool {
    matches!(&entry.content, Ok(stats) if stats.tracing.is_some())
}

/// The same without what the taking of time stamps adds, where that is known.
fn corrected_lines(label: &str, entries: &[Entry<'_>]) -> Vec<Line> {
    if !entries.iter().any(knows_tracing) {
        return Vec::new();
    }
    let corrected = |value: fn(&Stats) -> Option<Nanos>| {
        move |stats: &Stats| or_unknown(value(stats).and_then(|value| stats.corrected(value)))
    };
    vec![
        line(&format!("{label} corr."), entries, corrected(Stats::worst)),
        line("mean corr.", entries, corrected(|stats| stats.mean)),
    ]
}

fn samples(entries: &[Entry<'_>]) -> Line {
    line("samples", entries, |stats| thousands(stats.count))
}

/// Shows both extremes: an interval too long is as far off as one too short is.
fn jitter_lines(entries: &[Entry<'_>], range: Range) -> Vec<Line> {
    let mut lines = latency_lines("longest", entries, range);
    let longest = |stats: &Stats| or_unknown(stats.worst());
    let shortest = |stats: &Stats| or_unknown(stats.extremes.map(|(lowest, _)| lowest));
    let farthest = |stats: &Stats| or_unknown(stats.farthest());
    let three = [
        ranked_line("farthest", entries, farthest),
        line("longest", entries, longest),
        line("shortest", entries, shortest),
    ];
    lines.splice(..1, three);
    lines
}

fn work_lines(entries: &[Entry<'_>]) -> Vec<Line> {
    let median = ranked_line("median", entries, |stats| {
        stats.median().map_or_else(unknown, seconds)
    });
    let spread = line("spread", entries, |stats| match stats.extremes {
        Some((low, high)) if stats.count > 1 => seconds_span(low, high),
        _ => "one sample".to_owned(),
    });
    vec![median, spread, samples(entries)]
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

fn unknown() -> String {
    "unknown".to_owned()
}

fn or_unknown(value: Option<impl ToString>) -> String {
    value.map_or_else(unknown, |value| value.to_string())
}

/// The best quantile that every subject's samples support.
fn best_quantile(entries: &[Entry<'_>]) -> Option<(f64, &'static str)> {
    let stats = entries
        .iter()
        .filter_map(|entry| entry.content.as_ref().ok());
    let fewest = stats.map(|stats| stats.count).min()?;
    QUANTILES.into_iter().find(|(q, _)| supports(fewest, *q))
}

/// The line that counts, and how its figures compare.
fn ranked_line(label: &str, entries: &[Entry<'_>], show: impl Fn(&Stats) -> String) -> Line {
    let cell = |entry: &Entry<'_>| match &entry.content {
        Ok(stats) => cell(show(stats), entry.rank),
        Err(word) => cell(word.clone(), Rank::Absent),
    };
    Line {
        strong: true,
        ..Line::new(label, entries.iter().map(cell))
    }
}

impl Line {
    fn new(label: &str, cells: impl Iterator<Item = Shown>) -> Self {
        Self {
            label: label.to_owned(),
            strong: false,
            cells: cells.collect(),
        }
    }
}

/// The placeholder where a line above has named the gap.
const DASH: &str = "–";

fn cell(text: String, rank: Rank) -> Shown {
    let notes = Vec::new();
    Shown { text, notes, rank }
}

/// A further line: it has a dash where the first line names the gap.
fn line(label: &str, entries: &[Entry<'_>], show: impl Fn(&Stats) -> String) -> Line {
    let cells = entries.iter().map(|entry| match &entry.content {
        Ok(stats) => cell(show(stats), Rank::Plain),
        Err(_) => cell(DASH.to_owned(), Rank::Absent),
    });
    Line::new(label, cells)
}

/// Findings of faults: a probe with nothing to tell has none.
const EXCEPTIONS: [&str; 2] = [ENDED_WITHIN, UNTOLD];

/// Returns true if any recording has a finding.
fn has(entries: &[Entry<'_>], key: &str) -> bool {
    let mut all = entries.iter().flat_map(|entry| &entry.found);
    all.any(|one| one.recording.findings.contains_key(key))
}

/// Returns the line of a probe's finding besides its samples.
fn finding_line(
    row: &Measurement,
    finding: &FindingView,
    entries: &[Entry<'_>],
    notes: &mut Notes,
) -> Line {
    let (title, label) = (row.title(), finding.label);
    let cell = |entry: &Entry<'_>| {
        let told = |one: &Measured<'_>| views::told(finding, &one.recording.findings);
        let all = entry.found.iter().map(|one| (called(one.run), told(one)));
        let Some((told, more)) = told_by_all(&all.collect::<Vec<_>>()) else {
            return cell(DASH.to_owned(), Rank::Absent);
        };
        let rank = match told.tone {
            Tone::Plain => Rank::Plain,
            Tone::Wrong => Rank::Wrong,
            Tone::Unknown => Rank::Absent,
        };
        let mut cell = cell(told.text, rank);
        let note = more.map(|more| format!("{}, {title}, {label}: {more}", entry.column));
        cell.notes.extend(note.map(|note| notes.number(note)));
        cell
    };
    Line::new(label, entries.iter().map(cell))
}

/// Combines the findings of one subject's runs.
/// A wrong one is not outvoted by others, nor is an unknown one; a note lists what each told.
fn told_by_all(told: &[(String, FindingText)]) -> Option<(FindingText, Option<String>)> {
    let (_, first) = told.first()?;
    if told.iter().all(|(_, other)| other.text == first.text) {
        return Some((first.clone(), first.more.clone()));
    }
    let of = |tone| told.iter().find(|(_, one)| one.tone == tone);
    let chosen = of(Tone::Wrong).or_else(|| of(Tone::Unknown));
    let differing = FindingText {
        text: "differs by run".to_owned(),
        ..first.clone()
    };
    let each = told
        .iter()
        .map(|(called, one)| format!("{called} {}", one.text));
    let each = each.collect::<Vec<_>>().join(", ");
    Some((chosen.map_or(differing, |(_, one)| one.clone()), Some(each)))
}

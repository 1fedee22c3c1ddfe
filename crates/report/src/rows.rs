// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table's contents, before they become text or HTML: every cell says something.

mod figures;
mod shortfalls;

use std::collections::{BTreeMap, BTreeSet};

use punctual_judge::{Comparison as Judged, Rule, Verdict, fate};
use punctual_model::histogram::HIGHEST;
use punctual_model::record::Provenance;
use punctual_model::run::{IMPORTED, State};
use punctual_model::{Fact, Facts, Preemption, Run, VirtualClock};

use crate::arrivals::{MEANING, figures as figures_of_arrivals};
use crate::compare::{Leading, against_first};
use crate::matrix::{
    Absent, Availability, Column, Matrix, Measured, Measurement, called, distinct,
};
use crate::stats::Stats;
use crate::text::{counted, list, thousands};
use punctual_model::probe::Shape;

/// The place of the worst case's range over seeds.
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
    /// The heads of the columns.
    pub heads: Vec<Head>,
    /// The measurements.
    pub sections: Vec<RowGroup>,
    /// The footnotes; a cell's notes count from 1.
    pub notes: Vec<String>,
}

/// The head of a column.
#[derive(Debug)]
pub struct Head {
    /// The subject's name.
    pub name: String,
    /// The clock of its times; only where the table holds several.
    pub clock: Option<String>,
    /// The footnotes that it refers to.
    pub notes: Vec<usize>,
}

/// One measurement's lines.
#[derive(Debug)]
pub struct RowGroup {
    /// The measurement's title.
    pub title: String,
    /// Its figures, the one that counts first.
    pub lines: Vec<Line>,
}

/// One figure of all subjects.
#[derive(Debug)]
pub struct Line {
    /// The name of the figure.
    pub label: String,
    /// True if it is the one that counts.
    pub strong: bool,
    /// One cell per subject.
    pub cells: Vec<Shown>,
}

/// The contents of a cell.
#[derive(Debug)]
pub struct Shown {
    /// The text; never empty.
    pub text: String,
    /// The footnotes that it refers to.
    pub notes: Vec<usize>,
    /// Its comparison with the others of its line.
    pub rank: Rank,
}

/// The comparison of a figure with the first subject's, run by run: never by the bare number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// It is not separated, or the first itself: there is nothing to say.
    Plain,
    /// It is lower.
    Lower,
    /// It is higher.
    Higher,
    /// It is not as it must be.
    Wrong,
    /// It is no figure, but the reason for none.
    Absent,
}

impl Sheet {
    /// Fills the table.
    pub fn new(matrix: &Matrix<'_>, range: Range) -> Self {
        let mut notes = Notes::default();
        let mixed = matrix.is_mixed();
        let columns = matrix.columns.iter();
        let heads = columns
            .map(|column| head(column, mixed, &mut notes))
            .collect();
        let verdicts = against_first(matrix, &Rule::default(), |_| Leading::Samples);
        let mut first = 0;
        let mut sections = Vec::new();
        for rows in matrix.groups() {
            let verdicts = Verdicts {
                first,
                all: &verdicts,
            };
            sections.push(section(matrix, rows, &verdicts, range, &mut notes));
            first += rows.len();
        }
        let notes = notes.texts();
        Self {
            heads,
            sections,
            notes,
        }
    }
}

/// Footnotes, each text once, with all its references.
#[derive(Default)]
struct Notes(Vec<(String, Vec<String>)>);

impl Notes {
    /// The number under which `text` stands.
    fn number(&mut self, text: String) -> usize {
        self.about(None, text)
    }

    /// The same, of a text that is about something; it may be about more.
    fn about(&mut self, what: Option<String>, text: String) -> usize {
        let at = self.0.iter().position(|(note, _)| *note == text);
        let at = at.unwrap_or(self.0.len());
        if at == self.0.len() {
            self.0.push((text, Vec::new()));
        }
        let known = &mut self.0[at].1;
        known.extend(what.filter(|what| !known.contains(what)));
        at + 1
    }

    fn texts(self) -> Vec<String> {
        let text = |(text, about): (String, Vec<String>)| match about.as_slice() {
            [] => text,
            about => format!("{}: {text}", about.join("; ")),
        };
        self.0.into_iter().map(text).collect()
    }
}

/// A subject's results for a measurement, or a replacement for them.
struct Entry<'a> {
    column: &'a str,
    found: Vec<Measured<'a>>,
    content: Result<Stats, String>,
    notes: Vec<usize>,
    rank: Rank,
}

/// The verdicts of all columns, and the number of the first row that is looked at.
struct Verdicts<'a> {
    first: usize,
    all: &'a [Vec<Option<Judged>>],
}

impl Verdicts<'_> {
    fn rank(&self, column: usize, row: usize) -> Rank {
        match self.all[column][self.first + row].map(|judged| judged.verdict) {
            Some(Verdict::Lower) => Rank::Lower,
            Some(Verdict::Higher) => Rank::Higher,
            _ => Rank::Plain,
        }
    }
}

/// Rows that belong together: one, or all steps of a probe under one load.
fn section(
    matrix: &Matrix<'_>,
    rows: &[Measurement],
    verdicts: &Verdicts<'_>,
    range: Range,
    notes: &mut Notes,
) -> RowGroup {
    let mut entries = |number: usize, row| -> Vec<Entry<'_>> {
        let columns = matrix.columns.iter().enumerate();
        let entry = |(at, column)| Entry {
            rank: verdicts.rank(at, number),
            ..entry(column, row, notes)
        };
        columns.map(entry).collect()
    };
    let row = &rows[0];
    if row.view().shape == Shape::Steps {
        let rows = rows.iter().enumerate();
        let rows: Vec<_> = rows.map(|(at, row)| (row, entries(at, row))).collect();
        return figures::steps(&rows, notes);
    }
    let entries = entries(0, row);
    figures::section(row, &entries, range, notes)
}

fn head(column: &Column<'_>, mixed: bool, notes: &mut Notes) -> Head {
    let clock = format!("({})", column.time());
    let partial = column
        .runs
        .iter()
        .filter(|run| run.state != State::Finished);
    let name = column.name.clone();
    let note = |run: &&Run| notes.number(format!("{name}, {}: {}", called(run), fate(run)));
    let mut numbers: Vec<usize> = partial.map(note).collect();
    numbers.dedup();
    Head {
        name,
        clock: mixed.then_some(clock),
        notes: numbers,
    }
}

fn entry<'a>(column: &'a Column<'a>, row: &Measurement, notes: &mut Notes) -> Entry<'a> {
    let (name, title) = (&column.name, row.title());
    let of_row = || Some(format!("{}, {}", row.probe, row.load));
    let mut number = |absent: &Absent<'_>| {
        let (run, called) = (absent.run, called(absent.run));
        match absent.unsupported {
            Some(reason) => notes.about(of_row(), reason.to_string()),
            None if run.state == State::Finished => notes.number(format!(
                "{name}, {called}: the run finished without {title}"
            )),
            None => notes.number(format!("{name}, {called}: {}", fate(run))),
        }
    };
    let mut refer = |absent: &[Absent<'_>]| {
        let mut numbers: Vec<usize> = absent.iter().map(&mut number).collect();
        numbers.dedup();
        numbers
    };
    let (found, content, notes) = match column.cell(row) {
        Availability::Measured { found, absent } => {
            let mut numbers = refer(&absent);
            let stats = Stats::of(&found);
            if stats.overflow > 0 {
                let [over, all] = [stats.overflow, stats.count].map(thousands);
                numbers.push(notes.number(format!(
                    "{name}, {title}: {over} of {all} samples are longer than {HIGHEST}; they are \
                     counted, not placed"
                )));
            }
            if stats.faults > 0 {
                numbers.push(notes.number(format!(
                    "{}, {}: {} while it was measured, in spite of locked memory",
                    column.name,
                    row.title(),
                    counted(stats.faults as usize, "page fault"),
                )));
            }
            let some = stats.count > 0;
            let content = some.then_some(stats).ok_or("no sample");
            (found, content, numbers)
        }
        Availability::Unsupported(reason) => {
            let note = notes.about(of_row(), reason.to_string());
            (Vec::new(), Err("unsupported"), vec![note])
        }
        Availability::Missing(absent) => {
            let word = absent.first().map_or("not measured", Absent::word);
            (Vec::new(), Err(word), refer(&absent))
        }
    };
    Entry {
        column: &column.name,
        found,
        content: content.map_err(str::to_owned),
        notes,
        rank: Rank::Plain,
    }
}

/// Describes the places of measurement: the CPUs, for real time also the machine.
/// It also tells shortfalls.
pub fn places(matrix: &Matrix<'_>) -> Vec<String> {
    let mut cpus: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for recording in matrix.runs().flat_map(|run| &run.recordings) {
        if let Some(cpu) = recording.settings.get("affinity") {
            let cpus = cpus.entry(&recording.key.probe).or_default();
            cpus.insert(cpu.to_string());
        }
    }
    let mut probes: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (probe, cpus) in cpus {
        let cpus = cpus.into_iter().collect();
        probes.entry(cpus).or_default().push(probe.to_owned());
    }
    let on = |(cpus, probes): (&Vec<String>, &Vec<String>)| {
        format!("{} on {}", list(probes), cpus.join(", "))
    };
    let on: Vec<String> = probes.iter().map(on).collect();
    let mut places = Vec::new();
    places.extend((!on.is_empty()).then(|| format!("Measured {}.", on.join("; "))));
    places.extend(kernels(matrix));
    places.extend(matrix.columns.iter().filter_map(machine));
    let known = matrix.runs().flat_map(figures_of_arrivals);
    let is_watched = known
        .into_iter()
        .any(|one| one.worst.or(one.reached).is_some());
    places.extend(is_watched.then(|| MEANING.to_owned()));
    places.extend(shortfalls::of_loads(matrix));
    places.extend(shortfalls::of_samples(matrix));
    places
}

/// Lists the releases of Linux of the virtual subjects, as read back, since digests depend on them.
/// It adds the preemption model of subjects whose names do not tell it.
fn kernels(matrix: &Matrix<'_>) -> Option<String> {
    let columns = matrix.columns.iter().filter(|column| column.is_virtual());
    let pairs = columns.flat_map(|column| {
        let read_back = column.runs.iter().filter_map(|run| run.provenance.as_ref());
        read_back.map(|read_back| {
            let (name, model) = (&column.name, read_back.preemption.to_string());
            if name.contains(&model) {
                return (&read_back.release, name.clone());
            }
            (&read_back.release, format!("{name}: preemption {model}"))
        })
    });
    let pairs = distinct(pairs);
    let one = |release: &String| {
        let of_release = pairs.iter().filter(|(other, _)| *other == release);
        let names: Vec<String> = of_release.map(|(_, name)| name.clone()).collect();
        format!("{release} ({})", list(&names))
    };
    let releases = distinct(pairs.iter().map(|(release, _)| *release));
    let all: Vec<String> = releases.into_iter().map(one).collect();
    (!all.is_empty()).then(|| format!("Linux {}.", all.join("; ")))
}

/// A run's id, and what was read back of its machine.
type ReadBack<'a> = (&'a str, &'a Provenance);

/// Describes the machine that a host's times belong to. A fact in which its runs differ has the
/// runs behind each value.
fn machine(column: &Column<'_>) -> Option<String> {
    let runs = column.runs.iter();
    let read_back = runs.filter_map(|run| Some((run.id.as_str(), run.provenance.as_ref()?)));
    let runs: Vec<ReadBack<'_>> = read_back.collect();
    if runs.is_empty() || column.is_virtual() {
        return None;
    }
    if runs.iter().all(|(_, read_back)| is_unknown(read_back)) {
        let name = &column.name;
        let says_not = match runs.len() {
            1 => "the file does not say",
            _ => "the files do not say",
        };
        return Some(format!(
            "{name}: {says_not} which kernel, CPU or governor this was."
        ));
    }
    let known = |key: &str| {
        by_runs(&runs, |read_back| match read_back.facts.get(key) {
            None | Some(Fact::Unknown { .. }) => "unknown".to_owned(),
            Some(fact) => fact.to_string(),
        })
    };
    let processor = match known("cpu").as_str() {
        "unknown" => "processor unknown".to_owned(),
        model => model.to_owned(),
    };
    Some(format!(
        "{}: Linux {}, preemption {}; {processor}; CPUs {}; governor {}; virtualised: {}{}{}.",
        column.name,
        by_runs(&runs, |read_back| read_back.release.clone()),
        by_runs(&runs, |read_back| read_back.preemption.to_string()),
        known("cpus_online"),
        known("governors"),
        known("virtualised"),
        gaps(&runs),
        idle_states(&runs),
    ))
}

/// Returns true if nothing is known of an imported run's machine.
fn is_unknown(read_back: &Provenance) -> bool {
    let facts = &read_back.facts;
    let is_known = |key: &&str| {
        facts
            .get(*key)
            .is_some_and(|fact| !matches!(fact, Fact::Unknown { .. }))
    };
    facts.contains_key(IMPORTED)
        && read_back.release == "unknown"
        && matches!(read_back.preemption, Preemption::Unknown(_))
        && !["cpu", "cpus_online", "governors", "virtualised"]
            .iter()
            .any(is_known)
}

/// The value that all runs have, or each value with its runs.
fn by_runs(runs: &[ReadBack<'_>], value: impl Fn(&Provenance) -> String) -> String {
    let mut values: Vec<(String, Vec<&str>)> = Vec::new();
    for &(id, read_back) in runs {
        let own = value(read_back);
        match values.iter_mut().find(|(known, _)| *known == own) {
            Some((_, ids)) => ids.push(id),
            None => values.push((own, vec![id])),
        }
    }
    if let [(value, _)] = values.as_slice() {
        return value.clone();
    }
    let each = values.iter();
    let each = each.map(|(value, ids)| format!("{value} ({})", ids.join(", ")));
    each.collect::<Vec<_>>().join(", ")
}

/// Describes the findings of the tracer `hwlat` in all runs: those of the first if the others have
/// the same, else the largest, and the runs in which there may have been a larger one.
fn gaps(runs: &[ReadBack<'_>]) -> String {
    let told = distinct(runs.iter().map(|(_, own)| longest_gaps(&own.facts)));
    if let [same] = told.as_slice() {
        return same.clone();
    }
    let mut largest: Option<(i64, &str)> = None;
    let (mut absent, mut unknown) = (Vec::new(), Vec::new());
    for &(id, read_back) in runs {
        for name in ["hwlat_before_us", "hwlat_after_us"] {
            let fact = read_back.facts.get(name);
            match fact.map(Fact::number) {
                None => absent.push(id),
                Some(None) => unknown.push(id),
                Some(Some(micros)) if largest.is_none_or(|(most, _)| micros > most) => {
                    largest = Some((micros, id));
                }
                Some(Some(_)) => {}
            }
        }
    }
    let mut parts = Vec::new();
    parts.extend(largest.map(|(micros, id)| format!("{micros} µs ({id})")));
    for (what, ids) in [("unknown", unknown), ("not always looked for", absent)] {
        if !ids.is_empty() {
            parts.push(format!("{what} ({})", distinct(ids.into_iter()).join(", ")));
        }
    }
    format!("; longest gap of the hardware: {}", parts.join(", "))
}

/// Names the runs during which CPUs could enter idle states.
fn idle_states(runs: &[ReadBack<'_>]) -> String {
    let is_free = |(_, read_back): &&ReadBack<'_>| match read_back.facts.get("cpu_dma_latency_us") {
        None | Some(Fact::Unknown { .. }) => false,
        Some(fact) => fact.number() != Some(0),
    };
    let free: Vec<&str> = runs.iter().filter(is_free).map(|(id, _)| *id).collect();
    match free.len() {
        0 => String::new(),
        all if all == runs.len() => "; idle states not held".to_owned(),
        _ => format!("; idle states not held ({})", free.join(", ")),
    }
}

/// Describes the findings of the tracer `hwlat` in one run, where it was asked for.
fn longest_gaps(facts: &Facts) -> String {
    let found = |name: &str| match facts.get(name)? {
        Fact::Unknown { unknown } => Some(format!("unknown ({unknown})")),
        micros => Some(format!("{micros} µs")),
    };
    let (before, after) = (found("hwlat_before_us"), found("hwlat_after_us"));
    match (before, after) {
        (None, None) => String::new(),
        (before, after) if before == after => {
            let both = before.unwrap_or_default();
            format!("; longest gap of the hardware before and after: {both}")
        }
        (before, after) => {
            let or_none = |found: Option<String>| found.unwrap_or("not looked for".into());
            format!(
                "; longest gap of the hardware: {} before, {} after",
                or_none(before),
                or_none(after)
            )
        }
    }
}

/// Explains the colours of a table; `None` if nothing has one.
pub fn colour_note(matrix: &Matrix<'_>, sheet: &Sheet) -> Option<String> {
    let lines = sheet.sections.iter().flat_map(|section| &section.lines);
    let mut cells = lines.flat_map(|line| &line.cells);
    let is_judged = |cell: &Shown| matches!(cell.rank, Rank::Lower | Rank::Higher);
    let first = matrix.columns.first()?;
    cells.any(is_judged).then(|| {
        format!(
            "Coloured: lower or higher than {}, run by run, at {} % over all rows of a subject.",
            first.name,
            Rule::default().confidence_percent()
        )
    })
}

/// Explains a virtual nanosecond on several CPUs.
const SEVERAL_CPUS: &str = "Several CPUs take turns in one clock: while two are busy each runs \
    at half its speed, and what one does takes the other's time. Compare only figures of as many \
    CPUs.";

/// Returns the note that must stand below a table of these runs; `None` if all times are real.
pub fn clock_note(matrix: &Matrix<'_>) -> Option<String> {
    let columns = matrix.columns.iter();
    let clocks: BTreeSet<VirtualClock> = columns.filter_map(|column| column.clock).collect();
    if clocks.is_empty() {
        return None;
    }
    let told: Vec<String> = clocks.iter().map(ToString::to_string).collect();
    let mut note = format!(
        "Virtual time: {}. These are lengths of code paths, not microseconds of a certain CPU.",
        told.join(" or ")
    );
    if clocks.iter().any(|clock| clock.cpus > 1) {
        note.push(' ');
        note.push_str(SEVERAL_CPUS);
    }
    if matrix.is_mixed() {
        note.push_str(" Columns with different clocks must not be compared with each other.");
    }
    Some(note)
}

#[cfg(test)]
mod tests;

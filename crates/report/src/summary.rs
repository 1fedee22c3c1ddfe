//! What the runs say, in a few plain sentences, and nothing beyond it.

mod findings;

use punctual_model::run::{Run, State};
use punctual_model::units::Nanos;

use crate::matrix::{Cell, Column, Matrix, Measured, Measurement, fate};
use crate::stats::Stats;
use crate::text::{list, seconds};

/// The runs in plain words: the worst case under load, the lowest against the first
/// subject's (or, where the first has the lowest, against the highest); throughput of
/// the same two; what is missing.
pub fn summary(runs: &[Run]) -> String {
    let matrix = Matrix::new(runs);
    let mut clocks: Vec<Option<u32>> = Vec::new();
    for column in &matrix.columns {
        if !clocks.contains(&column.ns_per_insn) {
            clocks.push(column.ns_per_insn);
        }
    }
    if clocks.is_empty() {
        return "There are no runs.".to_owned();
    }
    // Times of different clocks are never compared with each other.
    let parts = clocks.iter().map(|clock| {
        let of_clock = |column: &&Column<'_>| column.ns_per_insn == *clock;
        let columns: Vec<&Column<'_>> = matrix.columns.iter().filter(of_clock).collect();
        let text = Group {
            columns,
            rows: &matrix.rows,
        }
        .sentences()
        .join(" ");
        match (clocks.len(), clock) {
            (1, _) => text,
            (_, Some(ns)) => format!("In virtual time ({ns} ns per instruction): {text}"),
            (_, None) => format!("In real time: {text}"),
        }
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// Subjects whose times may be compared.
struct Group<'a> {
    columns: Vec<&'a Column<'a>>,
    rows: &'a [Measurement],
}

/// A subject's figure.
#[derive(Clone)]
struct Figure {
    /// The column's number: names may occur twice.
    column: usize,
    name: String,
    value: Nanos,
    seeds: usize,
}

impl Group<'_> {
    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut pair = None;
        let latency = self.latency();
        if let Some(row) = latency {
            let figures = self.figures(
                |one| (&one.probe, &one.load) == (&row.probe, &row.load),
                Stats::worst,
            );
            pair = compared(&figures);
            sentences.extend(worst_cases(row, &figures, pair.as_ref()));
        }
        if let Some(row) = self.spoken_of(Measurement::is_throughput) {
            let figures = self.figures(|one| one == row, Stats::median);
            sentences.extend(throughput(row, &figures, pair.as_ref()));
        }
        sentences.extend(findings::inversion(&self.columns, self.rows));
        sentences.extend(findings::interrupts(&self.columns, self.rows));
        if sentences.is_empty() {
            sentences.push(self.nothing_spoken_of().to_owned());
        }
        sentences.extend(latency.and_then(|row| self.unmeasured(row)));
        sentences.extend(self.columns.iter().flat_map(|column| unfinished(column)));
        sentences.extend(self.unsupported());
        sentences
    }

    /// The measurement to speak of: one under load before an idle one, the timer before
    /// others.
    fn latency(&self) -> Option<&Measurement> {
        self.spoken_of(|row| !row.is_throughput())
    }

    fn spoken_of(&self, kind: impl Fn(&Measurement) -> bool) -> Option<&Measurement> {
        let candidate = |row: &&Measurement| {
            kind(row) && !row.view().spoken.is_empty() && self.is_measured(row)
        };
        let rows = self.rows.iter().filter(candidate);
        rows.min_by_key(|row| (row.is_idle(), row.view().rank()))
    }

    fn nothing_spoken_of(&self) -> &'static str {
        let mut recordings = self.columns.iter().flat_map(|column| &column.runs);
        if recordings.any(|run| !run.recordings.is_empty()) {
            "What was found stands in the table."
        } else {
            "Nothing was measured."
        }
    }

    fn is_measured(&self, row: &Measurement) -> bool {
        self.columns
            .iter()
            .any(|column| !recorded(column, row).is_empty())
    }

    /// One figure per subject that has any, over all variants (CPUs) chosen.
    fn figures(
        &self,
        chosen: impl Fn(&Measurement) -> bool,
        value: impl Fn(&Stats) -> Option<Nanos>,
    ) -> Vec<Figure> {
        let rows: Vec<&Measurement> = self.rows.iter().filter(|row| chosen(row)).collect();
        let figure = |(at, column): (usize, &&Column<'_>)| {
            let found: Vec<Measured<'_>> =
                rows.iter().flat_map(|row| recorded(column, row)).collect();
            let mut seeds: Vec<u64> = found.iter().map(|one| one.run.seed).collect();
            seeds.sort_unstable();
            seeds.dedup();
            Some(Figure {
                column: at,
                name: column.name.clone(),
                value: value(&Stats::of(&found))?,
                seeds: seeds.len(),
            })
        };
        self.columns.iter().enumerate().filter_map(figure).collect()
    }

    /// Which subjects lack the measurement spoken of, unless their run says why.
    fn unmeasured(&self, row: &Measurement) -> Option<String> {
        let lacks = |column: &&&Column<'_>| {
            recorded(column, row).is_empty()
                && column.runs.iter().any(|run| run.state == State::Finished)
        };
        let names: Vec<String> = self
            .columns
            .iter()
            .filter(lacks)
            .map(|column| column.name.clone())
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "{} was not measured on {}.",
                probe_and_load(row),
                list(&names)
            )
        })
    }

    fn unsupported(&self) -> Option<String> {
        let mut names: Vec<String> = Vec::new();
        for row in self.rows {
            let here = |column: &&Column<'_>| matches!(column.cell(row), Cell::Unsupported(_));
            let name = probe_and_load(row);
            if self.columns.iter().any(here) && !names.contains(&name) {
                names.push(name);
            }
        }
        (!names.is_empty()).then(|| format!("Not everywhere supported: {}.", list(&names)))
    }
}

/// The recordings that have samples.
fn recorded<'a>(column: &Column<'a>, row: &Measurement) -> Vec<Measured<'a>> {
    match column.cell(row) {
        Cell::Measured { found, .. } => found
            .into_iter()
            .filter(|one| one.recording.count > 0)
            .collect(),
        _ => Vec::new(),
    }
}

fn probe_and_load(row: &Measurement) -> String {
    if row.is_idle() {
        row.probe.clone()
    } else {
        format!("{} under {}", row.probe, row.load)
    }
}

/// Runs that did not come to their end.
fn unfinished(column: &Column<'_>) -> Vec<String> {
    let open = column
        .runs
        .iter()
        .filter(|run| run.state != State::Finished);
    open.map(|run| {
        let what = if run.recordings.is_empty() {
            "nothing was measured"
        } else {
            "what it had is counted"
        };
        format!(
            "On {} with seed {}, {}; {what}.",
            column.name,
            run.seed,
            fate(run).trim_end_matches('.')
        )
    })
    .collect()
}

/// The lowest, and what it is compared with.
fn compared(figures: &[Figure]) -> Option<(Figure, Figure)> {
    let lowest = figures.iter().min_by_key(|figure| figure.value)?;
    let first = figures
        .first()
        .filter(|first| first.column != lowest.column);
    let other = first.or_else(|| figures.iter().max_by_key(|figure| figure.value))?;
    (other.column != lowest.column).then(|| (lowest.clone(), other.clone()))
}

fn worst_cases(
    row: &Measurement,
    figures: &[Figure],
    pair: Option<&(Figure, Figure)>,
) -> Option<String> {
    let view = row.view();
    let what = if view.probe.is_empty() {
        // Of a probe without a view nobody knows what its samples are.
        format!("{} of {}", view.spoken, row.probe)
    } else {
        view.spoken.to_owned()
    };
    let condition = if row.is_idle() {
        "When idle".to_owned()
    } else {
        format!("Under load ({})", row.load)
    };
    let (shared, each) = seeds(figures);
    let opening = format!("{condition}, the worst {what}{shared} was");
    let Some((low, high)) = pair else {
        let only = figures.first()?;
        return Some(format!(
            "{opening} {} on {}{}.",
            only.value,
            only.name,
            each(only)
        ));
    };
    let ending = match times(high.value, low.value) {
        Times::Same => ": the same.".to_owned(),
        Times::Percent(percent) => format!(": {} is {percent} % lower.", low.name),
        Times::Factor(factor) => format!(": {} is {factor} times lower.", low.name),
        Times::Unknown => ".".to_owned(),
    };
    let told = |figure: &Figure| format!("{} on {}{}", figure.value, figure.name, each(figure));
    let comparison = format!("{opening} {} and {}{ending}", told(low), told(high));
    let highest = figures.iter().max_by_key(|figure| figure.value)?;
    if highest.value > high.value {
        return Some(format!("{comparison} The highest was {}.", told(highest)));
    }
    Some(comparison)
}

/// How the number of seeds is told: once where all subjects have the same, else with each.
fn seeds(figures: &[Figure]) -> (String, impl Fn(&Figure) -> String) {
    let count = figures.first().map_or(0, |figure| figure.seeds);
    let same = figures.iter().all(|figure| figure.seeds == count);
    let shared = if same && count > 1 {
        format!(" over {count} seeds")
    } else {
        String::new()
    };
    let each = move |figure: &Figure| match (same, figure.seeds) {
        (true, _) => String::new(),
        (false, 1) => " (1 seed)".to_owned(),
        (false, count) => format!(" ({count} seeds)"),
    };
    (shared, each)
}

fn throughput(
    row: &Measurement,
    figures: &[Figure],
    pair: Option<&(Figure, Figure)>,
) -> Option<String> {
    let subject = work_name(row);
    let find = |column: usize| {
        figures
            .iter()
            .find(|figure| figure.column == column)
            .cloned()
    };
    // The same two subjects as before, so that gain and cost stand beside each other.
    let same_pair = pair.and_then(|(low, high)| Some((find(low.column)?, find(high.column)?)));
    let (_, each) = seeds(figures);
    let Some((one, other)) = same_pair.or_else(|| compared(figures)) else {
        let only = figures.first()?;
        return Some(format!(
            "{subject} took {} on {}.",
            seconds(only.value),
            only.name
        ));
    };
    let ending = match (
        one.value.cmp(&other.value),
        times(one.value.max(other.value), one.value.min(other.value)),
    ) {
        (_, Times::Same) => ": the same.".to_owned(),
        (std::cmp::Ordering::Greater, Times::Percent(_)) => {
            format!(": {} longer.", percent_longer(&one, &other))
        }
        (std::cmp::Ordering::Greater, Times::Factor(factor)) => {
            format!(": {factor} times as long.")
        }
        (_, Times::Percent(percent)) => format!(": {percent} % less."),
        (_, Times::Factor(factor)) => format!(": {factor} times as fast."),
        (_, Times::Unknown) => ".".to_owned(),
    };
    Some(format!(
        "{subject} took {} on {}{} and {} on {}{}{ending}",
        seconds(one.value),
        one.name,
        each(&one),
        seconds(other.value),
        other.name,
        each(&other)
    ))
}

fn work_name(row: &Measurement) -> String {
    let over = ["pipe", "socket"]
        .into_iter()
        .find(|kind| row.variant.starts_with(kind));
    let load = if row.is_idle() {
        String::new()
    } else {
        format!(" under {}", row.load)
    };
    match over {
        Some(kind) => format!("{} over {kind}s{load}", row.probe),
        None if row.variant.is_empty() => format!("{}{load}", row.probe),
        None => format!("{} ({}){load}", row.probe, row.variant),
    }
}

/// How much one time is above another.
enum Times {
    /// Not at all.
    Same,
    /// Less than twice: by how much the lower is below the higher.
    Percent(String),
    /// Twice or more.
    Factor(String),
    /// Zero or less has no ratio.
    Unknown,
}

fn times(high: Nanos, low: Nanos) -> Times {
    if high == low {
        return Times::Same;
    }
    if low <= Nanos::ZERO {
        return Times::Unknown;
    }
    let ratio = high.0 as f64 / low.0 as f64;
    match ratio {
        r if r >= 9.95 => Times::Factor(format!("{r:.0}")),
        r if r >= 2.0 => Times::Factor(format!("{r:.1}")),
        r => Times::Percent(percent(100.0 * (1.0 - 1.0 / r))),
    }
}

fn percent_longer(one: &Figure, other: &Figure) -> String {
    format!(
        "{} %",
        percent(100.0 * (one.value.0 as f64 / other.value.0 as f64 - 1.0))
    )
}

fn percent(value: f64) -> String {
    match value {
        x if x < 0.1 => "less than 0.1".to_owned(),
        x if x < 9.95 => format!("{x:.1}"),
        x => format!("{x:.0}"),
    }
}

#[cfg(test)]
mod tests;

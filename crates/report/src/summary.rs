// SPDX-License-Identifier: MIT OR Apache-2.0
//! A summary of the runs in a few plain sentences, and nothing beyond it.

mod findings;

use punctual_agent::probes;
use punctual_judge::{Comparison as Judged, Interval, Rule, TooFewRuns, Verdict, fate};
use punctual_model::probe::Shape;
use punctual_model::run::{Run, State};
use punctual_model::units::Nanos;
use std::fmt::Write as _;
use std::ptr;

use crate::compare::{Leading, enough, of_pair};
use crate::matrix::{Availability, Column, Matrix, Measured, Measurement, called, distinct};
use crate::stats::Stats;
use crate::text::{counted, list, seconds};
use crate::views;

/// Describes the runs in plain words.
/// It tells the worst case under load, the lowest against the first subject's (or, if the first has
/// the lowest, against the highest). Then it tells the throughput of the same two, and what is
/// missing.
pub fn summary(runs: &[Run]) -> String {
    let matrix = Matrix::new(runs);
    let clocks = distinct(matrix.columns.iter().map(|column| column.clock));
    if clocks.is_empty() {
        return "There are no runs.".to_owned();
    }
    // Times of different clocks are never compared with each other.
    let parts = clocks.iter().map(|clock| {
        let of_clock = |column: &&Column<'_>| column.clock == *clock;
        let columns: Vec<&Column<'_>> = matrix.columns.iter().filter(of_clock).collect();
        let rows = &matrix.rows;
        let text = SameClock { columns, rows }.sentences().join(" ");
        match (clocks.len(), clock) {
            (1, _) => text,
            (_, Some(clock)) => format!("In virtual time ({clock}): {text}"),
            (_, None) => format!("In real time: {text}"),
        }
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// The row of the worst latency that the summary speaks of; `None` if it speaks of none.
pub fn worst_row<'a>(matrix: &'a Matrix<'_>) -> Option<&'a Measurement> {
    let columns = matrix.columns.iter().collect();
    let rows = &matrix.rows;
    SameClock { columns, rows }.latency()
}

/// A figure so many times the headline's is mentioned with it.
const FAR: i64 = 5;

/// Subjects whose times may be compared.
struct SameClock<'a> {
    columns: Vec<&'a Column<'a>>,
    rows: &'a [Measurement],
}

/// The name of an imported run: it has no seed.
const FILE: &str = "file";

/// A subject's figure.
#[derive(Clone)]
struct SubjectFigure {
    /// The column's number: names may occur twice.
    column: usize,
    name: String,
    value: Nanos,
    /// In virtual time its seeds; in real time, where seeds may be equal, its runs.
    draws: usize,
    /// The name of one of them; `file` where all were imported.
    unit: &'static str,
    /// The kernel's version; empty if it is not known.
    version: String,
}

/// The verdict on two subjects over several rows (CPUs).
enum Together {
    /// This one holds for all rows.
    One(Judged),
    /// The rows differ: the label of each, and the verdict on it.
    Apart(Vec<(String, Verdict)>),
}

impl<'a> SameClock<'a> {
    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut pair = None;
        let latency = self.latency();
        if let Some(row) = latency {
            let figures = self.figures(
                |one| (&one.probe, &one.load) == (&row.probe, &row.load),
                worst_of(row),
            );
            pair = compared(&figures);
            let judged = pair.as_ref().and_then(|pair| {
                self.judged(pair, |one| {
                    (&one.probe, &one.load) == (&row.probe, &row.load)
                })
            });
            sentences.extend(worst_cases(row, &figures, pair.as_ref(), judged.as_ref()));
            sentences.extend(pair.as_ref().and_then(|(low, _)| self.elsewhere(row, low)));
        }
        if let Some(row) = self.spoken_of(Measurement::is_throughput) {
            let figures = self.figures(|one| one == row, Stats::median);
            // The same two subjects as before, so that gain and cost stand beside each other.
            let of = |column| figures.iter().find(|one| one.column == column).cloned();
            let same = pair
                .as_ref()
                .and_then(|(one, other)| Some((of(one.column)?, of(other.column)?)));
            let pair = same.or_else(|| compared(&figures));
            let judged = pair
                .as_ref()
                .and_then(|pair| self.judged(pair, |one| one == row));
            sentences.extend(throughput(row, &figures, pair.as_ref(), judged.as_ref()));
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

    /// Chooses the measurement to speak of.
    /// The timer comes before others, under the load under which the worst of all was.
    fn latency(&self) -> Option<&'a Measurement> {
        let first = self.spoken_of(|row| !row.is_throughput())?;
        let same = self.rows.iter().filter(|row| row.probe == first.probe);
        // Of equals, and where nothing was measured, the first.
        same.rev().max_by_key(|row| {
            let figures = self.figures(|one| one == *row, worst_of(row));
            figures.into_iter().map(|figure| figure.value).max()
        })
    }

    fn spoken_of(&self, kind: impl Fn(&Measurement) -> bool) -> Option<&'a Measurement> {
        let candidate = |row: &&Measurement| {
            kind(row) && !row.view().spoken.is_empty() && self.is_measured(row)
        };
        let rows = self.rows.iter().filter(candidate);
        rows.min_by_key(|row| (row.is_idle(), views::rank(&row.probe)))
    }

    /// The verdict on two subjects over the rows chosen (CPUs); `None` if no row can be judged.
    fn judged(
        &self,
        (of, than): &(SubjectFigure, SubjectFigure),
        chosen: impl Fn(&Measurement) -> bool,
    ) -> Option<Together> {
        let [of, than] = [of, than].map(|one| self.columns[one.column]);
        let rows = self.rows.iter().map(|row| (row, Leading::Samples));
        let judged = of_pair(&rows.collect::<Vec<_>>(), of, than, &Rule::default());
        // Others may have measured on CPUs that these two lack.
        let is_theirs = |row: &Measurement| {
            let mut both = [of, than].into_iter();
            both.any(|column| !column.sampled(row).is_empty())
        };
        let rows = self.rows.iter().zip(judged);
        let chosen: Vec<(String, Judged)> = rows
            .filter(|(row, _)| chosen(row) && is_theirs(row))
            .filter_map(|(row, judged)| Some((named(row), judged?)))
            .collect();
        together(&chosen)
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
        let mut columns = self.columns.iter();
        columns.any(|column| !column.sampled(row).is_empty())
    }

    /// One figure per subject that has any, over all variants (CPUs) chosen.
    fn figures(
        &self,
        chosen: impl Fn(&Measurement) -> bool,
        value: impl Fn(&Stats) -> Option<Nanos>,
    ) -> Vec<SubjectFigure> {
        let rows: Vec<&Measurement> = self.rows.iter().filter(|row| chosen(row)).collect();
        let figure = |(at, column): (usize, &&Column<'_>)| {
            let found: Vec<Measured<'_>> =
                rows.iter().flat_map(|row| column.sampled(row)).collect();
            let has_own = |run: &&&Run| found.iter().any(|one| ptr::eq(one.run, **run));
            let draws = if column.is_virtual() {
                distinct(found.iter().map(|one| one.run.seed)).len()
            } else {
                column.runs.iter().filter(has_own).count()
            };
            Some(SubjectFigure {
                column: at,
                name: column.name.clone(),
                value: value(&Stats::of(&found))?,
                draws,
                unit: if column.runs.iter().all(|run| run.is_imported()) {
                    FILE
                } else {
                    column.unit()
                },
                version: version(column),
            })
        };
        self.columns.iter().enumerate().filter_map(figure).collect()
    }

    /// Describes another probe's far larger figure on the subject that is called the lowest.
    /// The headline must not hide it.
    fn elsewhere(&self, row: &Measurement, low: &SubjectFigure) -> Option<String> {
        let others = self.rows.iter().filter(|other| {
            other.probe != row.probe && !other.is_throughput() && !other.view().spoken.is_empty()
        });
        let worst = others.filter_map(|other| {
            let figures = self.figures(|one| one == other, worst_of(other));
            let figure = figures.into_iter().find(|one| one.column == low.column)?;
            Some((figure.value, other))
        });
        let (value, other) = worst.max_by_key(|(value, _)| *value)?;
        let told = format!("On {}, {} had {value}.", low.name, probe_and_load(other));
        (value > low.value * FAR).then_some(told)
    }

    /// Names subjects that lack the measurement spoken of, unless their run says why.
    fn unmeasured(&self, row: &Measurement) -> Option<String> {
        let lacks = |column: &&&Column<'_>| {
            column.sampled(row).is_empty()
                && column.runs.iter().any(|run| run.state == State::Finished)
        };
        let lacking = self.columns.iter().filter(lacks);
        let names: Vec<String> = lacking.map(|column| column.name.clone()).collect();
        let (what, names) = (probe_and_load(row), some(&names)?);
        Some(format!("{what} was not measured on {names}."))
    }

    fn unsupported(&self) -> Option<String> {
        let is_unsupported = |row: &&Measurement| {
            let cells = self.columns.iter().map(|column| column.cell(row));
            cells
                .into_iter()
                .any(|cell| matches!(cell, Availability::Unsupported(_)))
        };
        let names = distinct(self.rows.iter().filter(is_unsupported).map(probe_and_load));
        Some(format!("Not everywhere supported: {}.", some(&names)?))
    }
}

/// Returns the verdict on all rows (CPUs) together; `None` of no row.
/// Of open ones, that is the one that needs most, else the one with the smallest effect. It is that
/// of each row where one row is decided otherwise than another, or is not decided.
fn together(rows: &[(String, Judged)]) -> Option<Together> {
    let (_, first) = rows.first()?;
    let verdicts = || rows.iter().map(|(_, row)| &row.verdict);
    let is_decided = verdicts().any(|one| matches!(one, Verdict::Lower | Verdict::Higher));
    let lacks_alike = verdicts().all(|one| lacking_side(one) == lacking_side(&first.verdict));
    let is_apart = is_decided || !lacks_alike;
    // Of equals the first.
    let open = rows.iter().rev().map(|(_, row)| row);
    let open = open.filter(|row| lack(&row.verdict).is_some());
    match open.max_by_key(|row| lack(&row.verdict)) {
        Some(most) if !is_apart => Some(Together::One(*most)),
        None if verdicts().all(|one| *one == first.verdict) => {
            let effect = |row: &Judged| row.ratio.map_or(0.0, |ratio| ratio.estimate.ln().abs());
            let order = |one: &&Judged, other: &&Judged| effect(one).total_cmp(&effect(other));
            let least = rows.iter().map(|(_, row)| row).min_by(order)?;
            Some(Together::One(*least))
        }
        _ => {
            let each = rows.iter().map(|(name, row)| (name.clone(), row.verdict));
            Some(Together::Apart(each.collect()))
        }
    }
}

/// Returns the side that has no whole run with the measurement, 0 or 1, if there is no verdict
/// because of that.
fn lacking_side(verdict: &Verdict) -> Option<usize> {
    match verdict {
        Verdict::Undecided(few) if few.have.0 == 0 => Some(0),
        Verdict::Undecided(few) if few.have.1 == 0 => Some(1),
        _ => None,
    }
}

/// The name of a row among those of one probe and load: `cpu0`.
fn named(row: &Measurement) -> String {
    match row.label() {
        label if label.is_empty() => "(1)".to_owned(),
        label => label,
    }
}

/// Orders verdicts that leave it open which side is lower, by the runs that they lack: those with
/// too few for any verdict come last. `None` of the others.
fn lack(verdict: &Verdict) -> Option<(bool, usize)> {
    match verdict {
        Verdict::Undecided(few) => {
            let have = few.have.0.min(few.have.1);
            Some((true, few.needed.saturating_sub(have)))
        }
        Verdict::NotSeparated { more } => {
            Some((false, more.map_or(usize::MAX, |more| more as usize)))
        }
        Verdict::Lower | Verdict::Higher | Verdict::Identical => None,
    }
}

/// Returns a list in words, unless it is empty.
fn some(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| list(names))
}

fn probe_and_load(row: &Measurement) -> String {
    under_load(&row.probe, row)
}

fn under_load(what: &str, row: &Measurement) -> String {
    if row.is_idle() {
        what.to_owned()
    } else {
        format!("{what} under {}", row.load)
    }
}

/// Runs that did not come to their end.
fn unfinished(column: &Column<'_>) -> Vec<String> {
    let runs = column.runs.iter();
    let open = runs.filter(|run| run.state != State::Finished);
    open.map(|run| {
        let what = if run.recordings.is_empty() {
            "nothing was measured"
        } else {
            "what it had is counted"
        };
        let (name, fate) = (&column.name, fate(run));
        let with = if run.is_virtual() { "with" } else { "in" };
        format!(
            "On {name} {with} {}, {}; {what}.",
            called(run),
            fate.trim_end_matches('.')
        )
    })
    .collect()
}

/// Returns the lowest, and the one that it is compared with.
/// That is the first subject, or if that is the lowest, the highest. A subject of the same kernel
/// version is preferred.
fn compared(figures: &[SubjectFigure]) -> Option<(SubjectFigure, SubjectFigure)> {
    let lowest = figures.iter().min_by_key(|figure| figure.value)?;
    let others = figures.iter().filter(|one| one.column != lowest.column);
    let alike = others.clone().filter(|one| one.version == lowest.version);
    let others: Vec<&SubjectFigure> = if alike.clone().next().is_some() {
        alike.collect()
    } else {
        others.collect()
    };
    let is_first = figures[0].column == lowest.column;
    let other = if is_first {
        others.iter().max_by_key(|figure| figure.value)
    } else {
        others.first()
    };
    Some((lowest.clone(), (*other?).clone()))
}

/// Returns the distance of a subject from where it should have been, at worst.
pub fn worst_of(row: &Measurement) -> fn(&Stats) -> Option<Nanos> {
    match row.view().shape {
        Shape::Jitter => Stats::farthest,
        _ => Stats::worst,
    }
}

/// The first two numbers of the kernel's version: `6.12`.
fn version(column: &Column<'_>) -> String {
    let read_back = column.runs.iter().find_map(|run| run.provenance.as_ref());
    let release = read_back.map_or("", |read_back| &read_back.release);
    let numbers: Vec<&str> = release.split('.').take(2).collect();
    numbers.join(".")
}

fn worst_cases(
    row: &Measurement,
    figures: &[SubjectFigure],
    pair: Option<&(SubjectFigure, SubjectFigure)>,
    judged: Option<&Together>,
) -> Option<String> {
    let view = row.view();
    let what = if probes::info(&row.probe).is_none() {
        // Of a probe that is not known nobody knows what its samples are.
        format!("{} of {}", view.spoken, row.probe)
    } else {
        view.spoken.to_owned()
    };
    let condition = if row.is_idle() {
        "When idle".to_owned()
    } else {
        format!("Under load ({})", row.load)
    };
    let (shared, each) = draws(figures);
    let opening = format!("{condition}, the worst {what}{shared} was");
    let told =
        |figure: &SubjectFigure| format!("{} on {}{}", figure.value, figure.name, each(figure));
    let Some((low, high)) = pair else {
        return Some(format!("{opening} {}.", told(figures.first()?)));
    };
    let second = if low.value == high.value {
        format!("on {}{}", high.name, each(high))
    } else {
        told(high)
    };
    let mut comparison = format!(
        "{opening} {} and {second}: {}.",
        told(low),
        verdict(low, high, judged, &LATENCY)
    );
    if low.version != high.version {
        let (one, other) = (&low.version, &high.version);
        let _ = write!(
            comparison,
            " They are different kernels: {one} and {other}."
        );
    }
    let highest = figures.iter().max_by_key(|figure| figure.value)?;
    if highest.value > high.value {
        return Some(format!("{comparison} The highest was {}.", told(highest)));
    }
    Some(comparison)
}

/// Describes the number of seeds, or of runs in real time: once if all subjects have the same, else
/// with each.
fn draws(figures: &[SubjectFigure]) -> (String, impl Fn(&SubjectFigure) -> String) {
    let told = |figure: &SubjectFigure| counted(figure.draws, figure.unit);
    let first = figures.first();
    let same = figures
        .iter()
        .all(|figure| first.is_some_and(|first| figure.draws == first.draws));
    let shared = match first {
        Some(first) if same && first.draws > 1 => format!(" over {}", told(first)),
        _ => String::new(),
    };
    let each = move |figure: &SubjectFigure| {
        if same {
            String::new()
        } else {
            format!(" ({})", told(figure))
        }
    };
    (shared, each)
}

fn throughput(
    row: &Measurement,
    figures: &[SubjectFigure],
    pair: Option<&(SubjectFigure, SubjectFigure)>,
    judged: Option<&Together>,
) -> Option<String> {
    let subject = work_name(row);
    let (_, each) = draws(figures);
    let told = |one: &SubjectFigure| format!("{} on {}{}", seconds(one.value), one.name, each(one));
    let Some((one, other)) = pair else {
        return Some(format!("{subject} took {}.", told(figures.first()?)));
    };
    let verdict = verdict(one, other, judged, &WORK);
    let (one, other) = (told(one), told(other));
    Some(format!("{subject} took {one} and {other}: {verdict}."))
}

/// Words for a ratio, as a verb and the words after the number: less than twice, and from there.
type Words = [(&'static str, &'static str); 2];

/// Words for lower and higher, as they suit the measurement.
struct Sides {
    lower: Words,
    higher: Words,
}

const LATENCY: Sides = Sides {
    lower: [("is", "% lower"), ("is", "times lower")],
    higher: [("is", "% higher"), ("is", "times as high")],
};
const WORK: Sides = Sides {
    lower: [("takes", "% less"), ("is", "times as fast")],
    higher: [("takes", "% longer"), ("takes", "times as long")],
};

/// States if one is lower or higher than the other, run by run, with its confidence.
/// If undecided, it names the evidence that would tell.
fn verdict(
    one: &SubjectFigure,
    other: &SubjectFigure,
    judged: Option<&Together>,
    sides: &Sides,
) -> String {
    let judged = match judged {
        Some(Together::One(judged)) => judged,
        Some(Together::Apart(rows)) => return apart(one, other, rows),
        None => return "they cannot be compared run by run".to_owned(),
    };
    let is_lower = judged.verdict == Verdict::Lower;
    match &judged.verdict {
        Verdict::Identical => "the same, to the last sample".to_owned(),
        Verdict::Lower | Verdict::Higher => {
            let words = if is_lower {
                &sides.lower
            } else {
                &sides.higher
            };
            let by = judged.ratio.map_or_else(
                || format!("is {}", if is_lower { "lower" } else { "higher" }),
                |ratio| by(ratio, words),
            );
            let (name, confidence) = (&one.name, Rule::default().confidence_percent());
            format!("run by run, {name} {by} with {confidence} % confidence")
        }
        open => undecided(one, other, open, ""),
    }
}

/// States the verdict on each row (CPU), as they differ.
fn apart(one: &SubjectFigure, other: &SubjectFigure, rows: &[(String, Verdict)]) -> String {
    let decided = [("lower", Verdict::Lower), ("higher", Verdict::Higher)];
    let decided = decided.into_iter().filter_map(|(word, wanted)| {
        let place = places(rows, |verdict| *verdict == wanted)?;
        Some(format!("{word}{place}"))
    });
    let mut clauses = Vec::new();
    clauses.extend(some(&decided.collect::<Vec<_>>()).map(|decided| {
        let (name, confidence) = (&one.name, Rule::default().confidence_percent());
        format!("run by run, {name} is {decided} with {confidence} % confidence")
    }));
    let equal = places(rows, |verdict| *verdict == Verdict::Identical);
    clauses.extend(equal.map(|place| format!("the same{place}, to the last sample")));
    let open: [fn(&Verdict) -> bool; 4] = [
        |verdict| matches!(verdict, Verdict::NotSeparated { .. }),
        |verdict| matches!(verdict, Verdict::Undecided(_)) && lacking_side(verdict).is_none(),
        |verdict| lacking_side(verdict) == Some(0),
        |verdict| lacking_side(verdict) == Some(1),
    ];
    clauses.extend(open.into_iter().filter_map(|is_own| {
        let place = places(rows, is_own)?;
        let own = rows.iter().map(|(_, verdict)| verdict);
        let own = own.filter(|verdict| is_own(verdict));
        let most = own.max_by_key(|verdict| lack(verdict))?;
        Some(undecided(one, other, most, &place))
    }));
    clauses.join("; ")
}

/// The most rows that a sentence names; of more it tells the number.
const NAMED: usize = 4;

/// ` on cpu0 and cpu2`: the rows on which the verdict is so; `None` if it is so on none.
fn places(rows: &[(String, Verdict)], is_own: impl Fn(&Verdict) -> bool) -> Option<String> {
    let own = rows.iter().filter(|(_, verdict)| is_own(verdict));
    let own: Vec<String> = own.map(|(name, _)| name.clone()).collect();
    let are_cpus = rows.iter().all(|(name, _)| name.starts_with("cpu"));
    let (word, what) = if are_cpus {
        ("on", "CPUs")
    } else {
        ("for", "rows")
    };
    match own.len() {
        0 => None,
        1..=NAMED => Some(format!(" {word} {}", list(&own))),
        count => Some(format!(" {word} {count} of {} {what}", rows.len())),
    }
}

/// States that it is open which one is lower, and the evidence that would tell.
/// `place` is empty, or the rows on which that is so: ` on cpu0`.
fn undecided(one: &SubjectFigure, other: &SubjectFigure, open: &Verdict, place: &str) -> String {
    let (name, unit) = (&one.name, one.unit);
    match open {
        Verdict::Undecided(TooFewRuns { have: (0, _), .. }) => no_whole_run(name, place),
        Verdict::Undecided(TooFewRuns { have: (_, 0), .. }) => no_whole_run(&other.name, place),
        Verdict::Undecided(few) => {
            let (have, needed) = (few.have.0.min(few.have.1), few.needed);
            let have = counted(have, unit);
            if unit == FILE {
                return format!(
                    "no verdict{place} from {have} of each, {needed} files of each machine are \
                     needed"
                );
            }
            format!(
                "no verdict{place} from {have} of each, {needed} are needed (--seeds 1..{needed})"
            )
        }
        Verdict::NotSeparated { more: Some(more) } if *more > 0 => {
            let (other, effect) = (&other.name, Rule::default().effect);
            let more = enough(*more, unit);
            format!(
                "{name} and {other} are not separated{place}; {more} enough to see {effect} times"
            )
        }
        _ => format!("{name} and {} are not separated{place}", other.name),
    }
}

fn no_whole_run(name: &str, place: &str) -> String {
    format!("no verdict{place}, as no run of {name} measured it to the end")
}

/// `is 47 times lower (39 to 60)`.
fn by(ratio: Interval, words: &Words) -> String {
    let Interval { estimate, bounds } = ratio;
    let is_far = !(0.5..2.0).contains(&estimate);
    let is_lower = estimate < 1.0;
    let number = |ratio: f64| match (is_far, is_lower) {
        (true, true) => digits(1.0 / ratio),
        (true, false) => digits(ratio),
        (false, true) => digits(100.0 * (1.0 - ratio)),
        (false, false) => digits(100.0 * (ratio - 1.0)),
    };
    let (verb, rest) = words[usize::from(is_far)];
    let range = bounds.map_or_else(String::new, |(low, high)| {
        // Seen from the lower one, the upper bound is the smaller effect.
        let (least, most) = if is_lower { (high, low) } else { (low, high) };
        format!(" ({} to {})", number(least), number(most))
    });
    format!("{verb} {} {rest}{range}", number(estimate))
}

/// Two digits or three; for less than a tenth, two after the leading zeros.
fn digits(value: f64) -> String {
    let places = match value.abs() {
        // An effect that was found is not told as none; what is smaller still is an error of
        // rounding.
        x if x < 0.095 && x > 1e-8 => (1.0 - x.log10().floor()) as usize,
        x if x < 9.95 => 1,
        _ => 0,
    };
    format!("{value:.places$}")
}

fn work_name(row: &Measurement) -> String {
    let mut kinds = ["pipe", "socket"].into_iter();
    let how = match kinds.find(|kind| row.variant.starts_with(kind)) {
        Some(kind) => format!(" over {kind}s"),
        None if row.variant.is_empty() => String::new(),
        None => format!(" ({})", row.variant),
    };
    under_load(&format!("{}{how}", row.probe), row)
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mail about a gate.

use punctual_judge::percent;
use punctual_model::Run;

use super::{Mail, Told, UNKNOWN, again, counts};
use crate::gate::{Gate, Gated, Judged, Row, Side, Standing, arrow, how_sure, named};
use crate::judgement::{Outcome, outcome_of_row};
use crate::scope::{Story, told};
use crate::text::counted;
use crate::why::Why;

/// The mail about a gate; `there` and `here` are the runs of both sides.
/// `page` is the file that has all cases, if there is one.
pub fn mail_of_gate(gate: &Gate, there: &[Run], here: &[Run], page: Option<&str>) -> Mail {
    let of_subject = |one: &Gated| -> Vec<Told> {
        let rows = one.rows.iter().enumerate();
        rows.map(|(at, row)| case(gate, one, at, row)).collect()
    };
    let mut cases: Vec<Told> = gate.subjects.iter().flat_map(of_subject).collect();
    if let Some(worst) = leading(gate) {
        // The one that the title names is told before others of its kind.
        let at = worst.min(cases.len().saturating_sub(1));
        let worst = cases.remove(at);
        cases.insert(0, worst);
    }
    let runs: Vec<&Run> = there.iter().chain(here).collect();
    Mail {
        verdict: gate.standing().name().to_owned(),
        title: title(gate),
        about: about(gate, &cases),
        cases,
        again: again(&runs),
        page: page.map(str::to_owned),
    }
}

/// The number of the case that tells most, of all subjects' cases.
fn leading(gate: &Gate) -> Option<usize> {
    let standing = gate.standing();
    let mut before = 0;
    for one in &gate.subjects {
        if let Some(row) = one.worst().filter(|_| one.standing == standing) {
            return Some(before + row);
        }
        before += one.rows.len();
    }
    None
}

/// `timer, stress, cpu0: median 4.15 → 4.66 µs`; the sides compared if nothing is worse or open.
fn title(gate: &Gate) -> String {
    let standing = gate.standing();
    let worst = gate.subjects.iter().filter(|one| one.standing == standing);
    let mut worst = worst.filter_map(|one| Some(&one.rows[one.worst()?]));
    let Some(row) = worst.next() else {
        let sides: Vec<String> = gate.subjects.iter().map(compared).collect();
        return format!("{}, {}", gate.suite, sides.join("; "));
    };
    let title = row.row.title();
    match (&row.gap, most(row)) {
        (Some(gap), _) if standing == Standing::Undecided => format!("{title}: {gap}"),
        (_, Some(figure)) => format!("{title}: {} {}", named(figure), arrow(figure)),
        _ => title,
    }
}

/// The figure that changed most, of those that determine the row's standing.
fn most(row: &Row) -> Option<&Judged> {
    let ratio = |figure: &Judged| figure.ratio().unwrap_or_default();
    let own = row.figures.iter().filter(|figure| figure.counts());
    let own = own.filter(|figure| figure.standing == row.standing);
    // Of equals the first.
    own.rev()
        .max_by(|one, other| ratio(one).total_cmp(&ratio(other)))
}

/// `debian-6.12-rt against debian-6.12`.
fn compared(one: &Gated) -> String {
    let [there, here] = &one.sides;
    format!("{} against {}", here.subject, there.subject)
}

/// Sums up the results of all measurements, the kernels, their numbers of runs, and the confidence.
/// Further notes follow.
fn about(gate: &Gate, cases: &[Told]) -> String {
    let mut told = Vec::new();
    if !cases.is_empty() {
        let all = counted(cases.len(), "measurement");
        let counts = counts(cases, "worse", "not worse");
        told.push(format!("Of {all} {counts}."));
    }
    for one in &gate.subjects {
        if gate.subjects.len() > 1 {
            told.push(format!("{}: {}.", one.subject, one.standing.name()));
        }
        if one.rows.is_empty() {
            told.push(format!(
                "Suite {} is {}; {}.",
                gate.suite,
                one.standing.name(),
                one.sentence()
            ));
        }
        let [there, here] = &one.sides;
        told.push(format!("After: {}. Before: {}.", side(here), side(there)));
    }
    let first = &gate.subjects[0];
    let is_judged = |one: &Gated| one.rows.iter().any(|row| !row.figures.is_empty());
    if gate.subjects.iter().any(is_judged) {
        told.push(format!(
            "Judged run by run, at {} % over all figures; {} % of a median is tolerated.",
            first.rule.confidence_percent(),
            percent(gate.tolerance)
        ));
    }
    let notes = gate.subjects.iter().flat_map(|one| one.notes.clone());
    told.extend(crate::matrix::distinct(notes));
    told.join(" ")
}

/// `debian-6.12: Linux 6.12.117+deb12-amd64, 5 runs`.
fn side(side: &Side) -> String {
    format!("{}, {}", side.told(), counted(side.runs.len(), "run"))
}

fn case(gate: &Gate, one: &Gated, at: usize, row: &Row) -> Told {
    let outcome = outcome_of_row(row);
    let of = if gate.subjects.len() > 1 {
        format!("{}: ", one.subject)
    } else {
        String::new()
    };
    let word = match outcome {
        Outcome::Missing => "not wholly measured",
        _ => row.standing.name(),
    };
    let figures = figures(row);
    let why = match &row.gap {
        Some(gap) if figures.is_empty() => gap.clone(),
        Some(gap) => format!("{figures}; {gap}"),
        None => figures,
    };
    let told = if why.is_empty() {
        String::new()
    } else {
        format!(": {why}")
    };
    Told {
        outcome,
        sentence: format!("{word}: {of}{}{told}.", row.row.title()),
        blame: blame(one, at, row),
    }
}

/// The figures that determine a row's standing, each before and after.
/// It adds their ratios and seeds.
fn figures(row: &Row) -> String {
    let own = row.figures.iter().filter(|figure| figure.counts());
    let own = own.filter(|figure| figure.standing == row.standing);
    let told = own.map(|figure: &Judged| {
        let (name, arrow, sure) = (named(figure), arrow(figure), how_sure(figure));
        format!("{name} {arrow}, {sure}")
            .trim_end_matches(", ")
            .to_owned()
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Names the functions to blame, as far as somebody looked.
/// If nobody looked and it got worse, it says so.
fn blame(one: &Gated, at: usize, row: &Row) -> Vec<String> {
    match one.why.as_ref().filter(|why| why.row == at) {
        Some(why) => told_of(why, row.decisive().map_or("worst", |figure| &figure.name)),
        None if row.standing == Standing::Worse && !names_function(row) => {
            vec![UNKNOWN.to_owned()]
        }
        None => Vec::new(),
    }
}

/// Returns true if its figures name a function.
fn names_function(row: &Row) -> bool {
    let mut own = row.figures.iter().filter(|figure| figure.counts());
    own.any(|figure| figure.blame.is_some() || figure.of.is_function())
}

/// Tells what the code did differently, and the obstacles here and before, of the sample that stands
/// for a figure.
pub(super) fn told_of(why: &Why, figure: &str) -> Vec<String> {
    let mut all: Vec<String> = why.sentences().iter().map(|one| whole(one)).collect();
    if why.profiles.is_some() {
        return all;
    }
    let sample = |(run, story): &(Run, Story)| match story {
        Ok(explained) => format!(
            "{}, seed {}, sample {}",
            run.id, run.seed, explained.chosen.sample.seq
        ),
        Err(_) => format!("{}, seed {}", run.id, run.seed),
    };
    all.push(format!(
        "After ({figure}, {}): {}",
        sample(&why.here),
        told(&why.here.1)
    ));
    all.push(format!(
        "Before ({figure}, {}): {}",
        sample(&why.there),
        told(&why.there.1)
    ));
    all
}

/// Returns a sentence with its capital and its full stop.
fn whole(sentence: &str) -> String {
    let (first, rest) = sentence.split_at(sentence.chars().next().map_or(0, char::len_utf8));
    format!("{}{rest}.", first.to_uppercase())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts of any kind, as other programs' formats take them.

use punctual_judge::{Answer, Fitness, Judgement, Why};
use punctual_model::Nanos;

use super::names::{measured, parts, word};
use super::{about, title};
use crate::gate::{Gate, Gated, Row, Standing};
use crate::matrix::Measurement;

/// The outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It meets the demand.
    Pass,
    /// It does not.
    Fail,
    /// The measurements do not suffice.
    Undecided,
    /// It was not measured.
    Missing,
}

/// A verdict on one thing.
#[derive(Clone, Debug)]
pub struct Case {
    /// The subject's name.
    pub subject: String,
    /// The parts of its name, each of letters, digits, `.`, `_` and `-`.
    pub parts: Vec<String>,
    /// Its name for people.
    pub name: String,
    /// The measurement: probe, load and variant.
    pub key: [String; 3],
    /// The demand.
    pub demand: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The word for a failure: `unfit`, `worse`.
    pub failure: &'static str,
    /// The reason, in a sentence.
    pub reason: String,
    /// The effect that is excluded, with the confidence.
    pub excluded: Option<String>,
    /// The further evidence that would decide it.
    pub more: Option<String>,
    /// The number of independent runs that it rests on.
    pub runs: usize,
    /// The number of samples in these.
    pub samples: Option<u64>,
    /// The measured time that these cover; `None` if it is not known.
    pub time: Option<Nanos>,
    /// The figure that the measured time is: `worst`, `median`.
    pub figure: String,
    /// The time that was measured, where one is judged.
    pub measured: Option<Nanos>,
}

/// A case for each answer.
pub fn cases(judgement: &Judgement) -> Vec<Case> {
    judgement.answers.iter().map(case).collect()
}

/// Returns the outcome of an answer.
pub(crate) fn outcome_of_answer(answer: &Answer) -> Outcome {
    match (answer.fitness, &answer.why) {
        (Fitness::Fit, _) => Outcome::Pass,
        (Fitness::Unfit, _) => Outcome::Fail,
        (Fitness::Undecided, Why::Gap(_)) => Outcome::Missing,
        (Fitness::Undecided, _) => Outcome::Undecided,
    }
}

/// Returns the outcome of a measurement against its baseline.
pub(crate) fn outcome_of_row(row: &Row) -> Outcome {
    match (row.standing, &row.gap) {
        // Words that differ were measured.
        (Standing::Undecided, Some(_)) if !row.has_words => Outcome::Missing,
        (standing, _) => outcome(standing),
    }
}

fn outcome(standing: Standing) -> Outcome {
    match standing {
        Standing::Unchanged | Standing::NotWorse | Standing::Tolerated => Outcome::Pass,
        Standing::Undecided => Outcome::Undecided,
        Standing::Worse => Outcome::Fail,
    }
}

fn case(answer: &Answer) -> Case {
    let key = &answer.key;
    Case {
        subject: answer.subject.clone(),
        parts: parts(answer),
        name: format!("{}: {}", title(&answer.limit), about(answer)),
        key: [key.probe.clone(), key.load.clone(), key.label()],
        demand: answer.limit.demand.to_string(),
        outcome: outcome_of_answer(answer),
        failure: "unfit",
        reason: answer.reason(),
        excluded: answer.confidence(),
        more: answer.more.map(|more| format!("to decide: {more}")),
        runs: answer.runs,
        samples: Some(answer.samples),
        time: Some(answer.time).filter(|time| *time > Nanos::ZERO),
        figure: "worst".to_owned(),
        measured: measured(answer),
    }
}

/// A case for each measurement of each subject; one for a subject with everything unchanged.
pub fn cases_of_gate(gate: &Gate) -> Vec<Case> {
    let of_subject = |one: &Gated| -> Vec<Case> {
        if one.rows.is_empty() {
            return vec![whole(gate, one)];
        }
        let rows = one.rows.iter();
        rows.map(|row| of_row(gate, one, row)).collect()
    };
    gate.subjects.iter().flat_map(of_subject).collect()
}

fn bare(gate: &Gate, one: &Gated, standing: Standing) -> Case {
    Case {
        subject: one.subject.clone(),
        parts: vec![word(&gate.suite)],
        name: format!("{}: no worse than baseline {}", one.subject, gate.baseline),
        key: [gate.suite.clone(), String::new(), String::new()],
        demand: format!("no worse than baseline {}", gate.baseline),
        outcome: outcome(standing),
        failure: "worse",
        reason: format!("{}: {}", standing.name(), one.sentence()),
        excluded: None,
        more: None,
        runs: one.sides[1].runs.len(),
        samples: None,
        time: None,
        figure: "worst".to_owned(),
        measured: None,
    }
}

fn whole(gate: &Gate, one: &Gated) -> Case {
    bare(gate, one, one.standing)
}

fn of_row(gate: &Gate, one: &Gated, row: &Row) -> Case {
    let Measurement { probe, load, .. } = &row.row;
    let label = row.row.label();
    let key = [probe.clone(), load.clone(), label];
    let parts = key.iter().filter(|part| !part.is_empty());
    let bare = bare(gate, one, row.standing);
    Case {
        parts: parts.map(|part| word(part)).collect(),
        name: format!(
            "{}: {} no worse than baseline {}",
            one.subject,
            row.row.title(),
            gate.baseline
        ),
        outcome: outcome_of_row(row),
        reason: crate::gate::sentence_of(row),
        more: gate
            .decides(row)
            .map(|command| format!("to decide: {command}")),
        figure: row
            .decisive()
            .map_or_else(|| "worst".to_owned(), |figure| figure.name.clone()),
        measured: row.decisive().map(|figure| figure.here),
        samples: Some(row.samples),
        key,
        ..bare
    }
}

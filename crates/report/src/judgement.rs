// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts: for terminals, and in the forms that programs read.

mod case;
mod csv;
mod json;
mod junit;
mod kcidb;
mod ktap;
mod lava;
mod names;
mod openmetrics;
mod page;

use std::collections::BTreeMap;

use punctual_judge::{Answer, Fitness, Judgement};
use punctual_model::Limit;

use crate::scope::{Story, told};
use crate::text::{clean, list, wrap};

pub use case::{Case, Outcome, cases, cases_of_gate};
pub(crate) use case::{outcome_of_answer, outcome_of_row};
pub use csv::cases_csv;
pub(crate) use json::Verdicts;
pub use json::judgement_json;
pub use junit::junit;
pub use kcidb::kcidb;
pub use ktap::{Ksft, Ktap, ktap};
pub use lava::lava;
pub use openmetrics::openmetrics;
pub use page::judgement_page;
pub(crate) use page::{stood_in_the_way, verdicts};

/// The stories of the samples that broke limits, by their answers' numbers, from 0.
pub type Stories = BTreeMap<usize, Story>;

/// The columns of a verdict's word.
const WORD: usize = "undecided".len();

/// Each limit with its answers, and the verdict of all; no line longer than `width`.
pub fn judgement_text(judgement: &Judgement, stories: &Stories, width: usize) -> String {
    let mut lines = Vec::new();
    let same = |one: &Answer, other: &Answer| one.limit == other.limit;
    let mut numbers = 0..;
    for answers in judgement.answers.chunk_by(same) {
        lines.extend(wrap(&clean(&title(&answers[0].limit)), "", "  ", width));
        for (answer, number) in answers.iter().zip(numbers.by_ref()) {
            lines.extend(answer_lines(answer, stories.get(&number), width));
        }
        lines.push(String::new());
    }
    for remark in &judgement.remarks {
        lines.extend(wrap(&clean(remark), "", "  ", width));
    }
    if !judgement.remarks.is_empty() {
        lines.push(String::new());
    }
    if !judgement.decide.is_empty() {
        lines.push("to decide what is undecided:".to_owned());
        lines.extend(
            judgement
                .decide
                .iter()
                .map(|line| format!("  {}", clean(line))),
        );
        lines.push(String::new());
    }
    lines.extend(wrap(&in_all(judgement), "", "  ", width));
    lines.join("\n") + "\n"
}

/// Returns the title of a limit.
pub fn title(limit: &Limit) -> String {
    let demand = format!("{}: {}", limit.probe, limit.demand);
    match &limit.name {
        Some(name) => format!("{name} ({demand})"),
        None => demand,
    }
}

/// Returns the subject of an answer: `rt, stress, cpu0`.
pub fn about(answer: &Answer) -> String {
    let parts = [
        answer.subject.clone(),
        answer.key.load.clone(),
        answer.key.label(),
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

fn answer_lines(answer: &Answer, story: Option<&Story>, width: usize) -> Vec<String> {
    let head = format!("  {:WORD$}  ", answer.fitness);
    let indent = " ".repeat(head.len());
    let mut lines = wrap(&clean(&about(answer)), &head, &indent, width);
    for text in sentences(answer).into_iter().chain(story.map(told)) {
        lines.extend(wrap(&clean(&text), &indent, &indent, width));
    }
    if let Some(command) = explain_command(answer) {
        // A command stands on a line of its own, to be copied.
        lines.push(format!("{indent}{}", clean(&command)));
    }
    lines
}

/// The reason for an answer, the effect that is excluded, and the evidence that would decide it.
fn sentences(answer: &Answer) -> Vec<String> {
    let mut told = vec![answer.reason()];
    let excluded = answer.confidence();
    told.extend(excluded.filter(|_| answer.fitness != Fitness::Unfit));
    told.extend(answer.more.map(|more| format!("to decide: {more}")));
    told
}

/// The command that explains the lateness of the sample that broke a limit.
pub fn explain_command(answer: &Answer) -> Option<String> {
    let broken = answer
        .sample
        .as_ref()
        .filter(|one| answer.fitness == Fitness::Unfit && one.can_be_explained)?;
    let (run, seq) = (&broken.run, broken.seq?);
    let (probe, load) = (&answer.key.probe, &answer.key.load);
    // Of some probes nothing is explained: no command is told that cannot work.
    let info = punctual_agent::probes::info(probe);
    if info.is_some_and(|info| info.scope.is_err()) {
        return None;
    }
    Some(format!(
        "punctual explain {run} --probe {probe} --load {load} --sample {seq}"
    ))
}

/// `unfit: subject none; fit: subject rt`. A subject may be called `none`.
fn in_all(judgement: &Judgement) -> String {
    let mut subjects: Vec<(&str, Fitness)> = Vec::new();
    for answer in &judgement.answers {
        match subjects
            .iter_mut()
            .find(|(name, _)| *name == answer.subject)
        {
            Some((_, worst)) => *worst = (*worst).max(answer.fitness),
            None => subjects.push((&answer.subject, answer.fitness)),
        }
    }
    let of = |fitness: Fitness| {
        let own = subjects.iter().filter(|(_, own)| *own == fitness);
        let names: Vec<String> = own.map(|(name, _)| clean(name)).collect();
        let noun = if names.len() == 1 {
            "subject"
        } else {
            "subjects"
        };
        (!names.is_empty()).then(|| format!("{fitness}: {noun} {}", list(&names)))
    };
    let all = [Fitness::Unfit, Fitness::Undecided, Fitness::Fit];
    let parts: Vec<String> = all.into_iter().filter_map(of).collect();
    format!("{}.", parts.join("; "))
}

#[cfg(test)]
mod tests;

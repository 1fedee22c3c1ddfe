// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mail about limits.

use punctual_judge::{Answer, Fitness, Judgement, Why};
use punctual_model::Run;

use super::{Mail, Told, UNKNOWN, again, counts};
use crate::gate::Side;
use crate::judgement::{Outcome, Stories, about, outcome_of_answer, title};
use crate::matrix::distinct;
use crate::scope::told;
use crate::text::counted;

/// The mail about limits; `runs` are those that were judged.
/// `page` is the file that has all cases, if there is one.
pub fn mail_of_judgement(
    judgement: &Judgement,
    stories: &Stories,
    runs: &[Run],
    page: Option<&str>,
) -> Mail {
    let numbered = judgement.answers.iter().enumerate();
    let cases: Vec<Told> = numbered
        .map(|(number, answer)| {
            let story = stories.get(&number).map(told);
            case(answer, story)
        })
        .collect();
    Mail {
        verdict: judgement.fitness().name().to_owned(),
        title: first(judgement),
        about: about_all(judgement, &cases, runs),
        cases,
        again: again(&runs.iter().collect::<Vec<_>>()),
        page: page.map(str::to_owned),
    }
}

/// Returns the first answer with the standing of all together.
/// It reads `none, stress, cpu0: worst at most 100 µs: 296 µs`.
fn first(judgement: &Judgement) -> String {
    let fitness = judgement.fitness();
    let mut own = judgement
        .answers
        .iter()
        .filter(|one| one.fitness == fitness);
    let Some(answer) = own.next() else {
        return String::new();
    };
    let value = answer
        .sample
        .as_ref()
        .map_or_else(String::new, |one| format!(": {}", one.value));
    let count = judgement.answers.len();
    let all = if fitness == Fitness::Fit && count > 1 {
        format!(", and {} more", count - 1)
    } else {
        String::new()
    };
    format!("{}: {}{value}{all}", about(answer), answer.limit.demand)
}

/// Names the subject and the demand: `none, timer, stress, cpu0, worst at most 100 µs`.
fn of(answer: &Answer) -> String {
    format!("{}, {}", about(answer), title(&answer.limit))
}

/// Sums up the results of all limits, and the subjects, with their kernels and runs.
/// Further notes follow.
fn about_all(judgement: &Judgement, cases: &[Told], runs: &[Run]) -> String {
    let all = counted(cases.len(), "verdict");
    let mut told = vec![format!("Of {all} {}.", counts(cases, "unfit", "fit"))];
    let subjects = distinct(runs.iter().map(|run| run.subject.name.clone()));
    let sides = subjects.iter().map(|name| {
        let own = runs.iter().filter(|run| run.subject.name == *name);
        let side = Side::of(&own.collect::<Vec<_>>());
        format!("{}, {}", side.told(), counted(side.runs.len(), "run"))
    });
    told.push(format!("Judged: {}.", sides.collect::<Vec<_>>().join("; ")));
    told.extend(judgement.remarks.iter().map(|remark| format!("{remark}.")));
    told.join(" ")
}

fn case(answer: &Answer, story: Option<String>) -> Told {
    let outcome = outcome_of_answer(answer);
    let word = match outcome {
        Outcome::Missing => "not wholly measured",
        _ => answer.fitness.name(),
    };
    let mut sentence = format!("{word}: {}: {}", of(answer), answer.reason());
    let is_told = |_: &String| !matches!(outcome, Outcome::Fail | Outcome::Missing);
    let excluded = answer.confidence().filter(is_told);
    let more = answer.more.map(|more| format!("to decide: {more}"));
    for text in excluded.into_iter().chain(more) {
        sentence.extend(["; ", text.as_ref()]);
    }
    let is_named = matches!(
        &answer.why,
        Why::Reached {
            function: Some(_),
            ..
        }
    );
    let blame = match story {
        Some(story) => vec![story],
        None if answer.fitness == Fitness::Unfit && !is_named => vec![UNKNOWN.to_owned()],
        None => Vec::new(),
    };
    Told {
        outcome,
        sentence: format!("{sentence}."),
        blame,
    }
}

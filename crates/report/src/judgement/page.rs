// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts as a page: fit or not, then the reasons, then the foundation.

use maud::{Markup, html};
use punctual_judge::{Answer, Fitness, Judgement};
use punctual_model::{Limit, Run};
use punctual_published::Document;

use super::{Stories, about, in_all, sentences, title};
use crate::page::{beneath_limits, untested};
use crate::scope::{self, page::code};
use crate::shell::{self, Chapter, wide};

/// The page about a judgement of runs: a certificate, or the reason why there is none.
pub fn judgement_page(
    judgement: &Judgement,
    stories: &Stories,
    runs: &[Run],
    documents: &[Document],
) -> String {
    let suite = runs.first().map_or("", |run| &run.suite);
    let overall = judgement.fitness();
    let title = match leading(judgement) {
        Some((subject, why)) => {
            format!("Punctual: {} is {overall}: {why}", subject.unwrap_or(suite))
        }
        None => format!("Punctual: {suite} is {overall}"),
    };
    let lead = html! {
        p.lead { (in_all(judgement)) }
        @for remark in &judgement.remarks { p.soft { (code(remark)) "." } }
    };
    let mut chapters = vec![
        Chapter::new("Verdicts", verdicts(judgement)),
        Chapter::new("Why", stood_in_the_way(judgement, stories, runs)),
        Chapter::new(
            "What was not tested",
            untested::untested(runs, Some(judgement)),
        ),
    ];
    let mut limits: Vec<Limit> = Vec::new();
    for answer in &judgement.answers {
        if !limits.contains(&answer.limit) {
            limits.push(answer.limit.clone());
        }
    }
    chapters.extend(beneath_limits(runs, &limits, documents));
    shell::page(&title, &lead, chapters)
}

/// The subject of the deciding answers, unless there are several, and the first answer's sample and
/// limit, for the title: `1.46 ms, timer: worst at most 700 µs`. If no sample decides it, only the
/// demand is given. If all is fit, there is none.
fn leading(judgement: &Judgement) -> Option<(Option<&str>, String)> {
    let overall = judgement.fitness();
    let own = judgement.answers.iter();
    let mut own = own.filter(|one| one.fitness == overall && overall != Fitness::Fit);
    let answer = own.next()?;
    let is_alone = own.all(|one| one.subject == answer.subject);
    let demand = format!("{}: {}", answer.limit.probe, answer.limit.demand);
    let why = match &answer.sample {
        Some(sample) if overall == Fitness::Unfit => format!("{}, {demand}", sample.value),
        _ => demand,
    };
    Some((is_alone.then_some(answer.subject.as_str()), why))
}

/// Each answer, with its reason.
pub fn verdicts(judgement: &Judgement) -> Markup {
    let table = wide(&html! { table.text.kept.stacked {
        thead { tr { th { "limit" } th { "of" } th { "verdict" } th { "reason" } } }
        tbody { @for answer in &judgement.answers { tr {
            td.free { (title(&answer.limit)) }
            td.free { (about(answer)) }
            td class=(class(answer.fitness)) { (answer.fitness) }
            td.free { (code(&sentences(answer).join("; "))) }
        } } }
    } });
    html! {
        (table)
        @if !judgement.decide.is_empty() {
            p { "To decide what is undecided:" }
            pre { (judgement.decide.join("\n")) }
        }
    }
}

/// The class of the style sheet for a verdict.
fn class(fitness: Fitness) -> &'static str {
    match fitness {
        Fitness::Fit => "low",
        Fitness::Undecided => "gap",
        Fitness::Unfit => "high",
    }
}

/// The stories of the samples that broke limits.
pub fn stood_in_the_way(judgement: &Judgement, stories: &Stories, runs: &[Run]) -> Markup {
    let run_of = |answer: &Answer| {
        let broken = answer.sample.as_ref()?;
        runs.iter().find(|run| run.id == broken.run)
    };
    html! { @for ((number, story), shown) in stories.iter().zip(0..) {
        @let answer = &judgement.answers[*number];
        @match (story, run_of(answer)) {
            (Ok(explained), Some(run)) => {
                p.soft { (about(answer)) ": " (title(&answer.limit)) }
                (scope::page::sample(run, explained, shown))
            }
            _ => { p { (about(answer)) ": " (code(&scope::told(story))) "." } }
        }
    } }
}

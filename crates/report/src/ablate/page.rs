// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benefits of options, as a page.

use maud::{Markup, html};
use punctual_judge::Verdict;
use punctual_model::Run;
use punctual_published::Document;

use super::text::{advice_told, also, asked_told, called, changes, head, nothing};
use super::{Ablation, Row, Trial};
use crate::page::beneath;
use crate::shell::{self, Chapter, wide};

/// The page about options; `runs` are all that it rests on.
pub fn ablation_page(ablation: &Ablation, runs: &[Run], documents: &[Document]) -> String {
    let title = format!("Punctual: what options buy on {}", ablation.base.kernel);
    let lead = html! { @for said in head(ablation) { p.lead { (said) } } };
    let mut chapters = vec![
        Chapter::new("Option by option", options(ablation)),
        Chapter::new("Advice", advice(ablation)),
        Chapter::new(
            "Why",
            html! { @for trial in &ablation.trials { @if let Some((asked, why)) = &trial.why {
                h3 { (trial.name()) }
                p.soft { (asked_told(trial, asked)) }
                (why.page())
            } } },
        ),
    ];
    chapters.extend(beneath(runs, documents));
    shell::page(&title, &lead, chapters)
}

fn options(ablation: &Ablation) -> Markup {
    wide(&html! { table.text.kept.stacked {
        thead { tr { th { "option" } th { "what it does" } } }
        tbody { @for trial in &ablation.trials { tr {
            td.free { strong { (called(trial, ablation)) } }
            td.free {
                @for (row, said) in changes(ablation, trial) {
                    div class=(class(trial, row)) { (said) }
                }
                @if ablation.shown(trial).is_empty() { div { (nothing(trial)) } }
                @for said in also(ablation, trial) { div { (said) } }
            }
        } }
        @for one in &ablation.untried { tr {
            td.free { strong { (one.name) } }
            td.free { div { "not tried: " (one.why) } }
        } } }
    } })
}

/// Each line of advice with its outcome; empty if none was given.
fn advice(ablation: &Ablation) -> Markup {
    let told = |trial: &Trial| {
        let outcome = trial.outcome(&ablation.rule)?;
        Some((
            trial.advice.clone()?,
            trial.name(),
            outcome.name().to_owned(),
        ))
    };
    let mut rows: Vec<_> = ablation.trials.iter().filter_map(told).collect();
    rows.extend(ablation.untried.iter().filter_map(|one| {
        let why = format!("cannot be told here: {}", one.why);
        Some((one.advice.clone()?, one.name.clone(), why))
    }));
    html! { @if !rows.is_empty() { (wide(&html! { table.text.kept.stacked {
        thead { tr { th { "advice" } th { "option" } th { "outcome" } } }
        tbody { @for (advice, name, outcome) in &rows { tr {
            td.free { (advice_told(advice)) } td.free { (name) } td.free { (outcome) }
        } } }
    } })) } }
}

/// The class of the style sheet for what an option does; none for a pair, which has no verdict.
fn class(trial: &Trial, row: &Row) -> &'static str {
    match row.judged.verdict {
        _ if trial.is_pair() => "",
        Verdict::Lower => "low",
        _ => "high",
    }
}

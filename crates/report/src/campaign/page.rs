// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign as a page: ranking, heat map, verdicts, the worst stories, all runs.

use maud::{Markup, html};

use super::text::{head, ranking_told};
use super::{Campaign, Row, Setting};
use crate::judgement::{stood_in_the_way, verdicts};
use crate::scope::{self, told};
use crate::shell::{Chapter, Page, folded, wide};
use crate::text::{counted, time, times};

/// Instructions for reading the heat map.
const HOW: &str = "Each cell is a subject's figure over all of its seeds: the worst sample of \
    all, or the middle of the medians. The lowest of a row is green; the redder another is, the \
    more times the lowest it is. That number stands below it.";

/// Explains the order.
const ORDER: &str = "By the geometric mean of how many times the lowest of its row each figure \
    is. It is an order of what was seen, not a verdict: for that, limits are judged.";

/// The chapter that lists all runs.
pub const RUNS: &str = "Runs";

/// The page about a campaign.
pub fn campaign_page(campaign: &Campaign) -> String {
    campaign_document(campaign).html()
}

/// The page about a campaign, to which more can be added.
pub fn campaign_document(campaign: &Campaign) -> Page {
    let title = format!("Punctual: campaign {}", campaign.name);
    let lead = html! { p.lead {
        (head(campaign))
        @if let Some(cluster) = campaign.cluster { " " (cluster.told()) }
    } };
    let each = |chapter: &dyn Fn(&Setting) -> Markup| {
        html! { @for setting in &campaign.settings {
            @let body = chapter(setting);
            @if !body.0.is_empty() {
                @if campaign.settings.len() > 1 { h3 { (setting.name) } }
                (body)
            }
        } }
    };
    let chapters = vec![
        Chapter::new("Ranking", html! { p.soft { (ORDER) } (each(&ranking)) }),
        Chapter::new("Heat map", html! { p.soft { (HOW) } (each(&heat)) }),
        Chapter::new("Verdicts", each(&judged)),
        Chapter::new("The worst, and why", stories(campaign)),
        Chapter::new("What could not be measured", gaps(campaign)),
        Chapter::new(RUNS, each(&runs)),
    ];
    Page {
        title,
        lead,
        chapters,
    }
}

fn ranking(setting: &Setting) -> Markup {
    html! { p { @for line in ranking_told(setting) { (line) br; } } }
}

fn heat(setting: &Setting) -> Markup {
    wide(&html! { table.kept.heat {
        thead { tr {
            th { "figure" }
            @for subject in &setting.subjects { th { (subject.name) } }
        } }
        tbody { @for row in &setting.rows { tr {
            th { (row.title()) }
            @for number in 0..setting.subjects.len() { (cell(row, number)) }
        } } }
    } })
}

fn cell(row: &Row, subject: usize) -> Markup {
    let is_work = row.row.is_throughput();
    let found = row.value(subject).zip(row.times(subject));
    html! { @if let Some((value, ratio)) = found {
        td class=(warmth(ratio)) { (time(value, is_work)) small { (times(ratio)) } }
    } @else {
        td.gap { "–" }
    } }
}

/// The class of the style sheet for the ratio of a figure to the lowest of its row.
fn warmth(times: f64) -> &'static str {
    match times {
        t if t < 1.05 => "heat0",
        t if t < 1.3 => "heat1",
        t if t < 2.0 => "heat2",
        t if t < 5.0 => "heat3",
        t if t < 20.0 => "heat4",
        _ => "heat5",
    }
}

fn judged(setting: &Setting) -> Markup {
    match &setting.judgement {
        Some(Ok(judgement)) => html! {
            (verdicts(judgement))
            (stood_in_the_way(judgement, &setting.verdict_stories, &[]))
        },
        Some(Err(why)) => html! { p.gap { "Not judged: " (why) } },
        None => html! {},
    }
}

fn stories(campaign: &Campaign) -> Markup {
    html! { @for ((worst, run, story), number) in campaign.stories.iter().zip(0..) {
        p.soft {
            (campaign.settings[worst.setting].name) ", " (worst.subject) ", " (worst.key) ": "
            (worst.value) " (" (run.id) ", seed " (run.seed) ")"
        }
        @match story {
            Ok(explained) => (scope::page::sample(run, explained, number)),
            Err(_) => p { (told(story)) "." },
        }
    } }
}

fn gaps(campaign: &Campaign) -> Markup {
    let gaps = campaign.gaps();
    html! { @if !(gaps.is_empty() && campaign.left_out.is_empty()) { ul.plain {
        @for left_out in &campaign.left_out { li { "left out: " (left_out) } }
        @for gap in &gaps { li { (gap) } }
    } } }
}

fn runs(setting: &Setting) -> Markup {
    let count: usize = setting.subjects.iter().map(|one| one.runs.len()).sum();
    let table = wide(&html! { table.text.kept {
        thead { tr { th { "run" } th { "subject" } th.number { "seed" } th { "state" } th { "digest" } } }
        tbody { @for subject in &setting.subjects { @for run in &subject.runs { tr {
            td { (run.id) } td { (subject.name) } td.number { (run.seed) } td { (run.state) }
            td { code { (run.digest.as_deref().map_or("–", |digest| &digest[..12])) } }
        } } } }
    } });
    folded("With their digests", &counted(count, "run"), &table)
}

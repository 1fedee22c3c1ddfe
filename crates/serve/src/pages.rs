// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages that only a server has: lists, forms, failures. All others are those of `--report`, with a
//! way back.

use maud::{Markup, html};
use punctual_model::Run;
use punctual_model::run::State;
use punctual_report::campaign::{RUNS, campaign_document};
use punctual_report::counts_by_worst;
use punctual_report::shell::{Chapter, Page, wide};
use punctual_report::text::cut;
use punctual_store::{Campaign, CampaignSummary, Longest, Story, Summary};

use crate::campaigns::Figures;
use crate::query::Query;

/// A page with links to the others.
pub fn of_site(page: Page) -> Page {
    let lead = html! {
        nav.site aria-label="Site" {
            a href="/" { "Runs" } a href="/baselines" { "Baselines" }
            a href="/campaigns" { "Campaigns" }
        }
        (page.lead)
    };
    Page { lead, ..page }
}

/// The page for a failure.
pub fn failure(status: u16, what: &str) -> String {
    let page = Page {
        title: format!("Punctual: {status}"),
        lead: html! { p.lead { (what) } },
        chapters: Vec::new(),
    };
    of_site(page).html()
}

/// The fields of the filter: the name in the query, and the label.
const FIELDS: [(&str, &str); 8] = [
    ("suite", "Suite"),
    ("subject", "Subject"),
    ("kernel", "Kernel"),
    ("probe", "Probe"),
    ("bench", "Bench"),
    ("host", "Host"),
    ("from", "Begun from"),
    ("until", "Begun before"),
];

/// The list of runs, and the actions on them.
pub fn list(
    runs: &[Summary],
    longest: &[Longest],
    next: Option<&str>,
    baselines: &[(String, Vec<String>)],
    query: &Query,
) -> Page {
    let is_later = query.value("before").is_some();
    let lead = html! {
        (filter(query))
        @if runs.is_empty() { p.lead { "There is no such run." } }
        @else { form method="get" action="/compare" {
            (table(runs, Some(longest), true))
            (actions(baselines))
        } }
        p {
            @if is_later { a href=(format!("/?{}", query.without("before"))) { "Newest" } " " }
            @if let Some(last) = next {
                a rel="next" href=(format!("/?{}", query.with("before", last))) { "Earlier" }
            }
        }
    };
    of_site(Page {
        title: "Punctual: runs".into(),
        lead,
        chapters: Vec::new(),
    })
}

fn filter(query: &Query) -> Markup {
    let states = [
        State::Finished,
        State::Running,
        State::Interrupted,
        State::Failed,
    ];
    let value = |name| query.value(name).unwrap_or_default();
    let hint = |name: &str| matches!(name, "from" | "until").then_some("2026-05-01");
    let names = FIELDS.iter().map(|(name, _)| *name).chain(["state"]);
    let set: Vec<&str> = names.filter(|name| !value(name).is_empty()).collect();
    let words = set.iter().map(|name| format!("{name} {}", value(name)));
    let words = words.collect::<Vec<_>>().join(", ");
    html! { details open[!set.is_empty()] {
        summary { "Filter " span { (words) } }
        form.filter method="get" action="/" {
            @for (name, title) in FIELDS {
                label { (title) input name=(name) value=(value(name)) placeholder=[hint(name)]; }
            }
            label { "State" select name="state" {
                option value="" { "any" }
                @for state in states {
                    option value=(state.name()) selected[value("state") == state.name()] {
                        (state.name())
                    }
                }
            } }
            button { "Filter" }
        }
    } }
}

fn actions(baselines: &[(String, Vec<String>)]) -> Markup {
    html! { div.act {
        button { "Compare" }
        button formaction="/show" { "Show together" }
        @if !baselines.is_empty() {
            select name="baseline" aria-label="Baseline" {
                @for (name, _) in baselines { option value=(name) { (name) } }
            }
            button formaction="/gate" { "Judge against baseline" }
        }
    } }
}

/// The most columns of a subject's name.
const SUBJECT: usize = 28;

/// Runs. If `longest` is given, it has the latest samples of all their recordings, which are shown.
fn table(runs: &[Summary], longest: Option<&[Longest]>, is_choice: bool) -> Markup {
    wide(&html! { table.text.kept.stacked {
        thead { tr {
            th scope="col" { "Run" }
            @if longest.is_some() { th.number scope="col" { "Worst" } th scope="col" { "of" } }
            th scope="col" { "Subject" }
            th scope="col" { "Suite" } th.number scope="col" { "Seed" } th scope="col" { "State" }
            th scope="col" { "Begun" } th scope="col" { "Kernel" } th scope="col" { "Bench" }
            th scope="col" { "Digest" } th scope="col" { "Host" }
        } }
        tbody { @for run in runs { (row(run, longest, is_choice)) } }
    } })
}

/// The latest sample of a run's recordings of latencies.
fn worst<'a>(run: &Summary, longest: &'a [Longest]) -> Option<&'a Longest> {
    let own = longest.iter().filter(|one| one.run == run.id);
    let own = own.filter(|one| counts_by_worst(&one.key.probe));
    own.max_by_key(|one| one.value)
}

fn row(run: &Summary, longest: Option<&[Longest]>, is_choice: bool) -> Markup {
    let begun = run.started.replace('T', " ");
    let digest: String = run
        .digest
        .as_deref()
        .unwrap_or("–")
        .chars()
        .take(12)
        .collect();
    let class = match run.state {
        State::Finished => None,
        State::Running => Some("soft"),
        State::Interrupted | State::Failed => Some("high"),
    };
    html! { tr {
        td {
            @if is_choice {
                input type="checkbox" name="run" value=(run.id)
                    aria-label=(format!("Choose {}", run.id));
                " "
            }
            a href=(format!("/runs/{}", run.id)) { (run.id) }
        }
        @if let Some(longest) = longest {
            @let worst = worst(run, longest);
            td.number data-of="Worst" { @match worst { Some(one) => (one.value), None => "–" } }
            td data-of="of" { @match worst {
                Some(one) => { (one.key.probe) ", " (one.key.load) }
                None => "–"
            } }
        }
        td data-of="Subject" title=(run.subject.name) { (cut(&run.subject.name, SUBJECT)) }
        td data-of="Suite" { (run.suite) }
        td.number data-of="Seed" { (run.seed) }
        td class=[class] data-of="State" { (run.state.name()) }
        td data-of="Begun" { (begun.trim_end_matches('Z')) }
        td.free data-of="Kernel" title=(run.subject.boot) { span.brief {
            (run.subject.kernel) @if !run.subject.boot.is_empty() { " " (run.subject.boot) }
        } }
        td data-of="Bench" { (run.subject.bench) }
        td data-of="Digest" { code { (digest) } }
        td data-of="Host" { (run.host) }
    } }
}

/// The page of one run, with everything else that the store knows of it.
pub fn run(page: Page, run: &Run, stories: &[Story], baselines: &[(String, Vec<String>)]) -> Page {
    let others = baselines.iter().filter(|(_, runs)| !runs.contains(&run.id));
    let others: Vec<_> = others.cloned().collect();
    let own = baselines.iter().filter(|(_, runs)| runs.contains(&run.id));
    let own: Vec<&str> = own.map(|(name, _)| name.as_str()).collect();
    let lead = html! {
        p.soft {
            (run.id) ", " (run.subject.name) ", seed " (run.seed) ": " (run.state.name())
            @if let Some(error) = &run.error { ": " (error) }
            @if !own.is_empty() { "; of baseline " (own.join(", ")) }
            ". " a href=(format!("/api/runs/{}", run.id)) { "JSON" }
        }
        (page.lead)
        @if run.state == State::Finished && !others.is_empty() {
            form method="get" action="/gate" {
                input type="hidden" name="run" value=(run.id);
                div.act {
                    select name="baseline" aria-label="Baseline" {
                        @for (name, _) in &others { option value=(name) { (name) } }
                    }
                    button { "Judge against baseline" }
                }
            }
        }
    };
    let told = html! { @for story in stories {
        h3 { "Told " (story.made.replace('T', " ").trim_end_matches('Z')) }
        pre tabindex="0" { (story.told) }
    } };
    let mut chapters = vec![Chapter::new("Why samples were late", told)];
    chapters.extend(page.chapters);
    of_site(Page {
        title: format!("{}, {}", page.title, run.id),
        lead,
        chapters,
    })
}

/// All baselines, with their runs.
pub fn baselines(all: &[(String, Vec<Summary>)]) -> Page {
    let chapter = |(name, runs): &(String, Vec<Summary>)| {
        let ids: Vec<String> = runs.iter().map(|run| format!("run={}", run.id)).collect();
        let body = html! {
            (table(runs, None, false))
            p { a href=(format!("/show?{}", ids.join("&"))) { "Show together" } }
        };
        Chapter::new(name.as_str(), body)
    };
    let lead = html! { @if all.is_empty() {
        p.lead { "There are no baselines: " code { "punctual baseline set" } " makes them." }
    } };
    of_site(Page {
        title: "Punctual: baselines".into(),
        lead,
        chapters: all.iter().map(chapter).collect(),
    })
}

/// The number of seconds after which a browser asks again for a campaign that goes on.
pub const REFRESH_S: u32 = 10;

/// All campaigns.
pub fn campaigns(all: &[CampaignSummary]) -> Page {
    let lead = html! { @if all.is_empty() {
        p.lead { "There are no campaigns: " code { "punctual campaign" } " makes them." }
    } @else { (wide(&html! { table.text.kept {
        thead { tr {
            th scope="col" { "Campaign" } th scope="col" { "Begun" } th scope="col" { "What for" }
            th.number scope="col" { "Finished" } th.number scope="col" { "Runs" }
            th scope="col" { "State" } th scope="col" { "Host" }
        } }
        tbody { @for one in all { tr {
            td { a href=(format!("/campaigns/{}", one.id)) { (one.asked.name) } }
            td { (moment(&one.begun)) }
            td { (one.asked.summary) }
            td.number { (one.finished) }
            td.number { (one.runs) }
            td { (how_far(one)) }
            td { (one.host) }
        } } }
    } })) } };
    of_site(Page {
        title: "Punctual: campaigns".into(),
        lead,
        chapters: Vec::new(),
    })
}

fn moment(text: &str) -> String {
    text.replace('T', " ").trim_end_matches('Z').to_owned()
}

/// The state of a campaign: under way, or ended, with or without all measured.
fn how_far(one: &CampaignSummary) -> &'static str {
    match (one.is_under_way, one.finished == one.runs, &one.ended) {
        (true, _, _) => "under way",
        (_, true, _) => "done",
        (_, _, Some(_)) => "ended before all was measured",
        (_, _, None) => "its process is gone",
    }
}

/// The number of a campaign's ended runs that are listed.
pub const MOST_LISTED: usize = 500;

/// A campaign as it is now. `runs` are those that have begun, except for the first `unlisted`.
pub fn campaign(
    now: &Campaign,
    figures: &Figures,
    runs: &[Summary],
    unlisted: usize,
    is_still: bool,
) -> Page {
    let one = &now.summary;
    let going: Vec<Summary> = runs
        .iter()
        .filter(|run| run.state == State::Running)
        .cloned()
        .collect();
    let left = figures.left(now).map(|left| left.as_secs().div_ceil(60));
    let progress = html! {
        p { progress max=(one.runs.max(1)) value=(one.finished)
            aria-label=(format!("{} of {} runs", one.finished, one.runs)) {}
            " " (one.finished) " of " (one.runs) " runs; " (how_far(one)) " on " (one.host)
            @if !going.is_empty() { "; " (going.len()) " at a time" }
            @if let Some(minutes) = left.filter(|_| one.is_under_way) {
                "; about " (minutes) " min left"
            }
            "; begun " (moment(&one.begun))
            @if let Some(ended) = &one.ended { "; ended " (moment(ended)) }
            ". " a href=(format!("/api/campaigns/{}", one.id)) { "JSON" }
        }
        @if one.is_under_way { p.soft {
            @if is_still { a href=(format!("/campaigns/{}", one.id)) { "Show it as it goes on" } "." }
            @else {
                "This page is drawn anew every " (REFRESH_S) " s: "
                a href="?refresh=no" { "leave it as it is" } "."
            }
        } }
    };
    let page = campaign_document(&figures.report);
    let lead = html! { (page.lead) (progress) };
    let told = html! { @if !one.told.is_empty() { pre tabindex="0" { (one.told) } } };
    let mut chapters = Vec::new();
    if !going.is_empty() {
        chapters.push(Chapter::new("Under way", table(&going, None, false)));
    }
    // The runs have links here.
    chapters.extend(page.chapters.into_iter().filter(|one| one.title != RUNS));
    chapters.push(Chapter::new("What it said at its end", told));
    if !runs.is_empty() {
        let body = html! {
            @if unlisted > 0 { p.soft {
                "Without the first " (unlisted) ", which the JSON has."
            } }
            (table(runs, None, false))
        };
        chapters.push(Chapter::new(RUNS, body));
    }
    of_site(Page {
        title: page.title,
        lead,
        chapters,
    })
}

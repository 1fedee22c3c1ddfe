// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bisection as a page.

use maud::{Markup, html};
use punctual_judge::Known;
use punctual_published::Document;

use super::{Bisect, Step};
use crate::page::{beneath_limits, untested};
use crate::shell::{self, Chapter, wide};

/// The page about a bisection.
pub fn bisect_page(bisect: &Bisect, documents: &[Document]) -> String {
    let runs = bisect.runs();
    let title = format!("Punctual: {}", bisect.sentence());
    let lead = html! {
        p.lead { (bisect.effort()) "." }
        @for demand in bisect.demands() { p.soft { (demand) } }
    };
    let why = html! { @if let Some((asked, why)) = &bisect.why {
        p.soft { (bisect.asked_told(asked)) }
        (why.page())
    } };
    let mut chapters = vec![
        Chapter::new("Verdicts", verdicts(bisect)),
        Chapter::new("Why", why),
        Chapter::new("On the way", steps(bisect)),
        Chapter::new("What was not tested", untested::untested(&runs, None)),
    ];
    chapters.extend(beneath_limits(&runs, &bisect.limits, documents));
    shell::page(&title, &lead, chapters)
}

/// All kernels in their order, those that were not tried included.
fn verdicts(bisect: &Bisect) -> Markup {
    let names = bisect.names();
    let is_watched = bisect.steps.iter().any(|step| !step.arrivals().is_empty());
    wide(&html! { table.text.kept {
        thead { tr {
            th { "kernel" } th { "verdict" } th { "reason" }
            @if is_watched { th { "every arrival" } }
        } }
        tbody { @for (at, name) in names.iter().enumerate() {
            @let step = bisect.steps.iter().find(|step| step.at == at);
            tr {
                td { (name) }
                @match step {
                    None => { td.soft { "not needed" } td {} @if is_watched { td {} } }
                    Some(step) => {
                        td class=(class(step)) { (step.known) }
                        td.free { @for said in step.sentences() { (said) br; } }
                        @if is_watched {
                            td.free { @for said in step.arrivals() { (said) br; } }
                        }
                    }
                }
            }
        } }
    } })
}

fn steps(bisect: &Bisect) -> Markup {
    let names = bisect.names();
    html! { ol { @for step in &bisect.steps {
        li { (names[step.at]) ": " (step.known) }
    } } }
}

/// The class of the style sheet for a verdict.
fn class(step: &Step) -> &'static str {
    match step.known {
        Known::Fit => "low",
        Known::Skipped => "gap",
        Known::Unfit => "high",
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A gate's verdict as a page: a certificate, or why there is none.

use maud::{Markup, html};
use punctual_model::Run;
use punctual_published::Document;

use super::text::{in_all, row_lines};
use super::{Gate, Gated, Standing, Why};
use crate::page::{beneath, untested};
use crate::scope::page::{Other, compared};
use crate::scope::told;
use crate::shell::{Chapter, Page, wide};

/// The page about a gate; `runs` are all that it compared.
pub fn gate_page(gate: &Gate, runs: &[Run], documents: &[Document]) -> String {
    gated_page(gate, runs, documents).html()
}

/// The same, before it is text.
pub fn gated_page(gate: &Gate, runs: &[Run], documents: &[Document]) -> Page {
    let title = format!("Punctual: {}", in_all(gate).trim_end_matches('.'));
    let lead = html! { @for one in &gate.subjects {
        p.lead { (one.subject) ": " (one.standing.name()) "; " (one.sentence()) "." }
    } };
    let mut chapters = vec![
        Chapter::new("Verdicts", verdicts(gate)),
        Chapter::new(
            "Why",
            html! { @for why in gate.subjects.iter().filter_map(|one| one.why.as_ref()) { (why_page(why)) } },
        ),
        Chapter::new("What was not tested", untested::untested(runs, None)),
    ];
    chapters.extend(beneath(runs, documents));
    Page {
        title,
        lead,
        chapters,
    }
}

fn verdicts(gate: &Gate) -> Markup {
    html! {
        (wide(&html! { table.text.kept {
            thead { tr { th { "subject" } th { "seed" } th { "baseline" } th { "run" } th { "digests" } } }
            tbody { @for one in &gate.subjects { @for pair in &one.pairs { tr {
                td { (one.subject) } td.number { (pair.seed) } td { (pair.there) } td { (pair.here) }
                td { @if pair.is_equal { "equal" } @else { "different" } }
            } } } }
        } }))
        @for one in &gate.subjects { @if !one.rows.is_empty() { (rows(one)) } }
    }
}

fn rows(one: &Gated) -> Markup {
    html! {
        h3 { (one.subject) }
        p.soft {
            "Run by run, at " (one.rule.confidence_percent()) " % over all rows; not worse is what "
            "is less than " (one.rule.effect) " times the baseline's for certain."
        }
        (wide(&html! { table.text.kept { tbody { @for row in &one.rows { tr {
            td.free { @for (depth, line) in row_lines(one, row) {
                @if depth == 1 { span class=(class(row.standing)) { (line) } }
                @else { br; (line) }
            } }
        } } } } }))
        ul.plain { @for note in &one.notes { li { (note) } } }
    }
}

/// The class of the style sheet for a standing.
fn class(standing: Standing) -> &'static str {
    match standing {
        Standing::Unchanged | Standing::NotWorse => "low",
        Standing::Undecided => "gap",
        Standing::Worse => "high",
    }
}

/// Both worst samples; where both were explained, side by side.
pub fn why_page(why: &Why) -> Markup {
    html! {
        @match (&why.here, &why.there) {
            ((here, Ok(own)), (there, Ok(other))) => {
                (compared(here, std::slice::from_ref(own), Other {
                    run: there,
                    explained: std::slice::from_ref(other),
                }))
            }
            ((here, own), (there, other)) => {
                p { (here.id) ", " (here.subject.name) ": " (told(own)) }
                p { (there.id) ", " (there.subject.name) ": " (told(other)) }
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A gate's verdict as a page: a certificate, or the reason why there is none.

use maud::{Markup, html};
use punctual_judge::percent;
use punctual_model::Run;
use punctual_published::Document;

use super::text::{Detail, NOT_COUNTED, named, row_lines, within};
use super::{Gate, Gated, Row, Standing};
use crate::compare::verdict_told;
use crate::page::{beneath, untested};
use crate::scope::page::code;
use crate::shell::{Chapter, Page, wide};

/// The page about a gate; `runs` are all that it compared, as [`page_runs`] names them.
pub fn gate_page(gate: &Gate, runs: &[Run], documents: &[Document]) -> String {
    gated_page(gate, runs, documents).html()
}

/// The runs of both sides, those of the baseline under a name of their own.
pub fn page_runs(there: Vec<Run>, here: Vec<Run>) -> Vec<Run> {
    let mut runs = there;
    for run in &mut runs {
        run.subject.name = format!("baseline {}", run.subject.name);
    }
    runs.extend(here);
    runs
}

/// The same as a page that is not text yet.
pub fn gated_page(gate: &Gate, runs: &[Run], documents: &[Document]) -> Page {
    let title = format!("Punctual: {}", super::title(gate));
    let lead = html! {
        p.lead { (gate.suite) " against baseline " (gate.baseline) "." }
        @for one in &gate.subjects {
            p.lead { (one.subject) ": " (one.standing.name()) "; " (one.sentence()) "." }
        }
    };
    let whys = gate.subjects.iter().filter_map(|one| one.why.as_ref());
    let mut chapters = vec![
        Chapter::new("Verdicts", verdicts(gate)),
        Chapter::new("Why", html! { @for why in whys { (why.page()) } }),
        Chapter::new("What was not tested", untested::untested(runs, None)),
    ];
    chapters.extend(beneath(runs, documents));
    chapters.push(Chapter::new("Which runs were compared", pairs(gate)));
    Page {
        title,
        lead,
        chapters,
    }
}

fn verdicts(gate: &Gate) -> Markup {
    html! {
        @for one in &gate.subjects {
            h3 { (one.subject) }
            @let [before, after] = &one.sides;
            p.soft { "Before: " (before.told()) ". After: " (after.told()) ". " (after.machine) "." }
            @if !one.rows.is_empty() { (rows(gate, one)) }
        }
        @if let Some(command) = gate.to_decide() {
            p { "To decide what is undecided:" }
            pre { (command) }
        }
        @if let Some(command) = &gate.again { p { "To do it again:" } pre { (command) } }
    }
}

fn rows(gate: &Gate, one: &Gated) -> Markup {
    html! {
        p.soft {
            "Figures of the middle run of each side, judged run by run at "
            (one.rule.confidence_percent()) " % over all figures. A figure is " i { "not worse" }
            " if it is certainly below " (one.rule.effect) " times the baseline's. An increase of "
            "up to " (percent(gate.tolerance)) " % of the baseline's median is tolerated."
        }
        (wide(&html! { table.text.kept {
            thead { tr { th { "measurement" } th { "figure" } th { "before" } th { "after" }
                th { "ratio" } th { "verdict" } } }
            tbody { @for row in &one.rows { (figures(one, row)) } }
        } }))
        ul.plain { @for note in &one.notes { li { (code(note)) } } }
    }
}

/// A line for each figure, then the differences or gaps.
fn figures(one: &Gated, row: &Row) -> Markup {
    let (title, told) = (row.row.title(), row_lines(row, Detail::Samples));
    let told = told.into_iter().filter(|(depth, _)| *depth > 1);
    html! {
        @for (number, figure) in row.figures.iter().enumerate() { tr {
            td.free { @if number == 0 { (title) } }
            td { (named(figure)) }
            td.number { (figure.there) }
            td.number { (figure.here) }
            td.free {
                (verdict_told(&figure.compared, &one.rule)) (within(figure))
                @if let Some(function) = &figure.blame { ", in " (function) }
            }
            @if figure.counts() {
                td class=(class(figure.standing)) { (figure.standing.name()) }
            } @else {
                td.soft { (NOT_COUNTED) }
            }
        } }
        @if row.figures.is_empty() || row.gap.is_some() { tr {
            td.free { @if row.figures.is_empty() { (title) } }
            td.free colspan="4" { (row.gap.as_deref().unwrap_or_default()) }
            td class=(class(row.standing)) { (row.standing.name()) }
        } }
        @for (_, line) in told { tr { td {} td.free.soft colspan="5" { (code(&line)) } } }
    }
}

fn pairs(gate: &Gate) -> Markup {
    wide(&html! { table.text.kept {
        thead { tr { th { "subject" } th { "seed" } th { "baseline" } th { "run" } th { "digests" } } }
        tbody { @for one in &gate.subjects { @for pair in &one.pairs { tr {
            td { (one.subject) } td.number { (pair.seed) } td { (pair.there) } td { (pair.here) }
            td { @if pair.is_equal { "equal" } @else { "different" } }
        } } } }
    } })
}

/// The class of the style sheet for a standing.
fn class(standing: Standing) -> &'static str {
    match standing {
        Standing::Unchanged | Standing::NotWorse | Standing::Tolerated => "low",
        Standing::Undecided => "gap",
        Standing::Worse => "high",
    }
}

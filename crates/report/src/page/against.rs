// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each subject's figures against the first one's.

use maud::{Markup, html};

use punctual_judge::{Comparison as Judged, Verdict};

use crate::compare::{Cell, Comparison, Section, verdict_name, verdict_sentences};
use crate::shell::wide;
use crate::text::{time, times};

/// The section about a comparison.
pub fn against(comparison: &Comparison) -> Markup {
    let first = comparison.subjects.first().map_or("", String::as_str);
    html! {
        p.soft {
            "Each figure is followed by its ratio to " (first) " and the change in per cent. The "
            "first ratio is taken run by run, which may differ from the ratio of the two times "
            "shown."
        }
        (wide(&html! { table.kept.measured {
            @for section in &comparison.sections { (block(comparison, section)) }
        } }))
        p {
            "Run by run, at " (comparison.rule.confidence_percent()) " % over all rows of a "
            "subject:"
        }
        ul.plain {
            @for sentence in verdict_sentences(comparison) { li { (sentence) } }
        }
        ul.plain {
            @for (name, digests) in comparison.subjects.iter().zip(&comparison.digests) {
                li { "Digest of " (name) ": " (digests.name()) "." }
            }
            @for note in &comparison.notes { li { (note) } }
        }
    }
}

fn block(comparison: &Comparison, section: &Section) -> Markup {
    let shown = section.shown();
    let subjects = comparison.subjects.iter().zip(&shown);
    html! { tbody {
        tr {
            th.title scope="rowgroup" { span { (section.row.title()) } }
            @for figure in &section.figures { th.title scope="col" { (figure) } }
        }
        @for ((name, cells), judged) in subjects.zip(&section.verdicts) { tr {
            th scope="row" { (name) }
            @for ((at, one), figure) in cells.iter().enumerate().zip(&section.figures) {
                // Only the leading figure is judged.
                @let judged = judged.as_ref().filter(|_| at == 0);
                (cell(one, figure, section.row.is_throughput(), judged))
            }
        } }
    } }
}

/// Coloured by the verdict, never by the bare number. On a narrow screen it names its own figure.
fn cell(cell: &Cell, figure: &str, is_work: bool, judged: Option<&Judged>) -> Markup {
    let colour = match judged.map(|judged| judged.verdict) {
        Some(Verdict::Lower) => Some("low"),
        Some(Verdict::Higher) => Some("high"),
        _ => None,
    };
    match cell {
        Cell::Time { value, ratio } => html! { td class=[colour] data-of=(figure) { span {
            (time(*value, is_work))
            @if let (Some(ratio), Some(percent)) = (ratio, cell.percent()) {
                " " span.soft { (times(*ratio)) ", " (format!("{percent:+.1} %")) }
            }
            @if let Some(judged) = judged {
                " " span.soft { (verdict_name(&judged.verdict)) }
            }
        } } },
        Cell::Word(text) => html! { td data-of=(figure) { (text) } },
        Cell::Absent(why) => html! { td.gap data-of=(figure) { (why) } },
    }
}

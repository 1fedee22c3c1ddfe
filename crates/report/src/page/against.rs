// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each subject's figures against the first one's.

use maud::{Markup, html};

use crate::compare::{Cell, Comparison, Section};
use crate::text::{time, times};

/// The section about a comparison.
pub fn against(comparison: &Comparison) -> Markup {
    let first = comparison.subjects.first().map_or("", String::as_str);
    html! {
        p.soft {
            "Each figure stands beside that of " (first) ": how many times it is, and by how many "
            "per cent it is above or below."
        }
        div.wide { table.kept {
            @for section in &comparison.sections { (block(comparison, section)) }
        } }
        ul.plain {
            @for (name, digests) in comparison.subjects.iter().zip(&comparison.digests) {
                li { "Digest of " (name) ": " (digests.name()) "." }
            }
            @for note in &comparison.notes { li { (note) } }
        }
    }
}

fn block(comparison: &Comparison, section: &Section) -> Markup {
    html! {
        tbody {
            tr {
                th.title scope="rowgroup" { span { (section.row.title()) } }
                @for figure in &section.figures { th.title scope="col" { (figure) } }
            }
            @for (name, cells) in comparison.subjects.iter().zip(&section.cells) {
                tr {
                    th scope="row" { (name) }
                    @for one in cells { (cell(one, section.row.is_throughput())) }
                }
            }
        }
    }
}

fn cell(cell: &Cell, is_work: bool) -> Markup {
    match cell {
        Cell::Time { value, ratio } => html! {
            td {
                (time(*value, is_work))
                @if let (Some(ratio), Some(percent)) = (ratio, cell.percent()) {
                    " " span.soft { (times(*ratio)) ", " (format!("{percent:+.1} %")) }
                }
            }
        },
        Cell::Word(text) => html! { td { (text) } },
        Cell::Absent(why) => html! { td.gap { (why) } },
    }
}

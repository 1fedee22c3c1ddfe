// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of kernels as a page.

use maud::{Markup, html};
use punctual_model::Run;
use punctual_published::Document;

use super::text::{gaps, head, levels_told, reasons};
use super::{Line, News, Row};
use crate::figure::by_release;
use crate::page::beneath;
use crate::shell::{self, Chapter, folded, wide};
use crate::text::counted;

/// Explains the finding of changes, in two sentences.
const HOW: &str = "A dot is a run, a line the middle of a level. A change is what the runs of \
    both sides would not show in one of twenty such pages if all of them were exchangeable \
    (energy statistics, permutation of runs; over all figures of a line).";

/// The page about lines of kernels, with news if they are asked for.
/// `runs` are all runs that the lines rest on.
pub fn series_page(
    lines: &[Line],
    news: Option<&News>,
    runs: &[Run],
    documents: &[Document],
) -> String {
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let title = format!("Punctual: {}, release by release", names.join(" and "));
    let lead = html! {
        @for line in lines { p.lead { (head(line)) } }
        @if let Some(news) = news { @for said in news.sentences(lines) { p { (said) } } }
    };
    let mut chapters = vec![Chapter::new(
        "Release by release",
        html! {
            p.soft { (HOW) }
            @let (changed, same) = rows(lines);
            @for (title, row) in &changed { (figure(lines, title, row)) }
            @if !same.is_empty() { (folded(
                "What did not change",
                &counted(same.len(), "figure"),
                &html! { @for (title, row) in &same { (figure(lines, title, row)) } },
            )) }
        },
    )];
    chapters.push(Chapter::new(
        "Changes",
        html! { @for line in lines { (changes(line)) } },
    ));
    chapters.push(Chapter::new(
        "Why",
        html! { @for line in lines { @for (row, at, why) in reasons(line) {
            h3 { (line.name) " " (line.releases[at].version) ": " (row.title()) }
            (why.page())
        } } },
    ));
    chapters.push(Chapter::new(
        "What could not be measured",
        html! {
            @for line in lines { @for gap in gaps(line) { p { (line.name) " " (gap) } } }
        },
    ));
    chapters.extend(beneath(runs, documents));
    shell::page(&title, &lead, chapters)
}

/// Figures by their titles, each once, from the first line that has it.
type Rows<'a> = Vec<(String, &'a Row)>;

/// Those that changed in any line, and the others.
fn rows(lines: &[Line]) -> (Rows<'_>, Rows<'_>) {
    let all = || lines.iter().flat_map(|line| &line.rows);
    let mut found = Rows::new();
    for row in all() {
        if !found.iter().any(|(title, _)| *title == row.title()) {
            found.push((row.title(), row));
        }
    }
    found
        .into_iter()
        .partition(|(title, _)| all().any(|row| !row.changes.is_empty() && row.title() == *title))
}

fn figure(lines: &[Line], title: &str, row: &Row) -> Markup {
    let own = lines.iter().filter_map(|line| {
        let row = line.rows.iter().find(|one| one.title() == *title)?;
        Some((line, row))
    });
    let own: Vec<(&Line, &Row)> = own.collect();
    let drawn = by_release(&own, row.row.is_throughput());
    html! { @if let Some(svg) = drawn {
        figure {
            figcaption { b { (title) } }
            (svg)
        }
    } }
}

fn changes(line: &Line) -> Markup {
    let (changed, same): (Vec<&Row>, Vec<&Row>) =
        line.rows.iter().partition(|row| !row.changes.is_empty());
    html! {
        h3 { (line.name) }
        @if changed.is_empty() { p { "No figure changed." } } @else { (levels(line, &changed)) }
        @if !same.is_empty() { (folded(
            "What did not change",
            &counted(same.len(), "figure"),
            &levels(line, &same),
        )) }
    }
}

fn levels(line: &Line, rows: &[&Row]) -> Markup {
    wide(&html! { table.text.kept {
        thead { tr { th { "figure" } th { "levels" } } }
        tbody { @for row in rows { tr {
            td { (row.title()) }
            td.free { @for said in levels_told(line, row) { (said) br; } }
        } } }
    } })
}

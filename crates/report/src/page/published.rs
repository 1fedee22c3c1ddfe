// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contents of the document that these runs repeat, beside their findings.

use maud::{Markup, html};
use punctual_published::{Document, Histogram};

use super::told::{Pair, difference};
use super::{figure, improved};
use crate::figure::Figure;
use crate::matrix::{Matrix, Measurement};
use crate::published::ABSOLUTE;
use crate::published::directions::{Checked, checked};
use crate::published::judged::ClaimVerdict;
pub use crate::published::repeated;
use crate::published::scale::scaled;
use crate::published::steps::{Counts, counts, loads, uncounted};
use crate::published::tables::{Row, Source, Table, table};
use crate::shell::folded;
use crate::text::unbroken;

/// The parts of a document's section, in this order.
const PARTS: [fn(&Matrix<'_>, &Document) -> Markup; 7] = [
    directions,
    tables,
    improved::summary,
    histograms,
    lists,
    pictures,
    method,
];

/// A table with more columns than this stands on its side.
const WIDEST: usize = 9;

/// The contents of a document that these runs repeat, beside their findings.
pub fn beside(matrix: &Matrix<'_>, document: &Document) -> Markup {
    html! {
        p {
            (document.author) ": “" (document.title) "”. " (document.publisher) ", "
            (document.year) "."
        }
        @for part in PARTS { (part(matrix, document)) }
    }
}

fn directions(matrix: &Matrix<'_>, document: &Document) -> Markup {
    html! {
        h3 { "Is it still so?" }
        div.wide { table.text.claims {
            thead { tr { th { "what the document says" } th { "today" } th { "figures" } } }
            tbody { @for one in checked(matrix, document) { (direction(&one)) } }
        } }
    }
}

fn direction(one: &Checked<'_>) -> Markup {
    let direction = one.direction;
    let class = match one.outcome {
        ClaimVerdict::Holds => "verdict low",
        ClaimVerdict::Fails => "verdict high",
        ClaimVerdict::Undecided(_) => "verdict",
        ClaimVerdict::CannotTell => "gap",
    };
    html! {
        tr {
            td.free {
                (direction.claim)
                @for quote in direction.quotes.get_ref() {
                    small.quote { "“" (quote) "”" }
                }
                @if let Some(note) = &direction.note { small.quote { (note.trim()) } }
            }
            td class=(class) {
                (one.outcome)
                @if let Some(needed) = one.needed() { small.quote { (needed) } }
            }
            td.free { (unbroken(&one.evidence)) }
        }
    }
}

fn tables(matrix: &Matrix<'_>, document: &Document) -> Markup {
    let scaled = scaled(matrix);
    html! {
        @for published in &document.tables {
            @let table = table(document, published, Some(matrix));
            h3 { (table.title) }
            p.soft { (table.about) }
            div.wide {
                @if table.heads.len() > WIDEST { (turned(&table)) } @else { (upright(&table)) }
            }
        }
        @if !document.tables.is_empty() { p.soft { (ABSOLUTE) } }
        @if !scaled.is_empty() {
            p.soft { "So much of the document's experiment was repeated:" }
            ul.plain { @for one in &scaled { li { (one.text()) } } }
        }
    }
}

fn class(source: Source) -> &'static str {
    match source {
        Source::Published => "theirs",
        Source::Ours => "ours",
    }
}

fn name(row: &Row) -> Markup {
    html! { (row.name) " " span.mark { (row.source.mark()) } small { (row.where_from) } }
}

fn gap(is_gap: bool) -> Option<&'static str> {
    is_gap.then_some("gap")
}

/// A row for each kernel.
fn upright(table: &Table) -> Markup {
    html! {
        table.beside.kept {
            thead { tr { th {} @for head in &table.heads { th scope="col" { (head) } } } }
            tbody { @for row in &table.rows {
                tr class=(class(row.source)) {
                    th scope="row" { (name(row)) }
                    @for cell in &row.cells { td class=[gap(cell.is_gap)] { (cell.text) } }
                }
            } }
        }
    }
}

/// A column for each kernel.
fn turned(table: &Table) -> Markup {
    html! {
        table.beside.kept {
            thead { tr {
                th {}
                @for row in &table.rows { th.kernel scope="col" class=(class(row.source)) { (name(row)) } }
            } }
            tbody { @for (at, head) in table.heads.iter().enumerate() {
                tr {
                    th scope="row" { (head) }
                    @for row in &table.rows {
                        @let cell = &row.cells[at];
                        td class=(class(row.source)) {
                            @if cell.is_gap { span.gap { (cell.text) } } @else { (cell.text) }
                        }
                    }
                }
            } }
        }
    }
}

/// The published histograms, and ours in the same steps.
fn histograms(matrix: &Matrix<'_>, document: &Document) -> Markup {
    let Some((step, all)) = counts(matrix, &document.histograms) else {
        return html! {};
    };
    let first = &document.histograms[0];
    // A figure for each load: with all of them in one, none could be told apart.
    let drawn = loads(&all).into_iter().filter_map(|load| {
        let shown = all
            .iter()
            .filter(|one| one.column.is_none() || one.load == load);
        let shown: Vec<Counts> = shown.cloned().collect();
        let row = Measurement {
            probe: first.probe.clone(),
            load: load.to_owned(),
            variant: String::new(),
            repetition: 1,
        };
        crate::figure::counts(&row, step, &shown)
    });
    let drawn: Vec<Figure> = drawn.collect();
    let last = all.iter().filter_map(|one| one.steps.keys().max()).max();
    let steps = (0..=last.copied().unwrap_or(0))
        .filter(|step| all.iter().any(|one| one.steps.contains_key(step)));
    let millis = |number: u64| number as f64 * step as f64 / 1e6;
    let uncounted = uncounted(matrix, &first.probe);
    let title = format!("in steps of {}", punctual_model::Nanos(step));
    html! {
        h3 { (first.title) }
        p.soft {
            "How many intervals were so much longer than the nominal one, in steps of "
            (punctual_model::Nanos(step)) "; those that were shorter are in the first step, as in "
            "the original. Published: " (lengths(&document.histograms)) "."
        }
        div.figures { @for drawn in &drawn { (figure(drawn)) } }
        (folded("The counts", &title, &html! { div.wide { table.beside.kept {
            thead { tr {
                th { "ms" }
                @for one in &all {
                    th.kernel scope="col" class=(if one.column.is_none() { "theirs" } else { "ours" }) {
                        (one.name)
                    }
                }
            } }
            tbody { @for number in steps { tr {
                th scope="row" { (format!("{:.1}", millis(number))) }
                @for one in &all { td class=(if one.column.is_none() { "theirs" } else { "ours" }) {
                    (crate::text::thousands(one.steps.get(&number).copied().unwrap_or(0)))
                } }
            } } }
        } } }))
        @if !uncounted.is_empty() {
            p.soft {
                "Not counted, because not all samples were kept and bins do not tell the sign: "
                (uncounted.join("; ")) "."
            }
        }
    }
}

/// `54,466 intervals in 26.6 s on 2.6.15 vanilla`, one after the other.
fn lengths(histograms: &[Histogram]) -> String {
    let length = |one: &Histogram| {
        let (count, seconds) = (crate::text::thousands(one.count()), one.seconds());
        format!("{count} intervals in {seconds:.1} s on {}", one.name)
    };
    let all: Vec<String> = histograms.iter().map(length).collect();
    all.join(", ")
}

/// The published lists against each other: the last named is the plain kernel's.
fn lists(_: &Matrix<'_>, document: &Document) -> Markup {
    let Some((base, others)) = document.lists.split_last() else {
        return html! {};
    };
    let plain = base.lines.join("\n");
    let others = others.iter().map(|one| (one, one.lines.join("\n")));
    let others: Vec<_> = others.collect();
    html! {
        h3 { (base.title) ", as published" }
        @for (one, lines) in &others {
            (difference(&Pair {
                title: "published".to_owned(),
                names: [&base.name, &one.name],
                lists: [&plain, lines],
            }))
        }
    }
}

fn pictures(_: &Matrix<'_>, document: &Document) -> Markup {
    html! {
        @if !document.pictures.is_empty() {
            h3 { "Published as a picture only" }
            p.soft { "From these no number can be taken; ours are among the figures below." }
            ul.plain {
                @for one in &document.pictures { li { (one.label) ": " (one.shows) "." } }
            }
        }
        @for one in &document.statements {
            p {
                "In words: " (one.system) ": " (one.says) "."
                @if let Some(note) = &one.note { " " span.soft { (note) } }
            }
        }
    }
}

fn method(_: &Matrix<'_>, document: &Document) -> Markup {
    html! {
        h3 { "What differs in method" }
        p { (document.method.trim()) }
    }
}

#[cfg(test)]
mod tests {
    use punctual_published::documents;

    use super::super::page;
    use crate::fixtures::{self, assert_has};

    fn of_suite(suite: &str, mut runs: Vec<punctual_model::Run>) -> String {
        for run in &mut runs {
            run.suite = suite.into();
        }
        page(&runs, &documents().unwrap())
    }

    #[test]
    fn each_suite_has_its_document_and_others_have_none() {
        for document in documents().unwrap() {
            let text = of_suite(&document.suite, fixtures::all_probes());
            assert_has(
                &text,
                &[
                    "Beside what was published",
                    "Is it still so?",
                    "What differs in method",
                ],
            );
            assert!(
                text.contains(&document.title.replace('"', "&quot;")),
                "{}",
                document.name
            );
        }
        assert!(!of_suite("demo", fixtures::whole()).contains("Beside what was published"));
    }

    #[test]
    fn published_figures_are_marked_and_stand_in_ours_columns() {
        let text = of_suite("celf", fixtures::whole());
        assert_has(&text, &["<span class=\"mark\">published</span>"]);
        assert!(text.contains("<span class=\"mark\">ours</span>"));
        assert!(text.contains(">33.7593 µs</td>") && text.contains("Via Nehemiah 1 GHz"));
        assert!(text.contains("must not be compared with the published ones in absolute terms"));
        assert!(text.contains(">0.301 s</td>"));
    }

    #[test]
    fn the_papers_summary_names_what_is_missing() {
        let text = of_suite("vub", fixtures::all_probes());
        assert!(text.contains("Worst cases of all tests, and the average improvement"));
        // semaphore acquire and release, switch: equal on both subjects.
        assert!(text.contains("average over 3 tests</th><td></td><td></td><td>+0.0 %</td>"));
        assert!(text.contains("because one of the two lacks it: 5."));
        assert!(text.contains("picture only") && text.contains("36.8 µs"));
    }

    #[test]
    fn the_reviews_histograms_stand_beside_ours() {
        let text = of_suite("patch-review", fixtures::all_probes());
        assert_has(
            &text,
            &[
                ">54,410</td>",
                ">308,821</td>",
                "published: 2.6.15-rt16",
                "rt, idle",
                "+ IRQ 14",
            ],
        );
    }
}

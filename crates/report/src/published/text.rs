// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published figures and claims, for terminals.

use punctual_model::run::Run;
use punctual_published::Document;
use unicode_width::UnicodeWidthStr as _;

use super::directions::checked;
use super::judged::ClaimVerdict;
use super::scale::scaled;
use super::tables::table;
use super::{ABSOLUTE, repeated};
use crate::matrix::Matrix;
use crate::text::{Lines, clean, columns, thousands};

/// Checks today's kernels against the document that these runs repeat: a line for each claim.
/// It is empty if they repeat none.
pub fn directions_text(runs: &[Run], documents: &[Document], width: usize) -> String {
    let matrix = Matrix::new(runs);
    let mut lines = Lines::new(width);
    for document in repeated(&matrix, documents) {
        let (name, title, year) = (&document.name, &document.title, &document.year);
        lines.line("");
        lines.wrap(&format!("{name}: {title} ({year})"), "", "");
        for scaled in scaled(&matrix) {
            lines.put(&clean(&scaled.text()));
        }
        lines.line("");
        lines.line("Is it still so?");
        for one in checked(&matrix, document) {
            let word = match one.needed() {
                Some(needed) => format!("{}, {needed}", one.outcome),
                None => one.outcome.to_string(),
            };
            let note = one.direction.note.as_deref().unwrap_or_default();
            let is_here = one.direction.needs.is_none() || one.outcome != ClaimVerdict::CannotTell;
            let why = if is_here { "" } else { note.trim() };
            let colon = if why.is_empty() { "" } else { ": " };
            let text = format!("{}: {word}{colon}{why}", one.direction.claim);
            lines.wrap(&clean(&text), "  - ", "    ");
            lines.wrap(&clean(&one.evidence), "      ", "      ");
        }
    }
    lines.finish()
}

/// The contents of the documents: figures, pictures, claims.
pub fn documents_text(documents: &[Document], width: usize) -> String {
    let parts = documents.iter().map(|one| document_text(one, width));
    parts.collect::<Vec<_>>().join("\n")
}

fn document_text(document: &Document, width: usize) -> String {
    let mut lines = Lines::new(width);
    heading(document, &mut lines);
    for published in &document.tables {
        let table = table(document, published, None);
        lines.line("");
        lines.put(&table.title);
        lines.wrap(&table.about, "  ", "  ");
        lines.wrap(&table.rows[0].where_from, "  ", "  ");
        let mut cells = vec![vec![String::new()]];
        cells[0].extend(table.heads);
        for row in table.rows {
            let mut line = vec![row.name];
            line.extend(row.cells.into_iter().map(|cell| cell.text));
            cells.push(line);
        }
        for line in grid(&cells, width) {
            lines.line(line);
        }
    }
    for histogram in &document.histograms {
        let (title, name, unit) = (&histogram.title, &histogram.name, histogram.unit.name());
        lines.line("");
        lines.put(&format!("{title}: {name}"));
        for [value, count] in &histogram.bins {
            let count = count.parse().map_or_else(|_| count.clone(), thousands);
            lines.line(format!("  {value} {unit}  {count:>9}"));
        }
    }
    for series in &document.series {
        let (title, system, unit) = (&series.title, &series.system, series.unit.name());
        lines.line("");
        lines.put(&format!("{title} ({system}), in {unit}"));
        lines.wrap(&series.values.join(" "), "  ", "  ");
    }
    for list in &document.lists {
        lines.line("");
        lines.put(&format!("{}: {}", list.title, list.name));
        lines.wrap(&list.lines.join(", "), "  ", "  ");
    }
    words(document, &mut lines);
    lines.finish()
}

fn heading(document: &Document, lines: &mut Lines) {
    let (name, title, suite) = (&document.name, &document.title, &document.suite);
    let (author, publisher, year) = (&document.author, &document.publisher, &document.year);
    lines.wrap(&format!("{name}: {title}"), "", "    ");
    lines.wrap(&format!("{author}; {publisher}, {year}"), "    ", "    ");
    lines.line(format!("    Repeated by: punctual run {suite}"));
}

/// Adds its words, pictures, and claims, and the differences in method.
fn words(document: &Document, lines: &mut Lines) {
    let mut part = |title: &str, items: Vec<String>| {
        if !items.is_empty() {
            lines.line("");
            lines.line(title);
        }
        for item in items {
            lines.wrap(&item, "  - ", "    ");
        }
    };
    let (said, drawn) = (document.statements.iter(), document.pictures.iter());
    let said = said.map(|one| format!("{}: {}", one.system, one.says));
    let drawn = drawn.map(|one| format!("{}: {}", one.label, one.shows));
    let claims = document.directions.iter().map(|one| one.claim.clone());
    part("In words", said.collect());
    part("As a picture only, without numbers", drawn.collect());
    part("What it says", claims.collect());
    lines.line("");
    lines.line("What differs in method");
    lines.wrap(document.method.trim(), "  ", "  ");
    lines.wrap(ABSOLUTE, "  ", "  ");
}

/// Cells in columns. Rows and columns change places if they would be too wide.
fn grid(cells: &[Vec<String>], width: usize) -> Vec<String> {
    let lines = columns(cells);
    if lines.iter().all(|line| line.width() <= width) {
        return lines;
    }
    let count = cells.first().map_or(0, Vec::len);
    let turned = (0..count).map(|at| cells.iter().map(|row| row[at].clone()).collect());
    columns(&turned.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use punctual_published::documents;

    use super::*;
    use crate::fixtures::{self, assert_has};

    #[test]
    fn every_document_fits_a_terminal_with_all_its_numbers() {
        let documents = documents().unwrap();
        let text = documents_text(&documents, 80);
        for line in text.lines() {
            assert!(line.width() <= 80, "{line}");
        }
        assert_has(
            &text,
            &[
                "17388 µs",
                "13.713 s",
                "290 µs",
                "0.23 s",
                "36.8 µs",
                "219 µs",
                "21.8 µs",
                "35 %",
                "308,821",
                "54,410",
                "3.7 ms",
                "picture only",
                "IRQ 14",
                "8.378301",
            ],
        );
    }

    #[test]
    fn a_claim_has_a_line_and_other_suites_have_none() {
        let documents = documents().unwrap();
        let mut runs = fixtures::seeds(5);
        assert_eq!(directions_text(&runs, &documents, 80), "");
        for run in &mut runs {
            run.suite = "celf".into();
        }
        let text = directions_text(&runs, &documents, 80);
        assert_has(
            &text,
            &[
                "  - the real-time kernel's worst latency is the lowest of the four: holds\n",
                "  - hackbench takes longer on the real-time kernel: cannot be told here\n      hackbench \
             pipe process 1, median: rt 0.302 s (0.301–0.303 s) against none",
                "  - the real-time kernel's latency is 100 µs or less: cannot be told here: A\n",
            ],
        );
        let text = directions_text(&runs[..1], &documents, 80);
        let words: Vec<&str> = text.split_whitespace().collect();
        let why = "cannot be told here there is no real-time kernel among the subjects";
        assert!(words.join(" ").contains(why), "{text}");
    }
}

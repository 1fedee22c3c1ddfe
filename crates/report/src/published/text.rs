// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published figures and claims, for terminals.

use punctual_model::run::Run;
use punctual_published::Document;
use unicode_width::UnicodeWidthStr as _;

use super::directions::checked;
use super::judged::{Outcome, seeds};
use super::scale::scaled;
use super::tables::table;
use super::{ABSOLUTE, repeated};
use crate::matrix::Matrix;
use crate::text::{clean, thousands, wrap};

/// Whether today's kernels show what the document says that these runs repeat: a line for
/// each claim. Empty where they repeat none.
pub fn directions_text(runs: &[Run], documents: &[Document], width: usize) -> String {
    let matrix = Matrix::new(runs);
    let mut lines = Vec::new();
    for document in repeated(&matrix, documents) {
        let (name, title, year) = (&document.name, &document.title, &document.year);
        lines.push(String::new());
        lines.extend(wrap(&format!("{name}: {title} ({year})"), "", "", width));
        for scaled in scaled(&matrix) {
            lines.extend(wrap(&clean(&scaled.text()), "", "  ", width));
        }
        lines.push(String::new());
        lines.push("Is it still so?".to_owned());
        for one in checked(&matrix, document) {
            let word = match one.outcome {
                Outcome::Undecided(more) => format!("undecided, {}", seeds(more)),
                outcome => outcome.to_string(),
            };
            let note = one.direction.note.as_deref().unwrap_or_default();
            let is_here = one.direction.needs.is_none() || one.outcome != Outcome::CannotTell;
            let why = if is_here { "" } else { note.trim() };
            let colon = if why.is_empty() { "" } else { ": " };
            let text = format!("{}: {word}{colon}{why}", one.direction.claim);
            lines.extend(wrap(&clean(&text), "  - ", "    ", width));
            lines.extend(wrap(&clean(&one.evidence), "      ", "      ", width));
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    lines.join("\n") + "\n"
}

/// What the documents say: figures, pictures, claims.
pub fn documents_text(documents: &[Document], width: usize) -> String {
    let parts: Vec<String> = documents
        .iter()
        .map(|document| document_text(document, width))
        .collect();
    parts.join("\n")
}

fn document_text(document: &Document, width: usize) -> String {
    let mut lines = heading(document, width);
    for published in &document.tables {
        let table = table(document, published, None);
        lines.push(String::new());
        lines.extend(wrap(&table.title, "", "  ", width));
        lines.extend(wrap(&table.about, "  ", "  ", width));
        let machine = &table.rows[0].where_from;
        lines.extend(wrap(machine, "  ", "  ", width));
        let mut cells = vec![vec![String::new()]];
        cells[0].extend(table.heads);
        for row in table.rows {
            let mut line = vec![row.name];
            line.extend(row.cells.into_iter().map(|cell| cell.text));
            cells.push(line);
        }
        lines.extend(grid(&cells, width));
    }
    for histogram in &document.histograms {
        lines.push(String::new());
        let (title, name, unit) = (&histogram.title, &histogram.name, histogram.unit.name());
        lines.extend(wrap(&format!("{title}: {name}"), "", "  ", width));
        let bin = |[value, count]: &[String; 2]| {
            let count = count.parse().map_or_else(|_| count.clone(), thousands);
            format!("  {value} {unit}  {count:>9}")
        };
        lines.extend(histogram.bins.iter().map(bin));
    }
    for series in &document.series {
        lines.push(String::new());
        let (title, system, unit) = (&series.title, &series.system, series.unit.name());
        lines.extend(wrap(
            &format!("{title} ({system}), in {unit}"),
            "",
            "  ",
            width,
        ));
        lines.extend(wrap(&series.values.join(" "), "  ", "  ", width));
    }
    for list in &document.lists {
        lines.push(String::new());
        lines.extend(wrap(
            &format!("{}: {}", list.title, list.name),
            "",
            "  ",
            width,
        ));
        lines.extend(wrap(&list.lines.join(", "), "  ", "  ", width));
    }
    lines.extend(words(document, width));
    lines.join("\n") + "\n"
}

fn heading(document: &Document, width: usize) -> Vec<String> {
    let mut lines = wrap(
        &format!("{}: {}", document.name, document.title),
        "",
        "    ",
        width,
    );
    let Document {
        author,
        publisher,
        year,
        suite,
        ..
    } = document;
    lines.extend(wrap(
        &format!("{author}; {publisher}, {year}"),
        "    ",
        "    ",
        width,
    ));
    let command = format!("    Repeated by: punctual run {suite}");
    lines.push(command);
    lines
}

/// What it says in words, has as pictures, claims; and what differs.
fn words(document: &Document, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut part = |title: &str, items: Vec<String>| {
        if !items.is_empty() {
            lines.push(String::new());
            lines.push(title.to_owned());
            for item in items {
                lines.extend(wrap(&item, "  - ", "    ", width));
            }
        }
    };
    let statements = document.statements.iter();
    let statement = |one: &punctual_published::Statement| format!("{}: {}", one.system, one.says);
    part("In words", statements.map(statement).collect());
    let pictures = document.pictures.iter();
    let picture = |one: &punctual_published::Picture| format!("{}: {}", one.label, one.shows);
    part(
        "As a picture only, without numbers",
        pictures.map(picture).collect(),
    );
    let claims = document.directions.iter();
    part(
        "What it says",
        claims.map(|one| one.claim.clone()).collect(),
    );
    lines.push(String::new());
    lines.push("What differs in method".to_owned());
    lines.extend(wrap(document.method.trim(), "  ", "  ", width));
    lines.extend(wrap(ABSOLUTE, "  ", "  ", width));
    lines
}

/// Cells in columns; rows and columns change places where they would be too wide.
fn grid(cells: &[Vec<String>], width: usize) -> Vec<String> {
    let lines = columns(cells);
    if lines.iter().all(|line| line.width() <= width) {
        return lines;
    }
    let count = cells.first().map_or(0, Vec::len);
    let turned: Vec<Vec<String>> = (0..count)
        .map(|at| cells.iter().map(|row| row[at].clone()).collect())
        .collect();
    columns(&turned)
}

/// The first column to the left, all others to the right.
fn columns(cells: &[Vec<String>]) -> Vec<String> {
    let count = cells.first().map_or(0, Vec::len);
    let wide = |at: usize| cells.iter().map(|row| row[at].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(wide).collect();
    let line = |row: &Vec<String>| {
        let mut line = format!("  {}{}", row[0], " ".repeat(widths[0] - row[0].width()));
        for (cell, wide) in row.iter().zip(&widths).skip(1) {
            line.push_str("  ");
            line.push_str(&" ".repeat(wide - cell.width()));
            line.push_str(cell);
        }
        line.trim_end().to_owned()
    };
    cells.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use punctual_published::documents;

    use super::*;
    use crate::fixtures;

    #[test]
    fn every_document_fits_a_terminal_with_all_its_numbers() {
        let documents = documents().unwrap();
        let text = documents_text(&documents, 80);
        for line in text.lines() {
            assert!(line.width() <= 80, "{line}");
        }
        for part in [
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
        ] {
            assert!(text.contains(part), "{part}");
        }
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
        for line in [
            "  - the real-time kernel's worst latency is the lowest of the four: holds\n",
            "  - hackbench takes longer on the real-time kernel: cannot be told here\n      hackbench \
             pipe process 1, median: rt 0.302 s (0.301–0.303 s) against none",
            "  - the real-time kernel's latency is 100 µs or less: cannot be told here: A\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let text = directions_text(&runs[..1], &documents, 80);
        let words: Vec<&str> = text.split_whitespace().collect();
        let why = "cannot be told here there is no real-time kernel among the subjects";
        assert!(words.join(" ").contains(why), "{text}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A document's table with today's subjects in the same columns.

use punctual_published::{Document, PICTURE, Table as Published, Unit};

use super::measure::{figure, rows};
use crate::matrix::{Column, Matrix};
use crate::text::time;

/// The origin of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The document.
    Published,
    /// These runs.
    Ours,
}

impl Source {
    /// Returns its mark.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Ours => "ours",
        }
    }
}

/// One kernel's figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The origin of the figures.
    pub source: Source,
    /// The kernel.
    pub name: String,
    /// Machine and year, or bench and kernel.
    pub where_from: String,
    /// A text for each column.
    pub cells: Vec<TableCell>,
}

/// A figure, or a substitute for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableCell {
    /// The text.
    pub text: String,
    /// True if there is no figure.
    pub is_gap: bool,
}

impl TableCell {
    fn of(text: String, is_gap: bool) -> Self {
        Self { text, is_gap }
    }
}

/// Published figures and ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The title.
    pub title: String,
    /// Its place in the document, and the stress under which it was made.
    pub about: String,
    /// The heads of the columns.
    pub heads: Vec<String>,
    /// The published rows, then ours.
    pub rows: Vec<Row>,
}

/// A document's table beside these runs; without runs only what was published.
pub fn table(document: &Document, published: &Published, matrix: Option<&Matrix<'_>>) -> Table {
    let mut all = theirs(document, published);
    if let Some(matrix) = matrix {
        let columns = matrix.columns.iter();
        all.extend(columns.map(|column| ours(published, matrix, column)));
    }
    let stress = match &published.ours {
        Some(load) if load != "idle" && matrix.is_some() => format!("; ours: {load}"),
        _ => String::new(),
    };
    let heads = published.columns.iter().map(|column| column.head.clone());
    Table {
        title: published.title.clone(),
        about: format!(
            "Section “{}”. Load: {}{stress}. Amount: {}.",
            published.section, published.load, published.amount
        ),
        heads: heads.collect(),
        rows: all,
    }
}

fn theirs(document: &Document, table: &Published) -> Vec<Row> {
    let hardware = match table.hardware.as_str() {
        "not told" => "machine not told",
        hardware => hardware,
    };
    let cell = |row: &punctual_published::Row, at: usize| {
        let is_gap = ["", PICTURE].contains(&row.values.get_ref()[at].as_str());
        TableCell::of(row.text(at, table.unit), is_gap)
    };
    let columns = 0..table.columns.len();
    let row = |row: &punctual_published::Row| Row {
        source: Source::Published,
        name: row.name.clone(),
        where_from: format!("{hardware}, {}", document.year),
        cells: columns.clone().map(|at| cell(row, at)).collect(),
    };
    table.rows.iter().map(row).collect()
}

fn ours(published: &Published, matrix: &Matrix<'_>, column: &Column<'_>) -> Row {
    let cell = |wanted: &punctual_published::Column| {
        let rows = rows(matrix, &wanted.measure, published.ours.as_deref());
        match figure(column, &rows, wanted.measure.statistic) {
            Ok(value) => TableCell::of(time(value, published.unit == Unit::Seconds), false),
            Err(why) => TableCell::of(why, true),
        }
    };
    Row {
        source: Source::Ours,
        name: column.name.clone(),
        where_from: place(column),
        cells: published.columns.iter().map(cell).collect(),
    }
}

/// `6.12.117+deb12-rt-amd64, virtual, 1 ns per instruction`.
fn place(column: &Column<'_>) -> String {
    let provenance = column.runs.iter().find_map(|run| run.provenance.as_ref());
    let release = provenance.map_or("kernel unknown", |found| found.release.as_str());
    let year = column.runs.first().and_then(|run| run.started.get(..4));
    let year = year.unwrap_or_default();
    match column.clock {
        Some(clock) => format!("{release}, virtual, {clock}, {year}"),
        None => format!("{release}, real time, {year}"),
    }
}

#[cfg(test)]
mod tests {
    use punctual_published::documents;

    use super::*;
    use crate::fixtures;

    #[test]
    fn published_rows_come_first_and_ours_have_the_same_columns() {
        let documents = documents().unwrap();
        let celf = &documents[4];
        let mut runs = fixtures::whole();
        for run in &mut runs {
            run.recordings[1].key.load = "celf-50".into();
        }
        let matrix = Matrix::new(&runs);
        let made = table(celf, &celf.tables[0], Some(&matrix));
        let texts = |at: usize| {
            let cells = made.rows[at].cells.iter();
            cells.map(|cell| cell.text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(texts(0), ["17388 µs", "2.11627 µs", "7.8942 µs"]);
        assert_eq!(texts(3)[0], "33.7593 µs");
        assert_eq!(
            (made.rows[3].source, made.rows[4].source),
            (Source::Published, Source::Ours)
        );
        assert_eq!(texts(4)[0], "381 µs");
        assert_eq!(texts(7)[0], "8.07 µs");
        assert!(
            made.rows[7]
                .where_from
                .contains("6.12.90-rt-amd64, virtual")
        );
        assert!(
            made.rows[0]
                .where_from
                .contains("Via Nehemiah 1 GHz, 256 MB, about 2007")
        );
        // The other load was not measured: that is no zero.
        let other = table(celf, &celf.tables[1], Some(&matrix));
        assert!(
            other.rows[4]
                .cells
                .iter()
                .all(|cell| cell.is_gap && cell.text == "not measured")
        );
        let bench = table(celf, &celf.tables[2], Some(&matrix));
        assert_eq!(bench.rows[2].cells[1].text, "0.101 s");
    }

    #[test]
    fn what_is_drawn_only_says_so() {
        let documents = documents().unwrap();
        let made = table(&documents[3], &documents[3].tables[0], None);
        assert_eq!(made.rows[0].cells[0].text, "picture only");
        assert_eq!(made.rows[0].cells[10].text, "36.8 µs");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! All numbers of a document's tables, each with its context.

use serde::Serialize;

use crate::PICTURE;
use crate::direction::Statistic;
use crate::document::{Document, Unit};

/// One published number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure<'a> {
    /// The document's short name.
    pub document: &'a str,
    /// The section that the number is in.
    pub section: &'a str,
    /// The table's name.
    pub table: &'a str,
    /// The machine.
    pub system: &'a str,
    /// The kernel, as the document names it.
    pub kernel: &'a str,
    /// The stress, in the document's words.
    pub load: &'a str,
    /// Punctual's probe.
    pub probe: &'a str,
    /// Its variant; empty for any.
    pub variant: &'a str,
    /// The figure.
    pub statistic: Statistic,
    /// The number as printed; `None` if it is only drawn.
    pub value: Option<&'a str>,
    /// Unit of the number.
    pub unit: Unit,
    /// True if the document has the number, but only as a picture.
    pub picture: bool,
    /// Excerpts of the document's text in which the number can be found.
    pub quotes: &'a [String],
}

/// All numbers, table by table; those that the document does not give are left out.
pub fn figures(document: &Document) -> Vec<Figure<'_>> {
    let mut figures = Vec::new();
    for table in &document.tables {
        for row in &table.rows {
            for (column, value) in table.columns.iter().zip(row.values.get_ref()) {
                if value.is_empty() {
                    continue;
                }
                let picture = value == PICTURE;
                figures.push(Figure {
                    document: &document.name,
                    section: &table.section,
                    table: &table.id,
                    system: &table.hardware,
                    kernel: &row.name,
                    load: &table.load,
                    probe: &column.measure.probe,
                    variant: &column.measure.variant,
                    statistic: column.measure.statistic,
                    value: (!picture).then_some(value),
                    unit: row.unit.unwrap_or(table.unit),
                    picture,
                    quotes: row.quotes.get_ref(),
                });
            }
        }
    }
    figures
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison for programs.

use serde_json::{Map, Value, json};

use super::{Cell, Comparison, Digests, Section};

/// `punctual.compare/1`: times in nanoseconds; what is missing has a reason and no number.
pub fn comparison_json(comparison: &Comparison) -> Value {
    let subjects = comparison.subjects.iter().zip(&comparison.digests);
    let subjects: Vec<Value> = subjects
        .map(|(name, digests)| {
            json!({
                "name": name,
                "digest_equal": match digests {
                    Digests::Equal => Value::Bool(true),
                    Digests::Different => Value::Bool(false),
                    Digests::First | Digests::OtherSeeds | Digests::RealTime => Value::Null,
                },
                "digest": digests.name(),
            })
        })
        .collect();
    json!({
        "schema": "punctual.compare/1",
        "base": comparison.subjects.first(),
        "subjects": subjects,
        "measurements": comparison.sections.iter().map(|one| section(comparison, one)).collect::<Vec<_>>(),
        "notes": comparison.notes,
    })
}

fn section(comparison: &Comparison, section: &Section) -> Value {
    let of_subject = |(name, cells): (&String, &Vec<Cell>)| {
        let figures = section.figures.iter().zip(cells);
        let figures: Map<String, Value> = figures
            .map(|(name, cell)| ((*name).to_owned(), value(cell)))
            .collect();
        json!({ "subject": name, "figures": figures })
    };
    let subjects = comparison.subjects.iter().zip(&section.cells);
    json!({
        "probe": section.row.probe,
        "load": section.row.load,
        "variant": section.row.variant,
        "repetition": section.row.repetition,
        "subjects": subjects.map(of_subject).collect::<Vec<_>>(),
    })
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Time { value, ratio } => json!({
            "ns": value.0,
            "ratio": ratio,
            "percent": cell.percent(),
        }),
        Cell::Word(text) => json!({ "text": text }),
        Cell::Absent(why) => json!({ "absent": why }),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison for programs.

use serde_json::{Map, Value, json};

use punctual_judge::{Comparison as Judged, Verdict};

use super::{Cell, Comparison, Digests, Section, verdict_name};

/// `punctual.compare/1`: times in nanoseconds; a gap has a reason and no number.
pub fn comparison_json(comparison: &Comparison) -> Value {
    let subjects = comparison.subjects.iter().zip(&comparison.digests);
    let subjects: Vec<Value> = subjects
        .map(|(name, digests)| {
            json!({
                "name": name,
                "digest_equal": match digests {
                    Digests::Equal => Value::Bool(true),
                    Digests::Different => Value::Bool(false),
                    _ => Value::Null,
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
        "level": comparison.rule.level,
        "effect": comparison.rule.effect,
    })
}

fn section(comparison: &Comparison, section: &Section) -> Value {
    let of_subject = |((name, cells), judged): ((&String, &Vec<Cell>), &Option<Judged>)| {
        let figures = section.figures.iter().zip(cells);
        let figures: Map<String, Value> = figures
            .map(|(name, cell)| ((*name).to_owned(), value(cell)))
            .collect();
        json!({
            "subject": name,
            "figures": figures,
            "verdict": judged.as_ref().map(verdict),
        })
    };
    let subjects = comparison.subjects.iter().zip(&section.cells);
    let subjects = subjects.zip(&section.verdicts);
    json!({
        "probe": section.row.probe,
        "load": section.row.load,
        "variant": section.row.variant,
        "repetition": section.row.repetition,
        "judged": section.figures.first().filter(|_| section.verdicts.iter().any(Option::is_some)),
        "subjects": subjects.map(of_subject).collect::<Vec<_>>(),
    })
}

/// By the leading figure, run by run; `more` are further seeds of each subject.
pub fn verdict(judged: &Judged) -> Value {
    let more = match judged.verdict {
        Verdict::NotSeparated { more } => more,
        Verdict::Undecided(few) => {
            Some(few.needed.saturating_sub(few.have.0.min(few.have.1)) as u32)
        }
        _ => None,
    };
    let bounds = judged.ratio.and_then(|ratio| ratio.bounds);
    json!({
        "verdict": verdict_name(&judged.verdict),
        "ratio": judged.ratio.map(|ratio| ratio.estimate),
        "low": bounds.map(|bounds| bounds.0),
        "high": bounds.map(|bounds| bounds.1),
        "p": judged.p,
        "more": more,
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

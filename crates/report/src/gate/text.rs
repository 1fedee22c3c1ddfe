// SPDX-License-Identifier: MIT OR Apache-2.0
//! A gate's verdict for terminals.

use punctual_judge::Difference;
use punctual_model::Nanos;

use super::{Gate, Gated, Row, Standing, Why};
use crate::compare::verdict_told;
use crate::scope::page::Other;
use crate::scope::{self, told};
use crate::text::{clean, thousands, wrap};

/// Each subject with what differs, and the verdict of all; no line longer than `width`, but
/// for tables of functions.
pub fn gate_text(gate: &Gate, width: usize) -> String {
    let mut lines = Vec::new();
    for one in &gate.subjects {
        let head = format!(
            "{}: {}; {}.",
            one.subject,
            one.standing.name(),
            one.sentence()
        );
        lines.extend(wrap(&clean(&head), "", "  ", width));
        for row in &one.rows {
            for (depth, text) in row_lines(one, row) {
                let indent = "  ".repeat(depth);
                lines.extend(wrap(
                    &clean(&text),
                    &indent,
                    &(indent.clone() + "  "),
                    width,
                ));
            }
        }
        for note in &one.notes {
            lines.extend(wrap(&clean(note), "  ", "    ", width));
        }
        lines.push(String::new());
        if let Some(why) = &one.why {
            let head = format!(
                "The worst of {}, here ({}) and in the baseline ({}):",
                one.rows[why.row].row.title(),
                why.here.0.id,
                why.there.0.id
            );
            lines.extend(wrap(&clean(&head), "", "  ", width));
            lines.extend(why_text(why, width).trim_end().lines().map(str::to_owned));
            lines.push(String::new());
        }
    }
    lines.extend(wrap(&clean(&in_all(gate)), "", "  ", width));
    lines.join("\n") + "\n"
}

/// `demo against baseline stable: worse.`
pub fn in_all(gate: &Gate) -> String {
    let standing = gate.standing().name();
    format!(
        "{} against baseline {}: {standing}.",
        gate.suite, gate.baseline
    )
}

/// A measurement's verdict, then what differs, each with its depth.
pub fn row_lines(gated: &Gated, row: &Row) -> Vec<(usize, String)> {
    let title = row.row.title();
    let judged = row
        .judged
        .as_ref()
        .map(|judged| verdict_told(judged, &gated.rule));
    let said = [row.gap.clone(), judged].into_iter().flatten();
    let said: Vec<String> = said.collect();
    let standing = row.standing.name();
    let mut lines = vec![match (row.standing, said.is_empty()) {
        (Standing::Unchanged, _) | (_, true) => (1, format!("{title}: {standing}")),
        _ => (1, format!("{title}: {standing}; {}", said.join("; "))),
    }];
    let of_seed = |(seed, found): &(u64, Difference)| {
        let told = differs(found, "the baseline");
        (2, format!("seed {seed}: {told}"))
    };
    lines.extend(row.differences.iter().map(of_seed));
    lines
}

/// `12 of 2,000 samples differ, …`, from those of `other`.
pub fn differs(found: &Difference, other: &str) -> String {
    let [differing, compared] = [found.differing, found.compared].map(thousands);
    let Some((there, here)) = &found.first else {
        let (there, here) = found.counts;
        return if there == here {
            "the samples that were kept are the same; others, or the load's work, differ".to_owned()
        } else {
            format!(
                "{} samples, where {other} has {}",
                thousands(here),
                thousands(there)
            )
        };
    };
    let first = if there.value == here.value {
        format!("{} here and there, at another moment", here.value)
    } else {
        format!("{}, where {other} has {}", here.value, there.value)
    };
    format!(
        "{differing} of {compared} samples differ, first sample {}: {first}; the middle one is \
         {}, the one that differs most {}",
        here.seq,
        longer(found.middle),
        longer(found.most)
    )
}

/// `3.61 µs longer`.
fn longer(by: Nanos) -> String {
    if by < Nanos::ZERO {
        format!("{} shorter", Nanos(-by.0))
    } else {
        format!("{by} longer")
    }
}

/// Both worst samples; where both were explained, also what differs between them.
pub fn why_text(why: &Why, width: usize) -> String {
    let ((here, own), (there, other)) = (&why.here, &why.there);
    if let (Ok(own), Ok(other)) = (own, other) {
        let (own, other) = (std::slice::from_ref(own), std::slice::from_ref(other));
        let other = Other {
            run: there,
            explained: other,
        };
        return scope::text::compared(here, own, other, width);
    }
    let line = |run: &punctual_model::Run, story| {
        let text = format!("{}, {}: {}", run.id, run.subject.name, told(story));
        wrap(&clean(&text), "", "  ", width).join("\n")
    };
    format!("{}\n{}\n", line(here, own), line(there, other))
}

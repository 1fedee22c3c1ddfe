// SPDX-License-Identifier: MIT OR Apache-2.0
//! A comparison as a table for other programs.

use std::fmt::Write as _;

use super::{Cell, Comparison, verdict_name};
use crate::csv::{field, quoted};

/// One line of text for each figure of each subject: RFC 4180, times in nanoseconds.
/// `ratio` is the time divided by the first subject's. Only the judged figure has `verdict`, the
/// ratio that it rests on, `run_by_run`, with its bounds `low` and `high`, and `p`. A field is empty
/// if nothing is known of it.
pub fn comparison_csv(comparison: &Comparison) -> String {
    let mut text =
        "probe,load,variant,figure,subject,ns,ratio,verdict,run_by_run,low,high,p,note\n"
            .to_owned();
    for section in &comparison.sections {
        let subjects = comparison.subjects.iter().zip(&section.cells);
        for ((subject, cells), judged) in subjects.zip(&section.verdicts) {
            for (number, (figure, cell)) in section.figures.iter().zip(cells).enumerate() {
                let judged = judged.as_ref().filter(|_| number == 0);
                let run_by_run = judged.and_then(|judged| judged.ratio);
                let bounds = run_by_run.and_then(|ratio| ratio.bounds);
                let (ns, ratio, note) = match cell {
                    Cell::Time { value, ratio } => (Some(value.0), *ratio, ""),
                    Cell::Word(word) => (None, None, word.as_str()),
                    Cell::Absent(why) => (None, None, why.as_str()),
                };
                let fields = [
                    quoted(&section.row.probe),
                    quoted(&section.row.load),
                    quoted(&section.row.label()),
                    quoted(figure),
                    quoted(subject),
                    field(ns),
                    field(ratio),
                    field(judged.map(|judged| verdict_name(&judged.verdict))),
                    field(run_by_run.map(|ratio| ratio.estimate)),
                    field(bounds.map(|bounds| bounds.0)),
                    field(bounds.map(|bounds| bounds.1)),
                    field(judged.and_then(|judged| judged.p)),
                    quoted(note),
                ];
                let _ = writeln!(text, "{}", fields.join(","));
            }
        }
    }
    text
}

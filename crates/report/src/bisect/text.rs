// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bisection for terminals.

use super::Bisect;
use crate::text::{clean, wrap};

/// The columns of a verdict's word.
const WORD: usize = "skipped".len();

/// The verdicts on the way, the result, and the change.
/// No line is longer than `width`, but for tables of functions.
pub fn bisect_text(bisect: &Bisect, width: usize) -> String {
    let mut lines = Vec::new();
    for demand in bisect.demands() {
        lines.extend(wrap(&clean(&demand), "", "  ", width));
    }
    let names = bisect.names();
    let tried = bisect
        .steps
        .iter()
        .map(|step| names[step.at].chars().count());
    let widest = tried.max().unwrap_or(0);
    for step in &bisect.steps {
        let name = &names[step.at];
        let head = format!("  {:WORD$}  {name:widest$}  ", step.known);
        let indent = " ".repeat(head.chars().count());
        let mut first = head.as_str();
        for said in step.sentences().into_iter().chain(step.arrivals()) {
            lines.extend(wrap(&clean(&said), first, &indent, width));
            first = &indent;
        }
    }
    lines.push(String::new());
    lines.extend(wrap(
        &clean(&format!("{}.", bisect.sentence())),
        "",
        "  ",
        width,
    ));
    lines.extend(wrap(&format!("{}.", bisect.effort()), "", "  ", width));
    if let Some((asked, why)) = &bisect.why {
        lines.push(String::new());
        lines.extend(wrap(&clean(&bisect.asked_told(asked)), "", "  ", width));
        lines.extend(why.text(width).trim_end().lines().map(str::to_owned));
    }
    lines.join("\n") + "\n"
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts in the kernel's test protocol, KTAP 1
//! (<https://docs.kernel.org/dev-tools/ktap.html>).

use punctual_judge::{Fitness, Judgement};

use super::{about, title};
use crate::text::clean;

/// A line for each answer, the reason before it. What is undecided is `not ok`, as an error:
/// who reads only `ok` must not take it for a pass.
pub fn ktap(judgement: &Judgement) -> String {
    let mut lines = vec![
        "KTAP version 1".to_owned(),
        format!("1..{}", judgement.answers.len()),
    ];
    for (answer, number) in judgement.answers.iter().zip(1..) {
        let name = plain(&format!("{}: {}", title(&answer.limit), about(answer)));
        lines.push(format!("# {}", plain(&answer.reason())));
        lines.push(match answer.fitness {
            Fitness::Fit => format!("ok {number} {name}"),
            Fitness::Unfit => format!("not ok {number} {name}"),
            Fitness::Undecided => format!("not ok {number} {name} # ERROR undecided"),
        });
    }
    lines.join("\n") + "\n"
}

/// On one line, without what begins a directive.
fn plain(text: &str) -> String {
    clean(text).replace('#', "no.")
}

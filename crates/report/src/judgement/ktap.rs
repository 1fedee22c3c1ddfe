// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts in the kernel's test protocol, KTAP 1
//! (<https://docs.kernel.org/dev-tools/ktap.html>).

use super::{Case, Outcome};
use crate::text::clean;

/// A line for each case, the reason before it. What is undecided is `not ok`, as an error:
/// who reads only `ok` must not take it for a pass.
pub fn ktap(cases: &[Case]) -> String {
    let mut lines = vec!["KTAP version 1".to_owned(), format!("1..{}", cases.len())];
    for (case, number) in cases.iter().zip(1..) {
        let name = plain(&case.name);
        lines.push(format!("# {}", plain(&case.reason)));
        lines.push(match case.outcome {
            Outcome::Pass => format!("ok {number} {name}"),
            Outcome::Fail => format!("not ok {number} {name}"),
            Outcome::Undecided | Outcome::Missing => {
                format!("not ok {number} {name} # ERROR undecided")
            }
        });
    }
    lines.join("\n") + "\n"
}

/// On one line, without what begins a directive.
fn plain(text: &str) -> String {
    clean(text).replace('#', "no.")
}

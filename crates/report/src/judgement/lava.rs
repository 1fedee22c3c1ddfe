// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts as signals that LAVA takes from a console
//! (<https://docs.lavasoftware.org/lava/lava_test_shell.html>).

use super::names::{distinct, word};
use super::{Case, Outcome};

/// A signal for each case; the measured time, where one is judged.
pub fn lava(cases: &[Case]) -> String {
    let name = |case: &Case| {
        let mut name = vec![word(&case.subject)];
        name.extend(case.parts.clone());
        name.join("-")
    };
    let names = distinct(cases.iter().map(name));
    let line = |(case, name): (&Case, &String)| {
        let result = match case.outcome {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::Undecided | Outcome::Missing => "unknown",
        };
        let measured = case.measured.map_or(String::new(), |time| {
            format!(" UNITS=ns MEASUREMENT={}", time.0)
        });
        format!("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={name} RESULT={result}{measured}>\n")
    };
    cases.iter().zip(&names).map(line).collect()
}

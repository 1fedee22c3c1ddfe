// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts as a table for other programs.

use std::fmt::Write as _;

use super::{Case, Outcome};
use crate::csv::{field, quoted};

/// One line for each verdict: RFC 4180, times in nanoseconds.
/// `verdict` is `pass`, `fail`, `undecided` or `missing`, which was not measured. A field is empty
/// if nothing is known of it. `figure` says what `measured_ns` is; `time_ns` is the whole measured
/// time.
pub fn cases_csv(cases: &[Case]) -> String {
    let mut text =
        "subject,probe,load,variant,name,demand,verdict,figure,measured_ns,runs,samples,\
                    time_ns,reason,excluded,decides\n"
            .to_owned();
    for case in cases {
        let verdict = match case.outcome {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::Undecided => "undecided",
            Outcome::Missing => "missing",
        };
        let [probe, load, variant] = &case.key;
        let fields = [
            quoted(&case.subject),
            quoted(probe),
            quoted(load),
            quoted(variant),
            quoted(&case.name),
            quoted(&case.demand),
            verdict.to_owned(),
            field(case.measured.map(|_| quoted(&case.figure))),
            field(case.measured.map(|time| time.0)),
            case.runs.to_string(),
            field(case.samples),
            field(case.time.map(|time| time.0)),
            quoted(&case.reason),
            quoted(case.excluded.as_deref().unwrap_or_default()),
            quoted(case.more.as_deref().unwrap_or_default()),
        ];
        let _ = writeln!(text, "{}", fields.join(","));
    }
    text
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts as `JUnit` XML, which most systems of continuous integration read.

use std::fmt::Write as _;

use punctual_model::Nanos;

use super::names::word;
use super::{Case, Outcome};

use crate::text::is_command;

/// A suite for each subject, a case for each verdict.
/// An undecided one is an error, not skipped: most readers take skipped ones for good.
pub fn junit(cases: &[Case]) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    let mut subjects: Vec<&str> = Vec::new();
    for case in cases {
        if !subjects.contains(&case.subject.as_str()) {
            subjects.push(&case.subject);
        }
    }
    for subject in subjects {
        let own = cases.iter().filter(|one| one.subject == subject);
        text += &suite(subject, &own.collect::<Vec<_>>());
    }
    text + "</testsuites>\n"
}

fn suite(subject: &str, cases: &[&Case]) -> String {
    let count = |outcome| cases.iter().filter(|one| one.outcome == outcome).count();
    let failures = count(Outcome::Fail);
    let errors = count(Outcome::Undecided) + count(Outcome::Missing);
    let (name, tests) = (escaped(subject), cases.len());
    let times = cases.iter().filter_map(|one| one.time);
    // Of no times, `sum` makes -0.
    let seconds = times.fold(0.0, |sum, time| sum + time.as_secs_f64());
    let mut text = format!(
        "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" \
         errors=\"{errors}\" skipped=\"0\" time=\"{seconds:.3}\">\n    <properties>\n"
    );
    for case in cases {
        let name = escaped(&case.parts.join("."));
        let mut property = |of: &str, value: String| {
            _ = writeln!(
                text,
                "      <property name=\"{name}.{of}\" value=\"{value}\"/>"
            );
        };
        property("runs", case.runs.to_string());
        if let Some(samples) = case.samples {
            property("samples", samples.to_string());
        }
        if let Some(time) = case.measured {
            property(&format!("{}_ns", word(&case.figure)), time.0.to_string());
        }
    }
    text += "    </properties>\n";
    text.extend(cases.iter().map(|one| testcase(one)));
    text + "  </testsuite>\n"
}

fn testcase(case: &Case) -> String {
    let class = escaped(&case.parts.join("."));
    let name = escaped(&case.name);
    let seconds = case.time.map_or(0.0, Nanos::as_secs_f64);
    let reason = escaped(&case.reason);
    let told = match case.outcome {
        Outcome::Pass => {
            let told = case
                .excluded
                .as_ref()
                .map_or(String::new(), |told| format!("; {}", escaped(told)));
            format!("<system-out>{reason}{told}</system-out>")
        }
        Outcome::Fail => {
            let kind = case.failure;
            format!("<failure type=\"{kind}\" message=\"{reason}\"/>")
        }
        Outcome::Undecided | Outcome::Missing => {
            let more = escaped(case.more.as_deref().unwrap_or_default());
            format!("<error type=\"undecided\" message=\"{reason}\">{more}</error>")
        }
    };
    format!(
        "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{seconds:.3}\">\n      \
         {told}\n    </testcase>\n"
    )
}

/// Text as XML takes it between quotation marks.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no place for the last two at all.
            c if is_command(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

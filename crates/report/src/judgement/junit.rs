// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts as `JUnit` XML, which most systems of continuous integration read.

use std::fmt::Write as _;

use punctual_judge::{Answer, Fitness, Judgement};

use super::names::{measured, parts};
use super::{about, title};
use crate::text::is_command;

/// A suite for each subject, a case for each answer. What is undecided is an error, not
/// skipped: most readers take what was skipped for good.
pub fn junit(judgement: &Judgement) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    let mut subjects: Vec<&str> = Vec::new();
    for answer in &judgement.answers {
        if !subjects.contains(&answer.subject.as_str()) {
            subjects.push(&answer.subject);
        }
    }
    for subject in subjects {
        let own = judgement
            .answers
            .iter()
            .filter(|one| one.subject == subject);
        text += &suite(subject, &own.collect::<Vec<_>>());
    }
    text + "</testsuites>\n"
}

fn suite(subject: &str, answers: &[&Answer]) -> String {
    let count = |fitness| answers.iter().filter(|one| one.fitness == fitness).count();
    let (failures, errors) = (count(Fitness::Unfit), count(Fitness::Undecided));
    let (name, tests) = (escaped(subject), answers.len());
    let seconds: f64 = answers.iter().map(|one| one.time.as_secs_f64()).sum();
    let mut text = format!(
        "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" \
         errors=\"{errors}\" skipped=\"0\" time=\"{seconds:.3}\">\n    <properties>\n"
    );
    for answer in answers {
        let name = escaped(&parts(answer).join("."));
        let mut property = |of: &str, value: String| {
            _ = writeln!(
                text,
                "      <property name=\"{name}.{of}\" value=\"{value}\"/>"
            );
        };
        property("runs", answer.runs.to_string());
        property("samples", answer.samples.to_string());
        if let Some(time) = measured(answer) {
            property("worst_ns", time.0.to_string());
        }
    }
    text += "    </properties>\n";
    text.extend(answers.iter().map(|answer| case(answer)));
    text + "  </testsuite>\n"
}

fn case(answer: &Answer) -> String {
    let class = escaped(&parts(answer).join("."));
    let name = escaped(&format!("{}: {}", title(&answer.limit), about(answer)));
    let seconds = answer.time.as_secs_f64();
    let reason = escaped(&answer.reason());
    let told = match (answer.fitness, answer.confidence()) {
        (Fitness::Fit, told) => {
            let told = told.map_or(String::new(), |told| format!("; {}", escaped(&told)));
            format!("<system-out>{reason}{told}</system-out>")
        }
        (Fitness::Unfit, _) => format!("<failure type=\"unfit\" message=\"{reason}\"/>"),
        (Fitness::Undecided, _) => {
            let more = answer
                .more
                .map_or(String::new(), |more| format!("to decide: {more}"));
            let more = escaped(&more);
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
            c if is_command(c) => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

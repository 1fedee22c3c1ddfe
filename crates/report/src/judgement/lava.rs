// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts as signals that LAVA takes from a console
//! (<https://docs.lavasoftware.org/lava/lava_test_shell.html>).

use punctual_judge::{Answer, Fitness, Judgement};

use super::names::{distinct, measured, parts, word};

/// A signal for each answer; the worst sample as its measurement, where it is judged.
pub fn lava(judgement: &Judgement) -> String {
    let name = |answer: &Answer| {
        let mut name = vec![word(&answer.subject)];
        name.extend(parts(answer));
        name.join("-")
    };
    let names = distinct(judgement.answers.iter().map(name));
    let line = |(answer, name): (&Answer, &String)| {
        let result = match answer.fitness {
            Fitness::Fit => "pass",
            Fitness::Unfit => "fail",
            Fitness::Undecided => "unknown",
        };
        let measured = measured(answer).map_or(String::new(), |time| {
            format!(" UNITS=ns MEASUREMENT={}", time.0)
        });
        format!("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={name} RESULT={result}{measured}>\n")
    };
    judgement.answers.iter().zip(&names).map(line).collect()
}

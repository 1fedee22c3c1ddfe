// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts as `KernelCI`'s database takes them: KCIDB 5.3
//! (<https://github.com/kernelci/kcidb-io>).

use punctual_judge::{Answer, Fitness, Judgement, Why};
use punctual_model::Run;
use serde_json::{Value, json};

use super::names::{distinct, measured, parts, word};

/// What the database takes of an explanation.
const EXCERPT: usize = 16_384;

/// A test for each answer; the checkout and the build are whoever sends it to add.
pub fn kcidb(judgement: &Judgement, runs: &[Run]) -> Value {
    let names = distinct(judgement.answers.iter().map(name));
    let tests = judgement.answers.iter().zip(&names);
    let tests = tests.map(|(answer, name)| test(answer, name, runs));
    json!({
        "version": { "major": 5, "minor": 3 },
        "checkouts": [],
        "builds": [],
        "tests": tests.collect::<Vec<_>>(),
    })
}

/// The subject and the path of a test.
fn name(answer: &Answer) -> String {
    let path = parts(answer);
    let path: Vec<String> = path.iter().map(|part| part.replace('.', "_")).collect();
    format!("{}:punctual.{}", word(&answer.subject), path.join("."))
}

fn test(answer: &Answer, name: &str, runs: &[Run]) -> Value {
    let (subject, path) = name.split_once(':').unwrap_or_default();
    // Subjects of one name have more behind it.
    let of_subject = |run: &&Run| answer.subject.starts_with(run.subject.name.as_str());
    let run = runs.iter().find(of_subject);
    let started = run.map(|run| run.started.clone());
    let build = run.map_or(subject, |run| &run.subject.kernel);
    let mut test = json!({
        "id": format!("punctual:{}:{name}", started.as_deref().unwrap_or_default()),
        "origin": "punctual",
        "build_id": format!("punctual:{build}"),
        "path": path,
        "status": status(answer),
        "comment": answer.limit.demand.to_string(),
        "log_excerpt": answer.reason().chars().take(EXCERPT / 4).collect::<String>(),
        "misc": { "subject": answer.subject, "runs": answer.runs, "samples": answer.samples },
    });
    if let Some(started) = started {
        test["start_time"] = started.into();
    }
    if let Some(time) = measured(answer) {
        let number = json!({ "value": time.as_secs_f64(), "unit": "s", "prefix": "metric" });
        test["number"] = number;
    }
    test
}

/// What was measured and does not suffice is done without a conclusion; what was not
/// measured is missing.
fn status(answer: &Answer) -> &'static str {
    match (answer.fitness, &answer.why) {
        (Fitness::Fit, _) => "PASS",
        (Fitness::Unfit, _) => "FAIL",
        (Fitness::Undecided, Why::Gap(_)) => "MISS",
        (Fitness::Undecided, _) => "DONE",
    }
}

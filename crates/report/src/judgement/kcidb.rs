// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts as `KernelCI`'s database takes them: KCIDB 5.3
//! (<https://github.com/kernelci/kcidb-io>).

use punctual_model::Run;
use serde_json::{Value, json};

use super::names::{distinct, word};
use super::{Case, Outcome};

/// The most of an explanation that the database takes.
const EXCERPT: usize = 16_384;

/// A test for each case; the sender has to add the checkout and the build.
pub fn kcidb(cases: &[Case], runs: &[Run]) -> Value {
    let names = distinct(cases.iter().map(name));
    let tests = cases.iter().zip(&names);
    let tests = tests.map(|(case, name)| test(case, name, runs));
    json!({
        "version": { "major": 5, "minor": 3 },
        "checkouts": [],
        "builds": [],
        "tests": tests.collect::<Vec<_>>(),
    })
}

/// The subject and the path of a test.
fn name(case: &Case) -> String {
    let path: Vec<String> = case
        .parts
        .iter()
        .map(|part| part.replace('.', "_"))
        .collect();
    format!("{}:punctual.{}", word(&case.subject), path.join("."))
}

fn test(case: &Case, name: &str, runs: &[Run]) -> Value {
    let (subject, path) = name.split_once(':').unwrap_or_default();
    let run = run_of(case, runs);
    let started = run.map(|run| run.started.clone());
    let build = run.map_or(subject, |run| &run.subject.kernel);
    let mut test = json!({
        "id": format!("punctual:{}:{name}", started.as_deref().unwrap_or_default()),
        "origin": "punctual",
        "build_id": format!("punctual:{build}"),
        "path": path,
        "status": status(case),
        "comment": case.demand,
        "log_excerpt": case.reason.chars().take(EXCERPT / 4).collect::<String>(),
        "misc": { "subject": case.subject, "runs": case.runs, "samples": case.samples },
    });
    if let Some(started) = started {
        test["start_time"] = started.into();
    }
    if let Some(time) = case.measured {
        let number = json!({ "value": time.as_secs_f64(), "unit": "s", "prefix": "metric" });
        test["number"] = number;
    }
    test
}

/// The first run of a case's subject.
fn run_of<'a>(case: &Case, runs: &'a [Run]) -> Option<&'a Run> {
    let is_called = |run: &&Run| case.subject == run.subject.name;
    // Subjects of one name have more behind it, their kernels first.
    let is_followed = |run: &Run, by: &str| {
        let rest = case.subject.strip_prefix(run.subject.name.as_str());
        rest.is_some_and(|rest| rest.starts_with(by))
    };
    let is_of_kernel = |run: &&Run| is_followed(run, &format!(" ({}, ", run.subject.kernel));
    let is_one_of = |run: &&Run| is_followed(run, " (");
    let called = runs.iter().find(is_called);
    let called = called.or_else(|| runs.iter().find(is_of_kernel));
    called.or_else(|| runs.iter().find(is_one_of))
}

/// Measurements that do not suffice are done without a conclusion; cases not measured are missing.
fn status(case: &Case) -> &'static str {
    match case.outcome {
        Outcome::Pass => "PASS",
        Outcome::Fail => "FAIL",
        Outcome::Missing => "MISS",
        Outcome::Undecided => "DONE",
    }
}

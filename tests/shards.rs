// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measurement that is too long for one run: shared by several, interrupted, resumed.

use std::process::Stdio;

use punctual_tests::{Scratch, assert_has, digests, runs, until};
use serde_json::Value;

/// 130 s of virtual time, most of it idle: three runs.
const SUITE: &str = r#"
[[step]]
probe = "footprint"
[[step]]
probe = "timer"
samples = 10
full = 13_000
interval_us = 10_000
"#;

fn timer(run: &Value) -> &Value {
    let recordings = run["recordings"].as_array().unwrap();
    let mut timers = recordings.iter().filter(|r| r["probe"] == "timer");
    timers.next().unwrap()
}

fn ids(scratch: &Scratch) -> Vec<(String, String)> {
    let list: Value = serde_json::from_str(&scratch.run(&["runs", "--json"]).stdout).unwrap();
    let word = |run: &Value, name: &str| run[name].as_str().unwrap().to_owned();
    let runs = list["runs"].as_array().unwrap().iter();
    runs.map(|run| (word(run, "id"), word(run, "state")))
        .collect()
}

#[test]
fn the_full_size_is_measured_in_several_runs_and_shown_as_one() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("long", &["rt"], SUITE);
    let default = scratch.measure(&[suite]);
    assert_eq!(timer(&default[0])["count"], 10);
    let whole = &scratch.measure(&[suite, "--scale", "1"])[0];
    assert_eq!(timer(whole)["count"], 13_000);
    assert_eq!(whole["recordings"].as_array().unwrap().len(), 2);
    assert_eq!(whole["shards"], 3);
    assert_eq!(ids(&scratch).len(), 4);
}

#[test]
fn what_an_interruption_left_is_taken_from_the_store() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("long", &["rt"], SUITE);
    let arguments = [
        "run", suite, "--scale", "1", "--json", "--jobs", "1", "--resume",
    ];
    let mut command = scratch.punctual(&arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = child.unwrap();
    // The first run has ended and the second one has not.
    until("the second run has begun", || {
        ids(&scratch).iter().any(|(id, _)| id == "r2")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let left = ids(&scratch);
    assert_eq!(
        left.last().unwrap(),
        &("r1".to_owned(), "finished".to_owned())
    );
    assert_eq!(left[0].1, "interrupted", "{left:?}");

    let ended = scratch.run(&arguments);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert_has(&ended.stderr, &["r1 is taken from the store"]);
    assert_eq!(
        ids(&scratch).len(),
        4,
        "one kept, one interrupted, two made"
    );
    let resumed = runs(&ended.stdout);
    assert_eq!(timer(&resumed[0])["count"], 13_000);
    // As if nothing had happened.
    let afresh = scratch.measure(&[suite, "--scale", "1"]);
    assert_eq!(digests(&resumed), digests(&afresh));
}

#[test]
fn a_seed_for_each_of_several_runs_cannot_be_given() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("long", &["rt"], SUITE);
    let ended = scratch.run(&["run", suite, "--scale", "1", "--seeds", "1..3"]);
    assert_eq!(ended.status, Some(2));
    assert_has(&ended.stderr, &["--seed "]);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program as the subject: its cycles are those that it sees of itself.

use std::process::Command;

use punctual_tests::{Scratch, assert_has, markdown};
use serde_json::Value;

const PERIOD: i64 = 1_000_000;
const LONG_ONE: usize = 60;
const LOCKED_ONE: usize = 120;
/// From the switch to a thread to its own first reading of the clock, and from its last one to
/// the switch away, at most: a part of two system calls.
const EDGE: i64 = 5_000;

/// `tests/app/loop.c`, compiled.
fn control_loop(scratch: &Scratch) -> String {
    let program = scratch.path("loop").display().to_string();
    let source = markdown::root().join("tests/app/loop.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-o", &program]).arg(source);
    assert!(compiler.status().expect("a compiler").success());
    program
}

/// The samples of the recording of this variant.
fn samples(run: &Value, variant: &str) -> Vec<i64> {
    let all = run["recordings"].as_array().expect("recordings").iter();
    let found = all.clone().find(|one| one["variant"] == variant);
    let samples = found.unwrap_or_else(|| panic!("{variant}: {run:#}"))["samples"].as_array();
    let value = |sample: &Value| sample[1].as_i64().expect("a number");
    samples.expect("samples").iter().map(value).collect()
}

/// What the loop printed of each of its cycles: due, begin, end.
fn printed(run: &Value) -> Vec<[i64; 3]> {
    let output = run["recordings"][0]["output"].as_str().expect("output");
    let cycle = |line: &str| -> [i64; 3] {
        let words = line.split(' ').skip(1);
        let numbers: Vec<i64> = words.map(|word| word.parse().expect("a number")).collect();
        numbers.try_into().expect("three")
    };
    output.lines().map(cycle).collect()
}

#[test]
fn the_cycles_of_a_loop_are_those_that_it_sees_of_itself() {
    let scratch = Scratch::new();
    let program = control_loop(&scratch);
    let measure = |work: &str, options: &[&str]| {
        let command = format!("{program} {work}");
        let words = ["--program", &command, "--subject", "rt", "-p", "period_us=1000"];
        scratch.measure(&[&words[..], options].concat()).remove(0)
    };
    let run = measure("2500000", &["-p", "threads=['loop']"]);
    let told = printed(&run);
    let [lateness, execution, response] =
        ["loop lateness", "loop execution", "loop response"].map(|name| samples(&run, name));
    // The loop has no wait for the two periods that begin while it works, nor for the third,
    // whose begin is past when it asks for it: its timer expires at once.
    assert_eq!(told.len(), 200);
    let own: Vec<&[i64; 3]> = told
        .iter()
        .enumerate()
        .filter(|(number, _)| !(LONG_ONE + 1..=LONG_ONE + 2).contains(number))
        .map(|(_, cycle)| cycle)
        .collect();
    assert_eq!(lateness.len(), own.len(), "{lateness:?}");
    for (number, [due, begin, end]) in own.iter().enumerate() {
        let late = (begin - due) - lateness[number];
        assert!((0..EDGE).contains(&late), "cycle {number}: {late}");
        let longer = response[number] - (end - due);
        if number != LONG_ONE {
            assert!((0..EDGE).contains(&longer), "cycle {number}: {longer}");
        }
        assert!(execution[number] <= response[number]);
    }
    let _ = PERIOD;
}

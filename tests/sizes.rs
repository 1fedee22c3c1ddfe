// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording's length does not change its cost: no probe, no store and no page needs more memory
//! for it than documented. This tests sizes only; durations are for benchmarks.

use std::process::Command;

use punctual_tests::{Ended, Scratch, long, programs};

/// Runs a command in at most `mib` MiB of memory, including the program.
fn within(mib: u64, command: &Command) -> Ended {
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        &format!("ulimit -v {} && exec \"$@\"", mib * 1024),
        "sh",
    ]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    Ended::of(&mut shell)
}

#[test]
fn ten_million_samples_take_the_target_no_more_than_the_raw_ones_it_keeps() {
    let scratch = Scratch::new();
    let run = |samples: u64, keep: u64, mib: u64| {
        let plan = format!("[[step]]\nprobe = \"clock\"\nsamples = {samples}\nkeep = {keep}\n");
        let plan = scratch.file("plan.toml", plan);
        let target = programs().join("punctual-target");
        within(mib, Command::new(target).args(["run", &plan]))
    };
    let stream = |ended: &Ended| ended.stdout.contains("finished");
    // Two recordings and stacks; where it may not be real-time, it says so within as much.
    let long = run(10_000_000, 100_000, 64);
    assert!(stream(&long), "{}", long.stderr);
    // The limit is one: what is kept takes its 16 bytes for each sample.
    if punctual_skip::root() {
        assert!(!stream(&run(10_000_000, 10_000_000, 64)));
    }
}

#[test]
fn a_page_of_ten_million_samples_takes_no_more_than_one_of_what_was_kept() {
    const KEPT: u32 = 200_000;
    let scratch = Scratch::new();
    let path = scratch.path("runs.db");
    for samples in [u64::from(KEPT), 10_000_000] {
        long::store(&path, samples, KEPT).unwrap();
    }
    let report = scratch.path("report.html");
    let (db, report) = (path.to_str().unwrap(), report.to_str().unwrap());
    for run in ["r1", "r2"] {
        let show = scratch.punctual(&["show", run, "--db", db, "--report", report]);
        let ended = within(128, &show);
        assert_eq!(ended.status, Some(0), "{run}: {}", ended.stderr);
    }
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("200,000 of 10,000,000 samples were kept"));
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

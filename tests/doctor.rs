// SPDX-License-Identifier: MIT OR Apache-2.0
//! The doctor's trials on real kernels: one with a known large benefit, and one without any.

use std::fs;

use punctual_tests::{Scratch, assert_has};
use serde_json::Value;

/// A complete configuration, judging by its head and its end.
const CONFIG: &str = "#\n# Automatically generated file; DO NOT EDIT.\n#\n\
                      CONFIG_RT_GROUP_SCHED=y\n# Kernel hacking\n# end of Kernel hacking\n";

/// The files of a machine without PREEMPT_RT, and without the boot argument threadirqs.
fn machine(scratch: &Scratch) -> String {
    let root = scratch.path("machine");
    for (file, text) in [
        (
            "proc/version",
            "Linux version 6.12.1 (x) #1 SMP PREEMPT_DYNAMIC x",
        ),
        ("proc/cmdline", "quiet"),
        ("proc/sys/kernel/osrelease", "6.12.1"),
        ("proc/sys/kernel/sched_rt_runtime_us", "950000"),
        ("proc/sys/kernel/sched_rt_period_us", "1000000"),
        ("boot/config-6.12.1", CONFIG),
    ] {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root.to_str().unwrap().to_owned()
}

/// The trials of these checks on that machine.
fn trials(scratch: &Scratch, more: &[&str]) -> (Vec<Value>, String) {
    let root = machine(scratch);
    let words = ["doctor", "--root", &root, "--measure", "--quiet"];
    let ended = scratch.run(&[&words, more, &["--json"]].concat());
    assert_eq!(ended.stderr, "", "{more:?}");
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    // What was measured is taken from the store; told once why is enough.
    let text = scratch
        .run(&[&words, more, &["--no-explain"]].concat())
        .stdout;
    (json["trials"].as_array().unwrap().clone(), text)
}

fn figure(trial: &Value, name: &str) -> (i64, i64) {
    let figures = trial["figures"].as_array().unwrap();
    let figure = figures.iter().find(|one| one["name"] == name).expect(name);
    let at = |side: &str| figure[side].as_i64().unwrap();
    (at("without_ns"), at("with_ns"))
}

/// PREEMPT_RT removes the stock kernel's delay under stress, and the path of that delay.
#[test]
fn preempt_rt_buys_what_it_is_for() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let (trials, text) = trials(
        &scratch,
        &["--only", "preempt-rt", "--only", "rt-throttling"],
    );
    assert_eq!(trials.len(), 1, "throttling is not tried: {trials:?}");
    let trial = &trials[0];
    assert_eq!(trial["check"], "preempt-rt");
    assert_eq!(trial["verdict"]["verdict"], "lower", "{trial}");
    let (without, with) = figure(trial, "worst");
    assert!(without > 100_000 && with < 20_000, "{trial}");
    let told = trial["why"]["without"]["told"].as_str().unwrap();
    assert_has(told, &["ran", "`"]);
    assert_has(
        &text,
        &[
            "debian-6.12-rt (preempt-rt)\n  timer, stress, cpu0, debian-6.12\n",
            "it buys this: of 5 seeds",
            "Of these it tells nothing:\n  rt-throttling: it stops only threads that spin",
        ],
    );
}

/// On PREEMPT_RT all interrupts have threads already, so the argument changes nothing.
#[test]
fn what_a_kernel_does_anyhow_buys_nothing() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let options = [
        "--only",
        "threadirqs",
        "--kernel",
        "debian-6.12-rt",
        "--load",
        "idle",
    ];
    let (trials, text) = trials(&scratch, &options);
    let trial = &trials[0];
    assert_eq!(
        (&trial["option"], &trial["seeds"]),
        (&"threadirqs".into(), &5.into())
    );
    let verdict = trial["verdict"]["verdict"].as_str().unwrap();
    assert!(["identical", "not separated"].contains(&verdict), "{trial}");
    assert!(trial["why"].is_null(), "{trial}");
    assert!(!text.contains("it buys this"), "{text}");
}

#[test]
fn an_unknown_kernel_is_found_before_anything_is_measured() {
    let scratch = Scratch::new();
    let root = machine(&scratch);
    let ended = scratch.run(&[
        "doctor",
        "--root",
        &root,
        "--measure",
        "--quiet",
        "--only",
        "preempt-rt",
        "--only",
        "threadirqs",
        "--kernel",
        "nosuch",
    ]);
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
    assert_has(&ended.stderr, &["there is no kernel \"nosuch\""]);
    let runs = scratch.run(&["runs"]);
    assert_has(&runs.stderr, &["there are no runs yet"]);
}

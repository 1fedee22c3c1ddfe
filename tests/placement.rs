// SPDX-License-Identifier: MIT OR Apache-2.0
//! A load runs on the CPUs that a step names, and on no others.

use punctual_tests::{KERNELS, Scratch, has_fair_qemu};
use serde_json::Value;

/// A thread that never sleeps sees everything that shares its CPU, and nothing else.
#[test]
fn a_load_takes_the_time_of_the_cpu_that_it_is_bound_to() {
    if !has_fair_qemu() {
        return;
    }
    let scratch = Scratch::new();
    let step = |place| {
        format!(
            "[[step]]\nprobe = \"noise\"\nload = \"stress on {place}\"\ncpus = [1]\n\
             duration_ms = 100\n"
        )
    };
    let steps: String = ["0", "1", "housekeeping"].map(step).concat();
    let suite = format!("name = \"placed\"\nsummary = \"\"\n{steps}");
    let suite = &scratch.file("placed.toml", suite);
    let run = scratch
        .measure(&[suite, "--kernel", KERNELS[1], "--cpus", "2"])
        .remove(0);
    assert_eq!(run["unsupported"], Value::Array(Vec::new()));
    let taken = |number: usize| {
        let one = &run["recordings"][number];
        assert_eq!(one["variant"], "cpu1");
        one["findings"]["interrupted_share"]["ratio"]
            .as_f64()
            .unwrap()
    };
    assert!(
        taken(0) < 0.1 && taken(1) > 0.4,
        "{} {}",
        taken(0),
        taken(1)
    );
    assert!(taken(2) < 0.1, "{}", taken(2));
    assert_eq!(run["recordings"][1]["load"], "stress on 1");
    for (step, cpus) in [(0, "0"), (1, "1"), (2, "0")] {
        for work in run["steps"][step]["work"].as_array().unwrap() {
            assert_eq!(work["cpus"], cpus, "{work}");
        }
    }
}

#[test]
fn a_place_that_there_is_not_is_refused_before_anything_is_measured() {
    let scratch = Scratch::new();
    let refused = |load: &str, more: &[&str]| {
        let words = [
            "run", "--quiet", "--probe", "timer", "--kernel", KERNELS[0], "--load", load,
        ];
        let ended = scratch.run(&[&words[..], more].concat());
        assert_ne!(ended.status, Some(0), "{load}");
        assert!(
            !ended.stdout.contains("samples"),
            "{load}: {}",
            ended.stdout
        );
        let told = ended.stdout + &ended.stderr;
        told.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let misspelt = refused("stress on houskeeping", &[]);
    assert!(
        misspelt.contains("expected housekeeping, all, or CPUs"),
        "{misspelt}"
    );
    let unknown = refused("stres on 0", &[]);
    assert!(unknown.contains("stress"), "{unknown}");
    let absent = refused("stress on 5", &[]);
    assert!(
        absent.contains("the CPUs 5: expected some of 0"),
        "{absent}"
    );
    let none = refused("stress on housekeeping", &["-p", "cpus=[0]"]);
    assert!(none.contains("no housekeeping CPU"), "{none}");
    let unnamed = refused("stress on housekeeping", &[]);
    let expected = "expected them in `cpus`, found none";
    assert!(unnamed.contains(expected), "{unnamed}");
}

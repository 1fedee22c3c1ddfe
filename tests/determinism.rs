// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same subject, suite and seed give the same digest, whatever the host does.

use punctual_tests::{EVERY_PROBE, HostLoad, Scratch, digests, sized};
use serde_json::Value;

/// Idle, because QEMU's main loop and its CPU meet most often where the guest often sleeps;
/// under stress, because there everything else happens.
const SUITE: &str = r#"
[[step]]
probe = "timer"
samples = 500
[[step]]
probe = "timer"
load = "stress"
samples = 60
[[step]]
probe = "hackbench"
ipc = "pipe"
groups = 1
loops = 5
"#;

#[test]
fn the_host_has_no_influence() {
    let subjects = sized(&["none", "rt"][..], &["none", "full", "rt"]);
    let scratch = Scratch::new();
    let suite = &scratch.suite("small", subjects, SUITE);
    let expected = digests(&scratch.measure(&[suite]));
    assert_eq!(expected.len(), subjects.len());
    assert_ne!(expected[0].1, expected[1].1);
    {
        let _load = HostLoad::new();
        assert_eq!(digests(&scratch.measure(&[suite])), expected, "under load");
    }
    let one_at_a_time = scratch.measure(&[suite, "--jobs", "1"]);
    assert_eq!(digests(&one_at_a_time), expected, "one at a time");
    let cold = scratch.measure(&[suite, "--cold"]);
    assert_eq!(digests(&cold), expected, "without snapshot");
    let elsewhere = Scratch::with_new_cache();
    let suite = &elsewhere.suite("small", subjects, SUITE);
    let anew = elsewhere.measure(&[suite]);
    assert_eq!(
        digests(&anew),
        expected,
        "snapshot made anew, in another directory"
    );
}

#[test]
fn everything_that_is_measured_is_the_same_not_only_the_digest() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("small", &["none", "full", "rt"], SUITE);
    let recordings = || -> Vec<Value> {
        let runs = scratch.measure(&[suite, "--subject", "rt"]);
        runs.iter().map(|run| run["recordings"].clone()).collect()
    };
    assert_eq!(recordings(), recordings());
}

#[test]
fn another_seed_is_another_interleaving() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("small", &["none", "full", "rt"], SUITE);
    let runs = scratch.measure(&[suite, "--subject", "none", "--seeds", "1..3"]);
    let mut digests: Vec<String> = digests(&runs)
        .into_iter()
        .map(|(_, digest)| digest)
        .collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 3);
}

#[test]
fn a_slower_virtual_cpu_takes_longer() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("small", &["none", "full", "rt"], SUITE);
    let mean = |ns: &str| {
        let runs = scratch.measure(&[suite, "--subject", "rt", "--ns-per-insn", ns]);
        assert_eq!(runs[0]["ns_per_insn"].to_string(), ns);
        runs[0]["recordings"][0]["mean"].as_f64().unwrap()
    };
    // Code paths take four times as long, give or take what depends on time itself.
    let ratio = mean("4") / mean("1");
    assert!((3.5..4.5).contains(&ratio), "{ratio}");
}

/// What these steps need.
const NEEDS: &str = r#"
modules = ["backfire", "pulse", "stall"]
programs = ["/usr/bin/convert"]
files = ["/usr/lib/x86_64-linux-gnu/ImageMagick-*/modules-*/coders/pnm.*"]
"#;

/// At its full size it is the suite `all`.
#[test]
fn every_probe_runs_and_is_the_same_again() {
    let scratch = Scratch::new();
    let small = scratch.suite("every", &["none", "rt"], &format!("{NEEDS}{EVERY_PROBE}"));
    let suite = sized(small.as_str(), "all");
    let subjects = ["--subject", "none", "--subject", "rt"];
    let first = scratch.measure(&[&[suite], &subjects[..]].concat());
    for run in &first {
        assert_eq!(
            run["unsupported"].as_array().unwrap().len(),
            0,
            "{}",
            run["unsupported"]
        );
    }
    let listed = scratch.run(&["list", "probes", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    for probe in listed["probes"].as_array().unwrap() {
        let name = &probe["name"];
        let measured = |run: &Value| {
            let recordings = run["recordings"].as_array().unwrap();
            recordings
                .iter()
                .any(|recording| recording["probe"] == *name)
        };
        assert!(name == "program" || first.iter().all(measured), "{name}");
    }
    // The subject `rt`, or both.
    let (subjects, at) = sized((&subjects[2..], 1), (&subjects[..], 0));
    let again = scratch.measure(&[&[suite, "--cold"], subjects].concat());
    assert_eq!(digests(&again), digests(&first[at..]));
}

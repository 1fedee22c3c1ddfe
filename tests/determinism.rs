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

/// The measurements of each subject: all samples, and their digest.
fn measured(runs: &[Value]) -> Vec<[Value; 3]> {
    let told = |run: &Value| {
        let name = run["subject"]["name"].clone();
        [name, run["digest"].clone(), run["recordings"].clone()]
    };
    runs.iter().map(told).collect()
}

/// Only the seed decides: another one is another interleaving.
#[test]
fn the_host_has_no_influence_and_the_seed_has() {
    let subjects = sized(&["rt"][..], &["none", "full", "rt"]);
    let scratch = Scratch::new();
    let suite = &scratch.suite("small", subjects, SUITE);
    let expected = measured(&scratch.measure(&[suite]));
    let check = |runs: &[Value], how: &str| {
        assert!(measured(runs) == expected, "{how}: {:?}", digests(runs));
    };
    {
        let _load = HostLoad::new();
        check(
            &scratch.measure(&[suite, "--jobs", "1"]),
            "one at a time, under load",
        );
    }
    let elsewhere = Scratch::with_new_cache();
    let suite = &elsewhere.suite("small", subjects, SUITE);
    let measure = |more: &[&str]| elsewhere.measure(&[&[suite.as_str()], more].concat());
    check(
        &measure(&["--cold"]),
        "without snapshot, in another directory",
    );
    check(&measure(&[]), "snapshot made anew");
    let other = measured(&scratch.measure(&[suite, "--seed", "2"]));
    let mut all: Vec<String> = [expected, other]
        .concat()
        .iter()
        .map(|[_, digest, _]| digest.to_string())
        .collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 2 * subjects.len(), "{all:?}");
}

#[test]
fn a_slower_virtual_cpu_takes_longer() {
    let scratch = Scratch::new();
    let suite = &scratch.suite(
        "idle",
        &["rt"],
        "[[step]]\nprobe = \"timer\"\nsamples = 100\n",
    );
    let mean = |ns: &str, more: &[&str]| {
        let runs = scratch.measure(&[&[suite, "--ns-per-insn", ns], more].concat());
        assert_eq!(runs[0]["ns_per_insn"].to_string(), ns);
        runs[0]["recordings"][0]["mean"].as_f64().unwrap()
    };
    // Code paths take twice as long, give or take what depends on time itself. Guests of this
    // size are measured elsewhere, too: one boot less.
    let ratio = mean("2", &["--memory", "256"]) / mean("1", &[]);
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
}

/// The modules, programs and files that these steps need.
const NEEDS: &str = r#"
modules = ["backfire", "pulse", "stall"]
programs = ["/usr/bin/convert"]
files = ["/usr/lib/x86_64-linux-gnu/ImageMagick-*/modules-*/coders/pnm.*"]
"#;

/// At its full size this is the suite `all`.
#[test]
fn every_probe_runs_and_is_the_same_again() {
    let scratch = Scratch::new();
    let small = scratch.suite("every", &["none", "rt"], &format!("{NEEDS}{EVERY_PROBE}"));
    let suite = sized(small.as_str(), "all");
    let both = ["--subject", "none", "--subject", "rt"];
    let subjects = sized(&both[2..], &both);
    let first = scratch.measure_all_but_ticks(&[&[suite], subjects].concat());
    let listed = scratch.run(&["list", "probes", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    for probe in listed["probes"].as_array().unwrap() {
        let name = &probe["name"];
        let measured = |run: &Value| {
            let recordings = run["recordings"].as_array().unwrap();
            recordings
                .iter()
                .any(|recording| recording["probe"] == *name)
                || run["unsupported"][0]["probe"] == *name
        };
        // These need a program, or a guest with a wire: `app::`, `wire::`, `drop_ins::`.
        let elsewhere = ["app", "packet", "program"].map(Value::from);
        assert!(
            elsewhere.contains(name) || first.iter().all(measured),
            "{name}"
        );
    }
    let again = sized(&[][..], &["--cold"]);
    let again = scratch.measure(&[&[suite], subjects, again].concat());
    assert_eq!(digests(&again), digests(&first));
}

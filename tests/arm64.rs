// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests with an arm64 kernel: as repeatable as those with one for x86-64, and clear about
//! what they lack.
//!
//! `PUNCTUAL_REPEATS` is how often each is measured again under load, from its snapshot.

use std::collections::BTreeSet;

use punctual_tests::explained::{check_sum, explain, samples};
use punctual_tests::{EVERY_PROBE, HostLoad, Scratch, assert_has, digests, number, programs, runs};
use serde_json::Value;

const KERNELS: [&str; 2] = ["debian-6.12-arm64", "debian-6.12-rt-arm64"];

const SUITE: &str = r#"
name = "small"
summary = "idle, loaded, throughput"
[[step]]
probe = "timer"
samples = 500
[[step]]
probe = "timer"
load = "stress"
samples = 50
[[step]]
probe = "hackbench"
ipc = "pipe"
groups = 1
loops = 20
"#;

/// Whether there are QEMU and a target for arm64; if not, the test is skipped.
fn is_ready() -> bool {
    let built = programs().join("punctual-target-aarch64").is_file();
    if !built {
        punctual_skip::skip("no target for arm64 is built: ./build --targets aarch64");
    }
    built && punctual_skip::program("qemu-system-aarch64")
}

#[test]
fn the_host_has_no_influence_on_an_arm64_guest_either() {
    if !is_ready() {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.file("small.toml", SUITE);
    let measure_on = |kernels: &[&str], more: &[&str]| {
        let kernels = kernels.iter().flat_map(|kernel| ["--kernel", kernel]);
        let words: Vec<&str> = [suite.as_str()].into_iter().chain(kernels).collect();
        scratch.measure(&[&words, more].concat())
    };
    let measure = |more: &[&str]| measure_on(&KERNELS, more);
    let runs = measure(&[]);
    for run in &runs {
        let machine = &run["machine"];
        assert_has(
            machine["qemu_command"].as_str().unwrap(),
            &["qemu-system-aarch64", "virt-7.2", "cntfrq=1000000000"],
        );
    }
    let expected = digests(&runs);
    assert_ne!(expected[0].1, expected[1].1);
    if punctual_skip::long("PUNCTUAL_LONG") {
        let one_at_a_time = digests(&measure(&["--jobs", "1"]));
        assert_eq!(one_at_a_time, expected, "one at a time");
    }
    let other_seed = digests(&measure(&["--seeds", "2"]));
    assert_ne!(other_seed[1].1, expected[1].1);
    let _load = HostLoad::new();
    for repeat in 0..number("PUNCTUAL_REPEATS", 0) {
        assert_eq!(digests(&measure(&[])), expected, "{repeat}, under load");
    }
    let cold = digests(&measure_on(&KERNELS[1..], &["--cold"]));
    assert_eq!(cold, expected[1..], "cold, under load");
}

#[test]
fn every_probe_is_measured_or_says_why_not() {
    if !is_ready() {
        return;
    }
    let scratch = Scratch::new();
    // The image is one that `convert` makes, which is a program of this machine.
    let modules = "modules = [\"backfire\", \"pulse\", \"stall\"]\n";
    let suite = &scratch.suite("every", &[], &format!("{modules}{EVERY_PROBE}"));
    let ended = scratch.run(&["run", "--quiet", "--json", suite, "--kernel", KERNELS[1]]);
    // Not all of it could be measured.
    assert_eq!(ended.status, Some(3), "{}", ended.stderr);
    let run = &runs(&ended.stdout)[0];
    assert_eq!(run["state"], "finished", "{}", run["error"]);
    let provenance = &run["provenance"];
    assert_eq!(provenance["preemption"], "rt");
    assert_has(
        provenance["release"].as_str().unwrap(),
        &["6.12.", "-rt-arm64"],
    );
    let probes = |list: &Value| -> BTreeSet<String> {
        let all = list.as_array().unwrap().iter();
        all.map(|one| one["probe"].as_str().unwrap().to_owned())
            .collect()
    };
    let unsupported = &run["unsupported"];
    let lacking = ["image", "irq", "irqrate", "noise", "signal"].map(str::to_owned);
    assert_eq!(
        probes(unsupported),
        BTreeSet::from(lacking),
        "{unsupported}"
    );
    let why = unsupported.to_string();
    assert_has(
        &why,
        &[
            "an arm64 processor does not tell a program that it was interrupted",
            "Punctual's modules are not built for arm64",
        ],
    );
    let listed = scratch.run(&["list", "probes", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let measured = probes(&run["recordings"]);
    for probe in listed["probes"].as_array().unwrap() {
        let name = probe["name"].as_str().unwrap();
        let told = measured.contains(name) || probes(unsupported).contains(name);
        let elsewhere = ["app", "packet", "program"].contains(&name);
        assert!(told || elsewhere, "{name}");
    }
    let recordings = run["recordings"].as_array().unwrap();
    let of = |probe: &str, variant: &str| {
        let is_it = |one: &&Value| one["probe"] == probe && one["variant"] == variant;
        recordings.iter().find(is_it).unwrap()
    };
    // A thousand instructions are 1,000 ns, to the last one.
    let least = |variant: &str| of("clock", variant)["min"].as_i64().unwrap();
    assert_eq!(least("stamp, 1000 instructions") - least("stamp"), 1_000);
    // On RT each interrupt that can have a thread has one.
    let threaded = &of("kthreads", "")["findings"]["interrupts_threaded"];
    assert_eq!(threaded["answer"]["yes"], true, "{threaded}");
    // What the kernel does not tell apart is unknown.
    let footprint = &of("footprint", "")["findings"];
    assert!(
        !footprint["kernel_bss_bytes"]["absent"].is_null(),
        "{footprint}"
    );
}

/// The parts of each sample add up to it, nothing of what was followed had to be mended, and a
/// late one has a culprit.
#[test]
fn the_worst_samples_of_arm64_are_explained_to_the_nanosecond() {
    if !is_ready() {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.file("small.toml", SUITE);
    scratch.measure(&[suite, "--kernel", KERNELS[0]]);
    let told = explain(&scratch, &["r1", "--probe", "timer", "--worst", "50"]);
    assert_eq!(samples(&told).len(), 50);
    for sample in samples(&told) {
        check_sum(sample);
        let story = &sample["story"];
        assert!(!story["notes"].to_string().contains("mended"), "{sample:#}");
        let late = story["culprit"].is_u64() || sample["late_ns"].as_i64() < Some(15_000);
        assert!(late, "late, and nothing stood in the way: {sample:#}");
    }
}

#[test]
fn what_needs_x86_is_refused_with_the_reason() {
    if !is_ready() {
        return;
    }
    let scratch = Scratch::new();
    let probe = ["--probe", "timer", "-p", "samples=20"];
    let kernel = ["--kernel", KERNELS[1]];
    scratch.measure(&[&probe[..], &kernel].concat());
    for command in ["survey", "bound"] {
        let ended = scratch.run(&[command, "r1"]);
        assert_eq!(ended.status, Some(1), "{command}: {}", ended.stderr);
        assert_has(&ended.stderr, &["x86-64 only", "arm64"]);
    }
    let run = [&["run", "--cpus", "2"], &probe[..], &kernel].concat();
    let ended = scratch.run(&run);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert_has(&ended.stderr, &["expected"]);
    let mut without = scratch.punctual(&[&["run"], &probe[..], &kernel].concat());
    let without = without.env("PUNCTUAL_TARGET_AARCH64", "/no/such/target");
    let ended = punctual_tests::Ended::of(without);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert_has(
        &ended.stderr,
        &["/no/such/target", "./build --targets aarch64"],
    );
}

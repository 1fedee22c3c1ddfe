// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scope: samples between two readings of the clock, by two threads or by one.

use std::collections::{BTreeMap, BTreeSet};

use punctual_tests::explained::{check_sum, explain, number, samples};
use punctual_tests::{Scratch, finding, runs};
use serde_json::Value;

const STALL: &str = "modules = [\"backfire\", \"pulse\", \"stall\"]\n";

/// A path that a stall falls into, the parameters of its probe, and the moment of the stall, in ns
/// from the begin of the round or burst. Between the paths of `semaphore` and `switch` other time
/// passes: if the stall fell into that, an earlier moment of the turn is tried.
type Stalled = (&'static str, &'static str, i64);

const STALLS: [Stalled; 9] = [
    ("eventfd reader", "samples = 30", 8_000),
    ("mutex acquire first", "ticks = 3", 9_000),
    ("mutex release first", "ticks = 3", 17_000),
    ("semaphore acquire first", "ticks = 3", 98_000),
    ("semaphore release first", "ticks = 3", 950_000),
    ("switch N=2", "threads = [2]\nticks = 3", 500_000),
    ("switch N=10", "threads = [10]\nticks = 3", 500_000),
    ("tick", "duration_ms = 200", 1_000_000),
    ("noise cpu0", "duration_ms = 200", 1_000_000),
];
const MOMENTS: i64 = 6;
const APART: i64 = 1_150;

/// The step with a stall at one of the moments.
fn step((path, parameters, first): &Stalled, turn: i64) -> Option<String> {
    let probe = path.split(' ').next()?;
    // Of these nobody knows beforehand which sample it will be.
    let sample = if ["tick", "noise"].contains(&probe) {
        0
    } else {
        2
    };
    let moment = first - turn * APART;
    Some(format!(
        "[[step]]\nprobe = \"{probe}\"\n{parameters}\nstall = {{ kind = \"irqs-off\", \
         us = 300, sample = {sample}, offset_ns = {moment} }}\n"
    ))
}

#[test]
fn a_stall_within_a_path_is_named() {
    let scratch = Scratch::new();
    let mut found: BTreeSet<(String, String)> = BTreeSet::new();
    let is_found = |found: &BTreeSet<(String, String)>, path: &str| {
        let on = |subject: &str| found.contains(&(subject.to_owned(), path.to_owned()));
        on("full") && on("rt")
    };
    for turn in 0..MOMENTS {
        let open = STALLS.iter().filter(|stalled| !is_found(&found, stalled.0));
        let steps: String = open.filter_map(|stalled| step(stalled, turn)).collect();
        if steps.is_empty() {
            break;
        }
        let suite = &scratch.suite("known", &["full", "rt"], &format!("{STALL}{steps}"));
        // A step may be unsupported, which the status tells.
        let ended = scratch.run(&["run", suite, "--quiet", "--json", "--raw", "--jobs", "1"]);
        for run in runs(&ended.stdout) {
            assert_eq!(run["state"], "finished", "{}", ended.stderr);
            let subject = run["subject"]["name"].as_str().unwrap();
            let paths = check_stalls(&scratch, &run).into_iter();
            found.extend(paths.map(|path| (subject.to_owned(), path)));
        }
    }
    for stalled in &STALLS {
        assert!(is_found(&found, stalled.0), "{}: {found:?}", stalled.0);
    }
}

/// Checks that each sample that a stall fell into is explained by it; returns the paths.
fn check_stalls(scratch: &Scratch, run: &Value) -> Vec<String> {
    let recordings = run["recordings"].as_array().unwrap().iter();
    let stalled = recordings.filter(|one| one["findings"]["stalled_sample"].is_object());
    let stalled: Vec<&Value> = stalled.collect();
    if stalled.is_empty() {
        return Vec::new();
    }
    let worst = stalled.len().to_string();
    let explained = explain(scratch, &[run["id"].as_str().unwrap(), "--worst", &worst]);
    let check = |recording: &&Value| {
        let is_it = |sample: &&Value| {
            ["step", "variant"]
                .iter()
                .all(|name| sample[*name] == recording[*name])
                && number(&sample["seq"]) == finding(recording, "stalled_sample")
        };
        let sample = samples(&explained).iter().find(is_it);
        let sample = sample.unwrap_or_else(|| panic!("{recording:#}: {explained:#}"));
        check_sum(sample);
        check_stall(
            sample,
            finding(recording, "stall_end") - finding(recording, "stall_start"),
        );
        let word = |name: &str| recording[name].as_str().unwrap();
        // The second of two steps of a probe has a number.
        let variant = word("variant").split(" (").next().unwrap();
        // A stall that the clock tick falls into is a long tick.
        match word("probe") {
            "tick" => "tick".to_owned(),
            probe => format!("{probe} {variant}"),
        }
    };
    stalled.iter().map(check).collect()
}

/// Checks a stalled sample; `told` is the length of the stall by its own account.
fn check_stall(sample: &Value, told: i64) {
    let story = &sample["story"];
    let culprit = story["culprit"].as_u64();
    let culprit = culprit.unwrap_or_else(|| panic!("{sample:#}"));
    let culprit = &story["parts"][culprit as usize];
    assert_eq!(culprit["cause"], "interrupt", "{sample:#}");
    assert_eq!(
        culprit["main"]["function"], "stall_irqs_off [stall]",
        "{sample:#}"
    );
    let whole = number(&culprit["main"]["whole_ns"]);
    assert!(
        (told..told + 500).contains(&whole),
        "{whole} of {told}: {sample:#}"
    );
}

const PLAIN: &str = "[[step]]\nprobe = \"eventfd\"\nsamples = 100\n\
    [[step]]\nprobe = \"mutex\"\nticks = 1\n\
    [[step]]\nprobe = \"semaphore\"\nticks = 1\norders = [\"rising\"]\n\
    [[step]]\nprobe = \"switch\"\nthreads = [2, 10]\nticks = 1\n\
    [[step]]\nprobe = \"inversion\"\nrounds = 20\n\
    [[step]]\nprobe = \"tick\"\nduration_ms = 410\n";

#[test]
fn the_parts_of_each_sample_add_up_and_what_they_are_is_known() {
    let scratch = Scratch::new();
    let suite = &scratch.suite("plain", &["full", "rt"], &format!("{STALL}{PLAIN}"));
    for run in scratch.measure_all_but_ticks(&[suite, "--jobs", "1"]) {
        let is_refused = run["unsupported"][0]["probe"] == "tick";
        let id = run["id"].as_str().unwrap();
        let explained = explain(&scratch, &[id, "--worst", "10000"]);
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for sample in samples(&explained) {
            check_sum(sample);
            assert_eq!(sample["story"]["notes"], Value::Array(vec![]), "{sample:#}");
            check_stages(sample);
            let word = |name: &str| sample[name].as_str().unwrap();
            let path = format!("{} {}", word("probe"), word("variant"));
            if word("probe") == "inversion" {
                check_inversion(sample, word("variant"));
            }
            *counts.entry(path).or_default() += 1;
        }
        let mut all: BTreeMap<String, i64> = BTreeMap::new();
        for one in run["recordings"].as_array().unwrap() {
            let word = |name: &str| one[name].as_str().unwrap();
            let path = format!("{} {}", word("probe"), word("variant"));
            *all.entry(path).or_default() += number(&one["count"]);
        }
        all.retain(|_, count| *count > 0);
        assert_eq!(counts, all);
        assert!(
            counts["eventfd reader"] == 100
                && counts["mutex release"] > 100
                && counts
                    .get("tick tick")
                    .map_or(is_refused, |count| *count >= 100),
            "{counts:?}"
        );
    }
}

/// Checks the stages. A handover is a call, the way back of another thread, and its reading of the
/// clock; a gap is the time between leaving user space and coming back.
fn check_stages(sample: &Value) {
    let parts = sample["story"]["parts"].as_array().unwrap();
    let of = |name: &str| -> Vec<&str> {
        let words = parts.iter().map(|part| &part[name]);
        words.map(|word| word.as_str().unwrap()).collect()
    };
    let mut stages = of("stage");
    stages.dedup();
    let is_gap = sample["probe"] == "tick";
    if is_gap && stages[0] == "return" {
        // The interrupt came with the first instruction behind the reading of the clock.
        assert_eq!(of("cause")[0], "interrupt", "{sample:#}");
        stages.insert(0, "interrupt");
    }
    let first = if is_gap { "interrupt" } else { "call" };
    assert_eq!(stages, [first, "return", "sample"], "{sample:#}");
    if !is_gap {
        let threads = of("thread");
        assert_eq!(threads[0], "punctual-target (begins)", "{sample:#}");
        assert_eq!(
            threads[threads.len() - 1],
            "punctual-target (ends)",
            "{sample:#}"
        );
    }
}

/// Checks that the medium thread works for 500 µs, including the moment between in which it is
/// woken and no longer waits for the CPU; with a remedy it does not run.
fn check_inversion(sample: &Value, variant: &str) {
    let story = &sample["story"];
    let parts = story["parts"].as_array().unwrap();
    let other = parts
        .iter()
        .filter(|part| part["cause"] == "another thread");
    let other: i64 = other.map(|part| number(&part["length_ns"])).sum();
    let interrupts = parts
        .iter()
        .filter(|part| ["interrupt", "soft interrupt"].contains(&part["cause"].as_str().unwrap()));
    let interrupts: i64 = interrupts.map(|part| number(&part["length_ns"])).sum();
    if variant.starts_with("none") {
        let all = other + interrupts;
        assert!((500_000..510_000).contains(&all), "{all}: {sample:#}");
        assert!(story["culprit"].is_u64(), "{sample:#}");
    } else {
        // A helper runs, too, to give back what it owns; medium would run longer.
        let has_helpers = variant.contains("chain") || variant.contains("two");
        let most = if has_helpers { 50_000 } else { 0 };
        assert!(other <= most, "{other}: {sample:#}");
    }
}

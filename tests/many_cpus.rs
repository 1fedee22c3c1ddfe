// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests with several CPUs: as repeatable as those with one.
//!
//! They need a QEMU from 8.1 on: the first along the PATH, or that of `tools/other-qemu`.
//! `PUNCTUAL_REPEATS` is the number of times that each is measured again, from its snapshot.

use punctual_tests::{HostLoad, KERNELS, Scratch, digests, has_fair_qemu, number, sized};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

/// All CPUs idle, all under load, and threads that wake one another across CPUs.
pub const SUITE: &str = r#"
name = "many"
summary = "idle, loaded, across CPUs"
[[step]]
probe = "timer"
samples = 30
[[step]]
probe = "timer"
load = "stress"
samples = 30
[[step]]
probe = "wake"
samples = 3
by = ["futex", "pipe"]
"#;

#[test]
fn the_host_has_no_influence_on_several_cpus_either() {
    if !has_fair_qemu() {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.file("many.toml", SUITE);
    let rt = &KERNELS[1..];
    for (cpus, kernels) in sized(&[("2", rt)][..], &[("2", &KERNELS[..]), ("4", rt)]) {
        let measure = |more: &[&'static str]| {
            let kernels = kernels.iter().flat_map(|kernel| ["--kernel", kernel]);
            let words = [suite.as_str(), "--cpus", *cpus].into_iter().chain(kernels);
            scratch.measure(&words.chain(more.iter().copied()).collect::<Vec<_>>())
        };
        let runs = measure(&[]);
        if *cpus == "2" {
            runs.iter()
                .for_each(every_cpu_is_measured_and_wakes_every_other);
        }
        let expected = digests(&runs);
        let load = HostLoad::new();
        let cold = on_one_cpu(|| digests(&measure(&["--cold"])));
        assert_eq!(
            cold, expected,
            "{cpus} CPUs, without snapshot, on a busy CPU"
        );
        drop(load);
        for repeat in 0..number("PUNCTUAL_REPEATS", 0) {
            let again = if repeat % 2 == 0 {
                let _load = HostLoad::new();
                digests(&measure(&[]))
            } else {
                on_one_cpu(|| digests(&measure(&[])))
            };
            assert_eq!(again, expected, "{cpus} CPUs, {repeat}");
        }
    }
    // What is known of one CPU only is said, and nothing is bounded wrongly.
    let ended = scratch.run(&["bound", "r1"]);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("2 CPUs"), "{}", ended.stderr);
}

pub fn every_cpu_is_measured_and_wakes_every_other(run: &Value) {
    assert_eq!(run["machine"]["cpus"], 2);
    assert_eq!(run["machine"]["turn_us"], 10);
    let recordings = run["recordings"].as_array().unwrap();
    let key = |recording: &Value| {
        let word = |name: &str| recording[name].as_str().unwrap().to_owned();
        format!("{} {} {}", word("probe"), word("load"), word("variant"))
    };
    let found: Vec<String> = recordings.iter().map(key).collect();
    let mut expected = Vec::new();
    for load in ["idle", "stress"] {
        expected.extend([0, 1].map(|cpu| format!("timer {load} cpu{cpu}")));
    }
    for means in ["futex", "pipe"] {
        let pairs = ["cpu0 to cpu0", "cpu0 to cpu1", "cpu1 to cpu0"];
        expected.extend(pairs.map(|pair| format!("wake idle {means}, {pair}")));
    }
    assert_eq!(found, expected);
    assert!(recordings.iter().all(|recording| recording["missed"] == 0));
}

/// Runs `measure` with one CPU of the host for everything that this thread starts.
pub fn on_one_cpu<T>(measure: impl FnOnce() -> T) -> T {
    let all = sched_getaffinity(None).expect("this thread's CPUs");
    let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu));
    let mut one = CpuSet::new();
    one.set(first.expect("a CPU"));
    sched_setaffinity(None, &one).expect("one of them");
    let measured = measure();
    sched_setaffinity(None, &all).expect("all of them");
    measured
}

/// Both wake a thread on the same CPU by an eventfd; apart from that they do not do quite the same.
#[test]
fn on_one_cpu_wake_is_what_eventfd_measures() {
    let scratch = Scratch::new();
    let suite = "name = \"one\"\nsummary = \"\"\n[[step]]\nprobe = \"eventfd\"\nsamples = 50\n\
                 [[step]]\nprobe = \"wake\"\nsamples = 50\nby = [\"eventfd\"]\n";
    let suite = &scratch.file("one.toml", suite);
    for kernel in KERNELS {
        let run = scratch.measure(&[suite, "--kernel", kernel]).remove(0);
        let median = |number: usize| {
            let median = run["recordings"][number]["quantiles"]["0.5"].as_i64();
            median.expect("a median")
        };
        let apart = (median(0) - median(1)).abs();
        assert!(apart <= 100, "{kernel}: {} and {}", median(0), median(1));
    }
}

#[test]
fn a_turn_of_another_length_is_another_machine() {
    if !punctual_skip::long("PUNCTUAL_LONG") || !has_fair_qemu() {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.file("many.toml", SUITE);
    let measure = |turn| {
        let words = [
            suite,
            "--probe",
            "wake",
            "--cpus",
            "2",
            "--kernel",
            KERNELS[1],
            "--turn-us",
            turn,
        ];
        let run = scratch.measure(&words).remove(0);
        (run["machine"]["turn_us"].clone(), run["digest"].clone())
    };
    let ((ten, long), (five, short)) = (measure("10"), measure("5"));
    assert_eq!((ten, five), (10.into(), 5.into()));
    assert_ne!(long, short);
}

#[test]
fn how_many_cpus_is_a_number_from_one_to_eight() {
    let scratch = Scratch::new();
    let suite = &scratch.file("many.toml", SUITE);
    for (cpus, word) in [("9", "1 to 8"), ("0-1", "--bench host"), ("0", "1 to 8")] {
        let ended = scratch.run(&["run", suite, "--kernel", KERNELS[0], "--cpus", cpus]);
        assert_eq!(ended.status, Some(2), "{cpus}: {}", ended.stderr);
        assert!(ended.stderr.contains(word), "{cpus}: {}", ended.stderr);
    }
    let many = &scratch.file(
        "nine.toml",
        SUITE.replacen("summary", "cpus = 9\nsummary", 1),
    );
    let ended = scratch.run(&["run", many, "--kernel", KERNELS[0]]);
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("found 9"), "{}", ended.stderr);
}

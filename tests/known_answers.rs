// SPDX-License-Identifier: MIT OR Apache-2.0
//! Punctual's probes against the programs that everybody knows, in the same guest.

use punctual_tests::{KERNELS, Scratch};
use serde_json::Value;

/// As many executions of each are compared; each seed gives another interleaving.
const SEEDS: &str = "1..6";

/// Whether two programs measure the same, from one figure of each per seed: their means are
/// `close`, or they differ by no more than chance. Six figures of one kind all lie above
/// six others of the same kind once in 924 times.
fn agree(ours: &[f64], theirs: &[f64], close: f64) -> bool {
    let mean = |figures: &[f64]| figures.iter().sum::<f64>() / figures.len() as f64;
    let above = |these: &[f64], those: &[f64]| {
        let highest = those.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        these.iter().all(|figure| *figure > highest)
    };
    assert!(!ours.is_empty() && ours.len() == theirs.len());
    let separate = above(ours, theirs) || above(theirs, ours);
    (mean(ours) - mean(theirs)).abs() <= close || !separate
}

#[test]
fn figures_that_chance_does_not_explain_do_not_agree() {
    assert!(agree(&[10.0, 11.0], &[10.5, 12.0], 0.1));
    assert!(agree(&[10.0, 11.0], &[12.0, 13.0], 2.0));
    assert!(!agree(&[10.0, 11.0], &[12.0, 13.0], 1.9));
    assert!(!agree(&[12.0, 13.0], &[10.0, 11.0], 1.9));
}

fn number(text: &str, after: &str) -> f64 {
    let rest = text
        .split(after)
        .nth(1)
        .unwrap_or_else(|| panic!("no {after} in {text}"));
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

/// Both, idle and under the same load.
const CYCLICTEST: &str = r#"
name = "cyclictest"
summary = "our timer and cyclictest, same period, priority and load"
programs = ["cyclictest"]
[[step]]
probe = "timer"
interval_us = 997
priority = 80
samples = 3000
[[step]]
probe = "program"
run = ["cyclictest", "-q", "-N", "-m", "-t1", "-a0", "-p80", "-i997", "-l3000"]
[[step]]
probe = "timer"
load = "stress"
interval_us = 997
priority = 80
samples = 3000
[[step]]
probe = "program"
load = "stress"
run = ["cyclictest", "-q", "-N", "-m", "-t1", "-a0", "-p80", "-i997", "-l3000"]
"#;

/// One of the figures that both give.
struct Figure {
    ours: &'static str,
    theirs: &'static str,
}

const FIGURES: [Figure; 3] = [
    Figure {
        ours: "min",
        theirs: "Min:",
    },
    Figure {
        ours: "mean",
        theirs: "Avg:",
    },
    Figure {
        ours: "max",
        theirs: "Max:",
    },
];

#[test]
fn timer_agrees_with_cyclictest() {
    let scratch = Scratch::new();
    let suite = &scratch.file("cyclictest.toml", CYCLICTEST);
    for kernel in KERNELS {
        let runs = scratch.measure(&[suite, "--kernel", kernel, "--seeds", SEEDS]);
        for (load, step) in [("idle", 0), ("stress", 2)] {
            for figure in FIGURES {
                let recordings = |step: usize| runs.iter().map(move |run| &run["recordings"][step]);
                let ours: Vec<f64> = recordings(step)
                    .map(|recording| recording[figure.ours].as_f64().unwrap())
                    .collect();
                let theirs: Vec<f64> = recordings(step + 1)
                    .map(|recording| number(recording["output"].as_str().unwrap(), figure.theirs))
                    .collect();
                let what = format!("{kernel} {load} {}: {ours:?}, {theirs:?}", figure.ours);
                println!("{what}");
                assert!(agree(&ours, &theirs, 2_000.0), "{what}");
            }
        }
    }
}

/// On PREEMPT_RT one execution takes up to twice as long as another.
#[test]
fn hackbench_agrees_with_that_of_rt_tests() {
    const SUITE: &str = r#"
        name = "hackbench"
        summary = "our hackbench and that of rt-tests"
        programs = ["hackbench"]
        [[step]]
        probe = "hackbench"
        ipc = "IPC"
        groups = 1
        loops = 50
        samples = 8
        [[step]]
        probe = "program"
        run = ["hackbench", "-g1", "-l50" OPTION]
        samples = 8
    "#;
    let scratch = Scratch::new();
    for (ipc, option) in [("pipe", ", \"-p\""), ("socket", "")] {
        let suite = SUITE.replace("IPC", ipc).replace(" OPTION", option);
        let suite = &scratch.file("hackbench.toml", suite);
        for kernel in KERNELS {
            let runs = scratch.measure(&[suite, "--kernel", kernel, "--seeds", SEEDS]);
            let ours: Vec<f64> = runs
                .iter()
                .map(|run| run["recordings"][0]["mean"].as_f64().unwrap() / 1e9)
                .collect();
            let theirs: Vec<f64> = runs.iter().map(mean_of_times).collect();
            let close = 0.1 * theirs.iter().sum::<f64>() / theirs.len() as f64;
            let what = format!("{kernel} {ipc}: {ours:.3?} s, theirs {theirs:.3?} s");
            println!("{what}");
            assert!(agree(&ours, &theirs, close), "{what}");
        }
    }
}

/// The mean of the seconds that rt-tests' hackbench prints, once for each execution.
fn mean_of_times(run: &Value) -> f64 {
    let output = run["recordings"][1]["output"].as_str().unwrap();
    let times: Vec<f64> = output
        .lines()
        .filter_map(|line| line.strip_prefix("Time: "))
        .map(|time| time.trim().parse().unwrap())
        .collect();
    assert_eq!(times.len(), 8, "{output}");
    times.iter().sum::<f64>() / times.len() as f64
}

/// The control must fail, or a pass would prove nothing.
#[test]
fn priority_inheritance_prevents_inversion_and_no_protocol_does_not() {
    const SUITE: &str = r#"
        name = "inversion"
        summary = "priority inversion, as the VUB paper has it"
        [[step]]
        probe = "inversion"
        rounds = 20
        work_us = 500
    "#;
    let scratch = Scratch::new();
    let suite = &scratch.file("inversion.toml", SUITE);
    let kernels = ["--kernel", "debian-6.12", "--kernel", "debian-6.12-rt"];
    for run in scratch.measure(&[&[suite.as_str()], &kernels[..]].concat()) {
        let kernel = &run["subject"]["kernel"];
        for (recording, expected) in run["recordings"].as_array().unwrap().iter().zip([
            ("inherit", true),
            ("none", false),
            ("protect", true),
        ]) {
            let (variant, passed) = expected;
            assert_eq!(recording["variant"], variant, "{kernel}");
            let result = &recording["findings"]["result"]["verdict"];
            assert_eq!(result["passed"], passed, "{kernel} {variant}: {result}");
            assert_eq!(result["expected"], passed, "{kernel} {variant}: {result}");
            // The control waits for all of the medium thread's work, the others for none.
            let min = recording["min"].as_i64().unwrap();
            assert_eq!(
                min > 500_000,
                variant == "none",
                "{kernel} {variant}: {min} ns"
            );
        }
    }
}

/// What is added to the handler is added to the shortest interval at which none is lost.
#[test]
fn a_longer_handler_moves_the_highest_interrupt_rate_by_its_length() {
    const STEP: &str = "[[step]]\nprobe = \"irqrate\"\nbursts = [1000]\nhandler_ns = ";
    let scratch = Scratch::new();
    let suite = format!(
        "name = \"rate\"\nsummary = \"\"\nmodules = [\"pulse\"]\n{STEP}20000\n{STEP}40000\n"
    );
    let suite = &scratch.file("rate.toml", suite);
    let kernels = ["--kernel", "debian-6.12", "--kernel", "debian-6.12-rt"];
    for run in scratch.measure(&[&[suite.as_str()], &kernels[..]].concat()) {
        let interval = |step: usize| run["recordings"][step]["max"].as_i64().unwrap();
        let moved = interval(1) - interval(0);
        // The search goes in steps of 100 ns.
        assert!(
            (19_800..=20_200).contains(&moved),
            "{}: {moved} ns",
            run["subject"]["kernel"]
        );
    }
}

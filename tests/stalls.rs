// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of stalls × probes: each probe that a delay of 500 µs can affect finds 500 µs, and no
//! other probe is affected.
//!
//! `docs/method/stalls.md` has the table with its numbers, and explains the remainder.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use punctual_tests::{Scratch, finding, lacking, runs};
use serde_json::Value;

/// The allowed distance from the expected value, in ns. Some paths are longer, some shorter beside
/// a stall, by up to 3,040 instructions. If the clock tick falls into the stall, it is served at
/// its end, which takes 3 to 6 µs.
const ALLOWANCE_NS: i64 = 9_000;

/// Returns true if a stall of this kind holds up this stage of this probe on this subject.
fn delays(kind: &str, stage: &str, subject: &str) -> bool {
    let rt = subject == "rt";
    // On PREEMPT_RT a soft interrupt is a thread, of a low priority.
    let softirq = kind == "softirq" && !rt;
    match stage {
        // Nothing but masked interrupts keeps the hard handler waiting.
        "irq hard" => kind == "irqs-off",
        // It is woken by the hard handler, which has had all of the delay before; for any
        // other kind it waits, because the stalling thread has the same priority.
        "irq thread" => kind != "irqs-off" && (kind != "softirq" || softirq),
        "irq hard+thread" | "irq whole" => kind != "softirq" || softirq,
        "irq reader" => false,
        // The stalling thread has a lower priority than the one that makes system calls.
        "signal to" | "signal from" => kind == "irqs-off" || softirq,
        "timer cpu0" => match kind {
            "irqs-off" | "preempt-off" | "raw-spinlock" => true,
            "softirq" => softirq,
            // On PREEMPT_RT its holder can be preempted.
            "spinlock" => !rt,
            // Who holds a sleeping lock can be preempted, where the kernel can be at all.
            _ => subject == "none",
        },
        other => panic!("{other} is not in the table"),
    }
}

/// The median sample, which no stall has touched.
fn usual(recording: &Value) -> i64 {
    recording["quantiles"]["0.5"].as_i64().unwrap()
}

#[test]
fn every_stall_is_found_by_whom_it_delays_and_by_nobody_else() {
    let scratch = Scratch::new();
    // A step of `eventfd`, `mutex`, `semaphore` or `switch` may be unsupported, which the status tells.
    let ended = scratch.run(&["run", "stalls", "--quiet", "--json"]);
    for run in runs(&ended.stdout) {
        assert_eq!(run["state"], "finished", "{}", ended.stderr);
        let subject = run["subject"]["name"].as_str().unwrap();
        for absent in lacking(&run) {
            let between = absent["reason"]
                .as_str()
                .unwrap()
                .contains("no measured path");
            let paths = ["eventfd", "mutex", "semaphore", "switch"];
            let may = paths.iter().any(|probe| absent["probe"] == *probe);
            assert!(between && may, "{absent}");
        }
        // Of the two steps of `signal` the stall falls into the way to the driver in the
        // first, and into the way back in the second.
        let ways = ["to", "to", "from", "from"];
        let mut ways = ways.iter().cycle();
        let mut found = BTreeSet::new();
        for recording in run["recordings"].as_array().unwrap() {
            let word = |name: &str| recording[name].as_str().unwrap();
            // Several steps measure the same: `cpu0`, `cpu0 (2)`, ….
            let variant = word("variant").split(" (").next().unwrap();
            let mut stage = format!("{} {variant}", word("probe"));
            if word("probe") == "tick" {
                // Nobody knows beforehand when the clock ticks: the stall may fall onto one.
                "tick".clone_into(&mut stage);
            }
            if WITHIN.contains(&word("probe")) {
                found.extend(check_within(recording, subject, &stage));
                continue;
            }
            let kind = recording["findings"]["stall_kind"]["text"]
                .as_str()
                .unwrap();
            let mut expected = delays(kind, &stage, subject);
            if word("probe") == "signal" {
                expected &= ways.next() == Some(&variant);
            }
            // The thread that soft interrupts are put off to has to share the CPU with the one
            // that `irq` interrupts.
            let shares = (subject, kind, word("probe")) == ("rt", "softirq", "irq");
            let most = if shares { 1_500_000 } else { 520_000 };
            let named = format!("{subject}, {kind}, {stage}");
            check(recording, expected, most, &named);
        }
        try_again(&scratch, subject, &mut found);
        let is_refused = |stage: &str| {
            run["unsupported"]
                .to_string()
                .contains(&format!("\"{stage}\""))
        };
        for stage in STAGES_WITHIN.into_iter().filter(|stage| !is_refused(stage)) {
            assert!(found.contains(stage), "{subject}, {stage}: {found:?}");
        }
    }
}

/// The probes into whose paths a stall comes as a hard interrupt, and the stages that it must hit.
/// After the first round of a burst it hits any stage.
const WITHIN: [&str; 5] = ["eventfd", "mutex", "semaphore", "switch", "tick"];
const STAGES_WITHIN: [&str; 7] = [
    "eventfd reader",
    "mutex acquire first",
    "mutex release first",
    "semaphore acquire first",
    "semaphore release first",
    "switch N=10",
    "tick",
];

/// Paths between which other time passes, with their probes' parameters, the sample and the moment
/// of the stall.
const BETWEEN: [(&str, &str, u32, i64); 6] = [
    ("eventfd reader", "samples = 40", 20, 2_000),
    ("mutex acquire first", "ticks = 4", 2, 5_000),
    ("mutex release first", "ticks = 4", 2, 13_000),
    ("semaphore acquire first", "ticks = 4", 2, 98_000),
    ("semaphore release first", "ticks = 4", 2, 946_000),
    ("switch N=10", "threads = [10]\nticks = 4", 2, 980_000),
];

/// Tries other moments if all moments of the suite fell between the paths of a probe, which differs
/// between two builds of the target.
fn try_again(scratch: &Scratch, subject: &str, found: &mut BTreeSet<String>) {
    const MOMENTS: i64 = 12;
    const APART: i64 = 1_150;
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../suites/stalls.toml");
    let suite = fs::read_to_string(suite).unwrap();
    let (head, _) = suite.split_once("[[step]]").unwrap();
    for (stage, parameters, sample, first) in BETWEEN {
        for moment in (0..MOMENTS).map(|turn| first + turn * APART) {
            if found.contains(stage) {
                break;
            }
            let probe = stage.split(' ').next().unwrap();
            let step = format!(
                "[[step]]\nprobe = \"{probe}\"\n{parameters}\nstall = {{ kind = \"irqs-off\", \
                 us = 500, sample = {sample}, offset_ns = {moment} }}\n"
            );
            let again = &scratch.file("again.toml", format!("{head}{step}"));
            let ended = scratch.run(&["run", again, "--subject", subject, "--quiet", "--json"]);
            for recording in runs(&ended.stdout)[0]["recordings"].as_array().unwrap() {
                let variant = recording["variant"].as_str().unwrap();
                found.extend(check_within(
                    recording,
                    subject,
                    &format!("{probe} {variant}"),
                ));
            }
        }
    }
}

/// The stage, if the stall was in it. All of the stall is then in one sample, with nothing else but
/// the time of an interrupt that comes and goes, and of the clock tick and its soft interrupts if
/// they fell due meanwhile. A stage that was not hit has no sample of that length.
fn check_within(recording: &Value, subject: &str, stage: &str) -> Option<String> {
    const INTERRUPT_NS: std::ops::Range<i64> = 900..20_000;
    let max = recording["max"].as_i64();
    let Some(kind) = recording["findings"]["stall_kind"]["text"].as_str() else {
        // Where each interruption of `tick` was a tick, there is no other one.
        assert!(
            max.is_none_or(|max| max < 100_000),
            "{subject}, {stage}: {max:?} ns without a stall"
        );
        return None;
    };
    let length = finding(recording, "stall_end") - finding(recording, "stall_start");
    let value = finding(recording, "stalled_value");
    // Of interruptions by something else than ticks the stall is the only one.
    let usual = recording["quantiles"]["0.5"].as_i64().unwrap_or(0);
    let besides = value - usual - length;
    let named = format!("{subject}, {kind}, {stage}: {value} ns, usual {usual}, stall {length}");
    assert_eq!(max, Some(value), "{named}");
    assert!((500_000..501_000).contains(&length), "{named}");
    assert!(
        INTERRUPT_NS.contains(&besides),
        "{named}, besides {besides}"
    );
    Some(stage.to_owned())
}

fn check(recording: &Value, delayed: bool, most: i64, named: &str) {
    let (start, end) = (
        finding(recording, "stall_start"),
        finding(recording, "stall_end"),
    );
    let value = finding(recording, "stalled_value");
    let length = end - start;
    // Interrupts are open in all kinds but one, and add themselves.
    assert!(
        (500_000..most).contains(&length),
        "{named}: the stall took {length} ns"
    );
    let expected = usual(recording) + if delayed { end } else { 0 };
    assert!(
        (value - expected).abs() <= ALLOWANCE_NS,
        "{named}: {value} ns, expected {expected} ns"
    );
}

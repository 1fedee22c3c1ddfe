// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bound of the scheduling latency: no sample is above it, and its components are those that
//! the test put there.

use punctual_tests::explained::number;
use punctual_tests::{Scratch, finding};
use serde_json::Value;

fn bound(scratch: &Scratch, runs: &[&str]) -> Value {
    let ended = scratch.run(&[&["bound", "--quiet", "--json"], runs].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// The entry of a list that has this value.
fn entry<'a>(list: &'a Value, key: &str, value: &str) -> &'a Value {
    let mut found = list.as_array().unwrap().iter();
    let found = found.find(|one| one[key] == value);
    found.unwrap_or_else(|| panic!("no {value}: {list:#}"))
}

fn longest(bound: &Value, delay: &str) -> i64 {
    number(&entry(&bound["delays"], "delay", delay)["longest_ns"])
}

/// The bound up to the sample, and up to the switch.
fn latency(bound: &Value, interference: &str) -> (i64, i64) {
    let latency = entry(&bound["bounds"], "interference", interference);
    (
        number(&latency["sampled_ns"]),
        number(&latency["scheduled_ns"]),
    )
}

#[test]
fn no_sample_on_rt_is_above_the_bound_of_its_run() {
    let scratch = Scratch::new();
    let steps = "[[step]]\nprobe = \"timer\"\nsamples = 100\n\
        [[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = 100\n";
    let suite = &scratch.suite("mine", &["rt"], steps);
    let runs = scratch.measure(&[suite, "--seeds", "1,2"]);
    let ids: Vec<&str> = runs.iter().map(|run| run["id"].as_str().unwrap()).collect();
    let mut worst = [0; 4];
    let delays = ["D_POID", "D_PAIE", "D_PSD", "D_ST"];
    for (run, id) in runs.iter().zip(&ids) {
        let bound = bound(&scratch, &[id]);
        let recordings = run["recordings"].as_array().unwrap().iter();
        let late = recordings.map(|one| number(&one["max"])).max().unwrap();
        assert_eq!(bound["observed"]["late_ns"], late);
        for told in ["sporadic", "sliding window", "sliding window with oWCET"] {
            let found = entry(&bound["bounds"], "interference", told);
            // Interrupts that come as often as sporadic ones may leave no time.
            let Some(sampled) = found["sampled_ns"].as_i64() else {
                assert_eq!(told, "sporadic", "{bound:#}");
                continue;
            };
            assert!(sampled >= late, "{id}, {told}: {bound:#}");
        }
        // What is told about interrupts adds to what is without them.
        let (none, free) = latency(&bound, "none");
        let waits = longest(&bound, "D_POID").max(longest(&bound, "D_ST"));
        let rest = longest(&bound, "D_PAIE") + longest(&bound, "D_PSD");
        assert_eq!(free, waits + rest, "{bound:#}");
        assert!(none < latency(&bound, "sliding window").0, "{bound:#}");
        assert!(
            longest(&bound, "D_ST") < longest(&bound, "D_PSD"),
            "{bound:#}"
        );
        assert_eq!(
            (&bound["mended"], &bound["no_bound"]),
            (&0.into(), &Value::Null)
        );
        for (worst, delay) in worst.iter_mut().zip(delays) {
            let path = entry(&bound["delays"], "delay", delay)["path"].as_array();
            assert!(path.is_some_and(|path| !path.is_empty()), "{bound:#}");
            *worst = longest(&bound, delay).max(*worst);
        }
    }
    let pooled = two_timers_at_once_come_nearer(&scratch, &ids);
    assert_eq!(delays.map(|delay| longest(&pooled, delay)), worst);
    assert_eq!(pooled["runs"].as_array().unwrap().len(), ids.len());
}

/// A sample with a second timer's interrupt in its path is reported, stored, and not above the
/// bound; if it is the latest, it is the one reached. Returns the bound of all these runs, which
/// their aimed samples do not change.
fn two_timers_at_once_come_nearer(scratch: &Scratch, ids: &[&str]) -> Value {
    let nearer = bound(scratch, &[ids, &["--aim", "2"]].concat());
    let told = ids.iter().flat_map(|id| {
        let ended = scratch.run(&["arrivals", id, "--aim", "2", "--quiet", "--json"]);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        told["steps"].as_array().unwrap().clone()
    });
    let told: Vec<Value> = told.collect();
    let second: Vec<&Value> = told.iter().map(|step| &step["with_second"]).collect();
    let second: Vec<&Value> = second.into_iter().filter(|one| !one.is_null()).collect();
    assert!(second.len() >= ids.len(), "{told:#?}");
    let sampled = latency(&nearer, "sliding window with oWCET").0;
    for one in &second {
        let [late, behind] = ["reached_ns", "behind_ns"].map(|name| number(&one[name]));
        let [interrupts, off] = ["interrupts_ns", "off_ns"].map(|name| number(&one[name]));
        assert!(interrupts > 0 && behind > off, "{one:#}");
        assert!(off + interrupts < late && late <= sampled, "{one:#}");
    }
    let alone = told.iter().map(|step| step["reached_ns"].as_i64());
    let alone = alone.max().flatten();
    let latest = second.iter().map(|one| number(&one["reached_ns"])).max();
    let reached = &nearer["reached"];
    assert_eq!(reached["late_ns"].as_i64(), latest.max(alone), "{nearer:#}");
    assert_eq!(reached["second_ns"].is_i64(), latest > alone, "{nearer:#}");
    nearer
}

#[test]
fn a_stall_is_in_the_delay_or_the_interrupt_that_it_is() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let step = |kind: &str| {
        format!(
            "[[step]]\nprobe = \"timer\"\nsamples = 30\n\
             stall = {{ kind = \"{kind}\", us = 300, sample = 20 }}\n"
        )
    };
    let steps = [step("preempt-off"), step("irqs-off")].concat();
    let steps = format!("modules = [\"backfire\", \"pulse\", \"stall\"]\n{steps}");
    let suite = &scratch.suite("mine", &["none", "rt"], &steps);
    let runs = scratch.measure(&[suite, "--jobs", "1"]);
    let told = |run: &Value, step: usize| {
        let recording = &run["recordings"][step];
        finding(recording, "stall_end") - finding(recording, "stall_start")
    };
    for (run, subject) in runs.iter().zip(["none", "rt"]) {
        let bound = bound(&scratch, &[run["id"].as_str().unwrap()]);
        let delay = entry(&bound["delays"], "delay", "D_POID");
        // Without the interrupts that came meanwhile.
        let timer = entry(
            &bound["interrupts"],
            "entry",
            "asm_sysvec_apic_timer_interrupt",
        );
        let besides = number(&delay["longest_ns"]) - told(run, 0);
        let interrupts = 2 * number(&timer["longest_ns"]);
        assert!(
            (-interrupts..1_000).contains(&besides),
            "{subject}: {bound:#}"
        );
        let path = delay["path"].as_array().unwrap();
        let began = path.last().and_then(Value::as_str);
        assert_eq!(began, Some("stall_preempt_off [stall]"), "{bound:#}");
        let vector = entry(&bound["interrupts"], "entry", "asm_sysvec_irq_work");
        let besides = number(&vector["longest_ns"]) - told(run, 1);
        assert!((0..1_500).contains(&besides), "{subject}: {bound:#}");
        let why = bound["no_bound"].as_str();
        if subject == "rt" {
            assert_eq!(why, None);
            assert!(latency(&bound, "worst single").1 > 600_000, "{bound:#}");
        } else {
            assert!(
                why.is_some_and(|why| why.contains("not PREEMPT_RT")),
                "{bound:#}"
            );
            assert_eq!(bound["bounds"], Value::Array(Vec::new()));
        }
    }
    let mixed = scratch.run(&["bound", "r1", "r2"]);
    assert_eq!(mixed.status, Some(2), "{}", mixed.stderr);
    assert!(
        mixed.stderr.contains("expected runs of one kernel"),
        "{}",
        mixed.stderr
    );
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual audit` finds what reaches a CPU, with its work there and its sender, and finds nothing
//! where there is nothing.

use punctual_tests::explained::number;
use punctual_tests::{KERNELS, Scratch, has_fair_qemu, schema};
use serde_json::Value;

/// A thread on CPU 1, by itself, and while a shell on CPU 0 makes the kernel change its code again
/// and again: each time all CPUs get an interrupt (`smp_text_poke_sync_each_cpu`).
const SUITE: &str = "name = \"audit\"\nsummary = \"\"\ncpus = 2\n\
    [load.poke]\nsummary = \"code that is changed\"\n\
    [[load.poke.worker]]\ncpus = \"0\"\nunit = \"changes\"\ncount = \"lines\"\nendless = true\n\
    run = [\"sh\", \"-c\", 'while :; do echo 1 > /proc/sys/kernel/sched_schedstats; \
    echo 0 > /proc/sys/kernel/sched_schedstats; echo; usleep 5000; done']\n\
    [[step]]\nprobe = \"noise\"\ncpus = [1]\nduration_ms = 100\n\
    [[step]]\nprobe = \"noise\"\nload = \"poke\"\ncpus = [1]\nduration_ms = 100\n";

fn texts(value: &Value) -> Vec<&str> {
    let texts = value.as_array().expect("texts").iter();
    texts.map(|text| text.as_str().expect("a text")).collect()
}

/// The interruptions of this entry that did this work.
fn came_in<'a>(recording: &'a Value, entry: &str, did: &str) -> Vec<&'a Value> {
    let all = recording["came_in"].as_array().unwrap().iter();
    let own = all.filter(|one| {
        let entered = one["entry"].as_str().unwrap().starts_with(entry);
        entered && texts(&one["did"]).contains(&did)
    });
    own.collect()
}

fn times<'a>(came_in: impl IntoIterator<Item = &'a Value>) -> i64 {
    let times = came_in.into_iter().map(|one| number(&one["times"]));
    times.sum()
}

#[test]
fn what_reaches_a_cpu_is_told_with_who_sent_it() {
    if !has_fair_qemu() {
        return;
    }
    let scratch = Scratch::new();
    let suite = &scratch.file("audit.toml", SUITE);
    let stock = punctual_skip::long("PUNCTUAL_LONG").then_some(KERNELS[0]);
    for kernel in stock.into_iter().chain([KERNELS[1]]) {
        let run = scratch.measure(&[suite, "--kernel", kernel]).remove(0);
        let id = run["id"].as_str().unwrap();
        let ended = scratch.run(&["audit", id, "--quiet", "--json"]);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let audit: Value = serde_json::from_str(&ended.stdout).unwrap();
        schema::check("audit", &audit).unwrap();
        let run = &audit["runs"][0];
        let [idle, poked] = &run["recordings"].as_array().unwrap()[..] else {
            panic!("{run:#}");
        };
        for recording in [idle, poked] {
            assert_eq!(recording["not_explained"], Value::Array(Vec::new()));
            // 250 a second.
            let ticks = came_in(recording, "apic_timer", "tick_nohz_handler");
            assert!(ticks.iter().all(|tick| tick["sender"].is_null()));
            let ticks = times(ticks);
            assert!((24..=26).contains(&ticks), "{kernel}: {recording:#}");
            // The CPU's own time is within the interruptions.
            let all = recording["came_in"].as_array().unwrap().iter();
            let own: i64 = all.map(|one| number(&one["sum_ns"])).sum();
            let sum = number(&recording["sum_ns"]);
            assert!(own > sum / 10 && own < sum, "{kernel}: {own} of {sum}");
        }
        assert_eq!(times(came_in(idle, "call_function", "do_sync_core")), 0);
        // A sample is watched from its begin on: what was sent before has no sender.
        let synced = came_in(poked, "call_function", "do_sync_core");
        let (unsent, synced): (Vec<_>, Vec<_>) =
            synced.into_iter().partition(|one| one["sender"].is_null());
        let (unsent, sent) = (times(unsent), times(synced.iter().copied()));
        assert!(
            unsent * 20 <= sent,
            "{unsent} without a sender, {sent} with one"
        );
        for one in &synced {
            let sender = &one["sender"];
            assert_eq!(sender["cpu"], 0, "{one:#}");
            // It may have been in the kernel all the while: then its program is not known.
            let own = texts(&sender["threads"]).contains(&"the probe's thread");
            assert!(!own, "{one:#}");
        }
        // Who called the sender before the interruption began is not known.
        let poke = |one: &&&Value| {
            let functions = texts(&one["sender"]["functions"]);
            functions.iter().any(|name| name.contains("text_poke"))
        };
        let poked = times(synced.iter().copied().filter(|one| poke(&one)));
        let all = times(synced);
        assert!(poked > 30 && poked * 2 >= all, "{poked} of {all}");
    }
}

#[test]
fn a_run_without_interruptions_to_audit_is_refused() {
    let scratch = Scratch::new();
    let suite = "name = \"none\"\nsummary = \"\"\n[[step]]\nprobe = \"timer\"\nsamples = 10\n";
    let suite = &scratch.file("none.toml", suite);
    let run = scratch.measure(&[suite, "--kernel", KERNELS[1]]).remove(0);
    let ended = scratch.run(&["audit", run["id"].as_str().unwrap()]);
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("noise or tick"), "{}", ended.stderr);
}

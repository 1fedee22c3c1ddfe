// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wire: frames between two cards of a guest are as repeatable as all else, and each is
//! explained.

use punctual_tests::explained::{check_sum, explain, number, samples};
use punctual_tests::{HostLoad, KERNELS, Scratch, assert_has, digests, finding, runs};
use serde_json::Value;

use crate::many_cpus::on_one_cpu;

const SAMPLES: [u64; 4] = [100, 100, 100, 50];
const STALL_US: i64 = 300;

/// Idle with a stall of known length, loaded, UDP there and back.
const STEPS: &str = "network = true\nmodules = [\"stall\"]\n\
    [[step]]\nprobe = \"packet\"\nsamples = 100\n\
    [[step]]\nprobe = \"packet\"\nsamples = 100\n\
    stall = { kind = \"irqs-off\", us = 300, sample = 50 }\n\
    [[step]]\nprobe = \"packet\"\nload = \"stress\"\nsamples = 100\n\
    [[step]]\nprobe = \"packet\"\nkind = \"udp\"\nway = \"round-trip\"\nbytes = 1514\n\
    load = \"stress\"\nsamples = 50\n";

#[test]
fn frames_over_the_wire_are_repeatable_and_explained() {
    let scratch = Scratch::new();
    let suite = scratch.suite("wire", &["full", "rt"], STEPS);
    let suite = suite.as_str();
    let first = scratch.measure(&[suite]);
    let expected = digests(&first);
    let load = HostLoad::new();
    let cold = on_one_cpu(|| digests(&scratch.measure(&[suite, "--cold"])));
    assert_eq!(cold, expected, "without snapshot, on a busy CPU");
    drop(load);
    assert_eq!(digests(&scratch.measure(&[suite])), expected, "resumed");

    first.iter().for_each(every_frame_is_received);
    let shortest = [&first[0], &first[1]].map(|run| figure(&run["recordings"][0], "min"));
    // What a hand-made program measured in guests of the same kernels, in docs/method/wire.md.
    assert!((10_000..13_000).contains(&shortest[0]), "{shortest:?}");
    let ratio = shortest[1] as f64 / shortest[0] as f64;
    assert!((1.7..2.7).contains(&ratio), "{shortest:?}");
    first.iter().for_each(|run| check_stories(&scratch, run));
}

fn every_frame_is_received(run: &Value) {
    assert_eq!(run["machine"]["network"], "e1000e");
    assert_eq!(run["unsupported"], Value::Array(Vec::new()));
    let recordings = run["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), SAMPLES.len());
    for (recording, samples) in recordings.iter().zip(SAMPLES) {
        let all = samples as i64 + number(&recording["warmup"]);
        assert_eq!(finding(recording, "sent"), all, "{recording}");
        assert_eq!(finding(recording, "received"), all, "{recording}");
        assert_eq!(recording["count"], samples, "{recording}");
        assert_eq!(recording["missed"], 0, "{recording}");
        assert_eq!(recording["settings"]["driver"], "e1000e", "{recording}");
    }
    // The stalled frame is longer by the stall than the shortest of the others.
    let stalled = figure(&recordings[1], "max");
    assert_eq!(finding(&recordings[1], "stalled_value"), stalled);
    let longer = stalled - figure(&recordings[0], "min");
    let stall = STALL_US * 1_000;
    assert!(
        (stall - 2_000..stall + 10_000).contains(&longer),
        "{longer}"
    );
}

fn figure(recording: &Value, name: &str) -> i64 {
    number(&recording[name])
}

/// Parts add up to the nanosecond, and what stalled a frame is named.
fn check_stories(scratch: &Scratch, run: &Value) {
    let explained = explain(scratch, &[run["id"].as_str().unwrap(), "--worst", "4"]);
    let found = samples(&explained);
    found.iter().for_each(check_sum);
    let of_step = |step: u64| found.iter().find(|sample| sample["step"] == step);
    let stalled = of_step(1).unwrap_or_else(|| panic!("{explained:#}"));
    let story = &stalled["story"];
    let culprit = &story["parts"][number(&story["culprit"]) as usize];
    assert_eq!(culprit["main"]["function"], "stall_irqs_off [stall]");
}

#[test]
fn a_guest_without_a_wire_says_how_it_gets_one() {
    let scratch = Scratch::new();
    let suite = scratch.file(
        "none.toml",
        "name = \"none\"\nsummary = \"\"\n[[step]]\nprobe = \"packet\"\n",
    );
    let ended = scratch.run(&["run", &suite, "--kernel", KERNELS[0], "--quiet", "--json"]);
    assert_eq!(ended.status, Some(3), "{}", ended.stderr);
    let run = &runs(&ended.stdout)[0];
    assert_eq!(run["machine"]["network"], Value::Null);
    let command = run["machine"]["qemu_command"].as_str().unwrap();
    assert!(!command.contains("hubport") && !command.contains("announce"));
    let reason = run["unsupported"][0]["reason"].to_string();
    assert_has(&reason, &["wire0", "`network = true`"]);
}

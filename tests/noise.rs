// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known answers of the probes `noise` and `migrate`: ticks and stalls of known number and
//! length, a load that is known to share the CPU, a call that moves nobody.

use punctual_tests::{KERNELS, Scratch, finding, has_fair_qemu};
use serde_json::Value;

/// Debian's kernels have `CONFIG_HZ=250`.
const TICK_NS: i64 = 4_000_000;

/// The recordings of one step, of a guest with so many CPUs.
fn measure(scratch: &Scratch, kernel: &str, cpus: &str, step: &str) -> Vec<Value> {
    let text =
        format!("name = \"noise\"\nsummary = \"\"\nmodules = [\"stall\"]\n[[step]]\n{step}\n");
    let suite = &scratch.file("noise.toml", text);
    let run = scratch.measure(&[suite, "--kernel", kernel, "--cpus", cpus]);
    assert_eq!(run[0]["unsupported"], Value::Array(Vec::new()), "{kernel}");
    run[0]["recordings"].as_array().unwrap().clone()
}

fn samples(recording: &Value) -> Vec<(i64, i64)> {
    let samples = recording["samples"].as_array().unwrap();
    let number = |value: &Value| value.as_i64().unwrap();
    let pair = |sample: &Value| (number(&sample[0]), number(&sample[1]));
    samples.iter().map(pair).collect()
}

fn ratio(recording: &Value, name: &str) -> f64 {
    recording["findings"][name]["ratio"].as_f64().unwrap()
}

/// In a second there are 250 ticks, one in each 4 ms; and nothing on one CPU of the virtual
/// bench takes time that the kernel does not.
#[test]
fn each_tick_is_an_interruption_and_nothing_takes_time_but_the_kernel() {
    let scratch = Scratch::new();
    for kernel in KERNELS {
        let step = "probe = \"noise\"\nduration_ms = 1000";
        let [recording] = &measure(&scratch, kernel, "1", step)[..] else {
            panic!("{kernel}: expected one recording");
        };
        let found = samples(recording);
        assert_eq!(recording["count"], found.len(), "{kernel}");
        let first = found[0].0;
        let is_tick = |(at, _): &&(i64, i64)| {
            let phase = (at - first).rem_euclid(TICK_NS);
            phase.min(TICK_NS - phase) < 20_000
        };
        let ticks = found.iter().filter(is_tick).count();
        assert_eq!(ticks, 250, "{kernel}: {found:?}");
        assert_eq!(finding(recording, "hardware_noise_count"), 0, "{kernel}");
        let all: i64 = found.iter().map(|(_, value)| value).sum();
        let observed = finding(recording, "observed");
        assert!(observed >= 1_000_000_000, "{kernel}: {observed}");
        let share = ratio(recording, "interrupted_share") - all as f64 / observed as f64;
        assert!(share.abs() < 1e-12, "{kernel}: {share}");
    }
}

/// A stall is one interruption of its length. Where there is another CPU, that one is not
/// interrupted by it.
#[test]
fn a_stall_is_one_interruption_of_its_length_where_it_is() {
    let scratch = Scratch::new();
    let step = |cpus: &str| {
        format!(
            "probe = \"noise\"\nduration_ms = 200\n{cpus}\n\
             stall = {{ kind = \"irqs-off\", us = 500, sample = 0 }}"
        )
    };
    let long = |recording: &Value| -> Vec<i64> {
        let values = samples(recording).into_iter().map(|(_, value)| value);
        values.filter(|value| *value >= 400_000).collect()
    };
    for kernel in KERNELS {
        let one = measure(&scratch, kernel, "1", &step(""));
        let [stalled] = long(&one[0])[..] else {
            panic!("{kernel}: {:?}", long(&one[0]));
        };
        assert!((500_000..509_000).contains(&stalled), "{kernel}: {stalled}");
        assert_eq!(finding(&one[0], "stalled_value"), stalled);
    }
    if !has_fair_qemu() {
        return;
    }
    for kernel in KERNELS {
        let two = measure(&scratch, kernel, "2", &step("cpus = [1, 0]"));
        assert_eq!(two[0]["variant"], "cpu1");
        assert_eq!(two[1]["variant"], "cpu0");
        let [stalled] = long(&two[0])[..] else {
            panic!("{kernel}: {:?}", long(&two[0]));
        };
        // A turn of the other CPU may be behind it, and the tick that it held up.
        assert!((500_000..530_000).contains(&stalled), "{kernel}: {stalled}");
        // What is as long as a slice of the scheduler's, milliseconds, is another thread's turn:
        // these threads are SCHED_OTHER.
        let mut other = long(&two[1]);
        other.retain(|value| *value < 1_000_000);
        assert_eq!(other, [0_i64; 0], "{kernel}: the other CPU");
    }
}

/// Who stays where it is pays for the call; who moves, for the move besides.
#[test]
fn a_migration_takes_longer_than_the_call_that_moves_nobody() {
    let scratch = Scratch::new();
    let alone = measure(
        &scratch,
        KERNELS[0],
        "1",
        "probe = \"migrate\"\nsamples = 20",
    );
    let variants = |all: &[Value]| -> Vec<String> {
        let variant = |one: &Value| one["variant"].as_str().unwrap().to_owned();
        all.iter().map(variant).collect()
    };
    assert_eq!(variants(&alone), ["cpu0 to cpu0"]);
    if !has_fair_qemu() {
        return;
    }
    for kernel in KERNELS {
        let all = measure(&scratch, kernel, "2", "probe = \"migrate\"\nsamples = 20");
        let pairs = ["cpu0 to cpu0", "cpu0 to cpu1", "cpu1 to cpu0"];
        assert_eq!(variants(&all), pairs, "{kernel}");
        let control = all[0]["max"].as_i64().unwrap();
        for one in &all[1..] {
            assert_eq!((&one["count"], &one["missed"]), (&20.into(), &0.into()));
            let least = one["min"].as_i64().unwrap();
            assert!(least > control, "{kernel}: {least} and {control}");
        }
    }
}

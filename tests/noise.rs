// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known answers of the probes `noise` and `migrate`: ticks and stalls of known number and length,
//! other programs in the same guest, a call that moves no thread.

use std::fmt::Write as _;

use punctual_tests::{Ended, KERNELS, Scratch, finding, has_fair_qemu, runs};
use serde_json::Value;

/// Debian's kernels have `CONFIG_HZ=250`.
const TICK_NS: i64 = 4_000_000;

/// The recordings of one step, in a guest with this many CPUs.
fn measure(scratch: &Scratch, kernel: &str, cpus: &str, step: &str) -> Vec<Value> {
    let text = format!(
        "name = \"noise\"\nsummary = \"\"\nmodules = [\"backfire\", \"pulse\", \"stall\"]\n[[step]]\n{step}\n"
    );
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

#[test]
fn each_tick_is_an_interruption_and_nothing_takes_time_but_the_kernel() {
    KERNELS.into_iter().for_each(each_tick_is_an_interruption);
}

/// In a second there are 250 ticks, one in each 4 ms; and nothing on one CPU of the virtual
/// bench takes time that the kernel does not.
pub fn each_tick_is_an_interruption(kernel: &str) {
    let scratch = Scratch::new();
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

/// Two programs agree if their numbers of interruptions in one second differ by at most 3 of 250,
/// and the typical one is in oslat's bucket, to 0.25 us: their loops take equally long. Bucket 3 is
/// more than 2 us, up to 3.
fn agree((ours, median_us): (usize, f64), (theirs, bucket): (usize, usize)) -> bool {
    let bucket = bucket as f64 - 1.25..bucket as f64 + 0.25;
    ours.abs_diff(theirs) <= 3 && bucket.contains(&median_us)
}

/// The number of interruptions in oslat's histogram, and the typical one's bucket. The first bucket
/// is that of the loop itself.
fn of_oslat(output: &str) -> (usize, usize) {
    let line = |line: &str| -> Option<(usize, usize)> {
        let (bucket, count) = line.split_once(" (us):\t")?;
        let count = count.split_whitespace().next()?;
        Some((bucket.trim().parse().ok()?, count.parse().ok()?))
    };
    let buckets: Vec<_> = output.lines().filter_map(line).skip(1).collect();
    let (typical, _) = buckets.iter().max_by_key(|(_, count)| count).unwrap();
    (buckets.iter().map(|(_, count)| count).sum(), *typical)
}

#[test]
fn oslat_of_rt_tests_sees_the_same_interruptions() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::new();
    let noise = "[[step]]\nprobe = \"noise\"\nduration_ms = 1000\n";
    let oslat = "[[step]]\nprobe = \"program\"\n\
        run = [\"oslat\", \"-D\", \"1s\", \"-c\", \"0\", \"-C\", \"0\", \"-b\", \"64\", \"-z\"]\n";
    let mut text =
        "name = \"both\"\nsummary = \"\"\nprograms = [\"cyclictest\", \"hackbench\", \"oslat\"]\n"
            .to_owned();
    for _ in 0..2 {
        write!(text, "{noise}{oslat}").unwrap();
    }
    let suite = &scratch.file("both.toml", text);
    for kernel in KERNELS {
        let run = scratch.measure(&[suite, "--kernel", kernel]).remove(0);
        let recordings = run["recordings"].as_array().unwrap();
        let ours = recordings.iter().step_by(2).map(|recording| {
            let median = recording["quantiles"]["0.5"].as_f64().unwrap() / 1_000.0;
            (recording["count"].as_u64().unwrap() as usize, median)
        });
        let theirs = recordings.iter().skip(1).step_by(2);
        let theirs = theirs.map(|recording| of_oslat(recording["output"].as_str().unwrap()));
        for (ours, theirs) in ours.zip(theirs) {
            println!("{kernel}: {ours:?}, oslat {theirs:?}");
            assert!(agree(ours, theirs), "{kernel}: {ours:?} and {theirs:?}");
            // What cannot fail is no check: a tick in 25 lost, or a microsecond more.
            assert!(!agree((ours.0 - ours.0 / 25, ours.1), theirs));
            assert!(!agree((ours.0, ours.1 + 1.0), theirs));
        }
    }
}

/// The kernel's own tracer, in two periods of half a second. Debian's stock kernel has none.
#[test]
fn rtla_osnoise_sees_the_same_interruptions() {
    if !punctual_skip::long("PUNCTUAL_RTLA") {
        return;
    }
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/rtla");
    let built = Ended::of(&mut std::process::Command::new(tool));
    assert_eq!(built.status, Some(0), "{}", built.stderr);
    let scratch = Scratch::new();
    let text = "name = \"both\"\nsummary = \"\"\nprograms = [\"rtla\"]\n\
        [[step]]\nprobe = \"noise\"\nduration_ms = 1000\n\
        [[step]]\nprobe = \"program\"\n\
        run = [\"rtla\", \"osnoise\", \"top\", \"-q\", \"-c\", \"0\", \"-d\", \"2s\", \"-p\", \
        \"500000\", \"-r\", \"500000\", \"-T\", \"1\"]\n";
    let suite = &scratch.file("both.toml", text);
    let path = std::env::var("PATH").unwrap();
    let mut command = scratch.punctual(&[
        "run", suite, "--kernel", KERNELS[1], "--seeds", "1..2", "--quiet", "--json",
    ]);
    command.env("PATH", format!("{}:{path}", built.stdout.trim()));
    let ended = Ended::of(&mut command);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    for run in runs(&ended.stdout) {
        let [ours, theirs] = &run["recordings"].as_array().unwrap()[..] else {
            panic!("{run:#}");
        };
        let output = theirs["output"].as_str().unwrap();
        let line = output
            .lines()
            .find(|line| line.starts_with("  0 #2"))
            .expect(output);
        let columns: Vec<f64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        // CPU, runtime and noise in us, share, worst period, worst single, hardware, NMI, IRQ.
        let [_, runtime, noise, _, _, single, hardware, _, interrupts, ..] = columns[..] else {
            panic!("{line}");
        };
        assert_eq!((runtime, hardware), (1e6, 0.0), "{line}");
        let share = ratio(ours, "interrupted_share");
        let seen = |count: f64, share: f64| {
            (count - interrupts).abs() <= 3.0 && (share / (noise / runtime) - 1.0).abs() < 0.15
        };
        let count = ours["count"].as_f64().unwrap();
        println!("{count} interruptions, {share}; rtla: {line}");
        assert!(seen(count, share), "{count}, {share}: {line}");
        assert!(
            !seen(count * 1.02, share) && !seen(count, share * 1.4),
            "{line}"
        );
        assert!(single >= 3.0, "{line}");
    }
}

#[test]
fn a_stall_is_one_interruption_of_its_length_where_it_is() {
    KERNELS.into_iter().for_each(a_stall_is_one_interruption);
    if has_fair_qemu() {
        KERNELS
            .into_iter()
            .for_each(a_stall_interrupts_one_of_two_cpus);
    }
}

/// A stall of half a millisecond, and the interruptions that are about as long.
pub const STALL: &str = "duration_ms = 200\nstall = { kind = \"irqs-off\", us = 500, sample = 0 }";

fn long(recording: &Value) -> Vec<i64> {
    let values = samples(recording).into_iter().map(|(_, value)| value);
    values.filter(|value| *value >= 400_000).collect()
}

/// A stall is one interruption of its length.
pub fn a_stall_is_one_interruption(kernel: &str) {
    let step = format!("probe = \"noise\"\n{STALL}");
    check_stalled(&measure(&Scratch::new(), kernel, "1", &step)[0], kernel);
}

/// Checks that the stall is one interruption of its length, and returns that in nanoseconds.
pub fn check_stalled(recording: &Value, kernel: &str) -> i64 {
    let [stalled] = long(recording)[..] else {
        panic!("{kernel}: {:?}", long(recording));
    };
    assert!((500_000..509_000).contains(&stalled), "{kernel}: {stalled}");
    assert_eq!(finding(recording, "stalled_value"), stalled);
    stalled
}

/// If there is another CPU, the stall does not interrupt that one.
pub fn a_stall_interrupts_one_of_two_cpus(kernel: &str) {
    let step = format!("probe = \"noise\"\ncpus = [1, 0]\n{STALL}");
    let two = measure(&Scratch::new(), kernel, "2", &step);
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

/// A thread that stays where it is pays for the call; one that moves pays for the move as well.
#[test]
fn a_migration_takes_longer_than_the_call_that_moves_nobody() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
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

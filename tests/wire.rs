// SPDX-License-Identifier: MIT OR Apache-2.0
//! The wire: frames between two cards of a guest are as repeatable as everything else, and each is
//! explained.

use punctual_tests::explained::{check_sum, explain, number, samples};
use punctual_tests::{
    HostLoad, KERNELS, Scratch, assert_has, digests, finding, has_fair_qemu, runs,
};
use serde_json::Value;

use crate::many_cpus::on_one_cpu;

const SAMPLES: [u64; 8] = [40, 40, 20, 100, 100, 50, 20, 20];
/// The samples of the idle steps. Each of them is watched, which takes far longer than to measure.
const IDLE: usize = 140;
const STALL_US: i64 = 300;

/// Two tests boot the same guests. They have a wire, a module, and two programs if this machine has
/// them.
fn guest() -> String {
    let here = |name: &&str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
    };
    let programs: Vec<&str> = ["chrt", "ping"].into_iter().filter(here).collect();
    format!("network = true\nmodules = [\"stall\"]\nprograms = {programs:?}\n")
}

/// Steps: idle, with a stall of known length, TCP there and back, beside other frames on the same
/// card, loaded, UDP there and back, answered by the kernel, and beside the kernel's network stack.
/// The frames beside others come early, as the run is repeated up to them.
const STEPS: &str = "[[step]]\nprobe = \"packet\"\nsamples = 40\n\
    [[step]]\nprobe = \"packet\"\nsamples = 40\n\
    stall = { kind = \"irqs-off\", us = 300, sample = 20 }\n\
    [[step]]\nprobe = \"packet\"\nkind = \"tcp\"\nway = \"round-trip\"\nsamples = 20\n\
    [[step]]\nprobe = \"packet\"\nload = \"wire-bulk\"\nsamples = 100\n\
    [[step]]\nprobe = \"packet\"\nload = \"stress\"\nsamples = 100\n\
    [[step]]\nprobe = \"packet\"\nkind = \"udp\"\nway = \"round-trip\"\nbytes = 1514\n\
    load = \"stress\"\nsamples = 50\n\
    [[step]]\nprobe = \"packet\"\nkind = \"icmp\"\nsamples = 20\n\
    [[step]]\nprobe = \"packet\"\nkind = \"xdp\"\nsamples = 20\n";

/// A frame's stages, in their order; on RT a thread of its own serves the card.
const STAGES: [&str; 7] = [
    "send", "qdisc", "driver", "card IRQ", "NAPI", "socket", "switch",
];
const RT_STAGES: [&str; 8] = [
    "send",
    "qdisc",
    "driver",
    "card IRQ",
    "IRQ thread",
    "NAPI",
    "socket",
    "switch",
];

#[test]
fn frames_over_the_wire_are_repeatable_and_explained() {
    let scratch = Scratch::new();
    let steps = guest() + STEPS;
    let suite = scratch.suite("wire", &["full", "rt"], &steps);
    let suite = suite.as_str();
    let first = scratch.measure(&[suite]);
    let expected = digests(&first);
    let load = HostLoad::new();
    let cold = on_one_cpu(|| digests(&scratch.measure(&[suite, "--cold"])));
    assert_eq!(cold, expected, "without snapshot, on a busy CPU");
    drop(load);

    first.iter().for_each(every_frame_is_received);
    let shortest = [&first[0], &first[1]].map(|run| figure(&run["recordings"][0], "min"));
    // What a hand-made program measured in guests of the same kernels, in docs/method/wire.md.
    assert!((10_000..13_000).contains(&shortest[0]), "{shortest:?}");
    let ratio = shortest[1] as f64 / shortest[0] as f64;
    assert!((1.7..2.7).contains(&ratio), "{shortest:?}");
    first.iter().for_each(|run| check_stories(&scratch, run));
    no_arrivals_are_told(&scratch, first[0]["id"].as_str().unwrap());
}

/// Checks that no arrivals are reported: a frame comes when it is sent, and not when a timer is
/// due.
fn no_arrivals_are_told(scratch: &Scratch, run: &str) {
    let ended = scratch.run(&["arrivals", run, "--aim", "1", "--quiet"]);
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
    assert_has(
        &ended.stderr,
        &[
            "packet / idle",
            "arrivals are known of timers and interrupts only",
        ],
    );
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

/// Checks that parts add up to the nanosecond, stage by stage, and that the stall of a frame is
/// named. For that the run is repeated from its snapshot, once to its end. It is explained only if
/// each recording is the same again.
fn check_stories(scratch: &Scratch, run: &Value) {
    let of_load = |load: &str, worst: &str| {
        let wanted = ["--load", load, "--worst", worst];
        explain(
            scratch,
            &[&[run["id"].as_str().unwrap()], &wanted[..]].concat(),
        )
    };
    let idle = of_load("idle", &IDLE.to_string());
    let beside = of_load("wire-bulk", "10");
    let (idle, beside) = (samples(&idle), samples(&beside));
    assert_eq!((idle.len(), beside.len()), (IDLE, 10));
    idle.iter().chain(beside).for_each(check_sum);
    let stages: &[&str] = if run["subject"]["name"] == "rt" {
        &RT_STAGES
    } else {
        &STAGES
    };
    let one_way = idle.iter().filter(|sample| number(&sample["step"]) < 2);
    for sample in one_way {
        let way = [stages, &["return", "sample"]].concat();
        assert_eq!(stages_of(sample), way, "{sample:#}");
    }
    // What bypasses the network stack passes no queueing discipline.
    let by_xdp = idle.iter().filter(|sample| sample["step"] == 7);
    for sample in by_xdp {
        let way = stages.iter().filter(|stage| **stage != "qdisc");
        let way: Vec<&str> = way.copied().chain(["return", "sample"]).collect();
        assert_eq!(stages_of(sample), way, "{sample:#}");
    }
    let stalled = |sample: &&Value| sample["step"] == 1;
    let stalled = idle.iter().find(stalled).unwrap();
    let story = &stalled["story"];
    let culprit = &story["parts"][number(&story["culprit"]) as usize];
    assert_eq!(culprit["main"]["function"], "stall_irqs_off [stall]");
}

/// The stages that a sample went through, each once per stretch.
fn stages_of(sample: &Value) -> Vec<&str> {
    let parts = sample["story"]["parts"].as_array().unwrap();
    let stages = parts.iter().map(|part| part["stage"].as_str().unwrap());
    let mut stages: Vec<&str> = stages.collect();
    stages.dedup();
    stages
}

/// The receiver and the cards' interrupts are where the suite puts them.
#[test]
fn frames_to_another_cpu_are_as_repeatable() {
    if !has_fair_qemu() {
        return;
    }
    let scratch = Scratch::new();
    let steps = "network = true\ncpus = 2\n\
        [[step]]\nprobe = \"packet\"\nreceiver_cpu = 1\nsamples = 30\n\
        [[step]]\nprobe = \"packet\"\nreceiver_cpu = 1\ninterrupt_cpu = 1\nload = \"stress\"\n\
        samples = 30\n\
        [[step]]\nprobe = \"packet\"\nkind = \"udp\"\nway = \"round-trip\"\nso_priority = 6\n\
        samples = 30\n";
    let suite = scratch.suite("apart", &["rt"], steps);
    let first = scratch.measure(&[&suite]);
    let run = &first[0];
    let variants = [
        "raw 60 one way, cpu0 to cpu1",
        "raw 60 one way, cpu0 to cpu1, interrupts cpu1",
        "udp 60 round trip, priority 6",
    ];
    let recordings = run["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), variants.len(), "{}", run["unsupported"]);
    for (recording, variant) in recordings.iter().zip(variants) {
        assert_eq!(recording["variant"], variant);
        assert_eq!(finding(recording, "received"), 40, "{recording}");
    }
    let load = HostLoad::new();
    let cold = on_one_cpu(|| digests(&scratch.measure(&[&suite, "--cold"])));
    assert_eq!(cold, digests(&first));
    drop(load);
}

/// The driver of an igb knows `AF_XDP` itself, and the card stamps frames. QEMU has the card since
/// its version 8.
#[test]
fn another_card_has_frames_of_its_own() {
    if !has_fair_qemu() {
        return;
    }
    let scratch = Scratch::new();
    let steps = "network = \"igb\"\n\
        [[step]]\nprobe = \"packet\"\nsamples = 30\n\
        [[step]]\nprobe = \"packet\"\nkind = \"xdp\"\nsamples = 30\n\
        [[step]]\nprobe = \"packet\"\nkind = \"ptp\"\nwarmup = 0\nsamples = 30\n\
        [[step]]\nprobe = \"packet\"\nway = \"round-trip\"\nsamples = 30\n";
    let suite = scratch.suite("igb", &["full"], steps);
    let first = scratch.measure(&[&suite]);
    let run = &first[0];
    assert_eq!(run["machine"]["network"], "igb");
    let recordings = run["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), 4, "{}", run["unsupported"]);
    for (recording, received) in recordings.iter().zip([40, 40, 30, 40]) {
        assert_eq!(recording["settings"]["driver"], "igb");
        assert_eq!(finding(recording, "received"), received, "{recording}");
    }
    assert_eq!(recordings[1]["settings"]["xdp"], "native");
    check_stamps(&recordings[2], &recordings[3]);
    let again = digests(&scratch.measure(&[&suite, "--cold"]));
    assert_eq!(again, digests(&first));
}

/// Checks that the card's stamps divide a round trip: the other end needs about as long as this
/// one. QEMU's card stamps one answer, the first.
fn check_stamps(stamped: &Value, plain: &Value) {
    assert_eq!(stamped["variant"], "ptp 60 round trip, stamped");
    let share = &stamped["findings"]["stamped"]["share"];
    assert_eq!((&share["count"], &share["of"]), (&1.into(), &30.into()));
    let of = |name: &str| number(&stamped["findings"][name]["nanos"]);
    let (own, beyond) = (of("own_worst"), of("beyond_worst"));
    assert_eq!((own, beyond), (of("own_median"), of("beyond_median")));
    assert!(own > 5_000 && beyond > 5_000, "{own} + {beyond}");
    assert_eq!(own + beyond, number(&stamped["samples"][0][1]));
    // Stamps are taken while a sample lasts.
    let [stamped, plain] = [stamped, plain].map(|one| number(&one["quantiles"]["0.5"]));
    assert!((plain..2 * plain).contains(&stamped), "{stamped}: {plain}");
}

/// Two tools that measure one way differ by their own code, and that is as long on each kernel.
#[test]
fn what_rt_costs_is_what_ping_shows() {
    if !punctual_skip::program("ping") {
        return;
    }
    let scratch = Scratch::new();
    let steps = "[[step]]\nprobe = \"packet\"\nkind = \"icmp\"\nbytes = 98\n\
        interval_us = 10_000\nsamples = 50\n\
        [[step]]\nprobe = \"program\"\n\
        run = [\"chrt\", \"-f\", \"80\", \"ping\", \"-4\", \"-U\", \"-c\", \"50\", \"-i\", \"0.01\", \
        \"198.18.0.2\"]\n";
    let suite = scratch.suite("ping", &["full", "rt"], &(guest() + steps));
    let means = scratch.measure(&[&suite]).into_iter().map(|run| {
        let [packet, ping] = [0, 1].map(|place| run["recordings"][place].clone());
        let told = ping["output"].as_str().unwrap();
        let row = told.lines().find(|line| line.starts_with("rtt ")).unwrap();
        // rtt min/avg/max/mdev = 0.046/0.047/0.060/0.002 ms
        let mean: f64 = row.split('/').nth(4).unwrap().parse().unwrap();
        (packet["mean"].as_f64().unwrap() / 1_000.0, mean * 1_000.0)
    });
    let [stock, rt]: [(f64, f64); 2] = means.collect::<Vec<_>>().try_into().unwrap();
    let (by_packet, by_ping) = (rt.0 - stock.0, rt.1 - stock.1);
    assert!(by_packet > 15.0, "{stock:?} {rt:?}");
    // ping rounds to microseconds, and each of the four means has its own ticks.
    assert!((by_packet - by_ping).abs() < 3.0, "{stock:?} {rt:?}");
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON of cyclictest.

use punctual_model::{Nanos, Preemption, Run};
use punctual_runner::import::{Told, import};

use crate::{between, changed, content, has, is_cut, is_whole, micros, read, taken, text};

#[test]
fn a_node_or_cpu_of_minus_one_is_not_known_and_no_error() {
    let run = taken("01-node-minus-one.json");
    let own = &run.recordings[0];
    assert_eq!(
        (own.count, own.min(), own.max()),
        (10_000, Some(micros(5)), Some(micros(6)))
    );
    assert_eq!(
        (own.sum, own.key.variant.as_str()),
        (Nanos(55_000_000), "cpu0")
    );
    let run = changed("01-node-minus-one.json", "\"cpu\": 0", "\"cpu\": -1").unwrap();
    assert_eq!(run.recordings[0].key.variant, "thread 0");
    // Keys have a colon or have none.
    let plain = taken("01d-keys-without-colon.json");
    assert_eq!(plain.recordings[0].histogram, own.histogram);
    assert_eq!(plain.recordings[0].interval, Some(micros(1_000)));
}

#[test]
fn a_kernel_that_is_not_real_time_is_known_to_be_none() {
    let of = |run: &Run| run.provenance.as_ref().unwrap().preemption.clone();
    let run = taken("01c-realtime-0-is-said.json");
    assert_eq!(of(&run), Preemption::Full);
    let name = "01c-realtime-0-is-said.json";
    let run = changed(name, "#1 SMP PREEMPT\"", "#1 SMP PREEMPT_DYNAMIC\"").unwrap();
    let Preemption::Unknown(why) = of(&run) else {
        panic!("{:?}", of(&run));
    };
    assert!(why.to_string().contains("not PREEMPT_RT"), "{why}");
    assert_eq!(of(&taken("01-node-minus-one.json")), Preemption::Rt);
}

#[test]
fn samples_without_a_bin_are_above_the_last_one_and_the_largest_is_known() {
    let run = taken("03-seven-without-a-bin.json");
    let own = &run.recordings[0];
    assert_eq!((own.count, own.max()), (299_989, Some(micros(3_030))));
    // Seven of 299,989 are from 1,000 to 3,030 µs.
    let above = |from: i64| {
        let bins = own.histogram.bins();
        let above = bins.filter(|bin| bin.low.0 >= from * 1_000);
        above.map(|bin| bin.count).sum::<u64>()
    };
    assert_eq!((above(1_000), above(999), above(998)), (7, 7, 15));
    assert_eq!(between(own, 0.5), (25.0, 25.0));
    assert_eq!(between(own, 0.9999), (150.0, 150.0));
    assert_eq!(between(own, 0.99998), (1_000.0, 3_030.0));
    let gap = own.distribution_gap().unwrap().to_string();
    has(&gap, &["7 samples are above the last bin", "-h 10000"]);
    // Its mean is told: 41.54.
    assert_eq!(own.mean().unwrap().0 / 100, 415);
    // 299,989 periods of 1 ms do not fit into the half minute that it took.
    assert_eq!(own.interval, None);
    // A value that would have a bin is none without one.
    let name = "03-seven-without-a-bin.json";
    has(
        &changed(name, "\"max\": 3030", "\"max\": 998").unwrap_err(),
        &["998", "1000"],
    );
    has(
        &changed(name, "\"avg\": 41.54", "\"avg\": 99.54").unwrap_err(),
        &["mean is 99.5", "41.5"],
    );
    has(
        &changed(name, "\"min\": 25", "\"min\": 24").unwrap_err(),
        &["24", "25"],
    );
    has(
        &changed(name, "299989", "299981").unwrap_err(),
        &["299981", "299982"],
    );
    has(
        &changed(name, "-h 1000", "-h 500").unwrap_err(),
        &["998", "-h 500"],
    );
}

#[test]
fn an_interval_is_of_a_command_line_that_is_understood() {
    let run = taken("04-interval-bundled-Si200.json");
    assert_eq!(run.recordings[0].interval, Some(micros(200)));
    let name = "04-interval-bundled-Si200.json";
    let with = |options: &str| {
        let run = changed(name, "-qmSi200 -p 80", options);
        run.map(|run| run.recordings[0].interval)
    };
    for (options, us) in [
        ("--interv=200", 200),
        ("-Sp99 --int 200", 200),
        ("-mqp80 -i 250", 250),
        ("-D 1h -S", 1_000),
        ("-i 1000us", 1_000),
    ] {
        assert_eq!(with(options).unwrap(), Some(micros(us)), "{options}");
    }
    for unknown in ["--some-option -i 200", "-Z 5", "-i200 a file"] {
        assert_eq!(with(unknown).unwrap(), None, "{unknown}");
    }
    for wrong in ["-i 0", "-i -5", "-i 9223372036854776"] {
        has(&with(wrong).unwrap_err(), &["--interval"]);
    }
    has(&with("-l 500").unwrap_err(), &["10000 cycles", "-l 500"]);
}

#[test]
fn a_command_line_that_is_not_understood_may_have_asked_for_more() {
    let name = "04c-same-release-host-a.json";
    for (options, words) in [
        ("-q --some-option", &["not understood", "--some-option"][..]),
        ("-q --histfile=my file", &["not understood", "\"file\""]),
        ("-q -D 1H", &["-D 3600 s"]),
        ("-q -D 1h0m0s", &["-D 3600 s"]),
        ("-q -D \\\"1h\\\"", &["-D 3600 s"]),
    ] {
        is_cut(&text(name).replacen("-q", options, 1), words);
    }
    is_whole(&text(name));
}

#[test]
fn a_file_that_was_cut_says_so() {
    let whole = text("04c-same-release-host-a.json");
    for (end, _) in whole.match_indices(',') {
        let error = read("x", &whole.as_bytes()[..end]).unwrap_err();
        has(&error, &["the last brace", "the end of the file"]);
    }
}

#[test]
fn other_machines_and_kernels_are_other_subjects() {
    let boards = ["a", "b", "c", "d", "e"].map(|host| format!("04c-same-release-host-{host}.json"));
    let subjects: Vec<_> = boards.iter().map(|name| taken(name).subject).collect();
    for (number, subject) in subjects.iter().enumerate() {
        assert!(
            subject.name.starts_with("6.12.1-rt1 on board-"),
            "{}",
            subject.name
        );
        assert!(!subjects[..number].contains(subject));
    }
    // Nor are they one by a name that was told.
    let named = |content: &[u8]| {
        let told = Told {
            subject: Some("mine".into()),
            ..Told::default()
        };
        import("x", content, &told).unwrap().subject
    };
    assert_ne!(named(&content(&boards[0])), named(&content(&boards[1])));
    assert_eq!(named(&content(&boards[0])), named(&content(&boards[0])));
    // The same name of another kind of machine, and of another kernel.
    let [arm, x86, build] = ["", "x86_64", "#2 SMP"].map(|what| {
        let text = text(&boards[0]);
        match what {
            "x86_64" => text.replace("aarch64", what),
            "#2 SMP" => text.replace("#1 SMP", what),
            _ => text,
        }
    });
    let of = |text: &str| named(text.as_bytes());
    assert!(of(&arm) != of(&x86) && of(&arm) != of(&build));
    // Of a machine without a name of its own, a file is a subject by itself; a name makes it one.
    let histograms = [1, 2].map(|number| content(&format!("05-p99-is-9us-{number}.hist")));
    let alone = histograms
        .each_ref()
        .map(|own| read("x", own).unwrap().subject);
    assert_ne!(alone[0], alone[1]);
    assert_eq!(named(&histograms[0]), named(&histograms[1]));
    let local = text(&boards[0]).replace("board-a", "localhost");
    let again = local
        .replace("\"5\": 5000", "\"5\": 4999")
        .replace("\"6\": 5000", "\"6\": 5001");
    let own = [&local, &again].map(|text| read("x", text.as_bytes()).unwrap().subject);
    assert_ne!(own[0], own[1]);
}

#[test]
fn what_json_says_twice_is_not_said() {
    let name = "04c-same-release-host-a.json";
    let thread = "\"0\": { \"histogram\": { \"9\": 1 }, \"cycles\": 1, \"min\": 9, \"max\": 9, \
        \"avg\": 9, \"cpu\": 0, \"node\": 0 },\n\"0\": {";
    for (from, to) in [
        ("\"0\": {", thread),
        ("\"5\": 5000", "\"5\": 1, \"5\": 5000"),
        ("\"max\": 6", "\"max\": 60000, \"max\": 6"),
        (
            "\"return_code\": 0",
            "\"return_code\": 1, \"return_code\": 0",
        ),
        (
            "\"realtime\": 1",
            "\"what\": {\"a\": 1, \"a\": 1}, \"realtime\": 1",
        ),
    ] {
        has(&changed(name, from, to).unwrap_err(), &["twice"]);
    }
    let jitter = "{\"version\": 3, \"sysinfo\": {\"nodename\": \"a\", \"release\": \"6\", \
        \"version\": \"#1\", \"resolution_in_ns\": 1000}, \"cpu\": {\"3\": {\"histogram\": \
        {\"5\": 1}, \"count\": 1, \"max\": 5}}}";
    assert!(read("x", jitter.as_bytes()).is_ok());
    let twice = jitter.replace("\"cpu\": {", "\"cpu\": {\"3\": {\"count\": 0}, ");
    has(&read("x", twice.as_bytes()).unwrap_err(), &["twice"]);
    // Units that are none.
    for unit in ["0", "1000000"] {
        let odd = jitter.replace("_ns\": 1000", &format!("_ns\": {unit}"));
        has(
            &read("x", odd.as_bytes()).unwrap_err(),
            &["resolution_in_ns"],
        );
    }
}

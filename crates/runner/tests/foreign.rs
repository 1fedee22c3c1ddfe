// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of other programs, as people post and send them: each is taken for what it is, or
//! refused with what is wrong.

use std::fs;
use std::path::Path;

use punctual_judge::{Answer, Baselines, Fitness, judge};
use punctual_model::finding::Fact;
use punctual_model::limit::{Demand, Limit};
use punctual_model::run::State;
use punctual_model::{Nanos, Preemption, Quantiles, Recording, Run};
use punctual_runner::import::{Told, import, is_unit_doubtful};

fn content(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/field");
    fs::read(folder.join(name)).unwrap()
}

fn text(name: &str) -> String {
    String::from_utf8(content(name)).unwrap()
}

fn read(name: &str, content: &[u8]) -> Result<Run, String> {
    import(name, content, &Told::default()).map_err(|error| error.to_string())
}

fn taken(name: &str) -> Run {
    read(name, &content(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn refused(name: &str) -> String {
    read(name, &content(name)).expect_err(name)
}

/// A file with one thing in it replaced.
fn changed(name: &str, from: &str, to: &str) -> Result<Run, String> {
    let text = text(name);
    assert!(text.contains(from), "{name}: {from}");
    read(name, text.replacen(from, to, 1).as_bytes())
}

#[track_caller]
fn has(error: &str, words: &[&str]) {
    for word in words {
        assert!(error.contains(word), "no \"{word}\": {error}");
    }
}

const fn micros(us: i64) -> Nanos {
    Nanos::from_micros(us)
}

/// Between what a quantile is, in microseconds.
fn between(recording: &Recording, q: f64) -> (f64, f64) {
    let all = Quantiles::of(std::iter::once(recording));
    let (low, high) = all.between(q).unwrap();
    (low.as_micros_f64(), high.as_micros_f64())
}

fn counts(run: &Run) -> Vec<u64> {
    run.recordings.iter().map(|one| one.count).collect()
}

fn worst_us(run: &Run) -> Vec<i64> {
    let all = run.recordings.iter().filter_map(Recording::max);
    all.map(|max| max.0 / 1_000).collect()
}

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
fn what_is_told_never_overrides_what_a_file_says() {
    let told = |name: &str, interval: Nanos| {
        let told = Told {
            interval: Some(interval),
            ..Told::default()
        };
        import(name, &content(name), &told).map_err(|error| error.to_string())
    };
    let hour = Nanos::from_millis(3_600_000);
    let bundled = "04-interval-bundled-Si200.json";
    let error = told(bundled, hour).unwrap_err();
    has(&error, &["--interval 3600 s", "200 µs in the file"]);
    assert!(told(bundled, Nanos::from_micros(200)).is_ok());
    has(
        &told("16-rtla-bucket-10.txt", hour).unwrap_err(),
        &["in the file"],
    );
    has(
        &told("10-plain-lines.txt", hour).unwrap_err(),
        &["1.00 ms in the file"],
    );
    // A file that says nothing of it takes what is told; one that says when it ended, what fits.
    assert!(told("05-p99-is-9us-1.hist", hour).is_ok());
    let unknown = text(bundled).replace("-qmSi200", "--what -q");
    let of = |interval| {
        let told = Told {
            interval: Some(interval),
            ..Told::default()
        };
        import("c.json", unknown.as_bytes(), &told).map_err(|error| error.to_string())
    };
    assert!(of(Nanos::from_micros(200)).is_ok());
    has(&of(hour).unwrap_err(), &["10000 samples in 30.0 s"]);
}

#[test]
fn a_value_of_whole_microseconds_is_what_is_written() {
    for number in 1..=5 {
        let run = taken(&format!("05-p99-is-9us-{number}.hist"));
        let own = &run.recordings[0];
        assert_eq!(between(own, 0.99), (9.0, 9.0));
        assert_eq!(between(own, 0.5), (5.0, 5.0));
        assert_eq!((own.sum, own.distribution_gap()), (Nanos(54_000_000), None));
    }
}

#[test]
fn rows_that_were_left_out_are_missed() {
    has(&refused("08-rows-left-out.hist"), &["line 5", "..."]);
    let without = |line: &str| changed("08-rows-left-out.hist", line, "").unwrap_err();
    has(&without("...\n"), &["# Total: 4103", "60000"]);
    // Neither is said how many there are: the mean tells.
    let text = text("08-rows-left-out.hist").replace("...\n", "");
    let text = text.replace("# Total: 000060000\n", "");
    let error = read("x", text.as_bytes()).unwrap_err();
    has(&error, &["mean is 17", "5.04"]);
    let five = "05-p99-is-9us-1.hist";
    has(
        &changed(five, "Min Latencies: 00005", "Min Latencies: 00004").unwrap_err(),
        &["4", "5"],
    );
    has(
        &changed(five, "Max Latencies: 00009", "Max Latencies: 00010").unwrap_err(),
        &["10", "9"],
    );
    has(
        &changed(five, "Avg Latencies: 00005", "Avg Latencies: 00006").unwrap_err(),
        &["6", "5.40"],
    );
    has(
        &changed(five, "Overflows: 00000", "Overflows: 00001").unwrap_err(),
        &["9", "10"],
    );
    has(
        &changed(five, "005 009000", "005 009000 009000").unwrap_err(),
        &["as many counts"],
    );
    has(
        &changed(five, "# Max Latencies: 00009\n", "").unwrap_err(),
        &["# Max Latencies"],
    );
    has(
        &changed(five, "000009 001000\n", "000009 001000\n12\n").unwrap_err(),
        &["bin"],
    );
}

#[test]
fn several_results_in_a_file_are_never_mixed() {
    has(
        &refused("09-two-results-appended.hist"),
        &["line 12", "one result in a file"],
    );
    for name in [
        "01-node-minus-one.json",
        "16-rtla-bucket-10.txt",
        "17-rtla-stopped-old.txt",
        "10-plain-lines.txt",
        "05-p99-is-9us-1.hist",
    ] {
        let text = text(name);
        // The same again, by other threads.
        let again = text.replace("( 45", "( 99");
        let error = read(name, (text + &again).as_bytes()).unwrap_err();
        has(&error, &["one result in a file"]);
    }
    // Without the title of the second.
    let text = text("09-two-results-appended.hist");
    let (first, second) = text.split_once("\n\n").unwrap();
    let second = second.replace("# Histogram\n", "");
    let error = read("x", format!("{first}\n{second}").as_bytes()).unwrap_err();
    has(&error, &["one histogram"]);
    // Each by itself is sound.
    assert_eq!(counts(&read("x", first.as_bytes()).unwrap()), [1_500]);
}

#[test]
fn a_file_is_read_whatever_way_it_came() {
    let mut others = ["09d-latin1-comment.hist", "09e-quoted-in-mail.hist"].map(taken);
    let run = taken("09c-byte-order-mark.hist");
    assert_eq!(
        (counts(&run), worst_us(&run)),
        (vec![60_000; 2], vec![27, 31])
    );
    for other in &mut others {
        // These have the threads' lines, too, which say the interval.
        assert_eq!(other.recordings[0].interval, Some(micros(1_000)));
        for (own, other) in run.recordings.iter().zip(&other.recordings) {
            assert_eq!(own.histogram, other.histogram);
        }
    }
    // PowerShell, Windows, and a code block in a forum.
    let text = text("09e-quoted-in-mail.hist").replace("> ", "");
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let windows = text.replace('\n', "\r\n").into_bytes();
    let indented = text.replace('\n', "\n    ").into_bytes();
    for bytes in [utf16, windows, indented] {
        assert_eq!(worst_us(&read("x", &bytes).unwrap()), [27, 31]);
    }
    // The threads' lines agree with the bins, or the file is refused.
    let name = "09e-quoted-in-mail.hist";
    has(
        &changed(name, "C:  59998", "C:  60001").unwrap_err(),
        &["C:60001", "60000"],
    );
    has(
        &changed(name, "Max:      27", "Max:      28").unwrap_err(),
        &["Max:28", "27"],
    );
    has(
        &changed(name, "Min:     10", "Min:      9").unwrap_err(),
        &["Min:9", "10"],
    );
}

#[test]
fn lines_of_threads_have_a_worst_case_and_no_distribution() {
    let run = taken("10-plain-lines.txt");
    assert_eq!(run.recordings.len(), 7);
    let own = &run.recordings[1];
    assert_eq!((own.count, own.key.variant.as_str()), (515_381, "thread 1"));
    assert_eq!(
        (own.min(), own.max()),
        (Some(micros(1)), Some(micros(60_119)))
    );
    assert_eq!(own.interval, Some(micros(1_500)));
    assert_eq!(between(own, 0.5), (1.0, 60_119.0));
    let all = Quantiles::of(std::iter::once(own));
    assert_eq!((all.at(0.5), own.mean()), (None, None));
    let (low, high) = own.mean_between().unwrap();
    assert!(
        (low - 3_000.0).abs() < 1.0 && (high - 4_000.0).abs() < 1.0,
        "{low} {high}"
    );
    has(
        &own.distribution_gap().unwrap().to_string(),
        &["no distribution", "-h 100000"],
    );
    // As a screen shows them again and again, the last is what counts.
    let line = "T: 0 ( 4541) P:99 I:1000 C:   1000 Min:      1 Act:    6 Avg:    3 Max:      12\n";
    let head = "policy: fifo: loadavg: 0.03 0.01 0.00 1/683 148608\n\n";
    let screens = format!("{head}{line}\x1b[9A{head}{}", text("10-plain-lines.txt"));
    assert_eq!(
        read("x", screens.as_bytes()).unwrap().recordings[0].max(),
        Some(micros(53_381))
    );
    let name = "10-plain-lines.txt";
    has(
        &changed(name, "Avg:    3 Max:   53381", "Avg:    3 Max:       2").unwrap_err(),
        &["Max:2"],
    );
    has(
        &changed(name, "Act:    6 Avg:    3", "Act:    1 Avg:60000").unwrap_err(),
        &["60000"],
    );
    has(&changed(name, "T: 1 ", "T: 9 ").unwrap_err(), &["thread 1"]);
}

#[test]
fn bins_are_as_wide_as_they_are() {
    let run = taken("16-rtla-bucket-10.txt");
    assert_eq!(worst_us(&run), [7, 21, 24, 3, 11, 15]);
    // IRQ: all in the first bin. Thread: 944, 55, 1.
    assert_eq!(between(&run.recordings[0], 0.5), (0.0, 7.0));
    assert_eq!(between(&run.recordings[1], 0.5), (3.0, 9.0));
    assert_eq!(between(&run.recordings[1], 0.99), (10.0, 19.0));
    let gap = run.recordings[1].distribution_gap().unwrap().to_string();
    has(&gap, &["10 µs wide", "-b 1"]);
    let run = taken("16b-rtla-bucket-10-largest-on-a-boundary.txt");
    let own = &run.recordings[1];
    assert_eq!(between(own, 0.5), (10.0, 19.0));
    let (low, high) = own.mean_between().unwrap();
    assert!(
        (low, high) >= (15_000.0, 15_000.0) && high <= 16_001.0,
        "{low} {high}"
    );
    assert_eq!(own.settings["bin_width_ns"], Fact::Number(10_000));
    // A command line above says how wide bins are.
    let name = "16b-rtla-bucket-10-largest-on-a-boundary.txt";
    let with = |line: &str| read(name, format!("{line}\n{}", text(name)).as_bytes());
    assert!(with("# rtla timerlat hist -b 10 -d 10").is_ok());
    let error = with("# rtla timerlat hist -d 10").unwrap_err();
    has(&error, &["smallest sample is 1", "first bin is 0"]);
    has(
        &with("# rtla timerlat hist -b 7").unwrap_err(),
        &["bins of 7"],
    );
    // What is said twice agrees.
    for (from, to, words) in [
        ("avg:          5", "avg:         99", &["99"][..]),
        ("max:         60", "max:         70", &["70", "60"]),
        ("min:          1", "min:         10", &["10"]),
        ("over:         0", "over:         1", &["10000"]),
        (
            "count:    10000     10000\n",
            "count:    10000      9999\n",
            &["9999", "10000"],
        ),
    ] {
        let error = changed(name, from, to).unwrap_err();
        has(&error, words);
    }
    let name = "16-rtla-bucket-10.txt";
    let last = "count:     1999      1999      1999\n";
    let error = changed(name, last, "count:     1999      3999      1999\n").unwrap_err();
    has(&error, &["ALL:", "1999", "3999"]);
}

#[test]
fn xenomais_bins_are_held_against_its_summary() {
    let name = "21b-xenomai-latency-B-10us.txt";
    has(&refused(name), &["latency -B", "largest sample is 52299"]);
    // Where the command line is there, too, it says how wide they are.
    let text = format!("root@board:~# latency -h -B 10000 -T 2\n{}", text(name));
    let run = read(name, text.as_bytes()).unwrap();
    let own = &run.recordings[0];
    assert_eq!((own.count, own.max()), (20_000, Some(Nanos(52_299))));
    assert_eq!(between(own, 0.4), (1.269, 9.999));
    assert_eq!(between(own, 0.9), (10.0, 19.999));
    let bins = own.histogram.bins();
    let above: u64 = bins
        .filter(|bin| bin.low.0 > 5_000)
        .map(|bin| bin.count)
        .sum();
    assert_eq!(above, 11_000);
    has(
        &refused("21-xenomai-bars-at-line-ends.txt"),
        &["latency -h"],
    );
}

#[test]
fn what_follows_rtlas_summary_is_no_data() {
    let run = taken("17-rtla-stopped-old.txt");
    assert_eq!(counts(&run), [1, 1, 1, 1, 1, 0]);
    assert_eq!(worst_us(&run), [2, 33, 36, 49, 52]);
    assert_eq!(run.recordings[5].extremes, None);
}

#[test]
fn what_is_known_and_holds_no_latencies_is_named() {
    for (name, words) in [
        ("13-verbose.txt", &["cyclictest -v", "-h 1000"][..]),
        (
            "18-json-without-h.json",
            &["without -h", "measure with -h 1000"],
        ),
        ("18b-rtla-no-header.txt", &["--no-header"]),
        ("19-osnoise.txt", &["rtla osnoise", "rtla timerlat hist"]),
        ("23-rtai-ns.txt", &["RTAI", "nanoseconds"]),
    ] {
        has(&refused(name), words);
    }
    for (text, words) in [
        ("oslat V 2.60\nTotal runtime: \t\t60 seconds\n", "oslat"),
        (
            "hwlatdetect:  test duration 120 seconds\n   detector: tracer\n",
            "hwlatdetect",
        ),
        (
            "rtla timerlat hit stop tracing\n  IRQ latency: 49.11 us\n",
            "analysis of rtla",
        ),
        (
            "                                     Timer Latency                     \n",
            "timerlat hist",
        ),
        (
            "       0:       0:       6\n       1:       0:       7\n",
            "cyclictest -v",
        ),
        (
            "T: 0 ( 1234) P:80 C:   1000 Min:  1 Act:  2 Avg:  2 Max:  9\n",
            "signaltest",
        ),
        (
            "#1: ID10, P80, CPU0, I1000; #2: ID11, P80, CPU0, TO 0, Cycles 1000\n",
            "pmqtest",
        ),
        ("# tracer: timerlat\n", "punctual explain"),
        (
            "0   100   200\n5   1   2\nover:  0  0\ncount: 1 1\n",
            "--no-header",
        ),
    ] {
        has(&read("x", text.as_bytes()).unwrap_err(), &[words]);
    }
    has(&read("x", b"\x1f\x8b\x08\0\0").unwrap_err(), &["gunzip"]);
    for program in ["oslat", "signaltest", "pmqtest", "cyclicdeadline"] {
        let name = "18-json-without-h.json";
        let error = changed(name, "cyclictest -S", &format!("/usr/bin/{program} -S")).unwrap_err();
        has(
            &error,
            &[&format!("the results of {program}"), "cyclictest -h 1000"],
        );
    }
}

/// First lines of what programs print that measure something else, as they print it.
const ELSE: [(&str, &str); 18] = [
    (
        "     usecs               : count     distribution\n         0 -> 1          : 233      |****   |\n",
        "bcc",
    ),
    (
        "@usecs:\n[2, 4)               244 |@@@@@@@@@@@@@@@@           |\n",
        "bpftrace",
    ),
    (
        " Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    |\n",
        "perf sched latency",
    ),
    (
        "# Running 'sched/messaging' benchmark:\n# 20 sender and receiver processes per group\n",
        "perf bench",
    ),
    (
        "<?xml version=\"1.0\"?>\n<rteval version=\"3.5\">\n",
        "rteval",
    ),
    ("  ====\n   rteval (v3.5) report\n", "rteval"),
    (
        "Min loop processing time: [500 - 599] = 13792\n",
        "queuelat",
    ),
    (
        "Parent pid: 24105\n Task 0 (prio 50) (pid 24106):\n   Max: 20067 us\n",
        "rt-migrate-test",
    ),
    (
        "forktest#0/24057/24059: STARTING\nAll tests PASSED.\n",
        "ssdd",
    ),
    (
        "Total inversion performed: 75967\nTest Duration: 0 days\n",
        "pi_stress",
    ),
    (
        "stress-ng: metrc: [24280] stressor       bogo ops real time  usr time\n",
        "stress-ng's metrics",
    ),
    (
        "t0-min-latency pass 5 us\nt0-max-latency pass 77 us\n",
        "LAVA",
    ),
    (
        "realtime test: latency (kernel)\nRTH|     lat min|     ovl min|     lat avg|\nRTD|       -2415|       -2415|\n",
        "LinuxCNC",
    ),
    (
        "ts: 1646837351.550312752, inner:46, outer:45\n",
        "hwlatdetect",
    ),
    (
        "T: 0 (  592) A: 0 C:      1987 Min:        15 Avg:   33.81 Max:      1331 \n",
        "jitterdebugger",
    ),
    (
        "# Min Latencies: 00005\n# Max Latencies: 00007\n",
        "without its rows",
    ),
    (
        "T: 0 ( 1233) P:99 I:1000 C: 10000 Min: 3 Act: 8 Avg: 7 Max:\n",
        "with whole numbers",
    ),
    (
        "# tracer: function_graph\n 0)   1.382 us    |  __might_sleep();\n",
        "function_graph",
    ),
];

#[test]
fn what_measures_something_else_is_named() {
    for (text, words) in ELSE {
        has(&read("x", text.as_bytes()).unwrap_err(), &[words]);
    }
    let latmus = "RTT|  00:00:01  (user, 1000 us period, priority 98, CPU1)\n\
        RTD|      1.234|      2.456|      8.901|       0|     0|      1.234|      8.901\n\
        RTS|      1.100|      2.300|     12.500|       0|     0|    00:00:01/00:00:01\n";
    has(&read("x", latmus.as_bytes()).unwrap_err(), &["latmus -g"]);
}

/// `cyclictest` of rt-tests 2.4 as it runs, with its screen in a file: its second thread has no
/// id at first.
#[test]
fn a_screen_that_was_kept_from_its_first_moment_is_one_result() {
    let screen = "policy: fifo: loadavg: 4.81 2.12 2.62 9/165 23373\n\n\
        T: 0 (23372) P:90 I:1000 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0\n\
        T: 1 (    0) P:90 I:1500 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0\n\
        \x1b[4Apolicy: fifo: loadavg: 4.81 2.12 2.62 8/165 23373\n\n\
        T: 0 (23372) P:90 I:1000 C:     10 Min:     17 Act:   27 Avg:   27 Max:      35\n\
        T: 1 (23373) P:90 I:1500 C:      6 Min:     16 Act:   33 Avg:   25 Max:      34\n";
    let run = read("x", screen.as_bytes()).unwrap();
    assert_eq!((counts(&run), worst_us(&run)), (vec![10, 6], vec![35, 34]));
    // A thread that has an id is not another one's beginning.
    let other = screen.replace("T: 1 (    0)", "T: 1 (  777)");
    has(&read("x", other.as_bytes()).unwrap_err(), &["second one"]);
}

/// `--smi` and `--spike` add to the lines `T:`.
#[test]
fn what_options_add_to_lines_is_read_with_them() {
    let line = "T: 0 (23511) P: 9 I:1000 C:    500 Min:     35 Act:   75 Avg:  100 Max:    3761";
    let smi = format!("{line} SMI:       2\n");
    let spikes = format!("{line}\n\nT: 0 Spike:      90: TS:  55189289376\nspikes = 1\n");
    for text in [&smi, &spikes] {
        let run = read("x", text.as_bytes()).unwrap();
        assert_eq!((counts(&run), worst_us(&run)), (vec![500], vec![3_761]));
    }
    let above = spikes.replace("    90: TS", "  9000: TS");
    has(
        &read("x", above.as_bytes()).unwrap_err(),
        &["its largest is 3761"],
    );
}

/// `cyclictest -N -l 200`: nothing but their size shows that the values are nanoseconds. They
/// are taken for what the file's form says, which makes no kernel better than it is, and told.
#[test]
fn values_that_are_all_longer_than_their_interval_are_doubtful() {
    let line = "T: 0 (23410) P: 0 I:1000 C:    200 Min:  66482 Act:   82852 Avg:  113245 Max: \
                2369761\n";
    let run = read("x", line.as_bytes()).unwrap();
    assert!(is_unit_doubtful(&run));
    assert_eq!(worst_us(&run), [2_369_761]);
    let told = Told {
        nanoseconds: true,
        ..Told::default()
    };
    let run = import("x", line.as_bytes(), &told).unwrap();
    assert!(!is_unit_doubtful(&run));
    assert_eq!(run.recordings[0].extremes.unwrap().1, Nanos(2_369_761));
    let usual = line.replace("66482", "  900");
    assert!(!is_unit_doubtful(&read("x", usual.as_bytes()).unwrap()));
    let histogram = "# Histogram\n001510 000009\n002000 000001\n# Min Latencies: 01510\n\
        # Avg Latencies: 01559\n# Max Latencies: 02000\n# Histogram Overflows: 00000\n";
    assert!(is_unit_doubtful(&read("x", histogram.as_bytes()).unwrap()));
    // JSON says its unit.
    let slow = changed("01-node-minus-one.json", "\"min\": 5", "\"min\": 5").unwrap();
    assert!(!is_unit_doubtful(&slow));
}

/// jitterdebugger 0.3.1 counts what is longer than its interval, and puts it into no bin.
#[test]
fn what_jitterdebugger_leaves_out_of_its_bins_is_known_as_such() {
    let results = r#"{"version": 3, "sysinfo": {"sysname": "Linux", "nodename": "a",
        "release": "6.1", "version": "PREEMPT RT", "machine": "x86_64", "cpus_online": 1,
        "resolution_in_ns": 1000}, "cpu": {"0": {"histogram": {"15": 980, "822": 18},
        "count": 1000, "min": 15, "max": 1331, "avg": 31.83}}}"#;
    let run = read("x", results.as_bytes()).unwrap();
    assert_eq!((counts(&run), worst_us(&run)), (vec![1_000], vec![1_331]));
    let lost = results.replace("1331", "822");
    has(
        &read("x", lost.as_bytes()).unwrap_err(),
        &["expected 1000 samples"],
    );
}

/// A log of a CI has the time before each line.
#[test]
fn times_that_a_log_has_put_before_each_line_are_none_of_it() {
    let plain = text("05-p99-is-9us-1.hist");
    let lines = plain.lines();
    let logged = lines.fold(String::new(), |text, line| {
        text + "2024-08-29T10:24:53.1234567Z "
            + line
            + "
"
    });
    let [plain, logged] = [plain, logged].map(|text| read("x", text.as_bytes()).unwrap());
    assert_eq!(plain.recordings, logged.recordings);
    let page = "<pre># Histogram\n000005 000100\n# Min Latencies: 00005\n</pre>\n";
    has(
        &read("x", page.as_bytes()).unwrap_err(),
        &["other words stand before each"],
    );
    let journal = "Aug 29 10:24:53 board cyclictest[12]: # Histogram\n";
    has(
        &read("x", journal.as_bytes()).unwrap_err(),
        &["other words stand before each"],
    );
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
fn copies_of_a_file_are_known_by_what_they_say() {
    let sound = "# run 1\n# Histogram\n000007 000003\n# Min Latencies: 00007\n\
        # Avg Latencies: 00007\n# Max Latencies: 00007\n# Histogram Overflows: 00000\n";
    let text = |content: &str| {
        let run = import("c.hist", content.as_bytes(), &Told::default()).unwrap();
        run.imported_text().unwrap().to_owned()
    };
    let quoted = format!("> {}", sound.replace('\n', "\r\n> "));
    for copy in [format!("{sound}\n\n"), quoted, format!("\u{feff}{sound}")] {
        assert_eq!(text(&copy), text(sound), "{copy}");
    }
    assert_ne!(text(&sound.replace("run 1", "run 2")), text(sound));
    assert_ne!(text(&sound.replace("000003", "000004")), text(sound));
}

/// What comes of a limit on the worst case: a millisecond.
fn verdict(runs: &[Run]) -> (Fitness, String) {
    let limit = Limit {
        name: None,
        probe: "timer".into(),
        load: None,
        variant: None,
        part: None,
        subject: None,
        demand: Demand::Never(micros(1_000)),
        confidence: 0.95,
        runs: None,
    };
    let found = judge(&[limit], runs, &Baselines::default()).unwrap();
    let reasons: Vec<String> = found.answers.iter().map(Answer::reason).collect();
    let told = [found.remarks.clone(), reasons].concat().join("; ");
    (found.fitness(), told)
}

/// These files, imported as runs of one subject.
fn runs_of(files: &[String]) -> Vec<Run> {
    let told = Told {
        subject: Some("mine".into()),
        ..Told::default()
    };
    let run = |(file, number): (&String, u32)| {
        let mut run = import("x", file.as_bytes(), &told).unwrap();
        run.id = format!("r{number}");
        run
    };
    files.iter().zip(1..).map(run).collect()
}

/// A thread's line, as cyclictest prints it.
fn line(index: u64, tid: u64, cycles: u64, max: u64) -> String {
    format!(
        "T: {index:2} ({tid:5}) P:80 I:1000 C:{cycles:7} Min:      5 Act:    7 Avg:    7 \
         Max:{max:8}\n"
    )
}

#[test]
fn lines_of_threads_go_on_only_where_they_cover_others() {
    let second = |text: String| has(&read("x", text.as_bytes()).unwrap_err(), &["one result"]);
    // The same thread ids after each boot.
    second(line(0, 234, 1_000, 40) + &line(0, 234, 1_001, 47));
    let head = "policy: fifo: loadavg: 0.03 0.01 0.00 1/683 148608\n\n";
    second(format!(
        "{head}{}{head}{}",
        line(0, 234, 10, 40),
        line(0, 234, 11, 47)
    ));
    let screens = |first: &str, second: &str| {
        let text = format!("{head}{first}\x1b[3A{head}{second}");
        read("x", text.as_bytes())
    };
    let first = line(0, 234, 1_000, 40);
    assert_eq!(
        counts(&screens(&first, &line(0, 234, 2_000, 47)).unwrap()),
        [2_000]
    );
    // As a forum shows it.
    let pasted = format!("{head}{first}[3A{head}{}", line(0, 234, 2_000, 47));
    assert_eq!(worst_us(&read("x", pasted.as_bytes()).unwrap()), [47]);
    // Nothing that was counted is lost, and what was added is possible.
    for other in [
        line(0, 235, 2_000, 47),
        line(0, 234, 999, 47),
        line(0, 234, 1_000, 47),
        line(0, 234, 2_000, 39),
        line(0, 234, 2_000, 47).replace("P:80", "P:70"),
        line(0, 234, 2_000, 47).replace("I:1000", "I:2000"),
        line(0, 234, 1_001, 47).replace("Avg:    7", "Avg:    9"),
    ] {
        has(&screens(&first, &other).unwrap_err(), &["one result"]);
    }
}

#[test]
fn a_thread_without_a_column_is_none_that_may_be_passed_over() {
    let name = "05-p99-is-9us-1.hist";
    let with = |line: &str| read(name, format!("{line}{}", text(name)).as_bytes());
    has(
        &with(&line(1, 235, 500, 90_000)).unwrap_err(),
        &["thread 1", "1 threads"],
    );
    let below = format!("{}# Thread 1: 00200\n", text(name));
    has(
        &read(name, below.as_bytes()).unwrap_err(),
        &["without a column"],
    );
    // At the end it says what the histogram says.
    let end = line(0, 234, 10_000, 8);
    has(&with(&end).unwrap_err(), &["Max:8", "9"]);
    let name = "04c-same-release-host-a.json";
    let with = |line: &str| read(name, format!("{line}{}", text(name)).as_bytes());
    has(
        &with(&line(1, 235, 500, 90_000)).unwrap_err(),
        &["thread 1"],
    );
    has(
        &with(&line(0, 235, 500, 90_000)).unwrap_err(),
        &["Max:90000"],
    );
    assert!(with(&line(0, 235, 9_900, 6)).is_ok());
    // Values of -v.
    let name = "05-p99-is-9us-1.hist";
    let values = format!("       0:       1:      77\n{}", text(name));
    has(&read(name, values.as_bytes()).unwrap_err(), &["77", "-v"]);
}

#[test]
fn a_second_result_of_another_program_is_never_passed_over() {
    let all = [
        "04c-same-release-host-a.json",
        "05-p99-is-9us-1.hist",
        "16-rtla-bucket-10.txt",
        "10-plain-lines.txt",
    ];
    for (place, one) in all.iter().enumerate() {
        for (_, other) in all.iter().enumerate().filter(|(other, _)| *other != place) {
            let both = format!("{}\n{}", text(one), text(other));
            let both = read("x", both.as_bytes()).map(|run| run.suite);
            assert!(both.is_err(), "{one}, {other}: {both:?}");
        }
    }
    let untitled = [
        text(all[1]).replace("# Histogram\n", ""),
        text(all[2]).replace("# RTLA timerlat histogram\n", ""),
        "oslat V 2.60\nMaximum: 900 (us)\n".to_owned(),
        "#1: ID10, P80, CPU0, I1000; #2: ID11, P80, CPU0, TO 0, Cycles 1000\n".to_owned(),
        "RTD|      1.269|      2.865|      9.891|       0|     0|      1.269|      9.891\n"
            .to_owned(),
    ];
    for other in untitled {
        for one in all {
            for both in [text(one) + &other, other.clone() + &text(one)] {
                let both = read("x", both.as_bytes()).map(|run| run.suite);
                assert!(both.is_err(), "{one}, {other}: {both:?}");
            }
        }
    }
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

#[test]
fn units_that_contradict_each_other_are_none() {
    let name = "04c-same-release-host-a.json";
    let nano = "\"resolution_in_ns\": 1";
    has(
        &changed(name, "\"resolution_in_ns\": 0", nano).unwrap_err(),
        &["without -N"],
    );
    has(
        &changed(name, "-q -h", "-N -q -h").unwrap_err(),
        &["with -N"],
    );
    assert!(changed(name, "\"resolution_in_ns\": 0", "\"resolution_in_ns\": 7").is_err());
    let name = "16-rtla-bucket-10.txt";
    for unit in ["milliseconds (ms)", "seconds (s)", "nanoseconds (us)"] {
        has(
            &changed(name, "microseconds (us)", unit).unwrap_err(),
            &["Time unit"],
        );
    }
    has(
        &changed(name, "# Time unit is microseconds (us)\n", "").unwrap_err(),
        &["Time unit"],
    );
    let command = format!("# rtla timerlat hist -n -b 10\n{}", text(name));
    has(&read(name, command.as_bytes()).unwrap_err(), &["two units"]);
}

#[test]
fn what_failed_or_was_cut_short_is_no_whole_measurement() {
    let why = |run: Result<Run, String>| {
        let run = run.unwrap();
        (run.state, run.error.unwrap_or_default())
    };
    let name = "04c-same-release-host-a.json";
    let (state, error) = why(changed(name, "\"return_code\": 0", "\"return_code\": 1"));
    assert_eq!(state, State::Failed);
    has(&error, &["status 1"]);
    for (options, words) in [
        ("-l 100000 -q", &["10000 cycles", "-l 100000"][..]),
        ("-D 1m -q", &["10000 cycles", "-D 60 s"]),
        ("-D 60 -l 20000 -q", &["-l 20000"]),
        ("-b 1 -q", &["ends it, by -b 1"]),
    ] {
        let (state, error) = why(changed(name, "-q", options));
        assert_eq!(state, State::Interrupted, "{options}");
        has(&error, words);
    }
    for whole in [
        "-l 10000 -q",
        "-D 10 -q",
        "-D 1m -l 10000 -q",
        "-D 10 -l 99999 -q",
    ] {
        assert_eq!(
            why(changed(name, "-q", whole)).0,
            State::Finished,
            "{whole}"
        );
    }
    // A thread that ended long before the others.
    let more = text(name)
        .replace("\"num_threads\": 1", "\"num_threads\": 2")
        .replace(
            "\"0\": {\n",
            "\"1\": { \"histogram\": { \"5\": 10 }, \"cycles\": 10, \"min\": 5, \"max\": 5, \
         \"avg\": 5.0, \"cpu\": 1, \"node\": 0 },\n\"0\": {\n",
        );
    let (state, error) = why(read(name, more.as_bytes()));
    assert_eq!(state, State::Interrupted);
    has(&error, &["cpu1 has 10 samples where another has 10000"]);
    let lines = line(0, 234, 10_000, 40) + &line(1, 235, 10, 9);
    assert_eq!(why(read("x", lines.as_bytes())).0, State::Interrupted);
    // What it broke off at is a sample of its own.
    let broken = |value: u64| {
        let lines = line(0, 234, 10_000, 40);
        let lines = format!("{lines}# Break thread: 234\n# Break value: {value}\n");
        read("x", lines.as_bytes())
    };
    let (state, error) = why(broken(40));
    assert_eq!(state, State::Interrupted);
    has(&error, &["it broke off at 40"]);
    has(
        &broken(9_001).unwrap_err(),
        &["a break value of 9001, and no sample above 40"],
    );
    // Threads of other intervals measure for the same time.
    assert_eq!(taken("10-plain-lines.txt").state, State::Finished);
    let name = "16-rtla-bucket-10.txt";
    let short = format!("# rtla timerlat hist -b 10 -d 1m\n{}", text(name));
    let (state, error) = why(read(name, short.as_bytes()));
    assert_eq!(state, State::Interrupted);
    has(&error, &["2 s", "-d 60 s"]);
    let (state, error) = why(Ok(taken("17-rtla-stopped-old.txt")));
    assert_eq!(
        (state, error.as_str()),
        (State::Interrupted, "rtla timerlat hit stop tracing")
    );
    let xenomai = format!(
        "# latency -h -B 10000\n{}",
        text("21b-xenomai-latency-B-10us.txt")
    );
    let xenomai = xenomai.replace("00:00:02/00:00:02", "00:00:02/00:01:00");
    let (state, error) = why(read("x", xenomai.as_bytes()));
    assert_eq!((state, error.as_str()), (State::Interrupted, "2 s of 60 s"));
    // What was seen breaks a limit, and what was not keeps none.
    let five: Vec<String> = (0..5)
        .map(|minute| {
            let file = text("04c-same-release-host-a.json");
            let file = file.replace("11:52:32", &format!("11:4{minute}:32"));
            file.replace("\"return_code\": 0", "\"return_code\": 2")
        })
        .collect();
    let (fitness, told) = verdict(&runs_of(&five));
    assert_eq!(fitness, Fitness::Undecided, "{told}");
    has(&told, &["status 2"]);
}

#[test]
fn rtlas_analysis_and_summary_are_of_its_columns() {
    let name = "17-rtla-stopped-old.txt";
    for (from, to, words) in [
        ("52.93 us (100%)", "82.93 us (100%)", &["82.93", "52"][..]),
        (
            "49.11 us in cpu 2",
            "90.11 us in cpu 2",
            &["90.11", "CPU 2"],
        ),
    ] {
        has(&changed(name, from, to).unwrap_err(), words);
    }
    let name = "16-rtla-bucket-10.txt";
    // A column that was cut off.
    let cut: String = text(name)
        .lines()
        .map(
            |line| match line.split_whitespace().collect::<Vec<_>>()[..] {
                [first, a, b, _, d, e, _] => format!("{first} {a} {b} {d} {e}\n"),
                _ => format!("{line}\n"),
            },
        )
        .collect();
    has(
        &read(name, cut.as_bytes()).unwrap_err(),
        &["count: 0 of Usr"],
    );
    let twice = text(name).replace("IRQ-002   Thr-002   Usr-002", "IRQ-001   Thr-001   Usr-001");
    has(
        &read(name, twice.as_bytes()).unwrap_err(),
        &["each column once"],
    );
}

#[test]
fn time_that_contradicts_a_file_is_no_time() {
    let name = "16-rtla-bucket-10.txt";
    assert_eq!(
        taken(name).recordings[0].interval,
        None,
        "1,000 samples in 2 s are not of 1 ms"
    );
    let days = changed(name, "0 00:00:02", "10 00:00:00").unwrap();
    assert_eq!(days.recordings[0].interval, None);
    let second = changed(name, "0 00:00:02", "0 00:00:01").unwrap();
    assert_eq!(second.recordings[0].interval, Some(micros(1_000)));
    let command = |options: &str| {
        let text = format!("# rtla timerlat hist -b 10 {options}\n{}", text(name));
        read(name, text.as_bytes()).map(|run| run.recordings[0].interval)
    };
    assert_eq!(command("-p 2000").unwrap(), Some(micros(2_000)));
    has(
        &command("-p 100000").unwrap_err(),
        &["1000 samples each 100000 us", "2 s"],
    );
    let told = |interval| {
        let told = Told {
            interval: Some(interval),
            ..Told::default()
        };
        import(name, &content(name), &told).map_err(|error| error.to_string())
    };
    assert!(told(micros(1_000)).is_ok());
    has(
        &told(micros(9_000)).unwrap_err(),
        &["1000 samples in 2.00 s"],
    );

    let xenomai = format!(
        "# latency -h -B 10000\n{}",
        text("21b-xenomai-latency-B-10us.txt")
    );
    let with = |from: &str, to: &str| {
        assert!(xenomai.contains(from), "{from}");
        read("x", xenomai.replacen(from, to, 1).as_bytes())
    };
    has(
        &with("100 us period", "100000 us period").unwrap_err(),
        &["20000 samples", "2 s"],
    );
    let other = "RTT|  00:00:02  (periodic user-mode task, 900 us period, priority 99)\nRTS|";
    has(&with("RTS|", other).unwrap_err(), &["one period"]);

    let name = "04c-same-release-host-a.json";
    has(
        &changed(name, "-q", "-D 4 -q").unwrap_err(),
        &["10000 cycles", "-D 4"],
    );
    has(
        &changed(name, "11:53:02", "11:51:02").unwrap_err(),
        &["before it began"],
    );
    has(
        &changed(name, "12 Jan 2026 11:53:02", "sometime").unwrap_err(),
        &["sometime"],
    );
    let hour = changed(name, "-q", "-i 3600000 -q").unwrap();
    assert_eq!(hour.recordings[0].interval, None);
}

#[test]
fn what_is_imported_can_be_read_again() {
    for interval in ["99999999999", "9223372036854775807", "86400000001"] {
        let huge = line(0, 234, 10, 40).replace("I:1000", &format!("I:{interval}"));
        has(&read("x", huge.as_bytes()).unwrap_err(), &["thread 0"]);
    }
    let xenomai = format!(
        "# latency -h -B 10000\n{}",
        text("21b-xenomai-latency-B-10us.txt")
    );
    let missed = xenomai.replace(
        "52.299|       0|     0|    00",
        "52.299|  999999999999999999| 0| 00",
    );
    assert_ne!(missed, xenomai);
    assert!(read("x", missed.as_bytes()).is_err());
}

#[test]
fn one_measurement_in_several_forms_counts_once() {
    let once = |files: &[String], what: &str| {
        let runs = runs_of(files);
        let (fitness, told) = verdict(&runs);
        assert_eq!(fitness, Fitness::Undecided, "{what}: {told}");
        has(&told, &["in 1 run "]);
    };
    // Rows without a sample, in five places.
    let sound = text("05-p99-is-9us-1.hist");
    let empty = (6..=8).map(|bin| sound.replace("000009 0", &format!("{bin:06} 000000\n000009 0")));
    let mut copies: Vec<String> = empty.collect();
    copies.push(sound.clone());
    copies.push(
        sound
            .replace("# run 1\n", "")
            .replace("# Histogram Overflows: 00000\n", ""),
    );
    once(&copies[..4], "empty rows");
    // A histogram and its own lines, with their ids and without.
    let own = |cycles: u64| line(0, 234, cycles, 9).replace("Avg:    7", "Avg:    5");
    let forms = [own(9_990) + &sound, sound.clone(), own(9_990), own(10_000)];
    once(&forms, "a histogram and its lines");
    // Several moments of one screen.
    let moments: Vec<String> = (1..6).map(|at| line(0, 234, at * 1_000, 40 + at)).collect();
    once(&moments, "moments");
    let mut late = moments;
    late.reverse();
    once(&late, "moments, the last first");
    // With its command line and without.
    let rtla = text("16-rtla-bucket-10.txt");
    let with = |line: &str| format!("{line}\n{rtla}");
    once(
        &[
            rtla.clone(),
            with("# rtla timerlat hist -b 10"),
            with("$ rtla timerlat hist -b 10"),
        ],
        "rtla",
    );
    // JSON of one moment.
    let json = text("04c-same-release-host-a.json");
    once(
        &[
            json.clone(),
            json.replace("\"5\": 5000", "\"4\": 0, \"5\": 5000"),
            json.replace("json=c.json", "json=d.json"),
        ],
        "JSON",
    );
    // Other threads, other times and other comments are other runs.
    let others: [Vec<String>; 3] = [
        (0..5).map(|run| line(0, 234 + run, 1_000, 40)).collect(),
        (0..5)
            .map(|run| json.replace("11:52:32", &format!("11:52:3{run}")))
            .collect(),
        (1..6)
            .map(|run| text(&format!("05-p99-is-9us-{run}.hist")))
            .collect(),
    ];
    for files in others {
        let (fitness, told) = verdict(&runs_of(&files));
        assert_eq!(fitness, Fitness::Fit, "{told}");
    }
    // One file in two units is neither.
    let told = |nanoseconds| Told {
        nanoseconds,
        subject: Some("mine".into()),
        ..Told::default()
    };
    let mut runs: Vec<Run> = (1..6)
        .map(|run| {
            import(
                "x",
                &content(&format!("05-p99-is-9us-{run}.hist")),
                &told(true),
            )
            .unwrap()
        })
        .collect();
    let copy = sound.replace("000009 0", "000008 000000\n000009 0");
    runs.push(import("x", copy.as_bytes(), &told(false)).unwrap());
    for (run, number) in runs.iter_mut().zip(1..) {
        run.id = format!("r{number}");
    }
    let (fitness, told) = verdict(&runs);
    assert_eq!(fitness, Fitness::Undecided, "{told}");
    has(&told, &["two units"]);
}

#[test]
fn files_of_other_plans_are_never_one_measurement() {
    let five = |change: &dyn Fn(u64) -> String| (0..5).map(change).collect::<Vec<_>>();
    let fit = five(&|run| line(0, 234 + run, 1_000, 40));
    assert_eq!(verdict(&runs_of(&fit)).0, Fitness::Fit);
    for (from, to, words) in [
        ("I:1000", "I:9000", &["interval", "9.00 ms"][..]),
        ("P:80", "P: 1", &["priority", "1 "]),
    ] {
        let mixed = five(&|run| {
            let own = line(0, 234 + run, 1_000, 40);
            if run == 3 { own.replace(from, to) } else { own }
        });
        let (fitness, told) = verdict(&runs_of(&mixed));
        assert_eq!(fitness, Fitness::Undecided, "{told}");
        has(&told, words);
    }
    // Nor are those of two programs.
    let rtla = text("16-rtla-bucket-10.txt");
    let files = [text("05-p99-is-9us-1.hist"), rtla];
    let (fitness, told) = verdict(&runs_of(&files));
    assert_eq!(fitness, Fitness::Undecided, "{told}");
    has(&told, &["the run finished without it"]);
}

#[test]
fn a_command_line_above_a_text_is_held_against_it() {
    let lines = |command: &str, cycles: u64| {
        let text = format!("root@board:~# {command}\n{}", line(0, 234, cycles, 40));
        read("x", text.as_bytes())
    };
    let state = |run: Result<Run, String>| run.unwrap().state;
    assert_eq!(
        state(lines("cyclictest -q -p80 -D 1h", 10_000)),
        State::Interrupted
    );
    assert_eq!(
        state(lines("cyclictest -q -p80 -l 10000 | tee log", 10_000)),
        State::Finished
    );
    assert_eq!(
        state(lines("./cyclictest -q -l 10001", 10_000)),
        State::Interrupted
    );
    for (command, words) in [
        ("cyclictest -q -t 4", &["1 threads", "-t 4"][..]),
        ("cyclictest -q -i 200", &["I:1000", "-i 200"]),
        ("cyclictest -q -l 100", &["10000 cycles", "-l 100"]),
        ("cyclictest -q -D 1", &["10000 cycles", "-D 1"]),
    ] {
        has(&lines(command, 10_000).unwrap_err(), words);
    }
    let nano = lines("cyclictest -q -N", 10_000).unwrap();
    assert_eq!(nano.recordings[0].max(), Some(Nanos(40)));
    // What is not understood says nothing.
    let prose = lines("I ran cyclictest -t 4 -l 5 and saw:", 10_000).unwrap();
    assert_eq!(prose.state, State::Finished);
    // Nor does an earlier command line say anything of what another one measured.
    for last in ["cyclictest -q -p80", "cyclictest -q --dbg_cyclictest"] {
        let both = format!("cyclictest -N -q -p80\nroot@board:~# {last}");
        let run = lines(&both, 10_000).unwrap();
        assert_eq!(run.recordings[0].max(), Some(Nanos(40_000)), "{last}");
    }
    // What the shell does with the output is no part of it.
    for shell in ["2>&1 | tee log", "2>/dev/null", "> log 2>&1"] {
        let long = format!("cyclictest -q -p80 -D 1h {shell}");
        assert_eq!(state(lines(&long, 10_000)), State::Interrupted, "{shell}");
        let whole = format!("cyclictest -q -p80 -l 10000 -t {shell}");
        assert_eq!(state(lines(&whole, 10_000)), State::Finished, "{shell}");
    }
    let name = "04c-same-release-host-a.json";
    has(
        &changed(name, "-S -p", "-t 4 -p").unwrap_err(),
        &["1 threads", "-t 4"],
    );
}

#[test]
fn a_histograms_thread_with_few_samples_has_died() {
    let histogram = "# Histogram\n000005 999000\t000005\n000009 001000\t000005\n\
                     # Min Latencies: 00005 00005\n# Avg Latencies: 00005 00007\n\
                     # Max Latencies: 00009 00009\n# Histogram Overflows: 00000 00000\n";
    is_cut(
        histogram,
        &["thread 1 has 10 samples where another has 1000000"],
    );
    is_whole(
        &histogram
            .replace("999000\t000005", "999000\t500000")
            .replace("001000\t000005", "001000\t500000"),
    );
}

#[test]
fn what_is_counted_twice_as_time_is_none() {
    // Periods that were missed take their time.
    let xenomai = format!(
        "# latency -h -B 10000\n{}",
        text("21b-xenomai-latency-B-10us.txt")
    );
    let missed = xenomai.replace(
        "52.299|       0|     0|    00",
        "52.299|  900000|     0|    00",
    );
    has(
        &read("x", missed.as_bytes()).unwrap_err(),
        &["900000 missed", "2 s"],
    );
    let none = xenomai.replace("00:00:02/00:00:02", "00:00:00/00:00:00");
    let none = none.replace("100 us period", "100000 us period");
    has(&read("x", none.as_bytes()).unwrap_err(), &["in 0 s"]);
    let two = "\"cpu\": {}, \"thread\": {";
    has(
        &changed("04c-same-release-host-a.json", "\"thread\": {", two).unwrap_err(),
        &["jitterdebugger"],
    );
    // Interrupts alone are no threads.
    let irq: String = text("16-rtla-bucket-10.txt")
        .lines()
        .take_while(|line| !line.starts_with("ALL:"))
        .map(
            |line| match line.split_whitespace().collect::<Vec<_>>()[..] {
                [first, a, _, _, d, _, _] => format!("{first} {a} {d}\n"),
                _ => format!("{line}\n"),
            },
        )
        .collect();
    has(&read("x", irq.as_bytes()).unwrap_err(), &["--no-thread"]);
}

/// The state and why, of a text.
fn state_of(text: &str) -> (State, String) {
    let run = read("x", text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    (run.state, run.error.unwrap_or_default())
}

#[track_caller]
fn is_cut(text: &str, words: &[&str]) {
    let (state, error) = state_of(text);
    assert_eq!(state, State::Interrupted, "{text}");
    has(&error, words);
}

#[track_caller]
fn is_whole(text: &str) {
    let (state, error) = state_of(text);
    assert_eq!(state, State::Finished, "{error}: {text}");
}

#[test]
fn each_thread_is_held_against_the_time_that_was_asked_for() {
    let two = |command: &str, cycles: [u64; 2], interval: &str| {
        let [one, other] = cycles;
        let other = line(1, 235, other, 9).replace("I:1000", interval);
        format!("# cyclictest {command}\n{}{other}", line(0, 234, one, 40))
    };
    let whole = |command: &str, cycles, interval| is_whole(&two(command, cycles, interval));
    let cut = |command: &str, cycles, interval, words: &[&str]| {
        is_cut(&two(command, cycles, interval), words);
    };
    let timed = "-S -p 80 -q -D 100s";
    let words = ["thread 1", "51000 cycles each 1000 us", "-D 100 s"];
    cut(timed, [100_000, 51_000], "I:1000", &words);
    // Whichever of them it is.
    cut(timed, [51_000, 100_000], "I:1000", &["thread 0", "51000"]);
    cut(timed, [100_000, 89_999], "I:1000", &["thread 1"]);
    whole(timed, [100_000, 90_000], "I:1000");
    // By its own interval.
    whole("-t 2 -p 80 -q -D 100s", [100_000, 66_600], "I:1500");
    cut(
        "-t 2 -q -D 100s",
        [100_000, 59_000],
        "I:1500",
        &["thread 1"],
    );
    // All end with the first that has its number.
    let few = ["thread 1 has 85000 samples where another has 100000"];
    let loops = "-S -q -l 100000";
    cut(loops, [100_000, 85_000], "I:1000", &few);
    whole(loops, [100_000, 99_950], "I:1000");
    whole("-t 2 -q -l 100000 -D 1h", [100_000, 66_600], "I:1500");
    // Periods that it was late for are left out: here eight of ten.
    let late = line(0, 234, 20_000, 5_000).replace("Avg:    7", "Avg: 4500");
    is_whole(&format!("# cyclictest -q -D 100s\n{late}"));
    let early = line(0, 234, 20_000, 5_000);
    is_cut(&format!("# cyclictest -q -D 100s\n{early}"), &["20000"]);
    // With a histogram all threads have one interval.
    let more = text("04c-same-release-host-a.json")
        .replace("\"num_threads\": 1", "\"num_threads\": 2")
        .replace(
            "\"0\": {\n",
            "\"1\": { \"histogram\": { \"5\": 7000 }, \"cycles\": 7000, \"min\": 5, \
             \"max\": 5, \"avg\": 5.0, \"cpu\": 1, \"node\": 0 },\n\"0\": {\n",
        );
    is_cut(
        &more.replace("-q -h", "-q -D 10 -h"),
        &["cpu1: 7000", "-D 10"],
    );
}

/// What rtla prints of some columns, with a command line above.
fn rtla(options: &str, columns: &[(&str, u64, u64)], seconds: u64) -> String {
    let row = |name: &str, of: &dyn Fn(&(&str, u64, u64)) -> String| {
        let values: Vec<String> = columns.iter().map(of).collect();
        format!("{name} {}\n", values.join(" "))
    };
    let bins = |bin: u64| {
        row(&bin.to_string(), &|(_, count, max)| {
            let own = u64::from(bin == *max);
            if bin == 2 { count - 1 } else { own }.to_string()
        })
    };
    let mut all: Vec<u64> = columns.iter().map(|one| one.2).collect();
    all.push(2);
    all.sort_unstable();
    all.dedup();
    let head = format!(
        "# rtla timerlat hist {options}\n# RTLA timerlat histogram\n# Time unit is microseconds \
         (us)\n# Duration:   0 00:00:{seconds:02}\n"
    );
    let rows: String = all.into_iter().map(bins).collect();
    head + &row("Index", &|one| one.0.to_owned())
        + &rows
        + &row("over:", &|_| "0".to_owned())
        + &row("count:", &|one| one.1.to_string())
        + &row("min:", &|_| "2".to_owned())
        + &row("avg:", &|_| "2".to_owned())
        + &row("max:", &|one| one.2.to_string())
}

#[test]
fn rtla_has_the_samples_and_cpus_that_were_asked_for() {
    let both = |count: u64| [("IRQ-000", count, 9), ("Thr-000", count, 31)];
    is_whole(&rtla("-b 1 -d 10s -p 1000", &both(10_000), 10));
    let few = ["cpu0 irq: 3000 samples each 1000 us"];
    is_cut(&rtla("-b 1 -d 10s -p 1000", &both(3_000), 10), &few);
    // Its own period, and the time that it tells; a second of it may have begun only.
    is_cut(&rtla("-b 1", &both(3_000), 10), &few);
    is_whole(&rtla("-b 1", &both(9_000), 10));
    is_cut(&rtla("-b 1 -d 10s", &both(8_900), 10), &["8900"]);
    // One column of several.
    let one = [("Thr-000", 10_000, 31), ("Thr-001", 5_100, 31)];
    is_cut(&rtla("-b 1 -d 10s", &one, 10), &["cpu1: 5100 samples"]);
    // A stage that nobody measured.
    let cpus = |options: &str| rtla(options, &both(10_000), 10);
    is_whole(&cpus("-b 1 -c 0"));
    is_cut(&cpus("-b 1 -c 0-3"), &["no column of CPU 1"]);
    is_cut(&cpus("-b 1 --cpus=0,3"), &["no column of CPU 3"]);
    let other = read("x", cpus("-b 1 -c 1-3").as_bytes()).unwrap_err();
    has(&other, &["IRQ-000", "other CPUs"]);
    // What it stops at was seen.
    is_cut(&cpus("-b 1 -T 20"), &["31 in Thr-000", "by -T or -a 20"]);
    is_cut(&cpus("-b 1 -a 31"), &["31 in Thr-000"]);
    is_cut(&cpus("-b 1 -i 9"), &["9 in IRQ-000", "by -i or -a 9"]);
    for whole in ["-T 32", "-i 10", "-a 40", "-T 20 --on-threshold continue"] {
        is_whole(&cpus(&format!("-b 1 {whole}")));
    }
    // A co-kernel's programs say both themselves.
    let xenomai = format!(
        "# latency -h -B 10000\n{}",
        text("21b-xenomai-latency-B-10us.txt")
    );
    is_whole(&xenomai);
    let longer = xenomai.replace("00:00:02/00:00:02", "00:00:05/00:00:05");
    is_cut(&longer, &["20000 samples each 100 us in 5 s"]);
}

#[test]
fn a_line_without_its_end_is_not_believed() {
    // 53 of 5321, in a paste that lost its columns.
    let short = "T: 0 ( 4010) P:80 I:1000 C: 100000 Min: 2 Act: 4 Avg: 4 Max: 53";
    is_cut(short, &["Max: 53\"", "may be cut"]);
    is_whole(&format!("{short}\n"));
    is_whole(&format!("{short}\r\n"));
    let columns = line(0, 234, 100_000, 5_321);
    is_cut(&columns[..columns.len() - 3], &["Max:    53\""]);
    // Its column tells that nothing is missing.
    is_whole(columns.trim_end());
    is_cut(
        line(0, 234, 100_000_000, 53_210_000).trim_end(),
        &["53210000"],
    );
    let utf16: Vec<u8> = format!("{short}\n")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(read("x", &utf16).unwrap().state, State::Finished);
    let cut = read("x", &utf16[..utf16.len() - 2]).unwrap();
    assert_eq!(cut.state, State::Interrupted);
    // The other forms.
    let columns = [("IRQ-000", 10_000, 9), ("Thr-000", 10_000, 31)];
    let printed = rtla("-b 1", &columns, 10);
    is_cut(printed.trim_end(), &["max: 9 31"]);
    let histogram = text("05-p99-is-9us-1.hist");
    let end = histogram.find("# Histogram Overflows: 00000").unwrap();
    is_cut(&histogram[..end + 27], &["# Histogram Overflows: 0000\""]);
    is_whole(histogram.trim_end());
    is_whole(text("04c-same-release-host-a.json").trim_end());
}

#[test]
fn files_that_were_asked_for_other_settings_are_never_one_measurement() {
    let five = |first: &str, other: &str| -> Vec<String> {
        let of = |run: u64| {
            let options = if run < 3 { first } else { other };
            let own = line(0, 234 + run, 10_000, 40);
            format!("# cyclictest -q -p 80 -D 10 {options}\n{own}")
        };
        (0..5).map(of).collect()
    };
    for (one, other, words) in [
        (
            "-a 0",
            "-a 1 -c 1 -r",
            &["--affinity=0", "--affinity=1 --clock=1 --relative"][..],
        ),
        ("", "-m", &["none of its own here and \"--mlockall\" there"]),
        ("", "-s", &["--system"]),
        ("", "-x", &["--posix_timers"]),
        ("", "--policy=rr", &["--policy=rr"]),
        ("", "--laptop", &["--laptop"]),
        ("", "--latency=100", &["--latency=100"]),
    ] {
        let (fitness, told) = verdict(&runs_of(&five(one, other)));
        assert_eq!(fitness, Fitness::Undecided, "{other}: {told}");
        has(&told, &["no runs of one measurement", "settings"]);
        has(&told, words);
    }
    // What is the same, or is not said, is no difference.
    for (one, other) in [
        ("-m -a0", "--mlockall -a 0"),
        ("", "--policy fifo -c 0"),
        ("", "-u"),
    ] {
        let (fitness, told) = verdict(&runs_of(&five(one, other)));
        assert_eq!(fitness, Fitness::Fit, "{other}: {told}");
    }
    let mut files = five("-m", "-m");
    files[4] = line(0, 238, 10_000, 40);
    assert_eq!(verdict(&runs_of(&files)).0, Fitness::Fit);
    // rtla's.
    let rtla = |options: &str, run: u64| {
        let columns = [("IRQ-000", 10_000, 9), ("Thr-000", 10_000, 30 + run)];
        rtla(&format!("-b 1 -d 10s {options}"), &columns, 10)
    };
    for (one, other) in [
        ("-k", "-u"),
        ("", "-P r:95"),
        ("", "--deepest-idle-state 0"),
        ("", "-c 0"),
    ] {
        let of = |run: u64| rtla(if run < 3 { one } else { other }, run);
        let files: Vec<String> = (0..5).map(of).collect();
        let (fitness, told) = verdict(&runs_of(&files));
        assert_eq!(fitness, Fitness::Undecided, "{other}: {told}");
        has(&told, &["settings"]);
    }
    let of = |run: u64| rtla(["-c 0", "-c 0-0", "--cpus 0"][run as usize % 3], run);
    let files: Vec<String> = (0..5).map(of).collect();
    let (fitness, told) = verdict(&runs_of(&files));
    assert_eq!(fitness, Fitness::Fit, "{told}");
}

#[test]
fn counts_that_no_two_measurements_share_are_of_one() {
    // A histogram of five bins and more than 30,000 samples, under five remarks.
    let counts = [9_000, 17_000, 4_000, 300, 41];
    let of = |remark: u64, counts: [u64; 5]| {
        let rows = (5..)
            .zip(counts)
            .map(|(bin, own)| format!("{bin:06} {own:06}"));
        let rows = rows.collect::<Vec<_>>().join("\n");
        format!(
            "# run {remark}\n# Histogram\n{rows}\n# Min Latencies: 00005\n# Avg Latencies: 00005\n\
             # Max Latencies: 00009\n# Histogram Overflows: 00000\n"
        )
    };
    let copies: Vec<String> = (0..5).map(|run| of(run, counts)).collect();
    let (fitness, told) = verdict(&runs_of(&copies));
    assert_eq!(fitness, Fitness::Undecided, "{told}");
    has(&told, &["in 1 run ", "the same count in each bin"]);
    let honest = |run: u64| {
        let mut counts = counts;
        counts[1] += run;
        of(run, counts)
    };
    let files: Vec<String> = (0..5).map(honest).collect();
    let (fitness, told) = verdict(&runs_of(&files));
    assert_eq!(fitness, Fitness::Fit, "{told}");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms of rtla timerlat.

use punctual_model::finding::Fact;

use crate::{between, changed, counts, has, is_cut, is_whole, read, rtla, taken, text, worst_us};

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
fn what_follows_rtlas_summary_is_no_data() {
    let run = taken("17-rtla-stopped-old.txt");
    assert_eq!(counts(&run), [1, 1, 1, 1, 1, 0]);
    assert_eq!(worst_us(&run), [2, 33, 36, 49, 52]);
    assert_eq!(run.recordings[5].extremes, None);
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
    // What rtla lost is not among them.
    for missed in [
        "1000 (0.83%) events missed, results might not be accurate",
        "unknown number of events missed, results might not be accurate",
    ] {
        is_cut(&format!("{}{missed}\n", cpus("-b 1")), &[missed]);
    }
    // What is not understood may have asked for more, and so may what stands in the next line.
    is_cut(&cpus("-b 1 --new"), &["not understood", "\"--new\""]);
    is_cut(&cpus("-b 1 \\\n -d 1m"), &["-d 60 s"]);
    is_cut(&cpus("-b 1 -d 1M"), &["-d 60 s"]);
    is_cut(&cpus("-b 1 -d '1m30s'"), &["-d 60 s"]);
    let log = "-b 1 -kt trace.txt -d 1M 2>&1 | tee log";
    is_cut(&cpus(log), &["-d 60 s"]);
    is_whole(&cpus("-b 1 and saw"));
    // A co-kernel's programs say both themselves.
    let xenomai = format!(
        "# latency -h -B 10000\n{}",
        text("21b-xenomai-latency-B-10us.txt")
    );
    is_whole(&xenomai);
    let longer = xenomai.replace("00:00:02/00:00:02", "00:00:05/00:00:05");
    is_cut(&longer, &["20000 samples each 100 us in 5 s"]);
}

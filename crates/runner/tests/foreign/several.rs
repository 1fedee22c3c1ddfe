// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for files of several programs, and for several files at once.

use punctual_judge::Fitness;
use punctual_model::run::State;
use punctual_model::{Nanos, Run};
use punctual_runner::import::{Told, import};

use crate::{
    changed, content, counts, has, is_cut, is_whole, line, micros, read, refused, rtla, runs_of,
    taken, text, verdict,
};

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

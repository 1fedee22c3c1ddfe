// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of cyclictest's threads (`T:`), and the command line above them.

use punctual_model::run::State;
use punctual_model::{Nanos, Quantiles, Run};
use punctual_runner::import::{Told, import, is_unit_doubtful};

use crate::{
    between, changed, counts, has, is_cut, is_whole, line, micros, read, taken, text, worst_us,
};

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
    let own = line(0, 234, 10_000, 40);
    is_whole(&format!("I ran cyclictest -t 4 -i 5 and saw:\n{own}"));
    is_whole(&format!("# cyclictest -p 80 on my board\n{own}"));
    // What is a command and is not understood may have asked for more.
    for (command, word) in [
        ("cyclictest -q --new-option -D 1h", "--new-option"),
        ("sudo cyclictest -q -Z5", "-Z5"),
        ("cyclictest -q --histfile=my file -D 1h", "file"),
        ("cyclictest -q -D 1h \\\n --new", "--new"),
    ] {
        let text = format!("root@board:~# {command}\n{}", line(0, 234, 10_000, 40));
        is_cut(&text, &["not understood", word, "is unknown"]);
    }
    // A command goes on after a `\`, and a shell may have it in quotes.
    for command in [
        "cyclictest -q -p80 \\\n  -D 1h",
        "cyclictest -q -p80 \\\n> -D 1h \\\n> 2>&1 | tee log",
        "cyclictest -q -p80 -D 1H",
        "cyclictest -q -p80 -D 1h0m0s",
        "cyclictest -q -p80 -D \"1h\"",
        "ssh board 'cyclictest -q -p80 -D 1h'",
    ] {
        assert_eq!(
            state(lines(command, 10_000)),
            State::Interrupted,
            "{command}"
        );
    }
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

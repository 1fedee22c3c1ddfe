// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms of cyclictest (`-h`), however they were sent.

use punctual_judge::Fitness;
use punctual_model::Nanos;
use punctual_runner::import::{Told, import};

use crate::{
    between, changed, counts, has, is_cut, is_whole, micros, read, refused, runs_of, taken, text,
    verdict, worst_us,
};

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

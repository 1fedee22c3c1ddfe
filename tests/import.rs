// SPDX-License-Identifier: MIT OR Apache-2.0
//! Imports the output of other programs: it becomes runs that can be shown, compared and judged.

use std::process::Command;

use punctual_skip::program;
use punctual_tests::Scratch;
use serde_json::Value;

/// The figure of a line that cyclictest prints: `# Max Latencies: 00413`.
fn figure(text: &str, name: &str) -> i64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("no {name}: {text}"));
    line.trim().parse().unwrap()
}

fn shown(scratch: &Scratch, run: &str) -> Value {
    let ended = scratch.run(&["show", run, "--json"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    shown["runs"][0].clone()
}

#[test]
fn what_cyclictest_writes_is_shown_compared_and_judged() {
    if !program("cyclictest") {
        return;
    }
    let scratch = Scratch::new();
    let measure = |json: &str| {
        let json = scratch.path(json);
        let options = ["-t1", "-a0", "-l200", "-i500", "-q", "-h999999"];
        let mut command = Command::new("cyclictest");
        command
            .args(options)
            .arg(format!("--json={}", json.display()));
        let ended = command.output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        String::from_utf8(ended.stdout).unwrap()
    };
    let histogram = measure("a.json");
    measure("b.json");
    let printed = scratch.file("a.hist", &histogram);
    let [a, b] = ["a.json", "b.json"].map(|name| scratch.path(name).display().to_string());
    let of = ["--subject", "here", "--load", "idle"];
    let ended = scratch.run(&[&["import", &a, &b, &printed], &of[..]].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);

    // Both forms of the same measurement say the same.
    let (json, text) = (shown(&scratch, "r1"), shown(&scratch, "r3"));
    let worst = figure(&histogram, "# Max Latencies:") * 1_000;
    for run in [&json, &text] {
        let recording = &run["recordings"][0];
        assert_eq!(recording["max"], worst, "{recording:#}");
        assert_eq!(
            (&recording["count"], &recording["probe"]),
            (&200.into(), &"timer".into())
        );
    }
    assert_eq!(json["recordings"][0]["variant"], "cpu0");
    assert_eq!(json["recordings"][0]["interval_ns"], 500_000);
    assert_eq!(text["recordings"][0]["interval_ns"], Value::Null);
    let facts = &json["provenance"]["facts"];
    assert!(
        facts["program command"].as_str().unwrap().contains("-l200"),
        "{facts:#}"
    );
    assert!(
        facts["boot command line"]["unknown"].is_string(),
        "{facts:#}"
    );

    let compared = scratch.run(&["compare", "r1", "r2"]);
    assert_eq!(compared.status, Some(0), "{}", compared.stderr);
    let limit = |at_most: i64| {
        let what = "[[limit]]\nprobe = \"timer\"\nvariant = \"cpu0\"\nwhat = \"worst\"\n";
        let limit = format!("{what}at_most = \"{at_most} ns\"\n");
        let path = scratch.file("limits.toml", limit);
        scratch
            .run(&["judge", "r1", "r2", "--limits", &path])
            .status
    };
    // Unfit by its worst sample; undecided where two runs break nothing.
    assert_eq!((limit(worst - 1), limit(1_000_000_000)), (Some(4), Some(5)));

    let again = scratch.run(&["import", &a, "--subject", "here"]);
    assert_eq!(again.status, Some(2), "{}", again.stderr);
    assert!(
        again.stderr.contains("found what r1 holds already"),
        "{}",
        again.stderr
    );
}

#[test]
fn damaged_files_are_named_with_their_lines_and_nothing_is_stored() {
    let scratch = Scratch::new();
    let sound = "# Histogram\n000007 000003\n# Min Latencies: 00007\n# Avg Latencies: 00007\n\
        # Max Latencies: 00007\n# Histogram Overflows: 00000\n";
    let good = scratch.file("good.hist", sound);
    for (content, expected) in [
        (
            sound.replace("000003", "0000x3"),
            "line 2: expected a bin and its counts",
        ),
        (
            sound.replace("Overflows: 00000", "Overflows: 00007"),
            "its largest sample is 7, and 7 are said to be 8 or more",
        ),
        (
            "{\n  \"version\": 3\n}\n".to_owned(),
            "missing field `sysinfo`",
        ),
        (
            "# RTLA timerlat histogram\nIndex   IRQ\n".to_owned(),
            "line 2: expected columns",
        ),
        (
            "what is this\n".to_owned(),
            "line 1: expected cyclictest's JSON",
        ),
    ] {
        let bad = scratch.file("bad.txt", content);
        let ended = scratch.run(&["import", &good, &bad]);
        assert_eq!(ended.status, Some(1), "{}", ended.stderr);
        let told = format!("{bad}: ");
        assert!(ended.stderr.contains(&told), "{}", ended.stderr);
        assert!(
            ended.stderr.contains(expected),
            "{expected}: {}",
            ended.stderr
        );
    }
    let none = scratch.run(&["runs"]);
    assert!(!none.stdout.contains("cyclictest"), "{}", none.stdout);
}

/// A file of another program, as somebody has posted or sent it.
fn field(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/formats/tests/field");
    format!("{folder}/{name}")
}

#[test]
fn five_files_are_five_runs_of_a_machine_only_where_that_is_said() {
    let scratch = Scratch::new();
    let limits = field("05-limits.toml");
    let files = [1, 2, 3, 4, 5].map(|number| field(&format!("05-p99-is-9us-{number}.hist")));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let ended = scratch.run(&[&["import"], &files[..]].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let told = "files of one machine are imported with --subject NAME";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    let judged = scratch.run(&["judge", "r1", "r2", "r3", "r4", "r5", "--limits", &limits]);
    assert_eq!(judged.status, Some(5), "{}", judged.stdout);
    assert!(
        judged.stdout.contains("at least 4 more runs"),
        "{}",
        judged.stdout
    );
    assert!(!judged.stdout.contains("seed"), "{}", judged.stdout);

    // Copies of a file, with other white space, are none.
    let text = std::fs::read_to_string(files[0]).unwrap();
    let copy = scratch.file("copy.hist", format!("{text}\n\n"));
    let again = scratch.run(&["import", &copy, "--subject", "mine"]);
    assert_eq!(again.status, Some(2), "{}", again.stderr);
    assert!(
        again.stderr.contains("found what r1 holds already"),
        "{}",
        again.stderr
    );

    // By one name they are: no value is above 9 µs, and the median is 5 µs.
    let one = Scratch::new();
    let named = ["--subject", "mine", "--interval", "1000us"];
    let ended = one.run(&[&["import"], &files[..], &named[..]].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let judged = one.run(&["judge", "r1", "r2", "r3", "r4", "r5", "--limits", &limits]);
    assert_eq!(judged.status, Some(0), "{}", judged.stdout);
    let recording = &shown(&one, "r1")["recordings"][0];
    assert_eq!(recording["quantiles"]["0.99"], 9_000, "{recording:#}");
    assert_eq!(recording["interval_ns"], 1_000_000);
    let table = one.run(&["show", "r1"]).stdout;
    assert!(
        table.contains("9.00 µs") && !table.contains("9.01"),
        "{table}"
    );

    // Boards with names of their own are never one.
    let boards = ["a", "b", "c", "d", "e"];
    let boards = boards.map(|host| field(&format!("04c-same-release-host-{host}.json")));
    let boards: Vec<&str> = boards.iter().map(String::as_str).collect();
    let refused = one.run(&[&["import"], &boards[..], &named[..2]].concat());
    assert_eq!(refused.status, Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("of board-b"), "{}", refused.stderr);
    for board in &boards {
        let ended = one.run(&["import", board, "--subject", "boards"]);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    }
    let judged = one.run(&["judge", "r6", "r7", "r8", "r9", "r10", "--limits", &limits]);
    assert_eq!(judged.status, Some(5), "{}", judged.stdout);
}

#[test]
fn what_a_file_does_not_tell_is_undecided_and_what_it_tells_is_judged() {
    let scratch = Scratch::new();
    let files = [
        "03-seven-without-a-bin.json",
        "10-plain-lines.txt",
        "16-rtla-bucket-10.txt",
    ];
    for name in files {
        let ended = scratch.run(&["import", &field(name), "--subject", name]);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    }
    let judged = |run: &str, limit: &str| {
        let text = format!("[[limit]]\nprobe = \"timer\"\n{limit}\n");
        let path = scratch.file("limits.toml", text);
        let ended = scratch.run(&["judge", run, "--limits", &path]);
        (ended.status, ended.stdout)
    };
    let worst = "what = \"worst\"\nat_most = \"100 us\"";
    assert_eq!(judged("r1", worst).0, Some(4));
    assert_eq!(judged("r2", worst).0, Some(4));
    let median = "what = \"median\"\nat_most = \"5 us\"";
    for (run, words) in [("r2", "measure with -h"), ("r3", "measure with -b 1")] {
        let (status, text) = judged(run, median);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(status, Some(5), "{text}");
        assert!(text.contains(words), "{words}: {text}");
    }
    let table = scratch.run(&["show", "r2"]).stdout;
    assert!(table.contains("1.00 µs–53.4 ms"), "{table}");
    let recording = &shown(&scratch, "r3")["recordings"][1];
    assert_eq!(recording["quantiles"]["0.5"], Value::Null);
    let between = &recording["between"]["quantiles"]["0.5"];
    assert_eq!(between, &serde_json::json!([3_000, 9_000]));

    // What is told beside it never overrides a file, and what is no file of theirs is named.
    for (arguments, status, words) in [
        (
            vec!["04-interval-bundled-Si200.json", "--interval", "1h"],
            Some(1),
            "200 µs in the file",
        ),
        (
            vec!["05-p99-is-9us-1.hist", "--interval", "1000"],
            Some(2),
            "such as 200us or 1ms",
        ),
        (
            vec!["21b-xenomai-latency-B-10us.txt"],
            Some(1),
            "latency -B",
        ),
        (
            vec!["18-json-without-h.json"],
            Some(1),
            "measure with -h 1000",
        ),
        (
            vec!["09-two-results-appended.hist"],
            Some(1),
            "one result in a file",
        ),
    ] {
        let file = field(arguments[0]);
        let ended = scratch.run(&[&["import", &file], &arguments[1..]].concat());
        assert_eq!(ended.status, status, "{}", ended.stderr);
        let told = ended
            .stderr
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(told.contains(words), "{words}: {told}");
    }
    let path = scratch.path("c.json.gz");
    std::fs::write(&path, b"\x1f\x8b\x08\0\0\0\0\0\0\x03").unwrap();
    let ended = scratch.run(&["import", &path.display().to_string(), "--load", "idle"]);
    assert!(ended.stderr.contains("gunzip"), "{}", ended.stderr);
}

/// A cyclictest histogram with these counts, one bin per microsecond from `first` on.
fn histogram(first: usize, counts: &[u32]) -> String {
    let bins = (0..100).map(|bin: usize| {
        let count = bin.checked_sub(first).and_then(|at| counts.get(at));
        format!("{bin:06} {:06}\n", count.copied().unwrap_or_default())
    });
    let total: u32 = counts.iter().sum();
    let sum: u32 = (first as u32..)
        .zip(counts)
        .map(|(at, count)| at * count)
        .sum();
    let (average, last) = (sum / total, first + counts.len() - 1);
    format!(
        "# cyclictest -q -m -p 90 -i 1000 -l {total} -h 100\n# Histogram\n{}# Total: {total:09}\n\
         # Min Latencies: {first:05}\n# Avg Latencies: {average:05}\n\
         # Max Latencies: {last:05}\n# Histogram Overflows: 00000\n\
         # Histogram Overflow at cycle number:\n# Thread 0:\n",
        bins.collect::<String>()
    )
}

/// The runs have no seeds that would tell one from another.
#[test]
fn five_files_each_of_two_machines_are_compared_as_five_runs_each() {
    let scratch = Scratch::new();
    let import = |subject: &str, first: usize, numbers: [u32; 5]| {
        for number in numbers {
            let text = histogram(first, &[900 + number, 700 - 3 * number, 300 + 2 * number]);
            let file = scratch.file(&format!("{subject}{number}.txt"), text);
            let ended = scratch.run(&["import", &file, "--subject", subject]);
            assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        }
    };
    import("slow", 30, [1, 2, 3, 4, 5]);
    import("fast", 10, [6, 7, 8, 9, 10]);
    let all: Vec<String> = (1..=10).map(|number| format!("r{number}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let compared = scratch.run(&[&["compare"], &all[..]].concat());
    assert_eq!(compared.status, Some(0), "{}", compared.stderr);
    let told = &compared.stdout;
    assert!(told.contains("fast against slow"), "{told}");
    assert!(!told.contains("undecided"), "{told}");
    // With a copy of one nobody knows how many there are.
    let mut copy = std::fs::read_to_string(scratch.path("fast6.txt")).unwrap();
    copy.insert_str(0, "# again\n");
    let copy = scratch.file("copy.txt", copy);
    let ended = scratch.run(&["import", &copy, "--subject", "fast"]);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let compared = scratch.run(&[&["compare"], &all[..], &["r11"]].concat());
    let told = &compared.stdout;
    assert!(told.contains("undecided: too few runs"), "{told}");
}

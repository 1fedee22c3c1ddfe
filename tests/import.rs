// SPDX-License-Identifier: MIT OR Apache-2.0
//! What other programs have written, as they write it here, becomes runs that are shown,
//! compared and judged.

use std::process::Command;

use punctual_skip::program;
use punctual_tests::Scratch;
use serde_json::Value;

/// The figure of a line of cyclictest's: `# Max Latencies: 00413`.
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
        again.stderr.contains("found that of r1"),
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--live`, on a terminal of its own: its pictures, its keys, and that it costs nothing.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use punctual_tests::{KERNELS, Scratch, digests, until};

/// A run on a terminal of this size.
struct OnTerminal {
    script: std::process::Child,
    /// Its output, as the pictures that the terminal has shown, one after the other.
    shown: Arc<Mutex<Vec<String>>>,
}

impl OnTerminal {
    fn begin(scratch: &Scratch, (rows, columns): (u16, u16), words: &[&str]) -> Self {
        let run = scratch.punctual(words);
        let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy());
        let line: Vec<String> = std::iter::once(run.get_program())
            .chain(run.get_args())
            .map(quoted)
            .collect();
        let line = format!("stty rows {rows} cols {columns}; {}", line.join(" "));
        let mut script = Command::new("script");
        scratch.prepare(&mut script);
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = script.spawn().expect("script of util-linux");
        let mut output = script.stdout.take().expect("a pipe");
        let shown = Arc::new(Mutex::new(vec![String::new()]));
        let pictures = Arc::clone(&shown);
        thread::spawn(move || {
            let mut screen = vt100::Parser::new(rows, columns, 0);
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = std::io::Read::read(&mut output, &mut bytes) {
                screen.process(&bytes[..count]);
                let mut pictures = pictures.lock().unwrap();
                pictures[0].push_str(&String::from_utf8_lossy(&bytes[..count]));
                pictures.push(screen.screen().contents());
            }
        });
        Self { script, shown }
    }

    /// Waits for a picture that has this text.
    fn shows(&self, what: &str) {
        let has_shown = || {
            let shown = self.shown.lock().unwrap();
            shown.iter().any(|picture| picture.contains(what))
        };
        until(what, has_shown);
    }

    fn press(&mut self, keys: &str) {
        let input = self.script.stdin.as_mut().expect("a pipe");
        input.write_all(keys.as_bytes()).expect("script reads");
        input.flush().expect("script reads");
    }

    fn ends_with(&mut self, expected: i32) {
        let status = self.script.wait().expect("script ends").code();
        let shown = self.shown.lock().unwrap();
        assert_eq!(
            status,
            Some(expected),
            "{}",
            shown.last().expect("a picture")
        );
    }
}

#[test]
fn what_is_measured_is_seen_and_costs_not_an_instruction() {
    let scratch = Scratch::new();
    let what = [
        "run", "--probe", "timer", "--load", "stress", "--kernel", KERNELS[1],
    ];
    let plain = scratch.measure(&[&what[1..], &["-p", "samples=400"]].concat());
    for size in [(24, 80), (50, 200)] {
        let words = [&what[..], &["-p", "samples=400", "--live"]].concat();
        let mut run = OnTerminal::begin(&scratch, size, &words);
        run.shows("timer, stress");
        run.shows("of 400 samples");
        run.shows("MISSED");
        run.shows(" rounds, ");
        run.shows(" messages: punctual-target hackbench");
        run.shows("cpu0 ");
        run.shows("samples seen");
        run.shows("largest sample of each look");
        run.shows("q stop");
        run.ends_with(0);
        run.shows("is finished");
    }
    let all = scratch.run(&["show", "r1", "r2", "r3", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&all.stdout).expect("JSON");
    let all = digests(all["runs"].as_array().expect("runs"));
    assert_eq!(
        all,
        [digests(&plain), digests(&plain), digests(&plain)].concat()
    );
}

#[test]
fn keys_mark_choose_and_stop() {
    let scratch = Scratch::new();
    let words = [
        "run", "--probe", "timer", "--kernel", KERNELS[1], "--load", "stress",
    ];
    let words = [&words[..], &["-p", "samples=1000000", "--live"]].concat();
    let mut run = OnTerminal::begin(&scratch, (24, 80), &words);
    run.shows("cpu0 ");
    run.shows("samples seen");
    run.press("m");
    run.shows("m mark (1)");
    run.press("j");
    run.press("q");
    run.ends_with(3);
    run.shows("mark 1: r1 step 1 of 1: timer, stress");
    run.shows("r1 is interrupted");
    // What was measured is kept.
    let shown = scratch.run(&["show", "r1", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let run = &shown["runs"][0];
    let count = run["recordings"][0]["count"].as_u64().expect("a count");
    assert!(count > 0);
    let marks = run["steps"][0]["marks"].as_array().expect("marks");
    assert_eq!(marks.len(), 1);
    let marked = marks[0]["samples"].as_u64().expect("a count");
    assert!((1..=count).contains(&marked), "{marked} of {count}");
    assert!(marks[0]["worst_ns"].as_i64() <= run["recordings"][0]["max"].as_i64());
    let page = scratch.path("page.html");
    let report = scratch.run(&["show", "r1", "--report", page.to_str().expect("a path")]);
    assert_eq!(report.status, Some(0), "{}", report.stderr);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("Marked while it was watched"));
}

#[test]
fn without_a_terminal_it_is_lines_as_ever() {
    let scratch = Scratch::new();
    let words = [
        "run",
        "--probe",
        "timer",
        "--kernel",
        KERNELS[1],
        "-p",
        "samples=50",
    ];
    let ended = scratch.run(&[&words[..], &["--live"]].concat());
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("r1 is finished"), "{}", ended.stderr);
    assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
    let wrong = scratch.run(&["run", "demo", "--live", "--quiet"]);
    assert_eq!(wrong.status, Some(2), "{}", wrong.stderr);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stored runs compared with each other, their data, and published figures.

use std::fs;
use std::process::Command;

use punctual_tests::{Scratch, assert_has, suite};
use serde_json::Value;

/// A part of the suite `celf`.
fn celf(samples: u32) -> String {
    let steps = format!(
        "[[step]]\nprobe = \"timer\"\nsamples = {samples}\n\
         [[step]]\nprobe = \"hackbench\"\nipc = \"pipe\"\ngroups = 1\nloops = 5\nsamples = 1\n"
    );
    suite("celf", &["none", "rt"], &steps)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn runs_are_compared_refused_and_drawn() {
    let scratch = Scratch::new();
    let suite = scratch.file("celf.toml", celf(60));
    let made = scratch.run(&["run", &suite, "--quiet"]);
    assert_eq!(made.status, Some(0), "{}", made.stderr);
    // The suite has its document, of which these subjects show one claim for certain.
    assert_has(&made.stdout, &["Is it still so?\n"]);
    assert!(
        made.stdout
            .contains("hackbench takes longer on the real-time kernel"),
        "{}",
        made.stdout
    );
    let again = scratch.run(&["run", &suite, "--quiet", "--subject", "rt"]);
    assert_eq!(again.status, Some(0), "{}", again.stderr);

    let compared = json(&scratch.run(&["compare", "r1", "r2", "--json"]).stdout);
    assert_eq!(compared["schema"], "punctual.compare/1");
    assert_eq!(compared["subjects"][1]["digest_equal"], false);
    let worst = |at: usize| &compared["measurements"][0]["subjects"][at]["figures"]["worst"];
    let (none, rt) = (
        worst(0)["ns"].as_i64().unwrap(),
        worst(1)["ns"].as_i64().unwrap(),
    );
    let ratio = worst(1)["ratio"].as_f64().unwrap();
    assert!((ratio - rt as f64 / none as f64).abs() < 1e-12, "{ratio}");
    assert!(worst(0)["ratio"].is_null());
    // The same once more behaves the same, to the last sample.
    let same = scratch.run(&["compare", "r2", "r3"]);
    assert_eq!(same.status, Some(0), "{}", same.stderr);
    assert_has(&same.stdout, &["digest of rt r3: equal"]);
    assert!(
        same.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        same.stdout
    );

    let fewer = scratch.file("fewer.toml", celf(50));
    assert_eq!(
        scratch
            .run(&["run", &fewer, "--quiet", "--subject", "rt"])
            .status,
        Some(0)
    );
    let refused = scratch.run(&["compare", "r1", "r4"]);
    assert_eq!(refused.status, Some(2));
    assert_eq!(
        refused.stderr.trim_end(),
        "punctual: r1 and r4 cannot be compared: step 1 differs: samples is 60 here and 50 there"
    );
    let missing = scratch.run(&["compare", "r1", "r77"]);
    assert_eq!(missing.status, Some(2));
    assert!(
        missing.stderr.contains("r77") && missing.stdout.is_empty(),
        "{}",
        missing.stderr
    );

    data(&scratch);
    let page = scratch.path("page.html");
    let page = page.to_str().unwrap();
    assert_eq!(
        scratch
            .run(&["compare", "r1", "r2", "--report", page])
            .status,
        Some(0)
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Against none") && page.contains("Beside what was published"));
}

/// The data of two runs: each sample is there, and gnuplot takes every script.
fn data(scratch: &Scratch) {
    let directory = scratch.path("data");
    let path = directory.to_str().unwrap();
    let shown = scratch.run(&["show", "r1", "r2", "--data", path]);
    assert_eq!(shown.status, Some(0), "{}", shown.stderr);
    let raw = json(&scratch.run(&["show", "r2", "--json", "--raw"]).stdout);
    let series = fs::read_to_string(directory.join("timer_idle_cpu0_rt.series.dat")).unwrap();
    assert!(series.contains(&format!(
        "# digest: {}\n",
        raw["runs"][0]["digest"].as_str().unwrap()
    )));
    let lines: Vec<&str> = series
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(lines.len(), 60);
    let no_partial =
        |entry: &fs::DirEntry| !entry.file_name().to_string_lossy().contains("partial");
    let entries = fs::read_dir(&directory).unwrap().map(Result::unwrap);
    assert!(entries.into_iter().all(|entry| no_partial(&entry)));
    if punctual_skip::program("gnuplot") {
        let drawn = Command::new("sh")
            .args(["-c", "gnuplot *.gp"])
            .current_dir(&directory)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&drawn.stderr);
        assert!(drawn.status.success() && said.is_empty(), "{said}");
        assert!(directory.join("timer_idle_cpu0.series.svg").is_file());
    }
    // A directory cannot be where a file is.
    let file = scratch.file("in-the-way", String::new());
    let refused = scratch.run(&["show", "r1", "--data", &file]);
    assert_eq!(refused.status, Some(2));
    assert_has(
        &refused.stderr,
        &["expected a directory to write to, found the file"],
    );
}

#[test]
fn published_figures_are_printed_for_people_and_for_programs() {
    let scratch = Scratch::new();
    let shown = scratch.run(&["published", "celf"]);
    assert_eq!(shown.status, Some(0));
    assert_has(&shown.stdout, &["  Vanilla             17388 µs"]);
    assert!(shown.stdout.lines().all(|line| line.chars().count() <= 80));
    let all = json(&scratch.run(&["published", "--json"]).stdout);
    assert_eq!(all["schema"], "punctual.published/1");
    assert_eq!(all["documents"].as_array().unwrap().len(), 5);
    let figure = &all["documents"][0]["figures"][7];
    assert_eq!(figure["value"], "290");
    assert_eq!(
        (&figure["probe"], &figure["statistic"]),
        (&"signal".into(), &"max".into())
    );
    assert_eq!(figure["quotes"][1], "From: Min 5, Cur 6, Avg 7, Max 290");
    let unknown = scratch.run(&["published", "clef"]);
    assert_eq!(unknown.status, Some(2));
    assert_has(&unknown.stderr, &["did you mean celf?"]);
}

#[test]
fn a_bad_file_of_ones_own_is_named_with_its_line() {
    let scratch = Scratch::new();
    let directory = scratch.path("config/punctual/published");
    fs::create_dir_all(&directory).unwrap();
    let own = include_str!("../published/celf.toml")
        .replace("\"17388\", \"2.11627\"", "\"1\", \"2.11627\"");
    fs::write(directory.join("own.toml"), own).unwrap();
    let refused = scratch.run(&["published"]);
    assert_eq!(refused.status, Some(2));
    assert_has(
        &refused.stderr,
        &["own.toml, line ", "expected a quotation with \"1\""],
    );
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of other programs, as people post and send them: each is taken for what it is, or
//! refused with what is wrong.

mod cyclictest_histogram;
mod cyclictest_json;
mod cyclictest_lines;
mod jitterdebugger;
mod others;
mod rtla_timerlat;
mod several;
mod xenomai;

use std::fs;
use std::path::Path;

use punctual_judge::{Answer, Baselines, Fitness, judge};
use punctual_model::limit::{Demand, Limit};
use punctual_model::run::State;
use punctual_model::{Nanos, Quantiles, Recording, Run};
use punctual_runner::import::{Told, import};

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

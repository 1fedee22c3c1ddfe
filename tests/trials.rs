// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how often verdicts on real subjects are as they must be: tables for `docs/JUDGE.md`.
//!
//! - `same`: a subject against itself is not separated, and with the same seeds identical;
//! - `different`: `none` against RT is separated on every latency row under load;
//! - `rates`: stalls injected at known rates are found as often as theory says.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use punctual_judge::trials::Share;
use punctual_tests::{Scratch, suite};
use serde_json::Value;

const USAGE: &str = "\
Usage: tools/trials [same | different | rates]...

Judges real subjects of which the truth is known, and prints tables for
docs/JUDGE.md: all of them (an hour on two cores), unless some are named.";

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    match all(&names) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trials: {error:#}");
            ExitCode::FAILURE
        }
    }
}

type Experiment = fn(&Scratch) -> Result<()>;
const ALL: [(&str, Experiment); 3] = [("same", same), ("different", different), ("rates", rates)];

fn all(names: &[String]) -> Result<()> {
    if let Some(unknown) = names
        .iter()
        .find(|name| ALL.iter().all(|(own, _)| own != name))
    {
        if ["--help", "-h"].contains(&unknown.as_str()) {
            println!("{USAGE}");
            return Ok(());
        }
        bail!("expected same, different or rates, found {unknown}\n\n{USAGE}");
    }
    for (name, experiment) in ALL {
        if names.is_empty() || names.iter().any(|own| own == name) {
            experiment(&Scratch::new()).with_context(|| name.to_owned())?;
            println!();
        }
    }
    Ok(())
}

/// The number of runs on each side of a comparison.
const RUNS: usize = 5;

/// A subject against itself: first with other seeds, then with the same.
fn same(scratch: &Scratch) -> Result<()> {
    let subject = |name: &str| {
        format!(
            "[[subject]]\nname = \"{name}\"\nkernel = \"debian-6.12\"\nboot = \"preempt=none\"\n"
        )
    };
    let step = "[[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = 200\n";
    let head = "name = \"same\"\nsummary = \"a subject against itself\"\n";
    let suite = format!("{head}{step}{}{}", subject("one"), subject("other"));
    let suite = scratch.file("same.toml", suite);
    let ones = run(scratch, &suite, &["--subject", "one", "--seeds", "1..200"])?;
    let others = run(
        scratch,
        &suite,
        &["--subject", "other", "--seeds", "201..400"],
    )?;
    let again = run(scratch, &suite, &["--subject", "other", "--seeds", "1..25"])?;
    println!(
        "| `timer` under `stress` on `none`, 5 runs against 5 | pairs | so judged | share | stated |"
    );
    println!("|---|---|---|---|---|");
    for (others, name, expected, stated) in [
        (&others, "other seeds", "not separated", "at least 95 %"),
        (&again, "the same seeds", "identical", "100 %"),
    ] {
        let pairs = ones.chunks(RUNS).zip(others.chunks(RUNS));
        let verdicts = pairs.map(|(ones, others)| verdicts(scratch, ones, others));
        let verdicts = verdicts.collect::<Result<Vec<_>>>()?;
        let is_so = |rows: &&Vec<(String, Value)>| {
            !rows.is_empty()
                && rows
                    .iter()
                    .all(|(_, verdict)| verdict["verdict"] == expected)
        };
        let (found, all) = (verdicts.iter().filter(is_so).count(), verdicts.len());
        let share = percent(&Share::of(found as u64, all as u64));
        println!("| {name} | {all} | {expected}: {found} | {share} | {stated} |");
    }
    Ok(())
}

/// `none` against RT: each latency under load.
fn different(scratch: &Scratch) -> Result<()> {
    let step = |probe: &str, samples: u32| {
        format!("[[step]]\nprobe = \"{probe}\"\nload = \"stress\"\nsamples = {samples}\n")
    };
    let steps = [
        ("timer", 1_000),
        ("realfeel", 1_000),
        ("signal", 500),
        ("irq", 500),
    ];
    let steps: String = steps
        .iter()
        .map(|(probe, samples)| step(probe, *samples))
        .collect();
    let modules = "modules = [\"backfire\", \"pulse\", \"stall\"]\n";
    let text = suite("different", &["none", "rt"], &format!("{modules}{steps}"));
    let suite = scratch.file("different.toml", text);
    let seeds = ["--seeds", &format!("1..{RUNS}")];
    let none = run(
        scratch,
        &suite,
        &[&["--subject", "none"], &seeds[..]].concat(),
    )?;
    let rt = run(
        scratch,
        &suite,
        &[&["--subject", "rt"], &seeds[..]].concat(),
    )?;
    println!("| RT against `none` under `stress`, {RUNS} runs each | verdict | ratio | p |");
    println!("|---|---|---|---|");
    for (row, verdict) in verdicts(scratch, &none, &rt)? {
        let number = |name: &str| verdict[name].as_f64();
        let ratio = match (number("ratio"), number("low"), number("high")) {
            (Some(ratio), Some(low), Some(high)) => format!("{ratio:.3} ({low:.3} to {high:.3})"),
            (Some(ratio), ..) => format!("{ratio:.3}"),
            _ => "none".to_owned(),
        };
        let p = number("p").map_or_else(|| "none".to_owned(), |p| format!("{p:.3}"));
        println!("| {row} | {} | {ratio} | {p} |", word(&verdict["verdict"])?);
    }
    Ok(())
}

/// The length of a stall, and the latency from which on a sample is late.
const STALL_NS: f64 = 300_000.0;
const LATE_NS: f64 = 50_000.0;

/// The number of samples of which one meets a stall, and the number of samples in a run.
const RATES: [(u32, u64); 3] = [(100, 5_000), (1_000, 20_000), (10_000, 100_000)];

/// Stalls at random moments, each as likely to begin at any moment between two samples: a
/// sample is late if it is due while the first 250 µs of a stall are yet to pass, or on the
/// path behind them. The load says how many stalls there were, and in what time.
fn rates(scratch: &Scratch) -> Result<()> {
    println!(
        "| stalls of 300 µs, 10 runs | stalls | late, by theory | late, found | times as often as theory says, 90 % | half as many allowed | twice as many allowed |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (one_in, samples) in RATES {
        let suite = scratch.file("rates.toml", injected(one_in, samples));
        let runs = run(scratch, &suite, &["--seeds", "1..10"])?;
        let (mut expected, mut stalls, mut all_time) = (0.0, 0, 0.0);
        for run in &runs {
            let recording = &run["recordings"][0];
            let usual = number(&recording["quantiles"]["0.5"])?;
            let period = number(&recording["interval_ns"])?;
            let work = &run["steps"][0]["work"][0];
            let injected = number(&work["amount"])?;
            stalls += injected as u64;
            let time = period * number(&recording["count"])?;
            all_time += time;
            let rate = injected / number(&work["span_ns"])?;
            expected += rate * time * (STALL_NS - LATE_NS + usual) / period;
        }
        // The time in which theory expects one.
        let once = all_time / expected;
        let judged = |times: f64| -> Result<Value> {
            let limit = format!(
                "[[limit]]\nprobe = \"timer\"\nabove = \"50 us\"\nonce_in = \"{:.0} ns\"\n",
                once / times
            );
            let limits = scratch.file("limits.toml", limit);
            let words = [
                &["judge"],
                &ids(&runs)[..],
                &["--limits", &limits, "--json", "--no-explain"],
            ];
            Ok(json(&scratch.run(&words.concat()).stdout)?["answers"][0].clone())
        };
        let exact = judged(1.0)?;
        let why = &exact["why"];
        let (found, low, high) = (
            number(&why["count"])?,
            number(&why["times_low"])?,
            number(&why["times_high"])?,
        );
        println!(
            "| about one sample in {one_in}, of {} | {stalls} | {expected:.1} | {found} | {low:.2} to {high:.2} | {} | {} |",
            samples * runs.len() as u64,
            word(&judged(0.5)?["verdict"])?,
            word(&judged(2.0)?["verdict"])?,
        );
    }
    Ok(())
}

/// A suite in which one sample of `one_in` is late.
fn injected(one_in: u32, samples: u64) -> String {
    // From one stall to the next, on the average: 254 µs of it make a sample late. RANDOM is
    // below 32,768; the shell takes a while itself.
    let mean = 254 * one_in;
    let script = format!(
        "exec 3<>/dev/stall; while :; do us=$((RANDOM * {mean} / 16384)); \
         echo irqs-off 300 after=$us >&3; usleep $((us + 400)); echo; done"
    );
    let load = format!(
        "modules = [\"backfire\", \"pulse\", \"stall\"]\n[load.stalls]\nsummary = \"stalls of 300 µs\"\n\
         [[load.stalls.worker]]\nrun = [\"sh\", \"-c\", '{script}']\nunit = \"stalls\"\n\
         count = \"lines\"\nendless = true\n"
    );
    let step = format!("[[step]]\nprobe = \"timer\"\nload = \"stalls\"\nsamples = {samples}\n");
    suite("rates", &["rt"], &format!("{load}{step}"))
}

/// Measures; returns the runs in the order of their seeds.
fn run(scratch: &Scratch, suite: &str, more: &[&str]) -> Result<Vec<Value>> {
    let words = [&["run", suite, "--quiet", "--json"], more].concat();
    let ended = scratch.run(&words);
    ensure!(
        ended.status == Some(0),
        "{}: {}",
        words.join(" "),
        ended.stderr
    );
    let mut runs = json(&ended.stdout)?["runs"]
        .as_array()
        .context("runs")?
        .clone();
    runs.sort_by_key(|run| run["seed"].as_u64());
    Ok(runs)
}

/// Each row of a comparison with its verdict.
fn verdicts(scratch: &Scratch, than: &[Value], of: &[Value]) -> Result<Vec<(String, Value)>> {
    let words = [&["compare"], &ids(than)[..], &ids(of)[..], &["--json"]].concat();
    let ended = scratch.run(&words);
    let compared = json(&ended.stdout).with_context(|| ended.stderr)?;
    let rows = compared["measurements"]
        .as_array()
        .context("measurements")?;
    let row = |row: &Value| -> Result<(String, Value)> {
        let name = format!("{} {}", word(&row["probe"])?, word(&row["variant"])?);
        Ok((name, row["subjects"][1]["verdict"].clone()))
    };
    rows.iter().map(row).collect()
}

fn ids(runs: &[Value]) -> Vec<&str> {
    runs.iter().filter_map(|run| run["id"].as_str()).collect()
}

fn json(text: &str) -> Result<Value> {
    serde_json::from_str(text).with_context(|| format!("expected JSON, found {text}"))
}

fn word(value: &Value) -> Result<&str> {
    value
        .as_str()
        .with_context(|| format!("expected a word, found {value}"))
}

fn number(value: &Value) -> Result<f64> {
    value
        .as_f64()
        .with_context(|| format!("expected a number, found {value}"))
}

fn percent(share: &Share) -> String {
    let (low, high) = share.interval;
    let [value, low, high] = [share.value, low, high].map(|share| 100.0 * share);
    format!("{value:.1} % ({low:.1} % to {high:.1} %)")
}

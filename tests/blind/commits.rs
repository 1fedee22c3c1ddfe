// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trial with commits: `git bisect run punctual gate` looks for the one with a planted fault.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use punctual_tests::linux::{SMALL, TREE, git, tree};
use punctual_tests::{Ended, Scratch, programs};
use serde::{Deserialize, Serialize};

use super::{Asked, Drawn, Edit, SIZES, SUITE, apply, build, lines_of};

/// A series of commits, and what the bisection found in it.
#[derive(Deserialize, Serialize)]
struct Found {
    planted: String,
    number: u64,
    /// The place of the planted commit, from 1 on.
    at: usize,
    of: usize,
    /// The subject of the commit that git names; empty if it names none.
    named: String,
    /// How many commits were judged good or bad, and how many were skipped.
    judged: usize,
    skipped: usize,
    /// The figure by which commits were judged; empty if the last commit is not worse.
    symptom: String,
}

/// Tries as many series as planted edits are asked for, each of `of` commits, and prints a table.
pub fn run(edits: &[Edit], asked: &Asked, of: usize) -> Result<()> {
    let harmless = edits.iter().filter(|one| !one.is_planted()).count();
    let most = harmless + 1;
    ensure!(
        (2..=most).contains(&of),
        "--commits: expected 2 to {most}, as there are {harmless} harmless edits; found {of}"
    );
    let mut random = Rng::with_seed(asked.seed);
    let mut planted: Vec<&Edit> = edits.iter().filter(|one| one.is_planted()).collect();
    random.shuffle(&mut planted);
    let mut all: Vec<Found> = lines_of(asked.results.as_deref())?;
    let all_series = planted.into_iter().cycle().take(asked.planted);
    for (number, edit) in all_series.enumerate() {
        let series = series(edits, edit, of, &mut random);
        if let Some(known) = all.get(number) {
            ensure!(
                known.planted == edit.name,
                "the results are of another trial"
            );
            continue;
        }
        if asked.is_show {
            break;
        }
        let new = tried(&series)?;
        if let Some(path) = &asked.results {
            let file = File::options().create(true).append(true).open(path);
            writeln!(file?, "{}", serde_json::to_string(&new)?)?;
        }
        eprintln!(
            "{}: {} of {}: found {}",
            new.planted, new.at, new.of, new.named
        );
        all.push(new);
    }
    print!("{}", table(&all));
    Ok(())
}

/// The commits: one planted edit at a random place among harmless ones.
fn series(edits: &[Edit], planted: &Edit, of: usize, random: &mut Rng) -> Vec<Drawn> {
    let mut harmless: Vec<&Edit> = edits.iter().filter(|one| !one.is_planted()).collect();
    random.shuffle(&mut harmless);
    let mut all: Vec<Drawn> = harmless
        .into_iter()
        .take(of - 1)
        .map(|edit| Drawn {
            edit: edit.clone(),
            number: random.u64(2..=64),
        })
        .collect();
    let size = *random.choice(&SIZES).expect("a size");
    let planted = Drawn {
        number: planted.size.unwrap_or(size),
        edit: planted.clone(),
    };
    all.insert(random.usize(..of), planted);
    all
}

fn tried(series: &[Drawn]) -> Result<Found> {
    let scratch = Scratch::new();
    let suite = scratch.file("blind.toml", SUITE);
    tree();
    measured(&scratch, &suite, "good")?;
    for one in series {
        apply(one);
        git(&["commit", "-q", "-a", "-m", &one.edit.name]);
    }
    measured(&scratch, &suite, "bad")?;
    git(&["bisect", "start", "trial", "base"]);
    let mut run = Command::new("git");
    scratch.prepare(&mut run);
    run.args(["-C", TREE, "bisect", "run"])
        .arg(programs().join("punctual"));
    run.args([
        "gate",
        &suite,
        "--baseline",
        "good",
        "--bad",
        "bad",
        "--arrivals",
    ]);
    run.args([
        "--build",
        ".",
        "--config",
        SMALL,
        "--full",
        "--git-bisect",
        "--quiet",
    ]);
    let ended = Ended::of(&mut run);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    let log = git(&["bisect", "log"]);
    let named = if said.contains("is the first bad commit") {
        git(&["log", "-1", "--format=%s", "refs/bisect/bad"])
    } else {
        String::new()
    };
    git(&["bisect", "reset"]);
    let (at, planted) = series
        .iter()
        .enumerate()
        .find(|(_, one)| one.edit.is_planted())
        .context("a planted edit")?;
    let symptom = said.lines().find_map(|line| {
        let told = line.strip_prefix("good: ").or(line.strip_prefix("bad: "));
        told.map(|told| told.rsplit_once(": ").map_or(told, |(told, _)| told))
    });
    if symptom.is_none() {
        eprintln!("{said}");
    }
    let count = |word: &str| log.lines().filter(|line| line.starts_with(word)).count();
    Ok(Found {
        planted: planted.edit.name.clone(),
        number: planted.number,
        at: at + 1,
        of: series.len(),
        named,
        judged: count("git bisect good") + count("git bisect bad"),
        skipped: count("git bisect skip"),
        symptom: symptom.unwrap_or_default().to_owned(),
    })
}

/// Builds the work tree as it is, measures it, and makes its runs the baseline of this name.
fn measured(scratch: &Scratch, suite: &str, name: &str) -> Result<()> {
    let id = format!("blind-{name}");
    build(scratch, &id)?;
    let runs = scratch.measure(&[suite, "--kernel", &id, "--seeds", "1..5"]);
    let ids: Vec<&str> = runs.iter().filter_map(|run| run["id"].as_str()).collect();
    let set = scratch.run(&[&["baseline", "set", name], &ids[..]].concat());
    ensure!(set.status == Some(0), "{name}: {}", set.stderr);
    Ok(())
}

fn table(all: &[Found]) -> String {
    let mut text = String::from(
        "| planted | instructions | commit | judged, skipped | judged by | named |\n\
         |---|---|---|---|---|---|\n",
    );
    for one in all {
        let named = match one.named.as_str() {
            "" => "none",
            name if name == one.planted => "the right one",
            other => other,
        };
        _ = writeln!(
            text,
            "| {} | {} | {} of {} | {}, {} | {} | {named} |",
            one.planted, one.number, one.at, one.of, one.judged, one.skipped, one.symptom
        );
    }
    let right = all.iter().filter(|one| one.named == one.planted).count();
    text + &format!("\nFound {right} of {}.\n", all.len())
}

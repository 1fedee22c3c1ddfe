// SPDX-License-Identifier: MIT OR Apache-2.0
//! A blind trial of `punctual gate`: kernels with a planted delay, and kernels with a harmless
//! change, each judged without knowledge of which it is.
//!
//! `blind/edits.toml` has the edits. A seed draws which of them are tried, and the number of
//! planted instructions, so the same seed tries the same kernels. A file keeps each verdict, so
//! that a trial of hours may end and go on.
#![forbid(unsafe_code)]

#[path = "blind/commits.rs"]
mod commits;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use punctual_tests::linux::{SMALL, TREE, add, git, put, tree};
use punctual_tests::{Scratch, json};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const USAGE: &str = "\
Usage: tools/blind [--planted N] [--harmless N] [--seed N] [--results FILE]
                   [--only WORDS] [--commits N] [--show] [--list]

Compiles kernels of Debian's source, N with something planted (6) and N changed
in a harmless way (6), holds each against the kernel as it was by `punctual
gate --arrivals`, and prints a table in Markdown: what was found, missed, blamed,
and which alarms were false. Each takes three minutes or so on two idle cores;
the source is fetched once. --results keeps each verdict in FILE, a line of JSON
each: the same command goes on where it ended. --only tries those edits alone
whose names have WORDS, or those of another --only. --commits has `git bisect run
punctual gate` look for each planted fault among N commits, the others harmless:
ten to twenty minutes each. --show prints the table of what is in FILE, and tries
nothing. --list prints the edits.";

/// The verdict on a kernel that could not be measured.
const NOT_JUDGED: &str = "not judged";

/// The numbers of planted instructions: each takes a nanosecond.
const SIZES: [u64; 4] = [1_000, 2_000, 5_000, 20_000];

/// The suite that measures each kernel.
const SUITE: &str = r#"
name = "blind"
summary = "what is planted into kernels"

[[step]]
probe = "timer"
samples = 100

[[step]]
probe = "timer"
load = "stress"
samples = 400

[[step]]
probe = "eventfd"
samples = 100

[[step]]
probe = "tick"
duration_ms = 100

[[step]]
probe = "semaphore"
ticks = 5

[[step]]
probe = "inversion"

[[step]]
probe = "hackbench"
ipc = "pipe"
groups = 1
loops = 20
samples = 2
"#;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    name: String,
    file: String,
    /// The text to replace; `None` if `to` is added to the file.
    from: Option<String>,
    to: String,
    /// The functions that are rightly blamed; empty if nothing is planted.
    #[serde(default)]
    functions: Vec<String>,
    /// The number of instructions; 0 if the planted code is not a loop.
    size: Option<u64>,
}

#[derive(Deserialize)]
struct Edits {
    edit: Vec<Edit>,
}

impl Edit {
    fn is_planted(&self) -> bool {
        !self.functions.is_empty()
    }
}

/// An edit with what was drawn for it.
struct Drawn {
    edit: Edit,
    /// The number of planted instructions; for a harmless edit, a number that tells it from its
    /// like.
    number: u64,
}

/// The gate's verdict on a kernel.
#[derive(Deserialize, Serialize)]
struct Said {
    edit: String,
    number: u64,
    verdict: String,
    /// The worst row, in words.
    row: String,
    /// The kinds of figures that got worse: `samples`, `arrivals`, `function` or `section`.
    by: Vec<String>,
    /// The functions that are blamed, by rows and by the story.
    blamed: Vec<String>,
    /// The changes of the figures from the baseline's.
    moved: Vec<Moved>,
}

/// A figure: the median of the seeds' own before and after, in nanoseconds.
#[derive(Deserialize, Serialize)]
struct Moved {
    figure: String,
    before_ns: u64,
    after_ns: u64,
}

impl Moved {
    /// The change, as a share of the figure.
    fn part(&self) -> f64 {
        (self.after_ns as f64 / self.before_ns.max(1) as f64 - 1.0).abs()
    }
}

struct Trial {
    edit: Edit,
    said: Said,
}

impl Trial {
    fn is_alarm(&self) -> bool {
        self.said.verdict == "worse"
    }

    /// Returns true if one of the right functions is among those blamed. A compiler's suffix, such as
    /// `.constprop.0`, is not part of a name.
    fn is_right(&self) -> bool {
        let right = &self.edit.functions;
        let name = |one: &String| one.split('.').next().unwrap_or_default().to_owned();
        let mut blamed = self.said.blamed.iter().map(name);
        blamed.any(|one| right.contains(&one))
    }

    fn outcome(&self) -> &'static str {
        if self.said.verdict == NOT_JUDGED {
            return NOT_JUDGED;
        }
        match (self.edit.is_planted(), self.is_alarm()) {
            (true, true) if self.is_right() => "found, and the function",
            (true, true) => "found",
            (true, false) => "missed",
            (false, true) => "false alarm",
            (false, false) => "rightly none",
        }
    }
}

struct Asked {
    planted: usize,
    harmless: usize,
    seed: u64,
    results: Option<PathBuf>,
    /// Words of which an edit's name has one; empty for all edits.
    only: Vec<String>,
    /// The number of commits in each series; `None` if kernels are tried one by one.
    commits: Option<usize>,
    is_show: bool,
}

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("blind: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: Vec<String>) -> Result<()> {
    let edits: Edits = toml::from_str(include_str!("blind/edits.toml"))?;
    let mut asked = Asked {
        planted: 6,
        harmless: 6,
        seed: 1,
        results: None,
        only: Vec::new(),
        commits: None,
        is_show: false,
    };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--show" {
            asked.is_show = true;
            continue;
        }
        if word == "--results" {
            let file = words.next().context("--results: expected a file")?;
            asked.results = Some(file.into());
            continue;
        }
        if word == "--only" {
            asked
                .only
                .push(words.next().context("--only: expected words")?);
            continue;
        }
        let mut number = || -> Result<u64> {
            let value = words
                .next()
                .with_context(|| format!("{word}: expected a number"))?;
            value
                .parse()
                .with_context(|| format!("{word}: expected a number, found {value}"))
        };
        match word.as_str() {
            "--planted" => asked.planted = number()? as usize,
            "--harmless" => asked.harmless = number()? as usize,
            "--seed" => asked.seed = number()?,
            "--commits" => asked.commits = Some(number()? as usize),
            "--list" => {
                for edit in &edits.edit {
                    let kind = if edit.is_planted() {
                        "planted"
                    } else {
                        "harmless"
                    };
                    println!("{kind}: {} ({})", edit.name, edit.file);
                }
                return Ok(());
            }
            "-h" | "--help" => {
                println!("{USAGE}");
                return Ok(());
            }
            other => anyhow::bail!("found {other}\n\n{USAGE}"),
        }
    }
    if let Some(of) = asked.commits {
        return commits::run(&edits.edit, &asked, of);
    }
    let drawn = drawn(&edits.edit, &asked);
    let mut said = kept(&asked, &drawn)?;
    if said.len() < drawn.len() && !asked.is_show {
        let mut file = match &asked.results {
            Some(path) => Some(File::options().create(true).append(true).open(path)?),
            None => None,
        };
        let scratch = Scratch::new();
        let suite = scratch.file("blind.toml", SUITE);
        tree();
        prepare(&scratch, &suite)?;
        for one in &drawn[said.len()..] {
            let new = tried(&scratch, &suite, one)?;
            if let Some(file) = &mut file {
                writeln!(file, "{}", serde_json::to_string(&new)?)?;
            }
            said.push(new);
            let of = format!("{} of {}", said.len(), drawn.len());
            let Said {
                edit, verdict, row, ..
            } = said.last().expect("one");
            eprintln!("{of}: {edit}: {verdict}: {row}");
        }
        git(&["checkout", "-q", "--force", "-B", "trial", "base"]);
    }
    let edits = drawn.into_iter().map(|one| one.edit);
    let trials = edits.zip(said).map(|(edit, said)| Trial { edit, said });
    print!("{}", table(&trials.collect::<Vec<_>>()));
    Ok(())
}

/// The results in the file of an earlier, unfinished trial.
fn lines_of<T: DeserializeOwned>(path: Option<&Path>) -> Result<Vec<T>> {
    let Some(path) = path else {
        return Ok(Vec::new());
    };
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.with_context(|| path.display().to_string())?,
    };
    let lines = text.lines().map(serde_json::from_str::<T>);
    let all = lines.collect::<Result<Vec<_>, _>>();
    all.with_context(|| path.display().to_string())
}

/// The verdicts in the file of results, if they belong to this trial.
fn kept(asked: &Asked, drawn: &[Drawn]) -> Result<Vec<Said>> {
    let said: Vec<Said> = lines_of(asked.results.as_deref())?;
    let is_of_this = said.len() <= drawn.len()
        && said
            .iter()
            .zip(drawn)
            .all(|(said, drawn)| said.edit == drawn.edit.name && said.number == drawn.number);
    ensure!(
        is_of_this,
        "the results are of another trial: name another file"
    );
    Ok(said)
}

/// Draws, by the seed, the edits to try, their order, and the amount to plant. Each is tried once
/// before one is tried again, with another number.
fn drawn(edits: &[Edit], asked: &Asked) -> Vec<Drawn> {
    let mut random = Rng::with_seed(asked.seed);
    let mut all = Vec::new();
    for (is_planted, count) in [(true, asked.planted), (false, asked.harmless)] {
        let of: Vec<&Edit> = edits
            .iter()
            .filter(|one| one.is_planted() == is_planted)
            .collect();
        let mut round = Vec::new();
        for _ in 0..count {
            if round.is_empty() {
                round.clone_from(&of);
                random.shuffle(&mut round);
            }
            let edit = round.pop().expect("an edit of each kind").clone();
            let drawn = *random.choice(&SIZES).expect("a size");
            let number = if is_planted {
                edit.size.unwrap_or(drawn)
            } else {
                random.u64(2..=64)
            };
            all.push(Drawn { edit, number });
        }
    }
    random.shuffle(&mut all);
    let is_asked_for = |one: &Drawn| {
        let mut words = asked.only.iter();
        asked.only.is_empty() || words.any(|words| one.edit.name.contains(words))
    };
    all.retain(is_asked_for);
    all
}

/// Builds the unchanged kernel, and measures it as the baseline.
fn prepare(scratch: &Scratch, suite: &str) -> Result<()> {
    build(scratch, "blind-base")?;
    let run = scratch.run(&[
        "run",
        suite,
        "--kernel",
        "blind-base",
        "--seeds",
        "1..5",
        "--quiet",
    ]);
    ensure!(run.status == Some(0), "the baseline: {}", run.stderr);
    let set = scratch.run(&["baseline", "set", "base", "r1", "r2", "r3", "r4", "r5"]);
    ensure!(set.status == Some(0), "the baseline: {}", set.stderr);
    Ok(())
}

fn build(scratch: &Scratch, id: &str) -> Result<()> {
    let words = [
        "kernel", "build", "--source", TREE, "--config", SMALL, "--full",
    ];
    let built = scratch.run(&[&words[..], &["--id", id, "--replace"]].concat());
    ensure!(built.status == Some(0), "{id}: {}", built.stderr);
    Ok(())
}

/// The planted code, three instructions a round.
fn burn(size: u64) -> String {
    format!(
        "for (int blind = 0; blind < {}; blind++) asm volatile(\"\" : \"+r\" (blind));",
        size / 3
    )
}

/// Applies an edit to the work tree.
fn apply(Drawn { edit, number }: &Drawn) {
    let to = edit.to.replace("BURN", &burn(*number));
    let to = to.replace("NUMBER", &number.to_string());
    match &edit.from {
        Some(from) => put(&edit.file, from, &to),
        None => add(&edit.file, &to),
    }
}

fn tried(scratch: &Scratch, suite: &str, drawn: &Drawn) -> Result<Said> {
    let Drawn { edit, number } = drawn;
    git(&["checkout", "-q", "--force", "-B", "trial", "base"]);
    apply(drawn);
    build(scratch, "blind-trial")?;
    let words = [
        "gate",
        suite,
        "--arrivals",
        "--baseline",
        "base",
        "--kernel",
        "blind-trial",
    ];
    let ended = scratch.run(&[&words[..], &["--seeds", "1..5", "--quiet", "--json"]].concat());
    let new = Said {
        edit: edit.name.clone(),
        number: *number,
        verdict: NOT_JUDGED.to_owned(),
        row: ended.stderr.lines().last().unwrap_or_default().to_owned(),
        by: Vec::new(),
        blamed: Vec::new(),
        moved: Vec::new(),
    };
    // A kernel that does not boot is no reason to end the trial.
    if ![Some(0), Some(4), Some(5)].contains(&ended.status) {
        return Ok(new);
    }
    let gate = json(&ended);
    Ok(Said {
        verdict: text(&gate["verdict"]),
        row: text(&gate["title"]),
        by: worse(&gate)
            .map(|one| text(&one["of"]))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        blamed: blamed(&gate),
        moved: moved(&gate),
        ..new
    })
}

fn array(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// All figures of a gate.
fn moved(gate: &Value) -> Vec<Moved> {
    let mut all = Vec::new();
    for subject in array(&gate["subjects"]) {
        for row in array(&subject["measurements"]) {
            for figure in array(&row["figures"]) {
                let ns = |field: &str| figure[field].as_u64();
                let words = [
                    &row["probe"],
                    &row["load"],
                    &row["variant"],
                    &figure["name"],
                ];
                if let (Some(before_ns), Some(after_ns)) = (ns("before_ns"), ns("after_ns")) {
                    all.push(Moved {
                        figure: words.map(text).join(", "),
                        before_ns,
                        after_ns,
                    });
                }
            }
        }
    }
    all
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The figures that got worse.
fn worse(gate: &Value) -> impl Iterator<Item = Value> {
    let subjects = array(&gate["subjects"]).into_iter();
    let rows = subjects.flat_map(|subject| array(&subject["measurements"]));
    let figures = rows.flat_map(|row| array(&row["figures"]));
    figures.filter(|one| one["verdict"] == "worse")
}

/// The functions that a gate names for the figures that got worse, and in its story.
fn blamed(gate: &Value) -> Vec<String> {
    let name = |one: Value| {
        let of = if one["of"] == "function" || one["of"] == "section" {
            "name"
        } else {
            "function"
        };
        text(&one[of])
    };
    let mut all: Vec<String> = worse(gate).map(name).collect();
    if gate["verdict"] == "worse" {
        for subject in array(&gate["subjects"]) {
            let longer = array(&subject["why"]["longer"]);
            all.extend(longer.iter().map(|one| text(&one["function"])));
            let gone = array(&subject["why"]["gone"]);
            all.extend(gone.iter().map(|one| text(&one["caller"])));
            all.extend(functions(&subject["why"].to_string()));
        }
    }
    all.retain(|one| !one.is_empty());
    all.sort();
    all.dedup();
    all
}

/// The words between backquotes that are no commands: the way in which sentences write functions.
fn functions(sentence: &str) -> impl Iterator<Item = String> {
    let odd = sentence.split('`').skip(1).step_by(2);
    odd.filter(|word| !word.starts_with("punctual "))
        .map(str::to_owned)
}

fn table(trials: &[Trial]) -> String {
    let mut text = String::from(
        "| edit | drawn | verdict | outcome | by | blamed |\n|---|---|---|---|---|---|\n",
    );
    for one in trials {
        let drawn = match one.said.number {
            0 => "–".to_owned(),
            number => number.to_string(),
        };
        let [by, blamed] = [&one.said.by, &one.said.blamed].map(|words| words.join(", "));
        let (name, verdict, outcome) = (&one.edit.name, &one.said.verdict, one.outcome());
        _ = writeln!(
            text,
            "| {name} | {drawn} | {verdict} | {outcome} | {by} | {blamed} |"
        );
    }
    let planted = || trials.iter().filter(|one| one.edit.is_planted());
    let harmless = || trials.iter().filter(|one| !one.edit.is_planted());
    text += "\n| instructions | planted | found | the function |\n|---|---|---|---|\n";
    for size in SIZES.into_iter().chain([0]) {
        let of: Vec<&Trial> = planted().filter(|one| one.said.number == size).collect();
        if of.is_empty() {
            continue;
        }
        let found = of.iter().filter(|one| one.is_alarm()).count();
        let right = of
            .iter()
            .filter(|one| one.is_alarm() && one.is_right())
            .count();
        let size = if size == 0 {
            "no loop".to_owned()
        } else {
            size.to_string()
        };
        _ = writeln!(text, "| {size} | {} | {found} | {right} |", of.len());
    }
    _ = writeln!(
        text,
        "\nFound {} of {}; false alarms {} of {}.",
        planted().filter(|one| one.is_alarm()).count(),
        planted().count(),
        harmless().filter(|one| one.is_alarm()).count(),
        harmless().count()
    );
    text + &moves(&harmless().collect::<Vec<_>>())
}

/// The amount by which harmless changes alone move each figure.
fn moves(harmless: &[&Trial]) -> String {
    let mut figures: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for one in harmless.iter().flat_map(|one| &one.said.moved) {
        let words: Vec<&str> = one.figure.split(", ").collect();
        // All variants of a probe together.
        let [probe, load, .., name] = &words[..] else {
            continue;
        };
        let figure = format!("{probe}, {load}: {name}");
        figures.entry(figure).or_default().push(one.part());
    }
    let mut text = String::from(
        "\n| figure, of harmless changes | figures | as before | middle | farthest |\n\
         |---|---|---|---|---|\n",
    );
    for (figure, mut parts) in figures {
        parts.sort_by(f64::total_cmp);
        let percent = |part: f64| format!("{:.1} %", part * 100.0);
        let (middle, farthest) = (parts[parts.len() / 2], parts[parts.len() - 1]);
        let same = parts.iter().filter(|part| **part == 0.0).count();
        _ = writeln!(
            text,
            "| {figure} | {} | {same} | {} | {} |",
            parts.len(),
            percent(middle),
            percent(farthest)
        );
    }
    text
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the release that broke a limit, and the commit: real kernels whose answer is known.

use std::fs;
use std::path::Path;
use std::process::Command;

use punctual_tests::{Ended, KERNELS, Scratch, assert_ends, assert_has, json, user_cache};
use serde_json::Value;

const LINE: &str = "debian-6.12-rt";

/// The release from which on an idle CPU reaches the waiting thread 0.92 µs sooner: after 3.75 µs,
/// and 4.67 µs before.
const SOONER: &str = "6.12.85";

/// A boot argument with which each wake-up takes longer.
const SLOWER: &str = "trace_event=timer,irq,sched";

/// A few wake-ups.
fn suite(scratch: &Scratch) -> String {
    scratch.suite(
        "short",
        &["rt"],
        "[[step]]\nprobe = \"timer\"\nsamples = 60\n",
    )
}

/// A limit on their median that few runs decide.
fn limit(scratch: &Scratch, name: &str, bound: &str) -> String {
    let head = "[[limit]]\nprobe = \"timer\"\nwhat = \"median\"\nconfidence = 80\n";
    scratch.file(name, format!("{head}{bound}\n"))
}

/// The ids of four releases: two before the one that is sooner, itself, and the next. `None` if the
/// distribution no longer has them, which is said.
fn releases(scratch: &Scratch) -> Option<Vec<String>> {
    let listed = json(&scratch.run(&["kernel", "series", LINE, "--json"]));
    let ids = listed.as_array().expect("releases").iter();
    let ids: Vec<String> = ids
        .map(|one| one["id"].as_str().expect("an id").to_owned())
        .collect();
    let at = ids.iter().position(|id| id.contains(SOONER));
    let four = at.and_then(|at| ids.get(at.checked_sub(2)?..at + 2));
    if four.is_none() {
        punctual_skip::skip(&format!("{SOONER} or its neighbours are gone from Debian"));
    }
    four.map(<[String]>::to_vec)
}

fn version(id: &str) -> &str {
    id.split_once('@').expect("a version").1
}

/// Four releases, and a few wake-ups of each.
struct Line {
    scratch: Scratch,
    suite: String,
    all: Vec<String>,
}

impl Line {
    fn new() -> Option<Self> {
        let scratch = Scratch::new();
        let all = releases(&scratch)?;
        Some(Self {
            suite: suite(&scratch),
            scratch,
            all,
        })
    }

    /// Bisects these kernels by a limit.
    fn bisect(&self, kernels: &[&str], limits: &str, more: &[&str]) -> Ended {
        let own = ["--suite", &self.suite, "--limits", limits, "--quiet"];
        let words = [&["bisect"], kernels, &own, more].concat();
        self.scratch.run(&words)
    }

    /// Bisects the line between two of the releases, by their numbers.
    fn between(&self, good: usize, bad: usize, limits: &str, more: &[&str]) -> Ended {
        let [good, bad] = [good, bad].map(|at| version(&self.all[at]));
        let ends = ["--good", good, "--bad", bad];
        self.bisect(&[LINE], limits, &[&ends[..], more].concat())
    }

    fn runs(&self) -> usize {
        let runs = json(&self.scratch.run(&["runs", "--json"]));
        runs["runs"].as_array().expect("runs").len()
    }
}

#[test]
fn the_release_is_found_where_it_is_known_to_be_and_what_does_not_boot_is_skipped() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let Some(line) = Line::new() else {
        return;
    };
    let least = limit(&line.scratch, "least.toml", "at_least = \"4.2 us\"");
    found(&line, &least);

    // Again: nothing is measured, and the same is said.
    let before = line.runs();
    let again = line.between(0, 3, &least, &["--no-explain"]);
    let told = format!("{LINE} {SOONER} is the first that is unfit; ");
    assert_ends(&again, 0, &[&told, "4 kernels, 2 steps between the ends"]);
    assert_eq!(line.runs(), before);

    // The other way round, what mended it.
    let most = limit(&line.scratch, "most.toml", "at_most = \"4.2 us\"");
    let backwards = line.between(3, 0, &most, &["--no-explain"]);
    let told = format!("{LINE} {SOONER} is the first that is fit; ");
    assert_ends(&backwards, 0, &[&told]);

    skipped(&line, &least);
    refused(&line, &least);
}

/// Checks that the release known to be sooner is found in as few steps as possible, with its story.
fn found(line: &Line, limits: &str) {
    let all = &line.all;
    let page = line.scratch.path("bisect.html");
    let report = ["--json", "--report", page.to_str().expect("a path of text")];
    let ended = line.between(0, 3, limits, &report);
    assert_ends(&ended, 0, &[]);
    let found = json(&ended);
    assert_eq!(found["schema"], "punctual.bisect/1");
    let result = (&found["result"], &found["steps_between"]);
    assert_eq!(result, (&"found".into(), &2.into()));
    assert_eq!(found["first_unfit"], all[2].as_str());
    assert_eq!(found["last_fit"], all[1].as_str());
    let steps = found["steps"].as_array().expect("steps").iter();
    let verdicts = steps.map(|one| [&one["kernel"], &one["verdict"]]);
    let tried = [(0, "fit"), (3, "unfit"), (1, "fit"), (2, "unfit")];
    for (verdict, (at, word)) in verdicts.zip(tried) {
        assert_eq!(verdict, [&Value::from(all[at].as_str()), &word.into()]);
    }
    // What is gone is told without being asked for by name.
    assert_eq!(found["why"]["figure"], "median");
    let gone = "tick_nohz_restart_sched_tick";
    assert_has(&found["why"].to_string(), &[gone]);
    let page = fs::read_to_string(page).expect("the page");
    assert_has(&page, &["is the first that is unfit", gone, "Evidence"]);
}

/// Checks that a kernel that does not boot is skipped.
fn skipped(line: &Line, limits: &str) {
    let (before, sooner) = (&line.all[1], &line.all[2]);
    let image = user_cache().join("punctual/kernels").join(before);
    let image = image.join("vmlinuz");
    let id = format!("broken-{}", std::process::id());
    let add = ["kernel", "add", "--id", &id, "--boot", "rdinit=/none"];
    let image = image.to_str().expect("a path of text");
    assert_ends(&line.scratch.run(&[&add[..], &[image]].concat()), 0, &[]);
    let skipped = line.bisect(&[before, &id, sooner], limits, &["--no-explain"]);
    line.scratch.run(&["kernel", "remove", &id]);
    let span = format!("the first that is unfit is one of {id}, {sooner}");
    let told = format!("skipped {id} undecided: ");
    assert_ends(&skipped, 3, &[&told, "panicked", &span]);
}

fn refused(line: &Line, limits: &str) {
    let versions: Vec<&str> = line.all.iter().map(|id| version(id)).collect();
    let [first, before, sooner, last] = versions[..] else {
        panic!("{versions:?}")
    };
    for (words, expected) in [
        (
            &["--good", sooner, "--bad", last][..],
            "is said to be good, and is unfit: there is nothing to look for",
        ),
        (
            &["--good", first, "--bad", before],
            "is said to be bad, and is fit: there is nothing to look for",
        ),
        (&["--good", "6.12.1"], "--good: expected one of 6.12."),
        (
            &["--good", first, "--bad", first],
            "--good and --bad are both",
        ),
        (
            &["--kernel", KERNELS[0]],
            "a bisection names the kernels itself",
        ),
        (&["--seeds", "1..3"], "--most-seeds says how many at most"),
    ] {
        let ended = line.bisect(&[LINE], limits, words);
        assert_ends(&ended, 2, &[expected]);
    }
    let none = line.bisect(&["debian-6.12-rtt"], limits, &[]);
    assert_ends(&none, 2, &["debian-6.12-rtt"]);
    let unlimited = line.scratch.run(&["bisect", LINE, "--suite", "demo"]);
    assert_ends(&unlimited, 2, &["--limits"]);
}

/// Makes a repository in which each commit has other boot arguments for one kernel.
fn commits(directory: &Path, boots: &[&str]) {
    fs::create_dir(directory).expect("a directory");
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut git = Command::new("git");
        git.current_dir(directory).args(identity).args(words);
        let ended = Ended::of(&mut git);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    for (boot, number) in boots.iter().zip(1..) {
        fs::write(directory.join("boot"), boot).expect("a file");
        fs::write(directory.join("number"), number.to_string()).expect("a file");
        git(&["add", "."]);
        git(&[
            "commit",
            "--quiet",
            "--message",
            &format!("commit {number}"),
        ]);
    }
    git(&[
        "bisect",
        "start",
        "main",
        &format!("main~{}", boots.len() - 1),
    ]);
}

#[test]
fn git_bisect_finds_the_commit_and_skips_what_does_not_boot() {
    if !punctual_skip::program("git") {
        return;
    }
    let scratch = Scratch::new();
    let suite = suite(&scratch);
    let runs = scratch.measure(&[&suite, "--kernel", KERNELS[1]]);
    let mut values: Vec<i64> = runs[0]["recordings"][0]["samples"]
        .as_array()
        .expect("samples")
        .iter()
        .map(|sample| sample[1].as_i64().expect("a time"))
        .collect();
    values.sort_unstable();
    let bound = format!("at_most = \"{} ns\"", values[values.len() / 2] + 50);
    let limits = limit(&scratch, "limits.toml", &bound);

    let tree = scratch.path("tree");
    // The third does not boot; the fourth is the first that is slower.
    commits(&tree, &["", "", "rdinit=/none", SLOWER, SLOWER]);
    let script = format!(
        "exec punctual judge {suite} --kernel {} --boot \"$(cat boot)\" --limits {limits} \
         --quiet --git-bisect --no-explain >&2\n",
        KERNELS[1]
    );
    let said = bisected(&scratch, &tree, &script);
    // Git cannot tell the commit that was skipped from the one behind it.
    assert_has(&said, &["only 'skip'ped commits left"]);

    // A mistake ends the bisection: it is neither good nor bad.
    for (limits, status) in [(limits.as_str(), 0), ("none.toml", 128)] {
        let words = [
            "judge",
            &suite,
            "--kernel",
            KERNELS[1],
            "--git-bisect",
            "--quiet",
        ];
        let ended = scratch.run(&[&words[..], &["--limits", limits]].concat());
        assert_ends(&ended, status, &[]);
    }
}

/// The same commits without a limit: each is judged by what got worse from the first to the last.
#[test]
fn git_bisect_finds_the_commit_by_the_figure_that_got_worse() {
    if !punctual_skip::program("git") {
        return;
    }
    let scratch = Scratch::new();
    let suite = suite(&scratch);
    for (boot, name) in [("", "good"), (SLOWER, "bad")] {
        let words = ["--kernel", KERNELS[1], "--boot", boot, "--seeds", "1..5"];
        baseline(&scratch, name, &[&[suite.as_str()], &words[..]].concat());
    }
    let tree = scratch.path("tree");
    commits(&tree, &["", "", "rdinit=/none", SLOWER, SLOWER]);
    let script = format!(
        "exec punctual gate {suite} --baseline good --bad bad --kernel {} --boot \"$(cat boot)\" \
         --quiet --git-bisect >&2\n",
        KERNELS[1]
    );
    let said = bisected(&scratch, &tree, &script);
    assert_has(
        &said,
        &[
            "good: the typical wake-up of timer, idle, cpu0, ",
            "it got worse after this commit",
            "bad: the typical wake-up of timer, idle, cpu0, ",
            "it is worse in this commit",
            "this commit is undecided: it is skipped",
            "only 'skip'ped commits left",
        ],
    );

    // Nothing to look for, and no bad kernel: the bisection ends, before anything is measured.
    let words = ["gate", &suite, "--baseline", "good", "--kernel", KERNELS[1]];
    for (bad, wrong) in [
        (&["--bad", "good"][..], "expected runs that are worse"),
        (&[], "expected --bad"),
    ] {
        let ended = scratch.run(&[&words[..], bad, &["--git-bisect"]].concat());
        assert_ends(&ended, 128, &[]);
        assert_has(&ended.stderr, &[wrong]);
    }
}

/// A program's own tree, whose third commit does not compile.
#[test]
fn git_bisect_finds_the_commit_that_made_a_program_slower() {
    if !punctual_skip::program("git") || !punctual_skip::program("gcc") {
        return;
    }
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("app/control.c");
    let source = source.display();
    let (program, gcc) = (scratch.path("control"), "gcc -O1 -static -DPLANTED=");
    let program = program.display();
    for (planted, name) in [("0", "good"), ("700", "bad")] {
        let built = format!("{gcc}{planted} -o {program} {source}");
        let built = Ended::of(Command::new("sh").args(["-c", &built]));
        assert_eq!(built.status, Some(0), "{}", built.stderr);
        let words = ["--program", &program.to_string(), "--kernel", KERNELS[1]];
        let words = [&words[..], &["-p", "duration_ms=110", "--seeds", "1..5"]].concat();
        baseline(&scratch, name, &words);
    }
    commits(&tree, &["0", "0", "oops", "700", "700"]);
    let script = format!(
        "{gcc}$(cat boot) -o {program} {source} || exit 125\n\
         exec punctual gate --baseline good --bad bad --quiet --git-bisect >&2\n"
    );
    let said = bisected(&scratch, &tree, &script);
    let figure = "the typical sample of app, idle, control execution, ";
    assert_has(
        &said,
        &[
            &format!("good: {figure}"),
            "exact: equal digests with seed 1",
            &format!("bad: {figure}"),
        ],
    );
}

/// Measures, and calls the runs by that name.
fn baseline(scratch: &Scratch, name: &str, words: &[&str]) {
    let runs = scratch.measure(words);
    let ids = runs.iter().map(|run| run["id"].as_str().expect("an id"));
    let set = ["baseline", "set", name].into_iter().chain(ids);
    assert_ends(&scratch.run(&set.collect::<Vec<_>>()), 0, &[]);
}

/// The output of `git bisect run` with a script, by which the second commit is good, the third is
/// skipped, and the fourth is bad.
fn bisected(scratch: &Scratch, tree: &Path, script: &str) -> String {
    let script = scratch.file("bisect.sh", script);
    let mut run = Command::new("git");
    scratch.prepare(&mut run);
    let programs = punctual_tests::programs();
    let path = std::env::var("PATH").expect("a path");
    run.env("PATH", format!("{}:{path}", programs.display()));
    run.current_dir(tree).args(["bisect", "run", "sh", &script]);
    let ended = Ended::of(&mut run);
    let mut log = Command::new("git");
    let log = Ended::of(log.current_dir(tree).args(["bisect", "log"]));
    for expected in [
        "good: [",
        "] commit 2",
        "skip: [",
        "] commit 3",
        "bad: [",
        "] commit 4",
    ] {
        assert_has(&log.stdout, &[expected]);
    }
    format!("{}{}", ended.stdout, ended.stderr)
}

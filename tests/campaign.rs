// SPDX-License-Identifier: MIT OR Apache-2.0
//! Campaigns: a matrix from one file, killed in the middle, resumed, with each run made exactly
//! once.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

use punctual_tests::{Ended, KERNELS, Scratch, assert_has, json, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Two and a half minutes of virtual time, nearly all of it asleep: a run is there for longer than
/// it takes to see it.
const SUITE: &str = "name = \"short\"\nsummary = \"wake-ups\"\n[[step]]\nprobe = \"timer\"\n\
    samples = 1_500\ninterval_us = 100_000\n";

const LIMIT: &str = "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"1 s\"\n";

fn file(scratch: &Scratch, name: &str, more: &str) -> String {
    scratch.file("short.toml", SUITE);
    let [stock, rt] = KERNELS;
    let matrix = format!(
        "suites = [\"./short.toml\"]\nkernels = [\"{stock}\", \"{rt}\"]\nseeds = 2\n{more}"
    );
    scratch.file(name, matrix)
}

/// The runs of the store: subject, seed, state and digest.
fn stored(scratch: &Scratch) -> Vec<(String, u64, String, Option<String>)> {
    let list = json(&scratch.run(&["runs", "--json"]));
    let runs = list["runs"].as_array().expect("runs").iter();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    runs.map(|run| {
        (
            text(&run["subject"]["name"]).expect("a name"),
            run["seed"].as_u64().expect("a seed"),
            text(&run["state"]).expect("a state"),
            text(&run["digest"]),
        )
    })
    .collect()
}

fn finished(scratch: &Scratch) -> BTreeMap<(String, u64), Vec<String>> {
    let mut all: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for (subject, seed, state, digest) in stored(scratch) {
        if state == "finished" {
            let digest = digest.expect("a digest");
            all.entry((subject, seed)).or_default().push(digest);
        }
    }
    all
}

#[test]
fn a_campaign_that_is_killed_goes_on_and_each_run_is_made_once() {
    let scratch = Scratch::new();
    let campaign = file(&scratch, "matrix.toml", LIMIT);
    let plan = json(&scratch.run(&["campaign", &campaign, "--plan", "--json", "--quiet"]));
    let runs = plan["runs"].as_array().expect("runs");
    assert_eq!((runs.len(), &runs[0]["run"]), (4, &Value::Null), "{plan:#}");
    assert!(stored(&scratch).is_empty(), "a plan measures nothing");

    for signal in [Signal::KILL, Signal::INT] {
        let before = finished(&scratch).len();
        let mut command = scratch.punctual(&["campaign", &campaign, "--quiet", "--jobs", "1"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("punctual starts");
        until("one more has finished and another runs", || {
            let all = stored(&scratch);
            let are = |state: &str| all.iter().filter(|run| run.2 == state).count();
            let ended = child.try_wait().expect("its status");
            assert!(ended.is_none(), "it ended before it was seen");
            are("finished") > before && are("running") > 0
        });
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).expect("it runs");
        let ended = child.wait().expect("it ends");
        assert_ne!(ended.code(), Some(0), "it was in the middle");
    }
    let left = finished(&scratch).len();
    assert!((2..4).contains(&left), "{left}");

    let page = scratch.path("page.html");
    let report = page.to_str().expect("a path of text");
    let ended = scratch.run(&["campaign", &campaign, "--json", "--report", report]);
    assert_eq!(ended.status, Some(5), "{}", ended.stderr);
    let taken = ended.stderr.matches("is taken from the store").count();
    assert_eq!(taken, left, "{}", ended.stderr);
    let found = json(&ended);
    assert_eq!(
        (&found["asked"], &found["finished"]),
        (&4.into(), &4.into())
    );
    assert_eq!(found["settings"][0]["verdict"]["verdict"], "undecided");
    let all = finished(&scratch);
    assert_eq!(all.len(), 4);
    assert!(all.values().all(|digests| digests.len() == 1), "{all:?}");
    let html = fs::read_to_string(&page).expect("the page");
    assert_has(
        &html,
        &[
            "Ranking",
            "Heat map",
            "Verdicts",
            "The worst, and why",
            "Runs",
        ],
    );

    // The same as `punctual run` makes, and what that has made is not made again.
    let again = scratch.run(&[
        "run",
        &scratch.path("short.toml").display().to_string(),
        "--kernel",
        KERNELS[0],
        "--kernel",
        KERNELS[1],
        "--seeds",
        "1..2",
        "--quiet",
    ]);
    assert_eq!(again.status, Some(0), "{}", again.stderr);
    let both = finished(&scratch);
    assert!(
        both.values()
            .all(|digests| digests.len() == 2 && digests[0] == digests[1]),
        "{both:?}"
    );
    let plan = scratch.run(&["campaign", &campaign, "--plan"]);
    assert_has(&plan.stdout, &["0 of 4 runs are left"]);
}

#[test]
fn two_campaigns_at_once_on_one_store_measure_each_run_once() {
    let scratch = Scratch::new();
    let own = |name: &str| file(&scratch, name, "summary = \"together\"\n");
    let files = [own("one.toml"), own("other.toml")];
    let begin = |file: &String| {
        let mut command = scratch.punctual(&["campaign", file, "--jobs", "1", "--explain", "0"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("punctual starts")
    };
    let both: Vec<_> = files.iter().map(begin).collect();
    let both: Vec<Ended> = both
        .into_iter()
        .map(|child| child.wait_with_output().expect("its output").into())
        .collect();
    for ended in &both {
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        assert_has(&ended.stdout, &["4 of 4 runs"]);
    }
    let all = stored(&scratch);
    assert_eq!(all.len(), 4, "each was begun once: {all:?}");
    assert_eq!(finished(&scratch).len(), 4);
}

#[test]
fn a_budget_ends_it_and_mistakes_are_told_with_their_line() {
    let scratch = Scratch::new();
    let campaign = file(&scratch, "matrix.toml", "budget = \"1ms\"\n");
    let ended = scratch.run(&["campaign", &campaign, "--quiet", "--explain", "0"]);
    assert_eq!(ended.status, Some(3), "{}", ended.stderr);
    assert_has(
        &ended.stderr,
        &["runs are left: the same command goes on with them"],
    );
    assert_has(&ended.stdout, &["Not measured:", "not begun"]);

    for (more, expected) in [
        ("boot = [\"preempt=fulll\"]\n", "did you mean full?"),
        ("lods = [\"stress\"]\n", "did you mean loads?"),
        ("loads = [\"strss\"]\n", "matrix.toml:4: "),
        (
            "cpus = [9]\n",
            "matrix.toml:4: expected 1 to 8 CPUs, found 9",
        ),
        (
            "[[subject]]\nname = \"x\"\nkernel = \"nothing\"\n",
            "matrix.toml:4: expected a kernel",
        ),
        (
            "[[limit]]\nprobe = \"timer\"\nload = \"strss\"\nwhat = \"worst\"\nat_most = \"1 s\"\n",
            "matrix.toml:4: limit 1 (timer, worst at most 1.00 s): expected a measurement by timer \
             under strss, found timer / idle",
        ),
        (
            "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"115 %\"\nof = \"baseline\"\n",
            "matrix.toml:4: limit 1: of: expected the name of another subject",
        ),
    ] {
        let wrong = file(&scratch, "matrix.toml", more);
        let ended = scratch.run(&["campaign", &wrong, "--plan"]);
        assert_eq!(ended.status, Some(2), "{}", ended.stderr);
        assert_has(&ended.stderr, &[expected]);
    }
    // What a kernel does not offer is left out, and said to be.
    let some = file(
        &scratch,
        "matrix.toml",
        "boot = [\"preempt=none\", \"preempt=full\"]\n",
    );
    let plan = scratch.run(&["campaign", &some, "--plan", "--quiet"]);
    assert_eq!(plan.status, Some(0), "{}", plan.stderr);
    assert_has(
        &plan.stdout,
        &["left out: ", "preempt=none", "6 of 6 runs are left"],
    );
}

/// A limit on the lateness reached asks for arrivals: each run is watched once, and its page shows
/// them.
#[test]
fn a_campaign_is_judged_by_every_arrival() {
    let scratch = Scratch::new();
    let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"reached\"\nat_most = \"1 s\"\n";
    let suite = "name = \"brief\"\nsummary = \"\"\n[[step]]\nprobe = \"timer\"\nload = \
                 \"stress\"\nsamples = 50\n";
    scratch.file("brief.toml", suite);
    let rt = KERNELS[1];
    let matrix = format!("suites = [\"./brief.toml\"]\nkernels = [\"{rt}\"]\nseeds = 1\n{limit}");
    let campaign = scratch.file("matrix.toml", matrix);
    let run = |more: &[&str]| {
        let words = ["campaign", &campaign, "--json", "--explain", "0"];
        scratch.run(&[&words, more].concat())
    };
    // Nobody has looked at every moment, so nothing is known of it.
    let unwatched = run(&["--quiet"]);
    assert_eq!(unwatched.status, Some(5), "{}", unwatched.stderr);
    let said = json(&unwatched)["settings"][0]["verdict"].to_string();
    assert_has(&said, &["not watched"]);
    let watched = run(&["--arrivals=1"]);
    assert_has(&watched.stderr, &["every arrival is watched"]);
    let said = json(&watched)["settings"][0]["verdict"].to_string();
    assert!(!said.contains("not watched"), "{said}");
    let kept = json(&scratch.run(&["show", "last", "--json"]));
    let reached = &kept["runs"][0]["arrivals"][0]["reached_ns"];
    assert!(reached.as_i64() > Some(1_000), "{kept:#}");
    let again = run(&["--arrivals=1"]);
    assert_eq!(json(&again), json(&watched));
    assert!(!again.stderr.contains("every arrival is watched"));
}

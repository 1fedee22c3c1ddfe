// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels against a baseline: equal ones pass after one run, slower ones are found and the cause
//! is named, and those that cannot be compared are refused.

use std::fs;
use std::sync::LazyLock;

use punctual_tests::kernel::{add_kernel, module};
use punctual_tests::{Ended, KERNELS, SPIN, Scratch, assert_ends, json, suite};
use serde_json::Value;

/// The five runs that tests begin with.
const ALL: [&str; 5] = ["r1", "r2", "r3", "r4", "r5"];

/// One kernel, a few wake-ups.
fn timer(name: &str, samples: u32) -> String {
    let step = format!("[[step]]\nprobe = \"timer\"\nsamples = {samples}\n");
    suite(name, &["rt"], &step)
}

/// Five seeds of one kernel's wake-ups.
static TIMER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let scratch = Scratch::new();
    let path = scratch.file("mine.toml", timer("mine", 60));
    let made = scratch.run(&["run", &path, "--quiet", "--seeds", "1..5"]);
    assert_ends(&made, 0, &[]);
    scratch.all_runs()
});

/// Makes a baseline of all five runs.
fn set(scratch: &Scratch, name: &str) {
    let words = [&["baseline", "set", name], &ALL[..]].concat();
    let told = format!("baseline {name}: r1 r2 r3 r4 r5");
    assert_ends(&scratch.run(&words), 0, &[&told]);
}

#[test]
fn what_is_equal_passes_after_one_run_and_what_got_slower_is_named() {
    let scratch = Scratch::new();
    scratch.begin_with(&TIMER);
    let path = scratch.file("mine.toml", timer("mine", 60));
    set(&scratch, "stable");

    let equal = scratch.run(&["gate", &path, "--baseline", "stable", "--quiet", "--json"]);
    assert_ends(&equal, 0, &[]);
    let gate = json(&equal);
    assert_eq!(
        (&gate["schema"], &gate["verdict"]),
        (&"punctual.gate/1".into(), &"unchanged".into())
    );
    let subject = &gate["subjects"][0];
    assert_eq!(
        subject["runs"].as_array().unwrap().len(),
        1,
        "one run shows it"
    );
    assert_eq!(subject["runs"][0]["digest_equal"], true);
    assert_eq!(subject["implied_seeds"], serde_json::json!([2, 3, 4, 5]));

    slower(&scratch, &path);
    refused(&scratch, &path);
    relative(&scratch);
}

/// A kernel that records what its timers, interrupts and scheduler do has longer paths.
fn slower(scratch: &Scratch, path: &str) {
    let page = scratch.path("gate.html");
    let tracing = "trace_event=timer,irq,sched";
    let worse = scratch.run(&[
        "gate",
        path,
        "--baseline",
        "stable",
        "--quiet",
        "--boot",
        tracing,
        "--subject",
        "rt",
        "--samples-differ",
        "--report",
        page.to_str().unwrap(),
    ]);
    let parts = [
        "worse: the typical wake-up of timer, idle, cpu0, ",
        "before rt: Linux ",
        "after rt trace_event=timer,irq,sched: Linux ",
        "seed 5: 60 of 60 samples differ, first sample 0: ",
        "longer than before: `",
        "function itself, ns",
        "ring_buffer_",
    ];
    assert_ends(&worse, 4, &parts);
    let page = fs::read_to_string(page).unwrap();
    for part in [
        "Punctual: worse: the typical wake-up of timer, idle, cpu0, ",
        "What was not tested",
        "ring_buffer_",
        "Evidence",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_module_that_adds_2000_instructions_to_one_path_is_found_and_named() {
    let scratch = Scratch::with_own_kernels();
    add_kernel(&scratch, "slow", &module(&scratch, "slower", ""));
    scratch.begin_with(&TIMER);
    let path = scratch.file("mine.toml", timer("mine", 60));
    set(&scratch, "stable");

    let words = [
        "gate",
        &path,
        "--baseline",
        "stable",
        "--kernel",
        "slow",
        "--quiet",
        "--samples-differ",
    ];
    let gate = scratch.run(&words);
    let parts = [
        "worse: the typical wake-up of timer, idle, cpu0, ",
        "longer than before: `slower_instructions [slower]` 2.00 µs (was 0 ns)",
        "60 of 60 samples differ",
    ];
    assert_ends(&gate, 4, &parts);
    // In the table, not in the sentence above it.
    let named = |line: &&str| line.contains("slower_instructions") && !line.contains('`');
    let line = gate.stdout.lines().find(named);
    let line = line.unwrap_or_else(|| panic!("the path is not named: {}", gate.stdout));
    // In the baseline, and here.
    let numbers: Vec<&str> = line.split_whitespace().take(2).collect();
    let here: u32 = numbers[1].replace(',', "").parse().unwrap();
    assert!(
        numbers[0] == "0" && (2_000..2_010).contains(&here),
        "{line}"
    );
}

/// A stall so rare that the samples of five runs may all miss it: 1,000 instructions with
/// interrupts off, every 20 ms, in a wake-up of 4 µs.
#[test]
fn what_holds_threads_up_for_a_microsecond_is_found_and_what_burns_nothing_is_not_worse() {
    let scratch = Scratch::with_own_kernels();
    add_kernel(
        &scratch,
        "burns",
        &module(&scratch, "burns", "-DBURNS=1000"),
    );
    add_kernel(&scratch, "spares", &module(&scratch, "burns", "-DBURNS=0"));
    // Two of them at least in each run: a longer one is watched for longer, and shows no more.
    let step = "[[step]]\nprobe = \"timer\"\nload = \"spin\"\nsamples = 60\n";
    let rest = format!("{SPIN}{step}");
    let path = scratch.file("mine.toml", suite("mine", &["rt"], &rest));
    let run = ["run", &path, "--quiet", "--seeds", "1..5"];
    assert_ends(&scratch.run(&run), 0, &[]);
    set(&scratch, "stable");
    let gate = |kernel: &str, more: &[&str]| {
        let words = ["gate", &path, "--baseline", "stable", "--kernel", kernel];
        let words = [&words[..], &["--resume", "--quiet", "--json"], more].concat();
        let ended = scratch.run(&words);
        (ended.status, json(&ended), ended.stderr)
    };
    // By samples alone it is not seen.
    let (drawn, ..) = gate("burns", &["--no-explain"]);
    assert!(drawn == Some(5) || drawn == Some(0), "{drawn:?}");
    let (status, worse, stderr) = gate("burns", &["--arrivals"]);
    assert_eq!(status, Some(4), "{worse:#}{stderr}");
    let title = worse["title"].as_str().unwrap();
    assert!(
        title.starts_with("worse: the longest stretch in `burns_instructions [burns]` of timer, "),
        "{title}"
    );
    assert!(title.ends_with(", 0 ns → 1.00 µs, 5 of 5 seeds"), "{title}");
    let (status, spared, stderr) = gate("spares", &["--arrivals"]);
    assert_eq!(status, Some(0), "{spared:#}{stderr}");
    assert_eq!(spared["verdict"], "not worse");
    // What was watched is kept: it is read, and nothing is watched again.
    let (status, again, stderr) = gate("burns", &[]);
    assert_eq!(
        (status, &again["title"]),
        (Some(4), &worse["title"]),
        "{stderr}"
    );
    limits_on_arrivals(&scratch);
}

/// From half a microsecond to twenty, with interrupts off or preemption off: each stall is
/// predicted with its length, and from 5 µs on an aimed sample meets it from its start. The gate
/// finds one of each kind with five seeds, and names the function.
#[test]
fn what_is_off_is_foretold_reached_and_found_at_each_length() {
    if !punctual_skip::long("PUNCTUAL_LONG") {
        return;
    }
    let scratch = Scratch::with_own_kernels();
    let step = "[[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = 200\n";
    let path = scratch.file("mine.toml", suite("mine", &["rt"], step));
    let run = ["run", &path, "--quiet", "--seeds", "1..5"];
    assert_ends(&scratch.run(&run), 0, &[]);
    set(&scratch, "stable");
    for (burns, is_of_preemption, is_judged) in [
        (500, false, false),
        (5_000, false, true),
        (20_000, false, false),
        (1_000, true, true),
        (20_000, true, false),
    ] {
        let (what, flag) = if is_of_preemption {
            ("preemption", " -DBURNS_PREEMPTION")
        } else {
            ("interrupts", "")
        };
        let id = format!("{what}-{burns}");
        let flags = format!("-DBURNS={burns}{flag}");
        add_kernel(&scratch, &id, &module(&scratch, "burns", &flags));
        let of_kernel = ["--kernel", &id, "--quiet"];
        let run = [&["run", &path, "--seed", "1"], &of_kernel[..]].concat();
        assert_ends(&scratch.run(&run), 0, &[]);
        let told = scratch.run(&["arrivals", "last", "--aim", "5", "--json", "--quiet"]);
        burnt_is_foretold_and_reached(&json(&told), burns, &id);
        if !is_judged {
            continue;
        }
        let gate = ["gate", &path, "--baseline", "stable", "--resume"];
        let more = ["--arrivals", "--no-explain", "--json"];
        let ended = scratch.run(&[&gate[..], &of_kernel, &more].concat());
        assert_eq!(ended.status, Some(4), "{id}: {}", ended.stdout);
        let title = json(&ended)["title"].as_str().unwrap().to_owned();
        assert!(title.starts_with("worse: "), "{id}: {title}");
        for part in [", 5 of 5 seeds", "`burns_instructions [burns]`"] {
            assert!(title.contains(part), "{id}: {title}");
        }
    }
}

/// Checks that the burnt time is two instructions in each turn, and those of the call.
fn burnt_is_foretold_and_reached(told: &Value, burns: i64, id: &str) {
    let places = told["steps"][0]["places"].as_array().unwrap();
    let mut own = places.iter();
    let place = own.find(|place| place["most_in"] == "burns_instructions [burns]");
    let place = place.unwrap_or_else(|| panic!("{id}: {told:#}"));
    let ns = |name: &str| place[name].as_i64();
    let most = ns("most_ns").unwrap();
    assert!((burns..burns + 50).contains(&most), "{id}: {place:#}");
    let foretold = ns("foretold_ns").unwrap();
    assert!(foretold > burns + 3_000, "{id}: {place:#}");
    match ns("reached_ns") {
        Some(reached) => assert!((reached - foretold).abs() <= 300, "{id}: {place:#}"),
        // Others are later, and were aimed at first.
        None => assert!(burns < 5_000, "{id}: {place:#}"),
    }
    println!("{id}: {place}");
}

/// Limits on every arrival: these runs were watched, and no sample was aimed.
fn limits_on_arrivals(scratch: &Scratch) {
    for (what, most, status, part) in [
        ("arrival", "90 us", 0, "the latest arrival of "),
        ("arrival", "5 us", 4, " times 5.00 µs"),
        (
            "reached",
            "90 us",
            5,
            "no sample was aimed: `punctual arrivals r1 --aim 10`",
        ),
    ] {
        let limit = format!("[[limit]]\nprobe = \"timer\"\nwhat = \"{what}\"\n");
        let limit = scratch.file("limit.toml", format!("{limit}at_most = \"{most}\"\n"));
        let words = [&["judge"], &ALL[..], &["--limits", &limit, "--no-explain"]].concat();
        assert_ends(&scratch.run(&words), status, &[part]);
    }
}

fn refused(scratch: &Scratch, path: &str) {
    let fewer = scratch.file("fewer.toml", timer("mine", 50));
    let other = scratch.file("other.toml", timer("other", 60));
    let gate = |path: &str, baseline: &str, more: &[&str]| {
        scratch.run(&[&["gate", path, "--baseline", baseline, "--quiet"], more].concat())
    };
    for (ended, expected) in [
        (
            gate(path, "stabel", &[]),
            "there is no baseline \"stabel\": did you mean stable?",
        ),
        (gate(path, "r77", &[]), "there is no run \"r77\""),
        (
            gate(&fewer, "stable", &[]),
            "step 1 differs: samples is 50 here and 60 there",
        ),
        (
            gate(&other, "stable", &[]),
            "the suite is other here and mine there",
        ),
        (
            gate(path, "stable", &["--samples", "7"]),
            "samples is 7 here and 60 there",
        ),
        (
            scratch.run(&["baseline", "set", "r9", "r1"]),
            "expected a name of one line that is not a run's",
        ),
        (
            scratch.run(&["baseline", "set", "twice", "r1", "r1"]),
            "r1 is named twice",
        ),
        (
            scratch.run(&["baseline", "remove", "none"]),
            "`punctual baseline list` lists all",
        ),
        (
            scratch.run(&["remove", "r2"]),
            "run r2 belongs to baseline \"stable\"",
        ),
    ] {
        assert_ends(&ended, 2, &[expected]);
    }
    let listed = scratch.run(&["baseline", "list", "--json"]);
    assert_eq!(
        json(&listed)["baselines"][0]["runs"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
}

/// Limits that are shares of a baseline.
fn relative(scratch: &Scratch) {
    let limits = |of: &str| {
        let limit = "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"115 %\"\n";
        scratch.file("limits.toml", format!("{limit}of = \"{of}\"\n"))
    };
    let judge = |runs: &[&str], of: &str, more: &[&str]| {
        let limits = limits(of);
        scratch.run(&[&["judge"], runs, &["--limits", &limits], more].concat())
    };
    let one = ["r1"];
    let fit = judge(&ALL, "baseline:stable", &[]);
    assert_ends(
        &fit,
        0,
        &[
            "worst at most 115 % of baseline stable",
            "100.0 % over 5 runs",
        ],
    );
    assert_ends(&judge(&one, "baseline:stable", &[]), 5, &["too few runs"]);
    let same = judge(&one, "baseline", &["--baseline", "r1"]);
    assert_ends(
        &same,
        0,
        &["100.0 % over 1 run", "r1 is compared with itself"],
    );
    for (of, parts) in [
        ("baseline", ["limit 1 (timer, worst at most", "--baseline"]),
        ("baseline:other", ["there is no baseline", "\"other\""]),
        ("baseline:", ["limits.toml:5: ", "a baseline's name"]),
        ("baseline:", ["of: ", "such as \"baseline:stable\""]),
    ] {
        assert_ends(&judge(&one, of, &[]), 2, &parts);
    }
    let absolute = scratch.file(
        "absolute.toml",
        "[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"1 s\"\n",
    );
    let needless = scratch.run(&["judge", "r1", "--limits", &absolute, "--baseline", "stable"]);
    assert_ends(&needless, 2, &["no limit is a share of anything"]);
    // What was measured otherwise is no baseline.
    let fewer = scratch.file("fewer.toml", timer("mine", 50));
    assert_ends(&scratch.run(&["run", &fewer, "--quiet"]), 0, &[]);
    let listed = scratch.run(&["runs", "--json"]);
    let newest = json(&listed)["runs"][0]["id"].as_str().unwrap().to_owned();
    let limits = limits("baseline");
    let mixed = scratch.run(&["judge", "r1", "--limits", &limits, "--baseline", &newest]);
    assert_ends(
        &mixed,
        2,
        &["cannot be compared: step 1 differs: samples is 60 here and 50 there"],
    );
    let set = scratch.run(&["baseline", "set", "mixed", "r1", &newest]);
    assert_ends(&set, 2, &["a baseline is of one measurement"]);
}

/// The options for one preemption model of the stock kernel.
fn side(preempt: &str) -> [&str; 5] {
    ["--kernel", KERNELS[0], "--boot", preempt, "--quiet"]
}

/// The gate of five seeds of the preemption model `none` against five of `full`.
struct Gated {
    /// What it printed.
    worse: Ended,
    /// Its file in the form of `JUnit`.
    junit: String,
    /// The five runs of its baseline, `full`, and its own five.
    all_runs: Vec<u8>,
}

static GATED: LazyLock<Gated> = LazyLock::new(|| {
    let scratch = Scratch::new();
    let measured = ["--probe", "timer", "--load", "stress", "-p", "samples=100"];
    let full = side("preempt=full");
    let run = [&["run"], &measured[..], &full, &["--seeds", "1..5"]].concat();
    assert_ends(&scratch.run(&run), 0, &[]);
    set(&scratch, "full");
    // The plan is the baseline's own: no suite is called as the probe is.
    let other = side("preempt=none");
    let junit = scratch.path("gate.xml");
    let forms = ["--json", "--junit", junit.to_str().unwrap()];
    let gate = ["gate", "timer", "--baseline", "full", "--no-explain"];
    let worse = scratch.run(&[&gate[..], &other, &forms].concat());
    assert_ends(&worse, 4, &[]);
    Gated {
        worse,
        junit: fs::read_to_string(junit).unwrap(),
        all_runs: scratch.all_runs(),
    }
});

/// The preemption model is the plainest possible change: every seed shows it, and the worst case,
/// which is one draw, hides it.
#[test]
fn a_difference_that_all_seeds_show_is_told_and_travels_with_its_baseline() {
    let scratch = Scratch::new();
    scratch.begin_with(&GATED.all_runs);
    let name = format!("{} preempt=full", KERNELS[0]);
    for list in [&["runs"][..], &["baseline", "list"], &["show", "r1"]] {
        assert_ends(&scratch.run(list), 0, &[&name]);
    }
    let gate = json(&GATED.worse);
    let title = gate["title"].as_str().unwrap();
    assert!(
        title.starts_with("worse: the typical wake-up of timer, stress, cpu0, "),
        "{title}"
    );
    assert!(title.ends_with(", 5 of 5 seeds"), "{title}");
    let median = &gate["subjects"][0]["measurements"][0]["figures"][0];
    assert_eq!(
        (&median["name"], &median["verdict"]),
        (&"median".into(), &"worse".into())
    );
    let ratio = median["compared"]["ratio"].as_f64().unwrap();
    assert!((1.05..1.25).contains(&ratio), "{ratio}");
    let junit = &GATED.junit;
    assert!(
        junit.contains("<failure type=\"worse\" message=\"worse: median "),
        "{junit}"
    );
    // Seeds of one subject are nothing to compare.
    let seeds = scratch.run(&["compare", "r1", "r2"]);
    assert_ends(
        &seeds,
        2,
        &[
            "r1 and r2 are seeds of one subject: nothing to compare",
            "`punctual show r1 r2` shows them together",
        ],
    );
    // Elsewhere: the file is the baseline, and names are kept.
    let file = scratch.path("full.punctual");
    let file = file.to_str().unwrap();
    assert_ends(&scratch.run(&["export", "full", "-o", file]), 0, &[]);
    let elsewhere = Scratch::new();
    let same = elsewhere.run(&["gate", "--baseline", file, "--quiet"]);
    assert_ends(
        &same,
        0,
        &["unchanged: timer against baseline ", "exact: equal digests"],
    );
    let imported = elsewhere.run(&["import", file]);
    assert_eq!(imported.status, Some(0), "{}", imported.stderr);
    let listed = json(&elsewhere.run(&["baseline", "list", "--json"]));
    assert_eq!(listed["baselines"][0]["name"], "full", "{listed}");
}

/// Three seeds decide nothing; further ones of both sides do, and the baseline stays unchanged.
/// Five of each side are in the store.
#[test]
fn further_seeds_of_both_sides_decide_within_a_budget() {
    let scratch = Scratch::new();
    scratch.begin_with(&GATED.all_runs);
    let first_three = ["baseline", "set", "three", "r1", "r2", "r3"];
    assert_ends(&scratch.run(&first_three), 0, &[]);
    let own = ["gate", "--baseline", "three", "--no-explain", "--json"];
    let gate = [&own[..], &side("preempt=none"), &["--resume"]].concat();
    let first = scratch.run(&gate);
    assert_ends(&first, 5, &[]);
    let runs = |gate: &Value| gate["subjects"][0]["runs"].as_array().unwrap().len();
    assert_eq!(runs(&json(&first)), 3);
    let decided = scratch.run(&[&gate[..], &["--budget", "1h"]].concat());
    assert_ends(
        &decided,
        4,
        &["worse: the typical wake-up of timer, stress, cpu0, "],
    );
    let all = runs(&json(&decided));
    assert!(all > ALL.len(), "{all}");
    // As many of both sides, each measured once: the first five of each were there.
    let kept = json(&scratch.run(&["runs", "--json"]));
    assert_eq!(kept["runs"].as_array().unwrap().len(), 2 * all, "{kept}");
    let listed = json(&scratch.run(&["baseline", "list", "--json"]));
    let mut baselines = listed["baselines"].as_array().unwrap().iter();
    let three = baselines.find(|one| one["name"] == "three");
    let runs = three.and_then(|three| three["runs"].as_array());
    assert_eq!(runs.map(Vec::len), Some(3), "{listed}");
}

#[test]
fn a_step_that_cannot_run_is_undecided_also_beside_others_that_are_equal() {
    let scratch = Scratch::new();
    let steps = "[[step]]\nprobe = \"timer\"\nsamples = 60\n\
                 [[step]]\nprobe = \"program\"\nrun = [\"nosuchprogram\"]\n";
    let path = scratch.file("vac.toml", suite("vac", &["rt"], steps));
    assert_ends(&scratch.run(&["run", &path, "--quiet"]), 3, &[]);
    assert_ends(&scratch.run(&["baseline", "set", "v", "r1"]), 0, &[]);
    let gate = scratch.run(&["gate", &path, "--baseline", "v", "--quiet"]);
    assert_ends(
        &gate,
        5,
        &[
            "undecided: program, idle: unsupported: ",
            "equal digests with seed 1",
        ],
    );
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stored runs, and a suite, judged by limits.

use std::fs;

use punctual_tests::{KERNELS, Scratch, json};

/// Two kernels, a few samples, and the limits that follow.
fn suite(limits: &str) -> String {
    let step = "[[step]]\nprobe = \"timer\"\nsamples = 60\n";
    punctual_tests::suite("mine", &["none", "rt"], &format!("{step}{limits}"))
}

/// A limit on the worst case that all of these subjects keep to, or none.
fn limit(at_most: &str) -> String {
    format!("\n[[limit]]\nprobe = \"timer\"\nwhat = \"worst\"\nat_most = \"{at_most}\"\n")
}

#[test]
fn a_limit_makes_runs_fit_unfit_or_undecided() {
    let scratch = Scratch::new();
    let suite = scratch.file("mine.toml", suite(&limit("1 s")));
    // Its own limit, with as many seeds as that takes: two subjects, five runs each.
    let fit = scratch.run(&["judge", &suite, "--quiet", "--json"]);
    assert_eq!(fit.status, Some(0), "{}{}", fit.stdout, fit.stderr);
    let verdict = json(&fit);
    assert_eq!(
        (&verdict["schema"], &verdict["verdict"]),
        (&"punctual.verdict/1".into(), &"fit".into())
    );
    for (answer, subject) in [(0, "none"), (1, "rt")] {
        let answer = &verdict["answers"][answer];
        assert_eq!(
            (&answer["subject"], &answer["runs"]),
            (&subject.into(), &5.into())
        );
        assert_eq!(answer["samples"], 300);
        // 3.0 in 300 periods of 997 µs.
        let excluded = answer["excluded_per_second"].as_f64().unwrap();
        assert!((excluded - 2.995_732 / 0.2991).abs() < 0.01, "{excluded}");
    }
    // Fewer runs of the same are undecided: one of each subject.
    let limits = scratch.file("limits.toml", limit("1 s"));
    let few = scratch.run(&["judge", "r1", "r2", "--limits", &limits]);
    assert_eq!(few.status, Some(5), "{}{}", few.stdout, few.stderr);
    assert!(
        few.stdout.contains("to decide: at least 4 more runs"),
        "{}",
        few.stdout
    );
    // One sample breaks a limit; it is named, and so is the command that explains it.
    let tight = scratch.file("tight.toml", limit("1 us"));
    let junit = scratch.path("verdict.xml");
    let unfit = scratch.run(&[
        "judge",
        "r1",
        "--limits",
        &tight,
        "--junit",
        junit.to_str().unwrap(),
    ]);
    assert_eq!(unfit.status, Some(4), "{}{}", unfit.stdout, unfit.stderr);
    assert!(
        unfit
            .stdout
            .contains("punctual explain r1 --probe timer --load idle --sample ")
    );
    assert!(
        fs::read_to_string(junit)
            .unwrap()
            .contains("<failure type=\"unfit\"")
    );
    explained(&scratch, &tight);
    refused(&scratch, &suite);
    within_a_budget(&scratch);
    without_a_suite(&scratch, &limits);
}

/// The verdict has the story of the sample that broke the limit; its parts add up.
fn explained(scratch: &Scratch, limits: &str) {
    let page = scratch.path("verdict.html");
    let page = page.to_str().unwrap();
    let words = [
        "judge", "r1", "--limits", limits, "--quiet", "--json", "--report", page,
    ];
    let answer = json(&scratch.run(&words))["answers"][0].clone();
    let parts = answer["story"]["parts"].as_array().unwrap();
    let sum: i64 = parts
        .iter()
        .map(|part| part["length_ns"].as_i64().unwrap())
        .sum();
    assert_eq!(
        sum,
        answer["sample"]["value_ns"].as_i64().unwrap(),
        "{answer}"
    );
    let page = fs::read_to_string(page).unwrap();
    let subject = answer["subject"].as_str().unwrap();
    let title = format!("Punctual: {subject} is unfit: ");
    for part in [
        title.as_str(),
        ", timer: worst at most ",
        "class=\"timeline\"",
        "<ul class=\"key\">",
        "What was not tested",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let sentence = answer["story"]["sentence"].as_str().unwrap();
    // What a run is about is not for the command line to say.
    for other in [
        ["--kernel", "debian-6.12"],
        ["--seeds", "1..50"],
        ["--memory", "100"],
        ["--samples", "9"],
    ] {
        let refused = scratch.run(&[&["judge", "r1", "--limits", limits], &other[..]].concat());
        assert_eq!(refused.status, Some(2), "{other:?}: {}", refused.stdout);
    }
    let told = scratch.run(&["judge", "r1", "--limits", limits, "--quiet"]);
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat(&told.stdout).contains(&flat(sentence)),
        "{}",
        told.stdout
    );
    let bare = json(&scratch.run(&["judge", "r1", "--limits", limits, "--json", "--no-explain"]));
    assert!(bare["answers"][0]["story"].is_null());
}

fn refused(scratch: &Scratch, suite: &str) {
    let other = scratch.file("other.toml", limit("1 s").replace("timer", "switch"));
    let wrong = scratch.file("wrong.toml", limit("1 s").replace("\"1 s\"", "\"1\""));
    for (limits, expected) in [
        (
            &other,
            "expected a measurement by switch under any load, found timer / idle / cpu0",
        ),
        (
            &wrong,
            "wrong.toml:5: at_most: expected a time with its unit, such as ",
        ),
    ] {
        let refused = scratch.run(&["judge", "r1", "--limits", limits]);
        assert_eq!(refused.status, Some(2), "{}", refused.stdout);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    // What no step answers is known before anything is measured.
    let runs = || scratch.run(&["runs", "--json"]).stdout;
    let before = runs();
    for (limits, expected) in [
        (
            limit("1 s").replace("timer", "switch"),
            "under any load, found timer / idle",
        ),
        (
            limit("1 s") + "load = \"stress\"\n",
            "by timer under stress, found timer / idle",
        ),
        (
            limit("1 s") + "subject = \"rtt\"\n",
            "expected a subject rtt, found none; rt",
        ),
    ] {
        let limits = scratch.file("unanswered.toml", limits);
        let refused = scratch.run(&["judge", suite, "--limits", &limits, "--quiet"]);
        assert_eq!(refused.status, Some(2), "{}", refused.stdout);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    assert_eq!(runs(), before);
    let mixed = scratch.run(&["judge", "r1", suite]);
    assert_eq!(mixed.status, Some(2), "{}", mixed.stderr);
    let none = scratch.run(&["judge", "demo", "--quiet"]);
    assert!(none.stderr.contains("has no [[limit]]"), "{}", none.stderr);
}

/// A probe given by its name is measured with as many seeds as its limits need.
fn without_a_suite(scratch: &Scratch, limits: &str) {
    let probe = ["--probe", "timer", "--load", "idle", "-p", "samples=60"];
    let of = ["--kernel", KERNELS[1], "--quiet", "--json"];
    let judged = scratch.run(&[&["judge"][..], &probe, &of, &["--limits", limits]].concat());
    assert_eq!(judged.status, Some(0), "{}{}", judged.stdout, judged.stderr);
    let answer = &json(&judged)["answers"][0];
    assert_eq!(
        (&answer["subject"], &answer["runs"], &answer["samples"]),
        (&KERNELS[1].into(), &5.into(), &300.into())
    );
    let none = scratch.run(&[&["judge"][..], &probe, &of].concat());
    assert_eq!(none.status, Some(2), "{}", none.stdout);
    let hint = "expected --limits: without a suite there are none";
    assert!(none.stderr.contains(hint), "{}", none.stderr);
}

/// A broken worst case ends it after the first seeds; one that is kept takes the seeds of a whole
/// look.
fn within_a_budget(scratch: &Scratch) {
    for (at_most, status, most) in [("1 us", 4, 2), ("1 s", 0, 6)] {
        let suite = scratch.file("budget.toml", suite(&limit(at_most)));
        let judged = scratch.run(&[
            "judge",
            &suite,
            "--quiet",
            "--json",
            "--budget",
            "1h",
            "--subject",
            "rt",
        ]);
        assert_eq!(
            judged.status,
            Some(status),
            "{}{}",
            judged.stdout,
            judged.stderr
        );
        let runs = json(&judged)["answers"][0]["runs"].as_u64().unwrap();
        assert!(runs <= most, "{runs} runs for {at_most}");
    }
}

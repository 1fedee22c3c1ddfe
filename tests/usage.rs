// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mistakes on the command line, and the errors that say what was meant. No guest is booted.

use punctual_tests::{Scratch, assert_ends, assert_has};

/// What cyclictest may have printed, as a run of a suite: it takes no guest.
fn import(scratch: &Scratch) {
    let text = "# Histogram\n000007 000001\n# Min Latencies: 00007\n# Avg Latencies: 00007\n\
                # Max Latencies: 00007\n# Histogram Overflows: 00000\n";
    let file = scratch.file("cyclictest.hist", text);
    assert_ends(&scratch.run(&["import", &file, "--subject", "rt"]), 0, &[]);
}

#[test]
fn runs_that_no_filter_matches_are_not_said_to_be_none() {
    let scratch = Scratch::new();
    let none = "no run matches; `punctual runs` without options lists all";
    let filters: [&[&str]; 4] = [
        &["--suite", "nosuch"],
        &["--until", "2020-01-01"],
        &["--from", "2126-05-01 12:00:00"],
        &["--state", "running"],
    ];
    for filter in filters {
        let ended = scratch.run(&[&["runs"][..], filter].concat());
        assert_ends(&ended, 0, &["there are no runs yet"]);
    }
    import(&scratch);
    for filter in filters {
        let ended = scratch.run(&[&["runs"][..], filter].concat());
        assert_ends(&ended, 0, &[none]);
        assert_eq!(ended.stdout, "");
    }
    assert_has(&scratch.run(&["runs"]).stdout, &["r1", "rt"]);
    for (words, why) in [
        (
            ["--from", "yesterday"],
            "--from: expected a time such as 2026-05-01 or 2026-05-01T12:00 (UTC), found \
             \"yesterday\"",
        ),
        (
            ["--until", "2026-13-45"],
            "--until: expected a time such as 2026-05-01 or 2026-05-01T12:00 (UTC), found \
             \"2026-13-45\"",
        ),
        (
            ["--state", "done"],
            "expected finished, failed, interrupted or running, found \"done\"",
        ),
    ] {
        assert_ends(&scratch.run(&[&["runs"][..], &words].concat()), 2, &[why]);
    }
}

#[test]
fn arrivals_of_a_load_that_was_not_measured_list_those_that_were() {
    let scratch = Scratch::new();
    import(&scratch);
    let ended = scratch.run(&["arrivals", "r1", "--load", "nosuch"]);
    let known = "r1 has no recording with load \"nosuch\"; it has timer / unknown";
    assert_ends(&ended, 2, &[known]);
}

#[test]
fn whoever_audits_a_run_without_interruptions_reads_what_has_some() {
    let scratch = Scratch::new();
    import(&scratch);
    let none = "audit needs a run with the probe noise or tick, found none in r1: `punctual run \
                isolation --seeds 1` makes such runs";
    assert_ends(&scratch.run(&["audit", "r1"]), 2, &[none]);
}

#[test]
fn options_that_are_likely_to_be_mistaken_are_explained() {
    let scratch = Scratch::new();
    for (words, why) in [
        (
            &["run", "demo", "--seeds", "1-5"][..],
            "expected seeds such as 1..5 or 1,2,7, found 1-5",
        ),
        (
            &["run", "demo", "--seed", "1..5"],
            "expected one seed, found 1..5: --seeds takes several",
        ),
        (
            &["run", "demo", "--stop-above", "200"],
            "expected a time with its unit, such as 200us or 1ms, found 200",
        ),
        (
            &["run", "demo", "--kernel", "mine", "--subject", "rt"],
            "--kernel replaces the suite's subjects, so --subject selects none: leave one out",
        ),
        (
            &["run", "-i", "500", "--probe", "timer"],
            "-p interval_us=500 here",
        ),
        (&["run", "demo", "-D", "10m"], "--duration 10m"),
        (
            &["run", "--probe", "tick", "--samples", "20"],
            "expected a probe that takes a number of samples, found tick",
        ),
        (
            &["run", "--suite", "demo"],
            "name the suite without an option: punctual run demo",
        ),
    ] {
        assert_ends(&scratch.run(words), 2, &[why]);
    }
    let misspelt = scratch.run(&["run", "--probe", "tmier"]);
    let expected = "punctual: there is no probe \"tmier\"; did you mean timer?";
    assert_eq!(misspelt.status, Some(2));
    assert!(misspelt.stderr.starts_with(expected), "{}", misspelt.stderr);
}

/// There is no directory for the store, so nothing is measured.
#[test]
fn a_number_given_as_seeds_is_said_to_be_one() {
    let scratch = Scratch::new();
    let lost = scratch.path("none/runs.db").display().to_string();
    let said = |words: &[&str]| {
        let usual = ["run", "demo", "--db", &lost];
        let ended = scratch.run(&[&usual[..], words].concat());
        assert_ends(&ended, 2, &["expected a file in an existing directory"]);
        ended.stderr
    };
    let remark = "--seeds 5 is one run of each subject, with seed 5; 5 runs are --seeds 1..5\n";
    let five = said(&["--seeds", "5"]);
    assert!(five.starts_with(remark), "{five}");
    for words in [
        &["--seeds", "5", "--quiet"][..],
        &["--seeds", "1..5"],
        &["--seeds", "1"],
        &["--seed", "5"],
    ] {
        let said = said(words);
        assert!(said.starts_with("punctual: "), "{words:?}: {said}");
    }
}

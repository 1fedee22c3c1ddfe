// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bisections with known truth.

use punctual_judge::{Baselines, judge};
use punctual_model::Nanos;
use punctual_model::arrivals::Arrivals;
use serde_json::Value;

use super::*;
use crate::fixtures::{self, assert_has};

const LIMIT: &str = "probe = \"timer\"\nwhat = \"median\"\nat_least = \"4 us\"";

/// Nine runs of a release that wake up after so many nanoseconds.
fn runs(at: usize, value: i64) -> Vec<Run> {
    let run = |seed: u64| {
        let timer = fixtures::recording(["timer", "idle", "cpu0"], &[value; 9]);
        let mut run = fixtures::run_with(vec![timer]);
        run.id = format!("r{}", at as u64 * 10 + seed);
        run.seed = seed;
        run.subject.kernel = candidate(at);
        run.subject.name.clone_from(&run.subject.kernel);
        run
    };
    (1..=9).map(run).collect()
}

fn candidate(at: usize) -> String {
    format!("debian-6.12-rt@6.12.{}-1~bpo12+1", 40 + at)
}

fn limit() -> Limit {
    toml::from_str(LIMIT).unwrap()
}

fn judged(at: usize, value: i64) -> Step {
    let runs = runs(at, value);
    let judgement = judge(&[limit()], &runs, &Baselines::new()).unwrap();
    Step::judged(at, judgement, runs)
}

/// Of five releases the last two are sooner; `skipped` cannot be had.
fn bisect(skipped: Option<usize>) -> Bisect {
    let mut bisection = Bisection::new(5);
    let mut steps = Vec::new();
    while let Some(at) = bisection.next() {
        let step = match at {
            at if skipped == Some(at) => Step::skipped(at, "it did not boot".into()),
            at => judged(at, if at < 3 { 5_000 } else { 3_000 }),
        };
        bisection.tell(at, step.known);
        steps.push(step);
    }
    Bisect {
        suite: "demo".into(),
        limits: vec![limit()],
        candidates: (0..5).map(candidate).collect(),
        is_backwards: false,
        steps,
        found: bisection.found(),
        why: None,
    }
}

fn schema(value: &Value) -> Result<(), String> {
    let text = include_str!("../../../../docs/schema/bisect-1.json");
    crate::schema::check("bisect-1.json", text, value)
}

#[test]
fn the_first_that_is_unfit_is_named_with_all_verdicts_on_the_way() {
    let found = bisect(None);
    let text = bisect_text(&found, 80);
    assert_has(
        &text,
        &[
            "timer: median at least 4.00 µs",
            "  fit      6.12.40  timer, idle, cpu0: 9 of 9 runs keep to it; the middle one",
            "  unfit    6.12.44  timer, idle, cpu0: 0 of 9 runs keep to it",
            "debian-6.12-rt 6.12.43 is the first that is unfit; 6.12.42, before it, is fit.",
            "5 kernels, 2 steps between the ends (at most 2 without skipped ones); 36 runs.",
        ],
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let json = bisect_json(&found);
    schema(&json).unwrap();
    assert_eq!(
        (&json["result"], &json["first_unfit"]),
        (&"found".into(), &candidate(3).into())
    );
    let asked = asked(&found).unwrap();
    assert_eq!(
        (asked.figure(), asked.runs),
        ("median".into(), ["r35".into(), "r25".into()])
    );
    let page = bisect_page(&found, &[]);
    assert_has(
        &page,
        &[
            "is the first that is unfit",
            "not needed",
            "On the way",
            "Evidence",
        ],
    );
}

#[test]
fn what_is_known_of_every_arrival_stands_beside_each_verdict() {
    let plain = bisect(None);
    let (text, page) = (bisect_text(&plain, 200), bisect_page(&plain, &[]));
    assert!(!text.contains("arrival") && !page.contains("every arrival"));
    let mut found = bisect(None);
    for (number, run) in found.steps[0].runs.iter_mut().enumerate() {
        let number = number as i64;
        run.arrivals = vec![Arrivals {
            worst: Nanos(16_000 + number),
            function: Some(format!("f{number}")),
            reached: (number < 4).then_some(Nanos(15_000 + number)),
            reached_function: Some(format!("g{number}")),
            ..Arrivals::default()
        }];
    }
    let worst = "timer / idle / cpu0: the latest of every arrival is 16.0 µs late in `f8`";
    let json = bisect_json(&found);
    schema(&json).unwrap();
    let first = &json["steps"][0]["arrivals"][0];
    assert_eq!(
        (&first["worst_ns"], &first["function"]),
        (&16_008.into(), &"f8".into())
    );
    // Of some runs no sample was aimed.
    assert_eq!(first["reached_ns"], Value::Null);
    assert_eq!(json["steps"][1]["arrivals"], serde_json::json!([]));
    for run in &mut found.steps[0].runs {
        run.arrivals[0].reached.get_or_insert(Nanos(14_000));
        run.arrivals[0].is_forecast = true;
    }
    let reached = " as foretold; the latest aimed sample is 15.0 µs late in `g3`";
    let whole = format!("{worst}{reached}");
    assert_has(&bisect_text(&found, 200), &[&whole]);
    assert_has(&bisect_page(&found, &[]), &[&whole, "every arrival"]);
    // One that was not watched has no worst of all.
    found.steps[0].runs[2].arrivals.clear();
    let text = bisect_text(&found, 200);
    assert_has(&text, &["timer / idle / cpu0: 1 of 9 runs not watched"]);
    assert!(!text.contains("aimed sample"), "{text}");
}

#[test]
fn what_was_skipped_at_the_place_leaves_a_span() {
    let found = bisect(Some(2));
    assert_eq!(found.suspects(), [2, 3]);
    let text = bisect_text(&found, 200);
    assert_has(
        &text,
        &[
            "  skipped  6.12.42  it did not boot",
            "the first that is unfit is one of 6.12.42, 6.12.43: all but the last were skipped",
            "; 1 skipped;",
        ],
    );
    let json = bisect_json(&found);
    schema(&json).unwrap();
    assert_eq!(json["result"], "span");
}

#[test]
fn backwards_the_first_that_is_fit_is_named() {
    let mut found = bisect(None);
    found.candidates.reverse();
    found.is_backwards = true;
    assert_has(
        &found.sentence(),
        &["debian-6.12-rt 6.12.42 is the first that is fit; 6.12.41, before it, is unfit"],
    );
    schema(&bisect_json(&found)).unwrap();
}

#[test]
fn wrong_ends_interruptions_and_other_kernels_are_told() {
    let mut found = bisect(None);
    found.found = Some(Found::GoodIsNot(Known::Unfit));
    assert_has(
        &found.sentence(),
        &["6.12.40 is said to be good, and is unfit: there is nothing"],
    );
    found.found = Some(Found::BadIsNot(Known::Skipped));
    assert_has(
        &found.sentence(),
        &["6.12.44 is said to be bad, and whether it is unfit cannot"],
    );
    schema(&bisect_json(&found)).unwrap();
    found.found = None;
    found.steps.truncate(2);
    assert_has(
        &found.sentence(),
        &["interrupted: it is between 6.12.40 and 6.12.44"],
    );
    let json = bisect_json(&found);
    schema(&json).unwrap();
    assert_eq!(
        (&json["result"], &json["why"]),
        (&"interrupted".into(), &Value::Null)
    );
    found.candidates[2] = "mine".into();
    assert_eq!(found.line(), None);
    assert_has(
        &found.sentence(),
        &["debian-6.12-rt@6.12.40-1~bpo12+1 and debian-"],
    );
}

#[test]
fn what_stays_undecided_says_what_would_decide_it() {
    let runs = runs(0, 5_000);
    let judgement = judge(&[limit()], &runs[..2], &Baselines::new()).unwrap();
    let step = Step::judged(0, judgement, runs[..2].to_vec());
    assert_eq!(step.known, Known::Skipped);
    let said = step.skipped.unwrap();
    assert_has(
        &said,
        &[
            "undecided: 2 of 2 runs keep to it",
            "to decide: at least 3 more runs",
        ],
    );
}

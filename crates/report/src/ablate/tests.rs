// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options with known truth.

use serde_json::Value;

use super::*;
use crate::fixtures::{self, assert_has};

const BASE: &str = "debian-6.12-rt";

/// Five runs with this boot argument: each wake-up takes so long, hackbench so long.
fn runs(boot: &str, wake_up: i64, work: i64) -> Vec<Run> {
    let run = |seed: i64| {
        let values = [wake_up + seed, wake_up + seed, wake_up + 10 * seed];
        let timer = fixtures::recording(["timer", "idle", "cpu0"], &values);
        let hackbench = fixtures::recording(["hackbench", "idle", "pipe"], &[work + seed, work]);
        let mut run = fixtures::run_with(vec![timer, hackbench]);
        run.id = format!("{boot}{seed}");
        run.seed = seed as u64;
        run.subject.kernel = BASE.into();
        run.subject.name = BASE.into();
        run.subject.boot = boot.into();
        run
    };
    (1..=5).map(run).collect()
}

fn side(boot: &str) -> Side {
    Side {
        kernel: BASE.into(),
        boot: boot.into(),
        setup: Vec::new(),
    }
}

fn advised(name: &str, own: &[Run], is_higher: bool) -> Trial {
    let base = runs("", 4_000, 1_000_000);
    let mut trial = trial(vec![name.into()], side(name), own, &base, &Rule::default());
    trial.advice = Some(Advice {
        source: "S3".into(),
        says: "do it".into(),
        is_higher,
        probe: Some("timer".into()),
        load: None,
    });
    trial
}

fn ablation() -> Ablation {
    let unknown = {
        let mut own = runs("unknown", 4_000, 1_000_000);
        own[0].console = "Unknown kernel command line parameters \"x unknown\", will be".into();
        own
    };
    let mut failed = runs("failed", 4_000, 1_000_000);
    failed[2].state = State::Failed;
    failed[2].error = Some("the guest's kernel panicked".into());
    let mut ablation = Ablation {
        suite: "advice".into(),
        base: side(""),
        unmeasured: Vec::new(),
        trials: vec![
            advised("same", &runs("", 4_000, 1_000_000), false),
            advised("faster", &runs("faster", 3_000, 1_200_000), false),
            advised("unknown", &unknown, false),
            advised("failed", &failed, false),
            advised("planted", &runs("planted", 9_000, 1_000_000), false),
            advised("longer", &runs("longer", 5_500, 1_000_000), true),
            advised("little", &runs("little", 4_001, 1_000_000), false),
        ],
        untried: vec![Untried {
            name: "governor".into(),
            why: "virtual time has no frequency".into(),
            advice: None,
        }],
        rule: Rule::default(),
        is_interrupted: false,
    };
    let pair = ["faster", "longer"].map(str::to_owned).to_vec();
    let base = runs("", 4_000, 1_000_000);
    let both = runs("faster longer", 4_700, 1_200_000);
    let both = trial(pair, side("faster longer"), &both, &base, &Rule::default());
    ablation.trials.push(both);
    ablation.rank();
    ablation
}

fn schema(value: &Value) -> Result<(), String> {
    let text = include_str!("../../../../docs/schema/ablation-1.json");
    crate::schema::check("ablation-1.json", text, value)
}

fn find<'a>(ablation: &'a Ablation, name: &str) -> &'a Trial {
    let mut trials = ablation.trials.iter();
    trials.find(|trial| trial.name() == name).expect(name)
}

#[test]
fn what_changes_most_comes_first_and_each_is_told_apart() {
    let ablation = ablation();
    let names: Vec<String> = ablation.trials.iter().map(Trial::name).collect();
    assert_eq!(names[..3], ["planted", "longer", "faster"], "{names:?}");
    let outcome = |name| find(&ablation, name).outcome(&ablation.rule).unwrap();
    assert_eq!(outcome("faster"), Outcome::Holds);
    assert_eq!(outcome("longer"), Outcome::Holds);
    assert_eq!(outcome("planted"), Outcome::Opposite);
    assert_eq!(outcome("same"), Outcome::DoesNotHold);
    assert_eq!(outcome("little"), Outcome::DoesNotHold);
    // What cannot be measured, or was not done at all, is never an answer.
    assert_eq!(outcome("failed"), Outcome::Undecided);
    assert_eq!(outcome("unknown"), Outcome::Undecided);
    assert!(find(&ablation, "same").is_identical());
    let faster = find(&ablation, "faster");
    let told = faster.told();
    assert_eq!(
        (told[0].title().as_str(), told[0].by().0),
        ("timer, idle, cpu0: worst", -1_000)
    );
    let last = told.last().unwrap();
    assert!(last.row.is_throughput() && last.by().0 > 0, "{last:?}");
    let asked = faster
        .asked(
            &runs("faster", 3_000, 1_200_000),
            &runs("", 4_000, 1_000_000),
        )
        .unwrap();
    assert_eq!(asked.runs, ["faster3", "3"]);
}

#[test]
fn all_forms_say_the_same() {
    let ablation = ablation();
    let text = ablation_text(&ablation, 80);
    assert_has(
        &text.split_whitespace().collect::<Vec<_>>().join(" "),
        &[
            "1. planted",
            "costs 5,000 ns of timer, idle, cpu0: worst (4,030 to 9,030 ns): higher",
            "buys 1,000 ns of timer, idle, cpu0: worst (4,030 to 3,030 ns): lower",
            "costs 200,000 ns of hackbench, idle, pipe: median",
            "do it (S3): does not hold: the opposite is so",
            "Not measured; failed3 (seed 3): the run failed: the guest's kernel panicked",
            "its kernel does not know the boot argument unknown",
            "added up: +500",
            "governor: virtual time has no frequency",
        ],
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let json = ablation_json(&ablation);
    schema(&json).unwrap();
    assert_eq!(json["options"][0]["names"], serde_json::json!(["planted"]));
    let mut broken = json.clone();
    broken["options"][0]["figures"][0]["base_ns"] = "7".into();
    assert!(schema(&broken).is_err());
    let page = ablation_page(&ablation, &runs("", 4_000, 1_000_000), &[]);
    assert_has(
        &page,
        &[
            "Option by option",
            "does not hold",
            "class=\"high\"",
            "Evidence",
        ],
    );
}

/// The error rate of the verdicts is that of single options.
#[test]
fn two_options_together_have_figures_and_no_verdict() {
    let mut ablation = ablation();
    let base = runs("", 4_000, 1_000_000);
    // Each changes something by itself, and both together nothing.
    let pair = ["faster", "planted"].map(str::to_owned).to_vec();
    let rule = Rule::default();
    let none = trial(pair, side("faster planted"), &base, &base, &rule);
    ablation.trials.push(none);
    let both = find(&ablation, "faster + longer");
    assert!(both.told().is_empty());
    let text = ablation_text(&ablation, 80);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_has(
        &text,
        &[
            "Two options together have figures and no verdict",
            "Together: faster + longer (faster longer) +700 ns of timer, idle, cpu0: worst \
             (4,030 to 4,730 ns); each by itself, added up: +500 ns",
            "Together: faster + planted (faster planted) leaves timer, idle, cpu0: worst as it is \
             (4,030 ns); each by itself, added up: +4,000 ns",
        ],
    );
    let together = text.split_once("Together:").unwrap().1;
    let together = together.split_once("No effect").unwrap().0;
    assert!(
        !together.contains("buys") && !together.contains("costs"),
        "{text}"
    );
    let json = ablation_json(&ablation);
    schema(&json).unwrap();
    for one in json["options"].as_array().unwrap() {
        let is_pair = one["names"].as_array().unwrap().len() > 1;
        for figure in one["figures"].as_array().unwrap() {
            let verdict = &figure["verdict"];
            let is_undecided = verdict["verdict"] == "undecided";
            assert_eq!(is_undecided, is_pair, "{one}");
            assert!(!is_pair || verdict["ratio"].is_null(), "{one}");
        }
    }
    ablation.trials.retain(|trial| !trial.is_pair());
    let text = ablation_text(&ablation, 80);
    assert!(!text.contains("ogether"), "{text}");
}

#[test]
fn the_page_names_what_was_not_tried() {
    let page = ablation_page(&ablation(), &runs("", 4_000, 1_000_000), &[]);
    assert_has(&page, &["not tried: virtual time has no frequency"]);
}

#[test]
fn what_was_interrupted_says_so() {
    let mut ablation = ablation();
    ablation.is_interrupted = true;
    assert_has(
        &ablation_text(&ablation, 80),
        &["Interrupted: not all was tried"],
    );
    schema(&ablation_json(&ablation)).unwrap();
}

/// Five runs with so many variants of `switch`, each of this length.
fn switches(boot: &str, variants: usize, length: i64) -> Vec<Run> {
    let of = |at: usize| {
        let own = length - at as i64;
        fixtures::recording(["switch", "idle", &format!("N={at}")], &[own, own, own])
    };
    let mut runs = runs(boot, 4_000, 1_000_000);
    for run in &mut runs {
        run.recordings.extend((1..=variants).map(of));
    }
    runs
}

#[test]
fn many_figures_of_one_measurement_are_one_entry() {
    let told = |variants: usize| {
        let mut ablation = ablation();
        let (own, base) = (
            switches("few", variants, 1_900),
            switches("", variants, 2_000),
        );
        let rule = Rule::default();
        ablation.trials = vec![trial(vec!["few".into()], side("few"), &own, &base, &rule)];
        let text = ablation_text(&ablation, 80);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // Of each variant the worst and the median.
    let few = told(1);
    assert_eq!(few.matches("buys 100 ns of switch").count(), 2, "{few}");
    let many = told(4);
    assert_eq!(many.matches("buys").count(), 1, "{many}");
    assert_has(&many, &["; 7 more of its figures by 100 ns"]);
}

#[test]
fn arrivals_that_differ_by_less_than_a_forecast_errs_are_no_effect() {
    let with = |boot: &str, worst: i64| {
        let mut runs = runs(boot, 4_000, 1_000_000);
        for run in &mut runs {
            run.arrivals = vec![punctual_model::arrivals::Arrivals {
                step: run.recordings[0].key.step,
                worst: Nanos(worst + run.seed as i64),
                ..Default::default()
            }];
        }
        runs
    };
    let verdict = |own: i64| {
        let rule = Rule::default();
        let (own, base) = (with("own", own), with("", 100_000));
        let trial = trial(vec!["own".into()], side("own"), &own, &base, &rule);
        let mut rows = trial.rows.into_iter();
        let row = rows.find(|row| row.figure == Figure::Arrival).unwrap();
        row.judged.verdict
    };
    assert!(matches!(verdict(98_500), Verdict::NotSeparated { .. }));
    assert_eq!(verdict(90_000), Verdict::Lower);
    assert_eq!(verdict(110_000), Verdict::Higher);
}

#[test]
fn what_changes_both_ways_holds_in_part() {
    let mut both = advised("both", &runs("both", 3_000, 1_000_000), false);
    let outcome = |trial: &Trial| trial.outcome(&Rule::default()).unwrap();
    assert_eq!(outcome(&both), Outcome::Holds);
    let mut rows = both.rows.iter_mut();
    rows.find(|row| row.figure == Figure::Median)
        .unwrap()
        .judged
        .verdict = Verdict::Higher;
    assert_eq!(outcome(&both), Outcome::InPart);
}

/// Runs whose hackbench step could not be measured with these seeds.
fn without_hackbench(boot: &str, seeds: &[u64]) -> Vec<Run> {
    let mut runs = runs(boot, 4_000, 1_000_000);
    for run in runs.iter_mut().filter(|run| seeds.contains(&run.seed)) {
        let recording = run.recordings.pop().unwrap();
        run.unsupported.push(punctual_model::record::Unsupported {
            step: recording.key.step,
            probe: recording.key.probe,
            load: recording.key.load,
            reason: Reason::not_loaded(
                "sh -c tune",
                punctual_model::NotLoaded::Failed,
                "exit status: 127",
            ),
        });
    }
    runs
}

/// The worst of a few cycles before a program crashed is no better than the worst of all.
#[test]
fn what_was_cut_short_has_no_outcome() {
    let base = runs("", 4_000, 1_000_000);
    let mut own = runs("own", 2_000, 1_000_000);
    own[2].recordings[0].interrupted = true;
    for (own, base) in [(&own, &base), (&base, &own)] {
        let tried = trial(vec!["own".into()], side("own"), own, base, &Rule::default());
        let gap = tried.gap.expect("a gap");
        assert!(gap.contains("interrupted after "), "{gap}");
        assert!(tried.rows.is_empty());
    }
}

#[test]
fn what_was_not_measured_is_no_option_without_effect() {
    let tried = |own: &[Run], base: &[Run], setup: &[&str]| {
        let side = Side {
            setup: setup.iter().map(|&setup| setup.to_owned()).collect(),
            ..side("own")
        };
        trial(vec!["own".into()], side, own, base, &Rule::default())
    };
    let all: Vec<u64> = (1..=5).collect();
    let whole = without_hackbench("", &[]);
    let gap = |own: &[u64], base: &[u64]| {
        let (own, base) = (without_hackbench("own", own), without_hackbench("", base));
        tried(&own, &base, &[]).gap
    };
    assert!(gap(&[3], &[]).is_some_and(|gap| gap.contains("hackbench / idle could not")));
    // One of the base's runs lacks it: the others have it.
    assert!(gap(&all, &[2]).is_some());
    assert_eq!(gap(&[], &[]), None);
    assert_eq!(gap(&all, &all), None);
    let failed = tried(&without_hackbench("own", &all), &whole, &["tune"]);
    let gap = failed.gap.unwrap();
    assert_has(&gap, &["its setup cannot run: exit status: 127"]);
    assert_eq!(failed.rows.len(), 0);
    assert_eq!(unmeasured(&without_hackbench("", &all)).len(), 1);
    let nothing: Vec<Run> = whole
        .iter()
        .map(|run| Run {
            recordings: Vec::new(),
            ..run.clone()
        })
        .collect();
    assert!(tried(&nothing, &nothing, &[]).gap.is_some());
}

#[test]
fn a_sysctl_that_the_kernel_does_not_have_is_unknown() {
    let boot = "sysctl.net.core.nonsense=1 quiet";
    let mut own = runs(boot, 4_000, 1_000_000);
    own[1].console =
        "x\nFailed to set sysctl parameter 'net.core.nonsense=1': parameter not found\n".into();
    let base = runs("", 4_000, 1_000_000);
    let trial = trial(
        vec!["own".into()],
        side(boot),
        &own,
        &base,
        &Rule::default(),
    );
    assert_eq!(trial.unknown, ["sysctl.net.core.nonsense=1"]);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::BTreeMap;

use punctual_judge::Fitness;
use punctual_model::arrivals::Arrivals;
use punctual_model::probe::SampleSpan;
use punctual_model::record::Unsupported;
use punctual_model::run::State;
use punctual_model::{Fact, Finding, MachineRecord, Nanos, Recorder, RecordingKey};
use punctual_scope::breakdown::Breakdown;
use punctual_scope::explain::{Explained, Wanted};
use serde_json::Value;

use super::*;
use crate::fixtures::{self, PLAN, changed};

mod arrivals;

/// Runs of `rt` with these seeds, each time in them changed.
fn runs_by(
    seeds: std::ops::RangeInclusive<u64>,
    id: &str,
    change: &dyn Fn(u64, i64) -> i64,
) -> Vec<Run> {
    let run = |seed| {
        let mut run = fixtures::run("rt", seed);
        run.id = format!("{id}{seed}");
        run.plan = PLAN.into();
        for recording in &mut run.recordings {
            *recording = changed(recording, &|value| change(seed, value));
        }
        run
    };
    seeds.map(run).collect()
}

/// The same, each time scaled to so many per cent.
fn runs(seeds: std::ops::RangeInclusive<u64>, id: &str, per_cent: i64) -> Vec<Run> {
    runs_by(seeds, id, &|_, value| value * per_cent / 100)
}

/// The same on a machine, where all runs have one seed.
fn in_real_time(mut all: Vec<Run>) -> Vec<Run> {
    for run in &mut all {
        (run.seed, run.machine) = (1, MachineRecord::default());
        let found = run.provenance.as_mut().unwrap();
        found.facts.insert("virtualised".into(), Fact::Flag(false));
    }
    all
}

fn one(there: &[Run], here: &[Run]) -> Result<Gated, Refusal> {
    let [there, here] = [there, here].map(|runs| runs.iter().collect::<Vec<_>>());
    gated(&there, &here, Vec::new(), &Terms::default())
}

fn gate(there: &[Run], here: &[Run]) -> Gate {
    Gate {
        suite: "demo".into(),
        baseline: "stable".into(),
        subjects: vec![one(there, here).unwrap()],
        tolerance: TOLERANCE,
        again: Some("punctual gate demo --baseline stable --kernel mine".into()),
        decide: Some("punctual gate demo --baseline stable --kernel mine --budget 20m".into()),
    }
}

fn text(gate: &Gate) -> String {
    gate_text(gate, 80, Detail::Short)
}

/// The same in one line.
fn flowing(gate: &Gate) -> String {
    let text = text(gate);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn schema(value: &Value) -> Result<(), String> {
    let text = include_str!("../../../../docs/schema/gate-1.json");
    crate::schema::check("gate-1.json", text, value)
}

fn unsupported(step: u32, probe: &str, load: &str) -> Unsupported {
    Unsupported {
        step,
        probe: probe.into(),
        load: load.into(),
        reason: "no module".into(),
    }
}

#[test]
fn equal_digests_are_unchanged_after_one_run() {
    let (there, here) = (runs(1..=5, "r", 100), runs(1..=1, "n", 100));
    let mut gate = gate(&there, &here);
    gate.subjects[0].implied = vec![2, 3, 4, 5];
    assert_eq!(gate.standing(), Standing::Unchanged);
    let digest: String = there[0].digest().unwrap().chars().take(12).collect();
    assert_eq!(
        text(&gate),
        format!(
            "unchanged: demo against baseline stable\n\n\
             before   rt: Linux 6.12.90-rt-amd64 (baseline stable, 5 runs)\n\
             after    rt: Linux 6.12.90-rt-amd64 (1 run)\n\
             machine  QEMU 7.2.22, 1 CPU, 256 MiB, 1 ns per instruction\n\
             verdict  unchanged; exact: equal digests with seed 1; the machine is the\n         \
             same to the last byte, and so are seeds 2, 3, 4, 5.\n\
             digests  r1 {digest} and 4 more → n1 {digest}\n\n\
             repeat: punctual gate demo --baseline stable --kernel mine\n"
        )
    );
    schema(&gate_json(&gate)).unwrap();
}

/// The verdict on a commit: the runs of the good kernel, of the commit and of the bad kernel.
fn by(symptom: &Symptom, gate: &Gate, runs: [&[Run]; 3]) -> Fitness {
    let [good, commit, bad] = runs.map(|runs| runs.iter().collect::<Vec<_>>());
    symptom.judge(gate, [&good, &commit, &bad]).unwrap()
}

#[test]
fn half_a_run_puts_no_commit_on_the_good_side() {
    let (good, bad) = (runs(1..=5, "g", 100), runs(1..=5, "b", 150));
    let symptom = Symptom::of(&gate(&good, &bad)).unwrap();
    for (per_cent, whole) in [(70, Fitness::Fit), (150, Fitness::Unfit)] {
        let mut commit = runs(1..=5, "n", per_cent);
        let judged = |commit: &[Run]| by(&symptom, &gate(&good, commit), [&good, commit, &bad]);
        assert_eq!(judged(&commit), whole);
        // Another step does not matter.
        commit[0].unsupported = vec![unsupported(2, "hackbench", "idle")];
        assert_eq!(judged(&commit), whole);
        commit[0].state = State::Failed;
        assert_eq!(judged(&commit), Fitness::Undecided);
    }
    // What is the same to the last sample is good, whatever other step both lack.
    let lacks = |mut all: Vec<Run>| {
        for run in &mut all {
            run.unsupported = vec![unsupported(2, "hackbench", "idle")];
        }
        all
    };
    let (good, same) = (lacks(good), lacks(runs(1..=1, "n", 100)));
    let own = gate(&good, &same);
    assert_eq!(own.standing(), Standing::Undecided);
    assert_eq!(by(&symptom, &own, [&good, &same, &bad]), Fitness::Fit);
    // A gap in the step itself is told.
    let mut torn = good.clone();
    torn[3].state = State::Interrupted;
    let gate = gate(&torn, &bad);
    assert!(symptom.gap(&gate).unwrap().contains("(g4)"));
}

#[test]
fn a_commit_is_judged_at_one_tolerance_on_both_sides() {
    let gate = |there: &[Run], here: &[Run]| {
        let [there, here] = [there, here].map(|runs| runs.iter().collect::<Vec<_>>());
        let compared = Compared {
            there: &there,
            here: &here,
            implied: Vec::new(),
        };
        Gate::of("demo", "stable", &[compared], 1.0, 0.3).unwrap()
    };
    let (good, bad) = (runs(1..=5, "g", 100), runs(1..=5, "b", 150));
    let symptom = Symptom::of(&gate(&good, &bad)).unwrap();
    // The bad one is a quarter higher than this one: less than matters, so it shows nothing.
    let commit = runs(1..=5, "n", 120);
    let fitness = by(&symptom, &gate(&good, &commit), [&good, &commit, &bad]);
    assert_eq!(fitness, Fitness::Undecided);
}

#[test]
fn a_commit_is_judged_by_the_figure_that_got_worse() {
    let (good, bad) = (runs(1..=5, "g", 100), runs(1..=5, "b", 150));
    let symptom = Symptom::of(&gate(&good, &bad)).unwrap();
    let judged = |commit: &[Run]| by(&symptom, &gate(&good, commit), [&good, commit, &bad]);
    // None of these is *not worse*: five seeds do not show it of all figures.
    let near = runs_by(1..=5, "n", &|seed, value| {
        value * (80 + 20 * (seed as i64 % 3)) / 100
    });
    assert_eq!(gate(&good, &near).standing(), Standing::Undecided);
    assert_eq!(judged(&near), Fitness::Fit);
    assert_eq!(
        judged(&runs(1..=1, "n", 100)),
        Fitness::Fit,
        "one run, unchanged"
    );
    assert_eq!(judged(&runs(1..=5, "n", 70)), Fitness::Fit, "mended before");
    assert_eq!(judged(&runs(1..=5, "n", 150)), Fitness::Unfit);
    assert_eq!(
        judged(&runs(1..=5, "n", 125)),
        Fitness::Unfit,
        "the first of two"
    );
    let both = runs_by(1..=5, "n", &|seed, value| {
        value * (100 + 50 * (seed as i64 % 2)) / 100
    });
    assert_eq!(judged(&both), Fitness::Undecided);
    assert_eq!(
        judged(&runs(1..=2, "n", 101)),
        Fitness::Undecided,
        "two runs"
    );
    let told = symptom.sentence(Fitness::Unfit);
    assert!(
        told.starts_with("bad: the typical wake-up of timer, "),
        "{told}"
    );
    assert!(Symptom::of(&gate(&good, &near)).is_none());
}

/// Runs of a program, each of so many cycles.
fn cycles(counts: [usize; 5], id: &str, per_cent: i64) -> Vec<Run> {
    let run = |(seed, count): (u64, usize)| {
        let mut run = fixtures::run("rt", seed);
        run.id = format!("{id}{seed}");
        run.unsupported.clear();
        run.plan = format!("seed = {seed}\n[[step]]\nprobe = \"app\"\nrun = [\"loop\"]\n");
        let values: Vec<i64> = (0..count as i64)
            .map(|one| (3_000 + one) * per_cent / 100)
            .collect();
        run.recordings = vec![fixtures::recording(
            ["app", "idle", "loop execution"],
            &values,
        )];
        run
    };
    (1..).zip(counts).map(run).collect()
}

#[test]
fn a_quantile_that_some_runs_lack_hides_nothing_worse() {
    let good = cycles([200, 200, 150, 200, 200], "g", 100);
    let same = gate(&good, &cycles([200, 20, 150, 200, 200], "n", 101));
    assert_eq!(same.standing(), Standing::Undecided);
    let worse = gate(&good, &cycles([200, 20, 150, 200, 200], "n", 150));
    assert_eq!(worse.standing(), Standing::Worse);
    let told = flowing(&worse);
    assert!(
        told.starts_with("worse: the typical sample of app, idle, loop execution"),
        "{told}"
    );
    assert!(
        told.contains(" p99: too few samples in one of the runs"),
        "{told}"
    );
    assert!(!told.contains("worse: p99"), "{told}");
    schema(&gate_json(&worse)).unwrap();
}

/// Asserts that each line has at most 72 columns, unless it is a command.
fn assert_can_be_mailed(text: &str) {
    for line in text.lines().filter(|line| !line.contains("punctual ")) {
        assert!(line.chars().count() <= 72, "{line}\n{text}");
    }
}

#[test]
fn what_all_seeds_show_is_worse_and_the_title_says_what() {
    // The path got longer by 500 ns; the worst sample, which differs by seed, hides it.
    let there = runs(1..=5, "r", 100);
    let here = runs_by(1..=5, "n", &|seed, value| {
        value
            + 500
            + if value > 5_000 {
                seed as i64 % 3 * 2_000
            } else {
                0
            }
    });
    let gate = gate(&there, &here);
    assert_eq!(gate.standing(), Standing::Worse, "{}", text(&gate));
    let row = &gate.subjects[0].rows[0];
    let median = &row.figures[0];
    assert_eq!(
        (
            median.name.as_str(),
            median.standing,
            median.higher,
            median.seeds
        ),
        ("median", Standing::Worse, 5, 5)
    );
    let shown = text(&gate);
    assert!(
        shown.starts_with("worse: the typical wake-up of timer, "),
        "{shown}"
    );
    let title = super::title(&gate);
    assert!(title.contains(" µs, 5 of 5 seeds"), "{title}");
    assert!(shown.contains("  median   3."), "{shown}");
    assert_can_be_mailed(&shown);
    schema(&gate_json(&gate)).unwrap();
    let (_, share) = gate.subjects[0].to_explain().unwrap();
    assert!(
        (share - 0.5).abs() < 1e-9,
        "the typical sample is explained"
    );
    let page = gate_page(&gate, &page_runs(there, here), &[]);
    let (title, runs) = (
        "worse: the typical wake-up of timer, ",
        "Which runs were compared",
    );
    assert!(page.contains(title), "numbers stand in the title");
    let at = |part: &str| page.rfind(part).unwrap_or_else(|| panic!("{part}"));
    assert!(at(runs) > at("Evidence"), "figures before numbers of runs");
}

#[test]
fn which_samples_differ_is_told_where_it_is_asked_for_or_few_do() {
    let (there, here) = (runs(1..=5, "r", 100), runs(1..=5, "n", 150));
    let all = gate(&there, &here);
    let asked = gate_text(&all, 80, Detail::Samples);
    let asked = asked.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "2,000 of 2,000 samples differ, first";
    assert!(asked.contains(line), "{asked}");
    assert!(!text(&all).contains("samples differ"), "{}", text(&all));
    // Of each run one sample is one nanosecond longer.
    let mut here = runs(1..=5, "n", 100);
    for run in &mut here {
        let most = run.recordings[0].worst[0].value.0;
        run.recordings[0] = changed(&run.recordings[0], &|value| {
            value + i64::from(value == most)
        });
    }
    let few = gate(&there, &here);
    assert!(
        text(&few).contains("1 of 2,000 samples differ"),
        "{}",
        text(&few)
    );
    assert_ne!(few.standing(), Standing::Worse);
}

#[test]
fn what_is_lower_is_not_worse_and_too_few_runs_are_undecided() {
    let there = runs(1..=5, "r", 100);
    let lower = gate(&there, &runs(1..=5, "n", 60));
    assert_eq!(lower.standing(), Standing::NotWorse, "{}", text(&lower));
    let few = gate(&there[..1], &runs(1..=1, "n", 150));
    assert_eq!(few.standing(), Standing::Undecided);
    assert!(few.needs_runs());
    let shown = text(&few);
    let command = "to decide what is undecided:\n  punctual gate demo --baseline stable --kernel \
                   mine --budget 20m\n";
    assert!(shown.contains(command), "{shown}");
    let json = gate_json(&few);
    let rows = json["subjects"][0]["measurements"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["decide"].is_string()), "{json}");
}

/// In real time all runs have one seed, and none is the same as another.
#[test]
fn in_real_time_it_speaks_of_runs_and_pairs_none() {
    let real = |count, id, per_cent| in_real_time(runs(1..=count, id, per_cent));
    let worse = gate(&real(5, "old", 100), &real(5, "new", 150));
    assert_eq!(worse.standing(), Standing::Worse, "{}", text(&worse));
    let title = title(&worse);
    assert!(title.ends_with(" µs"), "{title}");
    let told = worse.subjects[0].sentence();
    assert_eq!(told, "no seed is in both, or times are real");
    let all = gate_text(&worse, 80, Detail::Samples);
    assert!(!all.contains("seed 1"), "{all}");
    let json = gate_json(&worse);
    assert_eq!(json["subjects"][0]["runs"], serde_json::json!([]));
    schema(&json).unwrap();
    let few = flowing(&gate(&real(2, "old", 100), &real(2, "new", 150)));
    assert!(few.contains("2 of 6 runs that it takes"), "{few}");
    let mut partly = real(5, "new", 100);
    partly[4].recordings.remove(0);
    let partly = flowing(&gate(&real(5, "old", 100), &partly));
    assert!(partly.contains("nothing was measured (new5)"), "{partly}");
}

#[test]
fn what_is_higher_by_less_than_matters_is_tolerated_and_said() {
    // 10 ns of 2.9 µs are a third of a per cent, and all seeds show it.
    let there = runs_by(1..=5, "r", &|_, value| value / 1_000 * 1_000);
    let here = runs_by(1..=5, "n", &|_, value| value / 1_000 * 1_000 + 10);
    let within = gate(&there, &here);
    let row = &within.subjects[0].rows[0];
    assert_eq!(
        row.figures[0].standing,
        Standing::Tolerated,
        "{}",
        text(&within)
    );
    let shown = text(&within);
    assert!(shown.contains("changed, within tolerance"), "{shown}");
    assert!(shown.contains("tolerated: 1 % of a median"), "{shown}");
    schema(&gate_json(&within)).unwrap();
    let mut wider = within;
    wider.tolerance = 0.07;
    let shown = text(&wider);
    assert!(shown.contains("tolerated: 7 % of a median"), "{shown}");
    let page = gate_page(&wider, &[], &[]);
    assert!(
        page.contains("up to 7 % of the baseline's median is tolerated"),
        "{page}"
    );
    // The same is worse where less is tolerated.
    let terms = Terms {
        tolerance: 0.001,
        ..Terms::default()
    };
    let [there, here] = [&there, &here].map(|runs| runs.iter().collect::<Vec<_>>());
    let strict = gated(&there, &here, Vec::new(), &terms).unwrap();
    assert_eq!(strict.rows[0].figures[0].standing, Standing::Worse);
}

#[test]
fn one_measurement_that_is_the_same_is_unchanged_beside_others() {
    let there = runs(1..=5, "r", 100);
    let mut here = runs(1..=5, "n", 150);
    for (here, there) in here.iter_mut().zip(&there) {
        here.recordings[0] = there.recordings[0].clone();
    }
    let gate = gate(&there, &here);
    let rows = &gate.subjects[0].rows;
    assert_eq!(rows[0].standing, Standing::Unchanged);
    assert!(rows[0].differences.is_empty());
    assert_eq!(rows[1].standing, Standing::Worse);
}

#[test]
fn what_is_missing_is_never_a_pass() {
    let there = runs(1..=5, "r", 100);
    let mut here = runs(1..=5, "n", 60);
    for run in &mut here {
        run.recordings.remove(1);
    }
    let missing = gate(&there, &here);
    assert_eq!(
        missing.standing(),
        Standing::Undecided,
        "{}",
        text(&missing)
    );
    let gap = missing.subjects[0].rows[1].gap.as_deref();
    assert_eq!(gap, Some("nothing was measured (n1, n2, n3, n4, n5)"));
    assert!(!missing.needs_runs(), "no seed decides it");
    schema(&gate_json(&missing)).unwrap();
    // A run that did not come to its end measured nothing for certain.
    let mut here = runs(1..=5, "n", 60);
    here[0].state = State::Failed;
    let failed = gate(&there, &here);
    assert_eq!(failed.standing(), Standing::Undecided, "{}", text(&failed));
    // Another plan is another question.
    let mut here = runs(1..=5, "n", 60);
    here[4].plan = PLAN.replace("stress", "memory");
    assert!(one(&there, &here).is_err());
}

/// Evidence is taken away, on either side, from a comparison in which all digests are equal.
#[test]
fn equal_digests_say_nothing_of_what_was_not_measured() {
    type Damage = fn(&mut Run);
    let damages: [Damage; 3] = [
        |run| run.unsupported.push(unsupported(1, "timer", "stress")),
        |run| {
            run.unsupported.push(unsupported(1, "timer", "stress"));
            run.recordings.retain(|one| one.key.step != 1);
        },
        |run| run.recordings.clear(),
    ];
    for (damage, number) in damages.iter().zip(1..) {
        let after = || {
            let mut runs = runs(1..=5, "r", 100);
            runs.iter_mut().for_each(damage);
            runs
        };
        let mut here = after();
        here.iter_mut()
            .for_each(|run| run.id = format!("n{}", run.seed));
        let both = gate(&after(), &here);
        assert_eq!(
            both.standing(),
            Standing::Undecided,
            "{number}: {}",
            text(&both)
        );
        schema(&gate_json(&both)).unwrap();
        let whole = runs(1..=5, "w", 100);
        for (there, here) in [(&whole, &here), (&here, &whole)] {
            let one_side = gate(there, here);
            assert_eq!(
                one_side.standing(),
                Standing::Undecided,
                "{number}: {}",
                text(&one_side)
            );
        }
    }
    // A plan that cannot be read is no plan without steps.
    let unreadable = |id: &str| {
        let mut runs = runs(1..=5, id, 100);
        runs.iter_mut().for_each(|run| run.plan = "[[step".into());
        runs
    };
    let unread = gate(&unreadable("r"), &unreadable("n"));
    assert_eq!(unread.standing(), Standing::Undecided);
    assert!(
        text(&unread).contains("its plan cannot be read"),
        "{}",
        text(&unread)
    );
}

/// Whatever is taken away from runs that are equal or lower, the verdict gets no better.
#[test]
fn taking_evidence_away_makes_no_verdict_better() {
    let there = runs(1..=5, "r", 100);
    for (per_cent, count) in [(100, 5), (60, 5), (150, 5)] {
        let here = runs(1..=count, "n", per_cent);
        let before = gate(&there, &here).standing();
        for run in 0..5 {
            for step in 0..3 {
                let mut less = here.clone();
                less[run].recordings.retain(|one| one.key.step != step);
                let after = gate(&there, &less).standing();
                assert!(
                    after >= before.min(Standing::Undecided),
                    "{per_cent} {run} {step}"
                );
                assert!(after >= Standing::Undecided, "{per_cent} {run} {step}");
            }
        }
    }
}

/// Equal samples of the first seeds say nothing of further ones.
#[test]
fn an_earlier_look_at_equal_samples_decides_nothing_later() {
    let there = runs(1..=10, "r", 100);
    let here = runs_by(1..=10, "n", &|seed, value| {
        if seed > 5 { value * 40 } else { value }
    });
    let first = gate(&there[..5], &here[..5]);
    assert_eq!(first.standing(), Standing::Unchanged);
    let both = gate(&there, &here);
    let standing = both.standing();
    assert!(standing >= Standing::Undecided, "{}", text(&both));
    // The first look, with the rows that another row made it judge.
    let mut first = first;
    first.subjects[0].rows = gate(&there[..5], &runs(1..=5, "n", 101))
        .subjects
        .remove(0)
        .rows;
    for figure in first.subjects[0]
        .rows
        .iter_mut()
        .flat_map(|row| &mut row.figures)
    {
        figure.standing = Standing::Unchanged;
    }
    let after = gate(&there, &here).after(&first);
    assert_eq!(after.standing(), standing, "{}", text(&after));
}

/// The second of two steps of one name is not compared with the first of the other side.
#[test]
fn a_missing_step_is_not_replaced_by_another_of_its_name() {
    let step = "[[step]]\nprobe = \"timer\"\nsamples = 2000\n";
    let plan = format!("seed = 1\n{step}{step}");
    let with_two = |mut run: Run| {
        run.plan.clone_from(&plan);
        run.unsupported.clear();
        run.recordings.truncate(1);
        let mut second = changed(&run.recordings[0], &|value| value * 5);
        (second.key.step, second.key.repetition) = (1, 2);
        run.recordings.push(second);
        run.steps.clear();
        run
    };
    let there: Vec<Run> = runs(1..=5, "r", 100).into_iter().map(with_two).collect();
    let mut here: Vec<Run> = runs(1..=5, "n", 101).into_iter().map(with_two).collect();
    for run in &mut here {
        run.recordings.remove(0);
        run.recordings[0].key.repetition = 1;
    }
    let missing = gate(&there, &here);
    assert_eq!(
        missing.standing(),
        Standing::Undecided,
        "{}",
        text(&missing)
    );
}

/// Findings that vary by seed are compared, too: numbers by their range, words seed by seed.
#[test]
fn findings_that_vary_by_seed_are_no_pass_where_they_differ() {
    let with = |id: &str, probe: &str, key: &str, values: [Finding; 5]| {
        // Not equal, and a little shorter here.
        let mut all = runs(1..=5, id, if id == "n" { 98 } else { 100 });
        for (run, value) in all.iter_mut().zip(values) {
            run.recordings.truncate(1);
            run.recordings[0].key.probe = probe.into();
            run.recordings[0].findings.insert(key.into(), value);
            run.plan = format!("seed = 1\n[[step]]\nprobe = \"{probe}\"\n");
            run.unsupported.clear();
            run.steps.clear();
        }
        all
    };
    let rates =
        |id, of: [f64; 5]| with(id, "noise", "interruption_rate", of.map(Finding::PerSecond));
    let there = rates("r", [11.5, 13.0, 12.1, 11.9, 12.4]);
    let higher = gate(&there, &rates("n", [245.1, 260.7, 250.0, 249.2, 251.3]));
    assert_eq!(higher.standing(), Standing::Undecided, "{}", text(&higher));
    let told = super::title(&higher);
    assert!(
        told.ends_with("where the baseline has 11.50 /s to 13.00 /s"),
        "{told}"
    );
    // Numbers that merely touch are apart all the same.
    let touching = gate(&there, &rates("n", [13.0, 260.7, 250.0, 249.2, 251.3]));
    let told = super::title(&touching);
    assert!(
        told.ends_with("13.00 /s to 260.70 /s, where the baseline has 11.50 /s to 13.00 /s"),
        "{told}"
    );
    let alike = gate(&there, &rates("n", [12.9, 11.6, 12.0, 12.5, 12.2]));
    assert!(alike.standing() < Standing::Undecided, "{}", text(&alike));
    let passes = |id, of: [bool; 5]| {
        let verdict = |passed| Finding::Verdict {
            passed,
            expected: true,
        };
        with(id, "inversion", "result", of.map(verdict))
    };
    let there = passes("r", [true, true, false, true, true]);
    let worse = gate(&there, &passes("n", [true, false, false, false, false]));
    assert_eq!(worse.standing(), Standing::Undecided, "{}", text(&worse));
    let told = super::title(&worse);
    assert!(told.contains("FAIL with seed 2"), "{told}");
    let [there, here] = [
        [true, true, false, true, true],
        [true, false, false, false, false],
    ];
    let real = |id, of| in_real_time(passes(id, of));
    let worse = gate(&real("r", there), &real("n", here));
    assert_eq!(worse.standing(), Standing::Undecided, "{}", text(&worse));
    let told = super::title(&worse);
    assert!(told.ends_with("and not as in the baseline"), "{told}");
    let alike = gate(&real("r", there), &real("n", there));
    assert!(alike.standing() < Standing::Undecided, "{}", text(&alike));
}

/// Runs whose second step has no samples, and one finding of a probe.
fn with_finding(id: &str, image: &str, probe: &str, key: &str, values: [Finding; 5]) -> Vec<Run> {
    let mut all = runs(1..=5, id, 100);
    for (run, value) in all.iter_mut().zip(values) {
        let mut own = fixtures::recording([probe, "idle", ""], &[]);
        own.key.step = 1;
        own.findings.insert(key.into(), value);
        run.recordings.truncate(1);
        run.recordings.push(own);
        let timer = "[[step]]\nprobe = \"timer\"\nsamples = 2000\n";
        run.plan = format!("seed = 1\n{timer}[[step]]\nprobe = \"{probe}\"\n");
        run.steps.clear();
        fixtures::virtual_machine(run).image_sha256 = image.into();
    }
    all
}

/// Digests do not cover findings: on another kernel equal ones say nothing of these.
#[test]
fn equal_digests_on_another_kernel_are_no_answer_for_findings() {
    let threads = |id, image, count: u64| {
        let values = [count; 5].map(Finding::Count);
        with_finding(id, image, "kthreads", "threads", values)
    };
    let there = threads("r", "old", 48);
    let other = gate(&there, &threads("n", "new", 4_800));
    assert!(other.subjects[0].pairs.iter().all(|pair| pair.is_equal));
    assert_eq!(other.standing(), Standing::Undecided, "{}", text(&other));
    assert_eq!(
        super::title(&other),
        "undecided: kthreads, idle: threads: 4,800, where the baseline has 48"
    );
    assert!(!other.needs_runs(), "no seed decides it");
    schema(&gate_json(&other)).unwrap();
    let same = gate(&there, &threads("n", "new", 48));
    assert_eq!(same.standing(), Standing::Unchanged, "{}", text(&same));
}

/// Without samples nothing but the findings is judged: those that differ with a seed pass nothing.
#[test]
fn a_finding_without_samples_that_differs_with_a_seed_is_never_unchanged() {
    // Samples of another row differ, so that rows are made.
    let against = |there: [u64; 5], here: [u64; 5], is_real: bool| {
        let of = |id: &str, bytes: [u64; 5], shorter: i64| {
            let values = bytes.map(Finding::Bytes);
            let mut all = with_finding(id, "same", "footprint", "memory_in_use_bytes", values);
            for run in &mut all {
                run.recordings[0] = changed(&run.recordings[0], &|value| value - shorter);
            }
            if is_real { in_real_time(all) } else { all }
        };
        let gate = gate(&of("r", there, 0), &of("n", here, 100));
        schema(&gate_json(&gate)).unwrap();
        let row = &gate.subjects[0].rows[1];
        assert_eq!(row.row.probe, "footprint");
        (row.standing, row.gap.clone().unwrap_or_default())
    };
    let undecided = |told: &str| (Standing::Undecided, format!("memory in use: {told}"));
    let fine = |standing| (standing, String::new());
    let varied = [48, 49, 50, 51, 52];
    let touching = against([48, 48, 48, 48, 49], [49, 480, 481, 482, 483], false);
    let apart = undecided("49 B to 483 B, where the baseline has 48 B to 49 B");
    assert_eq!(touching, apart);
    let mixed = against(varied, [48, 49, 50, 52, 51], false);
    let by_seed = undecided("52 B with seed 4, where the baseline has 51 B");
    assert_eq!(mixed, by_seed);
    assert_eq!(against(varied, varied, false), fine(Standing::Unchanged));
    // Other bytes that are shown as the same are no reason to stop, and not the same.
    let mebibyte = [1 << 20; 5];
    let rounded = against(mebibyte, mebibyte.map(|bytes| bytes + 1), false);
    assert_eq!(rounded, fine(Standing::NotWorse));
    // In real time there are no seeds: the same numbers, or numbers that are close enough.
    for here in [[48, 49, 50, 52, 51], [48, 49, 50, 51, 51]] {
        assert_eq!(against(varied, here, true), fine(Standing::NotWorse));
    }
    let wide = against(varied, [20, 40, 50, 60, 100], true);
    let apart = undecided("20 B to 100 B, where the baseline has 48 B to 52 B");
    assert_eq!(wide, apart);
}

/// A step that is short of what it asks for passes nothing, whatever its samples say.
#[test]
fn a_step_that_is_short_of_its_plan_is_undecided() {
    type Damage = fn(&mut Run);
    let damages: [(Damage, &str); 4] = [
        (
            |run| run.steps[1].work.clear(),
            "nothing is known of what load stress did beside it",
        ),
        (
            |run| {
                for work in &mut run.steps[1].work {
                    (work.amount, work.cpu) = (0, Nanos::ZERO);
                }
            },
            "load stress did next to nothing beside it",
        ),
        (
            |run| run.plan = run.plan.replacen("samples = 2000", "samples = 2001", 1),
            "it has less than its plan asks for: 2000 samples of 2001",
        ),
        (
            |run| run.plan = run.plan.replacen("samples", "cpus = [0, 1]\nsamples", 1),
            "fewer CPUs than asked for: no cpu1",
        ),
    ];
    for per_cent in [100, 60] {
        for (damage, expected) in damages {
            let side = |id: &str, per_cent: i64| {
                let mut runs = runs(1..=5, id, per_cent);
                runs.iter_mut().for_each(damage);
                runs
            };
            let short = gate(&side("r", 100), &side("n", per_cent));
            assert_eq!(short.standing(), Standing::Undecided, "{}", text(&short));
            assert!(flowing(&short).contains(expected), "{}", text(&short));
        }
    }
    // What nobody says of a hypervisor is said once.
    let mut silent = in_real_time(runs(1..=5, "n", 60));
    silent.iter_mut().for_each(|run| run.provenance = None);
    let silent = gate(&in_real_time(runs(1..=5, "r", 100)), &silent);
    let shown = flowing(&silent);
    let rows = &silent.subjects[0].rows;
    for row in rows {
        let gap = row.gap.as_deref().unwrap_or_default();
        assert_eq!(
            gap.matches("whether a hypervisor ran").count(),
            1,
            "{shown}"
        );
    }
    assert_eq!(silent.standing(), Standing::Undecided, "{shown}");
}

/// The shares of a round trip are no verdict of their own, and frames that were all lost are no
/// pass.
#[test]
fn shares_of_a_round_trip_vary_and_lost_frames_are_undecided() {
    let stamped = |id: &str, own: i64| {
        let mut all = runs(1..=5, id, if id == "n" { 98 } else { 100 });
        for run in &mut all {
            run.recordings.truncate(1);
            let recording = &mut run.recordings[0];
            recording.key.probe = "packet".into();
            recording.key.variant = "ptp 60 round trip, stamped".into();
            let own = Finding::Nanos(Nanos(own));
            recording.findings.insert("own_median".into(), own);
            run.plan = "seed = 1\n[[step]]\nprobe = \"packet\"\n".into();
            run.unsupported.clear();
            run.steps.clear();
        }
        all
    };
    let varied = gate(&stamped("r", 15_100), &stamped("n", 15_000));
    assert!(varied.standing() < Standing::Undecided, "{}", text(&varied));
    let lost = |id| {
        let mut all = stamped(id, 15_000);
        for recording in all.iter_mut().flat_map(|run| &mut run.recordings) {
            let findings = std::mem::take(&mut recording.findings);
            *recording = Recorder::new(0).finish(recording.key.clone());
            recording.findings = findings;
        }
        all
    };
    let lost = gate(&lost("r"), &lost("n"));
    assert_eq!(lost.standing(), Standing::Undecided, "{}", text(&lost));
}

#[test]
fn the_baselines_sample_comes_first() {
    let run = |id: &str| Run {
        id: id.to_owned(),
        ..fixtures::run("rt", 1)
    };
    let why = Why {
        row: 0,
        here: (run("r29"), Err("no trace".to_owned())),
        there: (run("r24"), Err("no trace".to_owned())),
        profiles: None,
    };
    let explained = |id: &str| {
        let run = Run {
            plan: PLAN.into(),
            ..run(id)
        };
        let worst = Wanted {
            worst: 1,
            ..Wanted::default()
        };
        let explained = Explained {
            chosen: worst.choose(&run).unwrap()[0],
            breakdown: Ok(Breakdown::empty(SampleSpan::Lateness, Nanos(5_000))),
        };
        (run, Ok(explained))
    };
    let both = Why {
        row: 0,
        here: explained("r29"),
        there: explained("r24"),
        profiles: None,
    };
    for why in [why, both] {
        for told in [why.text(80), why.page().into_string()] {
            let [before, after] = ["r24", "r29"].map(|id| told.find(id).unwrap());
            assert!(before < after, "{told}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares of what a baseline has.

use super::*;

/// `seeds` runs that take `per_cent` of the time of those of [`runs`].
fn scaled(subject: &str, seeds: u64, per_cent: i64) -> Vec<Run> {
    let values = |seed: u64| vec![(9_000 + seed as i64) * per_cent / 100; 100];
    let run = |seed| synthetic::run(subject, seed, &values(seed));
    (1..=seeds).map(run).collect()
}

const OF_BASELINE: &str = "what = \"worst\"\nat_most = \"115 %\"\nof = \"baseline\"";

#[test]
fn a_share_of_a_baseline_is_of_the_same_subject_there() {
    let both = [scaled("none", 5, 100), scaled("rt", 5, 200)].concat();
    let of = |per_cent: i64, baseline: &[Run]| {
        let judged = [scaled("none", 5, per_cent), scaled("rt", 5, 200)].concat();
        let baselines = Baselines::from([(None, baseline.to_vec())]);
        judge(&limits(OF_BASELINE), &judged, &baselines).unwrap()
    };
    let fitness = |judgement: Judgement| -> Vec<Fitness> {
        judgement.answers.iter().map(|one| one.fitness).collect()
    };
    assert_eq!(fitness(of(110, &both)), [Fitness::Fit, Fitness::Fit]);
    assert_eq!(fitness(of(130, &both)), [Fitness::Unfit, Fitness::Fit]);
    // A baseline of one subject is what all are compared with.
    let rt = scaled("rt", 5, 100);
    assert_eq!(fitness(of(110, &rt)), [Fitness::Fit, Fitness::Unfit]);
}

type Change = fn(&mut Run);

#[test]
fn a_baseline_of_another_machine_or_plan_is_none() {
    let reason = |change: Change| {
        let mut there = on_a_machine(scaled("rt", 5, 100), "cpu", "A");
        there.iter_mut().for_each(change);
        let here = on_a_machine(scaled("rt", 5, 100), "cpu", "A");
        let baselines = Baselines::from([(None, there)]);
        let judgement = judge(&limits(OF_BASELINE), &here, &baselines).unwrap();
        (judgement.fitness(), judgement.answers[0].reason())
    };
    assert_eq!(reason(|_| {}).0, Fitness::Fit);
    let other: [(Change, &str); 2] = [
        (
            |run| {
                let facts = &mut run.provenance.as_mut().unwrap().facts;
                facts.insert("cpu".into(), "B".into());
            },
            "the CPU is A here and B there",
        ),
        (
            |run| run.plan = run.plan.replace("[[step]]\n", "[[step]]\npriority = 7\n"),
            "priority is not set here and 7 there",
        ),
    ];
    for (change, what) in other {
        let (fitness, told) = reason(change);
        assert_eq!(fitness, Fitness::Undecided, "{what}");
        assert!(told.contains(what), "{told}");
    }
}

#[test]
fn a_subject_that_is_not_there_may_be_one_of_the_baseline() {
    let judged = scaled("mine", 5, 110);
    let baselines = Baselines::from([(None, scaled("stable", 5, 100))]);
    let of_stable = OF_BASELINE.replace("baseline", "stable");
    let judgement = judge(&limits(&of_stable), &judged, &baselines).unwrap();
    assert_eq!(judgement.fitness(), Fitness::Fit);
    let alone = judge(&limits(&of_stable), &judged, &Baselines::new());
    let expected = "expected the subject stable to compare with, found mine";
    assert_eq!(alone.unwrap_err().reason, expected);
}

#[test]
fn what_is_identical_to_its_baseline_needs_no_further_run() {
    let baselines = Baselines::from([(None, scaled("rt", 1, 100))]);
    let of = |per_cent: i64| {
        let judged = scaled("rt", 1, per_cent);
        let judgement = judge(&limits(OF_BASELINE), &judged, &baselines).unwrap();
        judgement.fitness()
    };
    assert_eq!((of(100), of(101)), (Fitness::Fit, Fitness::Undecided));
}

#[test]
fn a_baseline_that_is_not_there_is_an_error() {
    let judged = runs("rt", 5);
    let of = |baselines: &Baselines| {
        let unanswered = judge(&limits(OF_BASELINE), &judged, baselines).unwrap_err();
        unanswered.reason
    };
    assert_eq!(of(&Baselines::new()), "expected the runs of the baseline");
    let others = [scaled("none", 1, 100), scaled("full", 1, 100)].concat();
    assert_eq!(
        of(&Baselines::from([(None, others)])),
        "expected the subject rt to compare with, found none; full"
    );
}

#[test]
fn a_baseline_of_two_machines_is_not_one_to_compare_with() {
    let mut two = scaled("stable", 10, 100);
    for run in &mut two[5..] {
        if let MachineRecord::Virtual(machine) = &mut run.machine {
            machine.image_sha256 = "b".repeat(64);
        }
    }
    let baselines = Baselines::from([(None, two)]);
    let of_stable = OF_BASELINE.replace("baseline", "stable");
    let error = judge(&limits(&of_stable), &scaled("mine", 5, 100), &baselines).unwrap_err();
    assert!(
        error.reason.starts_with("expected one subject stable"),
        "{error}"
    );
}

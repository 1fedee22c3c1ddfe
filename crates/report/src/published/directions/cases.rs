// SPDX-License-Identifier: MIT OR Apache-2.0
use punctual_model::Run;
use punctual_model::recording::Recorder;
use punctual_model::units::Nanos;
use punctual_model::{MachineRecord, RecordingKey};
use punctual_published::documents;

use super::*;
use crate::fixtures;

/// A run that says so much of itself, with a thousand samples of each of these probes and variants.
fn run(name: &str, preemption: &str, release: &str, values: &[(&str, &str, i64)]) -> Run {
    let mut run = fixtures::run(name, 1);
    run.suite = "vub".into();
    let provenance = run.provenance.as_mut().unwrap();
    (provenance.preemption, provenance.release) =
        (fixtures::preemption(preemption), release.into());
    let recording = |(probe, variant, value): &(&str, &str, i64)| {
        let mut recorder = Recorder::new(4);
        for _ in 0..1_000 {
            recorder.record(Nanos::ZERO, Nanos(*value));
        }
        recorder.finish(RecordingKey::new(probe, "idle", variant))
    };
    run.recordings = values.iter().map(recording).collect();
    run
}

/// What came of a claim.
fn outcome(runs: &[Run], seed: usize, id: &str) -> (Outcome, String) {
    let documents = documents().unwrap();
    let checked = checked(&Matrix::new(runs), &documents[seed]);
    let one = checked.into_iter().find(|one| one.direction.id == id);
    let one = one.unwrap_or_else(|| panic!("{id}"));
    (one.outcome, one.evidence)
}

fn two_rt(older: i64, newer: i64) -> [Run; 2] {
    let values = |ns| {
        [
            ("tick", "tick", ns),
            ("switch", "N=2", ns),
            ("mutex", "release", 3 * ns),
        ]
    };
    [
        run("old", "rt", "6.1.0-56-rt-amd64", &values(older)),
        run("new", "rt", "6.12.117+deb12-rt-amd64", &values(newer)),
    ]
}

#[test]
fn a_direction_comes_out_whichever_way_the_figures_go() {
    let shorter = two_rt(20_000, 10_000);
    let (found, evidence) = outcome(&shorter, 3, "tick-newer-lower");
    assert_eq!(found, Outcome::Shown);
    assert_eq!(
        evidence,
        "tick tick, average: new 10.0 µs, old 20.0 µs; tick tick, max: new 10.0 µs, old 20.0 µs"
    );
    assert_eq!(outcome(&shorter, 3, "switch-newer-dearer").0, Outcome::Gone);
    let longer = two_rt(10_000, 20_000);
    assert_eq!(outcome(&longer, 3, "tick-newer-lower").0, Outcome::Gone);
    assert_eq!(outcome(&longer, 3, "switch-newer-dearer").0, Outcome::Shown);
    // As long as before is not longer, nor shorter.
    let same = two_rt(10_000, 10_000);
    assert_eq!(outcome(&same, 3, "tick-newer-lower").0, Outcome::Gone);
    assert_eq!(outcome(&same, 3, "switch-newer-dearer").0, Outcome::Gone);
}

#[test]
fn too_few_samples_tell_nothing() {
    let mut few = two_rt(20_000, 10_000);
    for run in &mut few {
        for recording in &mut run.recordings {
            recording.count = 999;
        }
    }
    let (found, evidence) = outcome(&few, 3, "tick-newer-lower");
    assert_eq!(found, Outcome::Shown, "the averages can be compared");
    let why = "tick tick, max: too few samples to tell: 999, expected 1,000 or more";
    assert!(evidence.ends_with(why), "{evidence}");
    assert_eq!(outcome(&few, 3, "switch-newer-dearer").0, Outcome::Gone);
    // Three executions whose ranges do not overlap do tell, one never does.
    let mut runs = fixtures::whole();
    assert_eq!(outcome(&runs, 4, "rt-throughput-lower").0, Outcome::Shown);
    for run in &mut runs {
        run.recordings[2].count = 1;
    }
    let (found, evidence) = outcome(&runs, 4, "rt-throughput-lower");
    assert_eq!(found, Outcome::Unchecked, "{evidence}");
    assert!(evidence.contains("1, expected 5 or more"), "{evidence}");
}

#[test]
fn a_quotient_is_checked_within_each_subject() {
    let (found, evidence) = outcome(&two_rt(10_000, 20_000), 3, "mutex-release-double");
    assert_eq!(found, Outcome::Shown);
    assert!(
        evidence.starts_with("old 30.0 µs against 10.0 µs, 3.00 times"),
        "{evidence}"
    );
}

#[test]
fn the_average_improvement_is_over_tests_measured_on_both() {
    let (found, evidence) = outcome(&two_rt(20_000, 10_000), 3, "improved-on-average");
    assert_eq!(found, Outcome::Shown);
    assert_eq!(evidence, "new against old: 50.0 % over 3 of 8 tests");
    assert_eq!(
        outcome(&two_rt(10_000, 11_000), 3, "improved-on-average").0,
        Outcome::Gone
    );
}

#[test]
fn what_the_recordings_lack_cannot_be_checked() {
    let alone = [run("rt", "rt", "6.12.1", &[("tick", "tick", 5)])];
    let (found, evidence) = outcome(&alone, 3, "tick-newer-lower");
    assert_eq!(found, Outcome::Unchecked);
    assert!(
        evidence.contains("there is no second, older or newer real-time kernel"),
        "{evidence}"
    );
    let (found, evidence) = outcome(&two_rt(1, 2), 3, "irqrate-newer-shorter");
    assert_eq!(
        (found, evidence.as_str()),
        (
            Outcome::Unchecked,
            "new, irqrate: not measured; old, irqrate: not measured"
        )
    );
    let mut mixed = two_rt(1, 2);
    mixed[0].machine = MachineRecord::default();
    let (found, evidence) = outcome(&mixed, 3, "tick-newer-lower");
    assert_eq!(
        (found, evidence.as_str()),
        (Outcome::Unchecked, "the subjects' clocks differ")
    );
}

#[test]
fn what_a_probe_tells_is_checked_by_its_word() {
    let mut runs = fixtures::all_probes();
    let told = |runs: &[Run], id| outcome(runs, 3, id).0;
    assert_eq!(told(&runs, "inherit-does-not"), Outcome::Shown);
    assert_eq!(told(&runs, "none-inverts"), Outcome::Shown);
    assert_eq!(told(&runs, "waiters-without-influence"), Outcome::Shown);
    assert_eq!(outcome(&runs, 2, "rt-threads-interrupts").0, Outcome::Shown);
    assert_eq!(outcome(&runs, 2, "stock-threads-none").0, Outcome::Shown);
    for recording in &mut runs[1].recordings {
        if recording.key.variant == "inherit" {
            let failed = fixtures::verdict(false, true);
            recording.findings.insert("result".into(), failed);
        }
    }
    let (found, evidence) = outcome(&runs, 3, "inherit-does-not");
    assert_eq!(found, Outcome::Partly);
    assert_eq!(
        evidence,
        "1 of 2 comparisons: none, result: pass; rt, result: FAIL"
    );
    for recording in &mut runs[0].recordings {
        recording.findings.remove("waiters_matter");
    }
    let (found, evidence) = outcome(&runs, 3, "waiters-without-influence");
    assert_eq!(found, Outcome::Shown);
    assert_eq!(
        evidence,
        "rt, waiters matter: no; none: semaphore does not tell it"
    );
}

#[test]
fn hackbench_by_pipes_is_not_compared_with_hackbench_by_sockets() {
    let runs = fixtures::whole();
    let (found, evidence) = outcome(&runs, 4, "rt-throughput-lower");
    assert_eq!(found, Outcome::Shown);
    assert!(
        evidence.starts_with("hackbench pipe process 1, median: rt 301 ms, none 101 ms"),
        "{evidence}"
    );
}

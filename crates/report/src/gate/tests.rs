// SPDX-License-Identifier: MIT OR Apache-2.0
use punctual_model::Nanos;
use punctual_model::run::State;
use serde_json::Value;

use super::*;
use crate::fixtures;

/// Runs of `rt` with these seeds, each time in them as many per cent of what it is.
fn runs(seeds: std::ops::RangeInclusive<u64>, id: &str, per_cent: i64) -> Vec<Run> {
    let run = |seed| {
        let mut run = fixtures::run("rt", seed);
        run.id = format!("{id}-{seed}");
        for recording in &mut run.recordings {
            let mut recorder = punctual_model::Recorder::new(recording.samples.len());
            for sample in recording.samples.iter() {
                recorder.record(sample.at, Nanos(sample.value.0 * per_cent / 100));
            }
            let scaled = recorder.finish(recording.key.clone());
            recording.samples = scaled.samples;
            recording.worst = scaled.worst;
            recording.extremes = scaled.extremes;
            recording.sum = scaled.sum;
            recording.histogram = scaled.histogram;
            recording.count = scaled.count;
        }
        run
    };
    seeds.map(run).collect()
}

fn gate(there: &[Run], here: &[Run]) -> Gate {
    Gate {
        suite: "demo".into(),
        baseline: "stable".into(),
        subjects: vec![gated(there, here, Vec::new(), Rule::default()).unwrap()],
    }
}

fn schema(value: &Value) -> Result<(), String> {
    let text = include_str!("../../../../docs/schema/gate-1.json");
    crate::schema::check("gate-1.json", text, value)
}

#[test]
fn equal_digests_are_unchanged_after_one_run() {
    let (there, here) = (runs(1..=5, "r", 100), runs(1..=1, "n", 100));
    let mut gate = gate(&there, &here);
    gate.subjects[0].implied = vec![2, 3, 4, 5];
    assert_eq!(gate.standing(), Standing::Unchanged);
    assert_eq!(
        gate_text(&gate, 80),
        "rt: unchanged; exact: equal digests with seed 1; the machine is the same to the\n  \
         last byte, and so are seeds 2, 3, 4, 5.\n\ndemo against baseline stable: unchanged.\n"
    );
    schema(&gate_json(&gate)).unwrap();
}

#[test]
fn what_is_higher_is_worse_and_says_which_samples() {
    let gate = gate(&runs(1..=5, "r", 100), &runs(1..=5, "n", 150));
    assert_eq!(gate.standing(), Standing::Worse);
    let one = &gate.subjects[0];
    let stress = one
        .rows
        .iter()
        .find(|row| row.row.load == "stress")
        .unwrap();
    let (seed, found) = &stress.differences[0];
    assert_eq!((*seed, stress.differences.len()), (1, 5));
    assert_eq!(
        (found.compared, found.differing),
        (fixtures::SAMPLES, fixtures::SAMPLES)
    );
    let (before, after) = found.first.unwrap();
    assert_eq!((before.seq, after.value.0), (0, before.value.0 * 150 / 100));
    let text = gate_text(&gate, 80);
    assert!(
        text.contains("  timer, stress, cpu0: worse; higher 1.50×"),
        "{text}"
    );
    assert!(
        text.contains("2,000 of 2,000 samples differ, first sample 0: "),
        "{text}"
    );
    assert!(one.worst().is_some());
    schema(&gate_json(&gate)).unwrap();
    let page = gate_page(&gate, &runs(1..=5, "n", 150), &[]);
    for part in [
        "stable: worse</h1>",
        "class=\"high\"",
        "What was not tested",
        "Evidence",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn what_is_lower_is_not_worse_and_too_few_runs_are_undecided() {
    let there = runs(1..=5, "r", 100);
    let lower = gate(&there, &runs(1..=5, "n", 60));
    assert_eq!(
        lower.standing(),
        Standing::NotWorse,
        "{}",
        gate_text(&lower, 80)
    );
    let few = gate(&there[..1], &runs(1..=1, "n", 150));
    assert_eq!(few.standing(), Standing::Undecided);
    assert_eq!(few.subjects[0].worst(), None);
    // A little higher, and shown to be below 1.2 times.
    let little = gate(&there, &runs(1..=5, "n", 101));
    assert_eq!(
        little.subjects[0].rows[0].standing,
        Standing::NotWorse,
        "{}",
        gate_text(&little, 80)
    );
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
    let gate = gate(&there, &here);
    assert_eq!(
        gate.standing(),
        Standing::Undecided,
        "{}",
        gate_text(&gate, 80)
    );
    schema(&gate_json(&gate)).unwrap();
    here[0].state = State::Failed;
    assert!(gated(&there, &here, Vec::new(), Rule::default()).is_err());
}

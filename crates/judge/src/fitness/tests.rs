// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on runs whose figures are known.

mod arrivals;
mod baselines;
mod copies;
mod demands;
mod gaps;
mod imported;

use punctual_model::record::{Provenance, StepRecord, Unsupported};
use punctual_model::{Fact, Finding, MachineRecord};
use serde::Deserialize;

use super::*;
use crate::synthetic::{self, recording};

#[derive(Deserialize)]
struct File {
    limit: Vec<Limit>,
}

fn limits(rest: &str) -> Vec<Limit> {
    let text = format!("[[limit]]\nprobe = \"timer\"\n{rest}\n");
    toml::from_str::<File>(&text).unwrap().limit
}

const WORST: &str = "what = \"worst\"\nat_most = \"100 us\"";

/// `seeds` runs of 100 samples of 5 µs, the last of each being 9 µs and its seed in ns.
fn runs(subject: &str, seeds: u64) -> Vec<Run> {
    let values = |seed: u64| {
        let mut values = vec![5_000; 100];
        values[99] = 9_000 + seed as i64;
        values
    };
    (1..=seeds)
        .map(|seed| synthetic::run(subject, seed, &values(seed)))
        .collect()
}

fn only(rest: &str, runs: &[Run]) -> Answer {
    let mut judgement = judge(&limits(rest), runs, &Baselines::new()).unwrap();
    assert_eq!(judgement.answers.len(), 1);
    judgement.answers.remove(0)
}

/// Runs in real time whose target has read back this fact.
fn on_a_machine(runs: Vec<Run>, name: &str, fact: impl Into<Fact>) -> Vec<Run> {
    let fact = fact.into();
    let real = |mut run: Run| {
        run.machine = MachineRecord::default();
        run.provenance = Some(Provenance {
            facts: [
                ("virtualised".to_owned(), false.into()),
                (name.to_owned(), fact.clone()),
            ]
            .into(),
            ..Provenance::default()
        });
        run
    };
    runs.into_iter().map(real).collect()
}

/// A finished run with these steps of `timer` beside `stress`, one on each of these CPUs. CPUs that
/// are present have samples, and the others are unsupported.
fn of_steps(seed: u64, steps: &[(i64, bool)]) -> Run {
    let mut run = synthetic::run("rt", seed, &[]);
    run.recordings.clear();
    let mut repetitions = std::collections::BTreeMap::new();
    let step = |(cpu, _): &(i64, bool)| {
        format!("[[step]]\nprobe = \"timer\"\nload = \"stress\"\ncpus = [{cpu}]\nsamples = 1\n")
    };
    let steps_toml: String = steps.iter().map(step).collect();
    run.plan = format!("seed = {seed}\n{steps_toml}[loads.stress]\nsummary = \"\"\n");
    synthetic::work_in(&mut run, steps.len() as u32);
    for ((cpu, is_there), number) in steps.iter().zip(0..) {
        if !is_there {
            run.unsupported.push(Unsupported {
                step: number,
                probe: "timer".into(),
                load: "stress".into(),
                reason: format!("there is no CPU {cpu}").into(),
            });
            continue;
        }
        let mut own = recording(&[5_000, 6_000 + seed as i64], 2);
        let times = repetitions.entry(*cpu).or_insert(0);
        *times += 1;
        own.key = RecordingKey::new("timer", "stress", &format!("cpu{cpu}"));
        (own.key.step, own.key.repetition) = (number, *times);
        run.recordings.push(own);
    }
    run
}

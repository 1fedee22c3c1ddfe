// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs made by code, whose truth is known.

use punctual_model::machine::VirtualMachine;
use punctual_model::record::StepRecord;
use punctual_model::recording::{Recorder, Recording, Work};
use punctual_model::run::{Request, Run, State, Subject};
use punctual_model::{MachineRecord, Nanos, RecordingKey};

/// The time from one sample to the next.
pub const INTERVAL: Nanos = Nanos::from_millis(1);

/// A finished run in virtual time, in which `timer` took these samples under `stress`, one each
/// [`INTERVAL`], on `cpu0`. Its plan asks for at least one sample.
pub fn run(subject: &str, seed: u64, values: &[i64]) -> Run {
    Run {
        id: format!("{subject}-{seed}"),
        suite: "synthetic".into(),
        plan: format!(
            "seed = {seed}\n[[step]]\nprobe = \"timer\"\nload = \"stress\"\ncpus = [0]\nsamples = 1\n\
             [loads.stress]\nsummary = \"\"\n"
        ),
        seed,
        request: Request::default(),
        subject: Subject {
            name: subject.into(),
            bench: "virtual".into(),
            ..Subject::default()
        },
        state: State::Finished,
        error: None,
        started: "2026-01-01T00:00:00Z".into(),
        finished: Some("2026-01-01T00:00:01Z".into()),
        punctual: "0.1.0".into(),
        machine: MachineRecord::Virtual(VirtualMachine {
            ns_per_insn: 1,
            ..VirtualMachine::default()
        }),
        shards: 1,
        provenance: None,
        steps: vec![StepRecord {
            step: 0,
            probe: "timer".into(),
            load: "stress".into(),
            marks: Vec::new(),
            work: vec![Work {
                worker: "ls".into(),
                rounds: 1,
                // None is not for want of a load.
                amount: values.len().max(1) as u64,
                unit: "lines".into(),
                cpu: Nanos::from_millis(values.len() as i64 / 2),
                span: Nanos::from_millis(values.len() as i64),
                period: Nanos::ZERO,
                endless: false,
                cpus: "0".into(),
            }],
        }],
        recordings: vec![recording(values, usize::MAX)],
        unsupported: Vec::new(),
        console: String::new(),
        arrivals: Vec::new(),
    }
}

/// Gives such a run the load's work in each of `steps` steps.
#[cfg(test)]
pub(crate) fn work_in(run: &mut Run, steps: u32) {
    let first = run.steps.remove(0);
    run.steps = (0..steps)
        .map(|step| StepRecord {
            step,
            ..first.clone()
        })
        .collect();
}

/// The recording of such a run, with the first `keep` samples kept and all counted.
pub fn recording(values: &[i64], keep: usize) -> Recording {
    let mut recorder = Recorder::new(keep.min(values.len()));
    for (value, number) in values.iter().zip(0..) {
        recorder.record(INTERVAL * number, Nanos(*value));
        recorder.miss((value / INTERVAL.0).unsigned_abs());
    }
    let mut recording = recorder.finish(RecordingKey::new("timer", "stress", "cpu0"));
    recording.interval = Some(INTERVAL);
    recording
}

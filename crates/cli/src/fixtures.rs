// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs for tests.

use punctual_model::machine::VirtualMachine;
use punctual_model::{MachineRecord, Nanos, Recorder, RecordingKey, Run};
use serde_json::json;

/// A finished run of the virtual bench, of which nothing was recorded.
pub fn run(id: &str, seed: u64) -> Run {
    let run = json!({
        "id": id, "suite": "mine", "seed": seed,
        "plan": format!("seed = {seed}\n[[step]]\nprobe = \"timer\"\n"),
        "subject": { "name": "rt", "kernel": "k", "boot": "", "bench": "virtual" },
        "state": "finished", "started": "2026-05-01T00:00:00Z",
        "finished": "2026-05-01T00:00:01Z", "punctual": "0.1.0",
        "machine": MachineRecord::Virtual(VirtualMachine::default()),
        "shards": 1, "steps": [], "recordings": [], "unsupported": [], "console": "",
    });
    serde_json::from_value(run).unwrap()
}

/// A run in real time of this probe, with one sample, which cannot be repeated.
pub fn real(id: &str, probe: &str) -> Run {
    let mut recorder = Recorder::new(1);
    recorder.record(Nanos::ZERO, Nanos(5));
    Run {
        machine: MachineRecord::default(),
        recordings: vec![recorder.finish(RecordingKey::new(probe, "idle", ""))],
        ..run(id, 1)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A long recording in a store.

use std::path::Path;

use punctual_model::run::State;
use punctual_model::{MachineRecord, Nanos, Recorder, RecordingKey, Run, Subject};
use punctual_store::{End, Store, StoreError};

/// Stores a run with one recording of `samples` samples, the first `keep` of them raw. The values
/// are artificial, but spread like those of a machine.
pub fn store(path: &Path, samples: u64, keep: u32) -> Result<(), StoreError> {
    let mut recorder = Recorder::new(keep as usize);
    let mut state = 1_u64;
    for number in 0..samples {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let rare = (state >> 44).trailing_zeros() >= 12;
        let value = 2_000 + (state >> 52) + u64::from(rare) * (state >> 34 & 0xF_FFFF);
        recorder.record(Nanos(number as i64 * 997_000), Nanos(value as i64));
    }
    let run = Run {
        id: String::new(),
        suite: "long".into(),
        plan: String::new(),
        seed: 1,
        subject: Subject {
            name: "host".into(),
            bench: "host".into(),
            ..Subject::default()
        },
        state: State::Running,
        error: None,
        started: "2026-11-21T10:00:00Z".into(),
        finished: None,
        punctual: String::new(),
        machine: MachineRecord::default(),
        shards: 1,
        request: punctual_model::run::Request::default(),
        provenance: None,
        steps: Vec::new(),
        recordings: Vec::new(),
        unsupported: Vec::new(),
        console: String::new(),
        arrivals: Vec::new(),
    };
    let store = Store::open(path)?;
    let id = store.begin(&run)?;
    store.put_recording(
        &id,
        &recorder.finish(RecordingKey::new("timer", "idle", "cpu0")),
    )?;
    let end = End {
        state: State::Finished,
        error: None,
        finished: "2026-11-22T13:42:00Z",
        console: "",
        digest: None,
    };
    store.end(&id, &end)
}

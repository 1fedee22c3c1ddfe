// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a run takes longer to store where there are many: 100,000 of them, one after the
//! other, and the last thousand against the first.
//!
//! `cargo bench -p punctual-benches --bench store`.

use std::time::Instant;

use anyhow::Result;
use punctual_benches::figure;
use punctual_model::run::{Request, State};
use punctual_model::{MachineRecord, Nanos, Recorder, RecordingKey, Run, Subject};
use punctual_store::{End, Store};
use punctual_tests::Scratch;

const RUNS: u64 = 100_000;
const BLOCK: u64 = 1_000;

fn main() -> Result<()> {
    let scratch = Scratch::new();
    let store = Store::open(&scratch.path("runs.db"))?;
    let mut blocks = Vec::new();
    for block in 0..RUNS / BLOCK {
        let begun = Instant::now();
        for seed in block * BLOCK..(block + 1) * BLOCK {
            store_run(&store, seed)?;
        }
        blocks.push(begun.elapsed().as_secs_f64());
    }
    let (first, last) = (blocks[0], blocks[blocks.len() - 1]);
    println!("{RUNS} runs, {BLOCK} at a time");
    println!("  the first {BLOCK}  {first:6.2} s");
    println!(
        "  the last {BLOCK}   {last:6.2} s  = {:.2} times",
        last / first
    );
    figure("store/last-thousand-to-first", last / first);
    let begun = Instant::now();
    let listed = store.list()?.len();
    let seconds = begun.elapsed().as_secs_f64();
    println!("  a list of {listed}  {seconds:6.2} s");
    Ok(())
}

/// As a campaign does: look for an equal run, begin, store a recording, end.
fn store_run(store: &Store, seed: u64) -> Result<()> {
    let run = run(seed);
    anyhow::ensure!(store.find_equal(&run)?.is_none(), "seed {seed} is new");
    let id = store.begin(&run)?;
    let mut recorder = Recorder::new(10);
    for sample in 0..10 {
        recorder.record(Nanos(sample * 1_000), Nanos(3_000 + sample));
    }
    let key = RecordingKey::new("timer", "idle", "cpu0");
    store.put_recording(&id, &recorder.finish(key))?;
    let digest = "0".repeat(64);
    let end = End {
        state: State::Finished,
        error: None,
        finished: "2026-01-01T00:01:00Z",
        console: "",
        digest: Some(&digest),
    };
    Ok(store.end(&id, &end)?)
}

fn run(seed: u64) -> Run {
    Run {
        request: Request::default(),
        id: String::new(),
        suite: "campaign".into(),
        plan: format!("seed = {seed}\n[[step]]\nprobe = \"timer\"\n"),
        seed,
        subject: Subject {
            name: "rt".into(),
            ..Subject::default()
        },
        state: State::Running,
        error: None,
        started: "2026-01-01T00:00:00Z".into(),
        finished: None,
        punctual: env!("CARGO_PKG_VERSION").into(),
        machine: MachineRecord::default(),
        shards: 1,
        provenance: None,
        steps: Vec::new(),
        recordings: Vec::new(),
        unsupported: Vec::new(),
        console: String::new(),
        arrivals: Vec::new(),
    }
}

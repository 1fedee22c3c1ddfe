// SPDX-License-Identifier: MIT OR Apache-2.0
//! All that is shown of a run, where the run's numbers and texts are anything.

use punctual_model::recording::COUNT_MOST;
use punctual_model::{Nanos, Recorder, Recording, RecordingKey, Run};
use punctual_report::{gnuplot, page, runs_json, summary, table};
use punctual_scope::guest_clock::GuestClock;

use super::fixtures;
use crate::Target;

/// A run as JSON: what a guest can put into it, and what a damaged store can.
pub const REPORT: Target = Target {
    name: "report",
    seeds: || {
        let mut runs = fixtures::all_probes();
        runs.push(fixtures::run_without_samples("rt", 1));
        let json = |run: &Run| serde_json::to_vec(run).expect("a run can be written");
        runs.iter().map(json).collect()
    },
    run: |bytes| {
        let Ok(mut run) = serde_json::from_slice::<Run>(bytes) else {
            return false;
        };
        // The store and the stream refuse what contradicts itself.
        run.recordings.retain(|one| one.contradiction().is_none());
        show(run);
        true
    },
};

/// Samples of any value at any time that a run may have, in eight bytes each; the first two are
/// what a guest says beside them.
pub const EXTREMES: Target = Target {
    name: "extremes",
    seeds: || {
        let small: Vec<u8> = (0..40).flat_map(|n: i64| (n * 997).to_le_bytes()).collect();
        let large = [i64::MIN, -1, 0, 1, 1 << 40, i64::MAX, i64::MAX];
        let large: Vec<u8> = large.iter().flat_map(|n| n.to_le_bytes()).collect();
        vec![large.repeat(3), small]
    },
    run: |bytes| {
        let numbers: Vec<i64> = bytes
            .chunks_exact(8)
            .map(|bytes| i64::from_le_bytes(bytes.try_into().expect("eight bytes")))
            .collect();
        let Some(([interval, missed], samples)) = numbers.split_first_chunk() else {
            return false;
        };
        let mut run = fixtures::run_without_samples("rt", 1);
        let probes = [
            "timer",
            "irq",
            "inversion",
            "switch",
            "semaphore",
            "tick",
            "hackbench",
        ];
        let probe = probes[samples.len() % probes.len()];
        let recordings = [usize::MAX, 2].map(|keep| Recording {
            interval: Some(Nanos(*interval)),
            missed: *missed as u64 % COUNT_MOST,
            warmup: *missed as u64 % COUNT_MOST,
            ..recording(probe, samples, keep)
        });
        run.recordings = recordings.into();
        for (repetition, recording) in (1..).zip(&mut run.recordings) {
            recording.key.repetition = repetition;
            if recording.contradiction().is_some() {
                // The interval is what moments made by chance seldom leave room for.
                recording.interval = None;
            }
        }
        // The store and the stream refuse what contradicts itself.
        run.recordings.retain(|one| one.contradiction().is_none());
        let is_any = !run.recordings.is_empty();
        show(run);
        is_any
    },
};

fn recording(probe: &str, samples: &[i64], keep: usize) -> Recording {
    let pairs = samples.chunks_exact(2);
    let mut recorder = Recorder::new(keep.min(pairs.len()));
    for pair in pairs {
        // Moments and sums within their range: 73 years, and 2^56 ns of each of 32 samples.
        recorder.record(Nanos(pair[0] % (1 << 61)), Nanos(pair[1] % (1 << 56)));
    }
    recorder.finish(RecordingKey::new(probe, "idle", "cpu0"))
}

fn show(run: Run) {
    let _ = GuestClock::of_run(&run).map(|clock| (clock.time(7), clock.instructions(Nanos(7))));
    let runs = [run];
    let shown = [table(&runs, 80, true), summary(&runs), page(&runs, &[])];
    let json = runs_json(&runs, true).to_string();
    std::hint::black_box((shown, json, gnuplot::files(&runs)));
}

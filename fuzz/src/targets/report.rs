//! All that is shown of a run, where the run's numbers and texts are anything.

use punctual_model::Run;
use punctual_report::{gnuplot, page, runs_json, summary, table};

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
        let Ok(run) = serde_json::from_slice::<Run>(bytes) else {
            return;
        };
        // The store and the stream refuse what contradicts itself.
        if run
            .recordings
            .iter()
            .any(|one| one.contradiction().is_some())
        {
            return;
        }
        let runs = [run];
        let shown = [table(&runs, 80, true), summary(&runs), page(&runs, &[])];
        let json = runs_json(&runs, true).to_string();
        let files = gnuplot::files(&runs);
        std::hint::black_box((shown, json, files));
        let _ = punctual_scope::guest_clock::GuestClock::of_run(&runs[0]);
    },
};

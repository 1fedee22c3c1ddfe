// SPDX-License-Identifier: MIT OR Apache-2.0
//! News for whoever watches runs in progress.

use punctual_bench::system::{Event, RunEnding};
use punctual_model::record::Mark;
use punctual_model::{Plan, Run};

/// Watches runs in progress. Each method has a default that does nothing. The methods are called
/// from the threads that carry out the runs.
pub trait Observer: Sync {
    /// A run begins, with this plan. From now on its id names it.
    fn begun(&self, run: &Run, plan: &Plan) {
        let _ = (run, plan);
    }

    /// Something has happened in a run; its results are stored after this.
    fn event(&self, run: &Run, event: &Event) {
        let _ = (run, event);
    }

    /// The marks made in step number `step` of a run; asked for when the step is over.
    fn marks(&self, run: &Run, step: u32) -> Vec<Mark> {
        let _ = (run, step);
        Vec::new()
    }

    /// A run has ended. Its state and error say how; `ending` has the error as a value.
    fn ended(&self, run: &Run, ending: &RunEnding) {
        let _ = (run, ending);
    }

    /// A run need not be made: the store already has this equal one.
    fn kept(&self, run: &Run, plan: &Plan) {
        let _ = (run, plan);
    }

    /// Another process measures a run, as the run with this id, and its result is awaited. Called
    /// each time that the store is asked about it.
    fn elsewhere(&self, id: &str, run: &Run) {
        let _ = (id, run);
    }
}

/// Watches nothing.
impl Observer for () {}

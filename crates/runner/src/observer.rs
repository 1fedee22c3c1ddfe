// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is told to whoever watches runs go on.

use punctual_bench::system::{Event, RunEnding};
use punctual_model::record::Mark;
use punctual_model::{Plan, Run};

/// Watches runs go on. Each method has a default that does nothing; they are called from the
/// threads that carry out the runs.
pub trait Observer: Sync {
    /// A run begins, with this plan. From now on its id names it.
    fn begun(&self, run: &Run, plan: &Plan) {
        let _ = (run, plan);
    }

    /// Something has happened in a run; what it delivers is stored after this.
    fn event(&self, run: &Run, event: &Event) {
        let _ = (run, event);
    }

    /// What was marked in a step of a run, of this number; asked when the step is over.
    fn marks(&self, run: &Run, step: u32) -> Vec<Mark> {
        let _ = (run, step);
        Vec::new()
    }

    /// A run has ended. Its state and error say how; `ending` has the error as a value.
    fn ended(&self, run: &Run, ending: &RunEnding) {
        let _ = (run, ending);
    }

    /// A run need not be made: the store has this equal one.
    fn kept(&self, run: &Run, plan: &Plan) {
        let _ = (run, plan);
    }

    /// A run is measured by another process, as the run of this id: its result is waited for.
    /// Said each time that it is asked after.
    fn elsewhere(&self, id: &str, run: &Run) {
        let _ = (id, run);
    }
}

/// Watches nothing.
impl Observer for () {}

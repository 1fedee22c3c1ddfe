// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measuring seed after seed, until limits are decided.

use anyhow::Result;
use punctual_judge::{Judgement, Sequential, Unanswered};
use punctual_model::Run;
use punctual_model::suite::Suite;

use super::super::arrivals::WatchArgs;
use super::Prepared;
use crate::UsageError;

/// What was measured, and the verdict on it.
pub struct Decided {
    /// The verdict on all of these runs.
    pub judgement: Judgement,
    /// The runs.
    pub runs: Vec<Run>,
    /// Whether Ctrl-C has ended it.
    pub is_interrupted: bool,
}

impl Prepared<'_> {
    /// Measures seed after seed until each limit is decided, or it is enough: that is asked
    /// after each round, with the number of seeds that were measured. What is known of their
    /// arrivals is taken to the runs of each round, and watched where that is asked for.
    pub fn until_decided(
        &self,
        suite: &Suite,
        mut sequential: Sequential,
        watch: &WatchArgs,
        is_enough: &dyn Fn(usize) -> bool,
    ) -> Result<Decided> {
        let (mut runs, mut seeds) = (Vec::new(), 0);
        loop {
            let missing = sequential.next_runs() - seeds;
            let round = self.round().min(missing);
            let mut results = self.measure(&self.args.plans_after(suite, seeds, round)?)?;
            let is_watched = self.watch(watch, &mut results.runs)?;
            let is_interrupted = results.is_interrupted() || !is_watched;
            runs.extend(results.runs);
            seeds += round;
            let is_over = is_interrupted || is_enough(seeds);
            let settled = sequential.settled(&runs).map_err(unanswered)?;
            if settled.is_none() && seeds < sequential.next_runs() && !is_over {
                continue;
            }
            let (judgement, is_settled) = match settled {
                Some(settled) => (settled, true),
                None => (sequential.look(&runs).map_err(unanswered)?, false),
            };
            if is_settled || is_over || !judgement.needs_runs() {
                return Ok(Decided {
                    judgement,
                    runs,
                    is_interrupted,
                });
            }
        }
    }
}

impl Prepared<'_> {
    /// Takes what is known of their arrivals to runs; what is asked for is watched. Whether Ctrl-C
    /// did not come.
    pub fn watch(&self, watch: &WatchArgs, runs: &mut [Run]) -> Result<bool> {
        let runs = runs.iter_mut().collect();
        watch.attach(self.store(), runs, self.side_by_side(), self.args.quiet)
    }
}

/// A limit that nothing answers is the user's mistake.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
pub fn unanswered(unanswered: Unanswered) -> anyhow::Error {
    UsageError(unanswered.to_string()).into()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures seed after seed, until the limits are decided.

use anyhow::Result;
use punctual_judge::{Judgement, Sequential, Unanswered};
use punctual_model::Run;
use punctual_model::suite::Suite;

use super::super::arrivals::WatchArgs;
use super::Prepared;
use crate::UsageError;

/// The runs, and the verdict on them.
pub struct Decided {
    /// The verdict on all these runs.
    pub judgement: Judgement,
    /// The runs.
    pub runs: Vec<Run>,
    /// True if Ctrl-C has ended it.
    pub is_interrupted: bool,
}

impl Prepared<'_> {
    /// Measures seed after seed until each limit is decided, or `is_enough` returns true: it is
    /// called after each round, with the number of seeds measured. Known arrivals are added to the
    /// runs of each round, and watched if that is asked for.
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
    /// Adds the known arrivals to the runs; those that are asked for are watched. Returns false if
    /// Ctrl-C came.
    pub fn watch(&self, watch: &WatchArgs, runs: &mut [Run]) -> Result<bool> {
        let runs = runs.iter_mut().collect();
        watch.attach(self.store(), runs, self.side_by_side(), self.args.quiet)
    }
}

/// Makes a limit that nothing answers a usage error.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
pub fn unanswered(unanswered: Unanswered) -> anyhow::Error {
    UsageError(unanswered.to_string()).into()
}

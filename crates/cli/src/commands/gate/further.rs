// SPDX-License-Identifier: MIT OR Apache-2.0
//! Further seeds of both sides of a gate.

use anyhow::Result;
use punctual_kernels::paths;
use punctual_model::Run;
use punctual_model::suite::Suite;
use punctual_runner::gate::plan_with;
use punctual_runner::repeats::{Ready, Repeats};
use punctual_runner::{Job, Runner};

use super::{Gate, Runs};
use crate::commands::measure::Prepared;
use crate::commands::{catalog, virtual_bench};
use crate::interrupt;
use crate::output::say;
use crate::progress::Progress;

impl Gate {
    /// Measures these seeds of the baseline and of the undecided subjects; returns true if both
    /// were measured. Checksums of its parts identify the baseline's machine.
    pub(super) fn further(
        &self,
        suite: &Suite,
        prepared: &Prepared<'_>,
        seeds: &[u64],
        runs: &mut Runs,
        is_open: &dyn Fn(&str) -> bool,
    ) -> Result<bool> {
        let Some(there) = self.further_there(suite, prepared, seeds, &runs.there)? else {
            return Ok(false);
        };
        // What a smaller budget has measured is taken.
        let Some(here) = self.measured(suite, prepared, seeds, is_open, true)? else {
            return Ok(false);
        };
        let is_new = |seed: &&u64| runs.there.iter().all(|run| run.seed != **seed);
        runs.further.extend(seeds.iter().filter(is_new));
        runs.there.extend(there);
        runs.here.extend(here);
        Ok(true)
    }

    fn further_there(
        &self,
        suite: &Suite,
        prepared: &Prepared<'_>,
        seeds: &[u64],
        there: &[Run],
    ) -> Result<Option<Vec<Run>>> {
        let (catalog, cache) = (catalog()?, paths::cache_dir()?);
        let bench = |cpus| {
            let bench = virtual_bench(&cache, cpus);
            bench.map_err(|error| punctual_runner::Error::Request(format!("{error:#}")))
        };
        let mut repeats = Repeats::new(&catalog, &cache, &bench);
        let say = &mut |message: &str| {
            if !self.measure.quiet {
                say!("{message}");
            }
        };
        let mut firsts: Vec<&Run> = Vec::new();
        for run in there {
            if !firsts.iter().any(|first| first.subject == run.subject) {
                firsts.push(run);
                repeats.prepare(run, Some(suite), say);
            }
        }
        let mut machines = Vec::new();
        for run in firsts {
            match repeats.machine(run).map_err(str::to_owned).and_then(same) {
                Ok(ready) => machines.push((run, ready)),
                Err(why) => {
                    say!(
                        "punctual: no further seeds of the baseline ({}, {}): {why}. Make a new \
                         one here: `punctual run`, then `punctual baseline set`",
                        run.id,
                        run.subject.name
                    );
                    return Ok(None);
                }
            }
        }
        let mut jobs = Vec::new();
        for seed in seeds {
            for (run, ready) in &machines {
                jobs.push(Job {
                    group: jobs.len(),
                    suite: &run.suite,
                    subject: &ready.subject,
                    system: ready.system.as_ref(),
                    plan: plan_with(run, *seed)?,
                    request: run.request.clone(),
                });
            }
        }
        let side_by_side = prepared.side_by_side();
        let plans = jobs.iter().map(|job| &job.plan);
        let progress = Progress::new(plans, true, side_by_side, self.measure.quiet);
        let runner = Runner {
            store: prepared.store(),
            observer: &progress,
            cancel: interrupt::flag()?,
            resume: true,
        };
        let results = runner.carry_out(&jobs, side_by_side);
        progress.clear();
        let results = results?.stored()?;
        Ok((!results.is_interrupted()).then_some(results.runs))
    }
}

/// Checks that a machine is the same, so that earlier measurements can be extended on it.
fn same(ready: &Ready) -> Result<&Ready, String> {
    match ready.changes.as_slice() {
        [] => Ok(ready),
        changes => {
            let what: Vec<&str> = changes.iter().map(|change| change.what.as_str()).collect();
            Err(format!("its machine was another: {}", what.join(", ")))
        }
    }
}

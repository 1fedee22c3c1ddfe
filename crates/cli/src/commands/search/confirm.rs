// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a real sample is as late as a program's stretch is long.

use anyhow::{Result, bail};
use punctual_model::plan::Load;
use punctual_model::suite::Suite;
use punctual_model::{Nanos, Recording, Run};
use punctual_report::scope::arrivals::Told as Known;
use punctual_report::search::load;
use punctual_search::Asked;
use punctual_search::minimise::Confirmed;

use crate::commands::StoreArgs;
use crate::commands::arrivals::{self, WatchArgs};
use crate::commands::measure::MeasureArgs;
use crate::commands::measure::what::WhatArgs;

/// The number of samples of the probe timer beside a program.
const SAMPLES: u32 = 200;
/// The number of latest arrivals at which a sample is aimed.
const AIMS: usize = 3;
/// The reason why none was reached, if nothing else gives one.
const NOT_SEEN: &str = "no aimed sample was seen";
/// The name of the program as a load.
const LOAD: &str = "find";

/// Measures beside programs, and aims at the latest arrivals.
pub struct Confirm<'a> {
    /// The kernel, its boot arguments, and the user who runs the program.
    pub asked: &'a Asked,
    /// The store for its runs.
    pub store: &'a StoreArgs,
    /// True to report no progress.
    pub quiet: bool,
}

impl Confirm<'_> {
    /// The result for a program: the latest sample and the latest arrival beside it, and the latest
    /// aimed sample. `None` if Ctrl-C has ended it.
    pub fn of(&self, program: &str) -> Result<Option<Confirmed>> {
        let suite = self.suite(program)?;
        let boot = Some(self.asked.boot.clone()).filter(|boot| !boot.is_empty());
        let kernels = vec![self.asked.kernel.clone()];
        let measure =
            MeasureArgs::of_subjects(kernels, boot.into_iter().collect(), self.quiet, self.store);
        let what = WhatArgs::default();
        let plans = measure.plans(&suite, Some(1))?;
        let prepared = measure.prepare(&what, &suite)?;
        let mut results = prepared.measure(&plans)?;
        if results.is_interrupted() || !prepared.watch(&WatchArgs::aims(AIMS), &mut results.runs)? {
            return Ok(None);
        }
        let [run] = results.runs.as_slice() else {
            bail!(
                "expected one run beside {program}, found {}",
                results.runs.len()
            );
        };
        let known = arrivals::of_run(prepared.store(), run)?;
        let cause = known.as_ref().and_then(Known::latest_cause);
        Ok(Some(Confirmed {
            cause: cause.map(str::to_owned),
            ..told(run)
        }))
    }

    fn suite(&self, program: &str) -> Result<Suite> {
        let mut suite = Suite::parse(&format!(
            "name = \"search\"\nsummary = \"beside a program of the search\"\n\
             [[step]]\nprobe = \"timer\"\nload = \"{LOAD}\"\nsamples = {SAMPLES}\n"
        ))?;
        let load: Load = toml::from_str(&load(self.asked, program, "", program))?;
        suite.loads.insert(LOAD.to_owned(), load);
        Ok(suite)
    }
}

fn told(run: &Run) -> Confirmed {
    let ns = |time: Nanos| time.0;
    let recording = run.recordings.first();
    let arrivals = recording.and_then(|one| run.arrivals_of(one));
    let foretold = arrivals.filter(|one| one.gap.is_none());
    let gap = arrivals.and_then(|one| one.gap.clone());
    let refused = run.unsupported.first().map(|one| one.reason.to_string());
    let reached = arrivals.and_then(|one| one.reached);
    let unseen = reached.is_none().then(|| NOT_SEEN.to_owned());
    Confirmed {
        run: run.id.clone(),
        sampled_ns: recording.and_then(Recording::max).map(ns),
        foretold_ns: foretold.map(|one| ns(one.worst)),
        reached_ns: reached.map(ns),
        function: arrivals.and_then(|one| one.reached_function.clone()),
        cause: None,
        why_not: refused.or_else(|| run.error.clone()).or(gap).or(unseen),
    }
}

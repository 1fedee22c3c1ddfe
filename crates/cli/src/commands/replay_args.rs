// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that are repeated, watched: what `explain` and `survey` have in common.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Args;
use punctual_bench::RunError;
use punctual_bench::site::Event;
use punctual_bench::virtual_bench::{Machine, Start, VirtualBench};
use punctual_kernels::paths;
use punctual_model::{Plan, Run};
use punctual_runner::Companion;
use punctual_scope::error::ScopeError;
use punctual_scope::explain::{Explained, Wanted, explain};
use punctual_scope::repeat::{OnEvent, Repeater};

use super::catalog;
use crate::UsageError;
use crate::output::say;
use crate::progress::Progress;

/// How a run is repeated.
#[derive(Debug, Default, Args)]
pub struct ReplayArgs {
    /// Boot afresh instead of resuming a booted guest from the cache
    #[arg(long)]
    cold: bool,
    /// The scope's plugin, if it is not beside this program
    #[arg(long, value_name = "FILE")]
    plugin: Option<PathBuf>,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

impl ReplayArgs {
    /// From the cache, with progress or without.
    pub fn quiet(quiet: bool) -> Self {
        Self {
            quiet,
            ..Self::default()
        }
    }

    /// Repeats a run, and tells what stood in the way of all these samples. `None` where
    /// Ctrl-C has ended it.
    pub fn explain(
        &self,
        run: &Run,
        wanted: &[Wanted],
        cancel: &AtomicBool,
    ) -> Result<Option<Vec<Explained>>> {
        let (place, machine) = self.machine(run)?;
        let mut chosen = Vec::new();
        for wanted in wanted {
            chosen.extend(wanted.choose(run)?);
        }
        let last = chosen.iter().map(|chosen| chosen.window.step).max();
        let body = |on: OnEvent| explain(&place, run, &machine, &chosen, cancel, on);
        self.repeat(run, last, body)
    }

    /// The bench on which a run is repeated, and its machine there.
    pub fn machine(&self, run: &Run) -> Result<(Repeater, Machine)> {
        if !run.is_virtual() {
            return Err(UsageError(format!(
                "{id} was measured on this machine, in real time: only runs of the virtual bench \
                 can be explained. `punctual run {suite}` measures the same there; here, \
                 `cyclictest -b USECS --tracemark` stops the kernel's tracer at a late sample",
                id = run.id,
                suite = run.suite
            ))
            .into());
        }
        let cache = paths::cache_dir()?;
        let plugin = self.plugin.clone();
        let place = Repeater {
            bench: VirtualBench::open(&cache)?,
            plugin: plugin.unwrap_or_else(|| Companion::ScopePlugin.find()),
            start: if self.cold {
                Start::Cold
            } else {
                Start::Resumed
            },
            cache,
        };
        let machine = place.machine(run, catalog()?.get(&run.subject.kernel)?)?;
        Ok((place, machine))
    }

    /// Repeats the steps of a run up to this one, all where none is given, by what `body`
    /// does. `None` where Ctrl-C has ended it, of which is told how far it was.
    pub fn repeat<T>(
        &self,
        run: &Run,
        last_step: Option<u32>,
        body: impl FnOnce(&mut (dyn FnMut(&Event) + Send)) -> Result<T, ScopeError>,
    ) -> Result<Option<T>> {
        let mut plan: Plan = toml::from_str(&run.plan)?;
        if let Some(last) = last_step {
            plan.steps.truncate(last as usize + 1);
        }
        let progress = Progress::new([&plan].into_iter(), true, 1, self.quiet);
        let (id, name) = (run.id.as_str(), format!("{} again", run.id));
        progress.begin(id, name, &plan, true);
        let result = body(&mut |event| progress.show(id, event));
        let reached = progress.step(id);
        progress.clear();
        match result {
            Ok(done) => Ok(Some(done)),
            Err(ScopeError::Run(RunError::Interrupted)) => {
                let reached = if reached.is_empty() {
                    "before its first step".to_owned()
                } else {
                    format!("in step {reached}")
                };
                say!(
                    "punctual: interrupted while {id} was repeated, {reached}: nothing of it is told"
                );
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that are repeated, watched: what `explain` and `survey` have in common.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use punctual_bench::RunError;
use punctual_bench::system::Event;
use punctual_bench::virtual_bench::{Machine, Start};
use punctual_kernels::paths;
use punctual_model::{Plan, Run};
use punctual_runner::Companion;
use punctual_scope::error::ScopeError;
use punctual_scope::repeat::Repeater;

use super::{catalog, virtual_bench};
use crate::UsageError;
use crate::output::say;
use crate::progress::Progress;

/// How a run is repeated.
#[derive(Debug, Args)]
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
            bench: virtual_bench(&cache, 1)?,
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats runs while watching them: options that `explain` and `survey` share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use clap::Args;
use punctual_bench::RunError;
use punctual_bench::system::Event;
use punctual_bench::virtual_bench::{Machine, Start};
use punctual_judge::{Fitness, Judgement};
use punctual_kernels::paths;
use punctual_model::{Plan, RecordingKey, Run};
use punctual_report::asked::Asked;
use punctual_report::judgement::Stories;
use punctual_report::scope::Story;
use punctual_report::why::Why;
use punctual_runner::Companion;
use punctual_scope::error::ScopeError;
use punctual_scope::explain::{Chosen, Explained, Wanted, explain};
use punctual_scope::profile::{Profile, profile};
use punctual_scope::repeat::{OnEvent, Repeater};

use super::{catalog, virtual_bench};
use crate::hints::store_option;
use crate::output::say;
use crate::progress::Progress;
use crate::{UsageError, interrupt};

/// The sample of a measurement that has this number.
fn chosen(run: &Run, key: &RecordingKey, seq: u64) -> Result<Chosen, String> {
    let wanted = Wanted {
        probe: Some(key.probe.clone()),
        load: Some(key.load.clone()),
        variant: Some(key.label()),
        sample: Some(seq),
        worst: usize::MAX,
        faults: false,
    };
    let all = wanted.choose(run).map_err(|error| error.to_string())?;
    let is_own = |one: &Chosen| run.recordings[one.recording].key.is_same_measurement(key);
    let own = all.into_iter().find(is_own);
    own.ok_or_else(|| "the run did not keep it".to_owned())
}

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
    /// Returns true if an option says how a run is repeated.
    pub fn is_given(&self) -> bool {
        self.cold || self.plugin.is_some()
    }

    /// Repeats from the cache, with progress or without.
    pub fn quiet(quiet: bool) -> Self {
        Self {
            quiet,
            ..Self::default()
        }
    }

    /// Repeats a run, and explains the delays of these samples. `None` if Ctrl-C has ended it.
    pub fn explain(
        &self,
        run: &Run,
        chosen: &[Chosen],
        cancel: &AtomicBool,
    ) -> Result<Option<Vec<Explained>>> {
        let (place, machine) = self.machine(run)?;
        let last = chosen.iter().map(|chosen| chosen.window.step).max();
        let body = |on: OnEvent| explain(&place, run, &machine, chosen, cancel, on);
        self.repeat(run, last, body)
    }

    /// Repeats a run, and profiles each of its steps. `None` if Ctrl-C has ended it.
    pub fn profile(&self, run: &Run, cancel: &AtomicBool) -> Result<Option<Vec<Profile>>> {
        let (place, machine) = self.machine(run)?;
        let body = |on: OnEvent| profile(&place, run, &machine, cancel, on);
        self.repeat(run, None, body)
    }

    /// The stories of these samples, each given by measurement and number, in their order; the run
    /// is repeated once for all of them. `None` if Ctrl-C has ended it.
    pub fn stories(
        &self,
        run: &Run,
        samples: &[(&RecordingKey, u64)],
        cancel: &AtomicBool,
    ) -> Option<Vec<Story>> {
        let chosen: Vec<Result<Chosen, String>> = samples
            .iter()
            .map(|(key, seq)| chosen(run, key, *seq))
            .collect();
        let known: Vec<Chosen> = chosen.iter().flatten().copied().collect();
        let explained = if known.is_empty() {
            // Nothing would be seen in the whole run.
            Ok(Vec::new())
        } else {
            match self.explain(run, &known, cancel) {
                Ok(explained) => Ok(explained?),
                Err(error) => Err(format!("{error:#}")),
            }
        };
        let mut told = explained.map(Vec::into_iter);
        let mut story = |_: Chosen| match &mut told {
            Ok(told) => told
                .next()
                .ok_or_else(|| "it was not seen again".to_owned()),
            Err(why) => Err(why.clone()),
        };
        let stories = chosen.into_iter().map(|one| one.and_then(&mut story));
        Some(stories.collect())
    }

    /// The reasons why the samples that broke limits were late, for `at_most` limits: each run with
    /// such samples is repeated once.
    pub fn broken(&self, judgement: &Judgement, runs: &[Run], at_most: usize) -> Result<Stories> {
        let cancel = interrupt::flag()?;
        let broken = judgement.answers.iter().enumerate();
        let broken = broken.filter(|(_, answer)| answer.fitness == Fitness::Unfit);
        let mut samples = BTreeMap::<&str, (Vec<usize>, Vec<_>)>::new();
        for (number, answer) in broken {
            let sample = answer.sample.as_ref();
            let Some((id, seq)) = sample.and_then(|one| Some((one.run.as_str(), one.seq?))) else {
                continue;
            };
            let (numbers, own) = samples.entry(id).or_default();
            numbers.push(number);
            own.push((&answer.key, seq));
        }
        let mut stories = Stories::new();
        for run in runs.iter().filter(|run| run.is_virtual()) {
            let Some((numbers, mut own)) = samples.remove(run.id.as_str()) else {
                continue;
            };
            own.truncate(at_most - stories.len());
            if own.is_empty() {
                break;
            }
            if !self.quiet {
                say!("Repeating {}, to find out why it broke a limit", run.id);
            }
            let Some(told) = self.stories(run, &own, cancel) else {
                break;
            };
            stories.extend(numbers.into_iter().zip(told));
        }
        Ok(stories)
    }

    /// The samples of both sides, explained; `None` if there are none, or Ctrl-C has ended it.
    /// `row` is the number under which they are asked for.
    pub fn why(&self, row: usize, asked: &Asked, runs: &[Run], cancel: &AtomicBool) -> Option<Why> {
        self.why_of(row, asked, &runs.iter().collect::<Vec<_>>(), cancel)
    }

    /// Like [`Self::why`], for runs that are stored elsewhere.
    pub fn why_of(
        &self,
        row: usize,
        asked: &Asked,
        runs: &[&Run],
        cancel: &AtomicBool,
    ) -> Option<Why> {
        let story = |id: &String| -> Option<(Run, Story)> {
            let run = runs.iter().find(|run| run.id == *id)?;
            let told = self.stories(run, &[(&asked.key, asked.sample(run)?)], cancel)?;
            Some(((*run).clone(), told.into_iter().next()?))
        };
        let [here, there] = &asked.runs;
        let mut why = Why {
            row,
            here: story(here)?,
            there: story(there)?,
            profiles: None,
        };
        if !why.is_explained() {
            let runs = [&why.here.0, &why.there.0];
            why.profiles = self.profiles(&asked.key, runs, cancel).map(Box::new);
            if cancel.load(Ordering::SeqCst) {
                return None;
            }
        }
        Some(why)
    }

    /// The profiles of a measurement's step in these runs, as far as they can be repeated.
    fn profiles(
        &self,
        key: &RecordingKey,
        runs: [&Run; 2],
        cancel: &AtomicBool,
    ) -> Option<[Profile; 2]> {
        let of = |run: &Run| {
            let mut recordings = run.recordings.iter();
            let own = recordings.find(|one| one.key.is_same_measurement(key))?;
            let all = self.profile(run, cancel).ok()??;
            all.into_iter().find(|one| one.step == own.key.step)
        };
        let [here, there] = runs;
        Some([of(here)?, of(there)?])
    }

    /// The bench on which a run is repeated, and its machine there.
    pub fn machine(&self, run: &Run) -> Result<(Repeater, Machine)> {
        if !run.is_virtual() {
            return Err(UsageError(format!(
                "{id} was measured in real time: only runs of the virtual bench can be \
                 repeated. `punctual explain {id}{of}` tells what the kernel's tracer has caught",
                id = run.id,
                of = store_option(),
            ))
            .into());
        }
        let cache = paths::cache_dir()?;
        let then = run.machine.as_virtual();
        let cpus = then.map_or(1, |machine| machine.cpus);
        let network = then.and_then(|machine| machine.network);
        let plugin = self.plugin.clone();
        let kernel = catalog()?.get(&run.subject.kernel)?;
        let place = Repeater {
            bench: virtual_bench(&cache, cpus)?.of(kernel.architecture, cpus, network)?,
            plugin: plugin.unwrap_or_else(|| Companion::ScopePlugin.find()),
            start: if self.cold {
                Start::Cold
            } else {
                Start::Resumed
            },
            cache,
        };
        let machine = place.machine(run, kernel)?;
        Ok((place, machine))
    }

    /// Repeats the steps of a run up to this one, or all if none is given, by calling `body`.
    /// `None` if Ctrl-C has ended it, after which the progress is reported.
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
                say!("punctual: interrupted while {id} was repeated, {reached}: no result");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::real;

    #[test]
    fn what_ctrl_c_has_ended_has_no_story_even_where_only_profiles_could_tell_it() {
        let runs = ["r1", "r2"].map(|id| real(id, "hackbench"));
        let asked = Asked {
            key: runs[0].recordings[0].key.clone(),
            share: 0.5,
            runs: ["r1", "r2"].map(str::to_owned),
        };
        let why = |cancel: bool| {
            let replay = ReplayArgs::quiet(true);
            replay.why(0, &asked, &runs, &AtomicBool::new(cancel))
        };
        assert!(why(false).is_some_and(|why| why.profiles.is_none()));
        assert!(why(true).is_none());
    }
}

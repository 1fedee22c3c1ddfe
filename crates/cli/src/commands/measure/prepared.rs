// SPDX-License-Identifier: MIT OR Apache-2.0
//! Subjects that are ready, and their measurement.

use std::iter;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use punctual_bench::ssh::Route;
use punctual_bench::virtual_bench::TURN;
use punctual_model::Run;
use punctual_model::run::Request;
use punctual_model::suite::{SubjectSpec, Suite};
use punctual_runner::systems::PreparedSystem;
use punctual_runner::{Job, Observer, Results, Runner};
use punctual_store::Store;

use super::bench::{Bench, this_machine};
use super::peer::answered;
use super::plans::Plans;
use super::what::WhatArgs;
use super::{MeasureArgs, PATIENCE};
use crate::commands::arrivals;
use crate::commands::trace_args::{TraceArgs, traced_name};
use crate::interrupt;
use crate::live::Live;
use crate::progress::Progress;

/// Subjects that are ready to be measured.
pub struct Prepared<'a> {
    pub(super) args: &'a MeasureArgs,
    what: &'a WhatArgs,
    suite: &'a Suite,
    subjects: Vec<SubjectSpec>,
    systems: Vec<PreparedSystem>,
    store: Store,
    cancel: &'static AtomicBool,
    side_by_side: usize,
}

impl Prepared<'_> {
    /// The number of seeds that keeps all runs that are made side by side busy.
    pub fn round(&self) -> usize {
        self.side_by_side.div_ceil(self.subjects.len().max(1))
    }

    /// The number of runs that are made side by side.
    pub fn side_by_side(&self) -> usize {
        self.side_by_side
    }

    /// The store for the runs.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The subjects' names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.subjects.iter().map(|subject| subject.name.as_str())
    }

    /// Measures each subject by each plan. It is an error if a result could not be stored.
    pub fn measure(&self, plans: &Plans) -> Result<Results> {
        Ok(self.measure_anyway(plans)?.stored()?)
    }

    /// The same for a caller that shows what could not be stored, too.
    pub fn measure_anyway(&self, plans: &Plans) -> Result<Results> {
        self.measure_or_take(plans, &|_| true, self.args.resume)
    }

    /// Measures each subject whose name is wanted by each plan; if `resume`, takes what the store
    /// holds of this very measurement.
    pub fn measure_or_take(
        &self,
        plans: &Plans,
        is_wanted: &dyn Fn(&str) -> bool,
        resume: bool,
    ) -> Result<Results> {
        let wanted = self.names().filter(|name| is_wanted(name)).count();
        let all = plans.plans.iter();
        let all = all.flat_map(|plan| iter::repeat_n(plan, wanted));
        let is_virtual = self.args.bench == Bench::Virtual;
        let live = self
            .args
            .live()
            .then(|| Live::begin(self.cancel))
            .transpose()?;
        let is_quiet = self.args.quiet || live.is_some();
        let progress = Progress::new(all, is_virtual, self.side_by_side, is_quiet);
        let runner = Runner {
            store: &self.store,
            observer: live
                .as_ref()
                .map_or(&progress, |live| live as &dyn Observer),
            cancel: self.cancel,
            resume,
        };
        let jobs = self.jobs(plans, is_wanted)?;
        let results = runner.carry_out(&jobs, self.side_by_side);
        progress.clear();
        drop(live);
        let mut results = results?;
        for run in &mut results.runs {
            arrivals::attach(&self.store, run)?;
        }
        Ok(results)
    }

    /// The runs to be made; nothing of them has been measured yet.
    pub fn planned(&self, plans: &Plans) -> Result<Vec<Run>> {
        let planned = |job: &Job<'_>| Run {
            id: format!("suite {}", self.suite.name),
            ..job.run()
        };
        Ok(self.jobs(plans, &|_| true)?.iter().map(planned).collect())
    }

    fn jobs(&self, plans: &Plans, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Job<'_>>> {
        let Plans { plans, pooled } = plans;
        let mut jobs = Vec::new();
        for plan in plans {
            let subjects = self.subjects.iter().zip(&self.systems).enumerate();
            for (number, (subject, system)) in subjects.filter(|(_, (own, _))| is_wanted(&own.name))
            {
                let mut plan = plan.clone();
                plan.absent.clone_from(&system.absent);
                let request = self.args.request(self.what, self.suite, number)?;
                jobs.push(Job {
                    request,
                    group: if *pooled { number } else { jobs.len() },
                    suite: &self.suite.name,
                    subject,
                    system: system.system.as_ref(),
                    plan,
                });
            }
        }
        Ok(jobs)
    }
}

impl MeasureArgs {
    /// Looks up everything that is needed, and reports errors in it.
    pub fn prepare<'a>(&'a self, what: &'a WhatArgs, suite: &'a Suite) -> Result<Prepared<'a>> {
        let store = self.store.open_or_make()?;
        let (mut subjects, systems) = match &self.bench {
            Bench::Virtual => {
                let subjects = self.subjects(suite)?;
                let systems = self.guests(suite, &subjects)?;
                (subjects, systems)
            }
            Bench::Host => (vec![this_machine()?], vec![self.host(suite)?]),
            Bench::Ssh(destination) => {
                let route = Route::Ssh(destination.clone());
                let (subject, system) = self.board(&route, None, suite)?;
                (vec![subject], vec![system])
            }
            Bench::Labgrid(place) => {
                let (subject, system) = self.place(place, suite)?;
                (vec![subject], vec![system])
            }
        };
        let systems = match &self.peer {
            Some(peer) => answered(systems, peer)?,
            None => systems,
        };
        if let Some(tracing) = self.tracing {
            for subject in &mut subjects {
                subject.name = traced_name(&subject.name, tracing);
            }
        }
        Ok(Prepared {
            args: self,
            what,
            suite,
            subjects,
            systems,
            store,
            cancel: interrupt::flag()?,
            side_by_side: self.side_by_side()?,
        })
    }

    /// The request that asks for the subject of this number again, in the order of [`choose`].
    fn request(&self, what: &WhatArgs, suite: &Suite, number: usize) -> Result<Request> {
        let word = |word: &str| word.to_owned();
        let boot = self.boot.get(number % self.boot.len().max(1));
        let base = number / self.boot.len().max(1);
        let names = if self.subject.is_empty() {
            suite.subjects.get(base).map(|subject| &subject.name)
        } else {
            self.subject.get(base)
        };
        let mut subject = Vec::new();
        if self.bench == Bench::Virtual {
            match self.kernel.get(base) {
                Some(kernel) => subject.extend([word("--kernel"), kernel.clone()]),
                None => subject.extend(
                    names
                        .into_iter()
                        .flat_map(|name| [word("--subject"), name.clone()]),
                ),
            }
            subject.extend(
                boot.into_iter()
                    .flat_map(|boot| [word("--boot"), boot.clone()]),
            );
        }
        let is_all = self.kernel.is_empty() && self.boot.is_empty() && self.subject.is_empty();
        let mut options = self.asked_before.clone();
        options.extend(self.scale.words());
        if let Some(version) = &self.kernel_version {
            options.extend([word("--kernel-version"), version.clone()]);
        }
        if let Some(past) = self.past.filter(|_| self.asked_before.is_empty()) {
            options.extend([word("--past"), past.to_string()]);
        }
        if self.allow_idle_states {
            options.push(word("--allow-idle-states"));
        }
        if let Some(seconds) = self.hwlat {
            options.extend([word("--hwlat"), seconds.to_string()]);
        }
        if self.build_modules {
            options.push(word("--build-modules"));
        }
        if let Some(seconds) = self.store_every {
            options.extend([word("--store-every"), seconds.to_string()]);
        }
        if let Some(tracing) = self.tracing {
            options.extend(TraceArgs::words(tracing));
        }
        self.put_guest(&mut options, suite);
        options.extend(self.labgrid.words()?);
        if let Some(peer) = &self.peer {
            options.extend([word("--peer"), peer.to_string()]);
        }
        if self.patience != PATIENCE {
            options.extend([word("--patience"), self.patience.to_string()]);
        }
        Ok(Request {
            what: what.words()?,
            subject,
            all_subjects: is_all.then_some(suite.subjects.len() as u32),
            options,
        })
    }

    /// Sets the options of the guest where it is not the usual one of the suite.
    fn put_guest(&self, options: &mut Vec<String>, suite: &Suite) {
        let guest = self.guest.as_ref();
        let memory = guest.map(|guest| guest.memory_mib);
        let memory = self
            .memory
            .or(memory.filter(|mib| *mib != suite.memory_mib));
        if let Some(mib) = memory {
            put(options, "--memory", mib);
        }
        let turn = guest.and_then(|guest| guest.turn_us);
        let is_usual = |turn: &u32| u64::from(*turn) * 1_000 == TURN.0.unsigned_abs();
        if let Some(turn) = self.turn_us.or(turn.filter(|turn| !is_usual(turn))) {
            put(options, "--turn-us", turn);
        }
    }
}

/// Sets an option, and removes its earlier value.
fn put(options: &mut Vec<String>, option: &str, value: u32) {
    remove(options, option);
    options.extend([option.to_owned(), value.to_string()]);
}

/// Removes an option with its value.
pub(super) fn remove(options: &mut Vec<String>, option: &str) {
    if let Some(at) = options.iter().position(|word| word == option) {
        options.drain(at..(at + 2).min(options.len()));
    }
}

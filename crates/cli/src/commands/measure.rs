// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is measured where and how often: the options that `run` and `judge` share.

mod labgrid_args;
pub mod number_args;
mod until_decided;
pub mod what;

use std::io::IsTerminal as _;
use std::num::{NonZeroU32, NonZeroUsize};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;
use std::{io, iter};

use anyhow::{Context as _, Result};
use clap::{Args, value_parser};
use punctual_bench::labgrid::{Held, Place};
use punctual_bench::ssh::{Board, Destination, Route, SshSystem};
use punctual_bench::virtual_bench::{Start, TURN};
use punctual_kernels::paths;
use punctual_model::capture::Tracing;
use punctual_model::plan::{SEED_MAX, Step};
use punctual_model::run::Request;
use punctual_model::suite::{SubjectSpec, Suite};
use punctual_model::{Nanos, Plan, Run};
use punctual_runner::systems::{self, Builder, Equipment, PreparedSystem};
use punctual_runner::{Choice, Companion, Job, Observer, Results, Runner, choose, loads, suites};
use punctual_store::Store;

use super::trace_args::{TraceArgs, traced_name};
use super::{StoreArgs, catalog, virtual_bench};
use crate::live::Live;
use crate::output::say;
use crate::progress::Progress;
use crate::scale_args::ScaleArgs;
use crate::{UsageError, interrupt};
use labgrid_args::LabgridArgs;
use number_args::{Seeds, parse_jobs, parse_ns_per_insn, parse_patience, parse_seed, parse_seeds};
pub use until_decided::unanswered;
use what::WhatArgs;

/// Virtual runs longer than this, by what their samples take, are shared by several: under a
/// full load a virtual minute takes about ten on the wall.
const LONGEST_VIRTUAL_RUN: Nanos = Nanos::from_millis(60_000);
/// In real time what was measured so far is stored time and again.
const LONGEST_REAL_RUN: Nanos = Nanos::from_millis(24 * 3_600_000);

/// How often what was measured so far is stored, in seconds.
const STORE_EVERY: Option<NonZeroU32> = NonZeroU32::new(60);

/// The CPU time, in seconds, for which a guest may be silent.
const PATIENCE: u64 = 120;

/// Where, on which subjects, with which seeds, and how.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct MeasureArgs {
    /// Where: `virtual`, in virtual time; `host`, this machine as it is, in real time;
    /// `ssh:[USER@]HOST[:DIRECTORY]`, a board that `ssh` reaches, as it is;
    /// `labgrid:PLACE[:DIRECTORY]`, a board of labgrid, acquired for that
    #[arg(long, value_name = "BENCH", default_value = "virtual", value_parser = Bench::from_str)]
    bench: Bench,
    #[command(flatten)]
    labgrid: LabgridArgs,
    /// Judge this kernel instead of the suite's subjects (may be repeated)
    #[arg(long, value_name = "ID", conflicts_with = "subject")]
    kernel: Vec<String>,
    /// Take this version of the kernels' packages (6.12.117), not the newest: like ID@VERSION
    #[arg(long, value_name = "VERSION")]
    kernel_version: Option<String>,
    /// Add these boot arguments; repeated, each makes a subject of its own
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    boot: Vec<String>,
    /// Judge only this one of the suite's subjects (may be repeated)
    #[arg(long, value_name = "NAME")]
    subject: Vec<String>,
    /// Changes the phase of loads and probes: another seed, another interleaving [default: 1]
    #[arg(long, conflicts_with = "seeds", value_parser = parse_seed)]
    #[arg(allow_hyphen_values = true)]
    seed: Option<u64>,
    /// One run for each seed: `1..5` (the 5 included), or `1,2,7` [default: as many as the
    /// suite says, on the virtual bench]
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds)]
    seeds: Option<Seeds>,
    /// Give each guest the past of this seed, whatever its own: what still differs between
    /// seeds is due to the phases of loads and probes alone
    #[arg(long, value_name = "SEED", value_parser = parse_seed)]
    past: Option<u64>,
    #[command(flatten)]
    scale: ScaleArgs,
    /// Take what the store holds of this very measurement, and measure only the rest
    #[arg(long)]
    pub resume: bool,
    /// Nanoseconds of virtual time per instruction: 1, 2, 4, … 1024 [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_ns_per_insn)]
    ns_per_insn: Option<u32>,
    /// The guest's memory in MiB, instead of the suite's
    #[arg(long, value_name = "MIB", value_parser = value_parser!(u32).range(16..=1 << 20))]
    memory: Option<u32>,
    /// How long one of several CPUs of a guest runs while the others wait for their turn, at
    /// most, in microseconds of virtual time [default: 10]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    turn_us: Option<u32>,
    /// Boot afresh instead of resuming a booted guest from the cache
    #[arg(long)]
    cold: bool,
    /// On the host: let CPUs enter idle states, which are kept out otherwise
    #[arg(long)]
    allow_idle_states: bool,
    /// On a real machine, as root: look for gaps that are the hardware's, before the first step
    /// and after the last, for so many seconds; half of them with interrupts off (the kernel's
    /// tracer hwlat)
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u32).range(1..=60))]
    hwlat: Option<u32>,
    /// On a board: build there, against its kernel's headers, the kernel modules that the suite
    /// needs, and load them while it measures. It takes root, make and a compiler there
    #[arg(long)]
    build_modules: bool,
    /// On a real machine: store what was measured so far each time so many seconds are over;
    /// what a loss of power costs at most [default: 60]
    #[arg(long, value_name = "SECONDS")]
    store_every: Option<NonZeroU32>,
    /// How many subjects run side by side [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZeroUsize>,
    /// End a guest that is silent for so many seconds of CPU time, besides what its step takes
    #[arg(long, value_name = "SECONDS", default_value_t = PATIENCE, value_parser = parse_patience)]
    patience: u64,
    /// Watch on this terminal what is measured: the figures of each CPU, histogram, the last
    /// seconds. Without a terminal, as ever
    #[arg(long, conflicts_with = "quiet")]
    live: bool,
    /// Whether the kernel's tracer runs beside the probes; only `run` and `tracers` ask for it.
    #[arg(skip)]
    pub tracing: Option<Tracing>,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Subjects that are ready to be measured.
pub struct Prepared<'a> {
    args: &'a MeasureArgs,
    what: &'a WhatArgs,
    suite: &'a Suite,
    subjects: Vec<SubjectSpec>,
    systems: Vec<PreparedSystem>,
    store: Store,
    cancel: &'static AtomicBool,
    side_by_side: usize,
}

impl Prepared<'_> {
    /// How many seeds keep all that runs side by side busy.
    pub fn round(&self) -> usize {
        self.side_by_side.div_ceil(self.subjects.len().max(1))
    }

    /// The subjects' names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.subjects.iter().map(|subject| subject.name.as_str())
    }

    /// Measures each subject by each plan.
    pub fn measure(&self, plans: &Plans) -> Result<Results> {
        self.measure_of(plans, &|_| true)
    }

    /// Measures each subject of which the name is wanted by each plan.
    pub fn measure_of(&self, plans: &Plans, is_wanted: &dyn Fn(&str) -> bool) -> Result<Results> {
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
            resume: self.args.resume,
        };
        let jobs = self.jobs(plans, is_wanted)?;
        let results = runner.carry_out(&jobs, self.side_by_side);
        progress.clear();
        drop(live);
        Ok(results?)
    }

    /// The runs that are to be made, of which nothing has been measured yet.
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
    /// These kernels with each of these boot arguments, on the virtual bench; what the store
    /// holds of it is taken from there.
    pub fn of_subjects(
        kernel: Vec<String>,
        boot: Vec<String>,
        quiet: bool,
        store: &StoreArgs,
    ) -> Self {
        Self {
            bench: Bench::Virtual,
            labgrid: LabgridArgs::default(),
            kernel,
            kernel_version: None,
            boot,
            subject: Vec::new(),
            seed: None,
            seeds: None,
            past: None,
            scale: ScaleArgs::default(),
            resume: true,
            ns_per_insn: None,
            memory: None,
            turn_us: None,
            cold: false,
            allow_idle_states: false,
            hwlat: None,
            build_modules: false,
            store_every: None,
            jobs: None,
            patience: PATIENCE,
            live: false,
            tracing: None,
            quiet,
            store: store.clone(),
        }
    }

    /// Looks everything up that is needed, and says what is wrong with it.
    pub fn prepare<'a>(&'a self, what: &'a WhatArgs, suite: &'a Suite) -> Result<Prepared<'a>> {
        let store = self.store.open_or_make()?;
        let (mut subjects, systems) = match &self.bench {
            Bench::Virtual => {
                let subjects = self.subjects(suite)?;
                let systems = self.guests(suite, &subjects)?;
                (subjects, systems)
            }
            Bench::Host => (vec![this_machine()?], vec![self.host()?]),
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

    /// Whether there is somebody to watch, and a terminal to watch on.
    fn live(&self) -> bool {
        self.live && io::stderr().is_terminal()
    }

    /// Refuses options that name kernels, for a command that names them itself.
    pub fn check_unnamed(&self, command: &str) -> Result<()> {
        let is_named = !self.kernel.is_empty() || !self.subject.is_empty();
        if is_named || self.kernel_version.is_some() || self.bench != Bench::Virtual {
            let wrong = format!(
                "--kernel, --kernel-version, --subject and --bench: {command} names the kernels \
                 itself"
            );
            return Err(UsageError(wrong).into());
        }
        Ok(())
    }

    /// Judges these kernels, and takes what the store holds of them.
    pub fn take(&mut self, kernels: Vec<String>) {
        self.kernel = kernels;
        self.resume = true;
    }

    /// The one kernel that was named, with the boot arguments that are given to it.
    pub fn take_base(&mut self) -> Result<(String, String)> {
        let is_other = !self.subject.is_empty() || self.bench != Bench::Virtual;
        let (kernel, boot) = match (self.kernel.as_slice(), self.boot.as_slice()) {
            ([kernel], []) if !is_other => (kernel.clone(), String::new()),
            ([kernel], [boot]) if !is_other => (kernel.clone(), boot.clone()),
            _ => {
                let wrong = "expected one --kernel, and one --boot at most, on the virtual bench: \
                             they are the base that options are held against";
                return Err(UsageError(wrong.into()).into());
            }
        };
        let version = self.kernel_version.take();
        let version = version.map_or(String::new(), |version| format!("@{version}"));
        Ok((kernel + &version, boot))
    }

    /// Gives these boot arguments to the kernels, in place of others.
    pub fn take_boot(&mut self, boot: &str) {
        self.boot = vec![boot.to_owned()];
        self.boot.retain(|boot| !boot.is_empty());
    }

    /// What is wrong with the kernels and boot arguments that are named, before anything is
    /// fetched.
    pub fn check_subjects(&self, suite: &Suite) -> Result<()> {
        self.subjects(suite).map(|_| ())
    }

    /// The place of a kernel among those that were named.
    pub fn place_of(&self, kernel: &str) -> Option<usize> {
        self.kernel.iter().position(|own| own == kernel)
    }

    fn subjects(&self, suite: &Suite) -> Result<Vec<SubjectSpec>> {
        let choice = Choice {
            kernels: &self.kernel,
            boots: &self.boot,
            names: &self.subject,
        };
        let mut subjects = choose(suite, &choice)?;
        if let Some(version) = &self.kernel_version {
            for subject in &mut subjects {
                subject.kernel = format!("{}@{version}", subject.kernel);
            }
        }
        Ok(subjects)
    }

    /// What asks for the subject of this number again, in the order of [`choose`].
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
        let mut options = self.scale.words();
        if let Some(version) = &self.kernel_version {
            options.extend([word("--kernel-version"), version.clone()]);
        }
        if let Some(past) = self.past {
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
        if let Some(mib) = self.memory {
            options.extend([word("--memory"), mib.to_string()]);
        }
        if let Some(turn) = self.turn_us {
            options.extend([word("--turn-us"), turn.to_string()]);
        }
        options.extend(self.labgrid.words()?);
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

    /// What is measured, on the bench that is chosen.
    pub fn suite(&self, what: &WhatArgs) -> Result<Suite> {
        match self.bench {
            Bench::Virtual => what.suite_on_guest(),
            Bench::Host | Bench::Ssh(_) | Bench::Labgrid(_) => what.suite_on_host(),
        }
    }

    /// What can be known to be wrong before anything is looked up or measured.
    pub fn check(&self) -> Result<()> {
        if self.build_modules && !matches!(self.bench, Bench::Ssh(_) | Bench::Labgrid(_)) {
            let none = "--build-modules is for boards: guests have theirs anyway, and this \
                        machine gets them by the package punctual-dkms";
            return Err(UsageError(none.into()).into());
        }
        if let (Some(option), false) = (self.labgrid.given(), self.is_at_place()) {
            let wrong = format!("{option} is for places of labgrid: --bench labgrid:PLACE");
            return Err(UsageError(wrong).into());
        }
        match self.bench {
            Bench::Virtual if self.allow_idle_states => {
                let none =
                    "--allow-idle-states is for real machines: a virtual CPU has no deep ones";
                return Err(UsageError(none.into()).into());
            }
            Bench::Virtual if self.hwlat.is_some() => {
                let none = "--hwlat is for real machines: a virtual one has no firmware";
                return Err(UsageError(none.into()).into());
            }
            Bench::Virtual if self.store_every.is_some() => {
                let none = "--store-every is for real machines: a virtual run can be repeated";
                return Err(UsageError(none.into()).into());
            }
            Bench::Virtual => {}
            _ if self.past.is_some() => {
                let none = "--past is for guests: a real machine has a past of its own";
                return Err(UsageError(none.into()).into());
            }
            _ => self.check_host()?,
        }
        Ok(())
    }

    fn is_at_place(&self) -> bool {
        matches!(self.bench, Bench::Labgrid(_))
    }

    /// A real machine is one subject, as it is.
    fn check_host(&self) -> Result<(), UsageError> {
        for (given, option) in [
            (!self.kernel.is_empty(), "--kernel"),
            (self.kernel_version.is_some(), "--kernel-version"),
            (!self.boot.is_empty(), "--boot"),
            (!self.subject.is_empty(), "--subject"),
            (self.ns_per_insn.is_some(), "--ns-per-insn"),
            (self.memory.is_some(), "--memory"),
            (self.turn_us.is_some(), "--turn-us"),
            (self.cold, "--cold"),
            (self.jobs.is_some(), "--jobs"),
        ] {
            if given {
                return Err(UsageError(format!(
                    "{option} is for the virtual bench; a real machine is taken as it is"
                )));
            }
        }
        Ok(())
    }

    fn silence(&self) -> Duration {
        Duration::from_secs(self.patience)
    }

    fn host(&self) -> Result<PreparedSystem> {
        Ok(systems::host(paths::cache_dir()?, self.silence()))
    }

    /// A place of labgrid: it is held as long as there is its system.
    fn place(&self, place: &Place, suite: &Suite) -> Result<(SubjectSpec, PreparedSystem)> {
        // From here on Ctrl-C gives the place back.
        let cancel = interrupt::flag()?;
        let tell = labgrid_args::tell(self.quiet);
        let mut held = Held::take(place, &paths::cache_dir()?, self.resume, tell)?;
        held.prepare(&self.labgrid.preparation(), cancel)?;
        let route = Route::Labgrid(held.client().clone());
        self.board(&route, Some(held), suite)
    }

    /// A board: what answers there is the subject.
    fn board(
        &self,
        route: &Route,
        place: Option<Held>,
        suite: &Suite,
    ) -> Result<(SubjectSpec, PreparedSystem)> {
        let boots = place.is_some() && self.labgrid.preparation().boots();
        let patience = if boots {
            self.silence()
        } else {
            Duration::ZERO
        };
        let find = |found| Companion::Target(found).find();
        let cancel = interrupt::flag()?;
        let mut board = Board::reach(route, find, patience, cancel)?;
        let subject = SubjectSpec {
            name: route.name().to_owned(),
            kernel: board.hello.release.clone(),
            boot: board.hello.cmdline.clone(),
        };
        let absent = if self.build_modules {
            let say = &mut |message: &str| self.say(message);
            systems::build_modules(&mut board, suite, cancel, say)?
        } else {
            systems::not_asked_for(suite)
        };
        let system = SshSystem {
            board,
            place: place.map(Arc::new),
            cache: paths::cache_dir()?,
            patience: self.silence(),
            resume: self.resume,
        };
        Ok((subject, systems::board(system, absent)))
    }

    fn say(&self, message: &str) {
        if !self.quiet {
            say!("{message}");
        }
    }

    /// The subjects as guests, ready to run.
    fn guests(&self, suite: &Suite, subjects: &[SubjectSpec]) -> Result<Vec<PreparedSystem>> {
        let cache = paths::cache_dir()?;
        let mut bench = virtual_bench(&cache, suite.cpus.get())?;
        bench.silence = self.silence();
        let say = &mut |message: &str| self.say(message);
        let mut equipment = Equipment::of(suite, &loads::of(suite)?, say)?;
        equipment.memory_mib = self.memory.unwrap_or(suite.memory_mib);
        let turn = self.turn_us.map(|micros| Nanos::from_micros(micros.into()));
        equipment.turn = turn.unwrap_or(TURN);
        equipment.ns_per_insn = self.ns_per_insn.unwrap_or(1);
        if self.cold {
            equipment.start = Start::Cold;
        }
        let builder = Builder {
            bench: &bench,
            catalog: &catalog()?,
            cache: &cache,
            equipment: &equipment,
        };
        Ok(builder.build(subjects, say)?)
    }

    /// A plan for each run, of `seeds` where no others are asked for. What is wrong with the
    /// suite is said here, before any boot.
    pub fn plans(&self, suite: &Suite, seeds: Option<usize>) -> Result<Plans> {
        let loads = loads::of(suite)?;
        // All steps at once, before they are divided: an error names the step of the suite.
        suites::plan(suite, &suite.steps, &loads, self.first_seed())?;
        let shards = self.scale.scale().shards(&suite.steps, self.longest())?;
        let pooled = shards.len() > 1;
        let seeds = match &self.seeds {
            Some(_) if pooled => return Err(too_many_seeds(shards.len()).into()),
            Some(seeds) => seeds.0.clone(),
            None => {
                let count = match seeds {
                    _ if pooled => shards.len(),
                    Some(count) => count,
                    None if self.seed.is_some() || self.bench != Bench::Virtual => 1,
                    None => suite.seeds.get() as usize,
                };
                (self.first_seed()..=SEED_MAX).take(count).collect()
            }
        };
        if seeds.len() < shards.len() {
            let runs = shards.len();
            return Err(UsageError(format!(
                "so many samples take {runs} runs, and the last would have a seed above \
                 {SEED_MAX}: choose a lower --seed"
            ))
            .into());
        }
        let plan = |(seed, steps): (u64, &Vec<Step>)| {
            let mut plan = suites::plan(suite, steps, &loads, seed)?;
            self.complete(&mut plan);
            Ok(plan)
        };
        let plans: Result<_> = seeds
            .into_iter()
            .zip(shards.iter().cycle())
            .map(plan)
            .collect();
        Ok(Plans {
            plans: plans?,
            pooled,
        })
    }

    /// What a suite does not say.
    fn complete(&self, plan: &mut Plan) {
        plan.past = self.past;
        plan.allow_idle_states = self.allow_idle_states;
        plan.hwlat_s = self.hwlat.and_then(NonZeroU32::new);
        plan.tracing = self.tracing;
        if self.bench != Bench::Virtual {
            plan.tell_every_s = self.store_every.or(STORE_EVERY);
        }
    }

    /// A plan for each of `count` seeds, those of `before` runs left out.
    pub fn plans_after(&self, suite: &Suite, before: usize, count: usize) -> Result<Plans> {
        let seeds = (self.first_seed()..=SEED_MAX).skip(before).take(count);
        self.plans_of(suite, &seeds.collect::<Vec<_>>())
    }

    /// A plan for each of these seeds.
    pub fn plans_of(&self, suite: &Suite, seeds: &[u64]) -> Result<Plans> {
        let loads = loads::of(suite)?;
        let steps = self.scale.scale().shards(&suite.steps, self.longest())?;
        let [steps] = steps.as_slice() else {
            return Err(too_many_seeds(steps.len()).into());
        };
        let plan = |seed: &u64| {
            let mut plan = suites::plan(suite, steps, &loads, *seed)?;
            self.complete(&mut plan);
            Ok(plan)
        };
        let plans: Result<_> = seeds.iter().map(plan).collect();
        Ok(Plans {
            plans: plans?,
            pooled: false,
        })
    }

    /// The seeds that are named, if any are.
    pub fn seeds_asked_for(&self) -> Option<Vec<u64>> {
        let one = || self.seed.map(|seed| vec![seed]);
        self.seeds
            .as_ref()
            .map(|seeds| seeds.0.clone())
            .or_else(one)
    }

    /// Whether all seeds are named.
    pub fn has_seeds(&self) -> bool {
        self.seeds.is_some()
    }

    fn first_seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    fn longest(&self) -> Nanos {
        match self.bench {
            Bench::Virtual => LONGEST_VIRTUAL_RUN,
            Bench::Host | Bench::Ssh(_) | Bench::Labgrid(_) => LONGEST_REAL_RUN,
        }
    }

    fn side_by_side(&self) -> Result<usize> {
        // In real time they would be each other's load.
        if self.bench != Bench::Virtual {
            return Ok(1);
        }
        side_by_side(self.jobs)
    }
}

/// How many guests run at a time: as many as asked for, else one on each CPU.
pub fn side_by_side(jobs: Option<NonZeroUsize>) -> Result<usize> {
    let cpus = thread::available_parallelism().context("cannot count the CPUs")?;
    Ok(jobs.unwrap_or(cpus).get())
}

fn too_many_seeds(runs: usize) -> UsageError {
    UsageError(format!(
        "so many samples take {runs} runs, each with a seed of its own: give the first one \
         by --seed instead of --seeds"
    ))
}

/// The plans of all runs on one subject.
pub struct Plans {
    plans: Vec<Plan>,
    /// Whether the runs are shards of one measurement.
    pooled: bool,
}

impl Plans {
    /// The first of them, in TOML.
    pub fn first_toml(&self) -> String {
        self.plans.first().map_or_else(String::new, Plan::to_toml)
    }

    /// Whether the runs are shards of one measurement: their number is given by its size.
    pub fn are_shards(&self) -> bool {
        self.pooled
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Bench {
    Virtual,
    Host,
    Ssh(Destination),
    Labgrid(Place),
}

impl FromStr for Bench {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "virtual" => Ok(Self::Virtual),
            None if text == "host" => Ok(Self::Host),
            Some(("ssh", destination)) => destination.parse().map(Self::Ssh),
            Some(("labgrid", place)) => place.parse().map(Self::Labgrid),
            _ => Err("expected virtual, host, ssh:[USER@]HOST or labgrid:PLACE".into()),
        }
    }
}

/// Whether an error is of one kernel, so that others may be judged nevertheless.
pub fn is_of_kernel(error: &anyhow::Error) -> bool {
    use punctual_runner::Error;
    let is_own = |error: &Error| matches!(error, Error::Kernel(_) | Error::Module(_));
    error
        .chain()
        .any(|cause| cause.downcast_ref().is_some_and(is_own))
}

/// The kernel that runs here.
fn this_machine() -> Result<SubjectSpec> {
    let read = |path| std::fs::read_to_string(path).with_context(|| String::from(path));
    Ok(SubjectSpec {
        name: "host".to_owned(),
        kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        boot: read("/proc/cmdline")?.trim().to_owned(),
    })
}

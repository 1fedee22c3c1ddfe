// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual run`: a suite on its subjects.

mod number_args;
mod what;

use std::iter;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum, value_parser};
use punctual_bench::virtual_bench::{Start, VirtualBench};
use punctual_kernels::paths;
use punctual_model::plan::{SEED_MAX, Step};
use punctual_model::run::{Request, State};
use punctual_model::suite::{SubjectSpec, Suite};
use punctual_model::{Nanos, Plan};
use punctual_runner::sites::{self, Builder, Equipment, PreparedSite};
use punctual_runner::{Choice, Job, Results, Runner, choose, loads, suites};

use super::{StoreArgs, catalog};
use crate::output::say;
use crate::progress::Progress;
use crate::scale_args::ScaleArgs;
use crate::{ExitStatus, UsageError, interrupt, output};
use number_args::{Seeds, parse_jobs, parse_ns_per_insn, parse_patience, parse_seed, parse_seeds};
use what::WhatArgs;

/// Virtual runs longer than this, by what their samples take, are shared by several: under a
/// full load a virtual minute takes about ten on the wall.
const LONGEST_VIRTUAL_RUN: Nanos = Nanos::from_millis(60_000);
/// In real time loads that do something every few minutes are to have their time.
const LONGEST_HOST_RUN: Nanos = Nanos::from_millis(3_600_000);

/// The CPU time, in seconds, for which a guest may be silent.
const PATIENCE: u64 = 120;

const EXAMPLES: &str = "\
Examples:
  punctual run demo
  punctual run demo --kernel debian-6.12 --boot preempt=none --boot preempt=full
  punctual run demo --subject rt --seeds 1..5 --report rt.html
  punctual run osadl --scale 0.01
  punctual run celf --scale 1 --resume
  punctual run ./mine.toml --kernel mine --json > mine.json
  punctual run --probe timer --load stress -p samples=10000 --subject rt
  punctual run demo --load ./mine.toml
  sudo punctual run demo --bench host --cpus 2,3

A suite is a TOML file: copy one of `punctual list suites`. A load is one, too:
  summary = \"make a kernel\"
  [[worker]]
  run = [\"make\", \"-C\", \"/usr/src/linux\"]
  unit = \"lines\"
  count = \"lines\"
A step names it by `load = \"./mine.toml\"`, from the suite's directory, or a suite
has it as [load.mine]. Files in ~/.config/punctual/loads are known by name.

Exit status: 0 all was measured; 1 a run has failed; 2 the command line is
wrong; 3 something was unsupported, or interrupted by Ctrl-C.";

/// Run a suite on its subjects, or on the kernels named
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct Run {
    #[command(flatten)]
    what: WhatArgs,
    /// Where: in virtual time, or on this machine as it is, in real time
    #[arg(long, value_enum, default_value_t = Bench::Virtual)]
    bench: Bench,
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
    #[command(flatten)]
    scale: ScaleArgs,
    /// Take what the store holds of this very measurement, and measure only the rest
    #[arg(long)]
    resume: bool,
    /// Nanoseconds of virtual time per instruction: 1, 2, 4, … 1024 [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_ns_per_insn)]
    ns_per_insn: Option<u32>,
    /// The guest's memory in MiB, instead of the suite's
    #[arg(long, value_name = "MIB", value_parser = value_parser!(u32).range(16..=1 << 20))]
    memory: Option<u32>,
    /// Boot afresh instead of resuming a booted guest from the cache
    #[arg(long)]
    cold: bool,
    /// On the host: let CPUs enter idle states, which are kept out otherwise
    #[arg(long)]
    allow_idle_states: bool,
    /// How many subjects run side by side [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZeroUsize>,
    /// End a guest that is silent for so many seconds of CPU time, besides what its step takes
    #[arg(long, value_name = "SECONDS", default_value_t = PATIENCE, value_parser = parse_patience)]
    patience: u64,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// With --json: all samples too
    #[arg(long, requires = "json")]
    raw: bool,
    /// Write a page about the results (HTML, one file) to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write all data, and scripts for gnuplot, into DIR
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Run {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        self.check()?;
        let suite = self.what.suite()?;
        let subjects = self.subjects(&suite)?;
        let Plans { plans, pooled } = self.plans(&suite)?;
        let store = self.store.open_or_make()?;
        let side_by_side = self.side_by_side()?;
        let all = plans
            .iter()
            .flat_map(|plan| iter::repeat_n(plan, subjects.len()));
        let is_virtual = self.bench == Bench::Virtual;
        let progress = Progress::new(all, is_virtual, side_by_side, self.quiet);
        let sites = self.sites(&suite, &subjects, &progress)?;
        let mut jobs = Vec::new();
        for plan in &plans {
            for (number, (subject, site)) in subjects.iter().zip(&sites).enumerate() {
                let mut plan = plan.clone();
                plan.absent.clone_from(&site.absent);
                let request = self.request(&suite, number)?;
                jobs.push(Job {
                    request,
                    group: if pooled { number } else { jobs.len() },
                    suite: &suite.name,
                    subject,
                    site: site.site.as_ref(),
                    plan,
                });
            }
        }
        let runner = Runner {
            store: &store,
            observer: &progress,
            cancel: interrupt::flag()?,
            resume: self.resume,
        };
        let results = runner.carry_out(&jobs, side_by_side)?;
        progress.clear();
        self.show(results)
    }

    fn subjects(&self, suite: &Suite) -> Result<Vec<SubjectSpec>> {
        if self.bench == Bench::Host {
            return Ok(vec![this_machine()?]);
        }
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
    fn request(&self, suite: &Suite, number: usize) -> Result<Request> {
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
        if self.allow_idle_states {
            options.push(word("--allow-idle-states"));
        }
        if let Some(mib) = self.memory {
            options.extend([word("--memory"), mib.to_string()]);
        }
        if self.patience != PATIENCE {
            options.extend([word("--patience"), self.patience.to_string()]);
        }
        Ok(Request {
            what: self.what.words()?,
            subject,
            all_subjects: is_all.then_some(suite.subjects.len() as u32),
            options,
        })
    }

    /// What can be known to be wrong before anything is looked up or measured.
    fn check(&self) -> Result<()> {
        match self.bench {
            Bench::Host => self.check_host()?,
            Bench::Virtual if self.what.names_cpus() => {
                let one = "--cpus is for --bench host: a virtual subject has one CPU";
                return Err(UsageError(one.into()).into());
            }
            Bench::Virtual if self.allow_idle_states => {
                let none =
                    "--allow-idle-states is for --bench host: a virtual CPU has no deep ones";
                return Err(UsageError(none.into()).into());
            }
            Bench::Virtual => {}
        }
        output::check_file(self.report.as_deref())?;
        output::check_directory(self.data.as_deref())
    }

    /// On the host there is one subject, as it is.
    fn check_host(&self) -> Result<(), UsageError> {
        for (given, option) in [
            (!self.kernel.is_empty(), "--kernel"),
            (self.kernel_version.is_some(), "--kernel-version"),
            (!self.boot.is_empty(), "--boot"),
            (!self.subject.is_empty(), "--subject"),
            (self.ns_per_insn.is_some(), "--ns-per-insn"),
            (self.memory.is_some(), "--memory"),
            (self.cold, "--cold"),
            (self.jobs.is_some(), "--jobs"),
        ] {
            if given {
                return Err(UsageError(format!(
                    "{option} is for the virtual bench; --bench host takes this machine as it is"
                )));
            }
        }
        Ok(())
    }

    /// The subjects, ready to run.
    fn sites(
        &self,
        suite: &Suite,
        subjects: &[SubjectSpec],
        progress: &Progress,
    ) -> Result<Vec<PreparedSite>> {
        let cache = paths::cache_dir()?;
        let silence = Duration::from_secs(self.patience);
        if self.bench == Bench::Host {
            return Ok(vec![sites::host(cache, silence)]);
        }
        let mut bench = VirtualBench::open(&cache)?;
        bench.silence = silence;
        let say = &mut |message: &str| progress.say(message);
        let mut equipment = Equipment::of(suite, &loads::of(suite)?, say)?;
        equipment.memory_mib = self.memory.unwrap_or(suite.memory_mib);
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

    /// A plan for each run. What is wrong with the suite is said here, before any boot.
    fn plans(&self, suite: &Suite) -> Result<Plans> {
        let loads = loads::of(suite)?;
        // All steps at once, before they are divided: an error names the step of the suite.
        let first = self.seed.unwrap_or(1);
        suites::plan(suite, &suite.steps, &loads, first)?;
        let shards = self.scale.scale().shards(&suite.steps, self.longest())?;
        let pooled = shards.len() > 1;
        let seeds = match &self.seeds {
            Some(_) if pooled => return Err(too_many_seeds(shards.len()).into()),
            Some(seeds) => seeds.0.clone(),
            None if pooled || self.seed.is_some() || self.bench == Bench::Host => {
                (first..=SEED_MAX).take(shards.len()).collect()
            }
            None => (1..=suite.seeds.get().into()).collect(),
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
            plan.allow_idle_states = self.allow_idle_states;
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

    fn longest(&self) -> Nanos {
        match self.bench {
            Bench::Virtual => LONGEST_VIRTUAL_RUN,
            Bench::Host => LONGEST_HOST_RUN,
        }
    }

    fn side_by_side(&self) -> Result<usize> {
        // In real time they would be each other's load.
        if self.bench == Bench::Host {
            return Ok(1);
        }
        let cpus = thread::available_parallelism().context("cannot count the CPUs")?;
        Ok(self.jobs.unwrap_or(cpus).get())
    }

    fn show(&self, results: Results) -> Result<ExitStatus> {
        let runs = &results.runs;
        if self.json {
            output::print_json(&punctual_report::runs_json(runs, self.raw))?;
        } else if !runs.is_empty() {
            output::print_table(runs)?;
        }
        let kept = || {
            let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
            let ids = ids.join(" ");
            format!(
                "the runs are kept: `punctual show {ids} --report FILE` or `--data DIR` shows them"
            )
        };
        if let Some(path) = &self.report {
            output::write_report(runs, path).with_context(kept)?;
        }
        if let Some(directory) = &self.data {
            output::write_data(runs, directory).with_context(kept)?;
        }
        self.tell_of_interruption(&results);
        if let Some(error) = results.unstored {
            return Err(error).context("what is shown could not be stored");
        }
        let failed = runs.iter().any(|run| run.state == State::Failed);
        let whole = results.left == 0 && runs.iter().all(punctual_model::Run::is_whole);
        Ok(match (failed, whole) {
            (true, _) => ExitStatus::Error,
            (false, false) => ExitStatus::Incomplete,
            (false, true) => ExitStatus::Done,
        })
    }

    fn tell_of_interruption(&self, results: &Results) {
        let runs = &results.runs;
        let is_interrupted = runs.iter().any(|run| run.state == State::Interrupted);
        if !is_interrupted && results.left == 0 {
            return;
        }
        let left = match results.left {
            0 => String::new(),
            1 => "; 1 run was not begun".to_owned(),
            left => format!("; {left} runs were not begun"),
        };
        let again = if self.resume { "" } else { " and --resume" };
        say!("punctual: interrupted{left}. The same command{again} measures only what is missing");
    }
}

fn too_many_seeds(runs: usize) -> UsageError {
    UsageError(format!(
        "so many samples take {runs} runs, each with a seed of its own: give the first one \
         by --seed instead of --seeds"
    ))
}

/// The plans of all runs on one subject.
struct Plans {
    plans: Vec<Plan>,
    /// Whether the runs are shards of one measurement.
    pooled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Bench {
    Virtual,
    Host,
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

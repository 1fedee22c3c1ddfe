//! `punctual run`: a suite on its subjects.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum, value_parser};
use punctual_agent::probes;
use punctual_bench::virtual_bench::{NS_PER_INSN_MAX, Start, VirtualBench};
use punctual_kernels::paths;
use punctual_model::plan::{SEED_MAX, Step};
use punctual_model::run::State;
use punctual_model::suite::{SubjectSpec, Suite};
use punctual_model::{Nanos, Plan};

use super::{StoreArgs, catalog};
use crate::lab::{Job, Lab, Results};
use crate::progress::Progress;
use crate::scale::ScaleArgs;
use crate::sites::{self, Builder, Equipment, Place};
use crate::subjects::{Choice, choose};
use crate::{ExitStatus, UsageError, interrupt, library, output};

/// Virtual runs longer than this, by what their samples take, are shared by several: under a
/// full load a virtual minute takes about ten on the wall.
const LONGEST_VIRTUAL_RUN: Nanos = Nanos::from_millis(60_000);
/// In real time loads that do something every few minutes are to have their time.
const LONGEST_HOST_RUN: Nanos = Nanos::from_millis(3_600_000);

const EXAMPLES: &str = "\
Examples:
  punctual run demo
  punctual run demo --kernel debian-6.12 --boot preempt=none --boot preempt=full
  punctual run demo --subject rt --seeds 1..5 --report rt.html
  punctual run osadl --scale 0.01
  punctual run celf --scale 1 --resume
  punctual run ./mine.toml --kernel mine --json > mine.json
  sudo punctual run demo --bench host";

/// Run a suite on its subjects, or on the kernels named
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct Run {
    /// The suite: a name that `punctual list suites` shows, or a TOML file
    suite: String,
    /// Where: in virtual time, or on this machine as it is, in real time
    #[arg(long, value_enum, default_value_t = Bench::Virtual)]
    bench: Bench,
    /// Judge this kernel instead of the suite's subjects (may be repeated)
    #[arg(long, value_name = "ID", conflicts_with = "subject")]
    kernel: Vec<String>,
    /// Add these boot arguments; repeated, each makes a subject of its own
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    boot: Vec<String>,
    /// Judge only this one of the suite's subjects (may be repeated)
    #[arg(long, value_name = "NAME")]
    subject: Vec<String>,
    /// Changes the phase of loads and probes: another seed, another interleaving
    #[arg(long, default_value_t = 1, conflicts_with = "seeds",
        value_parser = clap::value_parser!(u64).range(..=SEED_MAX))]
    seed: u64,
    /// One run for each seed: `1..5` (the 5 included), or `1,2,7`
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
    /// How many subjects run side by side [default: the number of CPUs]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// End a guest that is silent for so many seconds of CPU time, besides what its step takes
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
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
        let suite = library::suite(&self.suite)?;
        let subjects = self.subjects(&suite)?;
        let Plans { plans, pooled } = self.plans(&suite)?;
        let store = self.store.open()?;
        let runs = plans.len() * subjects.len();
        let steps: usize = plans.iter().map(|plan| plan.steps.len()).sum();
        let progress = Progress::new((steps * subjects.len()) as u64, runs, self.quiet);
        let places = self.places(&suite, &subjects, &progress)?;
        let mut jobs = Vec::new();
        for plan in &plans {
            for (number, (subject, place)) in subjects.iter().zip(&places).enumerate() {
                let mut plan = plan.clone();
                plan.absent.clone_from(&place.absent);
                jobs.push(Job {
                    place: if pooled { number } else { jobs.len() },
                    suite: &suite.name,
                    subject,
                    site: place.site.as_ref(),
                    plan,
                });
            }
        }
        let lab = Lab {
            store: &store,
            progress: &progress,
            cancel: interrupt::flag()?,
            resume: self.resume,
        };
        let results = lab.carry_out(&jobs, self.side_by_side()?)?;
        progress.clear();
        self.show(results)
    }

    fn subjects(&self, suite: &Suite) -> Result<Vec<SubjectSpec>> {
        if self.bench == Bench::Host {
            self.check_host()?;
            return Ok(vec![this_machine()?]);
        }
        let choice = Choice {
            kernels: &self.kernel,
            boots: &self.boot,
            names: &self.subject,
        };
        Ok(choose(suite, &choice)?)
    }

    /// On the host there is one subject, as it is.
    fn check_host(&self) -> Result<(), UsageError> {
        for (given, option) in [
            (!self.kernel.is_empty(), "--kernel"),
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

    /// The subjects at their places.
    fn places(
        &self,
        suite: &Suite,
        subjects: &[SubjectSpec],
        progress: &Progress,
    ) -> Result<Vec<Place>> {
        let cache = paths::cache_dir()?;
        let silence = Duration::from_secs(self.patience);
        if self.bench == Bench::Host {
            return Ok(vec![sites::host(cache, silence)?]);
        }
        let mut bench = VirtualBench::open(&cache)?;
        bench.silence = silence;
        let say = &mut |message: &str| progress.say(message);
        let mut equipment = Equipment::of(suite, &library::loads()?, say)?;
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
        builder.places(subjects, say)
    }

    /// A plan for each run. What is wrong with the suite is said here, before any boot.
    fn plans(&self, suite: &Suite) -> Result<Plans> {
        let loads = library::loads()?;
        for (step, number) in suite.steps.iter().zip(1..) {
            probes::parse(&step.probe, &step.params).map_err(|reason| {
                UsageError(format!("suite \"{}\", step {number}: {reason}", suite.name))
            })?;
        }
        let shards = self.scale.shards(&suite.steps, self.longest())?;
        let pooled = shards.len() > 1;
        let seeds = match &self.seeds {
            Some(_) if pooled => return Err(too_many_seeds(shards.len()).into()),
            Some(seeds) => seeds.0.clone(),
            None => (self.seed..=SEED_MAX).take(shards.len()).collect(),
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
            Ok(suite
                .plan(steps, &loads, seed)
                .map_err(|e| UsageError(e.to_string()))?)
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
        if let Some(path) = &self.report {
            output::write_report(runs, path)?;
        }
        if let Some(directory) = &self.data {
            output::write_data(runs, directory)?;
        }
        if results.left > 0 {
            eprintln!(
                "punctual: interrupted; {} runs were not begun",
                results.left
            );
        }
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

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seeds(Vec<u64>);

/// More runs than this are a mistake in typing.
const SEEDS_MAX: u64 = 100_000;

fn parse_seeds(text: &str) -> Result<Seeds, String> {
    let number = |word: &str| {
        let word = word.trim();
        let number: Option<u64> = word.parse().ok();
        number
            .filter(|seed| *seed <= SEED_MAX)
            .ok_or_else(|| format!("\"{word}\" is no whole number from 0 to {SEED_MAX}"))
    };
    if let Some((first, last)) = text.split_once("..") {
        let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
        if first > last || last - first >= SEEDS_MAX {
            return Err(format!(
                "expected FIRST..LAST with at most {SEEDS_MAX} seeds"
            ));
        }
        return Ok(Seeds((first..=last).collect()));
    }
    Ok(Seeds(
        text.split(',').map(number).collect::<Result<_, _>>()?,
    ))
}

fn parse_ns_per_insn(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|ns: &u32| ns.is_power_of_two() && *ns <= NS_PER_INSN_MAX)
        .ok_or_else(|| format!("expected a power of two from 1 to {NS_PER_INSN_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_or_a_list() {
        let seeds = |text| parse_seeds(text).map(|seeds| seeds.0);
        assert_eq!(seeds("1..3"), Ok(vec![1, 2, 3]));
        assert_eq!(seeds("4"), Ok(vec![4]));
        assert_eq!(seeds("7, 2"), Ok(vec![7, 2]));
        assert!(seeds("3..1").is_err() && seeds("a").is_err() && seeds("0..1000000").is_err());
    }

    #[test]
    fn an_instruction_takes_a_power_of_two() {
        assert_eq!(parse_ns_per_insn("8"), Ok(8));
        assert!(parse_ns_per_insn("3").is_err() && parse_ns_per_insn("2048").is_err());
        assert!(parse_ns_per_insn("0").is_err());
    }
}

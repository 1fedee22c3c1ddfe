// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual campaign`: many runs, from one file to one page.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf, absolute};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use indicatif::HumanDuration;
use punctual_judge::{Baselines, Fitness, Judgement, Unanswered, judge, judge_each};
use punctual_kernels::{Catalog, paths};
use punctual_model::run::State;
use punctual_model::{Limit, Run};
use punctual_report::campaign::{
    Campaign as Report, Cluster, PlannedRun, Worst, campaign_json, campaign_page, campaign_text,
    plan_json,
};
use punctual_report::text::{counted, is_or_are, thousands};
use punctual_runner::campaign::slurm::{Event, Outcome, Slurm};
use punctual_runner::campaign::{self, Campaign as Matrix, Durations, Place, Ready, Setting};
use punctual_runner::systems::{Builder, PreparedSystem};
use punctual_runner::{Error, Job, Runner, memory, now};
use punctual_store::Store;

use super::arrivals::{self, WatchArgs};
use super::measure::number_args::parse_jobs;
use super::measure::side_by_side;
use super::output_args::OutputArgs;
use super::replay_args::ReplayArgs;
use super::{StoreArgs, catalog, virtual_bench};
use crate::output::say;
use crate::progress::{Progress, expected};
use crate::scale_args::parse_duration;
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual campaign nightly.toml --plan  # what it measures, and for how long
  punctual campaign nightly.toml --report nightly.html
  punctual campaign nightly.toml --budget 8h  # the same again goes on
  punctual campaign nightly.toml --executor slurm --shared /nfs/nightly

A file is a matrix; each combination is a run, and is what `punctual run` makes:
  suites  = [\"demo\", \"./mine.toml\"]     # paths: from the file's directory
  kernels = [\"debian-6.12\", \"debian-6.12-rt\"]  # else the suites' own subjects
  boot    = [\"preempt=none\", \"preempt=full\"]   # each with each kernel
  loads   = [\"stress\", \"storm\"]         # in place of the suites' own
  cpus    = [1, 4]
  seeds   = \"1..20\"                     # or 20, or [1, 2, 7]
  budget  = \"8h\"
  [[subject]]                           # name, kernel, boot: besides the matrix
  [[exclude]]                           # suite, kernel, boot, load, cpus
  [[limit]]                             # as `punctual judge` has them

What the store holds is not measured again: after Ctrl-C, a crash or the end of
the budget the same command goes on.

Exit status: 0 all is measured, and fit where there are limits; 4 unfit;
5 undecided; 3 something is missing; 1 a run has failed; 2 a wrong request.";

/// The number of a cluster's runs that are in memory at once while they are watched.
const WATCHED_AT_ONCE: usize = 32;

/// The width of the lines that the store keeps of the output.
const TOLD_WIDTH: usize = 100;

/// Measure a matrix of kernels, boot arguments, suites and seeds, from one file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Campaign {
    /// The campaign: a TOML file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Show what would be measured, and measure nothing
    #[arg(long, conflicts_with = "report")]
    plan: bool,
    /// Begin no further run after so long (8h), instead of the file's budget
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    budget: Option<punctual_model::Nanos>,
    /// How many of the worst samples are explained
    #[arg(long, value_name = "N", default_value_t = 3)]
    explain: usize,
    /// How many guests run side by side [default: one on each CPU, as far as memory goes]
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZeroUsize>,
    /// Who measures: `local`, this machine; `slurm`, a cluster, by job arrays
    #[arg(long, value_name = "EXECUTOR", value_enum, default_value_t = Executor::Local)]
    executor: Executor,
    /// With slurm: a directory that this machine and all nodes see under one path, for tasks
    /// and results
    #[arg(long, value_name = "DIR", required_if_eq("executor", "slurm"))]
    shared: Option<PathBuf>,
    /// With slurm: a further option of sbatch, such as --sbatch=--partition=rt (may be
    /// repeated)
    #[arg(
        long,
        value_name = "OPTION",
        requires = "shared",
        allow_hyphen_values = true
    )]
    sbatch: Vec<String>,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Who measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Executor {
    /// This machine.
    Local,
    /// A cluster.
    Slurm,
}

impl Campaign {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        self.output.check()?;
        self.check_executor()?;
        let catalog = catalog()?;
        let mut matrix = campaign::load(&self.file, &catalog)?;
        let say = &mut |message: &str| self.say(message);
        matrix.leave_out_impossible(&catalog, say)?;
        let store = self.store.open_or_make()?;
        let ready = Ready::new(&matrix, &mut |setting| self.build(setting, &catalog))?;
        let places = matrix.places();
        let planned = planned(&ready);
        let limits = answerable(&self.file, &matrix.limits, &planned)?;
        if self.plan {
            self.show_plan(&ready, &places, &store)?;
            return Ok(ExitStatus::Done);
        }
        let id = store.begin_campaign(&ready.asked(), &ready.planned(&places), &now())?;
        let (mut report, is_watched) = match self.executor {
            Executor::Local => self.measure(&ready, &places, &store)?,
            Executor::Slurm => (self.on_cluster(&ready, &places, &store)?, true),
        };
        self.judge(&limits, &planned, &mut report, &store)?;
        if !is_interrupted()? {
            self.explain(&mut report, &store)?;
        }
        let told = campaign_text(&report, TOLD_WIDTH);
        store.end_campaign(&id, &now(), &told)?;
        self.show(&report)?;
        tell_of_rest(&report)?;
        Ok(match status(&report) {
            ExitStatus::Done | ExitStatus::Undecided if !is_watched => ExitStatus::Incomplete,
            status => status,
        })
    }

    /// Refuses options of a cluster where none measures.
    fn check_executor(&self) -> Result<(), UsageError> {
        let options = [
            ("--shared", self.shared.is_some()),
            ("--sbatch", !self.sbatch.is_empty()),
        ];
        let given = options.iter().find(|(_, is_given)| *is_given);
        match given.filter(|_| self.executor == Executor::Local) {
            Some((option, _)) => Err(UsageError(format!(
                "{option} is for a cluster: expected --executor slurm with it, found this machine \
                 as the executor"
            ))),
            None => Ok(()),
        }
    }

    fn say(&self, message: &str) {
        if !self.quiet {
            say!("{message}");
        }
    }

    /// The subjects of a setting, ready to run.
    fn build(&self, setting: &Setting, catalog: &Catalog) -> Result<Vec<PreparedSystem>, Error> {
        let say = &mut |message: &str| self.say(message);
        let wrong = |error: anyhow::Error| Error::Request(format!("{error:#}"));
        let cache = paths::cache_dir().map_err(|error| wrong(error.into()))?;
        let equipment = setting.equipment(say)?;
        let bench = virtual_bench(&cache, setting.suite.cpus.get()).map_err(wrong)?;
        let builder = Builder {
            bench: &bench,
            catalog,
            cache: &cache,
            equipment: &equipment,
        };
        builder.build(&setting.specs(), say)
    }

    /// The number of guests that run at a time.
    fn side_by_side(&self, matrix: &Matrix) -> Result<usize> {
        let cpus = side_by_side(self.jobs)?;
        let largest = matrix.settings.iter().map(|one| one.suite.memory_mib).max();
        let room = memory::available_mib().zip(largest);
        let room = room.map(|(available, largest)| memory::guests(largest, available));
        match room.filter(|room| *room < cpus && self.jobs.is_none()) {
            Some(room) => {
                self.say(&format!("{room} at a time: memory has no room for {cpus}"));
                Ok(room)
            }
            None => Ok(cpus),
        }
    }

    /// Measures the runs that the store does not hold, as long as budget and patience last. Also
    /// tells if all of them were watched as asked.
    fn measure(
        &self,
        ready: &Ready<'_>,
        places: &[Place],
        store: &Store,
    ) -> Result<(Report, bool)> {
        let matrix = ready.campaign;
        let side_by_side = self.side_by_side(matrix)?;
        let numbered = places.iter().zip(0..);
        let jobs = numbered.map(|(place, number)| ready.job(*place, number));
        let jobs: Vec<Job<'_>> = jobs.collect();
        let plans = jobs.iter().map(|job| &job.plan);
        let progress = Progress::new(plans, true, side_by_side, self.quiet);
        let runner = Runner {
            store,
            observer: &progress,
            cancel: interrupt::flag()?,
            resume: true,
        };
        let begun = Instant::now();
        let budget = self.budget(matrix);
        let goes_on = || budget.is_none_or(|budget| begun.elapsed() < budget);
        let taken = Mutex::new((Report::of(&ready.asked()), None));
        let is_watched = AtomicBool::new(true);
        runner.carry_out_each(&jobs, side_by_side, &goes_on, &|number, mut ended| {
            let attached = self.attach(store, vec![&mut ended.run], 1);
            let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
            let Place {
                setting, subject, ..
            } = places[number];
            taken.0.settings[setting].take(subject, &ended.run);
            let unstored = ended.unstored.map(anyhow::Error::new);
            is_watched.fetch_and(*attached.as_ref().unwrap_or(&true), Ordering::SeqCst);
            taken.1 = taken.1.take().or(unstored).or(attached.err());
        })?;
        progress.clear();
        let (report, unstored) = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
        match unstored {
            Some(error) => Err(error),
            None => Ok((report, is_watched.into_inner())),
        }
    }

    /// Adds the known arrivals to the runs. If arrivals are asked for, unknown ones are watched
    /// first, with `at_once` guests at once. Returns false if Ctrl-C came.
    fn attach(&self, store: &Store, runs: Vec<&mut Run>, at_once: usize) -> Result<bool> {
        let (finished, others): (Vec<_>, Vec<_>) = runs
            .into_iter()
            .partition(|run| run.state == State::Finished);
        for run in others {
            arrivals::attach(store, run)?;
        }
        self.watch.attach(store, finished, at_once, self.quiet)
    }

    /// Lets a cluster measure the runs that the store does not hold, and takes its results.
    fn on_cluster(&self, ready: &Ready<'_>, places: &[Place], store: &Store) -> Result<Report> {
        let matrix = ready.campaign;
        let mut planned = Vec::new();
        for place in places {
            if ready.known(*place, store)?.is_none() {
                planned.push(ready.job(*place, 0).run());
            }
        }
        let shared = self.shared.as_deref().unwrap_or(Path::new("."));
        let directory = absolute(shared).with_context(|| shared.display().to_string())?;
        let cache = paths::cache_dir()?;
        let memory = matrix.settings.iter().map(|one| one.suite.memory_mib).max();
        let cluster = Slurm {
            directory: &directory,
            cache_home: cache.parent().unwrap_or(&cache),
            options: &self.sbatch,
            memory_mib: memory.unwrap_or(0) + memory::BESIDE_GUEST_MIB,
            store,
            cancel: interrupt::flag()?,
        };
        let (begun, all) = (Instant::now(), planned.len());
        let budget = self.budget(matrix);
        let goes_on = || budget.is_none_or(|budget| begun.elapsed() < budget);
        let mut merged = 0;
        let mut times = Vec::new();
        let mut failed = BTreeMap::new();
        let mut on = |event: Event| match event {
            Event::Put(count) => {
                let (tasks, verb) = (counted(count, "task"), is_or_are(count));
                self.say(&format!("{tasks} {verb} in Slurm's queue"));
            }
            Event::Trouble(why) => say!("punctual: {why}; it is tried again"),
            Event::Merged(id, run, took) => {
                merged += 1;
                times.extend(took.map(|took| (took.guest_s, took.allocated_s)));
                if run.state == State::Failed {
                    let id = id.clone();
                    failed.insert(
                        campaign::key(&run),
                        Run {
                            id,
                            ..(*run).clone()
                        },
                    );
                }
                let left = begun.elapsed().div_f64(f64::from(merged)) * (all as u32 - merged);
                self.say(&format!(
                    "{} (seed {}): {id} is {}; {merged} of {}, about {} left",
                    run.subject.name,
                    run.seed,
                    run.state,
                    counted(all, "run"),
                    HumanDuration(left)
                ));
            }
        };
        let outcome = if planned.is_empty() {
            Outcome::default()
        } else {
            cluster.carry_out(planned, &goes_on, &mut on)?
        };
        for why in &outcome.given_up {
            say!("punctual: {why}");
        }
        if outcome.under_way > 0 {
            let tasks = counted(outcome.under_way, "task");
            let verb = is_or_are(outcome.under_way);
            say!(
                "punctual: {tasks} {verb} still in Slurm: the same command takes what is delivered"
            );
        }
        let mut report = Report::of(&ready.asked());
        report.cluster = Cluster::of(&times);
        let at_once = self.side_by_side(matrix)?;
        for places in places.chunks(WATCHED_AT_ONCE) {
            let planned = places.iter().map(|place| ready.job(*place, 0).run());
            let planned: Vec<Run> = planned.collect();
            let found = planned.iter().map(|run| store.find_equal(run));
            let mut found: Vec<Option<Run>> = found.collect::<Result<_, _>>()?;
            let is_whole = self.attach(store, found.iter_mut().flatten().collect(), at_once)?;
            for ((place, planned), found) in places.iter().zip(&planned).zip(&found) {
                let run = found.as_ref().or(failed.get(&campaign::key(planned)));
                if let Some(run) = run {
                    report.settings[place.setting].take(place.subject, run);
                }
            }
            if !is_whole {
                break;
            }
        }
        Ok(report)
    }

    fn budget(&self, matrix: &Matrix) -> Option<Duration> {
        let given = self.budget;
        let given = given.map(|time| Duration::from_nanos(time.0.unsigned_abs()));
        given.or(matrix.budget)
    }

    /// Judges each setting by its limits, of which it may have none; only one setting's runs are in
    /// memory at a time. A subject of which no run was made is undecided.
    fn judge(
        &self,
        limits: &[Vec<Limit>],
        planned: &[Vec<Run>],
        report: &mut Report,
        store: &Store,
    ) -> Result<()> {
        let settings = report.settings.iter_mut().zip(limits).zip(planned);
        for ((part, limits), planned) in settings.filter(|((_, limits), _)| !limits.is_empty()) {
            let ids = part.subjects.iter().flat_map(|one| &one.runs);
            let runs = ids.map(|run| super::load(store, &run.id));
            let mut runs: Vec<Run> = runs.collect::<Result<_, _>>()?;
            if runs.is_empty() {
                part.judgement = Some(Err("no run was measured".to_owned()));
                continue;
            }
            let all = part.subjects.iter().zip(planned);
            let absent = all.filter(|(subject, _)| subject.runs.is_empty());
            runs.extend(absent.map(|(_, run)| run.clone()));
            let judgement = judge_each(limits, &runs, &Baselines::new());
            if self.explain > 0 && !is_interrupted()? {
                let replay = ReplayArgs::quiet(self.quiet);
                part.verdict_stories = replay.broken(&judgement, &runs, self.explain)?;
            }
            part.judgement = Some(Ok(judgement));
        }
        Ok(())
    }

    /// Explains the worst samples of all runs.
    fn explain(&self, report: &mut Report, store: &Store) -> Result<()> {
        let replay = ReplayArgs::quiet(self.quiet);
        let cancel = interrupt::flag()?;
        for worst in report.worst(self.explain) {
            let run = store.load(&worst.run)?;
            let Some(seq) = sample(&run, &worst) else {
                continue;
            };
            let Some(told) = replay.stories(&run, &[(&worst.key, seq)], cancel) else {
                break;
            };
            for why in told {
                report.stories.push((worst.clone(), run.clone(), why));
            }
        }
        Ok(())
    }

    fn show(&self, report: &Report) -> Result<()> {
        self.output.show(
            "worst",
            || campaign_json(report),
            || campaign_text(report, output::width()),
            || Ok(campaign_page(report)),
        )
    }

    /// Shows the runs that would be measured, and the time that they may take.
    fn show_plan(&self, ready: &Ready<'_>, places: &[Place], store: &Store) -> Result<()> {
        let matrix = ready.campaign;
        let durations = Durations::of(store)?;
        let side_by_side = self.side_by_side(matrix)?;
        let mut planned = Vec::new();
        for place in places {
            let setting = &matrix.settings[place.setting];
            let spec = &setting.subjects[place.subject].spec;
            let job = ready.job(*place, 0);
            let guess = || expected(&job.plan, true).iter().sum();
            planned.push(Planned {
                place: *place,
                key: campaign::key(&job.run()),
                known: ready.known(*place, store)?,
                takes: durations
                    .middle(&setting.suite.name, &spec.kernel)
                    .unwrap_or_else(guess),
            });
        }
        let open = planned.iter().filter(|one| one.known.is_none());
        let open: Vec<Duration> = open.map(|one| one.takes).collect();
        let left = in_all(&open, side_by_side);
        if self.output.is_json() {
            let runs = planned.iter().map(|one| one.shown(matrix)).collect();
            let plan = plan_json(&matrix.name, &matrix.left_out, left, runs);
            return output::print_json(&plan);
        }
        output::print(&self.plan_text(matrix, &planned, left, side_by_side))
    }

    fn plan_text(
        &self,
        matrix: &Matrix,
        planned: &[Planned],
        left: Duration,
        side_by_side: usize,
    ) -> String {
        let head = ["SUITE", "SUBJECT", "SEEDS", "MEASURED", "EACH"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for (setting, number) in matrix.settings.iter().zip(0..) {
            for (subject, own) in setting.subjects.iter().zip(0..) {
                let is_own =
                    |one: &&Planned| (one.place.setting, one.place.subject) == (number, own);
                let runs: Vec<&Planned> = planned.iter().filter(is_own).collect();
                let known = runs.iter().filter(|one| one.known.is_some()).count();
                let each = runs.first().map_or(Duration::ZERO, |one| one.takes);
                rows.push(vec![
                    setting.name.clone(),
                    subject.spec.name.clone(),
                    thousands(runs.len() as u64),
                    thousands(known as u64),
                    format!("{:.0} s", each.as_secs_f64()),
                ]);
            }
        }
        let table = output::columns(&rows, output::text_width());
        let left_out: Vec<String> = matrix
            .left_out
            .iter()
            .map(|why| format!("left out: {why}\n"))
            .collect();
        let text = table + &left_out.concat();
        let open = planned.iter().filter(|one| one.known.is_none()).count();
        let budget = self.budget(matrix).map_or(String::new(), |budget| {
            format!(", of a budget of {}", HumanDuration(budget))
        });
        let (all, verb) = (counted(planned.len(), "run"), is_or_are(open));
        text + &format!(
            "\n{}: {} of {all} {verb} left, about {} with {side_by_side} at a time{budget}.\n",
            matrix.name,
            thousands(open as u64),
            HumanDuration(left)
        )
    }
}

/// A run that is asked for.
struct Planned {
    place: Place,
    /// The run's key, a short word.
    key: String,
    /// The id of the run in the store that matches.
    known: Option<String>,
    /// The expected duration.
    takes: Duration,
}

impl Planned {
    /// In the form that programs read.
    fn shown<'a>(&'a self, matrix: &'a Matrix) -> PlannedRun<'a> {
        let setting = &matrix.settings[self.place.setting];
        let spec = &setting.subjects[self.place.subject].spec;
        PlannedRun {
            setting: &setting.name,
            subject: &spec.name,
            kernel: &spec.kernel,
            boot: &spec.boot,
            seed: self.place.seed,
            key: &self.key,
            run: self.known.as_deref(),
            seconds: self.takes.as_secs_f64(),
        }
    }
}

/// A run of each subject, setting by setting, of which nothing is measured yet.
fn planned(ready: &Ready<'_>) -> Vec<Vec<Run>> {
    let settings = ready.campaign.settings.iter().zip(0..);
    let runs = |(one, setting): (&Setting, usize)| -> Vec<Run> {
        let run = |subject| {
            let seed = one.seeds[0];
            let place = Place {
                setting,
                subject,
                seed,
            };
            Run {
                id: format!("suite {}", one.suite.name),
                ..ready.job(place, 0).run()
            }
        };
        (0..one.subjects.len()).map(run).collect()
    };
    settings.map(runs).collect()
}

/// The limits that the plan of each setting can answer. `limits` have their lines in `file`,
/// `planned` are runs of each setting.
///
/// # Errors
/// If no setting's plan can answer a limit.
fn answerable(
    file: &Path,
    limits: &[(usize, Limit)],
    planned: &[Vec<Run>],
) -> Result<Vec<Vec<Limit>>, UsageError> {
    let all = planned.concat();
    let mut answerable = vec![Vec::new(); planned.len()];
    for ((line, limit), number) in limits.iter().zip(1..) {
        let judged = |runs: &[Run]| judge(slice::from_ref(limit), runs, &Baselines::new());
        let mut is_answered = false;
        let mut why = judged(&all).err();
        for (runs, own) in planned.iter().zip(&mut answerable) {
            match judged(runs) {
                Ok(_) => {
                    own.push(limit.clone());
                    is_answered = true;
                }
                Err(of_setting) => why = why.or(Some(of_setting)),
            }
        }
        if let Some(why) = why.filter(|_| !is_answered) {
            let unanswered = Unanswered { number, ..why };
            let file = file.display();
            return Err(UsageError(format!("{file}:{line}: {unanswered}")));
        }
    }
    Ok(answerable)
}

/// The time that runs take together, with `side_by_side` at a time: no less than the longest.
fn in_all(runs: &[Duration], side_by_side: usize) -> Duration {
    let sum: Duration = runs.iter().sum();
    let longest = runs.iter().max().copied().unwrap_or_default();
    sum.div_f64(side_by_side as f64).max(longest)
}

/// The number of the worst sample.
fn sample(run: &Run, worst: &Worst) -> Option<u64> {
    let mut recordings = run.recordings.iter();
    let own = recordings.find(|one| one.key.is_same_measurement(&worst.key))?;
    own.worst.first().map(|sample| sample.seq)
}

/// Prints the number of runs that are left, if there are any.
fn tell_of_rest(report: &Report) -> Result<()> {
    let (finished, asked) = report.progress();
    if finished == asked {
        return Ok(());
    }
    let why = if is_interrupted()? {
        "interrupted: "
    } else {
        ""
    };
    let left = asked - finished;
    let (runs, verb) = (counted(left, "run"), is_or_are(left));
    say!("punctual: {why}{runs} {verb} left: the same command goes on with them");
    Ok(())
}

fn is_interrupted() -> Result<bool> {
    Ok(interrupt::flag()?.load(Ordering::SeqCst))
}

fn status(report: &Report) -> ExitStatus {
    let runs = || report.settings.iter().flat_map(|one| &one.subjects);
    let mut states = runs().flat_map(|one| &one.runs).map(|run| run.state);
    if states.any(|state| state == State::Failed) {
        return ExitStatus::Error;
    }
    let judged = report
        .settings
        .iter()
        .filter_map(|one| one.judgement.as_ref());
    let verdicts = judged.map(|judged| {
        let fitness = judged.as_ref().map(Judgement::fitness);
        fitness.unwrap_or(Fitness::Undecided)
    });
    match verdicts.max() {
        Some(Fitness::Unfit) => ExitStatus::Unfit,
        _ if !report.is_whole() => ExitStatus::Incomplete,
        Some(Fitness::Undecided) => ExitStatus::Undecided,
        Some(Fitness::Fit) | None => ExitStatus::Done,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use punctual_model::MachineRecord;
    use punctual_model::machine::VirtualMachine;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        campaign: Campaign,
    }

    /// A run of the probe timer under this load, of which nothing is measured yet.
    fn run(subject: &str, load: &str) -> Run {
        let machine = MachineRecord::Virtual(VirtualMachine::default());
        serde_json::from_value(serde_json::json!({
            "id": "suite s", "suite": "s", "seed": 1,
            "plan": format!("seed = 1\n[[step]]\nprobe = \"timer\"\nload = \"{load}\"\nsamples = 9\n"),
            "subject": { "name": subject, "kernel": "k", "boot": "", "bench": "virtual" },
            "state": "running", "started": "", "punctual": "0.1.0", "machine": machine,
            "shards": 1, "steps": [], "recordings": [], "unsupported": [], "console": "",
            "request": { "what": [], "subject": [], "all_subjects": null, "options": [] },
        }))
        .unwrap()
    }

    fn limit(rest: &str) -> Limit {
        let bound = "probe = \"timer\"\nwhat = \"worst\"\nat_most = \"1 us\"\n";
        toml::from_str(&format!("{bound}{rest}")).unwrap()
    }

    #[test]
    fn a_setting_is_judged_by_the_limits_that_its_plan_can_answer() {
        let planned = [
            vec![run("none", "idle"), run("rt", "idle")],
            vec![run("rt", "stress")],
        ];
        let own = |limit: &Limit| {
            let found = answerable(Path::new("c.toml"), &[(7, limit.clone())], &planned);
            found.map(|all| all.iter().map(|own| !own.is_empty()).collect::<Vec<_>>())
        };
        let of = "what = \"worst\"\nat_most = \"50 %\"\nof = \"none\"\n";
        for (limit, expected) in [
            (limit(""), [true, true]),
            (limit("load = \"stress\"\n"), [false, true]),
            (limit("load = \"idle\"\n"), [true, false]),
            (limit("subject = \"none\"\n"), [true, false]),
            (
                toml::from_str(&format!("probe = \"timer\"\n{of}")).unwrap(),
                [true, false],
            ),
        ] {
            assert_eq!(own(&limit).unwrap(), expected, "{limit:?}");
        }
        for (rest, expected) in [
            (
                "load = \"strss\"\n",
                "expected a measurement by timer under strss, found timer / idle; timer / stress",
            ),
            (
                "subject = \"full\"\n",
                "expected a subject full, found none; rt",
            ),
        ] {
            let said = own(&limit(rest)).unwrap_err().to_string();
            assert!(
                said.starts_with("c.toml:7: limit 1 (timer, worst "),
                "{said}"
            );
            assert!(said.ends_with(expected), "{said}");
        }
    }

    #[test]
    fn options_of_a_cluster_are_refused_where_this_machine_measures() {
        let told = |words: &[&str]| {
            let words = [&["campaign", "c.toml"], words].concat();
            let campaign = Words::parse_from(words).campaign;
            campaign.check_executor().map_err(|error| error.to_string())
        };
        let shared = ["--shared", "/nfs"];
        let said = told(&shared).unwrap_err();
        assert!(
            said.starts_with("--shared is for a cluster: expected --executor slurm"),
            "{said}"
        );
        let local = [&shared[..], &["--executor", "local"]].concat();
        assert!(told(&local).is_err());
        let slurm = [
            &shared[..],
            &["--sbatch=--partition=rt", "--executor", "slurm"],
        ]
        .concat();
        assert_eq!((told(&slurm), told(&[])), (Ok(()), Ok(())));
    }

    #[test]
    fn runs_take_no_less_than_the_longest_of_them() {
        let seconds = |all: &[u64], side_by_side| {
            let all: Vec<Duration> = all.iter().map(|one| Duration::from_secs(*one)).collect();
            in_all(&all, side_by_side).as_secs()
        };
        assert_eq!(seconds(&[13], 2), 13);
        assert_eq!(seconds(&[13, 3], 2), 13);
        assert_eq!(seconds(&[4, 4, 4, 4], 2), 8);
        assert_eq!(seconds(&[], 2), 0);
    }
}

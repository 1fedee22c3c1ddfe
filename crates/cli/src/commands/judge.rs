// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual judge`: judges runs by limits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use punctual_judge::{Baselines, Fitness, Judgement, Sequential, judge, runs_for_typical};
use punctual_model::limit::{Demand, Reference};
use punctual_model::{Limit, Nanos, Run};
use punctual_report::compare::difference;
use punctual_report::judgement::{
    Ksft, Stories, cases, judgement_json, judgement_page, judgement_text,
};
use punctual_report::mail::mail_of_judgement;
use punctual_report::repeat::further;
use punctual_runner::{documents, limits, loads, suites};

use super::again::{again, further_minutes, within};
use super::arrivals::{self, WatchArgs};
use super::commit_args::CommitArgs;
use super::forms_args::FormsArgs;
use super::measure::what::ProbeArgs;
use super::measure::{MeasureArgs, side_by_side, unanswered};
use super::replay_args::ReplayArgs;
use super::{StoreArgs, baseline, is_run, run_names};
use crate::scale_args::parse_duration;
use crate::{ExitStatus, UsageError, output};

const EXAMPLES: &str = "\
Examples:
  punctual judge r1 r2 r3 r4 r5 --limits mine.toml  # or r1..r5
  punctual judge r1..r5 --limits mine.toml --arrivals=10
  punctual judge demo --subject rt --limits mine.toml
  punctual judge ./mine.toml  # the suite's own [[limit]]
  punctual judge --probe timer --load stress --kernel mine --limits mine.toml
  punctual judge demo --kernel mine --limits mine.toml --seeds 1..20 --json
  punctual judge ./mine.toml --budget 20m --junit verdict.xml
  punctual judge --program './loop --rate 1000' --load stress --limits mine.toml
  punctual judge latest-stable --report certificate.html
  punctual judge demo --kernel mine --limits mine.toml --mail mail.txt
  git bisect run punctual judge demo --build . --limits mine.toml --git-bisect
  punctual judge demo --kernel mine --limits mine.toml --baseline stable

A file of limits, or a suite, has as many of these as it takes:
  [[limit]]
  probe = \"timer\"
  load = \"stress\"      # none named: each by itself; so variant, subject
  what = \"worst\"       # mean, median, p99.9, missed, cpu, work with its unit;
                       # arrival, reached: of every arrival (--arrivals)
  at_most = \"100 us\"   # or at_least; \"115 %\" with of = \"none\", or
                       # of = \"baseline\" (--baseline), of = \"baseline:stable\"
  [[limit]]
  probe = \"timer\"
  above = \"50 us\"      # such samples come …
  once_in = \"10 min\"   # … less than once in so much measured time

Exit status: 0 fit; 4 unfit; 5 undecided; 3 interrupted while the kernel is
built; 1 an error; 2 a wrong request. With --ktap, as the kernel's selftests
have it: 0 all fit; 4 something cannot be measured there; 1 anything else. With
--git-bisect, for `git bisect run`: 0 fit (good); 4 unfit (bad); 125 undecided,
or not to be built (skip); 128 an error (end). docs/method/bisection.md has
more.";

/// Judge runs by limits: fit, unfit or undecided, with reason and confidence
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Judge {
    /// Runs (r3 or 3; r1..r4 for all from r1 to r4; `last`); or a suite, which is
    /// measured first, with as many seeds as its limits need
    #[arg(required_unless_present_any = ["probe", "program"], value_name = "SUITE|RUN")]
    what: Vec<String>,
    #[command(flatten)]
    probes: ProbeArgs,
    /// The limits: a TOML file; without it those of the suite
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// Measure until each limit is decided, for so long at most (20m), with seeds
    /// from --seed on
    #[arg(long, value_name = "TIME", conflicts_with = "seeds", value_parser = parse_duration)]
    budget: Option<Nanos>,
    /// The runs that limits with `of = "baseline"` compare with: a name that
    /// `punctual baseline list` shows, or a run (may be repeated)
    #[arg(long, value_name = "NAME|RUN")]
    baseline: Vec<String>,
    #[command(flatten)]
    commit: CommitArgs,
    /// Do not repeat runs to tell why the samples were late that broke limits
    #[arg(long)]
    no_explain: bool,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    forms: FormsArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

impl Judge {
    /// Runs the command.
    pub fn run(mut self) -> Result<ExitStatus> {
        if self.commit.is_for_git() {
            return CommitArgs::ended(|| {
                if !self.build()? {
                    return Ok(None);
                }
                Ok(Some(self.judge()?.0))
            });
        }
        let told = self.tell();
        self.forms.ended(told)
    }

    fn tell(&mut self) -> Result<(ExitStatus, Option<Ksft>)> {
        if !self.build()? {
            return Ok((ExitStatus::Incomplete, None));
        }
        let (fitness, result) = self.judge()?;
        let status = match fitness {
            Fitness::Fit => ExitStatus::Done,
            Fitness::Unfit => ExitStatus::Unfit,
            Fitness::Undecided => ExitStatus::Undecided,
        };
        Ok((status, result))
    }

    /// Builds the kernel to be judged, if that is asked for; returns true if everything is ready.
    fn build(&mut self) -> Result<bool> {
        let Some(source) = self.commit.source()? else {
            return Ok(true);
        };
        if self.what.iter().any(|word| is_run(word)) {
            let wrong = "--build is for a suite: runs that there are are judged as they are";
            return Err(UsageError(wrong.into()).into());
        }
        // What is wrong with the limits is told before minutes of compiling.
        if let [suite] = self.what.as_slice() {
            limits_of(self.limits.as_deref(), suite)?;
        }
        self.commit.build(source, &mut self.measure)
    }

    /// Measures, judges and shows the result.
    fn judge(&self) -> Result<(Fitness, Option<Ksft>)> {
        self.forms.check()?;
        let is_of_runs = !self.what.is_empty() && self.what.iter().all(|word| is_run(word));
        let (mut judgement, runs) = if is_of_runs {
            if self.probes.is_given() {
                let wrong = "--probe, --program, --load and --cpus are for what is measured: runs that there are \
                             are judged as they are";
                return Err(UsageError(wrong.into()).into());
            }
            if self.budget.is_some() {
                let wrong = "--budget is for a suite: runs that there are are judged as they are";
                return Err(UsageError(wrong.into()).into());
            }
            if let Some(option) = self.measure.first_demand() {
                let wrong = format!(
                    "{option} is for what is measured: runs that there are are judged as they are"
                );
                return Err(UsageError(wrong).into());
            }
            let mut runs = self.measure.store.load(&self.what)?;
            let limits = limits_of_runs(self.limits.as_deref(), &runs)?;
            let baselines = baselines(&self.measure.store, &self.baseline, &limits)?;
            let at_once = side_by_side(None)?;
            let store = self.measure.store.open()?;
            let is_asked = |limit: &Limit| matches!(limit.demand, Demand::Arrival { .. });
            if limits.iter().any(is_asked) && !self.watch.is_given() {
                // Also what is known of a part only: it says why the rest is not.
                for run in &mut runs {
                    arrivals::attach(&store, run)?;
                }
            } else {
                let all = runs.iter_mut().collect();
                self.watch
                    .attach(&store, all, at_once, self.measure.quiet)?;
            }
            (judged(&limits, &runs, &baselines)?, runs)
        } else {
            self.refuse_others()?;
            match self.what.as_slice() {
                [] => self.measured(None)?,
                [suite] => self.measured(Some(suite))?,
                several => {
                    let found = several.join(" ");
                    let expected = format!("expected one suite, or runs such as r3, found {found}");
                    return Err(UsageError(expected).into());
                }
            }
        };
        let stories = if self.no_explain {
            Stories::new()
        } else {
            ReplayArgs::quiet(self.measure.quiet).broken(&judgement, &runs, usize::MAX)?
        };
        judgement.decide = self.decide(&judgement, &runs, is_of_runs);
        let result = self.show(&judgement, &stories, &runs)?;
        Ok((judgement.fitness(), result))
    }

    /// Refuses words that are neither runs nor a suite, with what they are.
    fn refuse_others(&self) -> Result<()> {
        let is_other = |word: &&String| !is_run(word) && suites::find(word).is_err();
        for word in self.what.iter().filter(is_other) {
            run_names::refuse_form(word)?;
            // What is wrong with a store says nothing of a suite.
            if let Ok(store) = self.measure.store.open() {
                run_names::refuse(&store, word)?;
            }
        }
        Ok(())
    }

    /// Measures a suite, and judges its runs.
    fn measured(&self, suite: Option<&str>) -> Result<(Judgement, Vec<Run>)> {
        let limits = match (suite, &self.limits) {
            (None, None) => {
                let expected = "expected --limits: without a suite there are none";
                return Err(UsageError(expected.into()).into());
            }
            (suite, limits) => limits_of(limits.as_deref(), suite.unwrap_or_default())?,
        };
        let baselines = baselines(&self.measure.store, &self.baseline, &limits)?;
        let what = self.probes.with(suite);
        self.measure.check()?;
        let suite = self.measure.suite(&what)?;
        let seeds = seeds_for(&limits).max(suite.seeds.get() as usize);
        let plans = self.measure.plans(&suite, Some(seeds))?;
        let prepared = self.measure.prepare(&what, &suite)?;
        // A limit that nothing will answer is an error before anything is measured.
        judged(&limits, &prepared.planned(&plans)?, &baselines)?;
        if let Some(budget) = self.budget {
            let begun = Instant::now();
            let budget = Duration::from_nanos(budget.0.unsigned_abs());
            let sequential = Sequential::new(&limits, baselines);
            let is_over = |_| begun.elapsed() >= budget;
            let decided = prepared.until_decided(&suite, sequential, &self.watch, &is_over)?;
            return Ok((decided.judgement, decided.runs));
        }
        let mut runs = prepared.measure(&plans)?.runs;
        prepared.watch(&self.watch, &mut runs)?;
        Ok((judged(&limits, &runs, &baselines)?, runs))
    }

    /// The commands that continue where this one ends: until everything is decided, or for existing
    /// runs as many more as decide it at best.
    fn decide(&self, judgement: &Judgement, runs: &[Run], is_of_runs: bool) -> Vec<String> {
        if !judgement.needs_runs() {
            return Vec::new();
        }
        if !is_of_runs {
            return vec![within(
                further_minutes(self.budget),
                &["--budget", "--seeds"],
            )];
        }
        let (subjects, more) = judgement.subjects_to_decide();
        let is_open = |run: &&Run| {
            let name = &run.subject.name;
            let with_more = format!("{name} (");
            let mut all = subjects.iter();
            all.any(|one| one == name || one.starts_with(&with_more))
        };
        let open: Vec<Run> = runs.iter().filter(is_open).cloned().collect();
        let mut commands = further(&open, more);
        if commands.is_empty() {
            return commands;
        }
        let subjects: BTreeSet<_> = open.iter().map(|run| &run.subject.name).collect();
        for command in &mut commands {
            command.extend(self.measure.store.option());
        }
        let new = self.measure.store.next(subjects.len() * more);
        commands.push(format!("{} {new}  # with the new runs", again()));
        commands
    }

    fn show(&self, judgement: &Judgement, stories: &Stories, runs: &[Run]) -> Result<Option<Ksft>> {
        self.forms.show(
            &cases(judgement),
            runs,
            self.forms
                .mail(|page| mail_of_judgement(judgement, stories, runs, page)),
            || judgement_json(judgement, stories),
            || judgement_text(judgement, stories, output::width()),
            || Ok(judgement_page(judgement, stories, runs, &documents::all()?)),
        )
    }
}

/// The runs that limits compare with: `names` are those of the command line.
pub fn baselines(store: &StoreArgs, names: &[String], limits: &[Limit]) -> Result<Baselines> {
    let runs = |names| baseline::named(store, names);
    let mut baselines = Baselines::new();
    if !names.is_empty() {
        baselines.insert(None, runs(names)?);
    }
    let mut is_relative = false;
    for (limit, number) in limits.iter().zip(1..) {
        let Demand::Relative(.., of) = &limit.demand else {
            continue;
        };
        is_relative = true;
        match of {
            Reference::Baseline(Some(name)) => {
                let runs = runs(std::slice::from_ref(name))?;
                baselines.insert(Some(name.clone()), runs);
            }
            Reference::Baseline(None) if names.is_empty() => {
                let (probe, demand) = (&limit.probe, &limit.demand);
                return Err(UsageError(format!(
                    "limit {number} ({probe}, {demand}): expected --baseline, which names runs \
                     to compare with"
                ))
                .into());
            }
            _ => {}
        }
    }
    if !names.is_empty() && !is_relative {
        let none = "--baseline: no limit is a share of anything (`of = \"baseline\"`)";
        return Err(UsageError(none.into()).into());
    }
    Ok(baselines)
}

/// The limits in a file, or those of the suite.
pub fn limits_of(file: Option<&Path>, suite: &str) -> Result<Vec<Limit>> {
    Ok(match file {
        Some(path) => limits::in_file(path)?,
        None => limits::of_suite(suite)?,
    })
}

/// The limits of a file, or of the suite that has measured runs: a probe by itself, a program and
/// other programs have none.
fn limits_of_runs(file: Option<&Path>, runs: &[Run]) -> Result<Vec<Limit>> {
    let suite = suite_of(runs)?;
    if file.is_none() && suites::find(&suite).is_err() {
        let wrong = match runs {
            [run] => format!("{} has no limits of its own", run.id),
            _ => "these runs have no limits of their own".to_owned(),
        };
        let wrong = wrong + ": give `--limits FILE` (`punctual judge --help` shows one)";
        return Err(UsageError(wrong).into());
    }
    limits_of(file, &suite)
}

/// Names the runs that are their own baseline.
fn of_itself(runs: &[Run], baselines: &Baselines) -> Option<String> {
    let own: BTreeSet<&str> = baselines.values().flatten().map(|run| &*run.id).collect();
    let both = runs.iter().filter(|run| own.contains(&*run.id));
    let both: Vec<&str> = both.map(|run| &*run.id).collect();
    match both.as_slice() {
        [] => None,
        [one] => Some(format!(
            "{one} is compared with itself, which it always equals"
        )),
        all => Some(format!(
            "{} are compared with themselves, which they always equal",
            all.join(", ")
        )),
    }
}

/// Judges runs if they may be compared with their baselines.
pub fn judged(limits: &[Limit], runs: &[Run], baselines: &Baselines) -> Result<Judgement> {
    for baseline in baselines.values() {
        let first = runs.iter().take(1).chain(baseline).cloned();
        if let Some(difference) = difference(&first.collect::<Vec<_>>()) {
            return Err(UsageError(difference).into());
        }
    }
    let mut judgement = judge(limits, runs, baselines).map_err(unanswered)?;
    judgement.remarks.extend(of_namesakes(runs)?);
    judgement.remarks.extend(of_itself(runs, baselines));
    Ok(judgement)
}

/// A line for each load that merely has the same name as one that comes with Punctual.
fn of_namesakes(runs: &[Run]) -> Result<Vec<String>> {
    let mut all: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for run in runs {
        // A plan that cannot be read is said elsewhere.
        let Ok(plan) = run.parsed_plan() else {
            continue;
        };
        for name in loads::namesakes(&plan)? {
            all.entry(name.to_owned()).or_default().push(&run.id);
        }
    }
    let told = all.iter().map(|(name, runs)| {
        let runs = runs.join(", ");
        format!("load {name} of {runs} is not the one that comes with Punctual under this name")
    });
    Ok(told.collect())
}

/// The number of runs that satisfies each limit's minimum.
fn seeds_for(limits: &[Limit]) -> usize {
    let needed = |limit: &Limit| limit.runs.unwrap_or(0).max(runs_for_typical(limit.level()));
    limits.iter().map(needed).max().unwrap_or(1)
}

/// The suite of all runs.
fn suite_of(runs: &[Run]) -> Result<String> {
    let first = &runs[0];
    match runs.iter().find(|run| run.suite != first.suite) {
        None => Ok(first.suite.clone()),
        Some(other) => Err(UsageError(format!(
            "{} is of suite {} and {} of {}: expected runs of one suite",
            first.id, first.suite, other.id, other.suite
        ))
        .into()),
    }
}

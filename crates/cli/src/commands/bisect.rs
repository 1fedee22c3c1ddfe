// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual bisect`: finds the release at which fit became unfit.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::Result;
use clap::{Args, value_parser};
use punctual_judge::{Baselines, Bisection, Found, Known, Sequential};
use punctual_model::Limit;
use punctual_model::suite::Suite;
use punctual_report::bisect::{
    Bisect as Bisected, Step, asked, bisect_json, bisect_page, bisect_text,
};
use punctual_runner::documents;

use super::arrivals::WatchArgs;
use super::catalog;
use super::judge::{baselines, judged, limits_of};
use super::measure::what::{ProbeArgs, WhatArgs};
use super::measure::{MeasureArgs, is_of_kernel};
use super::output_args::OutputArgs;
use super::places::places;
use super::replay_args::ReplayArgs;
use crate::output::say;
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual kernel series debian-6.12-rt  # the releases that there are
  punctual bisect debian-6.12-rt --good 6.12.43 --bad 6.12.117 \\
      --limits mine.toml
  # the first release that keeps the limits again
  punctual bisect debian-6.12-rt --good 6.12.117 --bad 6.12.43 \\
      --limits mine.toml
  # kernels of your own, in order
  punctual bisect v1 v2 v3 v4 --limits mine.toml
  punctual bisect debian-6.1-rt --suite ./mine.toml --report bisect.html

First it is confirmed that the good one is fit and the bad one is unfit; then
the middle one of those between is judged, and so on. Each kernel gets as many
seeds as its verdict needs. One that cannot be had, does not boot, or stays
undecided is skipped and named. What the store holds is not measured again: the
same command goes on where Ctrl-C has ended it.

A commit of a source tree is found by `git bisect run` with `punctual judge
--git-bisect`: docs/method/bisection.md has the script.

Exit status: 0 found; 3 one of several, as some were skipped, or interrupted; 2
the good one is unfit, or the bad one fit; 5 that is undecided; 1 an error.";

/// Find the release that broke a limit, by judging as few as can be
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Bisect {
    /// A line that `punctual kernel list` shows, such as debian-6.12-rt; or kernels, in
    /// their order
    #[arg(required = true, value_name = "LINE|KERNEL")]
    kernels: Vec<String>,
    /// The one that is fit: a version (6.12.43), or a kernel [default: the first]
    #[arg(long, value_name = "VERSION")]
    good: Option<String>,
    /// The one that is unfit; older than the good one to find what repaired it [default:
    /// the last]
    #[arg(long, value_name = "VERSION")]
    bad: Option<String>,
    /// The limits: a TOML file; without it those of the suite
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// What is measured: a suite that `punctual list suites` shows, or a TOML file
    /// [default: series, where neither --probe nor --program is named]
    #[arg(long, value_name = "SUITE")]
    suite: Option<String>,
    #[command(flatten)]
    probes: ProbeArgs,
    /// The runs that limits with `of = "baseline"` compare with: a name that
    /// `punctual baseline list` shows, or a run (may be repeated)
    #[arg(long, value_name = "NAME|RUN")]
    baseline: Vec<String>,
    /// How many seeds a kernel gets at most, before it is skipped as undecided
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = value_parser!(u64).range(1..=1000))]
    most_seeds: u64,
    /// Do not repeat runs to tell what changed
    #[arg(long)]
    no_explain: bool,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// The terms by which each kernel is judged.
struct Terms {
    what: WhatArgs,
    suite: Suite,
    limits: Vec<Limit>,
    baselines: Baselines,
}

impl Bisect {
    /// Runs the command.
    pub fn run(mut self) -> Result<ExitStatus> {
        self.output.check()?;
        let what = self.probes.with_or(self.suite.as_deref(), "series");
        let limits = match (&self.limits, what.suite_named()) {
            (None, None) => {
                let expected = "expected --limits: without a suite there are none";
                return Err(UsageError(expected.into()).into());
            }
            (limits, suite) => limits_of(limits.as_deref(), suite.unwrap_or_default())?,
        };
        let baselines = baselines(&self.measure.store, &self.baseline, &limits)?;
        self.measure.check()?;
        self.measure.check_unnamed("a bisection")?;
        if self.measure.has_seeds() {
            let wrong = "--seeds: a kernel gets as many as its verdict needs; --most-seeds says \
                         how many at most, --seed the first";
            return Err(UsageError(wrong.into()).into());
        }
        let suite = self.measure.suite(&what)?;
        let (candidates, is_backwards) = self.candidates()?;
        let terms = Terms {
            what,
            suite,
            limits,
            baselines,
        };
        let mut bisect = Bisected {
            suite: terms.suite.name.clone(),
            limits: terms.limits.clone(),
            candidates,
            is_backwards,
            steps: Vec::new(),
            found: None,
            why: None,
        };
        self.bisect(&mut bisect, &terms)?;
        self.explain(&mut bisect)?;
        let is_interrupted = interrupt::flag()?.load(Ordering::SeqCst);
        self.show(&bisect)?;
        Ok(status(&bisect, is_interrupted))
    }

    /// The kernels from the good one to the bad one, and whether this reverses their original
    /// order.
    fn candidates(&self) -> Result<(Vec<String>, bool)> {
        let mut all = match self.kernels.as_slice() {
            [line] => {
                let releases = catalog()?.releases(line, &mut |message| self.say(message))?;
                releases.into_iter().map(|one| one.id).collect()
            }
            kernels => known(kernels)?,
        };
        let ids: Vec<&str> = all.iter().map(String::as_str).collect();
        let place = |word: &Option<String>, option, default| match word {
            Some(word) => only(&ids, word, option),
            None => Ok(default),
        };
        let good = place(&self.good, "--good", 0)?;
        let bad = place(&self.bad, "--bad", ids.len() - 1)?;
        if good == bad {
            let same = format!(
                "--good and --bad are both {}: expected two, and what is between them",
                ids[good]
            );
            return Err(UsageError(same).into());
        }
        let is_backwards = good > bad;
        all.truncate(good.max(bad) + 1);
        all.drain(..good.min(bad));
        if is_backwards {
            all.reverse();
        }
        Ok((all, is_backwards))
    }

    fn say(&self, message: &str) {
        if !self.measure.quiet {
            say!("{message}");
        }
    }

    /// Judges kernel after kernel, until the change is found or Ctrl-C ends the search.
    fn bisect(&mut self, bisect: &mut Bisected, terms: &Terms) -> Result<()> {
        // From now on Ctrl-C ends a download, and what is known is shown.
        interrupt::flag()?;
        let mut bisection = Bisection::new(bisect.candidates.len());
        let most = Bisection::steps_most(bisect.candidates.len());
        let names = bisect.names();
        while let Some(at) = bisection.next() {
            let number = bisect.steps.len();
            self.say(&match number {
                0 => format!("{}: is it fit?", names[at]),
                1 => format!("{}: is it unfit?", names[at]),
                _ => {
                    let (fit, unfit) = bisection.ends();
                    let (fit, unfit) = (&names[fit], &names[unfit]);
                    let step = number - 1;
                    format!(
                        "{}: step {step} of about {most}, between {fit} and {unfit}",
                        names[at]
                    )
                }
            });
            // All verdicts together are wrong no more often than a limit allows.
            let share = bisection.share();
            let Some(step) = self.step(at, &bisect.candidates[at], terms, share)? else {
                return Ok(());
            };
            if step.judgement.is_some() {
                bisection.spend(share);
            }
            let why = step
                .skipped
                .as_deref()
                .map_or(String::new(), |why| format!(": {why}"));
            self.say(&format!("{}: {}{why}", names[at], step.known));
            bisection.tell(at, step.known);
            bisect.steps.push(step);
        }
        bisect.found = bisection.found();
        Ok(())
    }

    /// Judges one kernel at a share of each limit's level; `None` if Ctrl-C has ended it.
    fn step(&mut self, at: usize, id: &str, terms: &Terms, share: f64) -> Result<Option<Step>> {
        // Whatever Ctrl-C has ended says nothing of the kernel.
        let is_interrupted = || interrupt::flag().map(|flag| flag.load(Ordering::SeqCst));
        if let Err(why) = catalog()?.ensure(id, &mut |message| self.say(message)) {
            if is_interrupted()? {
                return Ok(None);
            }
            return Ok(Some(Step::skipped(at, format!("it cannot be had: {why}"))));
        }
        self.measure.take(vec![id.to_owned()]);
        let prepared = match self.measure.prepare(&terms.what, &terms.suite) {
            Err(_) if is_interrupted()? => return Ok(None),
            Err(why) if is_of_kernel(&why) => {
                return Ok(Some(Step::skipped(at, format!("{why:#}"))));
            }
            prepared => prepared?,
        };
        // A limit that nothing will answer is an error before anything is measured.
        let plans = self.measure.plans_after(&terms.suite, 0, 1)?;
        judged(&terms.limits, &prepared.planned(&plans)?, &terms.baselines)?;
        let baselines = terms.baselines.clone();
        let sequential = Sequential::at_share(&terms.limits, baselines, share);
        let is_enough = |seeds| seeds as u64 >= self.most_seeds;
        let decided = prepared.until_decided(&terms.suite, sequential, &self.watch, &is_enough)?;
        if decided.is_interrupted {
            return Ok(None);
        }
        Ok(Some(Step::judged(at, decided.judgement, decided.runs)))
    }

    /// Explains the difference, as far as Ctrl-C allows.
    fn explain(&self, bisect: &mut Bisected) -> Result<()> {
        let Some(asked) = asked(bisect).filter(|_| !self.no_explain) else {
            return Ok(());
        };
        let replay = ReplayArgs::quiet(self.measure.quiet);
        let why = replay.why(0, &asked, &bisect.runs(), interrupt::flag()?);
        bisect.why = why.map(|why| (asked, why));
        Ok(())
    }

    fn show(&self, bisect: &Bisected) -> Result<()> {
        self.output.show(
            "steps",
            || bisect_json(bisect),
            || bisect_text(bisect, output::width()),
            || Ok(bisect_page(bisect, &documents::all()?)),
        )
    }
}

/// The exit status for what was found.
fn status(bisect: &Bisected, is_interrupted: bool) -> ExitStatus {
    match bisect.found {
        _ if is_interrupted => ExitStatus::Incomplete,
        Some(Found::Between { .. }) if bisect.suspects().len() == 1 => ExitStatus::Done,
        Some(Found::Between { .. }) | None => ExitStatus::Incomplete,
        Some(Found::GoodIsNot(Known::Skipped) | Found::BadIsNot(Known::Skipped)) => {
            ExitStatus::Undecided
        }
        Some(Found::GoodIsNot(_) | Found::BadIsNot(_)) => ExitStatus::Usage,
    }
}

/// Kernels that are present or may be fetched; none may be named twice.
fn known(kernels: &[String]) -> Result<Vec<String>> {
    for (number, id) in kernels.iter().enumerate() {
        if kernels[..number].contains(id) {
            return Err(UsageError(format!("kernel \"{id}\" is named twice")).into());
        }
        match catalog()?.get(id) {
            Err(error) if error.is_request() => return Err(error.into()),
            // What else is wrong with it is told when it is to be judged.
            _ => {}
        }
    }
    Ok(kernels.to_vec())
}

/// The index of the one kernel that a word names.
fn only(ids: &[&str], word: &str, option: &str) -> Result<usize> {
    match places(ids, word, option)?.as_slice() {
        [only] => Ok(*only),
        several => {
            let several: Vec<&str> = several.iter().map(|at| ids[*at]).collect();
            Err(UsageError(format!(
                "{option}: {word} may be each of {}: name one of these",
                several.join(", ")
            ))
            .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ctrl_c_has_ended_is_not_done() {
        let mut bisect = Bisected {
            suite: "s".to_owned(),
            limits: Vec::new(),
            candidates: ["a", "b"].map(str::to_owned).into(),
            is_backwards: false,
            steps: Vec::new(),
            found: Some(Found::Between { fit: 0, unfit: 1 }),
            why: None,
        };
        assert_eq!(status(&bisect, false), ExitStatus::Done);
        assert_eq!(status(&bisect, true), ExitStatus::Incomplete);
        bisect.found = Some(Found::GoodIsNot(Known::Skipped));
        assert_eq!(status(&bisect, false), ExitStatus::Undecided);
        bisect.found = None;
        assert_eq!(status(&bisect, false), ExitStatus::Incomplete);
    }
}

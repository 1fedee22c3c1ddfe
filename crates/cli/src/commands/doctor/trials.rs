// SPDX-License-Identifier: MIT OR Apache-2.0
//! The benefit of an option on the virtual bench: measured without it and with it, and compared.

use anyhow::Result;
use clap::Args;
use punctual_doctor::{Check, Diagnosis, Finding, Trial};
use punctual_judge::Verdict;
use punctual_model::recording::Sample;
use punctual_model::{RecordingKey, Run};
use punctual_report::doctor::{Tried, Why, tried};
use punctual_report::gate::rule_of_each;
use punctual_report::text::counted;

use super::super::StoreArgs;
use super::super::measure::MeasureArgs;
use super::super::measure::number_args::{Seeds, parse_seeds};
use super::super::measure::what::WhatArgs;
use super::super::replay_args::ReplayArgs;
use crate::output::say;
use crate::{UsageError, interrupt};

/// How trials are made.
#[derive(Debug, Args)]
pub struct TrialArgs {
    /// Measure on the virtual bench how much each missing boot option would help, where it
    /// can tell: run the probe timer with and without it
    #[arg(long)]
    pub measure: bool,
    /// The kernel to try them on [default: debian-6.12, or debian-6.12-rt where this machine
    /// has PREEMPT_RT]
    #[arg(long, value_name = "ID", requires = "measure")]
    kernel: Option<String>,
    /// Under which load
    #[arg(
        long,
        value_name = "LOAD",
        default_value = "stress",
        requires = "measure"
    )]
    load: String,
    /// Run these seeds: `1..5` is five runs of each (5 included), `1,2,7` three, `5` only seed 5
    /// [default: as many as it takes to tell so many options apart, at least 5]
    #[arg(long, value_name = "SEEDS", requires = "measure", value_parser = parse_seeds)]
    seeds: Option<Seeds>,
    /// Do not repeat runs to tell why the worst samples were late
    #[arg(long, requires = "measure")]
    no_explain: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// The kernels to try for PREEMPT_RT, if the machine lacks it; the other options are tried on the
/// one that is like the machine.
const STOCK_AND_RT: [&str; 2] = ["debian-6.12", "debian-6.12-rt"];

/// The number of seeds: as many as in the suite demo.
const FEWEST: usize = 5;
/// The number of samples in each run: as many as there.
const SAMPLES: u64 = 1_000;

/// Subjects that are measured together, the first without any option.
struct Group<'a> {
    what: WhatArgs,
    kernels: Vec<String>,
    boots: Vec<String>,
    of: Vec<&'a Finding>,
}

impl TrialArgs {
    /// Tries everything possible against all that is wrong; `None` if Ctrl-C has ended it.
    pub fn run(&self, diagnosis: &Diagnosis, is_rt: bool) -> Result<Option<Vec<Tried>>> {
        if let Some(seeds) = &self.seeds {
            seeds.tell(self.quiet);
        }
        let kernel = self
            .kernel
            .clone()
            .unwrap_or_else(|| STOCK_AND_RT[usize::from(is_rt)].to_owned());
        let groups = self.groups(diagnosis, &kernel);
        let count = groups.iter().map(|group| group.of.len()).sum();
        if !self.quiet && count > 0 {
            let options = counted(count, "option");
            let minutes = counted(count, "minute");
            say!(
                "punctual: {options} to try in virtual time: some {minutes}, less what was measured before"
            );
        }
        // What a later group lacks is told before the first is measured.
        for group in &groups {
            self.check(group)?;
        }
        let mut all = Vec::new();
        for group in &groups {
            match self.group(group, count)? {
                Some(tried) => all.extend(tried),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    fn groups<'a>(&self, diagnosis: &'a Diagnosis, kernel: &str) -> Vec<Group<'a>> {
        let of = |is_it: &dyn Fn(Trial) -> Option<&'static str>| {
            let wrong = diagnosis.wrong();
            let tried = wrong.filter_map(|one| Some((one, is_it(one.check.trial)?.to_owned())));
            let (of, boots): (Vec<&Finding>, Vec<String>) = tried.unzip();
            (of, [vec![String::new()], boots].concat())
        };
        let timer = |load: &str, cpu| WhatArgs::of_timer(load, SAMPLES, cpu);
        let mut groups = Vec::new();
        let (rt, _) = of(&|trial| (trial == Trial::Kernel).then_some(""));
        groups.push(Group {
            what: timer(&self.load, None),
            kernels: STOCK_AND_RT.map(str::to_owned).into(),
            boots: Vec::new(),
            of: rt,
        });
        let (same, boots) = of(&|trial| match trial {
            Trial::Boot(arguments) => Some(arguments),
            _ => None,
        });
        groups.push(Group {
            what: timer(&self.load, None),
            kernels: vec![kernel.to_owned()],
            boots,
            of: same,
        });
        let (beside, boots) = of(&|trial| match trial {
            Trial::Beside(arguments) => Some(arguments),
            _ => None,
        });
        groups.push(Group {
            what: timer(&format!("{} on 0", self.load), Some(1)),
            kernels: vec![kernel.to_owned()],
            boots,
            of: beside,
        });
        groups.retain(|group| !group.of.is_empty());
        groups
    }

    /// Checks that everything is there that a group needs.
    fn check(&self, group: &Group) -> Result<()> {
        let measure = self.measure_args(group);
        let suite = measure.suite(&group.what)?;
        measure.prepare(&group.what, &suite)?;
        Ok(())
    }

    fn measure_args(&self, group: &Group) -> MeasureArgs {
        let (kernels, boots) = (group.kernels.clone(), group.boots.clone());
        MeasureArgs::of_subjects(kernels, boots, self.quiet, &self.store)
    }

    /// Measures a group; the verdicts are adjusted for `count` trials. `None` if Ctrl-C has ended
    /// it.
    fn group(&self, group: &Group, count: usize) -> Result<Option<Vec<Tried>>> {
        let measure = self.measure_args(group);
        let suite = measure.suite(&group.what)?;
        let rule = rule_of_each(count);
        let usual = || (1..=rule.runs().max(FEWEST) as u64).collect();
        let seeds = self
            .seeds
            .as_ref()
            .map_or_else(usual, |seeds| seeds.all.clone());
        let plans = measure.plans_of(&suite, &seeds)?;
        let prepared = measure.prepare(&group.what, &suite)?;
        let names: Vec<String> = prepared.names().map(str::to_owned).collect();
        let results = prepared.measure(&plans)?;
        if results.is_interrupted() {
            say!("punctual: interrupted: no result yet; the same command measures the rest");
            return Ok(None);
        }
        let runs = results.runs;
        let checks: Vec<&'static Check> = group.of.iter().map(|one| one.check).collect();
        let all = tried(&runs, &checks, &names, rule);
        let mut all = all.map_err(|refusal| UsageError(refusal.to_string()))?;
        for one in &mut all {
            let is_apart = one
                .judged
                .is_some_and(|judged| matches!(judged.verdict, Verdict::Lower | Verdict::Higher));
            if is_apart && !self.no_explain {
                one.why = self.why(&runs, &names[0], &one.subject)?;
            }
        }
        Ok(Some(all))
    }

    /// The reasons why the worst samples were late, without the option and with it; `None` if there
    /// are none, or Ctrl-C has ended it.
    fn why(&self, runs: &[Run], without: &str, with: &str) -> Result<Option<Why>> {
        let cancel = interrupt::flag()?;
        let replay = ReplayArgs::quiet(self.quiet);
        let story = |subject: &str| {
            let (run, key, sample) = worst(runs, subject)?;
            let told = replay.stories(run, &[(key, sample.seq)], cancel)?;
            Some((run.id.clone(), told.into_iter().next()?))
        };
        Ok(story(without)
            .zip(story(with))
            .map(|(without, with)| Why { without, with }))
    }
}

/// The worst sample of a subject, with its run; the first of equal ones.
fn worst<'a>(runs: &'a [Run], subject: &str) -> Option<(&'a Run, &'a RecordingKey, Sample)> {
    let own = runs.iter().filter(|run| run.subject.name == subject);
    let samples = own.flat_map(|run| {
        let worst =
            move |one: &'a punctual_model::Recording| Some((run, &one.key, *one.worst.first()?));
        run.recordings.iter().filter_map(worst)
    });
    samples.reduce(|worst, other| {
        if other.2.value > worst.2.value {
            other
        } else {
            worst
        }
    })
}

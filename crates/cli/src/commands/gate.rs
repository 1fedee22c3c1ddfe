// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual gate`: did it get worse than its baseline?

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Args;
use punctual_judge::Rule;
use punctual_model::recording::Sample;
use punctual_model::run::State;
use punctual_model::suite::Suite;
use punctual_model::{RecordingKey, Run};
use punctual_report::compare::plan_difference;
use punctual_report::gate::{
    Gate as Verdict, Gated, Standing, Why, gate_json, gate_page, gate_text, gated, is_unchanged,
    rule_of_each,
};
use punctual_report::scope::Story;
use punctual_runner::documents;

use super::baseline;
use super::measure::what::WhatArgs;
use super::measure::{MeasureArgs, Prepared};
use super::output_args::OutputArgs;
use super::replay_args::ReplayArgs;
use crate::output::say;
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual run demo --subject rt --seeds 1..5
  punctual baseline set stable r1 r2 r3 r4 r5
  punctual gate demo --baseline stable --kernel mine
  punctual gate demo --baseline stable --subject rt --boot threadirqs
  punctual gate latest-stable --baseline r7 --kernel mine --report gate.html

Equal digests are the same behaviour to the last sample. On the machine of the
baseline, to the last byte, one seed shows it; on another, all seeds of the
baseline are measured. Where one differs, runs are compared as `punctual
compare` does, and the worst of what got worse is explained, here and there.

Exit status: 0 unchanged or not worse; 4 worse; 5 undecided; 1 an
error; 2 a wrong request; 3 measured in part.";

/// Tell whether a kernel got worse than its baseline, first by digest
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Gate {
    /// The suite: a name that `punctual list suites` shows, or a TOML file
    #[arg(value_name = "SUITE")]
    suite: String,
    /// What is compared with: a name that `punctual baseline list` shows, or a run
    /// (may be repeated)
    #[arg(long, required = true, value_name = "NAME|RUN")]
    baseline: Vec<String>,
    /// Do not repeat runs to tell what the worst of what got worse comes from
    #[arg(long)]
    no_explain: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// A subject with the baseline's runs that it is compared with, and its own.
struct Side {
    subject: String,
    there: Vec<Run>,
    here: Vec<Run>,
}

impl Side {
    /// Whether nothing else can come of any further seed: in virtual time, the same machine,
    /// target and plan give the same run.
    fn is_settled(&self) -> bool {
        let same = |here: &Run| {
            let there = self.there.iter().find(|there| there.seed == here.seed);
            let is_equal = |there: &Run| here.digest().is_some() && here.digest() == there.digest();
            there.is_some_and(|there| here.is_virtual() && is_equal(there))
        };
        let is_same_machine = |there: &Run| {
            let made = |run: &Run| {
                (
                    run.machine.clone(),
                    run.punctual.clone(),
                    run.subject.boot.clone(),
                )
            };
            self.here
                .first()
                .is_some_and(|here| made(here) == made(there))
        };
        let is_same = !self.here.is_empty() && self.here.iter().all(same);
        is_same && self.there.iter().all(is_same_machine)
    }

    /// The seeds that need not be measured.
    fn implied(&self) -> Vec<u64> {
        let is_measured = |seed: &u64| self.here.iter().any(|run| run.seed == *seed);
        let seeds = self.there.iter().map(|run| run.seed);
        seeds
            .filter(|seed| self.is_settled() && !is_measured(seed))
            .collect()
    }
}

impl Gate {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        self.output.check()?;
        let there = baseline::named(&self.measure.store.open()?, &self.baseline)?;
        let what = WhatArgs::of_suite(&self.suite);
        self.measure.check()?;
        let suite = self.measure.suite(&what)?;
        let seeds = self.seeds(&there);
        self.check_plan(&suite, &there[0], &seeds)?;
        let prepared = self.measure.prepare(&what, &suite)?;
        let mut sides = sides(&prepared, &there, &self.baseline.join(" "))?;
        let Some(()) = self.fill(&suite, &prepared, &seeds, &mut sides)? else {
            return Ok(ExitStatus::Incomplete);
        };
        let cancel = interrupt::flag()?;
        let changed = sides
            .iter()
            .filter(|side| !is_unchanged(&side.there, &side.here));
        let rule = rule_of_each(changed.count());
        let gate = Verdict {
            suite: suite.name.clone(),
            baseline: self.baseline.join(" "),
            subjects: sides
                .iter()
                .map(|side| self.gated(side, rule, cancel))
                .collect::<Result<_>>()?,
        };
        let runs: Vec<Run> = sides
            .into_iter()
            .flat_map(|side| [side.there, side.here].concat())
            .collect();
        self.show(&gate, &runs)?;
        Ok(match gate.standing() {
            Standing::Unchanged | Standing::NotWorse => ExitStatus::Done,
            Standing::Worse => ExitStatus::Unfit,
            Standing::Undecided => ExitStatus::Undecided,
        })
    }

    /// The seeds that are asked for, else the baseline's.
    fn seeds(&self, there: &[Run]) -> Vec<u64> {
        self.measure.seeds_asked_for().unwrap_or_else(|| {
            let mut seeds: Vec<u64> = there.iter().map(|run| run.seed).collect();
            seeds.sort_unstable();
            seeds.dedup();
            seeds
        })
    }

    /// What cannot be compared is refused before it is measured.
    fn check_plan(&self, suite: &Suite, there: &Run, seeds: &[u64]) -> Result<()> {
        let plan = self.measure.plans_of(suite, &seeds[..1])?;
        let different = if there.suite == suite.name {
            plan_difference(&plan.first_toml(), &there.plan)
        } else {
            Some(format!(
                "the suite is {} here and {} there",
                suite.name, there.suite
            ))
        };
        match different {
            None => Ok(()),
            Some(different) => Err(UsageError(format!(
                "this suite and the baseline's {} cannot be compared: {different}",
                there.id
            ))
            .into()),
        }
    }

    /// Measures one seed, and the others where that does not settle it; `None` where Ctrl-C
    /// has ended it.
    fn fill(
        &self,
        suite: &Suite,
        prepared: &Prepared<'_>,
        seeds: &[u64],
        sides: &mut [Side],
    ) -> Result<Option<()>> {
        let (first, others) = seeds.split_at(1);
        for seeds in [first, others] {
            let open: Vec<String> = sides
                .iter()
                .filter(|side| !side.is_settled())
                .map(|side| side.subject.clone())
                .collect();
            if seeds.is_empty() || open.is_empty() {
                break;
            }
            let plans = self.measure.plans_of(suite, seeds)?;
            let results =
                prepared.measure_of(&plans, &|name| open.iter().any(|own| own == name))?;
            if results.is_interrupted() {
                say!("punctual: interrupted: nothing is told");
                return Ok(None);
            }
            for run in results.runs {
                if run.state != State::Finished {
                    let (id, name, why) =
                        (&run.id, &run.subject.name, run.error.unwrap_or_default());
                    anyhow::bail!("{id} ({name}, seed {}) did not finish: {why}", run.seed);
                }
                let mut sides = sides.iter_mut();
                let own = sides.find(|side| side.subject == run.subject.name);
                own.expect("a run is of a subject").here.push(run);
            }
        }
        Ok(Some(()))
    }

    fn gated(&self, side: &Side, rule: Rule, cancel: &AtomicBool) -> Result<Gated> {
        let mut gated = gated(&side.there, &side.here, side.implied(), rule)
            .map_err(|refusal| UsageError(refusal.to_string()))?;
        if let Some(number) = gated.worst().filter(|_| !self.no_explain) {
            let row = &gated.rows[number].row;
            let key = RecordingKey {
                repetition: row.repetition,
                ..RecordingKey::new(&row.probe, &row.load, &row.variant)
            };
            gated.why = self.why(side, number, &key, cancel);
        }
        Ok(gated)
    }

    /// The worst samples of a measurement, here and there, explained; `None` where there is
    /// none, or Ctrl-C has ended it.
    fn why(&self, side: &Side, row: usize, key: &RecordingKey, cancel: &AtomicBool) -> Option<Why> {
        let replay = ReplayArgs::quiet(self.measure.quiet);
        let story = |runs: &[Run]| -> Option<(Run, Story)> {
            let (run, sample) = worst(runs, key)?;
            let told = replay.stories(run, &[(key, sample.seq)], cancel)?;
            Some((run.clone(), told.into_iter().next()?))
        };
        Some(Why {
            row,
            here: story(&side.here)?,
            there: story(&side.there)?,
        })
    }

    fn show(&self, gate: &Verdict, runs: &[Run]) -> Result<()> {
        self.output.show(
            || gate_json(gate),
            || gate_text(gate, output::width()),
            || Ok(gate_page(gate, runs, &documents::all()?)),
        )
    }
}

/// Each subject with the baseline's runs of the same name; of a baseline of one subject, those.
fn sides(prepared: &Prepared<'_>, there: &[Run], baseline: &str) -> Result<Vec<Side>> {
    let names: BTreeSet<&str> = there.iter().map(|run| run.subject.name.as_str()).collect();
    let side = |subject: &str| {
        let only = names.len() == 1;
        let own = there
            .iter()
            .filter(|run| only || run.subject.name == subject);
        let own: Vec<Run> = own.cloned().collect();
        if own.is_empty() {
            return Err(UsageError(format!(
                "expected {subject} among the subjects of baseline {baseline}, found {}",
                names.iter().copied().collect::<Vec<_>>().join(", ")
            ))
            .into());
        }
        Ok(Side {
            subject: subject.to_owned(),
            there: own,
            here: Vec::new(),
        })
    };
    prepared.names().map(side).collect()
}

/// The worst sample of a measurement in all these runs, with its run; of equals the first.
fn worst<'a>(runs: &'a [Run], key: &RecordingKey) -> Option<(&'a Run, Sample)> {
    let of_run = |run: &'a Run| {
        let mut recordings = run.recordings.iter();
        let own = recordings.find(|one| one.key.is_same_measurement(key))?;
        Some((run, *own.worst.first()?))
    };
    let worst = runs.iter().filter_map(of_run);
    worst.reduce(|worst, other| {
        if other.1.value > worst.1.value {
            other
        } else {
            worst
        }
    })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual gate`: finds whether runs got worse than their baseline.

mod further;
mod own_plan;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use punctual_judge::Fitness;
use punctual_model::suite::Suite;
use punctual_model::{Nanos, Run};
use punctual_report::asked::Asked;
use punctual_report::compare::{difference, plan_difference};
use punctual_report::gate::{
    Compared, Detail, Gate as Verdict, Standing, Symptom, TOLERANCE, gate_json, gate_page,
    gate_text, is_same_machine, is_unchanged, page_runs,
};
use punctual_report::judgement::{Case, Ksft, cases_of_gate};
use punctual_report::mail::mail_of_gate;
use punctual_runner::gate::{Guest, Looks, Side, guest, sides, subjects};
use punctual_runner::{documents, suites};

use super::again::{again, further_minutes, within};
use super::arrivals::WatchArgs;
use super::commit_args::CommitArgs;
use super::forms_args::FormsArgs;
use super::measure::what::WhatArgs;
use super::measure::{MeasureArgs, Prepared, side_by_side};
use super::replay_args::ReplayArgs;
use super::{baseline, is_run};
use crate::output::say;
use crate::scale_args::parse_duration;
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual run demo --subject rt --seeds 1..5
  punctual baseline set stable r1 r2 r3 r4 r5
  punctual gate --baseline stable --kernel mine
  punctual gate demo --baseline stable --subject rt --boot threadirqs
  punctual gate --baseline stable.punctual --kernel mine --budget 20m
  punctual gate --probe timer --load stress --baseline r7 --kernel mine
  punctual gate latest-stable --baseline r7 --kernel mine --report gate.html
  punctual gate --baseline stable --kernel mine --arrivals
  punctual gate --baseline stable --kernel mine --junit gate.xml
  punctual gate --baseline stable --kernel mine --mail mail.txt
  git bisect run punctual gate --baseline good --bad bad --build . --git-bisect

Equal digests are the same behaviour to the last sample. On the machine of the
baseline, to the last byte, one seed shows it; on another, all seeds of the
baseline are measured. Where one differs, median, p99 and worst sample of each
measurement are compared run by run. The sample that stands for the worst of it
is explained, here and there. With --arrivals, the worst case of the probes
timer and irq is no longer drawn by lot: each run is watched once, what was
found is kept, and a function that holds them up for longer is named. With
--budget, further seeds of both sides are measured while something is undecided.

Exit status: 0 unchanged, not worse, or changed within tolerance; 4 worse;
5 undecided; 1 an error; 2 a wrong request; 3 interrupted. With --ktap, as the
kernel's selftests have it: 0 all pass; 4 something cannot be measured there;
1 anything else. With --git-bisect, for `git bisect run`: 0 good; 4 worse (bad);
125 undecided, or not to be built (skip); 128 an error (end).
docs/method/bisection.md has more.";

/// Tell whether a kernel got worse than its baseline, first by digest
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Gate {
    #[command(flatten)]
    what: WhatArgs,
    /// What is compared with: a name that `punctual baseline list` shows, a run, or a file of
    /// `punctual export` (may be repeated). Without a suite, its measurement is repeated
    #[arg(long, required = true, value_name = "NAME|RUN|FILE")]
    baseline: Vec<String>,
    /// With --git-bisect: the runs of a kernel that is worse than the baseline. The gate judges each
    /// commit by a figure of the measurement that got worse most (may be repeated)
    #[arg(long, value_name = "NAME|RUN|FILE", requires = "git_bisect")]
    bad: Vec<String>,
    /// While something is undecided, measure further seeds of both sides, for so long at most
    /// (20m)
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "git_bisect")]
    budget: Option<Nanos>,
    /// The smallest change that matters, in per cent of a measurement's median: what is higher
    /// by less is no reason to fail
    #[arg(long, value_name = "PER CENT", default_value_t = 100.0 * TOLERANCE)]
    #[arg(value_parser = parse_percent)]
    tolerate: f64,
    /// Tell which samples differ, with each seed, and all functions on the way of the sample
    /// that is explained
    #[arg(long)]
    samples_differ: bool,
    /// Do not repeat runs to tell what the worst of it comes from
    #[arg(long)]
    no_explain: bool,
    #[command(flatten)]
    commit: CommitArgs,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    forms: FormsArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Runs of both sides, as they arrive.
struct Runs {
    there: Vec<Run>,
    here: Vec<Run>,
    /// The seeds that a budget has added to the baseline's.
    further: Vec<u64>,
}

impl Gate {
    /// Runs the command.
    pub fn run(mut self) -> Result<ExitStatus> {
        if self.commit.is_for_git() {
            return CommitArgs::ended(|| self.judge_commit());
        }
        let told = self.tell();
        self.forms.ended(told)
    }

    /// Builds the kernel to judge, if there is a source; returns true if everything is ready.
    fn build(&mut self) -> Result<bool> {
        let Some(source) = self.commit.source()? else {
            return Ok(true);
        };
        // What is wrong with the baseline is told before minutes of compiling.
        baseline::named(&self.measure.store, &self.baseline)?;
        self.commit.build(source, &mut self.measure)
    }

    fn tell(&mut self) -> Result<(ExitStatus, Option<Ksft>)> {
        if !self.build()? {
            return Ok((ExitStatus::Incomplete, None));
        }
        let Some((mut gate, subjects, runs)) = self.gate()? else {
            return Ok((ExitStatus::Incomplete, None));
        };
        if !self.no_explain {
            self.explain(&mut gate, &subjects, &runs, interrupt::flag()?)?;
        }
        let result = self.show(&gate, runs)?;
        let status = match gate.standing() {
            Standing::Unchanged | Standing::NotWorse | Standing::Tolerated => ExitStatus::Done,
            Standing::Worse => ExitStatus::Unfit,
            Standing::Undecided => ExitStatus::Undecided,
        };
        Ok((status, result))
    }

    /// The figure by which the bad kernel is worse than the baseline, and the bad kernel's runs;
    /// `None` if Ctrl-C came.
    fn symptom(&self) -> Result<Option<(Symptom, Vec<Run>)>> {
        if self.bad.is_empty() {
            let wrong = "--git-bisect: expected --bad, the runs of a kernel that is worse than the \
                         baseline: the gate judges commits by what got worse";
            return Err(UsageError(wrong.into()).into());
        }
        let named = |names| baseline::named(&self.measure.store, names);
        let (mut good, mut bad) = (named(&self.baseline)?, named(&self.bad)?);
        let asked = self.baseline.join(" ");
        let of_bad = format!("--bad {}", self.bad.join(" "));
        of_one_subject(&format!("--baseline {asked}"), &subjects(&good))?;
        of_one_subject(&of_bad, &subjects(&bad))?;
        on_one_guest(&of_bad, &good, &bad)?;
        // A figure of arrivals cannot be told of commits that are not watched.
        if self.watch.is_given() {
            let (store, at_once) = (self.measure.store.open()?, side_by_side(None)?);
            let (both, is_quiet) = (good.iter_mut().chain(&mut bad), self.measure.quiet);
            let watched = self.watch.attach(&store, both.collect(), at_once, is_quiet);
            if !watched? {
                return Ok(None);
            }
        }
        let sides = sides(&subjects(&bad), &good, &bad, &asked)?;
        let gate = self.verdict(&good[0].suite, &sides, 1.0)?;
        let Some(symptom) = Symptom::of(&gate) else {
            let to_do = match gate.standing() {
                Standing::Unchanged => "name the runs of a kernel that is worse",
                _ => "measure more seeds of both, or add --arrivals",
            };
            let found = gate.standing().name();
            return Err(UsageError(format!(
                "{of_bad}: expected runs that are worse than the baseline's, found {found} ones: \
                 {to_do}"
            ))
            .into());
        };
        if let Some(gap) = symptom.gap(&gate) {
            let wrong = format!(
                "{of_bad}: expected runs of one machine with the whole step that got worse, found \
                 {gap}: measure them again"
            );
            return Err(UsageError(wrong).into());
        }
        Ok(Some((symptom, bad)))
    }

    /// Builds, measures and judges one commit; `None` if Ctrl-C came.
    fn judge_commit(&mut self) -> Result<Option<Fitness>> {
        // What is wrong with the runs is told before minutes of compiling.
        let Some((symptom, bad)) = self.symptom()? else {
            return Ok(None);
        };
        if !self.build()? {
            return Ok(None);
        }
        let Some((gate, _, runs)) = self.gate()? else {
            return Ok(None);
        };
        let all = [&runs.there, &runs.here, &bad].map(|runs| runs.iter().collect::<Vec<&Run>>());
        let fitness = symptom.judge(&gate, all.each_ref().map(Vec::as_slice));
        let fitness = fitness.map_err(|refusal| UsageError(refusal.to_string()))?;
        self.show(&gate, runs)?;
        say!("{}", symptom.sentence(fitness));
        Ok(Some(fitness))
    }

    /// Measures and judges; `None` if Ctrl-C came before there was any verdict.
    fn gate(&mut self) -> Result<Option<(Verdict, Vec<String>, Runs)>> {
        self.forms.check()?;
        self.refuse_run()?;
        self.refuse_resume()?;
        let mut there = baseline::named(&self.measure.store, &self.baseline)?;
        // The order in which they are named is of no matter.
        there.sort_by(|one, other| (one.seed, &one.id).cmp(&(other.seed, &other.id)));
        let guest = guest(&there)?.filter(|_| self.measure.is_virtual());
        let suite = self.suite(&there, guest)?;
        self.measure.check()?;
        let seeds = self.seeds(&there);
        self.check_plan(&suite, &there[0], &seeds)?;
        let what = self.what.clone();
        let prepared = self.measure.prepare(&what, &suite)?;
        self.check_machine(&prepared, &suite, &there[0], &seeds)?;
        let subjects: Vec<String> = prepared.names().map(str::to_owned).collect();
        if self.commit.is_for_git() {
            of_one_subject("--git-bisect", &subjects)?;
        }
        let mut runs = Runs {
            there,
            here: Vec::new(),
            further: Vec::new(),
        };
        let gate = self.judged(&suite, &prepared, &subjects, &seeds, &mut runs)?;
        if gate.is_none() {
            say!("punctual: interrupted: no verdict");
        }
        Ok(gate.map(|gate| (gate, subjects, runs)))
    }

    /// Refuses a run in place of the suite.
    fn refuse_run(&self) -> Result<(), UsageError> {
        let is_run = |name: &&str| is_run(name) && suites::find(name).is_err();
        match self.what.suite_named().filter(is_run) {
            None => Ok(()),
            Some(run) => Err(UsageError(format!(
                "{run} is a run, and gate measures anew: `punctual compare` holds runs against \
                 each other"
            ))),
        }
    }

    /// Refuses `--resume` in real time, where the store knows a run by its plan and its machine,
    /// and not by its kernel: it would give the baseline's own runs.
    fn refuse_resume(&self) -> Result<(), UsageError> {
        if self.measure.is_virtual() || !self.measure.resume {
            return Ok(());
        }
        Err(UsageError(
            "expected no --resume in real time, found it: runs of the baseline, or of an earlier \
             kernel, would count as new ones. Leave it out; `punctual run` with it fetches what a \
             board still holds"
                .into(),
        ))
    }

    /// The suite to measure: what is named, or what the baseline measured. It runs on a guest like
    /// the baseline's, except where an option says otherwise.
    fn suite(&mut self, there: &[Run], guest: Option<Guest>) -> Result<Suite> {
        let first = &there[0];
        if self.what.stray_load() {
            let wrong = "--load: without a suite, the gate measures what the baseline measured, \
                         under its loads: name the suite or the --probe that ran under this one";
            return Err(UsageError(wrong.into()).into());
        }
        if let Some(guest) = guest {
            self.measure.take_guest(guest);
        }
        let is_own = match self.what.only_suite() {
            None => !self.what.is_given(),
            // What `--probe` has measured is called by the probe's name.
            Some(name) => name == first.suite && suites::find(name).is_err(),
        };
        if is_own {
            let (suite, what, plan) = own_plan::of(there, self.measure.is_of_all_subjects())?;
            self.measure.take_plan_of(first, &plan);
            self.what = what.on_cpus_of(&self.what);
            return self.measure.placed(&self.what, suite);
        }
        let suite = self.measure.suite(&self.what)?;
        match guest {
            Some(guest) if guest.cpus != suite.cpus.get() => {
                self.what.take_cpus(guest.cpus);
                self.measure.placed(&self.what, suite)
            }
            _ => Ok(suite),
        }
    }

    /// The seeds that are asked for, else the baseline's.
    fn seeds(&self, there: &[Run]) -> Vec<u64> {
        let asked = self.measure.seeds_asked_for();
        asked.unwrap_or_else(|| punctual_runner::gate::seeds(there))
    }

    /// Refuses, before measuring, a plan that cannot be compared.
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

    /// Refuses, before measuring, a measurement in another kind of time.
    fn check_machine(
        &self,
        prepared: &Prepared<'_>,
        suite: &Suite,
        there: &Run,
        seeds: &[u64],
    ) -> Result<()> {
        let plans = self.measure.plans_of(suite, &seeds[..1])?;
        let planned = prepared.planned(&plans)?;
        let both: Vec<Run> = planned.into_iter().take(1).chain([there.clone()]).collect();
        match difference(&both) {
            None => Ok(()),
            Some(different) => Err(UsageError(different).into()),
        }
    }

    /// Measures and looks, until it is decided or the budget is spent; `None` if Ctrl-C came before
    /// there was any result.
    fn judged(
        &self,
        suite: &Suite,
        prepared: &Prepared<'_>,
        subjects: &[String],
        seeds: &[u64],
        runs: &mut Runs,
    ) -> Result<Option<Verdict>> {
        let Some(()) = self.fill(suite, prepared, seeds, subjects, runs)? else {
            return Ok(None);
        };
        if !self.watch(prepared, subjects, runs)? {
            return Ok(None);
        }
        let budget = self.budget;
        let budget = budget.map(|budget| Duration::from_nanos(budget.0.unsigned_abs()));
        let mut looks = Looks::new(budget, seeds);
        let mut gate = self.look(suite, subjects, runs, looks.share())?;
        while gate.standing() == Standing::Undecided && gate.needs_runs() && !looks.is_over() {
            let more = looks.further();
            let is_open = |name: &str| {
                let mut open = gate.subjects.iter();
                open.any(|one| one.subject == name && one.standing == Standing::Undecided)
            };
            if more.is_empty() || !self.further(suite, prepared, &more, runs, &is_open)? {
                break;
            }
            if !self.watch(prepared, subjects, runs)? {
                break;
            }
            let next = self.look(suite, subjects, runs, looks.share())?;
            gate = next.after(&gate);
        }
        Ok(Some(gate))
    }

    /// Measures one seed, and the others if that does not settle it; `None` if Ctrl-C has ended it.
    fn fill(
        &self,
        suite: &Suite,
        prepared: &Prepared<'_>,
        seeds: &[u64],
        subjects: &[String],
        runs: &mut Runs,
    ) -> Result<Option<()>> {
        let (first, others) = seeds.split_at(1);
        for seeds in [first, others] {
            let all = self.sides(subjects, runs)?;
            let open = all.iter().filter(|side| !side.is_settled());
            let open: Vec<String> = open.map(|side| side.subject.clone()).collect();
            if seeds.is_empty() || open.is_empty() {
                break;
            }
            let is_open = |name: &str| open.iter().any(|own| own == name);
            let resume = self.measure.resume;
            let Some(new) = self.measured(suite, prepared, seeds, &is_open, resume)? else {
                return Ok(None);
            };
            runs.here.extend(new);
        }
        Ok(Some(()))
    }

    /// Measures these seeds; `None` if Ctrl-C has ended it.
    fn measured(
        &self,
        suite: &Suite,
        prepared: &Prepared<'_>,
        seeds: &[u64],
        is_wanted: &dyn Fn(&str) -> bool,
        resume: bool,
    ) -> Result<Option<Vec<Run>>> {
        let plans = self.measure.plans_of(suite, seeds)?;
        let results = prepared
            .measure_or_take(&plans, is_wanted, resume)?
            .stored()?;
        Ok((!results.is_interrupted()).then_some(results.runs))
    }

    /// The sides. A subject that was decided before seeds were added is compared without these.
    fn sides<'a>(&self, subjects: &[String], runs: &'a Runs) -> Result<Vec<Side<'a>>> {
        let baseline = self.baseline.join(" ");
        let mut all = sides(subjects, &runs.there, &runs.here, &baseline)?;
        for Side { there, here, .. } in &mut all {
            let is_own = |seed| here.iter().any(|own| own.seed == seed);
            there.retain(|run| !runs.further.contains(&run.seed) || is_own(run.seed));
        }
        Ok(all)
    }

    /// Adds the known arrivals to the runs of all sides that differ, even if only in their
    /// machines; those that are asked for are watched. Returns false if Ctrl-C came.
    fn watch(&self, prepared: &Prepared<'_>, subjects: &[String], runs: &mut Runs) -> Result<bool> {
        let sides = self.sides(subjects, runs)?;
        let open = sides.iter().filter(|side| {
            let (there, here) = (&side.there, &side.here);
            !is_unchanged(there, here) || !is_same_machine(there, here)
        });
        let open = open.flat_map(|side| side.there.iter().chain(&side.here));
        let open: BTreeSet<String> = open.map(|run| run.id.clone()).collect();
        let all = runs.there.iter_mut().chain(&mut runs.here);
        let all = all.filter(|run| open.contains(&run.id)).collect();
        let (at_once, is_quiet) = (prepared.side_by_side(), self.measure.quiet);
        self.watch.attach(prepared.store(), all, at_once, is_quiet)
    }

    /// Looks at all runs so far, at this share of the level.
    fn look(&self, suite: &Suite, subjects: &[String], runs: &Runs, share: f64) -> Result<Verdict> {
        let sides = self.sides(subjects, runs)?;
        Ok(Verdict {
            again: Some(again()),
            decide: self.decide(),
            ..self.verdict(&suite.name, &sides, share)?
        })
    }

    /// Compares the sides, at this share of the level.
    fn verdict(&self, suite: &str, sides: &[Side<'_>], share: f64) -> Result<Verdict, UsageError> {
        let all: Vec<Compared<'_>> = sides.iter().map(compared).collect();
        let (baseline, tolerance) = (self.baseline.join(" "), self.tolerate / 100.0);
        let gate = Verdict::of(suite, &baseline, &all, share, tolerance);
        gate.map_err(|refusal| UsageError(refusal.to_string()))
    }

    /// The command that continues where this one ends.
    fn decide(&self) -> Option<String> {
        if !self.measure.is_virtual() || self.commit.is_for_git() {
            return None;
        }
        Some(within(further_minutes(self.budget), &["--budget"]))
    }

    /// Explains the representative sample of each subject that got worse or may have.
    fn explain(
        &self,
        gate: &mut Verdict,
        subjects: &[String],
        runs: &Runs,
        cancel: &AtomicBool,
    ) -> Result<()> {
        let replay = ReplayArgs::quiet(self.measure.quiet);
        let sides = self.sides(subjects, runs)?;
        for (one, side) in gate.subjects.iter_mut().zip(&sides) {
            let Some((number, share)) = one.to_explain() else {
                continue;
            };
            let key = one.rows[number].row.key();
            let both = [&side.here, &side.there];
            if both
                .iter()
                .any(|runs| runs.iter().any(|run| !run.is_virtual()))
            {
                continue;
            }
            let [mut here, mut there] = both.map(|runs| runs.iter().copied());
            let asked = Asked::of_share(&key, share, [&mut here, &mut there]);
            let all: Vec<&Run> = both.iter().flat_map(|runs| runs.iter().copied()).collect();
            one.why = asked.and_then(|asked| replay.why_of(number, &asked, &all, cancel));
        }
        Ok(())
    }

    fn show(&self, gate: &Verdict, runs: Runs) -> Result<Option<Ksft>> {
        let cases: Vec<Case> = cases_of_gate(gate);
        let detail = if self.samples_differ {
            Detail::Samples
        } else {
            Detail::Short
        };
        let mail = |page: Option<&str>| mail_of_gate(gate, &runs.there, &runs.here, page);
        let mail = self.forms.mail(mail);
        // On a page the baseline's runs have another name.
        let runs = page_runs(runs.there, runs.here);
        self.forms.show(
            &cases,
            &runs,
            mail,
            || gate_json(gate),
            || gate_text(gate, output::width(), detail),
            || Ok(gate_page(gate, &runs, &documents::all()?)),
        )
    }
}

fn compared<'a>(side: &'a Side<'_>) -> Compared<'a> {
    Compared {
        there: &side.there,
        here: &side.here,
        implied: side.implied(),
    }
}

/// Refuses several subjects: a bisection has one.
fn of_one_subject(what: &str, subjects: &[String]) -> Result<(), UsageError> {
    if let [_] = subjects {
        return Ok(());
    }
    let found = subjects.join(", ");
    Err(UsageError(format!(
        "{what}: expected one subject, found {found}: name one of them"
    )))
}

/// Refuses bad runs on another guest than the good ones: then *worse* would say nothing about the
/// kernel.
fn on_one_guest(what: &str, good: &[Run], bad: &[Run]) -> Result<()> {
    match (guest(good)?, guest(bad)?) {
        (Some(there), Some(here)) if there != here => Err(UsageError(format!(
            "{what}: expected runs on a guest like the baseline's, {there}; found {here}: measure \
             both on one guest"
        ))
        .into()),
        _ => Ok(()),
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let number: Result<f64, _> = text.trim_end_matches('%').trim().parse();
    let number = number.ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "expected per cent of a median, 0 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use punctual_model::machine::VirtualMachine;
    use punctual_model::{MachineRecord, Run};

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        gate: Gate,
    }

    /// A run of the probe timer on a guest of two CPUs, with its request.
    fn run(seed: u64, memory_mib: u32) -> Run {
        let machine = MachineRecord::Virtual(VirtualMachine {
            memory_mib,
            cpus: 2,
            turn_us: Some(20),
            ns_per_insn: 4,
            ..VirtualMachine::default()
        });
        let request = serde_json::json!({
            "what": ["--probe", "timer", "-p", "samples=9"], "subject": ["--kernel", "k"],
            "all_subjects": null, "options": ["--memory", memory_mib.to_string()],
        });
        serde_json::from_value(serde_json::json!({
            "id": format!("r{seed}"), "suite": "timer", "seed": seed,
            "plan": format!("seed = {seed}\n[[step]]\nprobe = \"timer\"\nload = \"idle\"\nsamples = 9\n"),
            "subject": { "name": "k", "kernel": "k", "boot": "", "bench": "virtual" },
            "state": "finished", "started": "", "punctual": "0.1.0", "machine": machine,
            "shards": 1, "steps": [], "recordings": [], "unsupported": [], "console": "",
            "request": request,
        }))
        .unwrap()
    }

    fn parsed(words: &[&str]) -> Gate {
        let words = [&["gate", "--baseline", "r1"], words].concat();
        Words::parse_from(words).gate
    }

    /// The suite that `punctual gate --baseline r1` measures with these words.
    fn suite(words: &[&str]) -> Result<(Gate, Suite)> {
        let mut gate = parsed(words);
        let there = [run(1, 300), run(2, 300)];
        let suite = gate.suite(&there, guest(&there)?)?;
        Ok((gate, suite))
    }

    #[test]
    fn the_guest_is_the_baselines_but_for_what_is_asked_for() {
        let (_, own) = suite(&[]).unwrap();
        assert_eq!(
            (own.name.as_str(), own.cpus.get(), own.memory_mib),
            ("timer", 2, 300)
        );
        let (gate, other) = suite(&["--cpus", "3"]).unwrap();
        assert_eq!((other.cpus.get(), other.memory_mib), (3, 300));
        assert!(gate.what.words().unwrap().join(" ").ends_with("--cpus 3"));
        // A suite that is named has the baseline's guest, too.
        let (gate, named) = suite(&["--probe", "timer", "-p", "samples=9"]).unwrap();
        assert_eq!(named.cpus.get(), 2);
        assert!(gate.what.words().unwrap().join(" ").ends_with("--cpus 2"));
        let (_, named) = suite(&["--probe", "timer", "--cpus", "1"]).unwrap();
        assert_eq!(named.cpus.get(), 1);
        assert!(
            suite(&["--cpus", "0-1"]).is_err(),
            "a guest has a number of them"
        );
    }

    #[test]
    fn a_gate_in_real_time_takes_no_run_for_a_new_one() {
        for bench in ["host", "ssh:board"] {
            let gate = parsed(&["--bench", bench, "--resume"]);
            let wrong = gate.refuse_resume().unwrap_err().to_string();
            assert!(
                wrong.contains("expected no --resume in real time"),
                "{wrong}"
            );
            assert!(parsed(&["--bench", bench]).refuse_resume().is_ok());
        }
        assert!(parsed(&["--resume"]).refuse_resume().is_ok());
    }

    #[test]
    fn seeds_that_a_budget_adds_are_compared_where_they_were_measured() {
        let named = |name: &str, seed| {
            let mut run = run(seed, 300);
            run.subject.name = name.into();
            run
        };
        let runs = Runs {
            there: (1..=4).map(|seed| named("k", seed)).collect(),
            here: vec![
                named("decided", 1),
                named("decided", 2),
                named("open", 1),
                named("open", 2),
                named("open", 3),
                named("open", 4),
            ],
            further: vec![3, 4],
        };
        let subjects = ["decided", "open"].map(str::to_owned);
        let sides = parsed(&[]).sides(&subjects, &runs).unwrap();
        let seeds = |side: &Side<'_>| side.there.iter().map(|run| run.seed).collect::<Vec<_>>();
        assert_eq!(seeds(&sides[0]), [1, 2]);
        assert_eq!(seeds(&sides[1]), [1, 2, 3, 4]);
    }

    #[test]
    fn a_bisection_has_one_subject_and_one_guest() {
        let names = ["rt", "none"].map(str::to_owned);
        assert!(of_one_subject("--baseline b", &names[..1]).is_ok());
        let wrong = of_one_subject("--baseline b", &names).unwrap_err();
        let expected = "--baseline b: expected one subject, found rt, none: name one of them";
        assert_eq!(wrong.to_string(), expected);
        let good = [run(1, 300)];
        assert!(on_one_guest("--bad b", &good, &[run(2, 300)]).is_ok());
        let wrong = on_one_guest("--bad b", &good, &[run(2, 400)]).unwrap_err();
        let wrong = wrong.to_string();
        assert!(
            wrong.contains("300 MiB") && wrong.contains("found 2 CPUs, 400 MiB"),
            "{wrong}"
        );
    }

    #[test]
    fn a_load_alone_is_refused_with_what_would_do() {
        let wrong = suite(&["--load", "stress"]).unwrap_err().to_string();
        assert!(
            wrong.contains("what the baseline measured, under its loads"),
            "{wrong}"
        );
    }
}

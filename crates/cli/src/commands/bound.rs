// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual bound`: an upper bound of the lateness.

use anyhow::Result;
use clap::Args;
use punctual_model::Run;
use punctual_report::scope::bound::{bound_json, bound_page, bound_text};
use punctual_scope::bound::{Observed, bound};
use punctual_scope::error::ScopeError;
use punctual_scope::explain::survey;
use punctual_scope::repeat::OnEvent;

use super::StoreArgs;
use super::arrivals::aim_with_second;
use super::output_args::OutputArgs;
use super::replay_args::ReplayArgs;
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual bound r4
  punctual bound r4 r8 r12 --report bound.html  # several seeds as one
  punctual bound r4 --aim                       # and get near it
  punctual bound r4 --json

docs/method/bound.md says what is bounded, and by what.

Exit status: 0 reported; 3 Ctrl-C has ended it; 1 an error; 2 a wrong request.";

/// Bound the scheduling latency of runs on PREEMPT_RT: Punctual
/// repeats them and watches each instruction
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Bound {
    /// The runs, of one subject
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// Aim samples at the N latest arrivals of each step of timer, and at the latest of these once
    /// more with a second timer, whose interrupt comes into their path
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3", default_value_t = 0)]
    aim: usize,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    repeat: ReplayArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl Bound {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        self.output.check()?;
        let mut runs = self.store.load(&self.runs)?;
        of_one_subject(&runs)?;
        let cancel = interrupt::flag()?;
        let mut surveyed = Vec::new();
        for run in &runs {
            let (place, machine) = self.repeat.machine(run)?;
            if machine.cpus > 1 {
                return Err(ScopeError::ManyCpus(run.id.clone(), machine.cpus).into());
            }
            let body = |on: OnEvent| survey(&place, run, &machine, cancel, on);
            let Some((found, _)) = self.repeat.repeat(run, None, body)? else {
                return Ok(ExitStatus::Incomplete);
            };
            surveyed.push((run, found));
        }
        let mut bound = bound(&surveyed);
        if self.aim > 0 {
            let store = self.store.open()?;
            for run in &mut runs {
                if !aim_with_second(&self.repeat, &store, run, self.aim)? {
                    return Ok(ExitStatus::Incomplete);
                }
            }
        }
        bound.reached = reached(&runs);
        self.output.show(
            "delays",
            || bound_json(&runs, &bound),
            || bound_text(&runs, &bound, output::text_width()),
            || Ok(bound_page(&runs, &bound)),
        )?;
        Ok(ExitStatus::Done)
    }
}

/// The latest known aimed sample of these runs.
fn reached(runs: &[Run]) -> Option<Observed> {
    let all = runs.iter().flat_map(|run| {
        run.recordings.iter().filter_map(|recording| {
            let known = run.arrivals_of(recording)?;
            let alone = known.reached.map(|late| (late, known.reached_parts, None));
            let second = known.with_second;
            let second = second.map(|one| (one.late, one.parts, Some(one.behind)));
            let (late, parts, second) = alone.into_iter().chain(second).max_by_key(|one| one.0)?;
            Some(Observed {
                run: run.id.clone(),
                recording: recording.title(),
                late,
                parts,
                second,
            })
        })
    });
    all.max_by_key(|one| one.late)
}

/// Refuses runs of two kernels, whose delays do not add up to anything.
fn of_one_subject(runs: &[Run]) -> Result<()> {
    let differs = |run: &&Run| {
        let (one, other) = (&run.subject, &runs[0].subject);
        (&one.kernel, &one.boot) != (&other.kernel, &other.boot)
    };
    let Some(other) = runs.iter().find(differs) else {
        return Ok(());
    };
    let told = |run: &Run| format!("{} ({} {})", run.id, run.subject.kernel, run.subject.boot);
    let (one, other) = (told(&runs[0]), told(other));
    let expected = format!("expected runs of one kernel, found {one} and {other}");
    Err(UsageError(expected).into())
}

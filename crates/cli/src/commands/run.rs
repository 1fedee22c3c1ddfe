// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual run`: a suite on its subjects.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_model::place::FAULT_PLACES;
use punctual_model::recording::ENDED_BY;
use punctual_model::run::State;
use punctual_model::{Fact, Run as Measured};
use punctual_runner::Results;

use super::measure::MeasureArgs;
use super::measure::what::WhatArgs;
use super::trace_args::{self, TraceArgs};
use crate::hints::store_option;
use crate::output::say;
use crate::{ExitStatus, output};

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
  punctual run --program './loop --rate 1000' --load stress --subject rt
  sudo punctual run demo --bench host --cpus 2,3
  punctual run demo --bench ssh:root@board
  punctual run --probe timer --duration 12h --bench ssh:board:/data --resume
  punctual run --probe irq --bench ssh:root@board --build-modules
  punctual run --probe packet -p kind=udp --bench host --peer ssh:root@board
  punctual run demo --bench labgrid:rack1 --power-cycle
  sudo punctual run demo --bench host --stop-above 200us

A suite is a TOML file: copy one of `punctual list suites`. A load is one, too:
  summary = \"make a kernel\"
  [[worker]]
  run = [\"make\", \"-C\", \"/usr/src/linux\"]
  unit = \"lines\"
  count = \"lines\"
A step names it by `load = \"./mine.toml\"`, from the suite's directory, or a
suite has it as [load.mine]. Files in ~/.config/punctual/loads are known by
name.

Exit status: 0 all was measured; 1 a run has failed; 2 the command line is
wrong; 3 something was unsupported, a program crashed or failed, or Ctrl-C has
ended it.";

/// Run a suite on its subjects, or on the kernels named
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    what: WhatArgs,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    trace: TraceArgs,
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
}

impl Run {
    /// Runs the command.
    pub fn run(mut self) -> Result<ExitStatus> {
        self.measure.tracing = self.trace.tracing();
        self.measure.check()?;
        output::check_file(self.report.as_deref())?;
        output::check_directory(self.data.as_deref())?;
        let suite = self.measure.suite(&self.what)?;
        let plans = self.measure.plans(&suite, None)?;
        let prepared = self.measure.prepare(&self.what, &suite)?;
        self.show(prepared.measure_anyway(&plans)?)
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
            let ids = ids.join(" ") + &store_option();
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
        trace_args::tell(runs);
        tell_of_faults(runs);
        self.tell_of_interruption(&results);
        if let Some(error) = results.unstored {
            return Err(error).context("what is shown could not be stored");
        }
        let failed = runs.iter().any(|run| run.state == State::Failed);
        let cut_short = tell_of_cut_short(runs);
        let whole = results.left == 0 && runs.iter().all(Measured::is_whole) && !cut_short;
        Ok(match (failed, whole) {
            (true, _) => ExitStatus::Error,
            (false, false) => ExitStatus::Incomplete,
            (false, true) => ExitStatus::Done,
        })
    }

    fn tell_of_interruption(&self, results: &Results) {
        if !results.is_interrupted() {
            return;
        }
        // The id of a pooled one is that of its first run, which may have been finished.
        let is_own = |run: &&Measured| run.state == State::Interrupted && run.shards == 1;
        let own = results.runs.iter().filter(is_own);
        let own: Vec<&str> = own.map(|run| run.id.as_str()).collect();
        say!("{}", interruption(&own, results.left, self.measure.resume));
    }
}

/// The message after an interruption of these runs, and how to go on.
fn interruption(ids: &[&str], left: usize, is_resumed: bool) -> String {
    let kept = match ids {
        [] => String::new(),
        [id] => format!(": {id} keeps what it measured"),
        ids => format!(": {} keep what they measured", ids.join(", ")),
    };
    let left = match left {
        0 => String::new(),
        1 => "; 1 run was not begun".to_owned(),
        left => format!("; {left} runs were not begun"),
    };
    let again = if is_resumed {
        "The same command"
    } else {
        "--resume"
    };
    format!(
        "punctual: interrupted{kept}{left}. {again} skips finished runs only: an interrupted one \
         is measured anew from its beginning"
    )
}

/// Prints how to get the source lines of a program's faults.
fn tell_of_faults(runs: &[Measured]) {
    let has_some = |run: &&Measured| {
        let mut recordings = run.recordings.iter();
        run.is_virtual() && recordings.any(|one| one.findings.contains_key(FAULT_PLACES))
    };
    if let Some(run) = runs.iter().find(has_some) {
        let id = run.id.clone() + &store_option();
        say!("`punctual explain {id} --faults` names the lines of the faults in its design");
    }
}

/// Prints the programs that did not reach the end of their step, and why; returns true if there
/// were any.
fn tell_of_cut_short(runs: &[Measured]) -> bool {
    let mut told: Vec<String> = Vec::new();
    for run in runs.iter().filter(|run| run.state == State::Finished) {
        for recording in run.recordings.iter().filter(|one| one.interrupted) {
            let Some(why) = recording.settings.get(ENDED_BY).and_then(Fact::text) else {
                continue;
            };
            let (id, key) = (&run.id, &recording.key);
            let line = format!("punctual: {id}: {} / {}: {why}", key.probe, key.load);
            if !told.contains(&line) {
                told.push(line);
            }
        }
    }
    told.iter().for_each(|line| say!("{line}"));
    !told.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_interrupts_a_run_reads_that_it_is_measured_anew() {
        let anew = "skips finished runs only: an interrupted one is measured anew from its \
                    beginning";
        assert_eq!(
            interruption(&["r23"], 0, false),
            format!("punctual: interrupted: r23 keeps what it measured. --resume {anew}")
        );
        assert_eq!(
            interruption(&["r2", "r3"], 1, true),
            format!(
                "punctual: interrupted: r2, r3 keep what they measured; 1 run was not begun. The \
                 same command {anew}"
            )
        );
        assert_eq!(
            interruption(&[], 2, false),
            format!("punctual: interrupted; 2 runs were not begun. --resume {anew}")
        );
    }
}

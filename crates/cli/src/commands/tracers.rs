// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual tracers`: the cost of the kernel's tracers, and their correctness.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Args;
use punctual_judge::fate;
use punctual_model::capture::{TRACER, Tracer, Tracing};
use punctual_model::run::State;
use punctual_model::{Fact, Nanos, Recording, RecordingKey, Run};
use punctual_report::scope::Story;
use punctual_report::tracers::{Told, Traced, tracers_json, tracers_text};

use super::StoreArgs;
use super::measure::MeasureArgs;
use super::measure::number_args::{Seeds, parse_seeds};
use super::measure::what::WhatArgs;
use super::replay_args::ReplayArgs;
use crate::output::say;
use crate::scale_args::parse_lateness;
use crate::{ExitStatus, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual tracers
  punctual tracers --kernel mine --load hackbench --above 80us
  punctual tracers --tracer events --tracer osnoise --seeds 1..5 --json

docs/method/tracers.md has the table, and stories in which a tracer misleads.

Exit status: 0 reported; 3 a run was not measured to its end, or Ctrl-C has
ended it; 1 an error; 2 a wrong request.";

/// The number of samples of each run that are followed for the cost of each stage.
const FOLLOWED: u64 = 25;

/// Tell what the kernel's tracers cost, and how often their story names the same
/// culprit as the scope's, on the virtual bench
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Tracers {
    /// On this kernel (may be repeated) [default: debian-6.12 and debian-6.12-rt]
    #[arg(long, value_name = "ID")]
    kernel: Vec<String>,
    /// Only this tracer (may be repeated) [default: all]
    #[arg(long, value_name = "TRACER")]
    tracer: Vec<Tracer>,
    /// Measure under this load
    #[arg(long, value_name = "LOAD", default_value = "stress")]
    load: String,
    /// So many samples in each run
    #[arg(long, value_name = "N", default_value_t = 400)]
    samples: u64,
    /// Each new worst sample above this is caught
    #[arg(long, value_name = "TIME", default_value = "30us", value_parser = parse_lateness)]
    above: Nanos,
    /// Run these seeds: `1..5` is five runs (5 included), `1,2,7` three, `5` only seed 5
    #[arg(long, value_name = "SEEDS", default_value = "1..2", value_parser = parse_seeds)]
    seeds: Seeds,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Tracers {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let cancel = interrupt::flag()?;
        self.seeds.tell(self.quiet);
        let tracers = if self.tracer.is_empty() {
            Tracer::ALL.to_vec()
        } else {
            self.tracer.clone()
        };
        let (mut all, mut is_whole) = (Vec::new(), true);
        for tracer in std::iter::once(None).chain(tracers.into_iter().map(Some)) {
            let Some(runs) = self.measure(tracer)? else {
                return Ok(ExitStatus::Incomplete);
            };
            for run in runs {
                is_whole &= unmeasured(&run).is_none();
                let Some(traced) = self.traced(run, tracer, cancel) else {
                    return Ok(ExitStatus::Incomplete);
                };
                all.push(traced);
            }
        }
        if self.json {
            output::print_json(&tracers_json(&all))?;
        } else {
            output::print(&tracers_text(&all, output::text_width()))?;
        }
        Ok(if is_whole {
            ExitStatus::Done
        } else {
            ExitStatus::Incomplete
        })
    }

    /// The runs of each kernel with a tracer; `None` if Ctrl-C has ended it.
    fn measure(&self, tracer: Option<Tracer>) -> Result<Option<Vec<Run>>> {
        let mut kernels = self.kernel.clone();
        if kernels.is_empty() {
            kernels = ["debian-6.12", "debian-6.12-rt"]
                .map(str::to_owned)
                .to_vec();
        }
        let mut measure = MeasureArgs::of_subjects(kernels, Vec::new(), self.quiet, &self.store);
        measure.tracing = tracer.map(|tracer| Tracing {
            above: Some(self.above),
            stop: false,
            tracer,
        });
        let what = WhatArgs::of_timer(&self.load, self.samples, None);
        let suite = measure.suite(&what)?;
        let plans = measure.plans_of(&suite, &self.seeds.all)?;
        let results = measure.prepare(&what, &suite)?.measure(&plans)?;
        if results.is_interrupted() {
            say!("punctual: interrupted: no result yet; the same command measures the rest");
            return Ok(None);
        }
        Ok(Some(results.runs))
    }

    /// A run with the scope's view of it. `None` if Ctrl-C has ended it.
    fn traced(&self, run: Run, tracer: Option<Tracer>, cancel: &AtomicBool) -> Option<Traced> {
        let found = Traced {
            tracer,
            absent: unmeasured(&run).or_else(|| absent(&run)),
            followed: Vec::new(),
            told: Vec::new(),
            run,
        };
        let Some(recording) = found.run.recordings.first() else {
            return Some(found);
        };
        let step = (recording.count / FOLLOWED).max(1);
        let even = (0..recording.count).step_by(step as usize);
        let caught = recording.captures.iter().map(|capture| capture.sample.seq);
        let followed = even.clone().count();
        let samples: Vec<(&RecordingKey, u64)> = even
            .chain(caught)
            .map(|seq| (&recording.key, seq))
            .collect();
        if found.absent.is_some() {
            return Some(found);
        }
        let stories = ReplayArgs::quiet(self.quiet).stories(&found.run, &samples, cancel)?;
        let mut stories = stories.into_iter();
        let even: Vec<Story> = stories.by_ref().take(followed).collect();
        let pairs = recording.captures.iter().zip(stories);
        let told = pairs.map(|(capture, truth)| Told {
            seq: capture.sample.seq,
            truth,
            tracer: punctual_scope::captured::breakdown(&found.run, recording, capture),
        });
        let told = told.collect();
        Some(Traced {
            followed: even,
            told,
            ..found
        })
    }
}

/// The reason why a run is not measured to its end, if it is not.
fn unmeasured(run: &Run) -> Option<String> {
    let why = if run.state == State::Finished {
        let unsupported = run.unsupported.first();
        let unsupported = unsupported.map(|one| {
            let (probe, load) = (&one.probe, &one.load);
            format!("{probe} / {load} could not be measured: {}", one.reason)
        });
        let mut recordings = run.recordings.iter();
        let nothing = || {
            let is_empty = run.recordings.is_empty();
            is_empty.then(|| "nothing was measured".to_owned())
        };
        unsupported
            .or_else(|| recordings.find_map(Recording::interruption))
            .or_else(nothing)?
    } else {
        fate(run)
    };
    Some(format!("{} (seed {}): {why}", run.id, run.seed))
}

/// The reason why there was no tracer, if one was asked for.
fn absent(run: &Run) -> Option<String> {
    let recordings = run.recordings.first();
    match recordings.and_then(|recording| recording.settings.get(TRACER)) {
        Some(Fact::Unknown { unknown }) => Some(unknown.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_not_measured_to_its_end_has_no_figures() {
        let run = |state: &str, unsupported: serde_json::Value| -> Run {
            let run = serde_json::json!({
                "id": "r1", "suite": "timer", "seed": 2, "plan": "",
                "subject": { "name": "k", "kernel": "k", "boot": "", "bench": "virtual" },
                "state": state, "error": null, "started": "", "punctual": "0.1.0",
                "machine": punctual_model::MachineRecord::default(),
                "shards": 1, "steps": [], "recordings": [], "unsupported": unsupported,
                "console": "",
            });
            serde_json::from_value(run).unwrap()
        };
        let none = || serde_json::json!([]);
        let empty = unmeasured(&run("finished", none()));
        assert_eq!(empty.as_deref(), Some("r1 (seed 2): nothing was measured"));
        let failed = unmeasured(&run("failed", none()));
        assert_eq!(failed.as_deref(), Some("r1 (seed 2): the run failed"));
        let reason = punctual_model::Reason::not_loaded(
            "stress",
            punctual_model::NotLoaded::Failed,
            "exit status: 127",
        );
        let unsupported = serde_json::json!([
            { "step": 0, "probe": "timer", "load": "stress", "reason": reason },
        ]);
        let told = unmeasured(&run("finished", unsupported)).unwrap();
        assert!(
            told.contains("timer / stress could not be measured"),
            "{told}"
        );
    }
}

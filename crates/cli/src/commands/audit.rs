// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual audit`: what reached CPUs that were to be left alone, and from where?

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use punctual_model::Run;
use punctual_report::scope::audit::{Audited, audit_json, audit_page, audit_text};
use punctual_scope::audit::audit;
use punctual_scope::explain::Wanted;

use super::StoreArgs;
use super::replay_args::ReplayArgs;
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual run isolation --seeds 1           says which runs it has made
  punctual audit r1 r6                       not isolated, and isolated
  punctual audit r6 --load idle --json

docs/method/isolation.md has what came of it.";

/// List all that interrupted threads which were to be left alone (probes noise
/// and tick), and which CPU and thread sent it: runs are lived through again,
/// every instruction watched
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Audit {
    /// The runs; the newest where none is named
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Only what this probe has measured
    #[arg(long, value_name = "NAME")]
    probe: Option<String>,
    /// Only under this load
    #[arg(long, value_name = "NAME")]
    load: Option<String>,
    /// Only this variant: of noise, a CPU, as cpu1
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a page (HTML, one file) to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    repeat: ReplayArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl Audit {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        output::check_file(self.report.as_deref())?;
        let runs = self.store.load(&self.runs)?;
        let wanted = Wanted {
            probe: self.probe.clone(),
            load: self.load.clone(),
            variant: self.variant.clone(),
            sample: None,
            worst: usize::MAX,
        };
        let cancel = interrupt::flag()?;
        let chosen: Vec<Vec<usize>> = runs
            .iter()
            .map(|run| recordings(run, &wanted))
            .collect::<Result<_>>()?;
        let mut audited: Vec<Audited> = Vec::new();
        let mut status = ExitStatus::Done;
        for (run, recordings) in runs.into_iter().zip(chosen) {
            let samples = wanted.gaps(&run)?;
            let explained = if samples.is_empty() {
                Some(Vec::new())
            } else {
                self.repeat.explain(&run, &samples, cancel)?
            };
            // What was told of the runs before is kept.
            let Some(explained) = explained else {
                status = ExitStatus::Incomplete;
                break;
            };
            let audits = recordings
                .into_iter()
                .map(|number| audit(number, &explained));
            audited.push((run, audits.collect()));
        }
        if audited
            .iter()
            .flat_map(|(_, all)| all)
            .any(|one| !one.untold.is_empty())
        {
            status = ExitStatus::Incomplete;
        }
        if audited.is_empty() {
            return Ok(status);
        }
        if self.json {
            output::print_json(&audit_json(&audited))?;
        } else {
            output::print(&audit_text(&audited, output::text_width()))?;
        }
        if let Some(path) = &self.report {
            output::write_page(&audit_page(&audited), path)?;
        }
        Ok(status)
    }
}

/// The numbers of a run's recordings of interruptions that are meant; an error where there is none.
fn recordings(run: &Run, wanted: &Wanted) -> Result<Vec<usize>> {
    let found = wanted.gap_recordings(run);
    if found.is_empty() {
        let id = &run.id;
        let expected = format!(
            "expected a run with a recording of interruptions (probe noise or tick) that is \
             meant, found none in {id}: `punctual show {id}` lists what it has"
        );
        return Err(UsageError(expected).into());
    }
    Ok(found)
}

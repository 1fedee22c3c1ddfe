// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual audit`: finds what reached CPUs that were to be left alone, and its source.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::Args;
use punctual_model::Run;
use punctual_report::scope::audit::{Audited, audit_json, audit_page, audit_text};
use punctual_scope::audit;
use punctual_scope::explain::Wanted;

use super::StoreArgs;
use super::output_args::OutputArgs;
use super::replay_args::ReplayArgs;
use super::sample_args::SampleArgs;
use crate::hints::store_option;
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual run isolation --seeds 1  # says which runs it has made
  punctual audit r1 r6              # not isolated, and isolated
  punctual audit r6 --load idle --json

docs/method/isolation.md has such a list, and what to do about it.

Exit status: 0 all senders are known; 3 one is not, or Ctrl-C has ended it; 1 an
error; 2 a wrong request.";

/// List what interrupted threads that should run undisturbed (probes noise and
/// tick), and which CPU and thread sent it: Punctual repeats the runs and
/// watches each instruction
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Audit {
    /// The runs; the newest where none is named
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    samples: SampleArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    repeat: ReplayArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl Audit {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        self.output.check()?;
        let runs = self.store.load(&self.runs)?;
        let wanted = self.samples.wanted(None, usize::MAX);
        // Before any of them is repeated.
        for run in &runs {
            check(run, &wanted)?;
        }
        let cancel = interrupt::flag()?;
        let mut audited: Vec<Audited> = Vec::new();
        let mut is_whole = true;
        for run in runs {
            // What was told of the runs before is kept.
            let Some(audits) = self.audits(&run, &wanted, cancel)? else {
                is_whole = false;
                break;
            };
            is_whole &= audits.iter().all(|one| one.untold.is_empty());
            audited.push((run, audits));
        }
        if !audited.is_empty() {
            self.show(&audited)?;
        }
        Ok(if is_whole {
            ExitStatus::Done
        } else {
            ExitStatus::Incomplete
        })
    }

    /// The audits of the chosen recordings of a run; `None` if Ctrl-C has ended it.
    fn audits(
        &self,
        run: &Run,
        wanted: &Wanted,
        cancel: &AtomicBool,
    ) -> Result<Option<Vec<audit::Audit>>> {
        let gaps = wanted.gaps(run)?;
        let explained = if gaps.is_empty() {
            Some(Vec::new())
        } else {
            self.repeat.explain(run, &gaps, cancel)?
        };
        let of = |explained: Vec<_>| {
            let recordings = wanted.gap_recordings(run).into_iter();
            recordings
                .map(|number| audit::audit(number, &explained))
                .collect()
        };
        Ok(explained.map(of))
    }

    fn show(&self, audited: &[Audited]) -> Result<()> {
        self.output.show(
            "runs.recordings.came_in",
            || audit_json(audited),
            || audit_text(audited, output::text_width()),
            || Ok(audit_page(audited)),
        )
    }
}

/// Checks that a run has a chosen recording of interruptions.
fn check(run: &Run, wanted: &Wanted) -> Result<()> {
    if !wanted.gap_recordings(run).is_empty() {
        return Ok(());
    }
    let id = &run.id;
    let of = store_option();
    let has_others = !Wanted::default().gap_recordings(run).is_empty();
    let expected = if has_others {
        format!(
            "expected a measurement by the probe noise or tick that the options name, found none \
             in {id}: `punctual show {id}{of}` lists what it has"
        )
    } else {
        format!(
            "audit needs a run with the probe noise or tick, found none in {id}: `punctual run \
             isolation --seeds 1` makes such runs"
        )
    };
    Err(UsageError(expected).into())
}

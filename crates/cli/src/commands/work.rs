// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual work`: one run of a campaign, on a node of a cluster. Job scripts call it.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_bench::system::SystemUnderTest as _;
use punctual_bench::virtual_bench::VirtualSystem;
use punctual_model::run::State;
use punctual_model::suite::SubjectSpec;
use punctual_model::{Plan, Run};
use punctual_runner::campaign::{key, slurm};
use punctual_runner::{Job, Runner};
use punctual_store::Store;

use super::export;
use super::replay_args::ReplayArgs;
use crate::output::say;
use crate::progress::Progress;
use crate::{ExitStatus, interrupt};

/// Measure one run of a campaign on a node of a cluster: for job scripts
#[derive(Debug, Args)]
pub struct Work {
    /// The directory that the nodes share
    directory: PathBuf,
    /// The job array's name
    batch: String,
    /// The task's number in it
    index: usize,
}

impl Work {
    /// Does it. What it delivers is there as a whole or not at all.
    pub fn run(self) -> Result<ExitStatus> {
        let (own, planned) = slurm::task(&self.directory, &self.batch, self.index)?;
        let (subject, seed) = (&planned.subject.name, planned.seed);
        say!("{own}: {}, {subject}, seed {seed}", planned.suite);
        let (place, machine) = ReplayArgs::quiet(true).machine(&planned)?;
        let system = VirtualSystem {
            bench: place.bench,
            machine,
            start: place.start,
        };
        if system.machine() != planned.machine {
            let found = system.machine();
            let then = &planned.machine;
            anyhow::bail!("expected the machine {then:?}, found that this node makes {found:?}");
        }
        let run = measured(&planned, &system)?;
        say!(
            "{own}: {}, {:.12}",
            run.state,
            run.digest().unwrap_or_default()
        );
        if run.state == State::Interrupted {
            return Ok(ExitStatus::Incomplete);
        }
        let found = key(&run);
        anyhow::ensure!(
            found == own,
            "expected the run {own}, found that it became {found}"
        );
        let result = slurm::result(&self.directory, &own);
        export::write(&result, std::iter::once(Ok(run)))?;
        Ok(ExitStatus::Done)
    }
}

/// The run, made; it goes through a store of its own that nobody else sees.
fn measured(planned: &Run, system: &VirtualSystem) -> Result<Run> {
    let scratch = tempfile::tempdir().context("a temporary directory")?;
    let store = Store::open(&scratch.path().join("runs.db"))?;
    let subject = SubjectSpec {
        name: planned.subject.name.clone(),
        kernel: planned.subject.kernel.clone(),
        boot: planned.subject.boot.clone(),
    };
    let plan: Plan = toml::from_str(&planned.plan)?;
    let progress = Progress::new(std::iter::once(&plan), true, 1, false);
    let job = Job {
        group: 0,
        suite: &planned.suite,
        subject: &subject,
        system,
        plan: plan.clone(),
        request: planned.request.clone(),
    };
    let runner = Runner {
        store: &store,
        observer: &progress,
        cancel: interrupt::flag()?,
        resume: false,
    };
    let results = runner.carry_out(&[job], 1)?;
    if let Some(error) = results.unstored {
        return Err(error.into());
    }
    let made = results.runs.into_iter().next();
    made.context("it was ended before it began")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual work`: one run of a campaign, on a node of a cluster. Job scripts call it.

use std::env;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_bench::RunError;
use punctual_bench::system::{Event, RunEnding, SystemUnderTest as _};
use punctual_bench::virtual_bench::{Error as VirtualError, VirtualSystem};
use punctual_kernels::paths::write_atomically;
use punctual_model::run::State;
use punctual_model::suite::SubjectSpec;
use punctual_model::{Plan, Run};
use punctual_runner::campaign::key;
use punctual_runner::campaign::slurm::{self, Times};
use punctual_runner::{Job, Observer, Runner};
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
    /// Runs the command. Its result is delivered as a whole or not at all.
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
        let (run, guest) = measured(&planned, &system)?;
        let digest = run.digest().map(|digest| format!("{digest:.12}"));
        let digest = digest.unwrap_or_else(|| format!("digest {}", run.digest_or_why()));
        say!("{own}: {}, {digest}", run.state);
        if run.state == State::Interrupted {
            return Ok(ExitStatus::Incomplete);
        }
        let found = key(&run);
        anyhow::ensure!(
            found == own,
            "expected the run {own}, found that it became {found}"
        );
        let result = slurm::result(&self.directory, &own);
        if let Some(begun) = begun() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
            let times = Times {
                guest_s: guest.as_secs_f64(),
                allocated_s: now - begun,
            };
            let path = slurm::times(&self.directory, &own);
            write_atomically(&path, &serde_json::to_vec(&times)?)
                .with_context(|| path.display().to_string())?;
        }
        export::write(&result, std::iter::once(Ok(run)), Vec::new())?;
        Ok(ExitStatus::Done)
    }
}

/// The time at which the script of this task began, in seconds since 1970.
fn begun() -> Option<f64> {
    env::var("PUNCTUAL_BEGUN").ok()?.trim().parse().ok()
}

/// Shows progress, and records how long the guest ran.
struct Watch {
    progress: Progress,
    guest: Mutex<Duration>,
    /// The reason why this node could not measure, if it is none of the guest.
    of_node: Mutex<Option<String>>,
}

impl Observer for Watch {
    fn begun(&self, run: &Run, plan: &Plan) {
        self.progress.begun(run, plan);
    }

    fn event(&self, run: &Run, event: &Event) {
        self.progress.event(run, event);
    }

    fn ended(&self, run: &Run, ending: &RunEnding) {
        *self.guest.lock().unwrap_or_else(PoisonError::into_inner) = ending.measuring;
        // A kernel that resets its machine at once is no fault of the node.
        let is_mute = |error: &RunError| matches!(error.of_bench(), Some(VirtualError::Mute));
        let error = ending.result.as_ref().err().filter(|error| !is_mute(error));
        if let Some(error @ (RunError::Bench(_) | RunError::Stopped(_))) = error {
            let mut of_node = self.of_node.lock().unwrap_or_else(PoisonError::into_inner);
            *of_node = Some(error.to_string());
        }
        self.progress.ended(run, ending);
    }
}

/// Makes the run; returns it with the time for which its guest ran. It goes through a store of its
/// own that nobody else sees.
fn measured(planned: &Run, system: &VirtualSystem) -> Result<(Run, Duration)> {
    let scratch = tempfile::tempdir().context("a temporary directory")?;
    let store = Store::open(&scratch.path().join("runs.db"))?;
    let subject = SubjectSpec {
        name: planned.subject.name.clone(),
        kernel: planned.subject.kernel.clone(),
        boot: planned.subject.boot.clone(),
    };
    let plan: Plan = toml::from_str(&planned.plan)?;
    let watch = Watch {
        progress: Progress::new(std::iter::once(&plan), true, 1, false),
        guest: Mutex::default(),
        of_node: Mutex::default(),
    };
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
        observer: &watch,
        cancel: interrupt::flag()?,
        resume: false,
    };
    let results = runner.carry_out(&[job], 1)?;
    if let Some(error) = results.unstored {
        return Err(error.into());
    }
    // Nothing is delivered, so that another node measures it.
    let of_node = watch.of_node.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = &*of_node {
        anyhow::bail!("this node could not measure: {why}");
    }
    let made = results.runs.into_iter().next();
    let made = made.context("it was ended before it began")?;
    let guest = *watch.guest.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((made, guest))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel of a commit: built before it is judged, with the exit status that `git bisect run`
//! takes. `judge` and `gate` share it.

use std::sync::atomic::Ordering;

use anyhow::Result;
use clap::Args;
use punctual_judge::Fitness;
use punctual_kernels::build::BuildError;

use super::build_args::{BuildArgs, made};
use super::measure::MeasureArgs;
use crate::output::say;
use crate::{ExitStatus, UsageError, interrupt};

/// A kernel that is built before it is judged.
#[derive(Debug, Args)]
pub struct CommitArgs {
    /// Build the kernel that is judged from this source first, as `punctual kernel build`
    /// does: a directory, or a package such as linux-source-6.12
    #[arg(long, value_name = "DIR|PACKAGE", conflicts_with_all = ["kernel", "subject", "bench"])]
    build: Option<String>,
    #[command(flatten)]
    args: BuildArgs,
    /// End with the exit status that `git bisect run` understands: 0 good, 4 bad, 125
    /// undecided (skip this commit), 128 an error (end the bisection)
    #[arg(long)]
    git_bisect: bool,
}

impl CommitArgs {
    /// The source to build, if there is one.
    ///
    /// # Errors
    /// If options of a build are given without a source.
    pub fn source(&self) -> Result<Option<String>, UsageError> {
        if self.build.is_none() && self.args.is_some() {
            let wrong = "--config, --set and --full are for a kernel that is built: name its \
                         source (--build DIR)";
            return Err(UsageError(wrong.into()));
        }
        Ok(self.build.clone())
    }

    /// Returns true if the exit status is for `git bisect run`.
    pub fn is_for_git(&self) -> bool {
        self.git_bisect
    }

    /// Builds the kernel, and makes it the one to measure; returns false if Ctrl-C came.
    pub fn build(&self, source: String, measure: &mut MeasureArgs) -> Result<bool> {
        let Some(built) = made(&self.args.clone().order(source))? else {
            return Ok(false);
        };
        let kernel = built.kernel;
        if !measure.quiet {
            say!(
                "{}: Linux {}, {}",
                kernel.id,
                kernel.release,
                built.record.described
            );
        }
        measure.take(vec![kernel.id]);
        Ok(true)
    }

    /// Returns the exit status for `git bisect run`. `work` builds and judges; it returns `None` if
    /// Ctrl-C came.
    /// An error must not look like a bad commit, nor an interrupted run like one to skip.
    pub fn ended(work: impl FnOnce() -> Result<Option<Fitness>>) -> Result<ExitStatus> {
        let told = work();
        let is_interrupted = interrupt::flag()?.load(Ordering::SeqCst);
        Ok(match told {
            Ok(None) => ExitStatus::GitEnd,
            Ok(_) if is_interrupted => ExitStatus::GitEnd,
            Ok(Some(Fitness::Fit)) => ExitStatus::Done,
            Ok(Some(Fitness::Unfit)) => ExitStatus::Unfit,
            Ok(Some(Fitness::Undecided)) => {
                say!("this commit is undecided: it is skipped");
                ExitStatus::GitSkip
            }
            Err(error) => {
                crate::tell(&error);
                let is_of_commit = error.downcast_ref().is_some_and(BuildError::is_of_source);
                if is_of_commit && !is_interrupted {
                    say!("this commit does not build: it is skipped");
                    return Ok(ExitStatus::GitSkip);
                }
                ExitStatus::GitEnd
            }
        })
    }
}

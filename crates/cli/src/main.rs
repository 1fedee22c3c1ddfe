// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program on the workstation side. See `punctual --help`.
#![forbid(unsafe_code)]

mod commands;
mod hints;
mod interrupt;
#[cfg_attr(not(feature = "live"), path = "no_live.rs")]
mod live;
mod output;
mod progress;
mod scale_args;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use punctual_bench::ssh;
use punctual_kernels::KernelError;
use punctual_kernels::build::BuildError;
use punctual_report::text::{clean, clean_lines};
use punctual_runner as runner;
use punctual_scope::error::ScopeError;
use punctual_store::StoreError;

use commands::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(status) => ExitCode::from(status as u8),
        Err(error) => {
            tell(&error);
            ExitCode::from(status(&error) as u8)
        }
    }
}

/// Says what went wrong, and what helps. Where standard error is closed nobody wants to know.
fn tell(error: &anyhow::Error) {
    let hint = hints::of_command(error);
    // A stranger's file may be quoted in it. What a build has said has lines of its own.
    let causes = error.chain().map(|cause| {
        let of = if cause.is::<BuildError>() {
            clean_lines
        } else {
            clean
        };
        of(&cause.to_string())
    });
    let causes: Vec<String> = causes.collect();
    let said = causes.join(": ");
    _ = writeln!(io::stderr(), "punctual: {said}{}", clean_lines(&hint));
}

/// An error in what was asked for is the user's, and so is Ctrl-C; all others are not.
fn status(error: &anyhow::Error) -> ExitStatus {
    let is_usage = error.chain().any(|cause| {
        let of_runner = cause.downcast_ref().is_some_and(runner::Error::is_request);
        let of_kernels = cause.downcast_ref().is_some_and(KernelError::is_request);
        let of_builds = cause.downcast_ref().is_some_and(BuildError::is_request);
        let of_store = cause.downcast_ref().is_some_and(StoreError::is_request);
        let of_scope = matches!(
            cause.downcast_ref(),
            Some(ScopeError::NoSuch(..) | ScopeError::NotTold(..))
        );
        cause.is::<UsageError>() || of_scope || of_runner || of_kernels || of_builds || of_store
    });
    let is_interrupted = error
        .chain()
        .any(|cause| matches!(cause.downcast_ref(), Some(ssh::Error::Interrupted)));
    match (is_usage, is_interrupted) {
        (true, _) => ExitStatus::Usage,
        (false, true) => ExitStatus::Incomplete,
        (false, false) => ExitStatus::Error,
    }
}

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitStatus {
    /// All that was asked for was measured, or done.
    Done = 0,
    /// Something failed.
    Error = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Measured, but something was unsupported or interrupted.
    Incomplete = 3,
    /// A limit is broken.
    Unfit = 4,
    /// No limit is broken, and one cannot be decided.
    Undecided = 5,
    /// For `git bisect run`: this commit cannot be told.
    GitSkip = 125,
    /// For `git bisect run`: end the bisection.
    GitEnd = 128,
}

impl ExitStatus {
    /// For the kernel's selftests (`--ktap`), whose 4 is a test that was skipped.
    const KSFT_SKIP: Self = Self::Unfit;
}

/// The command line asks for something that does not exist.
#[derive(Debug)]
struct UsageError(String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

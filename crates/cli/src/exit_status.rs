// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exit statuses: `docs/exit-status.md` says what they mean for each command.

use punctual_bench::{RunError, ssh};
use punctual_kernels::KernelError;
use punctual_kernels::build::BuildError;
use punctual_runner as runner;
use punctual_scope::error::ScopeError;
use punctual_store::StoreError;

use crate::UsageError;

/// The exit status of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Everything that was asked for was measured, or done.
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
    /// For `git bisect run`: this commit cannot be judged.
    GitSkip = 125,
    /// For `git bisect run`: end the bisection.
    GitEnd = 128,
}

impl ExitStatus {
    /// For the kernel's selftests (`--ktap`), whose 4 is a skipped test.
    pub const KSFT_SKIP: Self = Self::Unfit;
}

/// The exit status of an error: errors in the request are the user's, and so is Ctrl-C; others are
/// not.
pub fn status(error: &anyhow::Error) -> ExitStatus {
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
    let is_interrupted = error.chain().any(|cause| {
        let of_board = matches!(cause.downcast_ref(), Some(ssh::Error::Interrupted));
        let of_runner = matches!(
            cause.downcast_ref(),
            Some(runner::Error::Board(ssh::Error::Interrupted))
        );
        let of_scope = matches!(
            cause.downcast_ref(),
            Some(ScopeError::Run(RunError::Interrupted))
        );
        of_board || of_runner || of_scope
    });
    match (is_usage, is_interrupted) {
        (true, _) => ExitStatus::Usage,
        (false, true) => ExitStatus::Incomplete,
        (false, false) => ExitStatus::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_is_no_failure_whoever_reports_it() {
        for error in [
            anyhow::Error::from(ssh::Error::Interrupted),
            runner::Error::Board(ssh::Error::Interrupted).into(),
            ScopeError::Run(RunError::Interrupted).into(),
        ] {
            assert_eq!(status(&error), ExitStatus::Incomplete, "{error}");
            let passed_on = error.context("the place of its sample");
            assert_eq!(status(&passed_on), ExitStatus::Incomplete, "{passed_on}");
        }
        let failed = ScopeError::Run(RunError::Silent(9)).into();
        assert_eq!(status(&failed), ExitStatus::Error);
    }
}

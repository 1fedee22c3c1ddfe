// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a user can do about an error, with the options that help.

use punctual_bench::RunError;
use punctual_bench::virtual_bench::Error;

/// What helps after a run has ended with this error; empty where nothing is known to.
pub fn of_run(error: &RunError) -> &'static str {
    match (error, error.of_bench()) {
        (RunError::Silent(_), _) => " (allow more with --patience)",
        (_, Some(Error::Mute)) => " (--memory gives it more)",
        (_, Some(Error::Snapshot(_))) => {
            " (`punctual cache prune` makes room, --cold does without)"
        }
        _ => "",
    }
}

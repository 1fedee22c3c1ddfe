//! What a user can do about an error, with the options that help.

use punctual_bench::BenchError;

/// What helps after a run has ended with this error; empty where nothing is known to.
pub fn of_run(error: &BenchError) -> &'static str {
    match error {
        BenchError::Silent(_) => {
            " (if its step takes longer than that, allow more with --patience)"
        }
        BenchError::Mute => " (--memory gives it more)",
        BenchError::Snapshot(_) => " (`punctual cache prune` makes room, --cold does without)",
        _ => "",
    }
}

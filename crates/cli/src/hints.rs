// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remedies for errors, with the options that help.

use punctual_bench::RunError;
use punctual_bench::virtual_bench::Error;
use punctual_kernels::{AptError, KernelError};
use punctual_runner as runner;
use punctual_store::StoreError;

/// The remedy after a run has ended with this error; empty if none is known.
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

/// The remedy for the error that has ended a command; empty if none is known.
pub fn of_command(error: &anyhow::Error) -> String {
    let hint = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(runner::Error::Kernel(error)) => of_kernel(error),
        Some(runner::Error::UnknownKernel { id, .. }) => Some(of_unknown_kernel(id)),
        Some(runner::Error::Store(error)) => of_store(error),
        _ => {
            let of_store = || cause.downcast_ref().and_then(of_store);
            cause.downcast_ref().and_then(of_kernel).or_else(of_store)
        }
    });
    hint.map_or_else(String::new, |hint| format!(" ({hint})"))
}

fn of_unknown_kernel(id: &str) -> String {
    format!("`punctual kernel add --id {id} /path/to/vmlinuz` adds your own")
}

fn of_kernel(error: &KernelError) -> Option<String> {
    Some(match error {
        KernelError::Unknown { id, .. } => of_unknown_kernel(id),
        KernelError::BadId(_) => {
            "`punctual kernel add --id NAME FILE` adds a vmlinuz of your own".to_owned()
        }
        KernelError::NotFetched(id) => format!("run `punctual kernel fetch {id}`"),
        KernelError::Taken(_) => "--replace replaces it".to_owned(),
        KernelError::NotBuilt(_) => {
            "`punctual kernel build --source linux-source-6.12 --id NAME` makes one".to_owned()
        }
        KernelError::Changed { id, is_own, .. } if *is_own => {
            format!("add it again with `punctual kernel add --replace --id {id}`")
        }
        KernelError::Changed { id, .. } => format!("run `punctual kernel fetch --refresh {id}`"),
        KernelError::Record { id, .. } => format!("`punctual kernel remove {id}` removes it"),
        KernelError::Apt(
            AptError::NoProgram(_) | AptError::NoPackage(_) | AptError::NoVersion { .. },
        ) => "`punctual kernel add --id NAME FILE` adds a vmlinuz or a package".to_owned(),
        _ => return None,
    })
}

fn of_store(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Unknown { .. } => Some("`punctual runs` lists all".to_owned()),
        StoreError::UnknownBaseline { .. } => Some("`punctual baseline list` lists all".to_owned()),
        StoreError::NoHome
        | StoreError::Directory { .. }
        | StoreError::NotADatabase { .. }
        | StoreError::Foreign { .. }
        | StoreError::Newer { .. }
        | StoreError::Damaged { .. }
        | StoreError::Full { .. }
        | StoreError::Busy { .. }
        | StoreError::Unreachable { .. }
        | StoreError::Login { .. }
        | StoreError::NoDatabase { .. }
        | StoreError::Sqlite { .. } => Some("--db names another store".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_is_passed_on_keeps_its_hint() {
        let taken = || KernelError::Taken("mine".to_owned());
        let hint = " (--replace replaces it)";
        assert_eq!(of_command(&taken().into()), hint);
        let passed_on = anyhow::Error::from(runner::Error::Kernel(taken()));
        assert_eq!(of_command(&passed_on.context("subject mine")), hint);
        let home = runner::Error::Store(StoreError::NoHome).into();
        assert_eq!(of_command(&home), " (--db names another store)");
        assert_eq!(of_command(&anyhow::anyhow!("what else")), "");
    }
}

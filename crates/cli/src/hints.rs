// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remedies for errors, with the options that help.

use std::path::Path;

use punctual_bench::virtual_bench::Error;
use punctual_bench::{Processor, RunError, ssh};
use punctual_kernels::initramfs::InitramfsError;
use punctual_kernels::{AptError, KernelError};
use punctual_report::repeat::quoted;
use punctual_runner::{self as runner, Companion};
use punctual_store::StoreError;

/// The remedy after a run has ended with this error; empty if none is known.
pub fn of_run(error: &RunError) -> &'static str {
    match (error, error.of_bench()) {
        (RunError::Silent(_), _) => " (allow more with --patience)",
        (_, Some(Error::Mute)) => " (--memory gives it more)",
        (_, Some(Error::Snapshot(_))) => {
            " (`punctual cache prune` makes room, --cold does without)"
        }
        (_, Some(Error::NotResumed { .. })) => {
            " (`punctual cache prune --all` removes it, --cold does without)"
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
        Some(runner::Error::Board(error)) => of_board(error),
        Some(runner::Error::Initramfs(InitramfsError::NoTarget { path, architecture })) => {
            Some(of_target(path, (*architecture).into()))
        }
        _ => {
            let of_store = || cause.downcast_ref().and_then(of_store);
            let of_board = || cause.downcast_ref().and_then(of_board);
            let of_kernel = cause.downcast_ref().and_then(of_kernel);
            of_kernel.or_else(of_store).or_else(of_board)
        }
    });
    hint.map_or_else(String::new, |hint| format!(" ({hint})"))
}

fn of_unknown_kernel(id: &str) -> String {
    format!("`punctual kernel add --id {id} /path/to/vmlinuz` adds your own")
}

fn of_board(error: &ssh::Error) -> Option<String> {
    match error {
        ssh::Error::NoTarget { found, path, .. } => Some(of_target(path, *found)),
        _ => None,
    }
}

/// The remedy where the program that measures is not at `path`.
fn of_target(path: &Path, processor: Processor) -> String {
    let wire = Companion::Wire(processor);
    let companion = if wire.find() == path {
        wire
    } else {
        Companion::Target(processor)
    };
    format!("or name it by {}", companion.variable())
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
            format!("add it again with `punctual kernel add --replace --id {id} FILE`")
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
        StoreError::Unknown { .. } => Some(format!("`punctual runs{}` lists all", store_option())),
        StoreError::UnknownBaseline { .. } => {
            let of = store_option();
            Some(format!("`punctual baseline list{of}` lists all"))
        }
        StoreError::NoHome
        | StoreError::Directory { .. }
        | StoreError::NotADatabase { .. }
        | StoreError::Foreign { .. }
        | StoreError::Newer { .. }
        | StoreError::Damaged { .. }
        | StoreError::Full { .. }
        | StoreError::NotWritable { .. }
        | StoreError::Busy { .. }
        | StoreError::Unreachable { .. }
        | StoreError::Login { .. }
        | StoreError::NoDatabase { .. }
        | StoreError::Sqlite { .. } => Some("--db names another store".to_owned()),
        _ => None,
    }
}

/// The option `--db` of this command, to append to a printed command. It is empty if nothing or
/// only the environment names a store, or if it is a server: its URL may hold a password.
pub fn store_option() -> String {
    let words = std::env::args_os().skip(1);
    store_of(words.map(|word| word.to_string_lossy().into_owned()))
}

fn store_of(mut words: impl Iterator<Item = String>) -> String {
    while let Some(word) = words.next() {
        let named = match word.strip_prefix("--db") {
            Some("") => words.next(),
            Some(attached) => attached.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        if let Some(named) = named.filter(|named| !named.is_empty() && !named.contains("://")) {
            return format!(" --db {}", quoted(&named));
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use punctual_model::Architecture;

    use super::*;

    #[test]
    fn a_missing_program_that_measures_can_be_named_by_a_variable() {
        let architecture = Architecture::Amd64;
        let hint = |companion: Companion| {
            let path = companion.find();
            let error = InitramfsError::NoTarget { path, architecture };
            of_command(&runner::Error::Initramfs(error).into())
        };
        let own = Processor::OfGuests(architecture);
        let of_wire = hint(Companion::Wire(own));
        assert_eq!(of_wire, " (or name it by PUNCTUAL_WIRE)");
        let of_target = hint(Companion::Target(own));
        assert_eq!(of_target, " (or name it by PUNCTUAL_TARGET)");
        let of_board = ssh::Error::NoTarget {
            host: "board".to_owned(),
            found: Processor::Riscv64,
            path: Companion::Wire(Processor::Riscv64).find(),
        };
        let of_board = of_command(&of_board.into());
        assert_eq!(of_board, " (or name it by PUNCTUAL_WIRE_RISCV64)");
    }

    #[test]
    fn a_booted_guest_that_cannot_be_resumed_can_be_removed() {
        let (status, said) = ("exit status 1".to_owned(), String::new());
        let hint = of_run(&RunError::bench(Error::NotResumed { status, said }));
        assert!(hint.contains("`punctual cache prune --all`"), "{hint}");
    }

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

    #[test]
    fn a_command_that_is_printed_names_the_store_of_this_one() {
        let of = |words: &[&str]| store_of(words.iter().map(ToString::to_string));
        assert_eq!(
            of(&["show", "r9", "--db", "my runs.db"]),
            " --db 'my runs.db'"
        );
        assert_eq!(of(&["--db=a.db", "show"]), " --db a.db");
        for none in [
            &["show", "r9"][..],
            &["show", "--db"],
            &["--db", "postgres://a:b@c/d"],
        ] {
            assert_eq!(of(none), "", "{none:?}");
        }
    }
}

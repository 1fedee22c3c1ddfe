// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program on the workstation side. See `punctual --help`.
#![forbid(unsafe_code)]

mod commands;
mod exit_status;
#[cfg(test)]
mod fixtures;
mod hints;
mod interrupt;
#[cfg_attr(not(feature = "live"), path = "no_live.rs")]
mod live;
mod output;
mod progress;
mod scale_args;
mod usage;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use punctual_kernels::build::BuildError;
use punctual_report::text::{clean, clean_lines};

use commands::Cli;
use exit_status::{ExitStatus, status};

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        usage::with_remedy(error, &words.collect::<Vec<_>>()).exit()
    });
    match cli.run() {
        Ok(status) => ExitCode::from(status as u8),
        Err(error) => {
            tell(&error);
            ExitCode::from(status(&error) as u8)
        }
    }
}

/// Prints an error and its remedy. Nobody wants to know if standard error is closed.
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

/// The command line asks for something that does not exist.
#[derive(Debug)]
struct UsageError(String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

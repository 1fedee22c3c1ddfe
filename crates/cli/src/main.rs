//! The program on the workstation side. See `punctual --help`.
#![forbid(unsafe_code)]

mod commands;
mod companions;
mod interrupt;
mod lab;
mod library;
mod output;
mod progress;
mod scale;
mod sites;
mod subjects;

use std::process::ExitCode;

use clap::Parser as _;

use commands::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(status) => ExitCode::from(status as u8),
        Err(error) => {
            eprintln!("punctual: {error:#}");
            let status = if error.is::<UsageError>() {
                ExitStatus::Usage
            } else {
                ExitStatus::Error
            };
            ExitCode::from(status as u8)
        }
    }
}

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExitStatus {
    /// All that was asked for was measured, or done.
    Done = 0,
    /// Something failed.
    Error = 1,
    /// The command line asks for something that there is not.
    Usage = 2,
    /// Measured, but something was unsupported or interrupted.
    Incomplete = 3,
}

/// The command line asks for something that there is not.
#[derive(Debug)]
struct UsageError(String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

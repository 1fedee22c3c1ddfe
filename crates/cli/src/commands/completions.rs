// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual completions`: completion for shells.

use anyhow::Result;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Cli;
use crate::{ExitStatus, output};

const EXAMPLES: &str = "\
Examples:
  punctual completions bash > \\
      ~/.local/share/bash-completion/completions/punctual
  punctual completions zsh > ~/.zfunc/_punctual";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "punctual", &mut script);
        output::print_exactly(&String::from_utf8_lossy(&script))?;
        Ok(ExitStatus::Done)
    }
}

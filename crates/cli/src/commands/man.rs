//! `punctual man`: manual pages, from the same text as `--help`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, CommandFactory as _};
use clap_mangen::Man as Page;

use super::Cli;
use crate::{ExitStatus, output};

/// Print the manual page, or write all of them to a directory
#[derive(Debug, Args)]
pub struct Man {
    /// Write punctual.1, punctual-run.1 and so on to this directory
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Man {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        let command = Cli::command();
        if let Some(directory) = &self.directory {
            fs::create_dir_all(directory)
                .and_then(|()| clap_mangen::generate_to(command, directory))
                .with_context(|| directory.display().to_string())?;
        } else {
            let mut page = Vec::new();
            Page::new(command).render(&mut page)?;
            output::print(&String::from_utf8_lossy(&page))?;
        }
        Ok(ExitStatus::Done)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that prepare a place of labgrid.

use std::path::{self, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_bench::labgrid::{Notice, Preparation, Tell};

use crate::output::say;

/// What is done with a place before it is measured.
#[derive(Clone, Debug, Default, Args)]
pub struct LabgridArgs {
    /// At a place of labgrid: switch its power off and on first
    #[arg(long)]
    power_cycle: bool,
    /// At a place of labgrid: have its strategy bring it to this state first, in which `ssh`
    /// answers
    #[arg(long, value_name = "STATE")]
    labgrid_state: Option<String>,
    /// At a place of labgrid: the environment file with its drivers, key and strategy
    /// [default: what `LG_ENV` names]
    #[arg(long, value_name = "FILE")]
    labgrid_env: Option<PathBuf>,
}

impl LabgridArgs {
    /// The first option that was given, if any was.
    pub fn given(&self) -> Option<&'static str> {
        let all = [
            (self.power_cycle, "--power-cycle"),
            (self.labgrid_state.is_some(), "--labgrid-state"),
            (self.labgrid_env.is_some(), "--labgrid-env"),
        ];
        all.into_iter()
            .find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// The preparation that the options ask for.
    pub fn preparation(&self) -> Preparation {
        Preparation {
            environment: self.labgrid_env.clone(),
            power_cycle: self.power_cycle,
            state: self.labgrid_state.clone(),
        }
    }

    /// The options that ask for the same from any directory.
    pub fn words(&self) -> Result<Vec<String>> {
        let mut words = Vec::new();
        if self.power_cycle {
            words.push("--power-cycle".to_owned());
        }
        if let Some(state) = &self.labgrid_state {
            words.extend(["--labgrid-state".to_owned(), state.clone()]);
        }
        if let Some(file) = &self.labgrid_env {
            let file = path::absolute(file).with_context(|| file.display().to_string())?;
            words.extend(["--labgrid-env".to_owned(), file.display().to_string()]);
        }
        Ok(words)
    }
}

/// Prints on standard error what happens to a place; if `is_quiet`, only what is left to be done.
pub fn tell(is_quiet: bool) -> Tell {
    Box::new(move |place: &str, notice: &Notice| {
        if !is_quiet || notice.is_due() {
            say!("labgrid:{place} {notice}");
        }
    })
}

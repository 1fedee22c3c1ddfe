// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options for building a kernel from its source, which `punctual kernel build`, `judge` and
//! `ablate` share.

use std::str::FromStr as _;

use anyhow::Result;
use clap::Args;
use punctual_kernels::build::{self, BuildError, Built, Order, Setting, one_for_each_cpu};

use super::catalog;
use crate::interrupt;
use crate::output::say;

/// The configuration of a kernel that is built.
#[derive(Clone, Debug, Args)]
#[expect(clippy::doc_markdown, reason = "a terminal shows these texts")]
pub struct BuildArgs {
    /// Whose configuration it has: a kernel of `punctual kernel list`, or a file
    /// [default: debian-6.12]
    #[arg(long, value_name = "ID|FILE")]
    config: Option<String>,
    /// Set an option of it, with or without CONFIG_; PREEMPT_RT=n switches one off (may be
    /// repeated)
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = Setting::from_str)]
    settings: Vec<Setting>,
    /// Build all drivers and modules of the configuration, not only what guests of the
    /// virtual bench need
    #[arg(long)]
    full: bool,
}

/// The kernel whose configuration is used by default.
const CONFIG: &str = "debian-6.12";

impl BuildArgs {
    /// Returns true if anything is asked for.
    pub fn is_some(&self) -> bool {
        self.config.is_some() || !self.settings.is_empty() || self.full
    }

    /// The words that ask for the same again.
    pub fn words(&self) -> Vec<String> {
        let config = self.config.iter().cloned();
        let mut words: Vec<String> = config
            .flat_map(|one| ["--config".to_owned(), one])
            .collect();
        let settings = self.settings.iter().map(ToString::to_string);
        words.extend(settings.flat_map(|one| ["--set".to_owned(), one]));
        words.extend(self.full.then(|| "--full".to_owned()));
        words
    }

    /// The order for these arguments, with that source.
    pub fn order(self, source: String) -> Order {
        Order {
            source,
            config: self.config.unwrap_or_else(|| CONFIG.to_owned()),
            settings: self.settings,
            is_full: self.full,
            jobs: one_for_each_cpu(),
            id: None,
            replace: false,
            identity: None,
            tag: None,
        }
    }
}

/// Builds a kernel; `None` if Ctrl-C has ended it, which is reported.
pub fn made(order: &Order) -> Result<Option<Built>> {
    let (catalog, cancel) = (catalog()?, interrupt::flag()?);
    told(build::build(&catalog, order, cancel, &mut |message| {
        say!("{message}");
    }))
}

/// Builds a variant of a kernel that was built; `None` if Ctrl-C has ended it, which is reported.
pub fn made_variant(base: &str, settings: &[Setting]) -> Result<Option<Built>> {
    let (catalog, cancel) = (catalog()?, interrupt::flag()?);
    let progress = &mut |message: &str| {
        say!("{message}");
    };
    told(build::build_variant(
        &catalog, base, settings, cancel, progress,
    ))
}

fn told(built: Result<Built, BuildError>) -> Result<Option<Built>> {
    match built {
        Err(error @ BuildError::Interrupted) => {
            say!("{error}");
            Ok(None)
        }
        built => Ok(Some(built?)),
    }
}

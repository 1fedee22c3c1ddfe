// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual kernel`: the kernels that can be judged.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use punctual_kernels::Release;
use serde_json::{Value, json};

use super::catalog;
use super::list::{List, What};
use crate::ExitStatus;
use crate::output::{self, say};

const EXAMPLES: &str = "\
Examples:
  punctual kernel fetch debian-6.12-rt
  punctual kernel series debian-6.12-rt
  punctual kernel fetch debian-6.12-rt@6.12.43
  punctual kernel add --id mine ~/linux/arch/x86/boot/bzImage
  punctual kernel add --id mine --boot 'preempt=full' --module ./mine.ko ./bzImage";

/// List, fetch, add or remove kernels
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Kernel {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all kernels
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all releases of a line that the distribution still has, the oldest first
    Series {
        /// The line: a kernel that `punctual kernel list` shows, such as debian-6.12-rt
        #[arg(value_name = "ID")]
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch kernels into the cache
    Fetch {
        /// The kernels
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Take the newest package even if there is one in the cache
        #[arg(long)]
        refresh: bool,
    },
    /// Copy a kernel of your own into the cache
    Add {
        /// What to call it
        #[arg(long)]
        id: String,
        /// The kernel image: a vmlinuz or bzImage for x86-64, an Image for arm64
        #[arg(value_name = "IMAGE")]
        image: PathBuf,
        /// Boot arguments that it is always started with
        #[arg(
            long,
            value_name = "ARGS",
            default_value = "",
            allow_hyphen_values = true
        )]
        boot: String,
        /// A module to be loaded before measuring (may be repeated: loaded in this order)
        #[arg(long = "module", value_name = "KO")]
        modules: Vec<PathBuf>,
        /// Take the place of one of this id
        #[arg(long)]
        replace: bool,
    },
    /// Remove kernels from the cache
    Remove {
        /// The kernels
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

impl Kernel {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        let say = &mut |message: &str| say!("{message}");
        match self.action {
            Action::List { json } => return List::new(What::Kernels, json).run(),
            Action::Series { id, json } => {
                let releases = catalog()?.releases(&id, say)?;
                if json {
                    output::print_json(&releases_json(&releases))?;
                } else {
                    output::print(&releases_text(&releases))?;
                }
            }
            Action::Fetch { ids, refresh } => {
                for id in &ids {
                    let kernel = catalog()?.fetch(id, refresh, say)?;
                    say!("{id} is in the cache: Linux {}", kernel.release);
                }
            }
            Action::Add {
                id,
                image,
                boot,
                modules,
                replace,
            } => {
                let kernel = catalog()?.add(&id, &image, &boot, &modules, replace)?;
                say!("{id} is in the cache: Linux {}", kernel.release);
            }
            Action::Remove { ids } => {
                for id in &ids {
                    catalog()?.remove(id)?;
                    say!("{id} is removed");
                }
            }
        }
        Ok(ExitStatus::Done)
    }
}

/// A line for each: `debian-6.12-rt@6.12.43-1~bpo12+1  106 MB  cached`.
fn releases_text(releases: &[Release]) -> String {
    let width = releases.iter().map(|one| one.id.len()).max().unwrap_or(0);
    let line = |one: &Release| {
        let megabytes = one.size.div_ceil(1_000_000);
        let cached = if one.is_cached { "  in the cache" } else { "" };
        format!("{:width$}  {megabytes:>4} MB{cached}\n", one.id)
    };
    releases.iter().map(line).collect()
}

fn releases_json(releases: &[Release]) -> Value {
    let all = releases.iter().map(|one| {
        json!({
            "id": one.id,
            "package": one.package,
            "version": one.version,
            "size": one.size,
            "cached": one.is_cached,
        })
    });
    all.collect()
}

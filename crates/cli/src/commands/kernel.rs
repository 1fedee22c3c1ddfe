// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual kernel`: the kernels that can be judged.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand, value_parser};
use punctual_kernels::Release;
use punctual_kernels::build::{Built, Order, Tagged, one_for_each_cpu};
use serde_json::{Value, json};

use super::build_args::{BuildArgs, made};
use super::list::{List, What};
use super::tagged_args::TaggedArgs;
use super::{NoStoreArgs, catalog, check_named};
use crate::ExitStatus;
use crate::output::{self, say};

const EXAMPLES: &str = "\
Examples:
  punctual kernel fetch debian-6.12-rt
  punctual kernel series debian-6.12-rt
  punctual kernel fetch debian-6.12-rt@6.12.43
  punctual kernel add --id mine ~/linux/arch/x86/boot/bzImage
  punctual kernel add --id mine --boot 'preempt=full' --module ./mine.ko \\
      ./bzImage
  punctual kernel build --source linux-source-6.12 --id base
  punctual kernel build --source ~/linux --config debian-6.12-rt --id mine \\
      --replace";

const BUILD_EXAMPLES: &str = "\
Examples:
  punctual kernel build --source linux-source-6.12 --id base
  punctual kernel build --source linux-source-6.12 --config base --set HZ_1000=y
  punctual kernel build --source ~/linux --config debian-6.12-rt --id mine
  punctual kernel build --source . --config ./.config --full --jobs 8
  punctual run demo --kernel mine

A kernel of the same source, configuration and compiler is not built twice.
After Ctrl-C, or a change of the source, the same command compiles what is
left or has changed. docs/method/building.md says what it needs, and where it
builds.

Exit status: 0 it is in the cache; 3 interrupted; 2 an option that the kernel
does not take, or no source; 1 it does not compile, or another error.";

const SERIES_EXAMPLES: &str = "\
Examples:
  punctual kernel series debian-6.12-rt
  punctual kernel series debian-6.12-rt --since 6.12.90
  punctual kernel series --source ~/linux --since v6.12 --tags 'v6.1[2-9]*'

`punctual series` measures them, and builds what is not there.";

/// List, fetch, add or remove kernels
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Kernel {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    _store: NoStoreArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all kernels
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all releases of a line that the distribution still has, or the tags of a git
    /// repository of Linux, the oldest first
    #[command(after_help = SERIES_EXAMPLES)]
    Series {
        /// The line: a kernel that `punctual kernel list` shows, such as debian-6.12-rt
        #[arg(
            value_name = "ID",
            required_unless_present = "source",
            conflicts_with = "source"
        )]
        id: Option<String>,
        #[command(flatten)]
        tagged: TaggedArgs,
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
    /// Build a kernel from its source, with options set: for the virtual bench, so without
    /// drivers of hardware that it does not have
    ///
    /// Without --id it is called built-KEY, by what it was built from. Root compiles nothing:
    /// the user who called sudo does, or nobody.
    #[command(after_help = BUILD_EXAMPLES)]
    Build {
        /// A directory, or a package of Debian's such as linux-source-6.12 (perhaps with
        /// @VERSION), which is fetched and verified
        #[arg(long, value_name = "DIR|PACKAGE")]
        source: String,
        #[command(flatten)]
        args: BuildArgs,
        /// How many compilers run side by side [default: one for each CPU]
        #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
        jobs: Option<u16>,
        /// What to call it
        #[arg(long)]
        id: Option<String>,
        /// Take the place of one of this id
        #[arg(long, requires = "id")]
        replace: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove kernels from the cache
    Remove {
        /// The kernels
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

impl Kernel {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let say = &mut |message: &str| say!("{message}");
        match self.action {
            Action::List { json } => return List::new(What::Kernels, json).run(),
            Action::Series { id, tagged, json } => {
                let (value, text) = if let Some(all) = tagged.tagged()? {
                    (tagged_json(&all), tagged_text(&all))
                } else {
                    let all = catalog()?.releases(&id.unwrap_or_default(), say)?;
                    let releases = tagged.between(all, |one| &one.id)?;
                    (releases_json(&releases), releases_text(&releases))
                };
                if json {
                    output::print_json(&value)?;
                } else {
                    output::print(&text)?;
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
                for path in modules.iter().chain([&image]) {
                    check_named(path)?;
                }
                let kernel = catalog()?.add(&id, &image, &boot, &modules, replace)?;
                say!("{id} is in the cache: Linux {}", kernel.release);
            }
            Action::Build {
                source,
                args,
                jobs,
                id,
                replace,
                json,
            } => {
                let order = Order {
                    id,
                    replace,
                    jobs: jobs.map_or_else(one_for_each_cpu, usize::from),
                    ..args.order(source)
                };
                let Some(built) = made(&order)? else {
                    return Ok(ExitStatus::Incomplete);
                };
                tell(&built);
                if json {
                    output::print_json(&built_json(&built))?;
                }
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

/// Prints the result of a build.
fn tell(built: &Built) {
    let (kernel, before) = (&built.kernel, if built.was_there { " already" } else { "" });
    let (id, release) = (&kernel.id, &kernel.release);
    say!("{id} is in the cache{before}: Linux {release}");
    if let Some(why) = &built.record.without_modules {
        say!("{id}: Punctual's modules could not be built; what needs them is unsupported:\n{why}");
    }
}

fn built_json(built: &Built) -> Value {
    let (kernel, record) = (&built.kernel, &built.record);
    json!({
        "id": kernel.id,
        "release": kernel.release,
        "key": record.key,
        "image_sha256": kernel.image_sha256,
        "source": record.source,
        "source_described": record.described,
        "source_identity": record.identity,
        "config": record.config,
        "config_file": kernel.config,
        "settings": record.settings,
        "compiler": record.compiler,
        "was_there": built.was_there,
        "modules": record.without_modules.is_none(),
    })
}

/// A line for each release: `debian-6.12-rt@6.12.43-1~bpo12+1  106 MB  cached`.
fn releases_text(releases: &[Release]) -> String {
    let width = releases.iter().map(|one| one.id.len()).max().unwrap_or(0);
    let line = |one: &Release| {
        let megabytes = one.size.div_ceil(1_000_000);
        let cached = if one.is_cached { "  in the cache" } else { "" };
        format!("{:width$}  {megabytes:>4} MB{cached}\n", one.id)
    };
    releases.iter().map(line).collect()
}

/// A line for each tag: `linux-debian-6.12-rt@6.13-rc1  v6.13-rc1  in the cache`.
fn tagged_text(tags: &[Tagged]) -> String {
    let width = tags.iter().map(|one| one.id.len()).max().unwrap_or(0);
    let line = |one: &Tagged| {
        let cached = if one.is_cached { "  in the cache" } else { "" };
        format!("{:width$}  {}{cached}\n", one.id, one.tag.name)
    };
    tags.iter().map(line).collect()
}

fn tagged_json(tags: &[Tagged]) -> Value {
    let all = tags.iter().map(|one| {
        json!({
            "id": one.id,
            "tag": one.tag.name,
            "version": one.tag.version(),
            "cached": one.is_cached,
        })
    });
    all.collect()
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

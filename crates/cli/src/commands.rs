//! The command line: one file for each subcommand.

mod cache;
mod compare;
mod completions;
mod explain;
mod kernel;
mod list;
mod man;
mod published;
mod remove;
mod run;
mod runs;
mod show;
mod survey;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use punctual_kernels::Catalog;
use punctual_kernels::paths;
use punctual_model::Run;
use punctual_store::Store;

use crate::ExitStatus;

const EXAMPLES: &str = "\
Examples:
  punctual run demo                        four preemption models, side by side
  punctual run demo --subject rt           only one of them
  punctual kernel add --id mine ./bzImage  a kernel of your own …
  punctual run demo --kernel mine          … judged in the same way
  punctual runs                            what has been measured so far
  punctual show r3 --report r3.html        a run again, as a page
  punctual compare r1 r4                   one run against another
  punctual published celf                  what a suite's document says

Exit status: 0 all measured; 1 an error; 2 a wrong command line;
3 measured, but something was unsupported or interrupted.

Environment: XDG_CACHE_HOME (kernels, booted guests), XDG_DATA_HOME (runs),
XDG_CONFIG_HOME (suites and loads of your own), NO_COLOR, PUNCTUAL_TARGET (the
target program) and PUNCTUAL_PLUGIN (the scope's), where they are neither beside
this one nor in ../lib/punctual.";

/// How late can this Linux kernel be? Real-time measurements with evidence.
#[derive(Debug, Parser)]
#[command(name = "punctual", version, after_help = EXAMPLES)]
#[command(arg_required_else_help = true, max_term_width = 80)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Runs(runs::Runs),
    Show(show::Show),
    Compare(compare::Compare),
    Survey(survey::Survey),
    Remove(remove::Remove),
    Explain(explain::Explain),
    List(list::List),
    Published(published::Published),
    Kernel(kernel::Kernel),
    Cache(cache::Cache),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Cli {
    /// Does what the command line says.
    pub fn run(self) -> Result<ExitStatus> {
        match self.command {
            Command::Run(command) => command.run(),
            Command::Runs(command) => command.run(),
            Command::Show(command) => command.run(),
            Command::Compare(command) => command.run(),
            Command::Survey(command) => command.run(),
            Command::Remove(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::List(command) => command.run(),
            Command::Published(command) => command.run(),
            Command::Kernel(command) => command.run(),
            Command::Cache(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}

/// Which store is meant.
#[derive(Clone, Debug, Args)]
struct StoreArgs {
    /// Keep runs in this file, not in ~/.local/share/punctual/runs.db
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
}

impl StoreArgs {
    fn open(&self) -> Result<Store> {
        let path = self.db.clone().map_or_else(Store::default_path, Ok)?;
        Ok(Store::open(&path)?)
    }

    /// The runs of these names, in their order.
    fn load(&self, names: &[String]) -> Result<Vec<Run>> {
        let store = self.open()?;
        let runs = names.iter().map(|name| store.load(name));
        Ok(runs.collect::<Result<_, _>>()?)
    }
}

fn catalog() -> Result<Catalog> {
    Ok(Catalog::open(&paths::cache_dir()?)?)
}

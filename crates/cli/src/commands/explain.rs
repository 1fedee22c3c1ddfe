//! `punctual explain`: why was this sample late?

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_bench::virtual_bench::{Start, VirtualBench};
use punctual_kernels::paths;
use punctual_model::Run;
use punctual_report::scope::page::{Other, page};
use punctual_report::scope::{chrome, json, text};
use punctual_scope::explain::{Explained, Wanted, explain};
use punctual_scope::repeat::Place;

use super::{StoreArgs, catalog};
use crate::progress::Progress;
use crate::{ExitStatus, interrupt, output};

/// Names the scope's plugin where it is not beside this program.
const PLUGIN_VARIABLE: &str = "PUNCTUAL_PLUGIN";

const EXAMPLES: &str = "\
Examples:
  punctual explain r3                        the worst sample of the run
  punctual explain r3 --load stress --worst 100
  punctual explain r3 --probe timer --sample 370 --report late.html
  punctual explain r3 --load stress --compare r4
  punctual explain r3 --probe mutex --variant release";

/// Tell why a sample was late, or where its time went: the run is lived through
/// again, watched
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// The run
    #[arg(value_name = "RUN")]
    run: String,
    /// Only samples of this probe
    #[arg(long, value_name = "NAME")]
    probe: Option<String>,
    /// Only samples under this load
    #[arg(long, value_name = "NAME")]
    load: Option<String>,
    /// Only samples of this variant of the probe
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// So many of the worst samples; with more than one, also what they have in common
    #[arg(long, value_name = "K")]
    worst: Option<usize>,
    /// The sample with this number, counted from 0, of each recording
    #[arg(long, value_name = "SEQ")]
    sample: Option<u64>,
    /// Compare with the same sample, or the worst one, of this run
    #[arg(long, value_name = "OTHER")]
    compare: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print each block that ran, instead of a timeline
    #[arg(long, conflicts_with_all = ["json", "compare"])]
    trace: bool,
    /// Write a page with timelines and flame graphs (HTML, one file) to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the first story in Chrome's trace format, which Perfetto shows, to FILE
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    #[command(flatten)]
    repeat: RepeatArgs,
    #[command(flatten)]
    store: StoreArgs,
}

/// How a run is lived through again.
#[derive(Debug, Args)]
pub struct RepeatArgs {
    /// Boot afresh instead of resuming a booted guest from the cache
    #[arg(long)]
    cold: bool,
    /// The scope's plugin, if it is not beside this program
    #[arg(long, value_name = "FILE", env = PLUGIN_VARIABLE)]
    plugin: Option<PathBuf>,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

impl RepeatArgs {
    /// Where runs are lived through again.
    pub fn place(&self) -> Result<Place> {
        let cache = paths::cache_dir()?;
        let beside = || -> Result<PathBuf> {
            let this = std::env::current_exe().context("cannot find out where this program is")?;
            Ok(this.with_file_name("libpunctual_scope.so"))
        };
        Ok(Place {
            bench: VirtualBench::open(&cache)?,
            plugin: self.plugin.clone().map_or_else(beside, Ok)?,
            start: if self.cold {
                Start::Cold
            } else {
                Start::Resumed
            },
            cache,
        })
    }

    /// Where progress is shown.
    pub fn progress(&self) -> Progress {
        Progress::new(0, 1, self.quiet)
    }
}

impl Explain {
    /// Does it.
    pub fn run(self) -> Result<ExitStatus> {
        let store = self.store.open()?;
        let run = store.load(&self.run)?;
        let other = self.compare.as_ref().map(|id| store.load(id)).transpose()?;
        let cancel = interrupt::flag()?;
        let explained = self.explain(&run, cancel)?;
        let others = other.as_ref().map(|other| self.explain(other, cancel));
        let others = others.transpose()?.unwrap_or_default();
        let other = other.as_ref().map(|run| Other {
            run,
            explained: &others,
        });
        self.write_files(&run, &explained, other)?;
        let width = output::text_width();
        if self.json {
            output::print_json(&json::explained(&run, &explained, other))?;
        } else if let Some(other) = other {
            output::print(&text::compared(&run, &explained, other, width))?;
        } else if self.trace {
            output::print(&text::traced(&run, &explained))?;
        } else {
            output::print(&text::explained(&run, &explained, width))?;
        }
        Ok(ExitStatus::Done)
    }

    fn write_files(
        &self,
        run: &Run,
        explained: &[Explained],
        other: Option<Other<'_>>,
    ) -> Result<()> {
        let write = |path: &PathBuf, content: String| {
            fs::write(path, content).with_context(|| path.display().to_string())?;
            eprintln!("Written to {}", path.display());
            Ok::<_, anyhow::Error>(())
        };
        if let Some(path) = &self.report {
            write(path, page(run, explained, other))?;
        }
        let story = explained
            .iter()
            .find_map(|explained| explained.story.as_ref().ok());
        if let (Some(path), Some(story)) = (&self.perfetto, story) {
            write(path, chrome::trace(&run.id, story).to_string())?;
        }
        Ok(())
    }

    fn explain(&self, run: &Run, cancel: &AtomicBool) -> Result<Vec<Explained>> {
        let wanted = Wanted {
            probe: self.probe.clone(),
            load: self.load.clone(),
            variant: self.variant.clone(),
            sample: self.sample,
            worst: self
                .worst
                .unwrap_or(if self.sample.is_some() { usize::MAX } else { 1 }),
        };
        let place = self.repeat.place()?;
        let kernel = catalog()?.get(&run.subject.kernel)?;
        let machine = place.machine(run, kernel)?;
        let chosen = wanted.choose(run)?;
        let progress = self.repeat.progress();
        let name = format!("{} again", run.id);
        let say = &mut |message: &str| progress.say(&format!("{name}: {message}"));
        Ok(explain(&place, run, &machine, &chosen, cancel, say)?)
    }
}

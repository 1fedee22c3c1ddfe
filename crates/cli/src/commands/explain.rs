// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual explain`: finds why a sample was late.

mod elsewhere;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_model::capture::TRACER;
use punctual_model::{Fact, Run};
use punctual_report::csv::rows_csv;
use punctual_report::scope::page::{Other, page};
use punctual_report::scope::{chrome, json, pasted, text};
use punctual_report::text::WIDTH;
use punctual_scope::explain::{Explained, Wanted};
use punctual_store::{Store, StoreError, Story};

use super::replay_args::ReplayArgs;
use super::run_names::{is_run, refuse_form};
use super::sample_args::SampleArgs;
use super::{StoreArgs, load};
use crate::hints::store_option;
use crate::output::say;
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual explain r3         # the worst sample of the run
  punctual explain r3 --load stress --worst 100
  punctual explain r3 --probe timer --sample 370 --report late.html
  punctual explain r3 --load stress --compare r4
  punctual explain r7 --captured --trace  # what the kernel's tracer had noted
  punctual explain r3 --probe mutex --variant release
  punctual explain r8 --faults  # lines of a program's faults in design
  punctual explain trace.txt  # a trace from elsewhere, or rtla's analysis
  trace-cmd report | punctual explain -

A trace from elsewhere is the text of the kernel's `trace` file (any tracer), of
`trace-cmd report`, or what `rtla timerlat -a` prints. A mail that
quotes it will do.

Exit status:
  0    explained
  1    an error
  2    there is no such run, or no trace in the file
  3    not explained, or interrupted
  5    the trace does not show it; the commands that do are printed";

/// Tell why a sample was late, or where its time went: Punctual
/// repeats the run and watches each instruction
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub struct Explain {
    /// The run; or a file with a trace from elsewhere (`-`: standard input)
    #[arg(value_name = "RUN|FILE")]
    run: String,
    #[command(flatten)]
    samples: SampleArgs,
    /// So many of the worst samples; with more than one, also what they have in common
    #[arg(long, value_name = "K")]
    worst: Option<usize>,
    /// The sample with this number, counted from 0, of each recording
    #[arg(long, value_name = "SEQ")]
    sample: Option<u64>,
    /// The cycles in which faults in the design of a program were first, and by which lines
    /// (probe `app`)
    #[arg(long, conflicts_with_all = ["sample", "worst", "captured"])]
    faults: bool,
    /// Compare with the same sample, or the worst one, of this run
    #[arg(long, value_name = "OTHER")]
    compare: Option<String>,
    /// Tell what the kernel's own tracer has caught (`punctual run --trace-above`): the only way
    /// for a run in real time, which cannot be repeated
    #[arg(long)]
    captured: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the parts of each sample to FILE, as comma-separated values, with the names that
    /// JSON has
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    csv: Option<PathBuf>,
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
    repeat: ReplayArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl Explain {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        refuse_form(&self.run)?;
        if elsewhere::is_file(&self.run) {
            return self.elsewhere();
        }
        if self.captured && self.repeat.is_given() {
            let why = "--cold and --plugin say how a run is repeated, and --captured repeats none";
            return Err(UsageError(why.into()).into());
        }
        if !is_run(&self.run) && self.store.is_new()? {
            return Err(elsewhere::neither(&self.run).into());
        }
        let store = self.store.open()?;
        let run = load(&store, &self.run).map_err(|error| match error.downcast_ref() {
            Some(StoreError::Unknown { close, .. }) if close.is_empty() && !is_run(&self.run) => {
                elsewhere::neither(&self.run).into()
            }
            _ => error,
        })?;
        let other = self
            .compare
            .as_ref()
            .map(|name| load(&store, name))
            .transpose()?;
        output::check_file(self.report.as_deref())?;
        output::check_file(self.perfetto.as_deref())?;
        output::check_file(self.csv.as_deref())?;
        let cancel = interrupt::flag()?;
        let Some(explained) = self.explain(&run, cancel)? else {
            return Ok(ExitStatus::Incomplete);
        };
        let others = match &other {
            Some(other) => self.explain(other, cancel)?,
            None => None,
        };
        // Without what it was to be compared with this is a part only.
        let is_part = other.is_some() && others.is_none();
        let other = other.as_ref().zip(others.as_deref());
        let other = other.map(|(run, explained)| Other { run, explained });
        keep(&store, &run, &explained, other);
        self.write_files(&run, &explained, other)?;
        self.show(&run, &explained, other)?;
        let all = [&explained[..], other.map_or(&[], |other| other.explained)].concat();
        Ok(if is_part {
            ExitStatus::Incomplete
        } else {
            status(&all)
        })
    }

    /// Explains a trace from elsewhere.
    fn elsewhere(&self) -> Result<ExitStatus> {
        let of_runs = [
            ("--compare", self.compare.is_some()),
            ("--captured", self.captured),
            ("--trace", self.trace),
            ("--report", self.report.is_some()),
            ("--perfetto", self.perfetto.is_some()),
            ("--csv", self.csv.is_some()),
            ("--sample", self.sample.is_some()),
            ("--worst", self.worst.is_some()),
            ("--faults", self.faults),
            ("--probe, --load or --variant", self.samples.is_given()),
            ("--cold or --plugin", self.repeat.is_given()),
        ];
        if let Some((option, _)) = of_runs.into_iter().find(|(_, is_given)| *is_given) {
            let why = format!("{option} is for runs, and {} is a file", self.run);
            return Err(UsageError(why).into());
        }
        let told = elsewhere::explain(&self.run)?;
        if self.json {
            output::print_json(&pasted::json(&told))?;
        } else {
            output::print(&pasted::text(&told, output::text_width()))?;
        }
        let is_told = told.iter().all(|one| one.culprit.is_some());
        Ok(if is_told {
            ExitStatus::Done
        } else {
            ExitStatus::Undecided
        })
    }

    fn show(&self, run: &Run, explained: &[Explained], other: Option<Other<'_>>) -> Result<()> {
        if self.json {
            return output::print_json(&json::explained(run, explained, other));
        }
        let width = output::text_width();
        output::print(&match other {
            Some(other) => text::compared(run, explained, other, width),
            None if self.trace && (self.captured || !run.is_virtual()) => {
                text::events(run, explained)
            }
            None if self.trace => text::traced(run, explained),
            None => text::explained(run, explained, width),
        })
    }

    fn write_files(
        &self,
        run: &Run,
        explained: &[Explained],
        other: Option<Other<'_>>,
    ) -> Result<()> {
        let write = |path: &PathBuf, content: String| {
            output::write_whole(path, &content).with_context(|| path.display().to_string())?;
            say!("Written to {}", path.display());
            Ok::<_, anyhow::Error>(())
        };
        if let Some(path) = &self.report {
            write(path, page(run, explained, other))?;
        }
        if let Some(path) = &self.csv {
            let json = json::explained(run, explained, other);
            write(path, rows_csv(&json, "samples.story.parts"))?;
        }
        let mut breakdowns = explained
            .iter()
            .filter_map(|one| one.breakdown.as_ref().ok());
        if let (Some(path), Some(story)) = (&self.perfetto, breakdowns.next()) {
            write(path, chrome::trace(&run.id, story).to_string())?;
        }
        Ok(())
    }

    fn explain(&self, run: &Run, cancel: &AtomicBool) -> Result<Option<Vec<Explained>>> {
        let by_default = if self.sample.is_some() { usize::MAX } else { 1 };
        let worst = self.worst.unwrap_or(by_default);
        let mut wanted = self.samples.wanted(self.sample, worst);
        wanted.faults = self.faults;
        if self.faults && !run.is_virtual() {
            let why = "--faults repeats the run, and what was measured in real time cannot be \
                       repeated: measure it in a guest";
            return Err(UsageError(why.into()).into());
        }
        if self.captured || !run.is_virtual() {
            return captured(run, &wanted).map(Some);
        }
        self.repeat.explain(run, &wanted.choose(run)?, cancel)
    }
}

/// Explains the captures of the kernel's own tracer, or says how to get some.
fn captured(run: &Run, wanted: &Wanted) -> Result<Vec<Explained>> {
    let has_caught = run.recordings.iter().any(|one| !one.captures.is_empty());
    if has_caught {
        return Ok(punctual_scope::captured::explained(run, wanted)?);
    }
    let id = &run.id;
    if run.is_imported() {
        return Err(UsageError(format!(
            "{id} was imported from a file of {}, so Punctual cannot repeat it: measure it with \
             `punctual run --bench … --trace-above 200us`",
            run.suite
        ))
        .into());
    }
    let mut recordings = run.recordings.iter();
    let of = store_option();
    let why = match recordings.find_map(|one| one.settings.get(TRACER)) {
        Some(Fact::Unknown { unknown }) => format!("there was no tracer: {unknown}"),
        Some(_) => "no sample was above the limit: give a lower one".to_owned(),
        None => format!(
            "a tracer must run while it is measured. The same with \
             --trace-above TIME catches each new worst sample above that, and with --stop-above \
             TIME the first one; `punctual show {id}{of}` has the times"
        ),
    };
    Err(UsageError(format!("nothing was caught in {id}: {why}")).into())
}

/// Stores the story beside its run, for later readers.
fn keep(store: &Store, run: &Run, explained: &[Explained], other: Option<Other<'_>>) {
    if other.is_some() || explained.iter().all(|one| one.breakdown.is_err()) {
        return;
    }
    let told = Story {
        made: punctual_runner::now(),
        told: text::explained(run, explained, WIDTH),
        json: json::explained(run, explained, None).to_string(),
    };
    // Whoever may only read still wants to be told.
    if let Err(error) = store.add_story(&run.id, &told) {
        say!("the story is not kept in the store: {error}");
    }
}

/// The exit status: all samples were explained, some, or none.
fn status(explained: &[Explained]) -> ExitStatus {
    if explained
        .iter()
        .all(|explained| explained.breakdown.is_err())
    {
        ExitStatus::Incomplete
    } else {
        ExitStatus::Done
    }
}

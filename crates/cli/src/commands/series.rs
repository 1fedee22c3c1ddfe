// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual series`: lines of kernels, release by release.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_judge::Rule;
use punctual_model::Run;
use punctual_report::series::{
    Line, lines, questions, series_csv, series_json, series_page, series_text,
};
use punctual_runner::documents;

use super::arrivals::WatchArgs;
use super::catalog;
use super::measure::MeasureArgs;
use super::measure::what::ProbeArgs;
use super::places::places;
use super::replay_args::ReplayArgs;
use crate::output::say;
use crate::{ExitStatus, UsageError, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual kernel series debian-6.12-rt  # the releases that there are
  punctual series debian-6.12-rt --since 6.12.90
  punctual series debian-6.12 debian-6.12-rt --report 6.12.html --csv 6.12.csv
  punctual series debian-backports-rt --suite ./mine.toml --seeds 1..5
  punctual series debian-6.12-rt --probe timer --load stress --since 6.12.90
  punctual series debian-6.12-rt --program './loop --rate 1000' --since 6.12.110
  punctual series debian-6.12-rt --since 6.12.110 --arrivals

Each release is fetched, booted and measured with each seed; what the store
holds of that very measurement is not measured again, so that the same command
goes on where Ctrl-C or a fault has ended it. A change is told where the runs
before and behind it are apart by more than chance makes them, over all figures
of the line; the largest are explained, on both sides.

Exit status: 0 all was measured; 3 a release or a step is missing, or Ctrl-C has
ended it; 1 an error; 2 a wrong request.";

/// Lines of kernels, release by release: where they change, and why
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Series {
    /// The lines: kernels that `punctual kernel list` shows, such as debian-6.12-rt
    #[arg(required = true, value_name = "LINE")]
    lines: Vec<String>,
    /// What is measured: a suite that `punctual list suites` shows, or a TOML file
    /// [default: series, where neither --probe nor --program is named]
    #[arg(long, value_name = "SUITE")]
    suite: Option<String>,
    #[command(flatten)]
    probes: ProbeArgs,
    /// Leave out releases before this version (6.12.90)
    #[arg(long, value_name = "VERSION")]
    since: Option<String>,
    /// Leave out releases after this version
    #[arg(long, value_name = "VERSION")]
    until: Option<String>,
    /// How many changes of each line are explained
    #[arg(long, value_name = "N", default_value_t = 3)]
    explain: usize,
    /// Do not repeat runs to tell what changed: like --explain 0
    #[arg(long, conflicts_with = "explain")]
    no_explain: bool,
    #[command(flatten)]
    watch: WatchArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write each run's figures to FILE, as comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a page (HTML, one file) with figures, changes and stories to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    measure: MeasureArgs,
}

impl Series {
    /// Does it.
    pub fn run(mut self) -> Result<ExitStatus> {
        for file in [&self.report, &self.csv] {
            output::check_file(file.as_deref())?;
        }
        let what = self.probes.with_or(self.suite.as_deref(), "series");
        self.measure.check()?;
        self.measure.check_unnamed("a series")?;
        let suite = self.measure.suite(&what)?;
        let plans = self.measure.plans(&suite, None)?;
        let (kernels, left_out) = self.kernels()?;
        self.measure.take(kernels);
        let prepared = self.measure.prepare(&what, &suite)?;
        let mut results = prepared.measure(&plans)?;
        let is_watched = prepared.watch(&self.watch, &mut results.runs)?;
        let is_whole = !results.is_interrupted() && is_watched;
        let runs = self.in_order(results.runs);
        let mut found = lines(&runs, &Rule::default());
        for line in &mut found {
            let is_own = |why: &&String| why.starts_with(&format!("{}@", kernel_of(&line.name)));
            line.left_out = left_out.iter().filter(is_own).cloned().collect();
        }
        if is_whole {
            for line in &mut found {
                self.explain(line, &runs)?;
            }
        }
        self.show(&found, &runs)?;
        let has_gaps = |line: &Line| line.releases.iter().any(|one| !one.gaps.is_empty());
        let is_all = left_out.is_empty() && !found.iter().any(has_gaps);
        Ok(if is_whole && is_all {
            ExitStatus::Done
        } else {
            ExitStatus::Incomplete
        })
    }

    /// The ids of all releases, those of each line in their order; and which of them cannot be
    /// had, with the reasons.
    fn kernels(&self) -> Result<(Vec<String>, Vec<String>)> {
        let say = &mut |message: &str| {
            if !self.measure.quiet {
                say!("{message}");
            }
        };
        let (mut ids, mut left_out) = (Vec::new(), Vec::new());
        for line in &self.lines {
            let releases = catalog()?.releases(line, say)?;
            let all: Vec<&str> = releases.iter().map(|one| one.id.as_str()).collect();
            let place = |version: &Option<String>, option| {
                let version = version.as_deref();
                version.map(|one| places(&all, one, option)).transpose()
            };
            let from = place(&self.since, "--since")?.map_or(0, |places| places[0]);
            let to = place(&self.until, "--until")?;
            let to = to.map_or(all.len() - 1, |places| places[places.len() - 1]);
            if from > to {
                let wrong = "--since is later than --until: no release is left";
                return Err(UsageError(wrong.into()).into());
            }
            for release in &releases[from..=to] {
                match catalog()?.ensure(&release.id, say) {
                    Ok(_) => ids.push(release.id.clone()),
                    Err(why) => {
                        let why = format!("{}: {why}", release.id);
                        say(&why);
                        left_out.push(why);
                    }
                }
            }
        }
        if ids.is_empty() {
            anyhow::bail!("none of the releases can be had: {}", left_out.join("; "));
        }
        Ok((ids, left_out))
    }

    /// Runs in the order of lines and releases, whoever was ready first.
    fn in_order(&self, mut runs: Vec<Run>) -> Vec<Run> {
        runs.sort_by_key(|run| (self.measure.place_of(&run.subject.kernel), run.seed));
        runs
    }

    /// Explains a line's largest changes, as far as Ctrl-C allows.
    fn explain(&self, line: &mut Line, runs: &[Run]) -> Result<()> {
        let replay = ReplayArgs::quiet(self.measure.quiet);
        let cancel = interrupt::flag()?;
        let count = if self.no_explain { 0 } else { self.explain };
        for question in questions(line, count) {
            let Some(why) = replay.why(question.row, &question.asked, runs, cancel) else {
                break;
            };
            line.rows[question.row].why.push((question.at, why));
        }
        Ok(())
    }

    fn show(&self, found: &[Line], runs: &[Run]) -> Result<()> {
        let (json, text) = (|| series_json(found), |width| series_text(found, width));
        output::print_result(self.json, json, text)?;
        if let Some(path) = &self.csv {
            fs::write(path, series_csv(found)).with_context(|| path.display().to_string())?;
        }
        if let Some(path) = &self.report {
            output::write_page(&series_page(found, runs, &documents::all()?), path)?;
        }
        Ok(())
    }
}

/// A line's kernel, without boot arguments.
fn kernel_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

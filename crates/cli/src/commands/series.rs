// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual series`: lines of kernels, release by release.

mod told;

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result};
use clap::Args;
use punctual_judge::Rule;
use punctual_kernels::Kernel;
use punctual_model::Run;
use punctual_report::mail::mail_of_series;
use punctual_report::series::{
    LeftOut, Line, News, Standing, questions, series_csv, series_json, series_page, series_text,
    whole_lines,
};
use punctual_runner::documents;

use super::arrivals::WatchArgs;
use super::catalog;
use super::measure::MeasureArgs;
use super::measure::what::ProbeArgs;
use super::replay_args::ReplayArgs;
use super::tagged_args::TaggedArgs;
use crate::output::say;
use crate::{ExitStatus, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual kernel series debian-6.12-rt  # the releases that there are
  punctual series debian-6.12-rt --since 6.12.90
  punctual series debian-6.12 debian-6.12-rt --report 6.12.html --csv 6.12.csv
  punctual series debian-backports-rt --suite ./mine.toml --seeds 1..5
  punctual series debian-6.12-rt --probe timer --load stress --since 6.12.90
  punctual series debian-6.12-rt --program './loop --rate 1000' --since 6.12.110
  punctual series debian-6.12-rt --since 6.12.110 --arrivals
  # tags of a git repository of Linux: a kernel of each is built, once
  punctual series --source ~/linux --since v6.12 --config debian-6.12-rt
  # each night: one page and one mail if something changed
  git -C ~/linux fetch --tags
  punctual series --source ~/linux --since v6.12 --seeds 1..5 \\
      --nightly reported.toml --report page.html --mail mail.txt

Each release is fetched, booted and measured with each seed; what the store
holds of that very measurement is not measured again, so that the same command
goes on where Ctrl-C or a fault has ended it. A tag that does not build or boot
is a gap with its reason. A change counts where the runs before and after it
differ by more than chance makes them, over all figures of the line; the
largest are explained, on both sides.

Exit status: 0 everything was measured; 3 a release or a step is missing, or
Ctrl-C has ended it; 1 an error; 2 a wrong request. Of --nightly: 0 no change;
4 changed; 5 undecided, too few runs of the newest release; 3 a release is newly
missing, or the newest one is, or Ctrl-C has ended it.";

/// Lines of kernels, release by release: where they change, and why
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Series {
    /// The lines: kernels that `punctual kernel list` shows, such as debian-6.12-rt
    #[arg(
        value_name = "LINE",
        required_unless_present = "source",
        conflicts_with = "source"
    )]
    lines: Vec<String>,
    #[command(flatten)]
    tagged: TaggedArgs,
    /// What is measured: a suite that `punctual list suites` shows, or a TOML file
    /// [default: series, where neither --probe nor --program is named]
    #[arg(long, value_name = "SUITE")]
    suite: Option<String>,
    #[command(flatten)]
    probes: ProbeArgs,
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
    /// Report only what FILE does not list yet, and list it there: end with 4 if something
    /// changed, and only then write the page and the mail; with 5 if the newest release has too
    /// few runs; with 3 if a release is newly missing; else with 0. A first run makes FILE
    #[arg(long, value_name = "FILE")]
    nightly: Option<PathBuf>,
    /// Write a mail for a list to FILE if something changed: plain text, 25 lines at most
    #[arg(long, value_name = "FILE", requires = "nightly")]
    mail: Option<PathBuf>,
    /// Write each run's figures to FILE, as comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a page (HTML, one file) with figures, changes and stories to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// The releases to measure, and those that are not available.
#[derive(Default)]
struct Wanted {
    /// The releases of each line in their order.
    ids: Vec<String>,
    left_out: Vec<LeftOut>,
}

impl Wanted {
    fn leave_out(&mut self, kernel: &str, why: &dyn Display, is_newest: bool) {
        let one = LeftOut {
            kernel: kernel.to_owned(),
            why: why.to_string(),
            is_newest,
        };
        say!("{one}");
        self.left_out.push(one);
    }
}

impl Series {
    /// Runs the command.
    pub fn run(mut self) -> Result<ExitStatus> {
        for file in [&self.report, &self.csv, &self.mail, &self.nightly] {
            output::check_file(file.as_deref())?;
        }
        let told = self.nightly.as_deref().map(told::read).transpose()?;
        let what = self.probes.with_or(self.suite.as_deref(), "series");
        self.measure.check()?;
        self.measure.check_unnamed("a series")?;
        let suite = self.measure.suite(&what)?;
        let plans = self.measure.plans(&suite, None)?;
        let Some(wanted) = self.kernels()? else {
            return Ok(ExitStatus::Incomplete);
        };
        self.measure.take(wanted.ids);
        let prepared = self.measure.prepare(&what, &suite)?;
        let mut results = prepared.measure(&plans)?;
        let is_watched = prepared.watch(&self.watch, &mut results.runs)?;
        let is_whole = !results.is_interrupted() && is_watched;
        let runs = self.in_order(results.runs);
        let rule = Rule::default();
        let mut found = whole_lines(&runs, &rule, &suite.name, &wanted.left_out);
        // What is half measured is no news.
        let told = told.filter(|_| is_whole);
        let mut news = told.as_ref().map(|told| News::of(&found, told, &rule));
        let mut is_explained = is_whole;
        if is_whole {
            for (number, line) in found.iter_mut().enumerate() {
                let is_asked = |row, at| match &news {
                    None => true,
                    Some(news) => news
                        .changes
                        .iter()
                        .any(|one| (one.line, one.row, one.releases.1) == (number, row, at)),
                };
                is_explained &= self.explain(line, &runs, &is_asked)?;
            }
        }
        news = news.filter(|_| is_explained);
        self.show(&found, news.as_ref(), &runs)?;
        if let (Some(path), Some(mut told), Some(news)) = (&self.nightly, told, news) {
            // What nobody was told is told the next time.
            told.add(&found);
            told::write(path, &told)?;
            return Ok(match news.standing() {
                Standing::Changed => ExitStatus::Unfit,
                Standing::Missing => ExitStatus::Incomplete,
                Standing::Undecided => ExitStatus::Undecided,
                Standing::Unchanged => ExitStatus::Done,
            });
        }
        let has_gaps = |line: &Line| {
            line.rows.is_empty() || line.releases.iter().any(|one| !one.gaps.is_empty())
        };
        let is_all = wanted.left_out.is_empty() && !found.iter().any(has_gaps);
        Ok(if is_explained && is_all {
            ExitStatus::Done
        } else {
            ExitStatus::Incomplete
        })
    }

    /// All releases, those of each line in their order; `None` if Ctrl-C has ended a build or a
    /// download.
    fn kernels(&self) -> Result<Option<Wanted>> {
        let cancel = interrupt::flag()?;
        let mut wanted = Wanted::default();
        if let Some(tagged) = self.tagged.tagged()? {
            for (one, left) in tagged.iter().zip((0..tagged.len()).rev()) {
                match self.tagged.build(one)? {
                    None => return Ok(None),
                    Some(Ok(())) => self.take(&mut wanted, &catalog()?.get(&one.id)?, left == 0)?,
                    Some(Err(why)) => wanted.leave_out(&one.id, &why, left == 0),
                }
            }
        }
        let say = &mut |message: &str| {
            if !self.measure.quiet {
                say!("{message}");
            }
        };
        for line in &self.lines {
            let releases = match catalog()?.releases(line, say) {
                Err(_) if cancel.load(Ordering::SeqCst) => return Ok(None),
                releases => releases?,
            };
            let releases = self.tagged.between(releases, |one| &one.id)?;
            for (release, left) in releases.iter().zip((0..releases.len()).rev()) {
                match catalog()?.ensure(&release.id, say) {
                    Ok(kernel) => self.take(&mut wanted, &kernel, left == 0)?,
                    // Whatever Ctrl-C has ended says nothing of the kernel.
                    Err(_) if cancel.load(Ordering::SeqCst) => return Ok(None),
                    Err(why) => wanted.leave_out(&release.id, &why, left == 0),
                }
            }
        }
        if wanted.ids.is_empty() {
            let why: Vec<String> = wanted.left_out.iter().map(ToString::to_string).collect();
            anyhow::bail!("none of the releases can be had: {}", why.join("; "));
        }
        Ok(Some(wanted))
    }

    /// Takes a kernel, unless it does not offer the preemption model that is asked for.
    fn take(&self, wanted: &mut Wanted, kernel: &Kernel, is_newest: bool) -> Result<()> {
        match self.measure.not_offered(kernel)? {
            None => wanted.ids.push(kernel.id.clone()),
            Some(why) => wanted.leave_out(&kernel.id, &why, is_newest),
        }
        Ok(())
    }

    /// Runs in the order of lines and releases, whichever was ready first.
    fn in_order(&self, mut runs: Vec<Run>) -> Vec<Run> {
        runs.sort_by_key(|run| (self.measure.place_of(&run.subject.kernel), run.seed));
        runs
    }

    /// Explains a line's largest changes among those asked for; returns false if Ctrl-C has ended
    /// it.
    fn explain(
        &self,
        line: &mut Line,
        runs: &[Run],
        is_asked: &dyn Fn(usize, usize) -> bool,
    ) -> Result<bool> {
        let replay = ReplayArgs::quiet(self.measure.quiet);
        let cancel = interrupt::flag()?;
        let count = if self.no_explain { 0 } else { self.explain };
        for question in questions(line, count, is_asked) {
            // What the runs did not keep stays unexplained.
            if let Some(why) = replay.why(question.row, &question.asked, runs, cancel) {
                line.rows[question.row].why.push((question.at, why));
            } else if cancel.load(Ordering::SeqCst) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Prints and writes what is asked for; in a nightly job, page and mail only if something
    /// changed.
    fn show(&self, found: &[Line], news: Option<&News>, runs: &[Run]) -> Result<()> {
        let json = || series_json(found, news);
        output::print_result(self.json, json, |width| series_text(found, news, width))?;
        if let Some(path) = &self.csv {
            output::write_whole(path, &series_csv(found))
                .with_context(|| path.display().to_string())?;
        }
        let is_told = self.nightly.is_none() || news.is_some_and(News::is_changed);
        if let Some(path) = self.report.as_ref().filter(|_| is_told) {
            let page = series_page(found, news, runs, &documents::all()?);
            output::write_page(&page, path)?;
        }
        let page = self
            .report
            .as_ref()
            .and_then(|path| path.file_name()?.to_str());
        let source = self.tagged.words();
        let mail = news.and_then(|news| mail_of_series(found, news, runs, &source, page));
        if let (Some(path), Some(mail)) = (&self.mail, mail) {
            output::write_whole(path, &mail.text()).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}

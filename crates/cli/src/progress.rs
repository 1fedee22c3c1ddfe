// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress on standard error: bars on a terminal, a line for each step elsewhere.

mod estimate;
mod steps;

use std::collections::{HashMap, HashSet};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration, MultiProgress, ProgressBar, ProgressStyle};
use punctual_bench::system::{Event, RunEnding};
use punctual_bench::{RunError, tail};
use punctual_model::record::Started;
use punctual_model::run::State;
use punctual_model::{Plan, Progress as Progressed, Record, Run};
use punctual_report::counts_by_worst;
use punctual_report::text::clean_lines;
use punctual_runner::Observer;

use crate::hints;
use estimate::Estimate;
pub use estimate::expected;

/// The number of runs from which on the rest is reported after each one.
const MANY: usize = 5;

/// Displays progress.
pub struct Progress {
    form: Form,
    runs: usize,
    /// The number of runs that the store had.
    kept: AtomicUsize,
    /// The number of runs that were made.
    made: AtomicUsize,
    begun: Instant,
    estimate: Mutex<Estimate>,
    /// The runs that are under way, by id.
    lines: Mutex<HashMap<String, Line>>,
    /// The runs of other processes that are waited for, by id.
    elsewhere: Mutex<HashSet<String>>,
    /// The failures that were reported.
    failures: Mutex<HashSet<String>>,
}

enum Form {
    Bars {
        bars: MultiProgress,
        /// All steps of all runs.
        total: ProgressBar,
    },
    Lines,
    None,
}

/// Progress on one run.
struct Line {
    name: String,
    /// The names of its steps.
    names: Vec<String>,
    /// The expected duration of each step.
    expected: Vec<Duration>,
    /// The part that counts as done.
    done: Duration,
    /// The number and the name of the current step.
    step: String,
    spinner: Option<ProgressBar>,
}

impl Progress {
    /// Progress on these plans, `side_by_side` at a time; none at all if `quiet`.
    pub fn new<'a>(
        plans: impl Iterator<Item = &'a Plan>,
        is_virtual: bool,
        side_by_side: usize,
        quiet: bool,
    ) -> Self {
        let expected: Vec<Duration> = plans
            .map(|plan| expected(plan, is_virtual).iter().sum())
            .collect();
        let runs = expected.len();
        let estimate = Estimate::new(expected.iter().sum(), side_by_side.clamp(1, runs.max(1)));
        Self {
            form: Form::new(&estimate, quiet),
            runs,
            kept: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            begun: Instant::now(),
            estimate: Mutex::new(estimate),
            lines: Mutex::default(),
            elsewhere: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    /// Shows a message that stays.
    pub fn say(&self, message: &str) {
        if !matches!(self.form, Form::None) {
            self.complain(message);
        }
    }

    /// Shows an error, even if progress is quiet.
    pub fn complain(&self, message: &str) {
        // A reader that has gone, like `head`, is no error.
        let message = clean_lines(message);
        let show = || _ = writeln!(io::stderr(), "{message}");
        match &self.form {
            Form::Bars { bars, .. } => bars.suspend(show),
            Form::Lines | Form::None => show(),
        }
    }

    /// Removes the bars, so that results stand alone.
    pub fn clear(&self) {
        for (_, line) in self.lines().drain() {
            line.clear();
        }
        if let Form::Bars { bars, total } = &self.form {
            total.finish_and_clear();
            // Where the terminal has gone there is nothing to be cleared.
            let _ = bars.clear();
        }
    }

    /// Begins work on a plan; `id` names it from now on.
    pub fn begin(&self, id: &str, name: String, plan: &Plan, is_virtual: bool) {
        let spinner = self.form.spinner(&name);
        let line = Line {
            name,
            names: steps::names(plan),
            expected: expected(plan, is_virtual),
            done: Duration::ZERO,
            step: String::new(),
            spinner,
        };
        self.lines().insert(id.to_owned(), line);
    }

    /// Shows an event of the work called `id`.
    pub fn show(&self, id: &str, event: &Event) {
        let mut lines = self.lines();
        let Some(line) = lines.get_mut(id) else {
            return;
        };
        match event {
            Event::Booting => self.at(line, "boots (once: the booted guest is kept)"),
            Event::Resuming => self.at(line, "starts (the booted guest was kept)"),
            Event::Unreached(why) => self.at(
                line,
                &format!(
                    "{}  not reached ({why}): it goes on there, and is looked for",
                    line.step
                ),
            ),
            Event::Reached => self.at(line, &format!("{}  reached again", line.step)),
            Event::Record(record) => {
                if let Record::Started(started) = &**record {
                    self.show_step(line, started);
                }
            }
            Event::Progress(progress) => self.show_samples(line, progress),
        }
    }

    fn show_step(&self, line: &mut Line, started: &Started) {
        let step = started.step as usize;
        let (number, all) = (step + 1, line.expected.len());
        // A run that is repeated for some of its steps may begin the next before it is ended.
        if number > all {
            return;
        }
        line.step = format!("{number}/{all}  {}", line.names[step]);
        self.at(line, &line.step);
        self.advance(line, line.up_to(step));
    }

    /// Shows the samples so far, on a line that can change.
    fn show_samples(&self, line: &mut Line, progress: &Progressed) {
        if let Some(spinner) = &line.spinner {
            spinner.set_message(format!("{}  {}", line.step, samples(progress)));
        }
        let step = progress.step as usize;
        let share = progress
            .of
            .map_or(0.0, |of| progress.count as f64 / of.max(1) as f64);
        let expected = line.expected.get(step).copied().unwrap_or_default();
        self.advance(line, line.up_to(step) + expected.mul_f64(share.min(1.0)));
    }

    /// The current step of the work called `id`; empty before the first.
    pub fn step(&self, id: &str) -> String {
        let lines = self.lines();
        lines
            .get(id)
            .map_or_else(String::new, |line| line.step.clone())
    }

    /// Ends the work called `id`, with `message`.
    pub fn end(&self, id: &str, message: &str) {
        let Some(mut line) = self.lines().remove(id) else {
            return;
        };
        let all = line.expected.iter().sum();
        self.advance(&mut line, all);
        line.clear();
        self.say(&format!("{}: {message}", line.name));
    }

    fn at(&self, line: &Line, message: &str) {
        match &line.spinner {
            Some(spinner) => spinner.set_message(message.to_owned()),
            None => self.say(&format!("{}: {message}", line.name)),
        }
    }

    /// Counts `done` of a run as done.
    fn advance(&self, line: &mut Line, done: Duration) {
        let more = done.saturating_sub(line.done);
        line.done += more;
        let mut estimate = self.estimate.lock().unwrap_or_else(PoisonError::into_inner);
        estimate.done += more;
        if let Form::Bars { total, .. } = &self.form {
            total.set_position(units(estimate.done));
            let left = estimate.left(self.begun.elapsed());
            total.set_message(format!("about {} left", HumanDuration(left)));
        }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<String, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the reason why a run has failed; in short if another has failed in the same way.
    fn complain_once(&self, run: &Run, failure: &str) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = failures.insert(failure.to_owned());
        drop(failures);
        if is_new {
            self.complain(failure);
        } else {
            self.complain(&format!("punctual: {}: failed as before", name(run)));
        }
    }

    /// The number of runs that have ended, and the expected end of the others, if there are many.
    fn so_far(&self) -> String {
        let made = self.made.fetch_add(1, Ordering::SeqCst) + 1;
        let ended = made + self.kept.load(Ordering::SeqCst);
        if self.runs < MANY {
            return String::new();
        }
        if ended == self.runs {
            return format!("; all {ended} runs");
        }
        let estimate = self.estimate.lock().unwrap_or_else(PoisonError::into_inner);
        let left = HumanDuration(estimate.left(self.begun.elapsed()));
        format!("; {ended} of {} runs, about {left} left", self.runs)
    }
}

impl Observer for Progress {
    fn begun(&self, run: &Run, plan: &Plan) {
        self.begin(&run.id, name(run), plan, run.is_virtual());
    }

    fn event(&self, run: &Run, event: &Event) {
        self.show(&run.id, event);
    }

    fn ended(&self, run: &Run, ending: &RunEnding) {
        let so_far = self.so_far();
        self.end(
            &run.id,
            &format!(
                "{} is {}{}; prepared in {:.1} s, measured in {:.1} s{so_far}",
                run.id,
                run.state,
                latest(run),
                ending.preparing.as_secs_f64(),
                ending.measuring.as_secs_f64()
            ),
        );
        if run.state == State::Failed {
            self.complain_once(run, &failure(run, ending));
        }
    }

    fn kept(&self, run: &Run, plan: &Plan) {
        self.kept.fetch_add(1, Ordering::SeqCst);
        // It takes no time, so it is not part of what there is to do either.
        let expected: Duration = expected(plan, run.is_virtual()).iter().sum();
        let mut estimate = self.estimate.lock().unwrap_or_else(PoisonError::into_inner);
        estimate.total = estimate.total.saturating_sub(expected);
        if let Form::Bars { total, .. } = &self.form {
            total.set_length(units(estimate.total));
        }
        drop(estimate);
        self.say(&format!(
            "{}: {} is taken from the store",
            name(run),
            run.id
        ));
    }

    fn elsewhere(&self, id: &str, run: &Run) {
        let mut known = self
            .elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known.insert(id.to_owned()) {
            self.say(&waiting(id, run));
        }
    }
}

impl Form {
    fn new(estimate: &Estimate, quiet: bool) -> Self {
        if quiet {
            return Self::None;
        }
        if !io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bars = MultiProgress::new();
        let style = style("{wide_bar:.cyan/blue} {percent:>3} %  {elapsed_precise}, {msg}");
        let total = ProgressBar::new(units(estimate.total)).with_style(style);
        let left = HumanDuration(estimate.left(Duration::ZERO));
        let total = bars.add(total.with_message(format!("about {left} left")));
        total.enable_steady_tick(Duration::from_millis(250));
        Self::Bars { bars, total }
    }

    fn spinner(&self, name: &str) -> Option<ProgressBar> {
        let Self::Bars { bars, total } = self else {
            return None;
        };
        let style = style("{spinner} {prefix}  {msg}  {elapsed}");
        let spinner = ProgressBar::new_spinner().with_style(style);
        let spinner = bars.insert_before(total, spinner.with_prefix(name.to_owned()));
        spinner.enable_steady_tick(Duration::from_millis(250));
        Some(spinner)
    }
}

impl Line {
    /// The expected duration of the steps before this one.
    fn up_to(&self, step: usize) -> Duration {
        self.expected.iter().take(step).sum()
    }

    fn clear(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

/// `1,234 of 2,000, worst 6.44 µs`.
fn samples(progress: &Progressed) -> String {
    let count = HumanCount(progress.count);
    let of = progress
        .of
        .map_or(String::new(), |of| format!(" of {}", HumanCount(of)));
    let worst = progress
        .worst
        .map_or(String::new(), |worst| format!(", worst {worst}"));
    format!("{count}{of}{worst}")
}

/// `, worst 291 µs (timer, stress)`: the latest sample of a run, before the table tells the rest.
fn latest(run: &Run) -> String {
    let latencies = run.recordings.iter();
    let latencies = latencies.filter(|one| counts_by_worst(&one.key.probe));
    let worst = latencies.filter_map(|one| Some((one.max()?, &one.key)));
    let worst = worst.max_by_key(|(worst, _)| *worst);
    worst.map_or_else(String::new, |(worst, key)| {
        format!(", worst {worst} ({}, {})", key.probe, key.load)
    })
}

/// The reason why a run has failed, a hint, and the last lines of its console. A run that the bench
/// ended on request has not failed there.
pub fn failure(run: &Run, ending: &RunEnding) -> String {
    let (name, reason) = (&run.subject.name, run.error.as_deref().unwrap_or_default());
    match &ending.result {
        Ok(()) | Err(RunError::Interrupted) => format!("punctual: {name}: {reason}"),
        Err(error) => {
            let (hint, tail) = (hints::of_run(error), tail(&run.console));
            format!("punctual: {name}: {reason}{hint}{tail}")
        }
    }
}

/// The message while another process measures a run, as the run with this id.
pub fn waiting(id: &str, run: &Run) -> String {
    let name = name(run);
    format!("{name}: another process measures it as {id}; Punctual waits for its result")
}

fn name(run: &Run) -> String {
    format!("{} (seed {})", run.subject.name, run.seed)
}

/// Milliseconds, the unit of the bars.
fn units(time: Duration) -> u64 {
    time.as_millis() as u64
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant and well-formed")
}

//! Progress on standard error: bars on a terminal, a line for each step elsewhere.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressStyle};
use punctual_bench::site::Event;
use punctual_model::Record;

/// From so many runs on it is told after each one how many are left.
const MANY: usize = 5;

/// Where progress is shown.
pub struct Progress {
    form: Form,
    runs: usize,
    /// How many of them the store had.
    kept: AtomicUsize,
    /// How many were made.
    made: AtomicUsize,
    begun: Instant,
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

impl Progress {
    /// Progress on `steps` steps in `runs` runs altogether; none at all if `quiet`.
    pub fn new(steps: u64, runs: usize, quiet: bool) -> Self {
        let form = if quiet {
            Form::None
        } else if io::stderr().is_terminal() {
            let bars = MultiProgress::new();
            let style = style(
                "{wide_bar:.cyan/blue} {pos}/{len} steps  {elapsed_precise}, about {eta} left",
            );
            let total = bars.add(ProgressBar::new(steps).with_style(style));
            total.enable_steady_tick(Duration::from_millis(250));
            Form::Bars { bars, total }
        } else {
            Form::Lines
        };
        Self {
            form,
            runs,
            kept: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            begun: Instant::now(),
        }
    }

    /// A run of `steps` steps need not be made: the store has it, as the run `id`.
    pub fn keep(&self, name: &str, steps: usize, id: &str) {
        if let Form::Bars { total, .. } = &self.form {
            total.inc(steps as u64);
            total.reset_eta();
        }
        self.kept.fetch_add(1, Ordering::SeqCst);
        self.say(&format!("{name}: {id} is taken from the store"));
    }

    /// How many runs have ended, and when the others may, if there are many.
    fn so_far(&self) -> String {
        let made = self.made.fetch_add(1, Ordering::SeqCst) + 1;
        let ended = made + self.kept.load(Ordering::SeqCst);
        if self.runs < MANY {
            return String::new();
        }
        let each = self.begun.elapsed().as_secs_f64() / made as f64;
        let left = Duration::from_secs_f64(each * self.runs.saturating_sub(ended) as f64);
        let left = HumanDuration(left);
        format!("; {ended} of {} runs, about {left} left", self.runs)
    }

    /// Shows a message that stays.
    pub fn say(&self, message: &str) {
        match &self.form {
            Form::Bars { bars, .. } => bars.suspend(|| eprintln!("{message}")),
            Form::Lines => eprintln!("{message}"),
            Form::None => {}
        }
    }

    /// Shows an error, which is never kept quiet.
    pub fn complain(&self, message: &str) {
        match &self.form {
            Form::Bars { bars, .. } => bars.suspend(|| eprintln!("{message}")),
            Form::Lines | Form::None => eprintln!("{message}"),
        }
    }

    /// Progress on one run of `steps` steps.
    pub fn line(&self, name: String, steps: usize) -> Line<'_> {
        let spinner = match &self.form {
            Form::Bars { bars, total } => {
                let style = style("{spinner} {prefix}  {msg}  {elapsed}");
                let spinner = ProgressBar::new_spinner().with_style(style);
                let spinner = bars.insert_before(total, spinner.with_prefix(name.clone()));
                spinner.enable_steady_tick(Duration::from_millis(250));
                Some(spinner)
            }
            Form::Lines | Form::None => None,
        };
        Line {
            progress: self,
            name,
            steps,
            spinner,
        }
    }

    /// Takes the bars away, so that results stand alone.
    pub fn clear(&self) {
        if let Form::Bars { bars, .. } = &self.form {
            // Where the terminal has gone there is nothing to be cleared.
            let _ = bars.clear();
        }
    }
}

/// Progress on one run.
pub struct Line<'a> {
    progress: &'a Progress,
    name: String,
    steps: usize,
    spinner: Option<ProgressBar>,
}

impl Line<'_> {
    /// Shows what has happened, if it says where the run is.
    pub fn show(&self, event: &Event) {
        match event {
            Event::Booting => self.at("boots (once: the booted guest is kept)"),
            Event::Resuming => self.at("resumes"),
            Event::Record(record) => self.show_record(record),
            Event::Progress(_) => {}
        }
    }

    fn show_record(&self, record: &Record) {
        if let Record::Started(started) = record {
            // Steps before this one are done.
            if started.step > 0 {
                self.step_done();
            }
            let number = started.step + 1;
            let (probe, load) = (&started.probe, &started.load);
            self.at(&format!("{number}/{}  {probe} / {load}", self.steps));
        }
    }

    fn at(&self, message: &str) {
        match &self.spinner {
            Some(spinner) => spinner.set_message(message.to_owned()),
            None => self.progress.say(&format!("{}: {message}", self.name)),
        }
    }

    fn step_done(&self) {
        if let Form::Bars { total, .. } = &self.progress.form {
            total.inc(1);
        }
    }

    /// The run has ended, as `message` says.
    pub fn end(self, message: &str) {
        self.step_done();
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
        let so_far = self.progress.so_far();
        self.progress
            .say(&format!("{}: {message}{so_far}", self.name));
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant and well-formed")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer to a limit: fit, unfit or undecided, with the reason.

use std::fmt;

use punctual_model::limit::{Bound, Figure, Limit};
use punctual_model::{Nanos, RecordingKey};

use crate::rule::percent;

/// The degree to which a subject keeps to a limit; the worse, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fitness {
    /// It keeps to the limit, with the confidence asked for.
    Fit,
    /// It cannot be decided.
    Undecided,
    /// It breaks the limit.
    Unfit,
}

impl Fitness {
    /// The fitness as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fit => "fit",
            Self::Undecided => "undecided",
            Self::Unfit => "unfit",
        }
    }
}

impl fmt::Display for Fitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The answers to all limits.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// One answer for each limit, subject and measurement; never empty.
    pub answers: Vec<Answer>,
    /// Remarks on how runs were counted: copies count once.
    pub remarks: Vec<String>,
    /// The commands that decide what further runs can decide, one after the other; empty if the
    /// caller knows none.
    pub decide: Vec<String>,
}

impl Judgement {
    /// The fitness for all limits: that of the worst answer.
    pub fn fitness(&self) -> Fitness {
        let all = self.answers.iter().map(|answer| answer.fitness);
        all.max().unwrap_or(Fitness::Undecided)
    }

    /// Returns true if something is undecided that further runs could decide. They cannot close a
    /// gap.
    pub fn needs_runs(&self) -> bool {
        let open =
            |one: &Answer| one.fitness == Fitness::Undecided && !matches!(one.why, Why::Gap(_));
        self.answers.iter().any(open)
    }

    /// The undecided subjects that further runs can decide, and the number of runs that this takes
    /// at best.
    pub fn subjects_to_decide(&self) -> (Vec<&str>, usize) {
        let mut found = (Vec::new(), 0);
        for answer in &self.answers {
            if let Some(More::Runs(more)) = answer.more {
                found.0.push(answer.subject.as_str());
                found.1 = more.max(found.1);
            }
        }
        found
    }
}

/// The answer to one limit, for one subject and one measurement.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The limit.
    pub limit: Limit,
    /// Name of the subject.
    pub subject: String,
    /// The measurement; without a variant if nothing was measured.
    pub key: RecordingKey,
    /// The verdict.
    pub fitness: Fitness,
    /// The reason for the verdict.
    pub why: Why,
    /// The sample that decided the verdict, or came closest to the limit.
    pub sample: Option<Decisive>,
    /// The number of independent runs that the verdict rests on.
    pub runs: usize,
    /// The number of samples in these runs.
    pub samples: u64,
    /// The measured time of these runs.
    pub time: Nanos,
    /// The number of samples per second above the limit that is excluded, at the confidence asked
    /// for; only for limits of single samples.
    pub excluded: Option<f64>,
    /// The further evidence that would decide an undecided limit.
    pub more: Option<More>,
}

/// A sample and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decisive {
    /// The run's id.
    pub run: String,
    /// The run's seed.
    pub seed: u64,
    /// True if the run was measured by another program, and so has no seed.
    pub is_imported: bool,
    /// Value of the sample.
    pub value: Nanos,
    /// Number of the sample; `None` if samples were only counted.
    pub seq: Option<u64>,
    /// The time at which it was due, counted as its recording does; `None` likewise.
    pub at: Option<Nanos>,
    /// True if it can be explained: its run can be repeated, or the kernel's tracer caught it.
    pub can_be_explained: bool,
}

/// The reason for a verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// A sample is above the bound.
    Broken {
        /// The bound.
        bound: Nanos,
        /// The number of runs with such a sample.
        runs_with: u64,
    },
    /// No sample is above the bound.
    Kept {
        /// The bound.
        bound: Nanos,
    },
    /// An aimed sample was later than the limit.
    Reached {
        /// The run of the sample.
        run: String,
        /// The run's seed.
        seed: u64,
        /// The lateness of the sample.
        late: Nanos,
        /// The function that ran for most of its delay; `None` if that is not known.
        function: Option<String>,
    },
    /// No arrival is later than the limit.
    Arrivals {
        /// The time examined in all runs.
        time: Nanos,
        /// The lateness of the latest of all arrivals.
        worst: Nanos,
        /// The lateness of the latest aimed sample; `None` if none was aimed.
        reached: Option<Nanos>,
    },
    /// In the worst run this many periods were missed.
    Missed {
        /// The number of missed periods.
        count: u64,
        /// The run.
        run: String,
    },
    /// In the worst run the largest sample exceeds the smallest by this much.
    Jitter {
        /// The difference.
        jitter: Nanos,
        /// The run.
        run: String,
    },
    /// Samples above a bound come at this rate.
    Rate {
        /// The number of samples.
        count: u64,
        /// The least and the most in the time that the limit names.
        per_limit: (f64, f64),
    },
    /// This many runs keep to the bound.
    Typical {
        /// The number of these runs.
        within: usize,
        /// The figure of the middle run.
        middle: f64,
    },
    /// The ratio to another subject.
    Ratio {
        /// The ratio.
        estimate: f64,
        /// Its bounds, each at the level; `None` if there are too few runs.
        bounds: Option<(f64, f64)>,
    },
    /// There is no complete answer.
    Gap(String),
}

/// The further evidence that would decide an undecided limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum More {
    /// At least this many further runs with seeds of their own.
    Runs(usize),
    /// At least this many further runs of a program that has no seeds.
    Imports(usize),
    /// At least this much more measured time without a further sample above the bound.
    Time(Nanos),
    /// Knowledge of every arrival of each run.
    Watched {
        /// True if samples must be aimed at the worst arrivals.
        aimed: bool,
    },
    /// A measurement without the gap.
    Whole,
}

impl fmt::Display for More {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs(1) => f.write_str("at least 1 more run with a seed of its own"),
            Self::Runs(runs) => write!(f, "at least {runs} more runs with seeds of their own"),
            Self::Imports(1) => f.write_str("at least 1 more run"),
            Self::Imports(runs) => write!(f, "at least {runs} more runs"),
            Self::Time(time) => {
                write!(
                    f,
                    "at least {time} more of measured time with no sample above the bound"
                )
            }
            Self::Watched { aimed } => {
                let aim = if *aimed { " --aim 10" } else { "" };
                write!(f, "`punctual arrivals RUN{aim}` of each of the runs")
            }
            Self::Whole => f.write_str("a run without that gap"),
        }
    }
}

impl Answer {
    /// The reason in one sentence.
    pub fn reason(&self) -> String {
        let runs = self.runs;
        let in_runs = if runs == 1 {
            "1 run".to_owned()
        } else {
            format!("{runs} runs")
        };
        match &self.why {
            Why::Broken { bound, runs_with } => self.broken(*bound, *runs_with),
            Why::Kept { bound } => {
                let (samples, time) = (self.samples, self.time);
                let worst = self.sample.as_ref().map_or(String::new(), |one| {
                    format!("; the worst was {}", one.value)
                });
                let time = match time {
                    Nanos::ZERO => "in a time that is not known".to_owned(),
                    time => time.to_string(),
                };
                format!("none of {samples} samples in {in_runs} ({time}) is above {bound}{worst}")
            }
            Why::Reached {
                run,
                seed,
                late,
                function,
            } => {
                let function = function.as_ref();
                let within = function.map_or_else(String::new, |name| format!(" in `{name}`"));
                format!("an aimed sample of {run} (seed {seed}) was {late} late{within}")
            }
            Why::Arrivals {
                time,
                worst,
                reached,
            } => {
                let reached = reached.map_or_else(String::new, |reached| {
                    format!("; the latest aimed sample was {reached} late")
                });
                let moments = grouped(time.0);
                format!(
                    "the latest arrival of {moments} moments ({time}) in {in_runs} is {worst} \
                     late{reached}"
                )
            }
            Why::Missed { count, run } => {
                let periods = match count {
                    1 => "1 period was".to_owned(),
                    count => format!("{count} periods were"),
                };
                format!("{periods} missed in {run}, the most of {in_runs}")
            }
            Why::Jitter { jitter, run } => {
                format!("samples differ by up to {jitter} in {run}, the most of {in_runs}")
            }
            Why::Rate { count, per_limit } => {
                let (least, most) = per_limit;
                let confidence = confidence(&self.limit);
                format!(
                    "{count} of {} samples are above it in {in_runs} ({}): with {confidence} % \
                     confidence at most {most:.2} times in the time of the limit, and at least \
                     {least:.2} times",
                    self.samples, self.time
                )
            }
            Why::Typical { within, middle } => {
                let middle = self
                    .figure()
                    .map_or(String::new(), |one| one.shown(*middle));
                format!("{within} of {in_runs} keep to it; the middle one has {middle}")
            }
            Why::Ratio { estimate, bounds } => {
                let range = bounds.map_or_else(
                    || "too few runs for bounds".to_owned(),
                    |(low, high)| format!("from {:.1} to {:.1} %", low * 100.0, high * 100.0),
                );
                format!("it is {:.1} % over {in_runs}, {range}", estimate * 100.0)
            }
            Why::Gap(gap) => gap.clone(),
        }
    }

    fn broken(&self, bound: Nanos, runs_with: u64) -> String {
        let worst = self.sample.as_ref().map_or(String::new(), |one| {
            let times = one.value.0 as f64 / bound.0 as f64;
            let which = one.seq.map_or_else(
                || "the worst sample".to_owned(),
                |seq| format!("sample {seq}"),
            );
            let (run, value) = (&one.run, one.value);
            let seed = if one.is_imported {
                String::new()
            } else {
                format!(" (seed {})", one.seed)
            };
            format!("{which} of {run}{seed} was {value}, {times:.1} times {bound}")
        });
        match self.runs {
            1 => worst,
            runs => format!("{worst}; {runs_with} of {runs} runs have such a sample"),
        }
    }

    /// The figure that the limit is about, if it is one of runs.
    pub fn figure(&self) -> Option<&Figure> {
        use punctual_model::limit::Demand::{Relative, Typical};
        match &self.limit.demand {
            Typical(figure, _) | Relative(figure, ..) => Some(figure),
            _ => None,
        }
    }

    /// The exclusion and its confidence, in one sentence; `None` if nothing is excluded.
    pub fn confidence(&self) -> Option<String> {
        let confidence = confidence(&self.limit);
        let runs = self.runs;
        // 1 − level^(1/n): what share of runs with such a sample is excluded.
        let share = 1.0 - self.limit.level().powf(1.0 / runs.max(1) as f64);
        let of_runs = format!("in more than {} of runs", excluded_share(share));
        if let Why::Arrivals { .. } = self.why {
            return Some(format!(
                "excluded with {confidence} % confidence: such an arrival {of_runs}"
            ));
        }
        let excluded = self.excluded.filter(|rate| *rate > 0.0)?;
        let every = Nanos((1e9 / excluded) as i64);
        let of_runs = match self.why {
            Why::Kept { .. } => format!(", or {of_runs}"),
            _ => String::new(),
        };
        Some(format!(
            "excluded with {confidence} % confidence: such a sample more often than every \
             {every}{of_runs}"
        ))
    }
}

/// Formats a share that is excluded: whole per cents or, of less than ten, two digits that claim no
/// more than is true.
fn excluded_share(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 {
        return format!("{percent:.0} %");
    }
    let digits = (1.0 - percent.log10().floor()).max(1.0);
    let scale = 10_f64.powf(digits);
    let percent = (percent * scale).ceil() / scale;
    format!("{percent:.*} %", digits as usize)
}

/// Formats a number as `1,234,567`.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let parts = digits.as_bytes().rchunks(3).rev();
    let parts: Vec<_> = parts.map(String::from_utf8_lossy).collect();
    parts.join(",")
}

/// The limit's confidence in per cent.
fn confidence(limit: &Limit) -> f64 {
    percent(limit.confidence)
}

/// Turns a bound and its values so that lower is better.
pub(crate) fn upright(bound: Bound, values: &[f64]) -> (f64, Vec<f64>) {
    match bound {
        Bound::AtMost(most) => (most, values.to_vec()),
        Bound::AtLeast(least) => (-least, values.iter().map(|one| -one).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_is_excluded_is_never_zero_and_never_too_small() {
        let of = |runs: i32| excluded_share(1.0 - 0.05_f64.powf(1.0 / f64::from(runs)));
        assert_eq!([of(1), of(5), of(28)], ["95 %", "45 %", "10 %"]);
        assert_eq!([of(29), of(59), of(200)], ["9.9 %", "5.0 %", "1.5 %"]);
        assert_eq!([of(700), of(1_000)], ["0.43 %", "0.30 %"]);
    }
}

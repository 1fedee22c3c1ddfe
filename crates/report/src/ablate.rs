// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benefits and costs of options, each measured against a base without it, row by row, and ranked.

mod json;
mod page;
mod text;

use punctual_judge::{Comparison as Judged, Pair, Rule, Verdict, compare_rows, fate, is_identical};
use punctual_model::run::State;
use punctual_model::{Nanos, Reason, Recording, Run};

use crate::arrivals::as_far_as_foretold;
use crate::asked::{Asked, middle_run};
use crate::matrix::{Column, Matrix, Measured, Measurement};
use crate::series::{Figure, figures};
use crate::stats::Stats;
use crate::why::Why;

pub use json::ablation_json;
pub use page::ablation_page;
pub use text::ablation_text;

/// Options against a base.
#[derive(Debug)]
pub struct Ablation {
    /// The suite's name.
    pub suite: String,
    /// The base.
    pub base: Side,
    /// Measurements that some of the base's runs lack, with reasons.
    pub unmeasured: Vec<String>,
    /// The options tried, ranked: the largest change comes first.
    pub trials: Vec<Trial>,
    /// The options not tried, with reasons.
    pub untried: Vec<Untried>,
    /// The confidence rule for the verdicts on one option.
    pub rule: Rule,
    /// True if Ctrl-C ended it before everything was tried.
    pub is_interrupted: bool,
}

/// A kernel with boot arguments, and the setup of its guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The kernel.
    pub kernel: String,
    /// Its boot arguments.
    pub boot: String,
    /// Commands that `sh` runs in the guest as each step begins, one after the other.
    pub setup: Vec<String>,
}

/// An option, or two, that was tried.
#[derive(Debug)]
pub struct Trial {
    /// The names of its options.
    pub names: Vec<String>,
    /// The kernel and the boot arguments with it.
    pub side: Side,
    /// The runs with it, by their ids.
    pub runs: Vec<String>,
    /// The advice about it, if any.
    pub advice: Option<Advice>,
    /// Each figure of each measurement.
    pub rows: Vec<Row>,
    /// The reason for no result, if it could not be measured as a whole.
    pub gap: Option<String>,
    /// The boot arguments that its kernel does not know.
    pub unknown: Vec<String>,
    /// The cause of the largest change: the path that it removes or adds.
    pub why: Option<(Asked, Why)>,
}

/// An option that was not tried.
#[derive(Clone, Debug)]
pub struct Untried {
    /// The option's name.
    pub name: String,
    /// The reason.
    pub why: String,
    /// The advice about it, if any.
    pub advice: Option<Advice>,
}

/// Advice about an option, to be checked against the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The author of the advice.
    pub source: String,
    /// The text of the advice.
    pub says: String,
    /// True if samples are expected to be longer: the option takes away what is advised.
    pub is_higher: bool,
    /// The probe that it is about; `None` for each latency.
    pub probe: Option<String>,
    /// The load that it is about; `None` for each load.
    pub load: Option<String>,
}

/// One figure of one measurement.
#[derive(Debug)]
pub struct Row {
    /// The measurement.
    pub row: Measurement,
    /// The figure of the measurement.
    pub figure: Figure,
    /// The middle one of the base's runs.
    pub base: Nanos,
    /// The middle one of the runs with the option.
    pub with: Nanos,
    /// Run by run: lower, higher, not separated, identical.
    pub judged: Judged,
}

/// The outcome of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The option does as said in some row that is meant, and the opposite in none.
    Holds,
    /// The option does as said in some row, and the opposite in another.
    InPart,
    /// The option does the opposite in some row, and as said in none.
    Opposite,
    /// The option does not do as said: an effect worth finding is excluded in each row.
    DoesNotHold,
    /// No conclusion is possible.
    Undecided,
}

impl Outcome {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::InPart => "holds in part, and elsewhere the opposite is so",
            Self::Opposite => "does not hold: the opposite is so",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
        }
    }
}

impl Row {
    /// Returns its title: `timer, stress, cpu0: worst`.
    pub fn title(&self) -> String {
        format!("{}: {}", self.row.title(), self.figure.name())
    }

    /// Returns the amount by which it is longer with the option.
    pub fn by(&self) -> Nanos {
        self.with - self.base
    }

    /// Returns true if the option changes it by more than chance.
    pub fn is_told(&self) -> bool {
        matches!(self.judged.verdict, Verdict::Lower | Verdict::Higher)
    }

    fn is_latency(&self) -> bool {
        !self.row.is_throughput()
    }

    /// Returns true if a change for the better that is worth finding is excluded.
    /// For `is_higher`, a longer figure counts as the change.
    fn excludes(&self, is_higher: bool, rule: &Rule) -> bool {
        if self.judged.verdict == Verdict::Identical {
            return true;
        }
        let bounds = self.judged.ratio.and_then(|ratio| ratio.bounds);
        let is_excluded = |(low, high): (f64, f64)| {
            if is_higher {
                high < rule.effect
            } else {
                low > 1.0 / rule.effect
            }
        };
        bounds.is_some_and(is_excluded)
    }
}

impl Trial {
    /// Its name.
    pub fn name(&self) -> String {
        self.names.join(" + ")
    }

    /// Returns true if it is two options together: such have figures and no verdict, as the rule's
    /// level is divided among single options.
    pub fn is_pair(&self) -> bool {
        self.names.len() > 1
    }

    /// The rows that the option changes, the largest change first: latencies before throughput.
    /// None of a pair's, which has no verdict.
    pub fn told(&self) -> Vec<&Row> {
        let told = |row: &&Row| !self.is_pair() && row.is_told();
        self.sorted(told)
    }

    /// These rows, the largest change first: latencies before throughput.
    fn sorted(&self, is_meant: impl Fn(&&Row) -> bool) -> Vec<&Row> {
        let mut meant: Vec<&Row> = self.rows.iter().filter(is_meant).collect();
        meant.sort_by_key(|row| (!row.is_latency(), -row.by().0.abs()));
        meant
    }

    /// Returns true if it behaves as the base does, to the last sample of all rows.
    pub fn is_identical(&self) -> bool {
        let is_same = |row: &Row| row.judged.verdict == Verdict::Identical;
        self.gap.is_none() && !self.rows.is_empty() && self.rows.iter().all(is_same)
    }

    /// Returns the largest change of any latency, in nanoseconds; 0 if it changes none.
    fn rank(&self) -> i64 {
        let latencies = self.told().into_iter().filter(|row| row.is_latency());
        latencies.map(|row| row.by().0.abs()).max().unwrap_or(0)
    }

    /// Returns the outcome of the advice about it; `None` if there is no advice.
    pub fn outcome(&self, rule: &Rule) -> Option<Outcome> {
        let advice = self.advice.as_ref()?;
        let is_meant = |row: &&Row| {
            let is_of = |own: &Option<String>, of: &str| own.as_deref().is_none_or(|own| own == of);
            row.is_latency()
                && is_of(&advice.probe, &row.row.probe)
                && is_of(&advice.load, &row.row.load)
        };
        let mut meant: Vec<&Row> = self.rows.iter().filter(is_meant).collect();
        // The latest of every arrival answers what the worst sample draws by lot.
        let known = meant.iter().filter(|row| row.figure == Figure::Arrival);
        let known: Vec<_> = known.map(|row| row.row.key()).collect();
        meant.retain(|row| row.figure != Figure::Worst || !known.contains(&row.row.key()));
        let (wanted, opposite) = if advice.is_higher {
            (Verdict::Higher, Verdict::Lower)
        } else {
            (Verdict::Lower, Verdict::Higher)
        };
        let any = |verdict: Verdict| meant.iter().any(|row| row.judged.verdict == verdict);
        Some(
            if self.gap.is_some() || meant.is_empty() || !self.unknown.is_empty() {
                Outcome::Undecided
            } else if any(wanted) && any(opposite) {
                Outcome::InPart
            } else if any(wanted) {
                Outcome::Holds
            } else if any(opposite) {
                Outcome::Opposite
            } else if meant.iter().all(|row| row.excludes(advice.is_higher, rule)) {
                Outcome::DoesNotHold
            } else {
                Outcome::Undecided
            },
        )
    }

    /// Returns the question to ask of it.
    /// The question is about the latency that it changes most, and names the middle run of both
    /// sides. Returns `None` if it changes none.
    pub fn asked(&self, runs: &[Run], base: &[Run]) -> Option<Asked> {
        let told = self.told().into_iter();
        let mut told = told.filter_map(|row| Some((row.row.key(), row.figure.share()?)));
        let (key, share) = told.next()?;
        let middle = |runs| middle_run(runs, &key, share).map(|run| run.id.clone());
        let runs = [middle(runs)?, middle(base)?];
        Some(Asked { key, share, runs })
    }
}

impl Ablation {
    /// Sorts the trials by change, the largest first. Trials without a change keep their order, and
    /// so do pairs.
    pub fn rank(&mut self) {
        self.trials.sort_by_key(|trial| -trial.rank());
    }

    /// The options that change something by themselves, by their numbers, and so may interact.
    pub fn that_change(&self) -> Vec<usize> {
        let changes = |at: &usize| !self.trials[*at].told().is_empty();
        (0..self.trials.len()).filter(changes).collect()
    }

    /// The rows to show of a trial: those that its option changes; of a pair, those that one of its
    /// two options changes by itself.
    pub fn shown<'a>(&self, trial: &'a Trial) -> Vec<&'a Row> {
        if !trial.is_pair() {
            return trial.told();
        }
        let is_own = |one: &&Trial| !one.is_pair() && trial.names.contains(&one.names[0]);
        let singles = self.trials.iter().filter(is_own);
        let changed: Vec<String> = singles
            .flat_map(|one| one.told().into_iter().map(Row::title))
            .collect();
        trial.sorted(|row| changed.contains(&row.title()))
    }

    /// Returns the sum of the changes that two options make separately, in a row of both together.
    /// Returns `None` if one of the two was not measured.
    pub fn sum_of_parts(&self, pair: &Trial, row: &Row) -> Option<Nanos> {
        let [one, other] = pair.names.as_slice() else {
            return None;
        };
        let by = |name: &String| {
            let mut singles = self.trials.iter();
            let single = singles.find(|trial| trial.names == [name.clone()])?;
            let mut rows = single.rows.iter();
            let own = rows.find(|own| own.title() == row.title())?;
            Some(own.by())
        };
        Some(by(one)? + by(other)?)
    }
}

/// Compares runs with an option with those of the base.
/// One rule holds for all rows together; `names` are the option's names.
pub fn trial(names: Vec<String>, side: Side, runs: &[Run], base: &[Run], rule: &Rule) -> Trial {
    let gap = runs
        .iter()
        .chain(base)
        .find(|run| run.state != State::Finished)
        .map(|run| format!("{} (seed {}): {}", run.id, run.seed, fate(run)))
        .or_else(|| lacks(runs, base, &side))
        .or_else(|| cut_short(runs.iter().chain(base)).next());
    let (own_matrix, base_matrix) = (Matrix::new(runs), Matrix::new(base));
    let rows = match (own_matrix.columns.first(), base_matrix.columns.first()) {
        (Some(own), Some(other)) if gap.is_none() => rows(&base_matrix.rows, own, other, rule),
        _ => Vec::new(),
    };
    let gap = gap.or_else(|| {
        let why = "nothing that both have was measured";
        rows.is_empty().then(|| why.to_owned())
    });
    Trial {
        names,
        side,
        runs: runs.iter().map(|run| run.id.clone()).collect(),
        advice: None,
        unknown: unknown(runs),
        rows,
        gap,
        why: None,
    }
}

/// Finds a measurement that one of these runs lacks, with the reason.
/// The base's run of its seed has the measurement.
fn lacks(runs: &[Run], base: &[Run], side: &Side) -> Option<String> {
    let each = runs.iter().flat_map(|run| {
        let own = run.unsupported.iter();
        own.map(move |one| (run, one))
    });
    let mut own = each.filter(|(run, one)| {
        let mut same_seed = base.iter().filter(|other| other.seed == run.seed);
        !same_seed.any(|other| other.unsupported.iter().any(|its| its.step == one.step))
    });
    let (run, one) = own.next()?;
    let why = match &one.reason {
        Reason::NotLoaded {
            worker,
            why,
            detail,
        } if side.setup.iter().any(|setup| worker.contains(setup)) => {
            format!("its setup {why}: {detail}")
        }
        reason => reason.to_string(),
    };
    Some(format!(
        "{} (seed {}): {} / {} could not be measured: {why}",
        run.id, run.seed, one.probe, one.load
    ))
}

/// Lists the measurements that some of these runs lack, each with its reason.
pub fn unmeasured(runs: &[Run]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for one in runs.iter().flat_map(|run| &run.unsupported) {
        let said = format!("{} / {}: {}", one.probe, one.load, one.reason);
        if !all.contains(&said) {
            all.push(said);
        }
    }
    all
}

/// Counts the figures of these runs, all of one subject, that a trial compares.
pub fn figure_count(runs: &[Run]) -> usize {
    let matrix = Matrix::new(runs);
    let Some(column) = matrix.columns.first() else {
        return 0;
    };
    let of_row = |row: &Measurement| {
        let there = |figure: &&Figure| !values(column, row, **figure).is_empty();
        figures(row).iter().filter(there).count()
    };
    matrix.rows.iter().map(of_row).sum()
}

/// A run, its recording, and its figure.
type Found<'a> = (&'a Run, &'a Recording, Nanos);

fn rows(all: &[Measurement], own: &Column<'_>, base: &Column<'_>, rule: &Rule) -> Vec<Row> {
    let (mut found, mut pairs) = (Vec::new(), Vec::new());
    for row in all {
        for figure in figures(row) {
            let [ones, others] = [own, base].map(|column| values(column, row, *figure));
            // What was watched in some runs only is compared with nothing.
            let is_whole = figure.share().is_some()
                || (ones.len(), others.len()) == (own.runs.len(), base.runs.len());
            if let (true, Some(with), Some(base)) = (is_whole, middle(&ones), middle(&others)) {
                found.push((row.clone(), *figure, base, with));
                pairs.push(pair(*figure, &ones, &others));
            }
        }
    }
    let judged = compare_rows(&pairs, rule).into_iter().zip(&pairs);
    let row = |((row, figure, base, with), (judged, pair)): (_, (Judged, _))| Row {
        row,
        figure,
        base,
        with,
        judged: match figure {
            Figure::Arrival => as_far_as_foretold(judged, pair),
            _ => judged,
        },
    };
    found.into_iter().zip(judged).map(row).collect()
}

fn pair(figure: Figure, ones: &[Found<'_>], others: &[Found<'_>]) -> Pair {
    let numbers = |side: &[Found<'_>]| side.iter().map(|(.., value)| value.0 as f64).collect();
    let runs = ones.iter().chain(others).map(|(run, ..)| run.id.clone());
    // Equal samples say nothing of arrivals between them.
    let by_seed = |side: &[Found<'_>]| {
        let mut values: Vec<_> = side
            .iter()
            .map(|(run, _, value)| (run.seed, *value))
            .collect();
        values.sort_unstable();
        values
    };
    let is_equal = figure.share().is_some() || by_seed(ones) == by_seed(others);
    Pair {
        is_identical: is_equal && is_identical(&recordings(ones), &recordings(others)),
        of: numbers(ones),
        than: numbers(others),
        runs: runs.collect(),
    }
}

/// Lists what was ended early, such as by a program that crashed.
fn cut_short<'a>(runs: impl Iterator<Item = &'a Run>) -> impl Iterator<Item = String> {
    runs.flat_map(|run| {
        let ended = run.recordings.iter().filter_map(Recording::interruption);
        ended.map(|why| format!("{} (seed {}): {why}", run.id, run.seed))
    })
}

fn recordings<'a>(side: &[Found<'a>]) -> Vec<(&'a Run, &'a Recording)> {
    let pairs = side.iter().map(|(run, recording, _)| (*run, *recording));
    pairs.collect()
}

/// Each run's figure of a measurement.
fn values<'a>(column: &Column<'a>, row: &Measurement, figure: Figure) -> Vec<Found<'a>> {
    let of_run = |one: Measured<'a>| {
        let value = figure.of(&Stats::of(&[one]))?;
        Some((one.run, one.recording, value))
    };
    column.found(row).into_iter().filter_map(of_run).collect()
}

fn middle(side: &[Found<'_>]) -> Option<Nanos> {
    let mut values: Vec<Nanos> = side.iter().map(|(.., value)| *value).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// The boot arguments that the kernel said it does not know.
///
/// Sources: `init/main.c`, `print_unknown_bootoptions`; `fs/proc/proc_sysctl.c`,
/// `process_sysctl_arg`.
fn unknown(runs: &[Run]) -> Vec<String> {
    const WORDS: &str = "Unknown kernel command line parameters \"";
    const SYSCTL: &str = "Failed to set sysctl parameter '";
    let own = runs.first().map_or("", |run| &run.subject.boot);
    let is_said = |word: &str| {
        let among = |said: &str| said.split_whitespace().any(|said| said == word);
        let mut lines = runs.iter().flat_map(|run| run.console.lines());
        lines.any(|line| {
            let between = |start: &str, end: char| line.split_once(start)?.1.split_once(end);
            let sysctl = between(SYSCTL, '\'').map(|(said, _)| said);
            between(WORDS, '"').is_some_and(|(said, _)| among(said))
                || sysctl.is_some_and(|said| word.strip_prefix("sysctl.") == Some(said))
        })
    };
    let own = own.split_whitespace().filter(|word| is_said(word));
    own.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;

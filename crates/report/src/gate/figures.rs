// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of each row, judged by the same permutation of whole runs.

use std::collections::{BTreeMap, BTreeSet};

use punctual_judge::{Comparison, Pair, compare_rows, is_identical};
use punctual_model::probe::Shape;
use punctual_model::{Nanos, Recording, Run};
use punctual_scope::arrivals::SHORTEST;

use super::differences::{Differences, Numbers, numbers, worded};
use super::standing::{longer, standing};
use super::{Row, Standing, Terms, watched};
use crate::arrivals::{as_far_as_foretold, middle};
use crate::compare::found;
use crate::matrix::{Column, Measured, Measurement};
use crate::stats::Stats;

/// The kind of data that a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Of the samples.
    Samples,
    /// Of the latest sample, where every arrival is known: it is a draw from these.
    Sampled,
    /// Of every arrival.
    Arrivals,
    /// Of the latest arrivals, as they are foretold.
    Latest,
    /// Of the latest aimed sample.
    Reached,
    /// Of a function: the longest that it ran within one stretch that keeps threads waiting.
    Function,
    /// The same in the whole step, also where no sample is taken: as its load begins and ends.
    InStep,
}

impl Of {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Samples | Self::Sampled => "samples",
            Self::Arrivals | Self::Latest | Self::Reached => "arrivals",
            Self::Function => "function",
            Self::InStep => "section",
        }
    }

    /// Returns true if it is a function's own time.
    pub(crate) fn is_function(self) -> bool {
        matches!(self, Self::Function | Self::InStep)
    }

    /// Returns true if it is foretold, which errs by more than chance.
    fn is_foretold(self) -> bool {
        matches!(self, Self::Arrivals | Self::Latest)
    }

    /// Returns true if it shows that something got worse, and never that nothing did.
    fn only_alarms(self) -> bool {
        !matches!(self, Self::Samples | Self::Arrivals)
    }
}

/// A figure of a row, there and here.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Its name: `median`, `p99`, `worst`; a function's name.
    pub name: String,
    /// The kind of data that it is about.
    pub of: Of,
    /// The quantile: of a run's samples, the one that is not shorter than this share of all.
    pub share: f64,
    /// True if it is the one that counts most of this measurement.
    pub leads: bool,
    /// Its standing.
    pub standing: Standing,
    /// The baseline's middle run.
    pub there: Nanos,
    /// The middle run here.
    pub here: Nanos,
    /// A run's name: `seed` in virtual time, `run` in real time.
    pub unit: &'static str,
    /// The number of shared seeds with which it is higher here; 0 in real time, where no run is
    /// the same as another.
    pub higher: usize,
    /// The number of seeds that both have; 0 in real time.
    pub seeds: usize,
    /// Run by run: lower, higher, not separated.
    pub compared: Comparison,
    /// The function to blame for an arrival: the one that keeps the latest arrival here waiting.
    pub blame: Option<String>,
    /// How late the baseline shows that this tail of samples may be, if it is higher here and in no
    /// run later than that: then the draw may be all that differs.
    pub within: Option<Within>,
}

/// How late a tail of samples may be by what the baseline shows, and by what it shows that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// By its arrivals, of which samples are a draw.
    Arrivals(Nanos),
    /// Without arrivals, by an interruption that met another sample of the same step there, such as
    /// a tick: it may meet this one.
    Interrupted(Nanos),
}

impl Within {
    /// The latest that may be.
    pub fn latest(self) -> Nanos {
        match self {
            Self::Arrivals(latest) | Self::Interrupted(latest) => latest,
        }
    }
}

impl Judged {
    /// Returns true if it counts for the row's standing.
    /// A figure that only alarms counts if it got worse.
    pub fn counts(&self) -> bool {
        !self.of.only_alarms() || self.standing == Standing::Worse
    }

    /// Returns true if a sample stands for it, which can be explained.
    pub fn is_of_samples(&self) -> bool {
        matches!(self.of, Of::Samples | Of::Sampled)
    }

    /// Returns its ratio to the baseline's figure.
    pub fn ratio(&self) -> Option<f64> {
        self.compared.ratio.map(|ratio| ratio.estimate)
    }
}

type Value = fn(&Stats) -> Option<Nanos>;

/// A figure before its judgement.
#[derive(Clone, Copy)]
struct Figure {
    name: &'static str,
    share: f64,
    value: Value,
    /// True if a row without it is none: where there are samples, there is a worst one.
    leads: bool,
}

const fn figure(name: &'static str, share: f64, value: Value, leads: bool) -> Figure {
    Figure {
        name,
        share,
        value,
        leads,
    }
}

const LATENCY: &[Figure] = &[
    figure("median", 0.5, Stats::median, false),
    figure("p99", 0.99, |stats| stats.quantile(0.99), false),
    figure("worst", 1.0, Stats::worst, true),
];
/// Figures for samples on both sides of zero.
/// Their distance from each other, and from zero, is what counts.
const JITTER: &[Figure] = &[
    figure("p1 to p99", 0.99, spread, false),
    figure("farthest", 1.0, Stats::farthest, true),
];
const WORK: &[Figure] = &[
    figure("median", 0.5, Stats::median, true),
    figure("p99", 0.99, |stats| stats.quantile(0.99), false),
    figure("longest", 1.0, Stats::worst, false),
];

fn spread(stats: &Stats) -> Option<Nanos> {
    Some(stats.quantile(0.99)? - stats.quantile(0.01)?)
}

fn figures_of(row: &Measurement) -> &'static [Figure] {
    match row.view().shape {
        Shape::Jitter => JITTER,
        Shape::Work => WORK,
        // What tells words may have samples, too.
        Shape::Latency | Shape::Steps | Shape::Findings | Shape::List => LATENCY,
    }
}

/// A figure of whole runs there and here, by seed.
pub(super) struct Drawn {
    name: String,
    of: Of,
    share: f64,
    leads: bool,
    there: Vec<(u64, Nanos)>,
    here: Vec<(u64, Nanos)>,
    pair: Pair,
    blame: Option<String>,
    /// How late the baseline shows that this tail of samples may be.
    latest: Option<Within>,
}

impl Drawn {
    /// A figure that is not of samples.
    pub(super) fn new(
        name: String,
        of: Of,
        there: Vec<(u64, Nanos)>,
        here: Vec<(u64, Nanos)>,
    ) -> Self {
        let numbers = |values: &[(u64, Nanos)]| values.iter().map(|one| one.1.0 as f64).collect();
        let pair = Pair {
            of: numbers(&here),
            than: numbers(&there),
            ..Pair::default()
        };
        Self {
            name,
            of,
            share: 1.0,
            leads: false,
            there,
            here,
            pair,
            blame: None,
            latest: None,
        }
    }

    /// The baseline's middle run, and the middle one here.
    fn middles(&self) -> [Nanos; 2] {
        let times = |values: &[(u64, Nanos)]| values.iter().map(|one| one.1).collect();
        [&self.there, &self.here].map(|values| middle(times(values)).unwrap_or_default())
    }
}

/// All rows: each figure of each of them is judged by the same divisions of the runs.
pub(super) fn rows(
    rows: &[Measurement],
    own: &Column<'_>,
    other: &Column<'_>,
    terms: &Terms,
) -> Vec<Row> {
    let drawn = rows.iter().map(|row| {
        let drawn = drawn(row, own, other, terms);
        drawn.unwrap_or_else(|gap| (Vec::new(), Some(gap)))
    });
    let drawn: Vec<(Vec<Drawn>, Option<String>)> = drawn.collect();
    let pairs = drawn.iter().flat_map(|(all, _)| all);
    let pairs: Vec<Pair> = pairs.map(|drawn| drawn.pair.clone()).collect();
    let mut compared = compare_rows(&pairs, &terms.rule).into_iter();
    let numbers = numbers(rows, own, other, &terms.rule);
    let rows = rows.iter().zip(drawn).zip(numbers);
    let row = |((row, (drawn, gap)), numbers): ((&Measurement, _), Numbers)| {
        let (drawn, gap): (Vec<Drawn>, Option<String>) = (drawn, gap);
        let differences = Differences::of(row, own, other, &numbers, terms.rule.effect);
        let has_words = gap.is_none() && differences.told.is_some();
        let gap = gap.or(differences.told);
        let compared: Vec<Comparison> = compared.by_ref().take(drawn.len()).collect();
        let figures = judged(&drawn, &compared, terms, own);
        let samples = found(own, row).iter().map(|(_, one)| one.count).sum();
        let mut row = Row {
            samples,
            row: row.clone(),
            standing: Standing::Undecided,
            figures,
            gap,
            has_words,
            differences: differences.samples,
            has_other_findings: differences.has_other_findings,
            is_virtual: own.is_virtual(),
        };
        row.stand();
        row
    };
    rows.map(row).collect()
}

/// Returns the figures with samples on both sides, and the reason why one of them is missing: then
/// the others may show that something is worse, and never that nothing is.
/// It is an error if the measurement is missing on one side, or on both.
fn drawn(
    row: &Measurement,
    own: &Column<'_>,
    other: &Column<'_>,
    terms: &Terms,
) -> Result<(Vec<Drawn>, Option<String>), String> {
    let [here, there] = [own, other].map(|column| found(column, row));
    for (found, column, side) in [(&here, own, ""), (&there, other, " in the baseline")] {
        if found.is_empty() {
            return Err(format!("not measured{side}"));
        }
        let is_found = |run: &&Run| found.iter().any(|(own, _)| own.id == run.id);
        if let Some(run) = column.runs.iter().find(|run| !is_found(run)) {
            let which = if column.is_virtual() {
                format!("with seed {}", run.seed)
            } else {
                format!("in {}", run.id)
            };
            return Err(format!("not measured{side} {which}"));
        }
    }
    let counts = || {
        here.iter()
            .chain(&there)
            .map(|(_, recording)| recording.count)
    };
    let steps: BTreeSet<u32> = here
        .iter()
        .chain(&there)
        .map(|(_, one)| one.key.step)
        .collect();
    if steps.len() > 1 {
        return Err("one of several steps of this name is missing in some runs".to_owned());
    }
    if counts().all(|count| count == 0) && worded(row).next().is_some() {
        return Ok((Vec::new(), None));
    }
    if let Some((run, gap)) = here.iter().chain(&there).find_map(watched::gap) {
        return Err(format!("{run}: not every arrival is known: {gap}"));
    }
    let column = other;
    let [own, other] = [&here, &there].map(|found| stats(found));
    let identical = is_identical(&here, &there);
    let runs: Vec<String> = here
        .iter()
        .chain(&there)
        .map(|(run, _)| run.id.clone())
        .collect();
    let (mut all, mut gap) = (Vec::new(), None);
    for figure in figures_of(row) {
        let values = |stats: &[(u64, Stats)]| -> Vec<(u64, Nanos)> {
            let value = |(seed, stats): &(u64, Stats)| Some((*seed, (figure.value)(stats)?));
            stats.iter().filter_map(value).collect()
        };
        let (here, there) = (values(&own), values(&other));
        let is_whole = (here.len(), there.len()) == (own.len(), other.len());
        if !is_whole {
            let name = figure.name;
            let too_few = format!("{name}: too few samples in one of the runs");
            if figure.leads {
                return Err(too_few);
            }
            // Without samples for it in any run, nobody expects it.
            if !(here.is_empty() && there.is_empty()) {
                gap = Some(too_few);
            }
            continue;
        }
        all.push(Drawn {
            share: figure.share,
            leads: figure.leads,
            ..Drawn::new(figure.name.to_owned(), Of::Samples, there, here)
        });
    }
    add_watched(&mut all, &there, &here, terms);
    // A program's recordings are of its own threads and figures, which vary by themselves.
    if row.is_idle() && row.probe != "app" && watched::known(&there).is_none() {
        let latest = interrupted(row, column, &there).map(Within::Interrupted);
        for one in all.iter_mut().filter(|one| one.leads && one.share >= 1.0) {
            one.latest = latest;
        }
    }
    for one in &mut all {
        one.pair.runs.clone_from(&runs);
        // Equal samples say nothing of arrivals between them.
        let is_of_samples = matches!(one.of, Of::Samples | Of::Sampled);
        one.pair.is_identical = identical && (is_of_samples || one.there == one.here);
    }
    Ok((all, gap))
}

/// Adds a quantile that leads, if every arrival of all runs is known.
/// The latest sample is one draw of the distribution that it is the tail of.
fn add_watched(
    all: &mut Vec<Drawn>,
    there: &[(&Run, &Recording)],
    here: &[(&Run, &Recording)],
    terms: &Terms,
) {
    let (Some(before), Some(after)) = (watched::known(there), watched::known(here)) else {
        return;
    };
    let usual = all.iter().find(|one| one.name == "median" || one.leads);
    let usual = usual.map_or(0.0, |one| one.middles()[0].0 as f64);
    let floor = (terms.rule.effect - 1.0) * usual;
    let mut figures = watched::figures(&before, &after, floor);
    let Some(first) = figures.first_mut() else {
        return;
    };
    first.leads = true;
    first.share = watched::TAIL;
    for one in &mut figures {
        if matches!(one.of, Of::Latest | Of::Reached) {
            one.blame = watched::to_blame(&after, one.of == Of::Reached);
        }
    }
    for one in &mut *all {
        one.latest = watched::latest(&before, one.share).map(Within::Arrivals);
    }
    // A forecast is no ground to pass anything.
    if before.iter().chain(&after).any(|(_, one)| one.is_forecast) {
        for one in &mut figures {
            one.leads = false;
            if one.of == Of::Arrivals {
                one.of = Of::Latest;
            }
        }
    } else {
        for one in all.iter_mut().filter(|one| one.leads) {
            (one.leads, one.of) = (false, Of::Sampled);
        }
    }
    all.extend(figures);
    // What counts always stands before what only alarms.
    all.sort_by_key(|one| one.of.only_alarms());
}

/// The latest that a sample of an idle guest may be if what interrupted other samples of its step
/// meets it: the median, and the most by which samples of two variants were above their own.
/// Samples of an idle guest differ by little else than by the interrupts that meet them, and which
/// sample a tick meets is a matter of the kernel's layout, too.
fn interrupted(
    row: &Measurement,
    baseline: &Column<'_>,
    there: &[(&Run, &Recording)],
) -> Option<Nanos> {
    let step = there.first()?.1.key.step;
    let of = |run, recording| Stats::of(&[Measured { run, recording }]);
    let median = there.iter().filter_map(|(run, one)| of(run, one).median());
    let median = median.max()?;
    let runs = baseline.runs.iter().filter(|run| run.clock().is_some());
    let all = runs.flat_map(|run| run.recordings.iter().map(move |one| (*run, one)));
    let own = all.filter(|(_, one)| (one.key.step, &one.key.probe) == (step, &row.probe));
    let mut above = BTreeMap::<&str, Nanos>::new();
    for (run, one) in own {
        let stats = of(run, one);
        let (Some(worst), Some(median)) = (stats.worst(), stats.median()) else {
            continue;
        };
        let most = above.entry(&one.key.variant).or_default();
        *most = (*most).max(worst - median);
    }
    // One variant alone may vary by itself.
    let mut above: Vec<Nanos> = above.into_values().collect();
    above.sort_unstable_by(|a, b| b.cmp(a));
    Some(median + *above.get(1).or(above.first())?)
}

fn stats(found: &[(&Run, &Recording)]) -> Vec<(u64, Stats)> {
    let of_run = |(run, recording): &(&Run, &Recording)| {
        let (run, recording) = (*run, *recording);
        (run.seed, Stats::of(&[Measured { run, recording }]))
    };
    found.iter().map(of_run).collect()
}

fn judged(
    drawn: &[Drawn],
    compared: &[Comparison],
    terms: &Terms,
    own: &Column<'_>,
) -> Vec<Judged> {
    let median = drawn.iter().find(|one| one.name == "median");
    let median = median.map(|one| one.middles()[0]);
    let one = |(drawn, compared): (&Drawn, &Comparison)| {
        let compared = if drawn.of.is_foretold() {
            &as_far_as_foretold(*compared, &drawn.pair)
        } else {
            compared
        };
        let [there, here] = drawn.middles();
        let both = drawn.here.iter().filter_map(|(seed, here)| {
            let there = drawn.there.iter().find(|(own, _)| own == seed)?;
            Some(*here > there.1)
        });
        let both: Vec<bool> = both.filter(|_| own.is_virtual()).collect();
        let usual = median.unwrap_or(there).0.abs() as f64;
        let standing = if drawn.of.is_function() {
            // A function that is not told may run for nearly as long as the shortest that is.
            let least = if drawn.of == Of::InStep {
                SHORTEST
            } else {
                Nanos::ZERO
            };
            let grown = (here - there.max(least)).0 as f64;
            longer(compared, grown >= (terms.rule.effect - 1.0) * usual)
        } else {
            standing(
                compared,
                &terms.rule,
                there.0 as f64,
                terms.tolerance * usual,
            )
        };
        let most = drawn.here.iter().map(|(_, value)| *value).max();
        let is_within = |may: &Within| standing == Standing::Worse && most <= Some(may.latest());
        let within = drawn.latest.filter(is_within);
        let standing = within.map_or(standing, |_| Standing::Undecided);
        Judged {
            name: drawn.name.clone(),
            of: drawn.of,
            share: drawn.share,
            leads: drawn.leads,
            standing,
            within,
            there,
            here,
            unit: own.unit(),
            higher: both.iter().filter(|is_higher| **is_higher).count(),
            seeds: both.len(),
            compared: *compared,
            blame: drawn.blame.clone().filter(|_| standing == Standing::Worse),
        }
    };
    let all = drawn.iter().zip(compared).map(one);
    // A function is told where it is to blame.
    let told = all.filter(|one| !one.of.is_function() || one.counts());
    blamed(once_each(told.collect()))
}

/// Leaves out the whole step's figure of a function that is worse where samples are taken, too.
fn once_each(mut all: Vec<Judged>) -> Vec<Judged> {
    let functions = all.iter().filter(|one| one.of == Of::Function);
    let known: BTreeSet<String> = functions.map(|one| one.name.clone()).collect();
    all.retain(|one| one.of != Of::InStep || !known.contains(&one.name));
    all
}

/// Blames the function that got longer for the arrivals that did.
/// If none did, the function that keeps the latest of them waiting remains to blame.
fn blamed(mut all: Vec<Judged>) -> Vec<Judged> {
    let functions = all.iter().filter(|one| one.of == Of::Function);
    let most = functions.max_by_key(|one| one.here - one.there);
    if let Some(name) = most.map(|one| one.name.clone()) {
        let of_arrivals =
            |one: &&mut Judged| matches!(one.of, Of::Arrivals | Of::Latest | Of::Reached);
        let worse = all.iter_mut().filter(of_arrivals);
        for one in worse.filter(|one| one.standing == Standing::Worse) {
            one.blame = Some(name.clone());
        }
    }
    all
}

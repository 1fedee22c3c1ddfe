// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges runs by limits.

mod arrival;

use std::collections::BTreeMap;

use punctual_model::limit::{Bound, Demand, Figure, Limit, Reference};
use punctual_model::place::{WATCHED_MOST, of_cycle};
use punctual_model::plan::Step;
use punctual_model::recording::ENDED_WITHIN;
use punctual_model::run::Run;
use punctual_model::{Nanos, Recording, RecordingKey};
use thiserror::Error;
use toml::Value;

use crate::answer::{Answer, Decisive, Fitness, Judgement, More, Why, upright};
use crate::compare::{Pair, Verdict, compare_rows};
use crate::difference::is_identical;
use crate::evidence::{Evidence, Meant, named};
use crate::mends::{Mend, without};
use crate::rule::Rule;
use crate::subjects::{Subject, subjects};
use crate::typical::{Typical, runs_for_typical, typical};

pub use arrival::margin as forecast_margin;

/// A limit that no recording answers: never a pass.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("limit {number} ({limit}): {reason}")]
pub struct Unanswered {
    /// Number of the limit, from 1.
    pub number: usize,
    /// The limit, as displayed.
    pub limit: String,
    /// The expected content, and what was found instead.
    pub reason: String,
}

/// Earlier runs, by the name of their baseline; under `None` those that the caller names.
pub type Baselines = BTreeMap<Option<String>, Vec<Run>>;

/// Judges runs by limits, each verdict with the confidence that its limit asks for.
///
/// # Errors
/// If a limit means no subject, no measurement or no baseline of these.
pub fn judge(
    limits: &[Limit],
    runs: &[Run],
    baselines: &Baselines,
) -> Result<Judgement, Unanswered> {
    judge_with(limits, runs, baselines, 1.0)
}

/// Like [`judge`], at a share of each limit's level: for callers that look more than once.
pub fn judge_with(
    limits: &[Limit],
    runs: &[Run],
    baselines: &Baselines,
    share: f64,
) -> Result<Judgement, Unanswered> {
    let (judgement, unanswered) = judge_all(limits, runs, baselines, share);
    unanswered.map_or(Ok(judgement), Err)
}

/// Like [`judge`], for runs whose plans answer each limit: a limit that the runs themselves do not
/// answer is undecided, with the reason, and hides no other verdict.
pub fn judge_each(limits: &[Limit], runs: &[Run], baselines: &Baselines) -> Judgement {
    judge_all(limits, runs, baselines, 1.0).0
}

/// Judges runs by all limits; also returns the first limit that they do not answer.
fn judge_all(
    limits: &[Limit],
    runs: &[Run],
    baselines: &Baselines,
    share: f64,
) -> (Judgement, Option<Unanswered>) {
    let judged = subjects(runs);
    let baselines = baselines.iter();
    let baselines = baselines
        .map(|(name, runs)| (name, subjects(runs)))
        .collect();
    let mut answers = Vec::new();
    let mut unanswered = None;
    for (limit, number) in limits.iter().zip(1..) {
        let case = Case {
            limit,
            subjects: &judged,
            baselines: &baselines,
            level: limit.level() * share,
        };
        match case.answers() {
            Ok(own) => answers.extend(own),
            Err(reason) => {
                answers.extend(case.unanswered(&reason));
                unanswered = unanswered.or_else(|| {
                    Some(Unanswered {
                        number,
                        limit: format!("{}, {}", limit.probe, limit.demand),
                        reason,
                    })
                });
            }
        }
    }
    let remarks = judged.iter().flat_map(|one| one.remarks.iter().cloned());
    let judgement = Judgement {
        answers,
        remarks: remarks.collect(),
        decide: Vec::new(),
    };
    (judgement, unanswered)
}

/// One limit against all subjects.
struct Case<'a> {
    limit: &'a Limit,
    subjects: &'a [Subject<'a>],
    baselines: &'a BTreeMap<&'a Option<String>, Vec<Subject<'a>>>,
    level: f64,
}

impl Case<'_> {
    /// The subjects that the limit means.
    fn meant(&self) -> Vec<&Subject<'_>> {
        let is_reference = |one: &Subject<'_>| match &self.limit.demand {
            Demand::Relative(.., Reference::Subject(of)) => one.is_called(of),
            _ => false,
        };
        let is_named = |one: &Subject<'_>| {
            let names = [&one.name, &one.called];
            names.iter().any(|name| self.limit.means_subject(name))
        };
        let is_meant = |one: &&Subject<'_>| is_named(one) && !is_reference(one);
        self.subjects.iter().filter(is_meant).collect()
    }

    fn answers(&self) -> Result<Vec<Answer>, String> {
        let meant = self.meant();
        if meant.is_empty() {
            let named = self.limit.subject.as_deref().unwrap_or("to be judged");
            return Err(format!(
                "expected a subject {named}, found {}",
                names(self.subjects.iter().map(|one| one.name.clone()))
            ));
        }
        let mut answers = Vec::new();
        let mut absent = Vec::new();
        for subject in &meant {
            let than = self.than(subject)?;
            let keys = self.keys(subject)?;
            if keys.is_empty() {
                absent.push(*subject);
            }
            for meant in keys {
                answers.push(self.answer(subject, &meant, than));
            }
        }
        // Where one of several subjects answers, it answers for itself alone.
        if !answers.is_empty() {
            let why = "it was not measured; a limit's subject says of which it is";
            answers.extend(absent.into_iter().map(|one| self.absent(&one.name, why)));
        }
        if answers.is_empty() {
            return Err(format!(
                "expected a measurement by {} under {}, found {}",
                self.limit.probe,
                self.limit.load.as_deref().unwrap_or("any load"),
                names(meant.iter().flat_map(|one| measured(one)))
            ));
        }
        Ok(answers)
    }

    /// The reference of this limit's share. It is another subject, either of these runs or of those
    /// that the caller names; or the same subject in a baseline; or a baseline's only subject.
    fn than(&self, subject: &Subject<'_>) -> Result<Option<&Subject<'_>>, String> {
        let Demand::Relative(.., reference) = &self.limit.demand else {
            return Ok(None);
        };
        let known = |name: &Option<String>| self.baselines.get(name).map_or(&[][..], Vec::as_slice);
        let mut all: Vec<&Subject<'_>> = Vec::new();
        let name = match reference {
            Reference::Subject(of) => {
                all.extend(self.subjects.iter().chain(known(&None)));
                of
            }
            Reference::Baseline(baseline) => {
                all.extend(known(baseline));
                &subject.called
            }
        };
        let called: Vec<&Subject<'_>> = all
            .iter()
            .copied()
            .filter(|one| one.is_called(name))
            .collect();
        let found = match (reference, all.as_slice(), called.as_slice()) {
            (Reference::Baseline(_), [], _) => {
                return Err(format!("expected the runs of {reference}"));
            }
            (Reference::Baseline(_), [only], _) | (_, _, [only]) => Some(*only),
            _ => None,
        };
        found.map(Some).ok_or_else(|| {
            let expected = match called.len() {
                0 => format!("expected the subject {name} to compare with"),
                _ => format!("expected one subject {name} to compare with"),
            };
            format!(
                "{expected}, found {}",
                names(all.iter().map(|one| one.name.clone()))
            )
        })
    }

    /// The measurements that a subject has, or should have, for this limit: each step by itself.
    fn keys(&self, subject: &Subject<'_>) -> Result<Vec<Meant>, String> {
        let mut keys: Vec<Meant> = Vec::new();
        for meant in subject.runs.iter().flat_map(|one| Meant::all(one.run)) {
            let is_known = keys.iter().any(|key| key.is_same(&meant));
            if self.limit.means_key(&meant.key) && !is_known {
                keys.push(meant);
            }
        }
        let (probe, load) = (&self.limit.probe, self.limit.load.as_deref());
        let variant = self.limit.variant.as_deref().unwrap_or_default();
        let mut is_elsewhere = false;
        for (step, number) in steps(subject) {
            let is_meant = self.limit.means_step(&step.probe, &step.load);
            let is_answered = |own: &Meant| own.key.step == number || without(Mend::Steps);
            if !is_meant || keys.iter().any(is_answered) {
                continue;
            }
            let mut all = subject.runs.iter().flat_map(|one| &one.run.recordings);
            let is_other = all.any(|one| one.key.step == number) || !may_be_of(step, variant);
            if is_other {
                // It was measured, in other variants than the one named.
                is_elsewhere = true;
                continue;
            }
            let mut key = RecordingKey::new(&step.probe, &step.load, variant);
            key.step = number;
            keys.push(Meant::missing(key));
        }
        for key in self.without_part(subject) {
            let meant = Meant::missing(key);
            if !keys.iter().any(|own| own.is_same(&meant)) {
                keys.push(meant);
            }
        }
        let is_unknown = subject.runs.iter().any(|one| one.plan.is_err());
        if keys.is_empty() && is_unknown {
            // Nobody knows whether it was to be measured.
            let key = RecordingKey::new(probe, load.unwrap_or_default(), variant);
            keys.push(Meant::missing(key));
        }
        if keys.is_empty() && is_elsewhere {
            let expected = match self.limit.part {
                Some(part) if variant.is_empty() => {
                    format!("a variant that ends with {}", part.name())
                }
                _ => format!("the variant {variant}"),
            };
            return Err(format!(
                "expected {expected}, found {}",
                names(measured(subject).into_iter())
            ));
        }
        Ok(keys)
    }

    /// The keys that the limit's part would have for each thread that has cycles. A thread that
    /// never says when its cycles are due has no such part, and another thread does not answer for
    /// it.
    fn without_part(&self, subject: &Subject<'_>) -> Vec<RecordingKey> {
        let Some(part) = self.limit.part else {
            return Vec::new();
        };
        let all = subject.runs.iter().flat_map(|one| &one.run.recordings);
        let keys = all.filter_map(|one| {
            let thread = one.key.variant.strip_suffix(" execution")?;
            let variant = format!("{thread} {}", part.name());
            Some(RecordingKey {
                variant,
                ..one.key.clone()
            })
        });
        keys.filter(|key| self.limit.means_key(key)).collect()
    }

    fn answer(&self, subject: &Subject<'_>, meant: &Meant, than: Option<&Subject<'_>>) -> Answer {
        let evidence = Evidence::of(subject, meant);
        let mut found = match &self.limit.demand {
            Demand::Never(bound) => self.never(&evidence, *bound),
            Demand::Arrival { most, reached } => arrival::judged(&evidence, *most, *reached)
                .unwrap_or_else(|why| self.fit(&evidence, why)),
            Demand::Missed(most) => self.missed(&evidence, *most),
            Demand::Jitter(most) => self.jitter(&evidence, *most),
            Demand::Rare { above, once_in } => self.rare(&evidence, *above, *once_in),
            Demand::Typical(figure, bound) => self.typical(&evidence, figure, *bound),
            Demand::Relative(figure, bound, _) => {
                let than = than.map(|than| Evidence::of(than, meant));
                self.relative(&evidence, than.as_ref(), figure, *bound)
            }
        };
        if let Some(gap) = evidence
            .gap
            .clone()
            .filter(|_| found.fitness != Fitness::Unfit)
        {
            found = Found::gap(gap);
        }
        let bound = match self.limit.demand {
            Demand::Never(bound) | Demand::Rare { above: bound, .. } => Some(bound),
            _ => None,
        };
        // What cannot be told excludes nothing, and no rate is told of a time that is not known.
        let is_told = !matches!(found.why, Why::Gap(_)) && evidence.untimed().is_none();
        let told = bound.filter(|_| is_told);
        let excluded = told.and_then(|bound| evidence.above(bound).1.rate(self.level));
        let is_of_sample = bound.is_some() || matches!(found.why, Why::Broken { .. });
        Answer {
            limit: self.limit.clone(),
            subject: subject.name.clone(),
            key: meant.key.clone(),
            fitness: found.fitness,
            why: found.why,
            sample: worst(&evidence).filter(|_| is_of_sample),
            runs: evidence.found.len(),
            samples: evidence.samples(),
            time: evidence.time(),
            excluded: excluded.map(|bounds| bounds.upper),
            more: found.more.map(|more| match more {
                More::Runs(runs) if evidence.is_imported() => More::Imports(runs),
                more => more,
            }),
        }
    }

    /// The answers of a limit that no measurement answers: each subject is undecided.
    fn unanswered(&self, reason: &str) -> Vec<Answer> {
        let mut names: Vec<&str> = self.meant().iter().map(|one| one.name.as_str()).collect();
        if names.is_empty() {
            names.push(self.limit.subject.as_deref().unwrap_or_default());
        }
        let names = names.into_iter();
        names.map(|name| self.absent(name, reason)).collect()
    }

    /// The answer if no measurement of a subject is one that the limit means.
    fn absent(&self, subject: &str, why: &str) -> Answer {
        let load = self.limit.load.as_deref().unwrap_or_default();
        let variant = self.limit.variant.as_deref().unwrap_or_default();
        Answer {
            limit: self.limit.clone(),
            subject: subject.to_owned(),
            key: RecordingKey::new(&self.limit.probe, load, variant),
            fitness: Fitness::Undecided,
            why: Why::Gap(why.to_owned()),
            sample: None,
            runs: 0,
            samples: 0,
            time: Nanos::ZERO,
            excluded: None,
            more: Some(More::Whole),
        }
    }

    /// The fewest runs of a limit that is fit.
    fn needed(&self) -> usize {
        self.limit
            .runs
            .unwrap_or_else(|| runs_for_typical(self.level))
    }

    /// Fit, if there are enough runs for that.
    fn fit(&self, evidence: &Evidence<'_>, why: Why) -> Found {
        match self.needed().saturating_sub(evidence.found.len()) {
            0 => Found::new(Fitness::Fit, why, None),
            more => Found::new(Fitness::Undecided, why, Some(More::Runs(more))),
        }
    }

    fn never(&self, evidence: &Evidence<'_>, bound: Nanos) -> Found {
        if let Some(broken) = broken(evidence, bound) {
            return broken;
        }
        if let Some(empty) = without_sample(evidence) {
            return empty;
        }
        if let Some(longer) = ended_within(evidence, |_, last| last > bound) {
            return longer;
        }
        self.fit(evidence, Why::Kept { bound })
    }

    fn missed(&self, evidence: &Evidence<'_>, most: u64) -> Found {
        let missed = evidence.found.iter().max_by_key(|(_, one)| one.missed);
        let Some((run, recording)) = missed else {
            return Found::gap("it was not measured".to_owned());
        };
        let why = Why::Missed {
            count: recording.missed,
            run: run.id.clone(),
        };
        if recording.missed > most {
            return Found::new(Fitness::Unfit, why, None);
        }
        let uncounted = |(_, one): &&(&Run, &Recording)| one.missed_periods().is_none();
        if let Some((run, _)) = evidence.found.iter().find(uncounted) {
            return Found::gap(format!("{}: missed periods were not counted", run.id));
        }
        if let Some(empty) = without_sample(evidence) {
            return empty;
        }
        self.fit(evidence, why)
    }

    fn jitter(&self, evidence: &Evidence<'_>, most: Nanos) -> Found {
        let range = |(run, one): &(&Run, &Recording)| {
            let (least, most) = one.extremes?;
            Some((most - least, run.id.clone()))
        };
        let widest = evidence
            .found
            .iter()
            .filter_map(range)
            .max_by_key(|(range, _)| *range);
        let Some((jitter, run)) = widest else {
            return Found::gap("there is no sample".to_owned());
        };
        let why = Why::Jitter { jitter, run };
        if jitter > most {
            return Found::new(Fitness::Unfit, why, None);
        }
        if let Some((run, one)) = evidence.found.iter().find(|(_, one)| one.count < 2) {
            let found = if one.count == 0 {
                "no sample"
            } else {
                "one sample only"
            };
            return Found::gap(format!("{}: there is {found}", named(run)));
        }
        let is_wider =
            |one: &Recording, last: Nanos| one.min().is_some_and(|least| last - least > most);
        if let Some(wider) = ended_within(evidence, is_wider) {
            return wider;
        }
        self.fit(evidence, why)
    }

    fn rare(&self, evidence: &Evidence<'_>, above: Nanos, once_in: Nanos) -> Found {
        let untimed = |run: Option<&Run>| {
            let run = run.map_or_else(String::new, |run| format!("{}: ", named(run)));
            let how = if evidence.is_imported() {
                ": import says it with --interval"
            } else {
                ""
            };
            Found::gap(format!("{run}the measured time is not known{how}"))
        };
        let (least, most) = evidence.above(above);
        let (Some(lower), Some(upper)) = (least.rate(self.level), most.rate(self.level)) else {
            return untimed(evidence.untimed());
        };
        let limit = once_in.as_secs_f64();
        let per_limit = (lower.lower * limit, upper.upper * limit);
        let why = Why::Rate {
            count: most.count(),
            per_limit,
        };
        if per_limit.0 >= 1.0 {
            return Found::new(Fitness::Unfit, why, None);
        }
        if let Some(run) = evidence.untimed() {
            return untimed(Some(run));
        }
        if per_limit.1 < 1.0 {
            let runs = self.limit.runs.unwrap_or(1);
            return match runs.saturating_sub(evidence.found.len()) {
                0 => Found::new(Fitness::Fit, why, None),
                more => Found::new(Fitness::Undecided, why, Some(More::Runs(more))),
            };
        }
        if lower.upper * limit < 1.0 || upper.lower * limit >= 1.0 {
            // No further time decides it: the bound falls into a bin.
            return Found::gap(format!(
                "at least {} and at most {} of {} samples are above {above}{}",
                least.count(),
                most.count(),
                evidence.samples(),
                evidence.distribution_gap()
            ));
        }
        let time = most.time().as_secs_f64();
        let more = Nanos(((per_limit.1 - 1.0) * time * 1e9).ceil() as i64);
        Found::new(Fitness::Undecided, why, Some(More::Time(more)))
    }

    fn typical(&self, evidence: &Evidence<'_>, figure: &Figure, bound: Bound) -> Found {
        let figures = match evidence.figures(figure) {
            Ok(figures) => figures,
            Err(why) => return Found::gap(why),
        };
        if figures.low.is_empty() {
            return Found::gap("it was not measured".to_owned());
        }
        let judged = |figures: &[f64]| {
            let (limit, values) = upright(bound, figures);
            let within = values.iter().filter(|one| **one <= limit).count();
            (typical(&values, limit, self.level), within)
        };
        let ((found, within), other) = (judged(&figures.high), judged(&figures.low));
        let is_open = matches!(found, Typical::Undecided { .. });
        if found != other.0 || (is_open && within != other.1) {
            // The bound falls into a bin: nothing is told by how it was rounded.
            let [low, high] = [&figures.low, &figures.high].map(|all| figure.shown(middle(all)));
            let gap = evidence.distribution_gap();
            return Found::gap(format!("{figure} is somewhere from {low} to {high}{gap}"));
        }
        let why = Why::Typical {
            within,
            middle: middle(&figures.high),
        };
        match found {
            Typical::Within => self.fit(evidence, why),
            Typical::Above => Found::new(Fitness::Unfit, why, None),
            Typical::Undecided { more } => {
                Found::new(Fitness::Undecided, why, Some(More::Runs(more)))
            }
        }
    }

    fn relative(
        &self,
        evidence: &Evidence<'_>,
        than: Option<&Evidence<'_>>,
        figure: &Figure,
        bound: Bound,
    ) -> Found {
        let Some(than) = than else {
            return Found::gap("there is nothing to compare with".to_owned());
        };
        if let Some(gap) = than.gap.as_ref().filter(|_| !without(Mend::Baseline)) {
            return Found::gap(gap.clone());
        }
        let is_baseline = matches!(
            self.limit.demand,
            Demand::Relative(.., Reference::Baseline(_))
        );
        if let Some(difference) = evidence.difference(than, is_baseline) {
            return Found::gap(difference);
        }
        let (of, reference) = match (evidence.figures(figure), than.figures(figure)) {
            (Ok(of), Ok(reference)) => (of, reference),
            (Err(why), _) | (_, Err(why)) => return Found::gap(why),
        };
        let is_identical = of == reference && is_identical(&evidence.found, &than.found);
        let judged = |of: &[f64], than: &[f64]| {
            let pair = Pair {
                is_identical,
                of: of.to_vec(),
                than: than.to_vec(),
                runs: Vec::new(),
            };
            self.ratio(pair, bound)
        };
        // The largest ratio that the bins allow, and the least.
        let found = judged(&of.high, &reference.low);
        if is_identical || (of.low == of.high && reference.low == reference.high) {
            return found;
        }
        let other = judged(&of.low, &reference.high);
        if found.fitness == other.fitness {
            return found;
        }
        let gap = evidence.distribution_gap() + &than.distribution_gap();
        Found::gap(format!("{figure} is not known closely enough{gap}"))
    }

    /// Judges the ratio of two subjects by a bound.
    fn ratio(&self, pair: Pair, bound: Bound) -> Found {
        let fewest = pair.of.len().min(pair.than.len());
        // Each bound by itself at the level: both together at twice of it.
        let rule = Rule {
            level: (2.0 * self.level).min(1.0),
            ..Rule::default()
        };
        let found = compare_rows(&[pair], &rule).remove(0);
        let Some(ratio) = found.ratio else {
            return Found::gap("a figure is missing, or not above zero".to_owned());
        };
        let why = Why::Ratio {
            estimate: ratio.estimate,
            bounds: ratio.bounds,
        };
        let fitness = match (bound, ratio.bounds) {
            (Bound::AtMost(most), Some((_, high))) if high <= most => Fitness::Fit,
            (Bound::AtLeast(least), Some((low, _))) if low >= least => Fitness::Fit,
            (Bound::AtMost(most), Some((low, _))) if low > most => Fitness::Unfit,
            (Bound::AtLeast(least), Some((_, high))) if high < least => Fitness::Unfit,
            _ => Fitness::Undecided,
        };
        if fitness == Fitness::Fit {
            let runs = self.limit.runs.unwrap_or(1);
            let more = runs.saturating_sub(fewest);
            if more > 0 {
                return Found::new(Fitness::Undecided, why, Some(More::Runs(more)));
            }
        }
        let more = match found.verdict {
            _ if fitness != Fitness::Undecided => None,
            Verdict::Undecided(few) => Some(More::Runs(few.needed.saturating_sub(fewest).max(1))),
            Verdict::NotSeparated { more: Some(more) } => Some(More::Runs((more as usize).max(1))),
            _ => Some(More::Runs(1)),
        };
        Found::new(fitness, why, more)
    }
}

/// The result of one case.
struct Found {
    fitness: Fitness,
    why: Why,
    more: Option<More>,
}

impl Found {
    fn new(fitness: Fitness, why: Why, more: Option<More>) -> Self {
        Self { fitness, why, more }
    }

    fn gap(gap: String) -> Self {
        Self::new(Fitness::Undecided, Why::Gap(gap), Some(More::Whole))
    }
}

/// Reports a run without a sample. Where samples are events, and it is known how long they were
/// looked for, none is an answer, too.
fn without_sample(evidence: &Evidence<'_>) -> Option<Found> {
    let is_empty = |(_, one): &&(&Run, &Recording)| one.count == 0 && one.observed().is_none();
    if let Some((run, _)) = evidence.found.iter().find(is_empty) {
        return Some(Found::gap(format!("{}: there is no sample", named(run))));
    }
    let is_none = evidence.found.is_empty();
    is_none.then(|| Found::gap("there is no sample".to_owned()))
}

/// Reports a thread that ended within a cycle that would have broken the limit, had it counted.
fn ended_within(
    evidence: &Evidence<'_>,
    breaks: impl Fn(&Recording, Nanos) -> bool,
) -> Option<Found> {
    evidence.found.iter().find_map(|(run, one)| {
        let last = one.findings.get(ENDED_WITHIN)?.nanos()?;
        breaks(one, last).then(|| {
            let run = named(run);
            Found::gap(format!(
                "{run}: its last cycle, within which the thread ended, had {last} and counts as \
                 none; with a shorter duration_ms the program is asked to end while it runs"
            ))
        })
    })
}

/// Unfit, if a sample is above the bound.
fn broken(evidence: &Evidence<'_>, bound: Nanos) -> Option<Found> {
    let above = |(_, one): &&(&Run, &Recording)| one.max() > Some(bound);
    let runs_with = evidence.found.iter().filter(above).count() as u64;
    let why = Why::Broken { bound, runs_with };
    (runs_with > 0).then(|| Found::new(Fitness::Unfit, why, None))
}

/// The worst sample of all runs; the first of equal ones.
fn worst(evidence: &Evidence<'_>) -> Option<Decisive> {
    let worst = evidence.found.iter().filter_map(|(run, recording)| {
        let value = recording.max()?;
        let sample = recording.worst.first().filter(|one| one.value == value);
        let is_caught = |seq: u64| recording.captures.iter().any(|one| one.sample.seq == seq);
        // Of the cycles of programs not all are found again.
        let is_found = |seq: u64| {
            let is_short = value <= WATCHED_MOST;
            let is_placed = || of_cycle(&run.recordings, recording, seq).is_some();
            recording.key.probe != "app" || is_short && is_placed()
        };
        let can_be_explained =
            sample.is_some_and(|one| run.is_virtual() && is_found(one.seq) || is_caught(one.seq));
        Some(Decisive {
            can_be_explained,
            run: run.id.clone(),
            seed: run.seed,
            is_imported: run.is_imported(),
            value,
            seq: sample.map(|one| one.seq),
            at: sample.map(|one| one.at),
        })
    });
    worst.reduce(|worst, other| {
        if other.value > worst.value {
            other
        } else {
            worst
        }
    })
}

fn middle(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}

/// The steps of a subject's plans, with their numbers, except those that were skipped. A plan that
/// cannot be read is a gap of its run, whatever the limit.
fn steps<'a>(subject: &'a Subject<'_>) -> Vec<(&'a Step, u32)> {
    let plans = subject.runs.iter().filter_map(|one| one.plan.as_ref().ok());
    let steps = plans.flat_map(|plan| plan.steps.iter().zip(0..));
    steps.filter(|(step, _)| !step.skip).collect()
}

/// Returns true if a step may have this variant. It may not if it names CPUs and the variant is
/// another one.
fn may_be_of(step: &Step, variant: &str) -> bool {
    let Some(cpu) = variant
        .strip_prefix("cpu")
        .and_then(|rest| rest.parse::<i64>().ok())
    else {
        return true;
    };
    let Some(asked) = step.params.get("cpus").and_then(Value::as_array) else {
        return true;
    };
    let mut asked = asked.iter();
    asked.any(|one| one.as_integer().is_none_or(|one| one == cpu))
}

/// The measurements of a subject, made or planned, for an error message.
fn measured(subject: &Subject<'_>) -> Vec<String> {
    let recordings = subject.runs.iter().flat_map(|one| &one.run.recordings);
    let measured: Vec<String> = recordings.map(|one| one.key.to_string()).collect();
    if !measured.is_empty() {
        return measured;
    }
    let planned = steps(subject).into_iter();
    planned
        .map(|(step, _)| format!("{} / {}", step.probe, step.load))
        .collect()
}

/// The names without repetitions; `none` if there are none.
fn names(all: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join("; ")
}

#[cfg(test)]
mod tests;

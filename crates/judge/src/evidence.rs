// SPDX-License-Identifier: MIT OR Apache-2.0
//! The evidence of runs for one limit: their recordings, figures and gaps.

use std::collections::BTreeSet;

use punctual_model::amount::against_step;
use punctual_model::digest::digest;
use punctual_model::imported;
use punctual_model::limit::Figure;
use punctual_model::plan::IDLE;
use punctual_model::quantiles::supports;
use punctual_model::record::Unsupported;
use punctual_model::recording::Work;
use punctual_model::run::{Run, State};
use punctual_model::{Fact, Nanos, Plan, Quantiles, Recording, RecordingKey};
use toml::Value;

use crate::mends::{Mend, without};
use crate::occasions::Occasions;
use crate::subjects::{Measured, Subject};

/// One subject's recordings of one measurement, run by run.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The runs that have the measurement.
    pub found: Vec<(&'a Run, &'a Recording)>,
    /// The first reason why some run is no complete answer.
    pub gap: Option<String>,
}

impl<'a> Evidence<'a> {
    /// The evidence of a subject for a measurement.
    pub fn of(subject: &Subject<'a>, meant: &Meant) -> Self {
        let of_run = |one: &Measured<'a>| Some((one.run, meant.of(one)?));
        let gap = |one: &Measured<'_>| {
            let gap = gap(one, meant)?;
            Some(format!("{}: {gap}", named(one.run)))
        };
        let gap = subject.all().find_map(gap);
        Self {
            found: each_once(subject.runs.iter().filter_map(of_run)),
            gap: gap.or_else(|| subject.gap.clone()),
        }
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.found
            .iter()
            .map(|(_, recording)| recording.count)
            .sum()
    }

    /// The measured time.
    pub fn time(&self) -> Nanos {
        let times = self.found.iter().map(|(_, one)| measured_time(one));
        times.fold(Nanos::ZERO, |sum, time| Nanos(sum.0.saturating_add(time.0)))
    }

    /// The first run whose measured time is not known.
    pub fn untimed(&self) -> Option<&'a Run> {
        let mut all = self.found.iter();
        let untimed = all.find(|(_, one)| measured_time(one) == Nanos::ZERO)?;
        Some(untimed.0)
    }

    /// The occasions of samples above a bound, at least and at most, in the runs whose measured
    /// time is known. The two differ if the bound falls into a bin of samples that were only
    /// counted.
    pub fn above(&self, bound: Nanos) -> (Occasions, Occasions) {
        let count = |(_, one): &(&Run, &Recording)| (above(one, bound), measured_time(one));
        let mut counts: Vec<_> = self.found.iter().map(count).collect();
        counts.retain(|(_, time)| *time > Nanos::ZERO);
        let of = |pick: fn((u64, u64)) -> u64| Occasions {
            runs: counts
                .iter()
                .map(|(both, time)| (pick(*both), *time))
                .collect(),
        };
        (of(|(least, _)| least), of(|(_, most)| most))
    }

    /// The figure of each run; an error if a run has none.
    pub fn figures(&self, figure: &Figure) -> Result<Figures, String> {
        let of_run = |(run, recording): &(&Run, &Recording)| {
            figure_of(run, recording, figure).map_err(|why| format!("{}: {why}", named(run)))
        };
        let both: Result<Vec<(f64, f64)>, String> = self.found.iter().map(of_run).collect();
        let (low, high) = both?.into_iter().unzip();
        Ok(Figures { low, high })
    }

    /// The reason why a figure of this is no share of the reference's. `None` if both were measured
    /// in the same way, and on the same machine if the reference is a baseline.
    pub fn difference(&self, reference: &Self, is_baseline: bool) -> Option<String> {
        let (run, own) = self.found.first()?;
        let (other, theirs) = reference.found.first()?;
        if without(Mend::Reference) {
            return None;
        }
        let plans = run.parsed_plan().ok().zip(other.parsed_plan().ok());
        let of_step = plans.and_then(|(plan, there)| {
            plan.difference_of_step(own.key.step, &there, theirs.key.step)
        });
        let rate = |run: &Run| {
            run.clock()
                .map_or("real".to_owned(), |rate| rate.to_string())
        };
        let [here, there] = [*run, *other].map(rate);
        let of_time = (here != there).then(|| format!("the time is {here} here and {there} there"));
        let one_imported = run.is_imported() != other.is_imported();
        let of_program = one_imported.then_some("another program measured one of them");
        let what = of_step
            .or_else(|| imported::difference(run, other))
            .or(of_time)
            .or_else(|| of_program.map(str::to_owned))
            .or_else(|| run.other_machine(other).filter(|_| is_baseline))?;
        let (run, other) = (&run.id, &other.id);
        Some(format!(
            "{run} and {other}, which it is compared with, are not measured alike: {what}"
        ))
    }

    /// Returns true if all runs that have it were measured by other programs: these have no seeds.
    pub fn is_imported(&self) -> bool {
        !self.found.is_empty() && self.found.iter().all(|(run, _)| run.is_imported())
    }

    /// The reason why a figure is not known more precisely, and the remedy.
    pub fn distribution_gap(&self) -> String {
        let mut all = self.found.iter();
        let gap = all.find_map(|(_, one)| one.distribution_gap());
        gap.map_or(String::new(), |gap| format!(": {gap}"))
    }
}

/// Keeps each recording once. In real time no two recordings have the same samples: if two runs
/// share one, the second is a copy, whatever else was left out of it. Other programs count few
/// values, and two of their files may well agree.
fn each_once<'a>(
    all: impl Iterator<Item = (&'a Run, &'a Recording)>,
) -> Vec<(&'a Run, &'a Recording)> {
    let mut seen = BTreeSet::new();
    let mut is_new = |(run, recording): &(&Run, &Recording)| {
        let is_told_apart =
            run.is_virtual() || run.is_imported() || recording.count == 0 || without(Mend::Copies);
        is_told_apart || seen.insert(digest(std::slice::from_ref(*recording), &[], &[]))
    };
    all.filter(|one| is_new(one)).collect()
}

/// A figure of each run: its least and its greatest possible value, if samples were only counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The least value, run by run.
    pub low: Vec<f64>,
    /// The greatest value, run by run.
    pub high: Vec<f64>,
}

/// The name of a run in a reason: with its seed, if it has one.
pub fn named(run: &Run) -> String {
    if run.is_imported() {
        run.id.clone()
    } else {
        format!("{} (seed {})", run.id, run.seed)
    }
}

/// The way a run ended, in plain words.
pub fn fate(run: &Run) -> String {
    let fate = match run.state {
        State::Running => "the run has not ended",
        State::Finished => "the run finished",
        State::Interrupted => "the run was interrupted",
        State::Failed => "the run failed",
    };
    match &run.error {
        // Its error may say no more than its state.
        Some(error) if error != run.state.name() => format!("{fate}: {error}"),
        _ => fate.to_owned(),
    }
}

/// A measurement: a step, and a recording of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meant {
    /// Its key, as in the first run that has it; without a variant if none has.
    pub key: RecordingKey,
    /// The number of recordings of the same step and variant before it.
    pub ordinal: usize,
}

impl Meant {
    /// All recordings of a run.
    pub fn all(run: &Run) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for recording in &run.recordings {
            let key = recording.key.clone();
            let is_alike = |one: &&Self| one.key.step == key.step && one.key.is_alike(&key);
            let ordinal = all.iter().filter(is_alike).count();
            all.push(Self { key, ordinal });
        }
        all
    }

    /// A measurement that no run has.
    pub fn missing(key: RecordingKey) -> Self {
        Self { key, ordinal: 0 }
    }

    /// Returns true if both are the same measurement of the same step.
    pub fn is_same(&self, other: &Self) -> bool {
        self.key.step == other.key.step
            && self.key.is_alike(&other.key)
            && self.ordinal == other.ordinal
    }

    /// The recording that a run has of it. If the run's plan has the same step there, as in runs of
    /// one subject, it is that step's; under another plan it is the recording of the same name.
    fn of<'a>(&self, one: &Measured<'a>) -> Option<&'a Recording> {
        let run = one.run;
        if self.is_own_step(one) {
            let mut own = run
                .recordings
                .iter()
                .filter(|other| other.key.step == self.key.step && other.key.is_alike(&self.key));
            return own.nth(self.ordinal);
        }
        let mut all = run.recordings.iter();
        all.find(|other| other.key.is_same_measurement(&self.key))
    }

    /// Returns true if the step of this number is the one that is meant.
    fn is_own_step(&self, one: &Measured<'_>) -> bool {
        let key = &self.key;
        match &one.plan {
            Ok(plan) => plan.steps.get(key.step as usize).map_or_else(
                || one.run.is_imported(),
                |step| (&step.probe, &step.load) == (&key.probe, &key.load),
            ),
            Err(_) => true,
        }
    }
}

/// The reason why a run is no complete answer about a measurement.
fn gap(one: &Measured<'_>, meant: &Meant) -> Option<String> {
    let (run, key) = (one.run, &meant.key);
    if run.state != State::Finished {
        return Some(fate(run));
    }
    let plan = match &one.plan {
        Ok(plan) => plan,
        Err(_) if without(Mend::Unreadable) => return None,
        Err(why) => return Some(why.clone()),
    };
    if let Some(absent) = unsupported(run, plan, meant.is_own_step(one), key) {
        return Some(absent);
    }
    let Some(own) = meant.of(one) else {
        return Some("the run finished without it".to_owned());
    };
    of_recording(run, plan, own)
}

/// The reason why a run's recording is no complete answer about its kernel: samples are missing,
/// the load did next to nothing beside it, or a hypervisor lay beneath it.
pub fn shortcoming(run: &Run, recording: &Recording) -> Option<String> {
    match run.parsed_plan() {
        Ok(plan) => of_recording(run, &plan, recording),
        Err(why) => Some(why),
    }
}

fn of_recording(run: &Run, plan: &Plan, own: &Recording) -> Option<String> {
    short_of_step(run, plan, own).or_else(|| beyond_the_kernel(run))
}

/// The reason why a run's recording is no complete answer to its step, whatever lay beneath the
/// kernel.
pub fn short_of_step(run: &Run, plan: &Plan, own: &Recording) -> Option<String> {
    own.shortcoming()
        .or_else(|| absent_cpus(run, plan, own))
        .or_else(|| beside_the_plan(plan, own))
        .or_else(|| beside_no_load(run, plan, own))
}

/// Reports that a step under load has an unknown or negligible load: none of its workers counted
/// anything, or took a hundredth of the time.
fn beside_no_load(run: &Run, plan: &Plan, recording: &Recording) -> Option<String> {
    let step = plan.steps.get(recording.key.step as usize)?;
    let load = &step.load;
    if load == IDLE {
        return None;
    }
    let all = run.work(recording);
    if all.is_empty() {
        return Some(format!(
            "nothing is known of what load {load} did beside it"
        ));
    }
    let is_idle = |one: &Work| one.amount == 0 && i128::from(one.cpu.0) * 100 <= one.span.0.into();
    let did_nothing = all.iter().all(is_idle);
    did_nothing.then(|| format!("load {load} did next to nothing beside it"))
}

/// Reports that a recording is not what its step asks for.
fn beside_the_plan(plan: &Plan, recording: &Recording) -> Option<String> {
    if without(Mend::Fewer) {
        return None;
    }
    let step = plan.steps.get(recording.key.step as usize)?;
    against_step(&step.params, recording)
}

/// Reports that the step of a measurement was unsupported. If it is unknown which step was, any
/// step of its probe and load may be it.
fn unsupported(run: &Run, plan: &Plan, is_own: bool, key: &RecordingKey) -> Option<String> {
    let is_it = |absent: &&Unsupported| {
        let step = plan.steps.get(absent.step as usize);
        let is_known =
            step.is_some_and(|step| (&step.probe, &step.load) == (&absent.probe, &absent.load));
        let is_alike = (&absent.probe, &absent.load) == (&key.probe, &key.load);
        is_alike && (absent.step == key.step || !is_own || !is_known)
    };
    let absent = run.unsupported.iter().find(is_it)?;
    Some(format!("unsupported: {}", absent.reason))
}

/// Clock sources that count the kernel's own ticks: they tell no shorter time.
const TICKING: [&str; 2] = ["jiffies", "refined-jiffies"];

/// The reason why a run in real time shows more than its kernel: a hypervisor, or a clock that
/// ticks. A limit that was kept is then no property of the machine; one that was broken is,
/// whatever the reason.
pub fn beyond_the_kernel(run: &Run) -> Option<String> {
    if run.is_virtual() {
        return None;
    }
    // A run without any facts says no more than one without this fact.
    let fact = |name: &str| run.provenance.as_ref()?.facts.get(name);
    match fact("virtualised") {
        Some(Fact::Flag(false)) => {}
        Some(Fact::Flag(true)) => {
            return Some(
                "measured in a virtual machine in real time: its hypervisor may be later at \
                 another time"
                    .to_owned(),
            );
        }
        // Files of other programs never say it.
        _ if run.is_imported() => {}
        _ => {
            return Some("it is not known whether a hypervisor ran beneath it".to_owned());
        }
    }
    let clock = fact("clocksource").and_then(Fact::text)?;
    TICKING
        .contains(&clock)
        .then(|| format!("measured by the clock source {clock}, which tells no time below a tick"))
}

/// The CPUs that the plan names for the step and that have no recording.
fn absent_cpus(run: &Run, plan: &Plan, recording: &Recording) -> Option<String> {
    let step = plan.steps.get(recording.key.step as usize)?;
    let asked = step.params.get("cpus").and_then(Value::as_array)?;
    let is_there = |cpu: &i64| {
        let variant = format!("cpu{cpu}");
        let mut all = run.recordings.iter().map(|one| &one.key);
        all.any(|key| key.step == recording.key.step && key.variant == variant)
    };
    let asked = asked.iter().filter_map(Value::as_integer);
    let absent: Vec<String> = asked
        .filter(|cpu| !is_there(cpu))
        .map(|cpu| format!("cpu{cpu}"))
        .collect();
    (!absent.is_empty()).then(|| format!("fewer CPUs than asked for: no {}", absent.join(", ")))
}

/// The time in which a recording's samples were taken; a lower bound if it is not known exactly.
fn measured_time(recording: &Recording) -> Nanos {
    // Missed periods take time only where the moments of all samples say so.
    let missed =
        recording.missed * u64::from(recording.is_complete() || recording.worst.is_empty());
    let periods = i64::try_from(recording.count.saturating_add(missed)).ok();
    let by_interval = nominal(recording).zip(periods);
    let by_interval =
        by_interval.and_then(|(interval, periods)| interval.0.checked_mul(periods).map(Nanos));
    let ends = |at: Nanos, value: Nanos| Nanos(at.0.saturating_add(value.0.max(0)));
    let kept = recording.samples.iter().last();
    let worst = recording
        .worst
        .iter()
        .map(|one| ends(one.at, one.value))
        .max();
    let by_samples = kept.map(|last| ends(last.at, last.value)).max(worst);
    let room = by_samples
        .zip(nominal(recording))
        .filter(|_| recording.is_complete());
    let by_interval = by_interval.map(|time| match room {
        Some((last, interval)) => time.min(Nanos(last.0.saturating_add(2 * interval.0))),
        None => time,
    });
    let known = recording.observed().or(by_interval).or(by_samples);
    // A time before the beginning is not known.
    known.unwrap_or(Nanos::ZERO).max(Nanos::ZERO)
}

/// The nominal interval, as far as the times of samples confirm it: this needs two of them, and
/// leaves a tenth for a late begin. If no time is known, the interval that the file gives.
fn nominal(recording: &Recording) -> Option<Nanos> {
    let interval = recording.interval?;
    let kept = recording.samples.iter().last();
    let last = recording
        .worst
        .iter()
        .copied()
        .chain(kept)
        .max_by_key(|one| one.seq);
    let Some(last) = last else {
        return Some(interval);
    };
    let each = last.at.0.checked_div(i64::try_from(last.seq).ok()?)?;
    Some(interval.min(Nanos(each.saturating_add(each / 9))))
}

/// The least and the greatest possible number of samples above a bound.
fn above(recording: &Recording, bound: Nanos) -> (u64, u64) {
    if recording.max() <= Some(bound) {
        return (0, 0);
    }
    if recording.is_complete() {
        let above = recording.samples.iter().filter(|one| one.value > bound);
        let count = above.count() as u64;
        return (count, count);
    }
    let worst = recording.worst.iter().filter(|one| one.value > bound);
    let worst = worst.count();
    if worst < recording.worst.len() {
        // All that are above it are among the worst.
        return (worst as u64, worst as u64);
    }
    let bins = |is_above: &dyn Fn(i64, i64) -> bool| -> u64 {
        let bins = recording.histogram.bins();
        let above = bins.filter(|bin| is_above(bin.low.0, bin.high.0));
        above.map(|bin| bin.count).sum::<u64>() + recording.histogram.overflow()
    };
    let least = bins(&|low, _| low > bound.0).max(worst as u64);
    (least, bins(&|_, high| high > bound.0))
}

/// The least and the greatest possible value of a figure.
fn figure_of(run: &Run, recording: &Recording, figure: &Figure) -> Result<(f64, f64), String> {
    let known = |value: Option<Nanos>| value.map(|value| (value.0 as f64, value.0 as f64));
    let none = || "there is no sample".to_owned();
    match figure {
        Figure::Worst => known(recording.max()).ok_or_else(none),
        Figure::Mean | Figure::Quantile(_) if recording.count == 0 => Err(none()),
        Figure::Mean => recording.mean_between().ok_or_else(none),
        Figure::Quantile(share)
            if !supports(recording.count, *share)
                && (recording.count != 1 || !without(Mend::OneSample)) =>
        {
            let few = match recording.count {
                1 => "1 sample is".to_owned(),
                count => format!("{count} samples are"),
            };
            Err(format!("{few} too few for {figure}"))
        }
        Figure::Quantile(share) => Quantiles::of(std::iter::once(recording))
            .between(*share)
            .map(|(low, high)| (low.0 as f64, high.0 as f64))
            .ok_or_else(|| format!("{figure} is among samples above the histogram's range")),
        Figure::Cpu | Figure::Work(_) => {
            work_of(run, recording, figure).map(|amount| (amount, amount))
        }
    }
}

/// The load's work per second of measured time.
fn work_of(run: &Run, recording: &Recording, figure: &Figure) -> Result<f64, String> {
    let all = run.work(recording);
    let done: f64 = match figure {
        Figure::Work(unit) => {
            let own: Vec<_> = all.iter().filter(|one| one.unit == *unit).collect();
            if own.is_empty() {
                let known: Vec<&str> = all.iter().map(|one| &*one.unit).collect();
                return Err(format!(
                    "the load counted no {unit} (it counted: {})",
                    known.join(", ")
                ));
            }
            own.iter().map(|one| one.amount as f64).sum()
        }
        _ if all.is_empty() => return Err("there was no load".to_owned()),
        _ => all.iter().map(|one| one.cpu.0 as f64).sum(),
    };
    // Runs that are older than this figure have the time of their samples.
    let span = all
        .iter()
        .map(|one| one.span)
        .max()
        .filter(|span| *span > Nanos::ZERO);
    let seconds = span
        .unwrap_or_else(|| measured_time(recording))
        .as_secs_f64();
    if seconds > 0.0 {
        Ok(done / seconds)
    } else {
        Err("the measured time is not known".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::Recorder;

    use super::*;
    use crate::synthetic;

    #[test]
    fn an_error_that_says_no_more_than_the_state_is_not_said_again() {
        let ended = |state, error: &str| {
            let mut run = synthetic::run("rt", 1, &[5]);
            (run.state, run.error) = (state, Some(error.to_owned()));
            fate(&run)
        };
        let interrupted = ended(State::Interrupted, "interrupted");
        assert_eq!(interrupted, "the run was interrupted");
        let failed = ended(State::Failed, "no room");
        assert_eq!(failed, "the run failed: no room");
    }

    #[test]
    fn moments_before_the_beginning_are_no_measured_time() {
        let mut recorder = Recorder::new(10);
        for number in 0..10 {
            recorder.record(Nanos(number - 20_000_000), Nanos(5));
        }
        let mut recording = recorder.finish(RecordingKey::new("timer", "stress", "cpu0"));
        recording.interval = Some(synthetic::INTERVAL);
        assert_eq!(measured_time(&recording), Nanos::ZERO);
    }
}

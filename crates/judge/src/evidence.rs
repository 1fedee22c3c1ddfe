// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs hold for one limit: their recordings, figures and gaps.

use punctual_model::limit::Figure;
use punctual_model::quantiles::supports;
use punctual_model::run::{Run, State};
use punctual_model::{Fact, Nanos, Plan, Quantiles, Recording, RecordingKey};
use toml::Value;

use crate::occasions::Occasions;

/// One subject's runs of different seeds.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// Its name; with kernel, boot arguments, bench and clock where another has the same name.
    pub name: String,
    /// Its runs. In virtual time the same seed twice is the same run, and counts once.
    pub runs: Vec<&'a Run>,
}

/// The subjects of some runs, in order of first appearance.
pub fn subjects(runs: &[Run]) -> Vec<Subject<'_>> {
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for run in runs {
        let same = |other: &&Run| (&other.subject, other.clock()) == (&run.subject, run.clock());
        let own = subjects.iter_mut().find(|one| one.runs.iter().any(same));
        match own {
            None => subjects.push(Subject {
                name: run.subject.name.clone(),
                runs: vec![run],
            }),
            Some(own) => {
                let is_again = |other: &&Run| other.is_virtual() && other.seed == run.seed;
                if !own.runs.iter().any(is_again) {
                    own.runs.push(run);
                }
            }
        }
    }
    let names: Vec<String> = subjects.iter().map(|one| one.name.clone()).collect();
    for subject in &mut subjects {
        if names.iter().filter(|name| **name == subject.name).count() > 1 {
            let of = &subject.runs[0].subject;
            let clock = subject.runs[0].clock();
            let time = clock.map_or_else(|| "real time".to_owned(), |clock| clock.to_string());
            let parts = [&of.kernel, &of.boot, &of.bench, &time];
            let told: Vec<&str> = parts
                .into_iter()
                .map(String::as_str)
                .filter(|part| !part.is_empty())
                .collect();
            subject.name = format!("{} ({})", of.name, told.join(", "));
        }
    }
    subjects
}

/// One subject's recordings of one measurement, run by run.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The runs that have it.
    pub found: Vec<(&'a Run, &'a Recording)>,
    /// Why some run is no whole answer: the first such reason.
    pub gap: Option<String>,
}

impl<'a> Evidence<'a> {
    /// What a subject has of a measurement.
    pub fn of(subject: &Subject<'a>, key: &RecordingKey) -> Self {
        let of_run = |run: &&'a Run| {
            let mut own = run.recordings.iter();
            let own = own.find(|recording| recording.key.is_same_measurement(key));
            own.map(|recording| (*run, recording))
        };
        let gap = |run: &&Run| {
            let gap = gap(run, key)?;
            Some(format!("{}: {gap}", named(run)))
        };
        Self {
            found: subject.runs.iter().filter_map(of_run).collect(),
            gap: subject.runs.iter().find_map(gap),
        }
    }

    /// How many samples there are.
    pub fn samples(&self) -> u64 {
        self.found
            .iter()
            .map(|(_, recording)| recording.count)
            .sum()
    }

    /// The measured time.
    pub fn time(&self) -> Nanos {
        let times = self.found.iter().map(|(_, one)| measured_time(one));
        times.fold(Nanos::ZERO, |sum, time| sum + time)
    }

    /// How often samples were above a bound: at least, and at most; the two differ where the
    /// bound falls into a bin of samples that were only counted.
    pub fn above(&self, bound: Nanos) -> (Occasions, Occasions) {
        let count = |(_, one): &(&Run, &Recording)| (above(one, bound), measured_time(one));
        let counts: Vec<_> = self.found.iter().map(count).collect();
        let of = |pick: fn((u64, u64)) -> u64| Occasions {
            runs: counts
                .iter()
                .map(|(both, time)| (pick(*both), *time))
                .collect(),
        };
        (of(|(least, _)| least), of(|(_, most)| most))
    }

    /// A figure of each run; an error where a run has none.
    pub fn figures(&self, figure: &Figure) -> Result<Figures, String> {
        let of_run = |(run, recording): &(&Run, &Recording)| {
            figure_of(run, recording, figure).map_err(|why| format!("{}: {why}", named(run)))
        };
        let both: Result<Vec<(f64, f64)>, String> = self.found.iter().map(of_run).collect();
        let (low, high) = both?.into_iter().unzip();
        Ok(Figures { low, high })
    }

    /// Whether all runs that have it were measured by other programs: these have no seeds.
    pub fn is_imported(&self) -> bool {
        !self.found.is_empty() && self.found.iter().all(|(run, _)| run.is_imported())
    }

    /// Why a figure is not known more closely than it is, and how it would be.
    pub fn distribution_gap(&self) -> String {
        let mut all = self.found.iter();
        let gap = all.find_map(|(_, one)| one.distribution_gap());
        gap.map_or(String::new(), |gap| format!(": {gap}"))
    }
}

/// A figure of each run: the least and the most that it may be, where samples were only counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The least, run by run.
    pub low: Vec<f64>,
    /// The most, run by run.
    pub high: Vec<f64>,
}

/// How a run is named in a reason: with its seed, where it has one.
pub fn named(run: &Run) -> String {
    if run.is_imported() {
        run.id.clone()
    } else {
        format!("{} (seed {})", run.id, run.seed)
    }
}

/// How a run ended, in plain words.
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

/// Why a run is no whole answer about a measurement.
fn gap(run: &Run, key: &RecordingKey) -> Option<String> {
    if run.state != State::Finished {
        return Some(fate(run));
    }
    let mut own = run.recordings.iter();
    let Some(own) = own.find(|one| one.key.is_same_measurement(key)) else {
        let mut absent = run.unsupported.iter();
        let absent = absent.find(|one| (&one.probe, &one.load) == (&key.probe, &key.load));
        return Some(absent.map_or_else(
            || "the run finished without it".to_owned(),
            |absent| format!("unsupported: {}", absent.reason),
        ));
    };
    if own.interrupted {
        return Some(format!("interrupted after {} samples", own.count));
    }
    absent_cpus(run, own).or_else(|| beyond_the_kernel(run))
}

/// Clock sources that count the kernel's own ticks: no shorter time is told by them.
const TICKING: [&str; 2] = ["jiffies", "refined-jiffies"];

/// Why what a real machine kept to is no property of it. What it did not keep to is, whatever
/// the reason.
fn beyond_the_kernel(run: &Run) -> Option<String> {
    let facts = run.provenance.as_ref().map(|found| &found.facts);
    let facts = facts.filter(|_| !run.is_virtual())?;
    if facts.get("virtualised") == Some(&Fact::Flag(true)) {
        return Some(
            "measured in a virtual machine in real time: its hypervisor may be later at another \
             time"
                .to_owned(),
        );
    }
    let clock = facts.get("clocksource").and_then(Fact::text)?;
    TICKING
        .contains(&clock)
        .then(|| format!("measured by the clock source {clock}, which tells no time below a tick"))
}

/// The CPUs that the plan names for the step and no recording is of.
fn absent_cpus(run: &Run, recording: &Recording) -> Option<String> {
    let plan: Plan = toml::from_str(&run.plan).ok()?;
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

/// The time in which a recording's samples were taken; no more than that where it is not
/// known exactly.
fn measured_time(recording: &Recording) -> Nanos {
    let periods = (recording.count + recording.missed) as i64;
    let by_interval = recording.interval.map(|interval| interval * periods);
    let ends = |at: Nanos, value: Nanos| at + value.max(Nanos::ZERO);
    let kept = recording.samples.iter().last();
    let worst = recording
        .worst
        .iter()
        .map(|one| ends(one.at, one.value))
        .max();
    let by_samples = kept.map(|last| ends(last.at, last.value)).max(worst);
    let known = recording.observed().or(by_interval).or(by_samples);
    known.unwrap_or(Nanos::ZERO)
}

/// How many samples are above a bound: at least, and at most.
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

/// The least and the most that a figure may be.
fn figure_of(run: &Run, recording: &Recording, figure: &Figure) -> Result<(f64, f64), String> {
    let known = |value: Option<Nanos>| value.map(|value| (value.0 as f64, value.0 as f64));
    let none = || "there is no sample".to_owned();
    match figure {
        Figure::Worst => known(recording.max()).ok_or_else(none),
        Figure::Mean | Figure::Quantile(_) if recording.count == 0 => Err(none()),
        Figure::Mean => recording.mean_between().ok_or_else(none),
        Figure::Quantile(share) if recording.count > 1 && !supports(recording.count, *share) => {
            let count = recording.count;
            Err(format!("{count} samples are too few for {figure}"))
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

/// What the load did, per second of measured time.
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
    use punctual_model::MachineRecord;

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
    fn seeds_are_of_one_subject_and_other_numbers_of_cpus_are_not() {
        let with = |seed, cpus| {
            let mut run = synthetic::run("rt", seed, &[5]);
            if let MachineRecord::Virtual(machine) = &mut run.machine {
                machine.cpus = cpus;
            }
            run
        };
        let runs = [with(1, 1), with(2, 1), with(1, 2), with(1, 1)];
        let found: Vec<(String, usize)> = subjects(&runs)
            .into_iter()
            .map(|subject| (subject.name, subject.runs.len()))
            .collect();
        let name = |more| format!("rt (virtual, 1 ns per instruction{more})");
        assert_eq!(found, [(name(""), 2), (name(" of any of 2 CPUs"), 1)]);
    }
}

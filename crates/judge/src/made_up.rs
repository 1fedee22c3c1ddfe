// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up sets of evidence whose truth is known: no verdict may claim more than the truth.
//!
//! A set is a handful of runs of one or two machines and plans, in any order: seeds, copies,
//! imports, gaps, steps that were interrupted or unsupported, plans that cannot be read, and
//! forgeries. Each run comes with a card that records the real measurement. The cards alone decide
//! whether a *fit* is true. The reference of a share is also such a set.
//!
//! `PUNCTUAL_SETS=100000 cargo test --release -p punctual-judge made_up` tries more sets.

use std::collections::BTreeSet;

use fastrand::Rng;
use punctual_model::imported::{FIGURES, PRIORITY, SAID, THREAD};
use punctual_model::limit::{Bound, Demand, Figure, Limit, Reference};
use punctual_model::machine::{HostMachine, VirtualMachine};
use punctual_model::record::{Provenance, Unsupported};
use punctual_model::recording::{MISSED, OBSERVED};
use punctual_model::run::{IMPORTED, IMPORTED_TEXT, Run, State};
use punctual_model::{Fact, Finding, MachineRecord, Nanos, RecordingKey};

use crate::answer::{Answer, Fitness, Judgement};
use crate::fitness::{Baselines, judge};
use crate::mends::Mend;
use crate::mends::tests::taken_out;
use crate::synthetic;

/// The bound that no sample may exceed.
const BOUND: i64 = 100_000;

/// The real measurement of one run.
#[expect(clippy::struct_excessive_bools, reason = "each spoils a run by itself")]
#[derive(Clone, Debug)]
struct Card {
    machine: u32,
    plan: u32,
    /// The number of the experiment; a copy has that of its original.
    experiment: u32,
    /// The seed: in virtual time it has one outcome.
    seed: u64,
    is_virtual: bool,
    in_hypervisor: bool,
    is_finished: bool,
    is_readable: bool,
    /// True if somebody wrote a figure into it.
    is_forged: bool,
    /// The samples of each step of its plan; `None` for an incomplete measurement.
    steps: Vec<Option<Vec<i64>>>,
    /// All samples, of complete measurements or not.
    seen: Vec<Vec<i64>>,
}

#[derive(Clone)]
struct Made {
    run: Run,
    card: Card,
}

/// The limits that a set is judged by.
fn limits() -> Vec<Limit> {
    let of = |demand| Limit {
        name: None,
        probe: "timer".into(),
        load: Some("stress".into()),
        variant: None,
        part: None,
        subject: None,
        demand,
        confidence: 0.95,
        runs: None,
    };
    let most = Bound::AtMost(BOUND as f64);
    vec![
        of(Demand::Never(Nanos(BOUND))),
        of(Demand::Typical(Figure::Quantile(0.5), most)),
        of(Demand::Typical(Figure::Quantile(0.99), most)),
        of(Demand::Rare {
            above: Nanos(BOUND),
            once_in: Nanos::from_millis(60),
        }),
        of(Demand::Missed(0)),
        of(Demand::Relative(
            Figure::Mean,
            Bound::AtMost(1.3),
            Reference::Baseline(None),
        )),
    ]
}

/// The number of samples in a step, by plan.
const SAMPLES: [usize; 3] = [40, 120, 1];

struct Maker {
    random: Rng,
    experiments: u32,
    /// The slowness of the subject: it is added to each sample.
    slower: i64,
}

impl Maker {
    fn values(&mut self, count: usize, is_late: bool) -> Vec<i64> {
        let mut values: Vec<i64> = (0..count)
            .map(|_| self.slower + self.random.i64(1_000..60_000))
            .collect();
        if is_late {
            let at = self.random.usize(..count);
            values[at] = BOUND + self.random.i64(1..4_000_000);
        }
        values
    }

    /// A complete run of a machine, by a plan.
    fn whole(
        &mut self,
        machine: u32,
        plan: u32,
        seed: u64,
        is_virtual: bool,
        is_late: bool,
    ) -> Made {
        self.experiments += 1;
        // What made another of an earlier run's plan was done to that run.
        let plan = plan % 3;
        let cpus: &[i64] = if plan == 1 { &[0, 1] } else { &[0] };
        let samples = SAMPLES[plan as usize];
        let taken: Vec<Vec<i64>> = cpus.iter().map(|_| self.values(samples, is_late)).collect();
        let mut run = synthetic::run("subject", seed, &[]);
        let step = |cpu: &i64| {
            format!(
                "[[step]]\nprobe = \"timer\"\nload = \"stress\"\ncpus = [{cpu}]\nsamples = {samples}\n"
            )
        };
        let steps: String = cpus.iter().map(step).collect();
        run.plan = format!("seed = {seed}\n{steps}[loads.stress]\nsummary = \"\"\n");
        run.recordings.clear();
        synthetic::work_in(&mut run, cpus.len() as u32);
        for (values, number) in taken.iter().zip(0..) {
            run.recordings
                .push(recording(values, number, cpus[number as usize]));
        }
        run.id = format!("r{}", self.experiments);
        run.started = format!("at {}", self.experiments);
        if is_virtual {
            if let MachineRecord::Virtual(own) = &mut run.machine {
                *own = VirtualMachine {
                    memory_mib: 256 + machine,
                    ..own.clone()
                };
            }
        } else {
            run.subject.bench = "host".into();
            run.machine = MachineRecord::Host(HostMachine {
                host: format!("host{machine}"),
                ..HostMachine::default()
            });
            let mut told = Provenance::default();
            told.facts.insert("virtualised".into(), false.into());
            run.provenance = Some(told);
        }
        let card = Card {
            machine,
            plan,
            experiment: self.experiments,
            seed,
            is_virtual,
            in_hypervisor: false,
            is_finished: true,
            is_readable: true,
            is_forged: false,
            steps: taken.iter().cloned().map(Some).collect(),
            seen: taken,
        };
        Made { run, card }
    }

    /// A set: mostly sound runs of one machine and plan, with something that spoils it.
    fn set(&mut self) -> Vec<Made> {
        let is_virtual = self.random.u8(..3) > 0;
        let plan = self.random.u32(..3);
        let is_bad = self.random.u8(..3) == 0;
        self.slower = *self.random.choice(&[0, 0, 15_000, 30_000]).unwrap();
        let mut set = self.runs(plan, is_virtual, is_bad);
        // Files of other programs stand beside such files alone.
        if set.iter().any(is_file) {
            set.iter_mut().for_each(as_file);
            set.retain(is_file);
        }
        self.random.shuffle(&mut set);
        set
    }

    /// The reference for a share of a set: mostly runs of the same plan, of a faster subject.
    fn baseline(&mut self, set: &[Made]) -> Vec<Made> {
        self.slower = 0;
        let first = &set[0].card;
        let (own, is_virtual) = (first.plan % 3, first.is_virtual);
        let plan = if self.random.u8(..6) == 0 {
            self.random.u32(..3)
        } else {
            own
        };
        let is_virtual = is_virtual ^ (self.random.u8(..8) == 0);
        let mut all = self.runs(plan, is_virtual, false);
        if is_file(&set[0]) || all.iter().any(is_file) {
            all.iter_mut().for_each(as_file);
            all.retain(is_file);
        }
        all
    }

    fn runs(&mut self, plan: u32, is_virtual: bool, is_bad: bool) -> Vec<Made> {
        let machine = 0;
        let all = self.random.usize(1..9);
        let mut set: Vec<Made> = (1..=all as u64)
            .map(|seed| {
                let is_late = is_bad && self.random.u8(..4) == 0;
                self.whole(machine, plan, seed, is_virtual, is_late)
            })
            .collect();
        for _ in 0..self.random.u8(..3) {
            self.spoil(&mut set, is_virtual);
        }
        set
    }

    fn spoil(&mut self, set: &mut Vec<Made>, is_virtual: bool) {
        let at = self.random.usize(..set.len());
        let seed = set[at].card.seed;
        match self.random.u8(..12) {
            // Another machine of the same name, and another plan beside it.
            0 => {
                let late = self.random.bool();
                let (plan, seeds) = (set[at].card.plan, self.random.u64(1..6));
                set.extend((1..=seeds).map(|seed| self.whole(1, plan, seed, is_virtual, late)));
            }
            1 => {
                let (machine, late) = (set[at].card.machine, self.random.bool());
                let plan = (set[at].card.plan + 1) % 3;
                let seed = seed + self.random.u64(..2);
                set.push(self.whole(machine, plan, seed, is_virtual, late));
            }
            // Copies under other names.
            2 => {
                // Of a file, which was imported again and again.
                let file = Fact::Text(format!("of {}", set[at].card.experiment));
                let own = set[at].run.provenance.as_mut();
                if let Some(found) = own.filter(|_| !is_virtual) {
                    found.facts.insert(IMPORTED.into(), "first".into());
                    found.facts.insert(IMPORTED_TEXT.into(), file);
                }
                for number in 0..self.random.u8(1..6) {
                    let mut copy = set[at].clone();
                    copy.run.id = format!("{}-copy-{number}", copy.run.id);
                    copy.run.started = format!("{number} later");
                    if let Some(found) = &mut copy.run.provenance {
                        let file = Fact::Text(number.to_string());
                        found.facts.insert(IMPORTED.into(), file);
                        if let MachineRecord::Host(_) = &copy.run.machine {
                            copy.run.seed = number.into();
                        }
                    }
                    set.push(copy);
                }
            }
            3 => {
                let (how, which) = (self.random.u8(..5), self.random.usize(..2));
                lose(&mut set[at], how, which);
            }
            // The same seed on the same machine, with another outcome.
            4 => {
                let Card { machine, plan, .. } = set[at].card;
                let late = self.random.bool();
                set.push(self.whole(machine, plan, seed, is_virtual, late));
            }
            5 => {
                set[at].run.plan = "not a plan [[".into();
                set[at].card.is_readable = false;
            }
            6 if !is_virtual => {
                let found = set[at].run.provenance.get_or_insert_default();
                found.facts.insert("virtualised".into(), true.into());
                set[at].card.in_hypervisor = true;
            }
            // A step that none of them could carry out; half of them with plans that nobody can
            // read, so that nothing says that it is missing.
            7 => {
                let is_garbled = self.random.bool();
                let has_two = |one: &&mut Made| one.card.steps.len() > 1 && !is_file(one);
                for one in set.iter_mut().filter(has_two) {
                    lose(one, 1, 1);
                    if is_garbled {
                        one.run.unsupported.clear();
                        one.run.plan = "not a plan [[".into();
                        one.card.is_readable = false;
                    }
                }
            }
            // Half of a step that says that it is whole.
            8 if !is_file(&set[at]) => halve(&mut set[at], self.random.usize(..2)),
            // A file in other forms: without its comments, and as it was before its end.
            9 if !is_virtual => {
                let forms = self.random.u8(1..6);
                let others = other_forms(&mut set[at], forms);
                set.extend(others);
            }
            // Another interval, or another priority, of which the plan of a file knows nothing.
            10 if !is_virtual => {
                let is_interval = self.random.bool();
                let plan = set[at].card.plan;
                for one in set.iter_mut().filter(|one| one.card.plan == plan) {
                    as_file(one);
                }
                if !is_file(&set[at]) {
                    return;
                }
                set[at].card.plan += 3;
                for own in &mut set[at].run.recordings {
                    if is_interval {
                        own.interval = own.interval.map(|interval| Nanos(interval.0 - 1_000));
                    } else {
                        own.settings.insert(PRIORITY.into(), 7.into());
                    }
                }
            }
            _ => forge(&mut set[at], self.random.u8(..7)),
        }
    }
}

/// The plan of an imported file.
const FILE: &str = "step = []";

fn is_file(made: &Made) -> bool {
    made.run.plan == FILE
}

/// Turns a whole run into one of another program: its plan says nothing, its thread has an id.
fn as_file(made: &mut Made) {
    let is_whole = made.card.steps.iter().all(Option::is_some);
    if is_file(made) || !is_whole || !made.card.is_readable {
        return;
    }
    let (card, run) = (&mut made.card, &mut made.run);
    // How long it measured is no plan of a file's.
    if card.plan % 3 == 2 {
        card.plan -= 2;
    }
    let words = format!("{:08x}", card.experiment);
    let facts = [
        (IMPORTED, card.experiment.to_string()),
        (IMPORTED_TEXT, format!("of {}", card.experiment)),
        (FIGURES, format!("figures of {}", card.experiment)),
        (SAID, format!("aaaaaaaa {words}")),
    ];
    let facts = facts.map(|(name, text)| (name.to_owned(), Fact::Text(text)));
    run.provenance.get_or_insert_default().facts.extend(facts);
    FILE.clone_into(&mut run.plan);
    for own in &mut run.recordings {
        own.settings
            .insert(THREAD.into(), i64::from(card.experiment).into());
        own.settings.insert(PRIORITY.into(), 80.into());
        let unknown = "a file does not say".into();
        own.settings
            .insert(MISSED.into(), Fact::Unknown { unknown });
        own.missed = 0;
    }
}

/// The same measurement in the form of other files.
fn other_forms(made: &mut Made, forms: u8) -> Vec<Made> {
    as_file(made);
    if !is_file(made) {
        return Vec::new();
    }
    let form = |number: u8| {
        let mut copy = made.clone();
        copy.run.id = format!("{}-form-{number}", copy.run.id);
        let facts = &mut copy.run.provenance.get_or_insert_default().facts;
        facts.insert(IMPORTED_TEXT.into(), Fact::Text(format!("form {number}")));
        match number % 3 {
            0 => drop(facts.insert(SAID.into(), Fact::Text(String::new()))),
            1 => drop(facts.remove(FIGURES)),
            _ => {
                facts.remove(FIGURES);
                for own in &mut copy.run.recordings {
                    let values: Vec<i64> = own.samples.iter().map(|one| one.value.0).collect();
                    let left = values.len() - (number as usize).min(values.len() / 2);
                    let settings = own.settings.clone();
                    let (step, cpu) = (own.key.step, i64::from(own.key.step));
                    *own = recording(&values[..left], step, cpu);
                    own.settings = settings;
                }
            }
        }
        copy
    };
    (0..forms).map(form).collect()
}

/// Removes half of the samples without any trace.
fn halve(made: &mut Made, which: usize) {
    let step = which.min(made.card.steps.len() - 1);
    let Some(samples) = made.card.steps[step].take() else {
        return;
    };
    let left = &samples[..samples.len() / 2];
    let all = &mut made.run.recordings;
    if let Some(own) = all.iter_mut().find(|own| own.key.step as usize == step) {
        *own = recording(left, step as u32, step as i64);
        made.card.seen[step] = left.to_vec();
    }
}

fn recording(values: &[i64], step: u32, cpu: i64) -> punctual_model::Recording {
    let mut own = synthetic::recording(values, values.len());
    own.key = RecordingKey::new("timer", "stress", &format!("cpu{cpu}"));
    own.key.step = step;
    own
}

/// Removes evidence; the rest says that something is missing.
fn lose(made: &mut Made, how: u8, which: usize) {
    // Of a file nothing says what it should have had.
    let is_unsaid = is_file(made) && matches!(how, 1 | 2);
    let how = if is_unsaid { 0 } else { how };
    let step = which.min(made.card.steps.len() - 1);
    let place = made
        .run
        .recordings
        .iter()
        .position(|one| one.key.step as usize == step);
    let is_there = |at: Option<usize>| at.is_some();
    match (how, place) {
        (0, Some(place)) => {
            let own = &mut made.run.recordings[place];
            let values: Vec<i64> = own.samples.iter().map(|one| one.value.0).collect();
            let left = &values[..values.len() / 2];
            let cpu = step as i64;
            let settings = std::mem::take(&mut own.settings);
            *own = recording(left, step as u32, cpu);
            own.settings = settings;
            own.interrupted = true;
            made.card.seen[step] = left.to_vec();
            made.card.steps[step] = None;
        }
        (1 | 2, place) if is_there(place) => {
            made.run
                .recordings
                .retain(|one| one.key.step as usize != step);
            if how == 1 {
                made.run.unsupported.push(Unsupported {
                    step: step as u32,
                    probe: "timer".into(),
                    load: "stress".into(),
                    reason: "no such CPU".into(),
                });
            }
            made.card.seen[step].clear();
            made.card.steps[step] = None;
        }
        (3, _) => {
            made.run.state = State::Failed;
            made.card.is_finished = false;
        }
        _ => {
            made.run.state = State::Interrupted;
            made.card.is_finished = false;
        }
    }
}

/// Forges a figure of a run. Each forgery is refused where it is read.
fn forge(made: &mut Made, how: u8) {
    made.card.is_forged = true;
    let Some(own) = made.run.recordings.first_mut().filter(|own| own.count > 0) else {
        return;
    };
    match how {
        0 => own.extremes = Some((Nanos(1), Nanos(1_000))),
        1 => own.interval = Some(Nanos(1_000_000_000_000)),
        2 => own.sum = Nanos(1),
        3 => own.histogram = synthetic::recording(&vec![5; own.count as usize], 0).histogram,
        4 => own.missed = 0,
        5 => {
            let hour = Finding::Nanos(Nanos::from_millis(3_600_000));
            own.findings.insert(OBSERVED.into(), hour);
        }
        _ => own.worst.clear(),
    }
}

/// The runs that a store holds of a set: readers refuse those that contradict themselves.
fn stored(set: &[Made], is_checked: bool) -> Vec<Made> {
    let is_sound = |one: &&Made| {
        let mut all = one.run.recordings.iter();
        !is_checked || all.all(|own| own.contradiction().is_none())
    };
    set.iter().filter(is_sound).cloned().collect()
}

fn runs(set: &[Made]) -> Vec<Run> {
    set.iter().map(|one| one.run.clone()).collect()
}

/// The reason why a *fit* is not true; `None` if it is.
fn is_false(answer: &Answer, set: &[Made], baseline: &[Made]) -> Option<&'static str> {
    let cards: Vec<&Card> = set.iter().map(|one| &one.card).collect();
    let machines: BTreeSet<u32> = cards.iter().map(|card| card.machine).collect();
    let is_own = |card: &&&Card| {
        let told = if card.is_virtual {
            format!("memory {} MiB", 256 + card.machine)
        } else {
            format!("host host{}", card.machine)
        };
        machines.len() == 1 || answer.subject.contains(&told)
    };
    let own: Vec<&&Card> = cards.iter().filter(is_own).collect();
    if own.is_empty() {
        return Some("it is of no machine, or of several");
    }
    let step = answer.key.step as usize;
    let values = match sound(&own, step) {
        Ok(values) => values,
        Err(why) => return Some(why),
    };
    if let Demand::Relative(.., bound, _) = &answer.limit.demand {
        let first = own[0];
        let alike = |card: &&Card| card.machine == baseline[0].card.machine;
        let theirs: Vec<&Card> = baseline.iter().map(|one| &one.card).collect();
        if !theirs.iter().all(alike) {
            return Some("the baseline is of several machines");
        }
        let (plan, is_virtual) = (theirs[0].plan, theirs[0].is_virtual);
        if (plan, is_virtual) != (first.plan, first.is_virtual) {
            return Some("the baseline was measured otherwise");
        }
        return match sound(&theirs.iter().collect::<Vec<_>>(), step) {
            Ok(theirs) => by_share(&values, &theirs, *bound),
            Err(why) => Some(why),
        };
    }
    by_demand(&answer.limit.demand, &values)
}

/// The samples of independent runs for a step; an error says why they are no answer.
fn sound<'a>(own: &[&&'a Card], step: usize) -> Result<Vec<&'a Vec<i64>>, &'static str> {
    let first = own[0];
    let mut whole = own
        .iter()
        .map(|card| card.steps.get(step).and_then(Option::as_ref));
    let rules = [
        (own.iter().all(|card| card.plan == first.plan), "two plans"),
        (
            own.iter().all(|card| card.is_finished),
            "one did not finish",
        ),
        (
            own.iter().all(|card| card.is_readable),
            "a plan cannot be read",
        ),
        (!own.iter().any(|card| card.in_hypervisor), "a hypervisor"),
        (whole.all(|one| one.is_some()), "a step is not whole"),
        (!has_two_outcomes(own), "one seed with two outcomes"),
    ];
    if let Some((_, what)) = rules.iter().find(|(holds, _)| !holds) {
        return Err(what);
    }
    let mut seen = BTreeSet::new();
    let distinct = own.iter().filter(|card| seen.insert(card.experiment));
    Ok(distinct
        .filter_map(|card| card.steps[step].as_ref())
        .collect())
}

/// The reason why one mean is no such share of another, whatever else holds: it takes enough pairs
/// that chance alone seldom orders them so, and the middle pair must keep to the bound.
fn by_share(runs: &[&Vec<i64>], than: &[&Vec<i64>], bound: Bound) -> Option<&'static str> {
    let Bound::AtMost(most) = bound else {
        return Some("no such bound is asked for");
    };
    let mean = |values: &Vec<i64>| values.iter().sum::<i64>() as f64 / values.len() as f64;
    let pairs = runs
        .iter()
        .flat_map(|one| than.iter().map(move |other| (one, other)));
    let mut ratios: Vec<f64> = pairs.map(|(one, other)| mean(one) / mean(other)).collect();
    ratios.sort_by(f64::total_cmp);
    if ratios[ratios.len() / 2] > most {
        return Some("its share is larger");
    }
    // One order of three and three in twenty is by chance as this is.
    let all = runs.len() + than.len();
    let few = runs.len().min(than.len());
    let orders = (1..=few).fold(1, |orders, of| orders * (all - few + of) / of);
    (orders < 20 && runs != than).then_some("too few runs for a share")
}

fn has_two_outcomes(own: &[&&Card]) -> bool {
    let outcomes: BTreeSet<(u64, u32)> = own
        .iter()
        .filter(|card| card.is_virtual)
        .map(|card| (card.seed, card.experiment))
        .collect();
    let seeds: BTreeSet<u64> = outcomes.iter().map(|one| one.0).collect();
    seeds.len() < outcomes.len()
}

/// The reason why samples of independent runs do not meet a demand.
fn by_demand(demand: &Demand, runs: &[&Vec<i64>]) -> Option<&'static str> {
    let above = |values: &&Vec<i64>| values.iter().filter(|one| **one > BOUND).count();
    let late: usize = runs.iter().map(above).sum();
    let samples: usize = runs.iter().map(|one| one.len()).sum();
    match demand {
        Demand::Never(_) if late > 0 => Some("a sample is above"),
        Demand::Never(_) if runs.len() < 5 => Some("too few runs"),
        Demand::Typical(Figure::Quantile(share), _) => {
            let few = |one: &&&Vec<i64>| (one.len() as f64) * (1.0 - share) < 1.0 - 1e-9;
            let within = |one: &&&Vec<i64>| {
                let mut sorted = (**one).clone();
                sorted.sort_unstable();
                let rank = (share * sorted.len() as f64).ceil() as usize;
                sorted
                    .get(rank.max(1) - 1)
                    .is_some_and(|value| *value <= BOUND)
            };
            let kept = runs.iter().filter(within).count();
            let needed = [5, 8, 11]
                .get(runs.len() - kept)
                .copied()
                .unwrap_or(usize::MAX);
            if runs.iter().any(|one| few(&one)) {
                return Some("too few samples");
            }
            (runs.len() < needed).then_some("too few runs keep to it")
        }
        Demand::Rare { once_in, .. } => {
            let time = synthetic::INTERVAL.as_secs_f64() * samples as f64;
            let most = (late as f64).max(2.9957) / time * once_in.as_secs_f64();
            (most >= 1.0).then_some("it may come more often")
        }
        Demand::Missed(most) => {
            let by = |values: &&Vec<i64>| {
                let periods = values.iter().map(|value| value / synthetic::INTERVAL.0);
                periods.sum::<i64>().unsigned_abs()
            };
            let is_broken = runs.iter().any(|values| by(values) > *most);
            is_broken.then_some("a period was missed")
        }
        _ => None,
    }
}

/// The reason why a judgement as a whole claims more than the truth.
fn is_hidden(judgement: &Judgement, set: &[Made]) -> Option<&'static str> {
    if judgement.fitness() != Fitness::Fit {
        return None;
    }
    let all_whole = set
        .iter()
        .all(|one| one.card.steps.iter().all(Option::is_some));
    let late = |one: &Made| one.card.seen.iter().flatten().any(|value| *value > BOUND);
    if !all_whole {
        return Some("a step that is not whole is hidden");
    }
    set.iter().any(late).then_some("a late sample is hidden")
}

/// The judgement of all limits; if that is an error, one for each limit that can be judged.
fn judged(set: &[Made], baseline: &[Made], limits: &[Limit]) -> Vec<Judgement> {
    let baselines = Baselines::from([(None, self::runs(baseline))]);
    let runs = runs(set);
    if let Ok(all) = judge(limits, &runs, &baselines) {
        return vec![all];
    }
    let each = limits.iter().map(std::slice::from_ref);
    each.filter_map(|one| judge(one, &runs, &baselines).ok())
        .collect()
}

/// The false statements in a set's verdicts.
fn falsehoods(set: &[Made], baseline: &[Made], limits: &[Limit]) -> Vec<String> {
    let mut all = Vec::new();
    for judgement in judged(set, baseline, limits) {
        let fit = judgement.answers.iter();
        let fit = fit.filter(|answer| answer.fitness == Fitness::Fit);
        let told = fit.filter_map(|answer| {
            let what = is_false(answer, set, baseline)?;
            Some(format!(
                "{}: {}: {what}",
                answer.limit.demand,
                answer.reason()
            ))
        });
        all.extend(told);
        let never = judgement.answers.into_iter();
        let is_never = |one: &Answer| matches!(one.limit.demand, Demand::Never(_));
        let never = Judgement {
            answers: never.filter(is_never).collect(),
            remarks: Vec::new(),
            decide: Vec::new(),
        };
        all.extend(is_hidden(&never, set).map(str::to_owned));
    }
    all
}

fn sets() -> u64 {
    let asked = std::env::var("PUNCTUAL_SETS").ok();
    asked.map_or(60, |sets| sets.parse().expect("a number of sets"))
}

fn maker(seed: u64) -> Maker {
    Maker {
        random: Rng::with_seed(seed),
        experiments: 0,
        slower: 0,
    }
}

/// A set and the reference for a share of it; `None` if nothing of one of them can be read.
fn both(maker: &mut Maker, is_checked: bool) -> Option<(Vec<Made>, Vec<Made>)> {
    let set = stored(&maker.set(), is_checked);
    let baseline = (!set.is_empty()).then(|| stored(&maker.baseline(&set), is_checked))?;
    (!baseline.is_empty()).then_some((set, baseline))
}

/// Each answer with its subject and limit, in a fixed order.
fn told(all: &[Judgement]) -> Vec<String> {
    let answers = all.iter().flat_map(|judgement| &judgement.answers);
    let told = answers.map(|one| {
        let (subject, key, fitness) = (&one.subject, &one.key, one.fitness);
        let demand = &one.limit.demand;
        format!(
            "{demand}: {subject} {} {key}: {fitness}: {}",
            key.step,
            one.reason()
        )
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    told
}

#[test]
fn no_fit_is_false_and_no_order_matters() {
    let limits = limits();
    let mut counts = [0_u64; 3];
    let mut missed = 0_u64;
    for seed in 0..sets() {
        let mut maker = maker(seed);
        let Some((set, baseline)) = both(&mut maker, true) else {
            continue;
        };
        let found = falsehoods(&set, &baseline, &limits);
        assert!(found.is_empty(), "seed {seed}: {found:#?}");
        let judgements = judged(&set, &baseline, &limits);
        let mut shuffled = set.clone();
        maker.random.shuffle(&mut shuffled);
        let other = judged(&shuffled, &baseline, &limits);
        assert_eq!(told(&judgements), told(&other), "seed {seed}");
        let answers = judgements.iter().flat_map(|one| &one.answers);
        for answer in answers.filter(|one| matches!(one.limit.demand, Demand::Never(_))) {
            counts[answer.fitness as usize] += 1;
            let is_open = answer.fitness == Fitness::Undecided;
            let is_forged = set.iter().any(|one| one.card.is_forged);
            if is_open && !is_forged && is_false(answer, &set, &baseline).is_none() {
                println!("set {seed}: not told: {}", answer.reason());
                missed += 1;
            }
        }
    }
    let [fit, undecided, unfit] = counts;
    println!(
        "made-up sets {}: fit {fit}, undecided {undecided}, unfit {unfit}; undecided where it is \
         fit {missed}",
        sets()
    );
    assert!(fit > 0 && unfit > 0 && undecided > 0);
    assert!(
        missed * 1_000 <= fit,
        "what is known is told: {missed} of {fit}"
    );
}

#[test]
fn whatever_is_taken_away_nothing_becomes_fit() {
    let limits = limits();
    for seed in 0..sets() {
        let mut maker = maker(seed ^ 0x5eed);
        let Some((set, baseline)) = both(&mut maker, true) else {
            continue;
        };
        let fitness = |set: &[Made]| -> Vec<Fitness> {
            let all = judged(set, &baseline, &limits);
            let of = |limit: &Limit| {
                let answers = all.iter().flat_map(|judgement| &judgement.answers);
                let own = answers.filter(|one| one.limit == *limit);
                own.map(|one| one.fitness)
                    .max()
                    .unwrap_or(Fitness::Undecided)
            };
            limits.iter().map(of).collect()
        };
        let before = fitness(&set);
        let mut less = set.clone();
        let at = maker.random.usize(..less.len());
        let is_sound = less[at].card.steps.iter().all(Option::is_some);
        let is_late = less[at]
            .card
            .seen
            .iter()
            .flatten()
            .any(|value| *value > BOUND);
        let is_alone = is_sound
            && !is_late
            && !less[at].card.is_forged
            && set.iter().all(|one| one.card.plan == set[0].card.plan);
        let how = maker.random.u8(..7);
        match how {
            0..=4 => lose(&mut less[at], how, maker.random.usize(..2)),
            5 => less[at].run.plan = "not a plan [[".into(),
            // A sound run, of which nothing speaks against the subject.
            _ if is_alone && less[at].card.is_finished && less.len() > 1 => {
                let card = less[at].card.clone();
                let is_other = |one: &Made| one.card.seed == card.seed || !one.card.is_finished;
                let is_apart = |one: &Made| one.card.machine != card.machine;
                if card.is_readable
                    && !card.in_hypervisor
                    && !less.iter().any(|one| {
                        !std::ptr::eq(one, &raw const less[at]) && (is_other(one) || is_apart(one))
                    })
                {
                    less.remove(at);
                }
            }
            _ => {}
        }
        let after = fitness(&less);
        // A run that is slower than the others speaks against a share of another subject.
        let is_asked = |limit: &&Limit| how < 6 || !matches!(limit.demand, Demand::Relative(..));
        let all = limits.iter().zip(before).zip(after);
        for ((limit, before), after) in all.filter(|((limit, _), _)| is_asked(limit)) {
            let is_better = after == Fitness::Fit && before != Fitness::Fit;
            assert!(
                !is_better,
                "seed {seed}: {}: {before} became {after}",
                limit.demand
            );
        }
    }
}

#[test]
fn each_rule_that_was_missing_is_missed_when_it_is_taken_out() {
    let limits = limits();
    let finds = |mend: Mend| {
        let mut seeds = 0..sets().max(3_000);
        seeds.find(|seed| {
            both(&mut maker(*seed), true).is_some_and(|(set, baseline)| {
                taken_out(Some(mend), || {
                    !falsehoods(&set, &baseline, &limits).is_empty()
                })
            })
        })
    };
    let mends = [
        Mend::Digest,
        Mend::Machine,
        Mend::Plan,
        Mend::Copies,
        Mend::Steps,
        Mend::Unreadable,
        Mend::OneSample,
        Mend::Fewer,
        Mend::Forms,
        Mend::Otherwise,
        Mend::Reference,
        Mend::Baseline,
    ];
    for mend in mends {
        let found = finds(mend);
        println!("without {mend:?}: set {found:?}");
        assert!(found.is_some(), "{mend:?}");
    }
    // Of runs one of which is late, and says that it is not.
    let mut maker = maker(7);
    let mut forged: Vec<Made> = (1..=5)
        .map(|seed| maker.whole(0, 0, seed, true, seed == 3))
        .collect();
    forge(&mut forged[2], 0);
    let baseline: Vec<Made> = (1..=5)
        .map(|seed| maker.whole(0, 0, seed, true, false))
        .collect();
    let found = |is_checked| falsehoods(&stored(&forged, is_checked), &baseline, &limits);
    assert_eq!(found(true), Vec::<String>::new());
    assert!(
        !found(false).is_empty(),
        "figures that are not held against samples and bins"
    );
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up pairs of baselines and candidates with known truth.
//! Each has a planted shift or none, and something that spoils the evidence. No verdict may say
//! more than that.
//!
//! `PUNCTUAL_SETS=100000 cargo test --release -p punctual-report made_up` looks at more.

use std::collections::BTreeSet;

use fastrand::Rng;
use punctual_model::machine::HostMachine;
use punctual_model::record::Unsupported;
use punctual_model::{MachineRecord, Nanos, Recorder, RecordingKey};

use super::mends::tests::taken_out;
use super::*;
use crate::fixtures;

/// The true measurement of one run.
#[derive(Clone, Debug)]
struct Card {
    machine: u32,
    is_virtual: bool,
    /// The number of the experiment; copies share it with their original.
    experiment: u32,
    seed: u64,
    is_readable: bool,
    in_hypervisor: bool,
    /// True for each step that is a whole measurement.
    whole: [bool; 2],
}

#[derive(Clone)]
struct Made {
    run: Run,
    card: Card,
}

/// The truth about the comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Truth {
    /// The same seeds have the same outcomes.
    Same,
    /// Other outcomes, so many times as long; 1 is no shift.
    Times(f64),
}

struct Set {
    truth: Truth,
    there: Vec<Made>,
    here: Vec<Made>,
}

struct Maker {
    random: Rng,
    experiments: u32,
    is_virtual: bool,
}

const LOADS: [&str; 2] = ["idle", "stress"];

impl Maker {
    /// A whole run, its times so many times as long.
    fn whole(&mut self, machine: u32, seed: u64, times: f64) -> Made {
        self.experiments += 1;
        let mut run = fixtures::run("rt", seed);
        run.id = format!("r{}", self.experiments);
        run.started = format!("at {}", self.experiments);
        run.unsupported.clear();
        let steps = LOADS
            .map(|load| format!("[[step]]\nprobe = \"timer\"\nload = \"{load}\"\nsamples = 120\n"));
        run.plan = format!("seed = {seed}\n{}", steps.concat());
        match &mut run.machine {
            MachineRecord::Virtual(own) if self.is_virtual => own.memory_mib = 256 + machine,
            own => {
                run.subject.bench = "host".into();
                *own = MachineRecord::Host(HostMachine {
                    host: format!("host{machine}"),
                    ..HostMachine::default()
                });
                let told = run.provenance.get_or_insert_default();
                told.facts.insert("virtualised".into(), false.into());
            }
        }
        // A run as a whole is some per cent slower or faster.
        let own = 1.0 + 0.06 * (self.random.f64() - 0.5);
        let mut recording = |(load, step): (&str, u32)| {
            let mut recorder = Recorder::new(200);
            for at in 0..120 {
                let value = self.random.f64().mul_add(2_000.0, 4_000.0) * own * times;
                recorder.record(Nanos(at * 1_000), Nanos(value as i64));
            }
            let mut key = RecordingKey::new("timer", load, "cpu0");
            key.step = step;
            recorder.finish(key)
        };
        run.recordings = LOADS.into_iter().zip(0..).map(&mut recording).collect();
        let card = Card {
            machine,
            is_virtual: self.is_virtual,
            experiment: self.experiments,
            seed,
            is_readable: true,
            in_hypervisor: false,
            whole: [true; 2],
        };
        Made { run, card }
    }

    /// The same run again, under another name.
    fn again(&mut self, made: &Made) -> Made {
        self.experiments += 1;
        let mut copy = made.clone();
        copy.run.id = format!("r{}", self.experiments);
        copy.run.started = format!("at {}", self.experiments);
        copy
    }

    fn set(&mut self) -> Set {
        self.is_virtual = self.random.u8(..3) > 0;
        let truth = match self.random.u8(..5) {
            0 => Truth::Same,
            1 => Truth::Times(1.5),
            2 => Truth::Times(0.7),
            _ => Truth::Times(1.0),
        };
        let seeds = self.random.u64(2..7);
        // In real time a baseline may be of another machine.
        let machine = u32::from(!self.is_virtual && self.random.u8(..6) == 0);
        let mut there: Vec<Made> = (1..=seeds)
            .map(|seed| self.whole(machine, seed, 1.0))
            .collect();
        let mut here: Vec<Made> = match truth {
            Truth::Same => there.iter().map(|one| self.again(one)).collect(),
            Truth::Times(times) => (1..=seeds).map(|seed| self.whole(0, seed, times)).collect(),
        };
        for _ in 0..self.random.u8(..3) {
            if self.random.bool() {
                self.spoil(&mut there, 1.0);
            } else {
                let times = if let Truth::Times(times) = truth {
                    times
                } else {
                    1.0
                };
                self.spoil(&mut here, times);
            }
        }
        // What cannot be carried out is missing on both sides, and the rest is equal.
        if self.random.u8(..6) == 0 {
            let how = self.random.u8(..4);
            for one in there.iter_mut().chain(&mut here) {
                lose(one, how, 1);
            }
        }
        self.random.shuffle(&mut there);
        self.random.shuffle(&mut here);
        Set { truth, there, here }
    }

    fn spoil(&mut self, side: &mut Vec<Made>, times: f64) {
        let at = self.random.usize(..side.len());
        let seed = side[at].card.seed;
        match self.random.u8(..6) {
            // Copies; in real time nothing is said by a seed.
            0 => {
                for number in 0..self.random.u64(1..6) {
                    let mut copy = self.again(&side[at]);
                    if !self.is_virtual {
                        copy.run.seed = 100 + number;
                    }
                    side.push(copy);
                }
            }
            // Another machine of the same name.
            1 => {
                let seeds = self.random.u64(1..4);
                side.extend((1..=seeds).map(|seed| self.whole(1, seed, times)));
            }
            3 if !self.is_virtual => {
                let told = side[at].run.provenance.get_or_insert_default();
                let says = *self.random.choice(&[Some(true), None]).expect("a choice");
                match says {
                    Some(says) => told.facts.insert("virtualised".into(), says.into()),
                    None => told.facts.remove("virtualised"),
                };
                side[at].card.in_hypervisor = true;
            }
            // One seed with another outcome.
            2 if self.is_virtual => {
                let machine = side[at].card.machine;
                side.push(self.whole(machine, seed, times));
            }
            _ => lose(&mut side[at], self.random.u8(..4), self.random.usize(..2)),
        }
    }
}

/// Takes evidence away: the remainder says that something is missing.
fn lose(made: &mut Made, how: u8, step: usize) {
    let run = &mut made.run;
    let own = |number: u32| number as usize == step;
    match how {
        0 => {
            let interrupted = run.recordings.iter_mut().find(|one| own(one.key.step));
            if let Some(one) = interrupted {
                one.interrupted = true;
            }
        }
        1 | 2 => {
            run.recordings.retain(|one| !own(one.key.step));
            if how == 1 {
                run.unsupported.push(Unsupported {
                    step: step as u32,
                    probe: "timer".into(),
                    load: LOADS[step].into(),
                    reason: "no such CPU".into(),
                });
            }
        }
        _ => {
            run.plan = "not a plan [[".into();
            made.card.is_readable = false;
        }
    }
    made.card.whole[step] &= how == 3;
}

/// Returns the reason why neither *unchanged* nor any *not worse* of a side is true.
/// Returns `None` if it may be.
fn spoilt(side: &[Made]) -> Option<&'static str> {
    let distinct = |of: &dyn Fn(&Card) -> (u64, u32)| {
        let all: BTreeSet<(u64, u32)> = side.iter().map(|one| of(&one.card)).collect();
        all.len()
    };
    let seeds = distinct(&|card| (card.seed, 0));
    let rules = [
        (distinct(&|card| (0, card.machine)) == 1, "two machines"),
        (
            !side[0].card.is_virtual || distinct(&|card| (card.seed, card.experiment)) == seeds,
            "one seed with two outcomes",
        ),
        (
            side.iter().all(|one| one.card.is_readable),
            "a plan cannot be read",
        ),
        (
            !side.iter().any(|one| one.card.in_hypervisor),
            "perhaps a hypervisor",
        ),
        (
            side.iter().all(|one| one.card.whole == [true; 2]),
            "a step is not whole",
        ),
    ];
    let broken = rules.into_iter().find(|(holds, _)| !holds);
    broken.map(|(_, what)| what)
}

/// Counts the runs of a side that there really are.
fn runs_of(side: &[Made]) -> usize {
    let all: BTreeSet<u32> = side.iter().map(|one| one.card.experiment).collect();
    all.len()
}

/// Finds a part of a gate's verdict that is false whatever chance does.
fn falsehood(gated: &Gated, set: &Set) -> Option<String> {
    let spoilt = spoilt(&set.there).or_else(|| spoilt(&set.here));
    let standing = gated.standing;
    if let Some(what) = spoilt.filter(|_| standing < Standing::Undecided) {
        return Some(format!("{}: {what}", standing.name()));
    }
    let first = |side: &[Made]| (side[0].card.is_virtual, side[0].card.machine);
    if standing < Standing::Undecided && first(&set.there) != first(&set.here) {
        return Some(format!("{}: another machine", standing.name()));
    }
    if standing == Standing::Unchanged && set.truth != Truth::Same {
        return Some("unchanged: other outcomes".to_owned());
    }
    // The rarest of all divisions of so few runs is no evidence.
    let (there, here) = (runs_of(&set.there), runs_of(&set.here));
    let is_by_chance = set.truth != Truth::Same && there.min(here) < 4;
    let is_decided = [Standing::NotWorse, Standing::Tolerated, Standing::Worse];
    (is_by_chance && is_decided.contains(&standing))
        .then(|| format!("{}: {there} and {here} runs", standing.name()))
}

/// Returns true if a verdict is one that chance may make false, as often as it says.
fn is_mistaken(gated: &Gated, truth: Truth) -> bool {
    let is_at_most = gated.standing < Standing::Undecided;
    match truth {
        Truth::Times(times) if times > gated.rule.effect => is_at_most,
        Truth::Times(_) | Truth::Same => gated.standing == Standing::Worse,
    }
}

fn gated_of(set: &Set) -> Option<Gated> {
    let [there, here] =
        [&set.there, &set.here].map(|side| side.iter().map(|one| &one.run).collect::<Vec<_>>());
    // What cannot be read is refused, which is no verdict.
    gated(&there, &here, Vec::new(), &Terms::default()).ok()
}

fn sets() -> u64 {
    let asked = std::env::var("PUNCTUAL_SETS").ok();
    asked.map_or(60, |sets| sets.parse().expect("a number of sets"))
}

fn maker(seed: u64) -> Maker {
    Maker {
        random: Rng::with_seed(seed),
        experiments: 0,
        is_virtual: true,
    }
}

/// Returns everything told, independent of the order in which runs are named.
fn told(gated: &Gated) -> Vec<String> {
    let figure = |one: &Judged| {
        let (name, standing) = (&one.name, one.standing.name());
        format!(
            "{name} {standing} {} {} {:?}",
            one.there, one.here, one.compared
        )
    };
    let row = |row: &Row| {
        let figures: Vec<String> = row.figures.iter().map(figure).collect();
        format!("{:?} {} {figures:?}", row.row, row.standing.name())
    };
    let mut told: Vec<String> = gated.rows.iter().map(row).collect();
    told.sort();
    told.push(gated.standing.name().to_owned());
    told
}

#[test]
fn no_unchanged_and_no_not_worse_is_false_and_no_order_matters() {
    let mut counts = [0_u64; 5];
    let (mut mistaken, mut told_by_chance) = (0_u64, 0_u64);
    for seed in 0..sets() {
        let mut maker = maker(seed);
        let mut set = maker.set();
        let Some(found) = gated_of(&set) else {
            continue;
        };
        assert_eq!(falsehood(&found, &set), None, "set {seed}");
        counts[found.standing as usize] += 1;
        if set.truth != Truth::Same {
            told_by_chance += 1;
            mistaken += u64::from(is_mistaken(&found, set.truth));
        }
        maker.random.shuffle(&mut set.there);
        maker.random.shuffle(&mut set.here);
        let other = gated_of(&set).expect("the same runs");
        assert_eq!(told(&found), told(&other), "set {seed}");
    }
    let [unchanged, not_worse, tolerated, undecided, worse] = counts;
    println!(
        "made-up gates {}: unchanged {unchanged}, not worse {not_worse}, tolerated {tolerated}, \
         undecided {undecided}, worse {worse}; mistaken {mistaken} of {told_by_chance}",
        sets()
    );
    assert!(unchanged > 0 && not_worse > 0 && undecided > 0 && worse > 0);
    // 5 % at most, and what chance adds to that of so many.
    let most = 0.05 * told_by_chance as f64;
    assert!(
        mistaken as f64 <= most + 4.0 * most.sqrt(),
        "{mistaken} of {told_by_chance}"
    );
}

#[test]
fn each_rule_of_the_gate_is_missed_when_it_is_taken_out() {
    let mends = [
        Mend::Copies,
        Mend::OneMeasurement,
        Mend::Interrupted,
        Mend::Steps,
        Mend::Unreadable,
        Mend::Machine,
        Mend::Hypervisor,
    ];
    for mend in mends {
        let mut seeds = 0..300;
        let found = seeds.find(|seed| {
            let set = maker(*seed).set();
            let found = taken_out(Some(mend), || gated_of(&set));
            found.is_some_and(|found| falsehood(&found, &set).is_some())
        });
        println!("without {mend:?}: set {found:?}");
        assert!(found.is_some(), "{mend:?}");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of a gate about runs rather than figures: which sides are compared, which seeds need
//! not be measured, and how many runs each further look takes.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};

use punctual_model::machine::VirtualMachine;
use punctual_model::plan::SEED_MAX;
use punctual_model::run::State;
use punctual_model::{Plan, Run};

use crate::Error;

/// A subject, the baseline's runs with which it is compared, and its own runs.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    /// The subject's name.
    pub subject: String,
    /// The baseline's runs; never empty.
    pub there: Vec<&'a Run>,
    /// Its own runs.
    pub here: Vec<&'a Run>,
}

/// Pairs each subject with the baseline's runs of the same name. If the baseline has only one
/// subject, it takes the runs of that; otherwise those of the subject to whose name its own adds
/// boot arguments.
///
/// # Errors
/// If the baseline has no such subject.
pub fn sides<'a>(
    subjects: &[String],
    there: &'a [Run],
    here: &'a [Run],
    baseline: &str,
) -> Result<Vec<Side<'a>>, Error> {
    let names: BTreeSet<&str> = there.iter().map(|run| run.subject.name.as_str()).collect();
    let side = |subject: &String| {
        let is_meant = |name: &&&str| {
            let added = subject.strip_prefix(**name);
            names.len() == 1
                || added.is_some_and(|added| added.is_empty() || added.starts_with(' '))
        };
        // The longest: `rt threadirqs` before `rt`.
        let own = names.iter().filter(is_meant).max_by_key(|name| name.len());
        let own = own.ok_or_else(|| {
            Error::Request(format!(
                "expected {subject} among the subjects of baseline {baseline}, found {}",
                names.iter().copied().collect::<Vec<_>>().join(", ")
            ))
        })?;
        Ok(Side {
            subject: subject.clone(),
            there: there
                .iter()
                .filter(|run| run.subject.name == *own)
                .collect(),
            here: here
                .iter()
                .filter(|run| run.subject.name == *subject)
                .collect(),
        })
    };
    subjects.iter().map(side).collect()
}

/// The names of subjects, in order of first appearance.
pub fn subjects(runs: &[Run]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        if !names.contains(&run.subject.name) {
            names.push(run.subject.name.clone());
        }
    }
    names
}

impl Side<'_> {
    /// Returns true if further seeds cannot change the result: in virtual time, the same machine,
    /// target and plan give the same run.
    pub fn is_settled(&self) -> bool {
        let same = |here: &&&Run| {
            let there = self.there.iter().find(|there| there.seed == here.seed);
            let both = there.map(|there| (here.digest(), there.digest()));
            here.is_virtual() && both.is_some_and(|(here, there)| here.is_some() && here == there)
        };
        let is_same_machine = |there: &&Run| {
            let here = self.here.first();
            here.is_some_and(|here| here.is_made_like(there))
        };
        let is_same = !self.here.is_empty() && self.here.iter().all(|here| same(&here));
        is_same && self.there.iter().all(is_same_machine)
    }

    /// The seeds that need not be measured.
    pub fn implied(&self) -> Vec<u64> {
        if !self.is_settled() {
            return Vec::new();
        }
        let is_measured = |seed: &u64| self.here.iter().any(|run| run.seed == *seed);
        let seeds = self.there.iter().map(|run| run.seed);
        seeds.filter(|seed| !is_measured(seed)).collect()
    }
}

/// The guest that all runs of a baseline had, except for its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Memory, in mebibytes.
    pub memory_mib: u32,
    /// The number of CPUs.
    pub cpus: u32,
    /// The longest turn of one of several CPUs, in microseconds.
    pub turn_us: Option<u32>,
    /// Nanoseconds of virtual time per instruction.
    pub ns_per_insn: u32,
}

impl Guest {
    fn of(machine: &VirtualMachine) -> Self {
        Self {
            memory_mib: machine.memory_mib,
            cpus: machine.cpus,
            turn_us: machine.turn_us,
            ns_per_insn: machine.ns_per_insn,
        }
    }
}

impl fmt::Display for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, cpus, ns) = (self.memory_mib, self.cpus, self.ns_per_insn);
        let word = if cpus == 1 { "CPU" } else { "CPUs" };
        write!(f, "{cpus} {word}, {memory} MiB, {ns} ns per instruction")?;
        match self.turn_us {
            Some(turn) => write!(f, ", turns of {turn} µs"),
            None => Ok(()),
        }
    }
}

/// The guest of a baseline, whatever the order of its runs; `None` in real time.
///
/// # Errors
/// If its runs had two different guests.
pub fn guest(there: &[Run]) -> Result<Option<Guest>, Error> {
    let guests = there
        .iter()
        .filter_map(|run| Some((run, Guest::of(run.machine.as_virtual()?))));
    let guests: Vec<(&Run, Guest)> = guests.collect();
    let Some((first, guest)) = guests.first() else {
        return Ok(None);
    };
    match guests.iter().find(|(_, other)| other != guest) {
        None => Ok(Some(*guest)),
        Some((other, own)) => Err(Error::Request(format!(
            "a baseline is of one machine: {} had {guest}, and {} {own}",
            first.id, other.id
        ))),
    }
}

/// The seeds of some runs, each once, in order.
pub fn seeds(runs: &[Run]) -> Vec<u64> {
    let seeds: BTreeSet<u64> = runs.iter().map(|run| run.seed).collect();
    seeds.into_iter().collect()
}

/// The plan of a run with another seed, to be measured on the same machine.
///
/// # Errors
/// If the plan cannot be read.
pub fn plan_with(run: &Run, seed: u64) -> Result<Plan, Error> {
    let plan: Result<Plan, _> = toml::from_str(&run.plan);
    let plan = plan.map_err(|error| {
        Error::Request(format!(
            "{}: its plan cannot be read: {}",
            run.id,
            error.message()
        ))
    })?;
    Ok(Plan { seed, ..plan })
}

/// Looks at a growing number of runs as long as there is time. The first look is at half of the
/// level, each further one at half of the one before, and at twice as many seeds. All looks
/// together are wrong no more often than the level says, whatever is measured.
#[derive(Clone, Debug)]
pub struct Looks {
    begun: Instant,
    budget: Option<Duration>,
    made: i32,
    seeds: Vec<u64>,
}

impl Looks {
    /// Begins with these seeds; without a budget there is one look, at the whole level.
    pub fn new(budget: Option<Duration>, seeds: &[u64]) -> Self {
        Self {
            begun: Instant::now(),
            budget,
            made: 0,
            seeds: seeds.to_vec(),
        }
    }

    /// The share of the level for the next look, which counts as made.
    pub fn share(&mut self) -> f64 {
        self.made += 1;
        if self.budget.is_some() {
            0.5_f64.powi(self.made)
        } else {
            1.0
        }
    }

    /// Returns true if the time is over.
    pub fn is_over(&self) -> bool {
        self.budget
            .is_none_or(|budget| self.begun.elapsed() >= budget)
    }

    /// The seeds to measure for the next look: as many as so far, following the largest of them;
    /// none if there are no such seeds.
    pub fn further(&mut self) -> Vec<u64> {
        let last = self.seeds.iter().max().copied().unwrap_or(0);
        let more = (last.saturating_add(1)..=SEED_MAX).take(self.seeds.len());
        let more: Vec<u64> = more.collect();
        self.seeds.extend(&more);
        more
    }
}

/// Checks that all runs have finished, as the runs of a baseline must.
///
/// # Errors
/// For the first run that did not finish, with its state.
pub fn finished(runs: &[Run]) -> Result<(), Error> {
    match runs.iter().find(|run| run.state != State::Finished) {
        None => Ok(()),
        Some(run) => Err(Error::Request(format!(
            "expected finished runs: {} is {}",
            run.id, run.state
        ))),
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::{MachineRecord, Nanos, Recorder, RecordingKey};

    use super::*;

    fn run(name: &str, seed: u64, value: i64) -> Run {
        let mut recorder = Recorder::new(9);
        recorder.record(Nanos::ZERO, Nanos(value));
        let mut run = Run {
            recordings: vec![recorder.finish(RecordingKey::new("timer", "idle", "cpu0"))],
            ..serde_json::from_value(serde_json::json!({
                "id": format!("{name}-{seed}"), "suite": "demo", "seed": seed,
                "plan": "seed = 1\n[[step]]\nprobe = \"timer\"\n",
                "subject": { "name": name, "kernel": "k", "boot": "", "bench": "virtual" },
                "state": "finished", "started": "", "punctual": "0.1.0",
                "machine": MachineRecord::Virtual(VirtualMachine::default()),
                "shards": 1, "steps": [], "recordings": [], "unsupported": [], "console": "",
            }))
            .unwrap()
        };
        if let MachineRecord::Virtual(machine) = &mut run.machine {
            (machine.cpus, machine.ns_per_insn) = (1, 1);
        }
        run
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_subject_is_compared_with_the_one_that_it_is_or_that_its_name_is_made_of() {
        let there = ["rt", "none", "rt threadirqs"].map(|name| run(name, 1, 5));
        let of = |subject: &str| {
            let found = sides(&names(&[subject]), &there, &[], "stable");
            found.map(|sides| sides[0].there[0].id.clone())
        };
        assert_eq!(of("none").unwrap(), "none-1");
        assert_eq!(of("rt nohz=off").unwrap(), "rt-1");
        assert_eq!(of("rt threadirqs").unwrap(), "rt threadirqs-1");
        assert_eq!(of("rt threadirqs nohz=off").unwrap(), "rt threadirqs-1");
        let wrong = of("rtx").unwrap_err().to_string();
        assert!(
            wrong.contains("expected rtx among the subjects of baseline stable"),
            "{wrong}"
        );
        // Of one subject, that.
        assert_eq!(
            sides(&names(&["mine"]), &there[..1], &[], "b").unwrap()[0]
                .there
                .len(),
            1
        );
    }

    #[test]
    fn seeds_are_implied_where_machine_and_digest_are_the_same_and_something_was_measured() {
        let there = [1, 2, 3].map(|seed| run("rt", seed, 5));
        let implied =
            |here: &[Run]| sides(&names(&["rt"]), &there, here, "b").unwrap()[0].implied();
        assert_eq!(implied(&[run("rt", 1, 5)]), [2, 3]);
        assert_eq!(implied(&[run("rt", 1, 6)]), [0; 0]);
        assert_eq!(implied(&[]), [0; 0]);
        let mut other = run("rt", 1, 5);
        if let MachineRecord::Virtual(machine) = &mut other.machine {
            machine.image_sha256 = "another".into();
        }
        assert_eq!(implied(&[other]), [0; 0]);
    }

    #[test]
    fn a_baseline_has_one_guest_in_whatever_order_its_runs_are() {
        let mut runs = [1, 2, 3].map(|seed| run("rt", seed, 5));
        let changes: [fn(&mut VirtualMachine); 4] = [
            |machine| machine.memory_mib = 512,
            |machine| machine.cpus = 2,
            |machine| machine.turn_us = Some(20),
            |machine| machine.ns_per_insn = 8,
        ];
        let own = guest(&runs).unwrap().unwrap();
        assert_eq!((own.cpus, own.ns_per_insn), (1, 1));
        for change in changes {
            let mut others = runs.clone();
            if let MachineRecord::Virtual(machine) = &mut others[2].machine {
                change(machine);
            }
            let told = guest(&others).unwrap_err().to_string();
            assert!(told.contains("rt-1 had 1 CPU, 0 MiB, 1 ns per"), "{told}");
            others.reverse();
            let told = guest(&others).unwrap_err().to_string();
            assert!(told.contains("and rt-2 1 CPU, 0 MiB, 1 ns per"), "{told}");
        }
        for run in &mut runs {
            run.machine = MachineRecord::Host(punctual_model::machine::HostMachine::default());
        }
        assert_eq!(guest(&runs).unwrap(), None);
    }

    #[test]
    fn looks_double_the_seeds_and_halve_the_level_and_end_with_the_budget() {
        let mut looks = Looks::new(Some(Duration::from_secs(3_600)), &[1, 2, 7]);
        assert!((looks.share() - 0.5).abs() < 1e-12 && !looks.is_over());
        assert_eq!(looks.further(), [8, 9, 10]);
        assert!((looks.share() - 0.25).abs() < 1e-12);
        assert_eq!(looks.further().len(), 6);
        assert!(Looks::new(Some(Duration::ZERO), &[1]).is_over());
        let mut once = Looks::new(None, &[1]);
        assert!((once.share() - 1.0).abs() < 1e-12 && once.is_over());
        assert_eq!(Looks::new(None, &[SEED_MAX]).further(), [0; 0]);
    }
}

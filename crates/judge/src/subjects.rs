// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the runs of one subject, and those of them that are independent.
//!
//! Two runs are the same if machine, plan, past, seed and digest are the same. The same run counts
//! once, however often it is present, and under whatever name. Another machine is another subject.
//! Another plan is a gap. Nothing depends on the order in which runs are named.

use std::collections::{BTreeMap, BTreeSet};

use punctual_model::digest::content;
use punctual_model::imported::{self, Kin, has_equal_counts, kin, says_more};
use punctual_model::recording::Work;
use punctual_model::{MachineRecord, Plan, Preemption, Run};

use crate::mends::{Mend, without};

/// One subject's runs.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The name under which it was measured.
    pub called: String,
    /// Its name, followed by what tells it from another of the same name.
    pub name: String,
    /// Its runs, by seed, each independent of the others.
    pub runs: Vec<Measured<'a>>,
    /// Copies of its runs. They add nothing, but anything missing in a copy counts as missing.
    copies: Vec<Measured<'a>>,
    /// The reason why they are not runs of one measurement.
    pub gap: Option<String>,
    /// Remarks on how the runs were counted.
    pub remarks: Vec<String>,
}

/// A run and its plan.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    /// The run.
    pub run: &'a Run,
    /// The run's plan; an error if it cannot be read.
    pub plan: Result<Plan, String>,
    /// The run's digest, if it has one.
    digest: Option<String>,
}

/// The independent runs among those that are taken for runs of one subject.
#[derive(Clone, Debug)]
pub struct Independent<'a> {
    /// Runs that are independent of each other, by seed.
    pub runs: Vec<&'a Run>,
    /// The reason why they are not runs of one subject and one measurement.
    pub gap: Option<String>,
    /// Remarks on how the runs were counted.
    pub remarks: Vec<String>,
}

/// Selects the independent runs among those that are taken for runs of one subject. A copy counts
/// once; two machines, two plans, and two outcomes of one seed are a gap.
pub fn independent<'a>(runs: &[&'a Run]) -> Independent<'a> {
    let all = subjects_of(runs);
    let mut gap = all.iter().find_map(|one| one.gap.clone());
    if let [first, other, ..] = all.as_slice() {
        let (first, other) = (&first.name, &other.name);
        gap = Some(format!("they are of two machines: {first} and {other}"));
    }
    let remarks = all.iter().flat_map(|one| one.remarks.clone());
    let remarks = remarks.collect();
    let runs = all.iter().flat_map(|one| &one.runs).map(|one| one.run);
    let mut runs: Vec<&Run> = runs.collect();
    runs.sort_by_cached_key(|run| (run.seed, number(&run.id), run.id.clone()));
    Independent { runs, gap, remarks }
}

/// The subjects of some runs, in order of first appearance.
pub fn subjects(runs: &[Run]) -> Vec<Subject<'_>> {
    subjects_of(&runs.iter().collect::<Vec<_>>())
}

fn subjects_of<'a>(runs: &[&'a Run]) -> Vec<Subject<'a>> {
    let mut groups: Vec<(Identity, Vec<&'a Run>)> = Vec::new();
    let (known, unknown): (Vec<&Run>, Vec<&Run>) = runs.iter().partition(|run| is_known(run));
    for run in known {
        let identity = Identity::of(run);
        let is_it = |own: &Identity| {
            let is_called = without(Mend::Machine) && own.called == identity.called;
            is_called || *own == identity
        };
        match groups.iter_mut().find(|(own, _)| is_it(own)) {
            Some((_, own)) => own.push(run),
            None => groups.push((identity, vec![run])),
        }
    }
    // A run that came to nothing before its machine was known may be of each that is alike.
    let told = groups.len();
    for run in unknown {
        let identity = Identity::of(run);
        let mut is_any = false;
        for (own, all) in &mut groups[..told] {
            if own.may_be(&identity) {
                all.push(run);
                is_any = true;
            }
        }
        if !is_any {
            match groups
                .iter_mut()
                .skip(told)
                .find(|(own, _)| *own == identity)
            {
                Some((_, all)) => all.push(run),
                None => groups.push((identity, vec![run])),
            }
        }
    }
    let names = names(&groups);
    let subjects = groups.into_iter().zip(names);
    subjects
        .map(|((identity, runs), name)| Subject::of(identity.called, name, runs))
        .collect()
}

/// Names runs that are called the same but were made on two machines, and what tells these apart:
/// `r1 and r6 are both called rt, and are of two machines: …`. `None` if each name is of one
/// machine.
pub fn two_machines(runs: &[Run]) -> Option<String> {
    let mut firsts: BTreeMap<String, (&Run, Identity)> = BTreeMap::new();
    let mut known: Vec<&Run> = runs.iter().filter(|run| is_known(run)).collect();
    // Whatever the order in which they are named.
    known.sort_by_key(|run| (number(&run.id), &run.id));
    for run in known {
        let own = Identity::of(run);
        let Some((first, of_first)) = firsts.get(&own.called) else {
            firsts.insert(own.called.clone(), (run, own));
            continue;
        };
        let value = |of: &Identity, part: &str| {
            let mut parts = of.parts();
            let found = parts.find(|(name, _)| *name == part);
            found.map_or_else(|| "none".to_owned(), |(_, value)| short(part, value))
        };
        let names = of_first.parts().chain(own.parts()).map(|(name, _)| name);
        let differs = |part: &&str| value(of_first, part) != value(&own, part);
        if let Some(part) = names.into_iter().find(differs) {
            let (one, other) = (value(of_first, part), value(&own, part));
            let (first, id, called) = (&first.id, &run.id, &own.called);
            return Some(format!(
                "{first} and {id} are both called {called}, and are of two machines: {part} is \
                 {one} there and {other} here"
            ));
        }
    }
    None
}

/// Returns true if the machine of the run is known.
fn is_known(run: &Run) -> bool {
    run.is_virtual() || run.provenance.is_some()
}

/// The properties, as name and value, that make two runs runs of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    called: String,
    /// Properties known before the measurement.
    asked: Vec<(&'static str, String)>,
    /// Properties that only the machine itself can tell.
    read_back: Vec<(&'static str, String)>,
}

impl Identity {
    fn of(run: &Run) -> Self {
        let subject = &run.subject;
        let clock = run.clock();
        let mut asked = vec![
            ("kernel", subject.kernel.clone()),
            ("boot", subject.boot.clone()),
            ("bench", subject.bench.clone()),
            (
                "time",
                clock.map_or_else(|| "real time".to_owned(), |clock| clock.to_string()),
            ),
        ];
        let mut read_back = Vec::new();
        match &run.machine {
            MachineRecord::Virtual(machine) => {
                let descriptive = ["kernel origin"];
                let facts = run.machine.facts().into_iter();
                asked.extend(facts.filter(|(name, _)| !descriptive.contains(name)));
                asked.push(("command line", machine.cmdline.clone()));
            }
            // Another build of the target is the same machine.
            MachineRecord::Host(machine) => {
                let unknown = || "unknown".to_owned();
                let cpus = machine.cpus.map_or_else(unknown, |cpus| cpus.to_string());
                asked.extend([
                    ("host", machine.host.clone()),
                    ("CPUs", cpus),
                    ("reached by ssh", machine.ssh.clone().unwrap_or_default()),
                ]);
                if let Some(found) = &run.provenance {
                    read_back.extend([
                        ("release", found.release.clone()),
                        ("version", found.version.clone()),
                        ("command line", found.cmdline.clone()),
                        ("preemption", preemption(&found.preemption)),
                    ]);
                }
            }
        }
        Self {
            called: subject.name.clone(),
            asked,
            read_back,
        }
    }

    fn may_be(&self, unknown: &Self) -> bool {
        (&self.called, &self.asked) == (&unknown.called, &unknown.asked)
    }

    fn parts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = self.asked.iter().chain(&self.read_back);
        all.map(|(name, value)| (*name, value.as_str()))
    }
}

/// The preemption model. The reason why it is unknown depends on the user who asks, and is no
/// property of the machine.
fn preemption(found: &Preemption) -> String {
    match found {
        Preemption::Unknown(_) => "unknown".to_owned(),
        known => known.to_string(),
    }
}

/// The properties that always distinguish a subject from another of the same name.
const TOLD: [&str; 4] = ["kernel", "boot", "bench", "time"];

/// Names of the groups, made distinct if several are called the same.
fn names(groups: &[(Identity, Vec<&Run>)]) -> Vec<String> {
    let name = |(own, _): &(Identity, Vec<&Run>)| {
        let alike: Vec<&Identity> = groups
            .iter()
            .map(|(other, _)| other)
            .filter(|other| other.called == own.called)
            .collect();
        if alike.len() < 2 {
            return own.called.clone();
        }
        let differs = |part: &str, value: &str| {
            let is_other = |other: &&Identity| {
                other
                    .parts()
                    .find(|(name, _)| *name == part)
                    .map(|one| one.1)
                    != Some(value)
            };
            alike.iter().any(is_other)
        };
        let told = own.parts().filter_map(|(part, value)| {
            if TOLD.contains(&part) {
                return (!value.is_empty()).then(|| value.to_owned());
            }
            differs(part, value).then(|| format!("{part} {}", short(part, value)))
        });
        format!("{} ({})", own.called, told.collect::<Vec<_>>().join(", "))
    };
    groups.iter().map(name).collect()
}

/// Shortens a checksum to its first digits, which tell it from another.
fn short(part: &str, value: &str) -> String {
    if part.ends_with("sha256") {
        return value.chars().take(12).collect();
    }
    value.to_owned()
}

impl<'a> Subject<'a> {
    /// Returns true if it has this name, by itself or with what tells it from others.
    pub fn is_called(&self, name: &str) -> bool {
        self.called == name || self.name == name
    }

    fn of(called: String, name: String, mut runs: Vec<&'a Run>) -> Self {
        runs.sort_by_cached_key(|run| (run.seed, number(&run.id), run.id.clone()));
        let mut new = Self {
            called,
            name,
            runs: Vec::new(),
            copies: Vec::new(),
            gap: None,
            remarks: Vec::new(),
        };
        let mut counted: BTreeMap<Counted, &Run> = BTreeMap::new();
        for run in runs {
            let plan = run.parsed_plan();
            let past = plan.as_ref().map_or(None, |plan| plan.past);
            let digest = run.digest();
            let own = Counted::of(run, past, digest.as_ref());
            if let Some(first) = own.as_ref().and_then(|own| counted.get(own)) {
                new.remark_copy(first, run);
                if says_otherwise(first, run) {
                    let (first, id) = (&first.id, &run.id);
                    new.gap = Some(format!(
                        "{first} and {id} are the same run, and say different things of its loads \
                         or of how long it was observed: one of them is not what it says, and \
                         punctual verify tells which"
                    ));
                }
                new.copies.push(Measured { run, plan, digest });
                continue;
            }
            if new.is_same_import(run) {
                let known = new
                    .runs
                    .iter_mut()
                    .find(|one| kin(one.run, run) != Kin::None);
                let own = Measured { run, plan, digest };
                if let Some(known) = known {
                    new.copies.push(if says_more(run, known.run) {
                        std::mem::replace(known, own)
                    } else {
                        own
                    });
                }
                continue;
            }
            if let Some(own) = own {
                counted.insert(own, run);
            }
            new.runs.push(Measured { run, plan, digest });
        }
        let gap = new.gap.take();
        new.gap = gap
            .or_else(|| new.other_plan())
            .or_else(|| new.other_digest())
            .or_else(|| new.equal_past());
        new.remark_equal_seeds();
        new.remark_one_past();
        new
    }

    /// Its runs, and the copies of them.
    pub fn all(&self) -> impl Iterator<Item = &Measured<'a>> {
        self.runs.iter().chain(&self.copies)
    }

    /// Returns true if another program's run is already there, in another form or from another
    /// moment.
    fn is_same_import(&mut self, run: &Run) -> bool {
        if without(Mend::Forms) || without(Mend::Copies) {
            return false;
        }
        let all = self.runs.iter().map(|one| (one.run, kin(one.run, run)));
        let all: Vec<_> = all.filter(|(_, kin)| *kin != Kin::None).collect();
        let id = &run.id;
        for (known, kin) in &all {
            let first = &known.id;
            match kin {
                Kin::OtherUnit => {
                    self.gap = Some(format!(
                        "{first} and {id} have the same figures in two units: one of them was \
                         imported with -N, or without it, by mistake"
                    ));
                }
                _ if has_equal_counts(known, run) => self.remarks.push(format!(
                    "{first} and {id} have the same count in each bin, which does not happen by \
                     chance: they count once"
                )),
                _ => self.remarks.push(format!(
                    "{first} and {id} may be one measurement, in another form or at another \
                     moment: they count once"
                )),
            }
        }
        !all.is_empty()
    }

    fn remark_copy(&mut self, first: &Run, copy: &Run) {
        let (first_id, id) = (&first.id, &copy.id);
        if first_id == id {
            return;
        }
        self.remarks.push(if first.is_imported() {
            format!("{id} is of the same file as {first_id}, or a copy of it: it counts once")
        } else {
            format!("{id} is the same run as {first_id}: it counts once")
        });
    }

    /// Reports that the runs were not asked to measure the same.
    fn other_plan(&self) -> Option<String> {
        if without(Mend::Plan) {
            return None;
        }
        let mut plans = self.all();
        let mut plans = plans
            .by_ref()
            .filter_map(|one| Some((one.run, one.plan.as_ref().ok()?)));
        let (first, plan) = plans.next()?;
        plans.find_map(|(other, own)| {
            let what = plan.difference(own).or_else(|| {
                let asked = imported::difference(first, other);
                asked.filter(|_| !without(Mend::Otherwise))
            })?;
            let (first, other) = (&first.id, &other.id);
            Some(format!(
                "{first} and {other} are no runs of one measurement: {what}; judge them one by one"
            ))
        })
    }

    /// Reports that one of the runs is not what it claims: in virtual time one seed has one
    /// outcome.
    fn other_digest(&self) -> Option<String> {
        let mut outcomes: BTreeMap<(u64, Option<u64>), (&Run, &String)> = BTreeMap::new();
        for one in self.runs.iter().filter(|one| one.run.is_virtual()) {
            let (Ok(plan), Some(digest)) = (&one.plan, &one.digest) else {
                continue;
            };
            let (own, seed) = (one.run, one.run.seed);
            match outcomes.get(&(seed, plan.past)) {
                Some((first, other)) if *other != digest => {
                    let (first, id) = (&first.id, &own.id);
                    return Some(format!(
                        "{first} and {id} have one machine, plan and seed ({seed}), and two \
                         digests: one of them is not what it says, and punctual verify tells which"
                    ));
                }
                _ => outcomes.insert((seed, plan.past), (own, digest)),
            };
        }
        None
    }

    /// Remarks that all guests had the same past, so that the seeds vary less.
    fn remark_one_past(&mut self) {
        let past = |one: &Measured<'_>| one.plan.as_ref().ok()?.past;
        let mut all = self
            .runs
            .iter()
            .filter(|one| one.run.is_virtual())
            .map(past);
        let Some(first) = all.next().flatten() else {
            return;
        };
        let count = self.runs.len();
        if count > 1 && all.all(|other| other == Some(first)) {
            self.remarks.push(format!(
                "all {count} runs have one past (--past {first}): another past of the guest may \
                 give other figures"
            ));
        }
    }

    /// Reports that two runs have one seed and one past, which only one of them names. The plan
    /// that names it is longer, which disturbs the guest, and the two are not two draws.
    fn equal_past(&self) -> Option<String> {
        let mut seen: BTreeMap<(u64, u64), (Option<u64>, &Run)> = BTreeMap::new();
        let all = self.runs.iter().filter(|one| one.run.is_virtual());
        let mut all = all.filter_map(|one| Some((one.plan.as_ref().ok()?.past, one.run)));
        all.find_map(|(past, run)| {
            let own = (run.seed, past.unwrap_or(run.seed));
            let (named, first) = *seen.entry(own).or_insert((past, run));
            (named != past).then(|| {
                let (first, id) = (&first.id, &run.id);
                format!("{first} and {id} have one seed and one past: judge them one by one")
            })
        })
    }

    /// Remarks on equal samples with different seeds, which are seldom genuine; likewise on equal
    /// figures in different files.
    fn remark_equal_seeds(&mut self) {
        let mut seen: BTreeMap<&String, &Run> = BTreeMap::new();
        let mut pairs = BTreeSet::new();
        for one in self.runs.iter().filter(|one| has_samples(one.run)) {
            let Some(digest) = one
                .digest
                .as_ref()
                .filter(|_| one.run.is_virtual() || one.run.is_imported())
            else {
                continue;
            };
            match seen.get(digest) {
                Some(first) => {
                    let is_imported = one.run.is_imported();
                    pairs.insert((first.id.clone(), one.run.id.clone(), is_imported));
                }
                None => {
                    seen.insert(digest, one.run);
                }
            }
        }
        let told = |(first, other, is_imported): (String, String, bool)| {
            if is_imported {
                return format!(
                    "{first} and {other} have the same figures, and their files say otherwise \
                     different things: they count as two"
                );
            }
            format!(
                "{first} and {other} have other seeds and the same samples: punctual verify tells \
                 whether that is so"
            )
        };
        self.remarks.extend(pairs.into_iter().map(told));
    }
}

/// The properties that make two finished runs of one subject the same run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    /// In virtual time: the seed, the past and the digest.
    Virtual(u64, u64, String),
    /// In real time: the digest, since no two runs have the same samples.
    Real(String),
    /// Files of another program may have the same figures: their other content tells them apart.
    Imported(String),
    /// A run without any event has nothing but the time in which it waited for one.
    Quiet(String, String, Option<String>),
}

impl Counted {
    /// `None` if there is no digest: such a run is no answer, and is not counted.
    fn of(run: &Run, past: Option<u64>, digest: Option<&String>) -> Option<Self> {
        let digest = digest?;
        if without(Mend::Copies) && !run.is_virtual() {
            return None;
        }
        let digest = digest.chars().filter(|_| !without(Mend::Digest)).collect();
        Some(if run.is_imported() {
            Self::Imported(content(run))
        } else if run.is_virtual() {
            // A past that is not named is the seed's own.
            Self::Virtual(run.seed, past.unwrap_or(run.seed), digest)
        } else if has_samples(run) {
            Self::Real(digest)
        } else {
            Self::Quiet(digest, run.started.clone(), run.finished.clone())
        })
    }
}

/// Returns true if two copies of a run differ in what a verdict reads and no digest covers.
fn says_otherwise(one: &Run, other: &Run) -> bool {
    let work = |run: &Run| -> Vec<(u32, Vec<Work>)> {
        let of_step = run.steps.iter().map(|step| (step.step, step.work.clone()));
        of_step.collect()
    };
    let findings = |run: &Run| -> Vec<_> {
        let all = run.recordings.iter();
        all.map(|one| (one.interval, one.findings.clone()))
            .collect()
    };
    !one.is_imported() && (work(one) != work(other) || findings(one) != findings(other))
}

fn has_samples(run: &Run) -> bool {
    run.recordings.iter().any(|one| one.count > 0)
}

/// The number in an id, by which `r12` comes after `r9`.
fn number(id: &str) -> u64 {
    let digits = id.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.parse().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use punctual_model::machine::{HostMachine, VirtualMachine};
    use punctual_model::record::Provenance;
    use punctual_model::run::State;

    use super::*;
    use crate::synthetic;

    fn on(seed: u64, change: impl Fn(&mut VirtualMachine)) -> Run {
        let mut run = synthetic::run("rt", seed, &[5, 6, seed as i64]);
        if let MachineRecord::Virtual(machine) = &mut run.machine {
            change(machine);
        }
        run
    }

    fn found(runs: &[Run]) -> Vec<(String, usize)> {
        let subjects = subjects(runs).into_iter();
        let mut found: Vec<_> = subjects.map(|one| (one.name, one.runs.len())).collect();
        found.sort();
        found
    }

    type Change = (fn(&mut VirtualMachine), &'static str);

    #[test]
    fn seeds_are_of_one_subject_and_other_machines_are_not() {
        let with = |seed, cpus| on(seed, |machine| machine.cpus = cpus);
        let runs = [with(1, 1), with(2, 1), with(1, 2), with(1, 1)];
        let name = |more, cpus| format!("rt (virtual, 1 ns per instruction{more}, cpus {cpus})");
        assert_eq!(
            found(&runs),
            [(name(" of any of 2 CPUs", 2), 1), (name("", 1), 2)]
        );
        let changes: [Change; 6] = [
            (
                |one| one.image_sha256 = "b".repeat(64),
                "kernel image sha256 bbbbbbbbbbbb",
            ),
            (
                |one| one.initramfs_sha256 = "c".repeat(64),
                "initramfs sha256 cccccccccccc",
            ),
            (|one| one.memory_mib = 512, "memory 512 MiB"),
            (
                |one| one.cmdline = "threadirqs".into(),
                "command line threadirqs",
            ),
            (|one| one.qemu = "QEMU 9".into(), "qemu QEMU 9"),
            (
                |one| one.qemu_command = "-smp 1".into(),
                "qemu command line -smp 1",
            ),
        ];
        for (change, told) in changes {
            let runs = [on(1, |_| {}), on(1, change)];
            let found = found(&runs);
            assert_eq!(found.len(), 2, "{told}");
            let is_told = |(name, _): &(String, usize)| name.contains(told);
            assert!(found.iter().any(is_told), "{found:?}");
        }
        // Where a kernel came from is no property of it.
        let origin = [on(1, |_| {}), on(2, |one| one.origin = "a file".into())];
        assert_eq!(found(&origin), [("rt".to_owned(), 2)]);
    }

    /// A run in real time on a machine of which nothing is known before the measurement.
    fn real(host: &str, version: Option<&str>, values: &[i64]) -> Run {
        let mut run = synthetic::run("host", 0, values);
        run.machine = MachineRecord::Host(HostMachine {
            host: host.into(),
            ..HostMachine::default()
        });
        run.provenance = version.map(|version| Provenance {
            version: version.into(),
            ..Provenance::default()
        });
        run
    }

    #[test]
    fn a_machine_in_real_time_is_its_name_its_kernel_and_its_command_line() {
        let one = real("a", Some("#1"), &[5]);
        assert_eq!(found(&[one.clone(), real("b", Some("#1"), &[6])]).len(), 2);
        assert_eq!(found(&[one.clone(), real("a", Some("#2"), &[6])]).len(), 2);
        assert_eq!(
            found(&[one.clone(), real("a", Some("#1"), &[6])]),
            [("host".into(), 2)]
        );
        // One that failed before it was known may be of either.
        let mut failed = real("a", None, &[]);
        failed.state = State::Failed;
        let all = [failed.clone(), one.clone(), real("a", Some("#2"), &[6])];
        let counts: Vec<usize> = found(&all).into_iter().map(|(_, runs)| runs).collect();
        assert_eq!(counts, [2, 2]);
        assert_eq!(found(&[failed]), [("host".into(), 1)]);
    }

    #[test]
    fn two_machines_of_one_name_are_told_in_any_order() {
        let other = |seed| on(seed, |machine| machine.memory_mib = 512);
        let mut runs = vec![on(1, |_| {}), on(2, |_| {}), other(3)];
        let told = two_machines(&runs).unwrap();
        let expected = "rt-1 and rt-3 are both called rt, and are of two machines: memory is ";
        assert!(told.starts_with(expected), "{told}");
        runs.rotate_right(1);
        assert_eq!(two_machines(&runs), Some(told));
        assert_eq!(two_machines(&runs[1..]), None);
        // Of another name it is another subject.
        runs[0].subject.name = "none".into();
        assert_eq!(two_machines(&runs), None);
        let real = [real("a", Some("#1"), &[5]), real("a", Some("#2"), &[6])];
        let told = two_machines(&real).unwrap();
        assert!(told.ends_with("version is #1 there and #2 here"), "{told}");
    }

    #[test]
    fn a_run_counts_once_under_whatever_name() {
        let mut copy = on(1, |_| {});
        copy.id = "copy".into();
        let runs = [on(1, |_| {}), copy.clone(), on(2, |_| {})];
        let all = subjects(&runs);
        assert_eq!((all[0].runs.len(), all[0].gap.as_deref()), (2, None));
        assert_eq!(
            all[0].remarks,
            ["copy is the same run as rt-1: it counts once"]
        );
        let (one, mut again) = (real("a", Some(""), &[5]), real("a", Some(""), &[5]));
        (again.seed, again.started) = (7, "later".into());
        assert_eq!(found(&[one.clone(), again]), [("host".into(), 1)]);
        assert_eq!(
            found(&[one, real("a", Some(""), &[6])]),
            [("host".into(), 2)]
        );
    }

    #[test]
    fn another_plan_and_another_digest_of_one_seed_are_gaps() {
        let mut other = on(2, |_| {});
        other.plan = other.plan.replace("samples = 1", "samples = 9");
        let runs = [on(1, |_| {}), other];
        let gap = subjects(&runs).remove(0).gap.unwrap();
        assert_eq!(
            gap,
            "rt-1 and rt-2 are no runs of one measurement: step 1 differs: samples is 1 \
             here and 9 there; judge them one by one"
        );
        let mut forged = on(1, |_| {});
        forged.id = "rt-9".into();
        forged.recordings = vec![synthetic::recording(&[4], 9)];
        let runs = [forged, on(1, |_| {})];
        let gap = subjects(&runs).remove(0).gap.unwrap();
        assert!(gap.starts_with("rt-1 and rt-9 have one machine"), "{gap}");
        // A past that is named, and is the seed's own, makes no other run.
        let mut own_past = runs[1].clone();
        own_past.id = "rt-8".into();
        own_past.plan = format!("past = 1\n{}", own_past.plan);
        let copy = [own_past.clone(), runs[1].clone()];
        let counted = subjects(&copy).remove(0);
        assert_eq!((counted.runs.len(), counted.gap), (1, None));
        assert_eq!(
            counted.remarks,
            ["rt-8 is the same run as rt-1: it counts once"]
        );
        // Nor is what it has of its own forgotten.
        own_past.recordings = vec![synthetic::recording(&[5], 9)];
        let both = [own_past, runs[1].clone()];
        let counted = subjects(&both).remove(0);
        assert_eq!(counted.runs.len(), 2);
        let gap = counted.gap.unwrap();
        assert!(gap.starts_with("rt-1 and rt-8 have one seed"), "{gap}");
        // Another past is another run.
        let mut aged = runs[0].clone();
        aged.plan = format!("past = 4\n{}", aged.plan);
        let runs = [aged, runs[1].clone()];
        let all = subjects(&runs);
        assert_eq!((all[0].runs.len(), all[0].gap.as_deref()), (2, None));
        // Seeds of one past draw less.
        let with_past = |seed: u64| {
            let mut run = on(seed, |_| {});
            run.plan = format!("past = 4\n{}", run.plan);
            run
        };
        let remarks = |runs: &[Run]| subjects(runs).remove(0).remarks;
        let all = remarks(&[with_past(1), with_past(2)]);
        assert!(all[0].starts_with("all 2 runs have one past (--past 4)"));
        assert!(remarks(&[with_past(1)]).is_empty());
        assert!(remarks(&[with_past(1), on(2, |_| {})]).is_empty());
        // Other seeds with the same samples are told.
        let mut other = on(1, |_| {});
        (other.seed, other.plan) = (2, other.plan.replace("seed = 1", "seed = 2"));
        let runs = [on(1, |_| {}), other];
        assert!(subjects(&runs)[0].remarks[0].contains("punctual verify"));
    }
}

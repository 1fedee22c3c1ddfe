// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats runs that were measured elsewhere: with the same kernel by its bytes, and the same guest
//! as far as it can be built here. Differences are reported.
//!
//! Such a run comes from a stranger. Its kernel must be one that this machine has or can fetch, its
//! guest must be no larger than this machine, and no path in it is written to.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use punctual_bench::system::SystemUnderTest;
use punctual_bench::virtual_bench::{CPUS_MAX, NS_PER_INSN_MAX, TURN, VirtualBench};
use punctual_kernels::{Catalog, Kernel};
use punctual_model::machine::VirtualMachine;
use punctual_model::suite::{SubjectSpec, Suite};
use punctual_model::{Nanos, Plan, Run};

use crate::systems::{Builder, Equipment};
use crate::{Error, memory, suites};

/// Opens a bench for this many CPUs.
pub type OpenBench<'a> = &'a dyn Fn(u32) -> Result<VirtualBench, Error>;

/// Makes machines on which runs of others are repeated, each once.
pub struct Repeats<'a> {
    /// The catalog from which kernels come.
    pub catalog: &'a Catalog,
    /// Punctual's cache directory.
    pub cache: &'a Path,
    /// The bench.
    pub bench: OpenBench<'a>,
    ready: HashMap<String, Result<Ready, String>>,
}

/// A machine on which a run is repeated.
pub struct Ready {
    /// The subject, with this machine's name for its kernel.
    pub subject: SubjectSpec,
    /// The system on which it runs.
    pub system: Box<dyn SystemUnderTest>,
    /// The differences from the original machine.
    pub changes: Vec<Change>,
    /// The reason why nothing here proves that the kernel is the one that the run names.
    pub misnamed: Option<String>,
}

/// A difference from the original machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The name of the part: `QEMU`, `kernel image`.
    pub what: String,
    /// Its value there.
    pub then: String,
    /// Its value here.
    pub now: String,
}

impl<'a> Repeats<'a> {
    /// Begins without any machine.
    pub fn new(catalog: &'a Catalog, cache: &'a Path, bench: OpenBench<'a>) -> Self {
        Self {
            catalog,
            cache,
            bench,
            ready: HashMap::new(),
        }
    }

    /// Makes the machine of a run ready, for the suite in the file if it has one, else for the
    /// suite of that name here. A failure is kept for [`machine`](Self::machine).
    pub fn prepare(&mut self, run: &Run, suite: Option<&Suite>, say: &mut dyn FnMut(&str)) {
        let key = key(run);
        if !self.ready.contains_key(&key) {
            let ready = self.build(run, suite, say);
            self.ready.insert(key, ready);
        }
    }

    /// The machine of a run that was made ready, or the reason why there is none.
    ///
    /// # Panics
    /// If the run was not made ready.
    pub fn machine(&self, run: &Run) -> Result<&Ready, &str> {
        let ready = self.ready.get(&key(run));
        let ready = ready.expect("it was made ready").as_ref();
        ready.map_err(String::as_str)
    }

    fn build(
        &self,
        run: &Run,
        suite: Option<&Suite>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Ready, String> {
        let Some(then) = run.machine.as_virtual() else {
            return Err("it was measured in real time: no other machine gives the same".into());
        };
        check_size(then)?;
        let plan: Result<Plan, _> = toml::from_str(&run.plan);
        let plan = plan.map_err(|error| format!("its plan cannot be read: {}", error.message()))?;
        let known = suites::find(&run.suite).ok();
        let suite = suite.or(known.as_ref()).ok_or_else(|| {
            let name = &run.suite;
            format!("its suite {name} is neither in the file nor here")
        })?;
        check_patterns(suite)?;
        let kernel = self.kernel(run, then, say)?;
        let mut built = || -> Result<_, Error> {
            let bench = (self.bench)(then.cpus)?;
            // What idle steps of the suite have got since then may bring programs, too.
            let mut suite = suite.clone();
            let known: Vec<String> = suite.steps.iter().map(|own| own.load.clone()).collect();
            let further = plan.steps.iter().filter(|own| !known.contains(&own.load));
            suite.steps.extend(further.cloned());
            let mut equipment = Equipment::of(&suite, &plan.loads, say)?;
            equipment.memory_mib = then.memory_mib;
            equipment.cpus = then.cpus;
            equipment.network = then.network;
            equipment.ns_per_insn = then.ns_per_insn;
            equipment.turn = then
                .turn_us
                .map_or(TURN, |turn| Nanos::from_micros(turn.into()));
            let subject = SubjectSpec {
                name: run.subject.name.clone(),
                kernel: kernel.id.clone(),
                boot: run.subject.boot.clone(),
            };
            let builder = Builder {
                bench: &bench,
                catalog: self.catalog,
                cache: self.cache,
                equipment: &equipment,
            };
            let systems = builder.build(std::slice::from_ref(&subject), say)?;
            let system = systems.into_iter().next().expect("one for each subject");
            Ok((subject, system.system))
        };
        let (subject, system) = built().map_err(|error| error.to_string())?;
        let changes = changes(then, system.machine().as_virtual());
        let lines = self.catalog.sources().iter();
        let lines: Vec<&str> = lines.map(|source| source.id.as_str()).collect();
        Ok(Ready {
            misnamed: misnamed(&run.subject.kernel, &kernel.id, &lines),
            subject,
            system,
            changes,
        })
    }

    /// The kernel with the very same bytes: by its own name, by any other, or from its package.
    fn kernel(
        &self,
        run: &Run,
        then: &VirtualMachine,
        say: &mut dyn FnMut(&str),
    ) -> Result<Kernel, String> {
        let is_it = |kernel: &Kernel| kernel.image_sha256 == then.image_sha256;
        let own = self.catalog.get(&run.subject.kernel).ok().filter(is_it);
        let cached = own.or_else(|| self.catalog.of_image(&then.image_sha256).ok().flatten());
        if let Some(kernel) = cached {
            return Ok(kernel);
        }
        let name = run.subject.kernel.split('@').next().unwrap_or_default();
        let version = then.origin.strip_prefix("debian package ");
        let version = version.and_then(|package| package.split(' ').nth(1));
        let mut why = format!(
            "kernel {} ({}, image {:.12}) is not here",
            run.subject.kernel, then.origin, then.image_sha256
        );
        if let Some(version) = version {
            match self.catalog.ensure(&format!("{name}@{version}"), say) {
                Ok(kernel) if is_it(&kernel) => return Ok(kernel),
                Ok(kernel) => {
                    let found = &kernel.image_sha256;
                    _ = write!(why, ", and {} has the image {found:.12}", kernel.id);
                }
                Err(error) => _ = write!(why, ", and cannot be fetched: {error}"),
            }
        } else {
            why.push_str(": `punctual kernel add` adds it, if you have that file");
        }
        Err(why)
    }
}

/// The key of a machine, including the files that loads need.
fn key(run: &Run) -> String {
    let plan: Option<Plan> = toml::from_str(&run.plan).ok();
    let loads = plan.map(|plan| plan.loads);
    format!("{:?}{:?}{}{loads:?}", run.machine, run.subject, run.suite)
}

/// Refuses a guest that is larger than this machine, or that no command line can ask for.
fn check_size(then: &VirtualMachine) -> Result<(), String> {
    let turns = then.turn_us.is_none_or(|turn| (1..=1_000).contains(&turn));
    let clock = then.ns_per_insn.is_power_of_two() && then.ns_per_insn <= NS_PER_INSN_MAX;
    let cpus = (1..=CPUS_MAX).contains(&then.cpus);
    if !cpus || !turns || !clock || then.memory_mib < 16 {
        return Err("its machine is none that this bench makes".into());
    }
    let here = memory::total_mib().unwrap_or(u64::MAX);
    let wanted = u64::from(then.memory_mib);
    if wanted > here {
        return Err(format!(
            "its guest has {wanted} MiB of memory, and this machine {here}"
        ));
    }
    Ok(())
}

/// Refuses a stranger's pattern that stands for whole directory trees.
fn check_patterns(suite: &Suite) -> Result<(), String> {
    if let Some(root) = &suite.root {
        return Err(format!(
            "its suite asks for a whole userland of this machine: {root}"
        ));
    }
    let mut patterns = suite.files.iter().chain(&suite.programs);
    match patterns.find(|pattern| pattern.contains("**")) {
        Some(pattern) => Err(format!(
            "its suite asks for whole trees of files: {pattern}"
        )),
        None => Ok(()),
    }
}

/// The reason to doubt the name of a run's kernel. A name of one of these lines of kernels claims
/// that line, which nothing here may confirm. Any other name is somebody's own name for a kernel.
fn misnamed(there: &str, here: &str, lines: &[&str]) -> Option<String> {
    let [line, own] = [there, here].map(|id| id.split('@').next().unwrap_or_default());
    (line != own && lines.contains(&line)).then(|| {
        format!(
            "the digest is equal, and the file calls the kernel {there}: here these bytes are \
             {here}, and nothing here says that they are of {line}: `punctual kernel fetch \
             {there}` may tell"
        )
    })
}

/// The differences in the facts that decide what a guest does.
fn changes(then: &VirtualMachine, now: Option<&VirtualMachine>) -> Vec<Change> {
    let facts = |machine: &VirtualMachine| {
        [
            ("QEMU", machine.qemu.clone()),
            ("kernel image", machine.image_sha256.clone()),
            (
                "initramfs (target, busybox, modules, programs)",
                machine.initramfs_sha256.clone(),
            ),
            ("kernel command line", machine.cmdline.clone()),
            ("QEMU command line", machine.qemu_command.clone()),
        ]
    };
    let now = now.map(facts).unwrap_or_default();
    let pairs = facts(then).into_iter().zip(now);
    let changed = pairs.filter(|((_, then), (_, now))| then != now);
    let change = |((what, then), (_, now)): ((&str, String), (&str, String))| Change {
        what: what.to_owned(),
        then,
        now,
    };
    changed.map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> VirtualMachine {
        VirtualMachine {
            memory_mib: 512,
            cpus: 1,
            ns_per_insn: 1,
            qemu: "QEMU 7.2".into(),
            ..VirtualMachine::default()
        }
    }

    #[test]
    fn a_machine_that_nobody_can_ask_for_is_not_made() {
        check_size(&machine()).unwrap();
        let wrong = |change: fn(&mut VirtualMachine)| {
            let mut machine = machine();
            change(&mut machine);
            check_size(&machine).unwrap_err()
        };
        assert!(wrong(|one| one.memory_mib = u32::MAX).contains("4294967295 MiB"));
        for text in [
            wrong(|one| one.cpus = 0),
            wrong(|one| one.cpus = 9),
            wrong(|one| one.ns_per_insn = 3),
            wrong(|one| one.memory_mib = 15),
            wrong(|one| one.turn_us = Some(0)),
        ] {
            assert!(text.contains("none that this bench makes"), "{text}");
        }
    }

    #[test]
    fn the_name_of_a_known_line_is_for_kernels_of_that_line() {
        let lines = ["debian-6.12", "debian-6.12-rt"];
        let wrong = |there, here| misnamed(there, here, &lines).is_some();
        assert!(wrong("debian-6.12-rt", "debian-6.12"));
        assert!(wrong("debian-6.12-rt@6.12.90-1", "mine"));
        assert!(!wrong("debian-6.12-rt", "debian-6.12-rt@6.12.117-1"));
        assert!(!wrong("theirs", "mine") && !wrong("theirs", "debian-6.12"));
    }

    #[test]
    fn what_is_not_as_it_was_is_named() {
        let (then, mut now) = (machine(), machine());
        assert_eq!(changes(&then, Some(&now)), []);
        now.qemu = "QEMU 10.0".into();
        now.initramfs_sha256 = "1".into();
        let found = changes(&then, Some(&now));
        let what: Vec<&str> = found.iter().map(|change| change.what.as_str()).collect();
        assert_eq!(
            what,
            ["QEMU", "initramfs (target, busybox, modules, programs)"]
        );
        assert_eq!((&*found[0].then, &*found[0].now), ("QEMU 7.2", "QEMU 10.0"));
    }

    #[test]
    fn whole_trees_of_files_are_not_followed() {
        let mut suite = suites::find("demo").unwrap();
        check_patterns(&suite).unwrap();
        suite.root = Some("/".into());
        assert!(check_patterns(&suite).is_err());
        suite.root = None;
        suite.files.push("/home/**/*.pem".into());
        assert!(check_patterns(&suite).unwrap_err().contains("/home/**"));
    }

    #[test]
    fn every_suite_that_comes_along_can_be_written_and_read_again() {
        for (name, mut suite) in suites::all().unwrap() {
            let text = toml::to_string(&suite).unwrap();
            suite.limits.clear();
            assert_eq!(Suite::parse(&text).unwrap(), suite, "{name}");
        }
    }
}

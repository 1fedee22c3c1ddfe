// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that `run` and `judge` share: the place of the measurement, and the number of runs.

mod bench;
mod checks;
mod labgrid_args;
pub mod number_args;
mod peer;
mod plans;
mod prepared;
mod until_decided;
pub mod what;

use std::io::{self, IsTerminal as _};
use std::num::{NonZeroU32, NonZeroUsize};
use std::str::FromStr;
use std::thread;

use anyhow::{Context as _, Result};
use clap::{Args, value_parser};
use punctual_bench::ssh::Peer;
use punctual_kernels::Kernel;
use punctual_model::capture::Tracing;
use punctual_model::suite::{SubjectSpec, Suite};
use punctual_model::{Plan, Run};
use punctual_runner::gate::Guest;
use punctual_runner::systems::not_offered;
use punctual_runner::{Choice, choose};

use super::StoreArgs;
use crate::UsageError;
use crate::scale_args::ScaleArgs;
use bench::Bench;
use labgrid_args::LabgridArgs;
use number_args::{
    Seeds, parse_jobs, parse_ns_per_insn, parse_one_seed, parse_patience, parse_seed, parse_seeds,
};
pub use plans::Plans;
pub use prepared::Prepared;
pub use until_decided::unanswered;
use what::WhatArgs;

/// The CPU time, in seconds, for which a guest may be silent.
const PATIENCE: u64 = 120;

/// Where, on which subjects, with which seeds, and how.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct MeasureArgs {
    /// Where: `virtual`, in virtual time; `host`, this machine as it is, in real time;
    /// `ssh:[USER@]HOST[:/DIRECTORY]`, a board that `ssh` reaches, as it is;
    /// `labgrid:PLACE[:/DIRECTORY]`, a board of labgrid, acquired for that
    #[arg(long, value_name = "BENCH", default_value = "virtual", value_parser = Bench::from_str)]
    bench: Bench,
    #[command(flatten)]
    labgrid: LabgridArgs,
    /// On a real machine: the other end of the probe `packet`, which `ssh` reaches as root,
    /// `ssh:[USER@]HOST[:/DIRECTORY][:ADDRESS]`. `punctual-wire` answers there as long as this
    /// command measures. Frames go to ADDRESS, else to the IPv4 address of HOST
    #[arg(long, value_name = "PEER", value_parser = Peer::from_str)]
    peer: Option<Peer>,
    /// Measure this kernel instead of the suite's subjects (may be repeated)
    #[arg(long, value_name = "ID", conflicts_with = "subject")]
    kernel: Vec<String>,
    /// Take this version of the kernels' packages (6.12.117), not the newest: like ID@VERSION
    #[arg(long, value_name = "VERSION")]
    kernel_version: Option<String>,
    /// Add these boot arguments; repeated, each makes a subject of its own
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    boot: Vec<String>,
    /// Measure only this one of the suite's subjects (may be repeated)
    #[arg(long, value_name = "NAME")]
    subject: Vec<String>,
    /// Changes the phase of loads and probes: another seed, another interleaving [default: 1]
    #[arg(long, conflicts_with = "seeds", value_parser = parse_one_seed)]
    #[arg(allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Run these seeds: `1..5` is five runs (5 included), `1,2,7` three, `5` only seed 5
    /// [default: as many as the suite says, on the virtual bench]
    #[arg(long, value_name = "SEEDS", value_parser = parse_seeds)]
    seeds: Option<Seeds>,
    /// Age each guest as with this seed, so that seeds differ only by the phases of probes and
    /// loads
    #[arg(long, value_name = "SEED", value_parser = parse_seed)]
    past: Option<u64>,
    #[command(flatten)]
    scale: ScaleArgs,
    /// Skip runs that the store has finished; on a board, fetch a job that went on. An
    /// interrupted run is measured anew
    #[arg(long)]
    pub resume: bool,
    /// Nanoseconds of virtual time per instruction: 1, 2, 4, … 1024 [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_ns_per_insn)]
    ns_per_insn: Option<u32>,
    /// The guest's memory in MiB, instead of the suite's
    #[arg(long, value_name = "MIB", value_parser = value_parser!(u32).range(16..=1 << 20))]
    memory: Option<u32>,
    /// How long one of several CPUs of a guest runs while the others wait for their turn, at
    /// most, in microseconds of virtual time [default: 10]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    turn_us: Option<u32>,
    /// Boot afresh instead of resuming a booted guest from the cache
    #[arg(long)]
    cold: bool,
    /// On the host: let CPUs enter idle states, which are kept out otherwise
    #[arg(long)]
    allow_idle_states: bool,
    /// On a real machine, as root: look for gaps that are the hardware's, before the first step
    /// and after the last, for so many seconds; half of them with interrupts off (the kernel's
    /// tracer hwlat)
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u32).range(1..=60))]
    hwlat: Option<u32>,
    /// On a board: build there, against its kernel's headers, the kernel modules that the suite
    /// needs, and load them while it measures. It takes root, make and a compiler there
    #[arg(long)]
    build_modules: bool,
    /// On a real machine: store what was measured so far each time so many seconds are over;
    /// what a loss of power costs at most [default: 60]. A long step is stored 1,000 times at
    /// most
    #[arg(long, value_name = "SECONDS")]
    store_every: Option<NonZeroU32>,
    /// How many subjects run side by side [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZeroUsize>,
    /// End a guest that is silent for so many seconds of CPU time, besides what its step takes;
    /// on a board: how long to try to reach it again, or to wait for its boot
    #[arg(long, value_name = "SECONDS", default_value_t = PATIENCE, value_parser = parse_patience)]
    patience: u64,
    /// Watch on this terminal what is measured: the figures of each CPU, histogram, the last
    /// seconds. Without a terminal it changes nothing
    #[arg(long, conflicts_with = "quiet")]
    live: bool,
    /// The guest that is taken where no option says another.
    #[arg(skip)]
    guest: Option<Guest>,
    /// Whether the kernel's tracer runs beside the probes; only `run` and `tracers` ask for it.
    #[arg(skip)]
    pub tracing: Option<Tracing>,
    /// Further options of whoever asked first, for the record.
    #[arg(skip)]
    asked_before: Vec<String>,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub store: StoreArgs,
}

impl MeasureArgs {
    /// Measures these kernels with each of these boot arguments on the virtual bench. Runs that the
    /// store holds already are taken from there.
    pub fn of_subjects(
        kernel: Vec<String>,
        boot: Vec<String>,
        quiet: bool,
        store: &StoreArgs,
    ) -> Self {
        Self {
            bench: Bench::Virtual,
            labgrid: LabgridArgs::default(),
            peer: None,
            kernel,
            kernel_version: None,
            boot,
            subject: Vec::new(),
            seed: None,
            seeds: None,
            past: None,
            scale: ScaleArgs::default(),
            resume: true,
            ns_per_insn: None,
            memory: None,
            turn_us: None,
            cold: false,
            allow_idle_states: false,
            hwlat: None,
            build_modules: false,
            store_every: None,
            jobs: None,
            patience: PATIENCE,
            live: false,
            guest: None,
            tracing: None,
            asked_before: Vec::new(),
            quiet,
            store: store.clone(),
        }
    }

    /// Returns true if the live view is wanted, and standard error is a terminal.
    fn live(&self) -> bool {
        self.live && io::stderr().is_terminal()
    }

    /// Judges these kernels, and takes the runs that the store holds of them.
    pub fn take(&mut self, kernels: Vec<String>) {
        self.kernel = kernels;
        self.resume = true;
    }

    /// Measures as a run was measured: takes its options, and its past unless one is given.
    pub fn take_plan_of(&mut self, run: &Run, plan: &Plan) {
        self.past = self.past.or(plan.past);
        self.asked_before.clone_from(&run.request.options);
        // Where frames go is said anew, as the bench is.
        prepared::remove(&mut self.asked_before, "--peer");
    }

    /// Measures on a guest like this one, except where an option says otherwise.
    pub fn take_guest(&mut self, guest: Guest) {
        self.guest = Some(guest);
    }

    /// Returns true if no subject is named.
    pub fn is_of_all_subjects(&self) -> bool {
        self.kernel.is_empty() && self.subject.is_empty()
    }

    /// Returns true if the measurement is in virtual time.
    pub fn is_virtual(&self) -> bool {
        self.bench == Bench::Virtual
    }

    /// Takes the one kernel that was named, with the boot arguments that are given to it.
    pub fn take_base(&mut self) -> Result<(String, String)> {
        let is_other = !self.subject.is_empty() || self.bench != Bench::Virtual;
        let (kernel, boot) = match (self.kernel.as_slice(), self.boot.as_slice()) {
            ([kernel], []) if !is_other => (kernel.clone(), String::new()),
            ([kernel], [boot]) if !is_other => (kernel.clone(), boot.clone()),
            _ => {
                let wrong = "expected one --kernel, and one --boot at most, on the virtual bench: \
                             they are the base that options are held against";
                return Err(UsageError(wrong.into()).into());
            }
        };
        match self.kernel_version.take() {
            Some(version) => Ok((at_version(&kernel, &version)?, boot)),
            None => Ok((kernel, boot)),
        }
    }

    /// Gives these boot arguments to the kernels, in place of others.
    pub fn take_boot(&mut self, boot: &str) {
        self.boot = vec![boot.to_owned()];
        self.boot.retain(|boot| !boot.is_empty());
    }

    /// Checks the kernels and boot arguments that are named, before anything is fetched.
    pub fn check_subjects(&self, suite: &Suite) -> Result<()> {
        self.subjects(suite).map(|_| ())
    }

    /// The fault in the boot arguments that are named, if this kernel does not offer the preemption
    /// model that they ask for.
    pub fn not_offered(&self, kernel: &Kernel) -> Result<Option<String>> {
        for boot in &self.boot {
            if let Some(why) = not_offered(kernel, boot)? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// The position of a kernel among those that were named.
    pub fn place_of(&self, kernel: &str) -> Option<usize> {
        self.kernel.iter().position(|own| own == kernel)
    }

    fn subjects(&self, suite: &Suite) -> Result<Vec<SubjectSpec>> {
        let choice = Choice {
            kernels: &self.kernel,
            boots: &self.boot,
            names: &self.subject,
        };
        let mut subjects = choose(suite, &choice)?;
        if let Some(version) = &self.kernel_version {
            for subject in &mut subjects {
                subject.kernel = at_version(&subject.kernel, version)?;
            }
        }
        Ok(subjects)
    }

    /// The suite to measure, on the chosen bench.
    pub fn suite(&self, what: &WhatArgs) -> Result<Suite> {
        match self.bench {
            Bench::Virtual => what.suite_on_guest(),
            Bench::Host | Bench::Ssh(_) | Bench::Labgrid(_) => self.to_peer(what.suite_on_host()?),
        }
    }

    /// A suite on the CPUs that are asked for, on the chosen bench.
    pub fn placed(&self, what: &WhatArgs, suite: Suite) -> Result<Suite> {
        match self.bench {
            Bench::Virtual => what.on_guest(suite),
            Bench::Host | Bench::Ssh(_) | Bench::Labgrid(_) => self.to_peer(what.on_host(suite)?),
        }
    }

    /// The first option, if there is one, that says what is to be measured: it does not change runs
    /// that exist already.
    pub fn first_demand(&self) -> Option<&'static str> {
        let is_scaled = !self.scale.words().is_empty();
        let all = [
            ("--bench", !matches!(self.bench, Bench::Virtual)),
            ("--peer", self.peer.is_some()),
            ("--kernel", !self.kernel.is_empty()),
            ("--kernel-version", self.kernel_version.is_some()),
            ("--boot", !self.boot.is_empty()),
            ("--subject", !self.subject.is_empty()),
            ("--seed", self.seed.is_some()),
            ("--seeds", self.seeds.is_some()),
            ("--past", self.past.is_some()),
            ("--scale, --samples or --duration", is_scaled),
            ("--ns-per-insn", self.ns_per_insn.is_some()),
            ("--memory", self.memory.is_some()),
            ("--turn-us", self.turn_us.is_some()),
            ("--hwlat", self.hwlat.is_some()),
            ("--resume", self.resume),
            ("--cold", self.cold),
            ("--allow-idle-states", self.allow_idle_states),
            ("--build-modules", self.build_modules),
            ("--store-every", self.store_every.is_some()),
            ("--jobs", self.jobs.is_some()),
            ("--patience", self.patience != PATIENCE),
            ("--live", self.live),
            (
                "--power-cycle, --labgrid-state or --labgrid-env",
                self.labgrid.given().is_some(),
            ),
        ];
        all.into_iter()
            .find(|(_, is_given)| *is_given)
            .map(|(option, _)| option)
    }

    /// The seeds that are named, if any.
    pub fn seeds_asked_for(&self) -> Option<Vec<u64>> {
        let one = || self.seed.map(|seed| vec![seed]);
        self.seeds
            .as_ref()
            .map(|seeds| seeds.all.clone())
            .or_else(one)
    }

    /// Returns true if all seeds are named.
    pub fn has_seeds(&self) -> bool {
        self.seeds.is_some()
    }

    fn first_seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    fn side_by_side(&self) -> Result<usize> {
        // In real time they would be each other's load.
        if self.bench != Bench::Virtual {
            return Ok(1);
        }
        side_by_side(self.jobs)
    }
}

/// The id of a kernel in this version of its packages.
fn at_version(kernel: &str, version: &str) -> Result<String, UsageError> {
    if kernel.contains('@') {
        return Err(UsageError(format!(
            "--kernel-version {version}: expected kernels without a version, found {kernel}: leave \
             out one of the two versions"
        )));
    }
    Ok(format!("{kernel}@{version}"))
}

/// The number of guests that run at a time: as many as asked for, else one on each CPU.
pub fn side_by_side(jobs: Option<NonZeroUsize>) -> Result<usize> {
    let cpus = thread::available_parallelism().context("cannot count the CPUs")?;
    Ok(jobs.unwrap_or(cpus).get())
}

/// Returns true if an error concerns one kernel only, so that others may be judged nevertheless.
pub fn is_of_kernel(error: &anyhow::Error) -> bool {
    use punctual_runner::Error;
    let is_own = |error: &Error| {
        matches!(
            error,
            Error::Kernel(_) | Error::Module(_) | Error::NotOffered(_)
        )
    };
    error
        .chain()
        .any(|cause| cause.downcast_ref().is_some_and(is_own))
}

#[cfg(test)]
mod tests {
    use punctual_runner::Error;

    use super::*;

    #[test]
    fn a_kernel_has_one_version() {
        let pinned = at_version("debian-6.12", "6.12.117");
        assert_eq!(pinned.unwrap(), "debian-6.12@6.12.117");
        let error = at_version("debian-6.12@6.12.100", "6.12.117").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("found debian-6.12@6.12.100"), "{error}");
    }

    #[test]
    fn a_model_that_one_kernel_does_not_offer_concerns_that_kernel_only() {
        let why = "expected preempt=full, as mine offers, found preempt=none".to_owned();
        assert!(is_of_kernel(&Error::NotOffered(why.clone()).into()));
        assert!(!is_of_kernel(&Error::Request(why).into()));
    }
}

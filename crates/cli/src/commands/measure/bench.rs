// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place of the measurement: each bench's subjects, ready to run.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use punctual_bench::labgrid::{Held, Place};
use punctual_bench::ssh::{Board, Destination, Route, SshSystem};
use punctual_bench::virtual_bench::{Start, TURN};
use punctual_kernels::paths;
use punctual_model::Nanos;
use punctual_model::suite::{SubjectSpec, Suite};
use punctual_runner::systems::{self, Builder, Equipment, PreparedSystem};
use punctual_runner::{Companion, loads};

use super::MeasureArgs;
use super::labgrid_args;
use crate::commands::{catalog, virtual_bench};
use crate::output::say;
use crate::{UsageError, interrupt};

/// The bench, as users write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bench {
    Virtual,
    Host,
    Ssh(Destination),
    Labgrid(Place),
}

impl FromStr for Bench {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "virtual" => Ok(Self::Virtual),
            None if text == "host" => Ok(Self::Host),
            Some(("ssh", destination)) => destination.parse().map(Self::Ssh),
            Some(("labgrid", place)) => place.parse().map(Self::Labgrid),
            _ => Err("expected virtual, host, ssh:[USER@]HOST or labgrid:PLACE".into()),
        }
    }
}

impl MeasureArgs {
    fn silence(&self) -> Duration {
        Duration::from_secs(self.patience)
    }

    /// The silence allowed to this machine, which says nothing while the kernel's tracer `hwlat`
    /// looks for gaps. (A board has more than that in any case.)
    fn silence_of_host(&self) -> Duration {
        self.silence() + Duration::from_secs(self.hwlat.unwrap_or_default().into())
    }

    pub(super) fn host(&self, suite: &Suite) -> Result<PreparedSystem> {
        let (cache, silence) = (paths::cache_dir()?, self.silence_of_host());
        Ok(systems::host(suite, cache, silence)?)
    }

    /// A place of labgrid, which is held as long as its system exists.
    pub(super) fn place(
        &self,
        place: &Place,
        suite: &Suite,
    ) -> Result<(SubjectSpec, PreparedSystem)> {
        // From here on Ctrl-C gives the place back.
        let cancel = interrupt::flag()?;
        let tell = labgrid_args::tell(self.quiet);
        let mut held = Held::take(place, &paths::cache_dir()?, self.resume, tell)?;
        held.prepare(&self.labgrid.preparation(), cancel)?;
        let route = Route::Labgrid(held.client().clone());
        self.board(&route, Some(held), suite)
    }

    /// A board: the system that answers there is the subject.
    pub(super) fn board(
        &self,
        route: &Route,
        place: Option<Held>,
        suite: &Suite,
    ) -> Result<(SubjectSpec, PreparedSystem)> {
        let boots = place.is_some() && self.labgrid.preparation().boots();
        let patience = if boots {
            self.silence()
        } else {
            Duration::ZERO
        };
        let find = |found| Companion::that_measures(suite, found).find();
        let cancel = interrupt::flag()?;
        let mut board = Board::reach(route, find, patience, cancel)?;
        let subject = SubjectSpec {
            name: route.name().to_owned(),
            kernel: board.hello.release.clone(),
            boot: board.hello.cmdline.clone(),
        };
        let absent = if self.build_modules {
            let say = &mut |message: &str| self.say(message);
            systems::build_modules(&mut board, suite, cancel, say)?
        } else {
            systems::not_asked_for(suite)
        };
        let system = SshSystem {
            board,
            place: place.map(Arc::new),
            cache: paths::cache_dir()?,
            patience: self.silence(),
            resume: self.resume,
        };
        Ok((subject, systems::board(system, absent)))
    }

    fn say(&self, message: &str) {
        if !self.quiet {
            say!("{message}");
        }
    }

    /// The subjects as guests, ready to run.
    pub(super) fn guests(
        &self,
        suite: &Suite,
        subjects: &[SubjectSpec],
    ) -> Result<Vec<PreparedSystem>> {
        if self.turn_us.is_some() && suite.cpus.get() == 1 {
            let none = "--turn-us is for guests of several CPUs, and this one has one: --cpus 2";
            return Err(UsageError(none.into()).into());
        }
        let cache = paths::cache_dir()?;
        let mut bench = virtual_bench(&cache, suite.cpus.get())?;
        bench.silence = self.silence();
        let say = &mut |message: &str| self.say(message);
        let mut equipment = Equipment::of(suite, &loads::of(suite)?, say)?;
        let guest = self.guest.as_ref();
        let memory = self.memory.or(guest.map(|guest| guest.memory_mib));
        equipment.memory_mib = memory.unwrap_or(suite.memory_mib);
        let turn = self.turn_us.or(guest.and_then(|guest| guest.turn_us));
        let turn = turn.map(|micros| Nanos::from_micros(micros.into()));
        equipment.turn = turn.unwrap_or(TURN);
        let ns_per_insn = self.ns_per_insn.or(guest.map(|guest| guest.ns_per_insn));
        equipment.ns_per_insn = ns_per_insn.unwrap_or(1);
        if self.cold {
            equipment.start = Start::Cold;
        }
        let builder = Builder {
            bench: &bench,
            catalog: &catalog()?,
            cache: &cache,
            equipment: &equipment,
        };
        Ok(builder.build(subjects, say)?)
    }
}

/// The kernel that runs on this machine.
pub(super) fn this_machine() -> Result<SubjectSpec> {
    let read = |path| std::fs::read_to_string(path).with_context(|| String::from(path));
    Ok(SubjectSpec {
        name: "host".to_owned(),
        kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        boot: read("/proc/cmdline")?.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::StoreArgs;

    #[test]
    fn this_machine_may_be_silent_while_gaps_are_looked_for() {
        let store = StoreArgs { db: None };
        let mut args = MeasureArgs::of_subjects(Vec::new(), Vec::new(), true, &store);
        args.patience = 1;
        assert_eq!(args.silence_of_host(), Duration::from_secs(1));
        args.hwlat = Some(30);
        assert_eq!(args.silence_of_host(), Duration::from_secs(31));
    }
}

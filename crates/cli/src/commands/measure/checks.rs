// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks for conflicting options, made before anything is looked up or measured.

use anyhow::Result;

use super::MeasureArgs;
use super::bench::Bench;
use crate::UsageError;

impl MeasureArgs {
    /// Finds errors that can be known before anything is looked up or measured, and says what may
    /// be a mistake.
    pub fn check(&self) -> Result<()> {
        if self.build_modules && !matches!(self.bench, Bench::Ssh(_) | Bench::Labgrid(_)) {
            let none = "--build-modules is for boards: guests have theirs anyway, and this \
                        machine gets them by the package punctual-dkms";
            return Err(UsageError(none.into()).into());
        }
        if let (Some(option), false) = (self.labgrid.given(), self.is_at_place()) {
            let wrong = format!("{option} is for places of labgrid: --bench labgrid:PLACE");
            return Err(UsageError(wrong).into());
        }
        match self.bench {
            Bench::Virtual if self.peer.is_some() => {
                let none = "--peer is for real machines (--bench host, or a board): a guest has \
                            both ends of its wire";
                return Err(UsageError(none.into()).into());
            }
            Bench::Virtual if self.allow_idle_states => {
                let none =
                    "--allow-idle-states is for real machines: a virtual CPU has no deep ones";
                return Err(UsageError(none.into()).into());
            }
            Bench::Virtual if self.hwlat.is_some() => {
                let none = "--hwlat is for real machines: a virtual one has no firmware";
                return Err(UsageError(none.into()).into());
            }
            Bench::Virtual if self.store_every.is_some() => {
                let none = "--store-every is for real machines: a virtual run can be repeated";
                return Err(UsageError(none.into()).into());
            }
            Bench::Virtual => {}
            _ if self.past.is_some() => {
                let none = "--past is for guests: a real machine has a past of its own";
                return Err(UsageError(none.into()).into());
            }
            _ => self.check_host()?,
        }
        if let Some(seeds) = &self.seeds {
            seeds.tell(self.quiet);
        }
        Ok(())
    }

    fn is_at_place(&self) -> bool {
        matches!(self.bench, Bench::Labgrid(_))
    }

    /// Checks that a real machine is taken as one subject, as it is.
    fn check_host(&self) -> Result<(), UsageError> {
        for (given, option) in [
            (!self.kernel.is_empty(), "--kernel"),
            (self.kernel_version.is_some(), "--kernel-version"),
            (!self.boot.is_empty(), "--boot"),
            (!self.subject.is_empty(), "--subject"),
            (self.ns_per_insn.is_some(), "--ns-per-insn"),
            (self.memory.is_some(), "--memory"),
            (self.turn_us.is_some(), "--turn-us"),
            (self.cold, "--cold"),
            (self.jobs.is_some(), "--jobs"),
        ] {
            if given {
                return Err(UsageError(format!(
                    "{option} is for the virtual bench; a real machine is taken as it is"
                )));
            }
        }
        Ok(())
    }

    /// Refuses options that name kernels, for a command that names them itself.
    pub fn check_unnamed(&self, command: &str) -> Result<()> {
        let is_named = !self.kernel.is_empty() || !self.subject.is_empty();
        if is_named || self.kernel_version.is_some() || self.bench != Bench::Virtual {
            let wrong = format!(
                "--kernel, --kernel-version, --subject and --bench: {command} names the kernels \
                 itself"
            );
            return Err(UsageError(wrong).into());
        }
        Ok(())
    }
}

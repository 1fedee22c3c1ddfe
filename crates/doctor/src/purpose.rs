// SPDX-License-Identifier: MIT OR Apache-2.0
//! Purposes of a machine, and the weight of the checks for each.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use crate::check::{Check, Diagnosis, Severity};

/// The purpose of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Sound: periods of milliseconds, beside a desktop; many do without PREEMPT_RT.
    Audio,
    /// Control: threads on any CPU, with periods down to some hundred microseconds.
    Control,
    /// CPUs that are each reserved for one thread.
    Isolated,
}

/// Checks that are skipped for sound: they concern isolated CPUs, or delays of microseconds.
pub(crate) const NOT_FOR_AUDIO: [&str; 20] = [
    "isolcpus",
    "nohz-full",
    "rcu-nocbs",
    "workqueues",
    "writeback",
    "irqbalance",
    "mitigations",
    "skew-tick",
    "tsc-reliable",
    "rcu-normal",
    "vm-stat-interval",
    "timer-migration",
    "numa-balancing",
    "governors",
    "soft-watchdog",
    "nmi-watchdog",
    "fair-server",
    "efi-runtime",
    "no-hz",
    "shared-caches",
];

impl Purpose {
    /// All purposes, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Audio, Self::Control, Self::Isolated];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Audio => "audio",
            Self::Control => "control",
            Self::Isolated => "isolated",
        }
    }

    /// The weight of a check for this purpose; `None` if it is skipped.
    pub fn severity(self, check: &Check) -> Option<Severity> {
        match (self, check.id) {
            (Self::Audio, id) if NOT_FOR_AUDIO.contains(&id) => None,
            // Microseconds are lost by these, where a period has milliseconds.
            (Self::Audio, "preempt-rt" | "lockup-detector") => Some(Severity::Low),
            // A tick that stops delays who sleeps, and leaves alone who computes.
            (Self::Control, "nohz-full") | (Self::Isolated, "no-hz") => None,
            (Self::Isolated, "isolcpus" | "workqueues" | "irqbalance") => Some(Severity::High),
            (Self::Audio, "smi") | (Self::Isolated, "nohz-full" | "rcu-nocbs") => {
                Some(Severity::Medium)
            }
            _ => Some(check.severity),
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Purpose {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        let names = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("expected {}, found \"{name}\"", names()))
    }
}

impl Diagnosis {
    /// Weighs the findings for a purpose; checks that it skips are left out.
    #[must_use]
    pub fn weighed(mut self, purpose: Purpose) -> Self {
        self.0.retain_mut(|one| match purpose.severity(one.check) {
            Some(severity) => {
                one.severity = severity;
                true
            }
            None => false,
        });
        self.0.sort_by_key(|one| Reverse(one.severity));
        self
    }
}

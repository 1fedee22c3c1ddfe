// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a target says, one record to a frame.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::finding::Facts;
use crate::reason::Reason;
use crate::recording::{Recording, Work};
use crate::units::Nanos;

/// One thing that a target says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// First of all: what is judged, as read back from the running kernel. Before the last one
    /// once more, where there are facts that only the end tells.
    Provenance(Provenance),
    /// A step begins.
    Started(Started),
    /// A step's probe has delivered: before its recordings, what its load did meanwhile.
    Step(StepRecord),
    /// A probe has delivered.
    Recording(Box<Recording>),
    /// What a probe has measured so far, without raw samples and settings: it takes the place
    /// of what was said so before, and gives it to what the probe delivers.
    SoFar(Box<Recording>),
    /// A probe could not run.
    Unsupported(Unsupported),
    /// The plan could not be carried out, and no step was begun.
    Refused(String),
    /// Last of all: the plan was carried out to its end.
    Finished(Finished),
    /// Last of all: the target was asked to end. What was measured until then was sent; the
    /// step that ran is marked as [interrupted](Recording::interrupted).
    Interrupted(Finished),
}

/// Where numbers come from: recorded before the first sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// `/proc/version`: build, compiler, `PREEMPT_RT`.
    pub version: String,
    /// The kernel's command line as it was booted.
    pub cmdline: String,
    /// The preemption model in force.
    pub preemption: Preemption,
    /// The rate of the CPU's time stamp counter, as the kernel's clock takes it, in kHz;
    /// `None` where that is not known.
    pub tsc_khz: Option<u64>,
    /// Everything else that was read back, by name: clock source, timer resolution,
    /// CPU, throttling, memory, the target's revision.
    pub facts: Facts,
}

/// What a kernel lets a thread be preempted by, as the kernel itself names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preemption {
    /// Kernel code goes on until it sleeps or returns.
    None,
    /// Kernel code also goes on until it asks whether it is to.
    Voluntary,
    /// Wherever nothing forbids it.
    Full,
    /// As `full` for real-time threads; others wait for the next tick.
    Lazy,
    /// `PREEMPT_RT`.
    Rt,
    /// It could not be found out.
    Unknown(Reason),
}

impl Preemption {
    /// Why it is not known which of these two a kernel has that was built for one of them.
    pub const NONE_OR_VOLUNTARY: &'static str =
        "none or voluntary, fixed when the kernel was built";

    /// Whether kernel code goes on until it returns, sleeps or asks.
    pub fn is_cooperative(&self) -> bool {
        match self {
            Self::None | Self::Voluntary => true,
            Self::Unknown(reason) => reason.to_string() == Self::NONE_OR_VOLUNTARY,
            Self::Full | Self::Lazy | Self::Rt => false,
        }
    }

    /// The model of that name, as the kernel writes it in debugfs.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "none" => Self::None,
            "voluntary" => Self::Voluntary,
            "full" => Self::Full,
            "lazy" => Self::Lazy,
            "rt" => Self::Rt,
            _ => return None,
        })
    }

    /// Its name: `rt`; `unknown` where it could not be found out.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
            Self::Full => "full",
            Self::Lazy => "lazy",
            Self::Rt => "rt",
            Self::Unknown(_) => "unknown",
        }
    }
}

impl Default for Preemption {
    fn default() -> Self {
        Self::Unknown(Reason::from("it was not looked for"))
    }
}

impl fmt::Display for Preemption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(reason) => write!(f, "unknown: {reason}"),
            known => f.pad(known.name()),
        }
    }
}

/// What one step of a plan came to, besides its recordings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The step's number in the plan, from 0.
    pub step: u32,
    /// The probe's name.
    pub probe: String,
    /// The load's name.
    pub load: String,
    /// What the load did while samples were taken; empty when idle.
    pub work: Vec<Work>,
    /// What whoever watched it has marked, in order; the target knows none.
    #[serde(default)]
    pub marks: Vec<Mark>,
}

/// A moment that somebody who watched a step wanted to find again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When it was, from the step's begin, by the clock of the machine at which it was watched.
    pub at: Nanos,
    /// How many samples had been taken, by all threads.
    pub count: u64,
    /// The largest of them; `None` where it was not known then.
    pub worst: Option<Nanos>,
}

/// A step begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The step's number in the plan, from 0.
    pub step: u32,
    /// The probe's name.
    pub probe: String,
    /// The load's name.
    pub load: String,
    /// How long the subject will be busy with it at least, as far as the plan tells.
    pub nominal: Nanos,
}

/// A probe could not run: a value with a reason, never a zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsupported {
    /// The step's number in the plan, from 0.
    pub step: u32,
    /// The probe's name.
    pub probe: String,
    /// The load's name.
    pub load: String,
    /// Why.
    pub reason: Reason,
}

/// What was sent of a plan that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// How many recordings were sent.
    pub recordings: u32,
    /// How many steps were unsupported.
    pub unsupported: u32,
}

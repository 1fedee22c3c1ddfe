// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages that a target sends, one record to a frame.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::finding::Facts;
use crate::reason::Reason;
use crate::recording::{Recording, Work};
use crate::units::Nanos;

/// One message from a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// Sent first: the subject, as read back from the running kernel. Sent again before the last
    /// record if there are facts that are known only at the end.
    Provenance(Provenance),
    /// A step begins.
    Started(Started),
    /// A step's probe has delivered: the load's work meanwhile, sent before the recordings.
    Step(StepRecord),
    /// A probe has delivered.
    Recording(Box<Recording>),
    /// A probe's measurements so far, without raw samples and settings. They replace those sent
    /// earlier, and are replaced by what the probe delivers.
    SoFar(Box<Recording>),
    /// A probe could not run.
    Unsupported(Unsupported),
    /// The plan could not be carried out, and no step began.
    Refused(String),
    /// Sent last: the plan was carried out to its end.
    Finished(Finished),
    /// Sent last: the target was asked to end. Everything measured until then was sent; the
    /// step that was running is marked as [interrupted](Recording::interrupted).
    Interrupted(Finished),
}

/// The origin of the numbers: recorded before the first sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Provenance {
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// `/proc/version`: build, compiler, `PREEMPT_RT`.
    pub version: String,
    /// The kernel's command line as it was booted.
    pub cmdline: String,
    /// The preemption model in force.
    pub preemption: Preemption,
    /// The rate of the CPU's time stamp counter, in kHz, as the kernel's clock takes it;
    /// `None` if it is not known.
    pub tsc_khz: Option<u64>,
    /// All other facts that were read back, by name: clock source, timer resolution,
    /// CPU, throttling, memory, the target's revision.
    pub facts: Facts,
}

/// The preemption that a kernel allows, as the kernel itself names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Preemption {
    /// Kernel code runs until it sleeps or returns.
    None,
    /// Kernel code also yields where it asks whether it should.
    Voluntary,
    /// Kernel code can be preempted wherever nothing forbids it.
    Full,
    /// Like `Full` for real-time threads; other threads wait for the next tick.
    Lazy,
    /// `PREEMPT_RT`.
    Rt,
    /// The model could not be determined.
    Unknown(Reason),
}

impl Preemption {
    /// The reason why it is unknown which of the two a kernel has that was built for one of them.
    pub const NONE_OR_VOLUNTARY: &'static str =
        "none or voluntary, fixed when the kernel was built";

    /// Returns true if kernel code runs until it returns, sleeps or asks.
    pub fn is_cooperative(&self) -> bool {
        match self {
            Self::None | Self::Voluntary => true,
            Self::Unknown(reason) => reason.to_string() == Self::NONE_OR_VOLUNTARY,
            Self::Full | Self::Lazy | Self::Rt => false,
        }
    }

    /// Returns the model of the given name, as the kernel writes it in debugfs.
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

    /// Returns its name: `rt`; `unknown` if the model could not be determined.
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

/// The outcome of one step of a plan, besides its recordings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The step's number in the plan, from 0.
    pub step: u32,
    /// The probe's name.
    pub probe: String,
    /// The load's name.
    pub load: String,
    /// The load's work while samples were taken; empty when idle.
    pub work: Vec<Work>,
    /// Marks that an observer set, in order; the target never has any.
    #[serde(default)]
    pub marks: Vec<Mark>,
}

/// A moment that an observer of a step wanted to find again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The time of the mark, from the step's start, by the clock of the observer's machine.
    pub at: Nanos,
    /// The number of samples that all threads had taken.
    pub count: u64,
    /// The largest of these samples; `None` if it was not known then.
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
    /// The minimum time that the step will keep the subject busy, as far as the plan tells.
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
    /// The reason.
    pub reason: Reason,
}

/// The totals of a plan that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// The number of recordings that were sent.
    pub recordings: u32,
    /// The number of steps that were unsupported.
    pub unsupported: u32,
}

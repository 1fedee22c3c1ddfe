//! What a target says, one record to a frame.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::recording::Recording;
use crate::units::Nanos;

/// One thing that a target says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// First of all: what is judged, as read back from the running kernel.
    Provenance(Provenance),
    /// A step begins.
    Started(Started),
    /// A probe has delivered.
    Recording(Box<Recording>),
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
    /// The preemption model in force: `none`, `voluntary`, `full`, `lazy`, `rt`, or
    /// `unknown: …` with the reason.
    pub preemption: String,
    /// Everything else that was read back, by name: clock source, timer resolution,
    /// CPU, throttling, memory, the target's revision.
    pub facts: BTreeMap<String, String>,
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
    /// The probe's name.
    pub probe: String,
    /// The load's name.
    pub load: String,
    /// Why.
    pub reason: String,
}

/// What was sent of a plan that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// How many recordings were sent.
    pub recordings: u32,
    /// How many steps were unsupported.
    pub unsupported: u32,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The findings of a survey: sections in which something is off, by where they began.

use punctual_model::Nanos;

use super::delays::Delays;

/// The kind of section that is surveyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectionKind {
    /// Interrupts are off.
    IrqsOff,
    /// Preemption is off.
    PreemptOff,
    /// A soft interrupt is served.
    Softirq,
    /// Kernel code runs that is not preempted.
    NotPreemptible,
    /// The CPU spins for something that another CPU is to do.
    Spinning,
}

impl SectionKind {
    /// All kinds, in their order.
    pub const ALL: [Self; 5] = [
        Self::IrqsOff,
        Self::PreemptOff,
        Self::Softirq,
        Self::NotPreemptible,
        Self::Spinning,
    ];

    /// Returns the kind in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::IrqsOff => "interrupts off",
            Self::PreemptOff => "preemption off",
            Self::Softirq => "soft interrupt",
            Self::NotPreemptible => "no preemption point",
            Self::Spinning => "spinning for another CPU",
        }
    }
}

/// The sections of a CPU that began at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hotspot {
    /// The kind of section.
    pub what: SectionKind,
    /// The CPU.
    pub cpu: u32,
    /// The function that began them.
    pub function: String,
    /// The number of sections.
    pub count: u64,
    /// Length of the longest.
    pub longest: Nanos,
    /// Length of all together.
    pub sum: Nanos,
    /// The step in which the longest was, from 0.
    pub step: u32,
    /// The function in which the longest ended.
    pub ended: String,
    /// The function that took most of the longest itself, and its time.
    pub most: (String, Nanos),
    /// For [`SectionKind::Spinning`]: the CPU that had the turn before the longest was over, and
    /// the function that it executed.
    pub awaited: Option<(u32, String)>,
}

/// The findings of a survey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The number of CPUs that took turns; 1 if there was only one.
    pub cpus: u32,
    /// CPUs that were never in user space. What was off there is not known, and not reported.
    pub unknown: Vec<u32>,
    /// The places, the longest first.
    pub hotspots: Vec<Hotspot>,
    /// The number of instructions that ran, from the first step to the end, on all CPUs.
    pub instructions: u64,
    /// The number of times that the followed state was not what the code proved it to be. Sections
    /// that were open then are not counted.
    pub mended: u64,
    /// The delays of threads; empty if there are several CPUs.
    pub delays: Delays,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a survey finds: sections in which something is off, by where they began.

use punctual_model::Nanos;

use super::delays::Delays;

/// What is surveyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectionKind {
    /// Interrupts are off.
    IrqsOff,
    /// Preemption is off.
    PreemptOff,
    /// A soft interrupt is served.
    Softirq,
    /// Kernel code that is not preempted.
    NotPreemptible,
    /// It spins for what another CPU is to do.
    Spinning,
}

impl SectionKind {
    /// All, in their order.
    pub const ALL: [Self; 5] = [
        Self::IrqsOff,
        Self::PreemptOff,
        Self::Softirq,
        Self::NotPreemptible,
        Self::Spinning,
    ];

    /// In words.
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

/// All sections of a CPU that began at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hotspot {
    /// What they are.
    pub what: SectionKind,
    /// The CPU.
    pub cpu: u32,
    /// The function that began them.
    pub function: String,
    /// How many there were.
    pub count: u64,
    /// The longest.
    pub longest: Nanos,
    /// All together.
    pub sum: Nanos,
    /// The step in which the longest was, from 0.
    pub step: u32,
    /// Where the longest ended.
    pub ended: String,
    /// What took most of the longest itself, and how long.
    pub most: (String, Nanos),
    /// Of [`SectionKind::Spinning`]: which CPU had the turn before the longest was over, and
    /// what it executed.
    pub awaited: Option<(u32, String)>,
}

/// What a survey found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// How many CPUs took turns; 1 where there was one only.
    pub cpus: u32,
    /// CPUs that were never in user space: what was off there is not known, and not told.
    pub unknown: Vec<u32>,
    /// The places, the longest first.
    pub hotspots: Vec<Hotspot>,
    /// How many instructions ran, from the first step to the end, on all CPUs.
    pub instructions: u64,
    /// How often the followed state was not what the code proved it to be; sections that were
    /// open then are not counted.
    pub mended: u64,
    /// What delayed threads; nothing where there are several CPUs.
    pub delays: Delays,
}

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
}

impl SectionKind {
    /// All, in their order.
    pub const ALL: [Self; 4] = [
        Self::IrqsOff,
        Self::PreemptOff,
        Self::Softirq,
        Self::NotPreemptible,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::IrqsOff => "interrupts off",
            Self::PreemptOff => "preemption off",
            Self::Softirq => "soft interrupt",
            Self::NotPreemptible => "no preemption point",
        }
    }
}

/// All sections that began at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hotspot {
    /// What they are.
    pub what: SectionKind,
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
}

/// What a survey found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The places, the longest first.
    pub hotspots: Vec<Hotspot>,
    /// How many instructions ran, from the first step to the end.
    pub instructions: u64,
    /// How often the followed state was not what the code proved it to be; sections that were
    /// open then are not counted.
    pub mended: u64,
    /// What delayed threads.
    pub delays: Delays,
}

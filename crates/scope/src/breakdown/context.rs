// SPDX-License-Identifier: MIT OR Apache-2.0
//! The known facts of a sample before it is broken down, and the reasons why it may not be.

use punctual_model::Nanos;
use punctual_model::probe::SampleSpan;

use crate::guest_clock::GuestClock;
use crate::preemptibility::Preemptibility;

/// The known facts of the sample and its subject.
#[derive(Clone, Copy, Debug)]
pub struct SampleContext {
    /// Converts between instructions and time.
    pub clock: GuestClock,
    /// The span that is broken down.
    pub span: SampleSpan,
    /// Lateness of the sample, or length of the span.
    pub late: Nanos,
    /// Time from its end to the reading of the clock, where other stages follow.
    pub ends_before: Nanos,
    /// The preemptibility of its kernel.
    pub preemption: Preemptibility,
    /// Start and end of a cycle in the walk.
    pub cycle: Option<[u64; 2]>,
}

/// The reason why there is no breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexplained {
    /// The clock was not read in the window.
    #[error("the clock was not read in the window")]
    NoClock,
    /// The sample was early.
    #[error("the sample is not late: there is nothing to explain")]
    NotLate,
    /// The window is another sample's, or its start was not watched.
    #[error("no reading of the clock in the window is so long before the last one")]
    NoBegin,
}

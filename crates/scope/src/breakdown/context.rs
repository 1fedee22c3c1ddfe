// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a sample before it is broken down, and why it may not be.

use punctual_model::Nanos;
use punctual_model::probe::SampleSpan;

use crate::guest_clock::GuestClock;
use crate::preemptibility::Preemptibility;

/// What is known of the sample and its subject.
#[derive(Clone, Copy, Debug)]
pub struct SampleContext {
    /// Instructions and time.
    pub clock: GuestClock,
    /// From when to when it is.
    pub span: SampleSpan,
    /// How late it was, or how long.
    pub late: Nanos,
    /// How long before the clock was read it ended: where other stages follow.
    pub ends_before: Nanos,
    /// How far its kernel can be preempted.
    pub preemption: Preemptibility,
    /// Where a cycle begins and ends in the walk.
    pub cycle: Option<[u64; 2]>,
}

/// Why there is no breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexplained {
    /// Nothing was read in the window.
    #[error("the clock was not read in the window")]
    NoClock,
    /// It was early.
    #[error("the sample is not late: there is nothing to explain")]
    NotLate,
    /// The window is another sample's, or its begin was not watched.
    #[error("no reading of the clock in the window is so long before the last one")]
    NoBegin,
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of every arrival of a run, because the run was repeated and watched afterwards.
//!
//! It is no part of the run: no sample, no digest and no file of it has any of this.

use std::collections::BTreeMap;

use crate::key::RecordingKey;
use crate::units::Nanos;

/// Whether it is known of such recordings how late each arrival is: those of a timer's thread, and
/// of an interrupt's hard handler.
pub fn are_told_of(key: &RecordingKey) -> bool {
    key.probe != "irq" || matches!(key.variant.as_str(), "hard" | "idle hard")
}

/// Whether samples of such recordings can be aimed: a device's interrupts come by its own clock,
/// at one interval.
pub fn can_be_aimed(key: &RecordingKey) -> bool {
    key.probe != "irq"
}

/// Every arrival of a step, in virtual time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// The step's number, from 0.
    pub step: u32,
    /// Why it is not every arrival that is known; none where it is.
    pub gap: Option<String>,
    /// How much time was looked at: so many nanoseconds are so many moments.
    pub time: Nanos,
    /// How late an arrival is at most in which share of that time, the smallest share first.
    pub quantiles: Vec<(f64, Nanos)>,
    /// How late the latest of all arrivals is, as it is foretold.
    pub worst: Nanos,
    /// The function that ran most of what keeps it waiting; none where no place is that late.
    pub function: Option<String>,
    /// At how many places a sample was to be aimed.
    pub aims: usize,
    /// How late the latest aimed sample was: that is proved. None where no sample was aimed.
    pub reached: Option<Nanos>,
    /// The function that ran most of what kept it waiting.
    pub reached_function: Option<String>,
    /// For how long something was off from where it was due, as foretold, and for how long
    /// interrupts were handled, its own among them; none where its story is not told.
    pub reached_parts: Option<(Nanos, Nanos)>,
    /// How late the latest sample was that was aimed together with a second timer, whose interrupt
    /// came into its path; none where there was none.
    pub with_second: Option<WithSecond>,
    /// Whether an arrival may change what follows, so that `worst` is a forecast.
    pub is_forecast: bool,
    /// For how long each function ran at most within one stretch that keeps threads waiting:
    /// those that ran most of such a stretch.
    pub functions: BTreeMap<String, Nanos>,
}

/// A sample that was aimed together with a second timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithSecond {
    /// How late it was.
    pub late: Nanos,
    /// How long behind its own deadline the second timer was due.
    pub behind: Nanos,
    /// For how long something was off, and for how long interrupts were handled, its own among
    /// them; none where its story is not told.
    pub parts: Option<(Nanos, Nanos)>,
}

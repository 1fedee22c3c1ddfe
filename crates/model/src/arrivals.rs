// SPDX-License-Identifier: MIT OR Apache-2.0
//! Knowledge of every arrival of a run, from repeating the run and watching it afterwards.
//!
//! It is not part of the run: no sample, no digest and no file of the run contains any of it.

use std::collections::BTreeMap;

use crate::key::RecordingKey;
use crate::units::Nanos;

/// Returns true if the lateness of each arrival is known for such recordings: those of a timer's
/// thread, and of an interrupt's hard handler.
pub fn are_told_of(key: &RecordingKey) -> bool {
    key.probe != "irq" || matches!(key.variant.as_str(), "hard" | "idle hard")
}

/// Returns true if samples of such recordings can be aimed. A device's interrupts cannot: they
/// come by its own clock, at one interval.
pub fn can_be_aimed(key: &RecordingKey) -> bool {
    key.probe != "irq"
}

/// Every arrival of a step, in virtual time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// The step's number, from 0.
    pub step: u32,
    /// The reason why not every arrival is known; none if every one is.
    pub gap: Option<String>,
    /// The amount of time that was examined: each nanosecond is one moment.
    pub time: Nanos,
    /// The greatest lateness of arrivals in a given share of that time, smallest share first.
    pub quantiles: Vec<(f64, Nanos)>,
    /// The lateness of the latest of all arrivals, as predicted.
    pub worst: Nanos,
    /// The function that ran for most of the wait; none if no place is that late.
    pub function: Option<String>,
    /// The number of places at which a sample was to be aimed.
    pub aims: usize,
    /// The lateness of the latest aimed sample, which is proved. None if no sample was aimed.
    pub reached: Option<Nanos>,
    /// The function that ran for most of that sample's wait.
    pub reached_function: Option<String>,
    /// The time for which something was off from where the sample was due, as predicted, and that
    /// for which interrupts were handled, its own included; none if its story is not told.
    pub reached_parts: Option<(Nanos, Nanos)>,
    /// The latest sample that was aimed together with a second timer, whose interrupt came into the
    /// sample's path; none if there was none.
    pub with_second: Option<WithSecond>,
    /// True if an arrival may change what follows, so that `worst` is only a forecast.
    pub is_forecast: bool,
    /// The longest time that each function ran within one stretch that keeps threads waiting. Only
    /// the functions that ran for most of such a stretch are included.
    pub functions: BTreeMap<String, Nanos>,
    /// The longest time that each function ran within one section of the whole step, also while its
    /// load begins and ends, where no sample is taken. None if nobody looked.
    #[cfg(feature = "workstation")]
    pub in_step: Option<BTreeMap<String, Nanos>>,
}

/// A sample that was aimed together with a second timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithSecond {
    /// The lateness of the sample.
    pub late: Nanos,
    /// The time by which the second timer was due after the sample's own deadline.
    pub behind: Nanos,
    /// The time for which something was off, and the time for which interrupts were handled, the
    /// sample's own included; none if its story is not told.
    pub parts: Option<(Nanos, Nanos)>,
}

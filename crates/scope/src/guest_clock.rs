// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts instructions to time.

use std::num::{NonZeroU32, NonZeroU64};

use punctual_model::{Nanos, Run};

/// The time that an instruction takes in the guest's own time.
///
/// Each takes a fixed number of virtual nanoseconds, and the time stamp counter counts those. The
/// guest has measured the rate of that counter: at boot, off by a few millionths, and once more and
/// better in its second second. Its nanoseconds are longer or shorter by as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestClock {
    ns_per_insn: NonZeroU32,
    /// The counter's rate, as the guest measured it, in kHz.
    khz: NonZeroU64,
}

/// The counter's real rate, in kHz: one tick per virtual nanosecond.
const REAL_KHZ: i128 = 1_000_000;

impl GuestClock {
    /// Creates the clock of a run's guest from the rate that the target read back or, for runs from
    /// before it did, from the last rate that the kernel printed. The error is the reason why it is
    /// not known.
    pub fn of_run(run: &Run) -> Result<Self, String> {
        let clock = run.clock().ok_or("it was measured in real time")?;
        let read_back = run.provenance.as_ref().and_then(|found| found.tsc_khz);
        let khz = read_back.or_else(|| run.console.lines().rev().find_map(rate));
        let khz = khz.ok_or(
            "it is not known at which rate its kernel takes the time stamp counter to run: \
             measure again",
        )?;
        Self::new(clock.ns_per_insn, khz)
    }

    /// Creates a clock in which an instruction takes this many virtual nanoseconds, and whose
    /// counter the guest takes to run at this rate, in kHz.
    pub fn new(ns_per_insn: u32, khz: u64) -> Result<Self, String> {
        Ok(Self {
            ns_per_insn: NonZeroU32::new(ns_per_insn)
                .ok_or("expected the time of an instruction, found 0 ns")?,
            khz: NonZeroU64::new(khz)
                .ok_or("expected the rate of the time stamp counter, found 0 kHz")?,
        })
    }

    /// Returns the time that this many instructions take, rounded to a nanosecond.
    pub fn time(self, instructions: u64) -> Nanos {
        let ticks = i128::from(instructions) * i128::from(self.ns_per_insn.get());
        let khz = i128::from(self.khz.get());
        Nanos(i64::try_from((ticks * REAL_KHZ + khz / 2) / khz).unwrap_or(i64::MAX))
    }

    /// Returns the number of instructions that fit into a time.
    pub fn instructions(self, time: Nanos) -> u64 {
        let ticks = i128::from(time.0.max(0)) * i128::from(self.khz.get()) / REAL_KHZ;
        u64::try_from(ticks / i128::from(self.ns_per_insn.get())).unwrap_or(u64::MAX)
    }
}

/// Returns the rate in a line of the kernel's output, in kHz.
fn rate(line: &str) -> Option<u64> {
    measured(line).or_else(|| told(line))
}

/// Returns the rate of a counter if the machine tells it to its kernel, which then shows two digits
/// after the point and measures nothing.
fn told(line: &str) -> Option<u64> {
    let (_, said) = line.split_once("arch_timer: ")?;
    let (_, rate) = said.split_once(" running at ")?;
    let (whole, part) = rate.split_once("MHz")?.0.split_once('.')?;
    format!("{whole}{part}0").parse().ok()
}

/// Returns the rate of a counter that the kernel measures: three digits follow the point.
fn measured(line: &str) -> Option<u64> {
    let (_, said) = line.split_once("tsc: ")?;
    let refined = || said.strip_prefix("Refined TSC clocksource calibration: ");
    let rest = said.strip_prefix("Detected ").or_else(refined)?;
    let (whole, part) = rest.split_once(" MHz")?.0.split_once('.')?;
    format!("{whole}{part}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guests_nanoseconds_are_those_of_its_clock() {
        let clock = GuestClock::new(2, 999_993).unwrap();
        assert_eq!(clock.time(1_000_000), Nanos(2_000_014));
        assert_eq!(clock.instructions(Nanos(2_000_014)), 999_999);
        assert_eq!(GuestClock::new(1, 1_000_000).unwrap().time(7), Nanos(7));
        assert_eq!(clock.instructions(Nanos(-1)), 0);
    }

    #[test]
    fn what_no_clock_can_be_is_an_error_and_what_is_far_too_long_is_no_panic() {
        assert!(GuestClock::new(0, 1).unwrap_err().contains("0 ns"));
        assert!(GuestClock::new(1, 0).unwrap_err().contains("0 kHz"));
        let slow = GuestClock::new(u32::MAX, 1).unwrap();
        assert_eq!(slow.time(u64::MAX), Nanos(i64::MAX));
        let fast = GuestClock::new(1, u64::MAX).unwrap();
        assert_eq!(fast.instructions(Nanos(i64::MAX)), u64::MAX);
    }

    #[test]
    fn the_kernel_says_the_rate_and_the_last_that_it_says_counts() {
        let rate = |said: &str| rate(&format!("[    0.000000] tsc: {said}"));
        assert_eq!(rate("Fast TSC calibration using PIT"), None);
        assert_eq!(rate("Detected 999.993 MHz processor"), Some(999_993));
        let refined = "Refined TSC clocksource calibration: 999.999 MHz";
        assert_eq!(rate(refined), Some(999_999));
        assert_eq!(rate("Detected 0.000 MHz processor"), Some(0));
        let told = "[    0.000000] arch_timer: cp15 timer(s) running at 1000.00MHz (virt).";
        assert_eq!(super::rate(told), Some(1_000_000));
    }
}

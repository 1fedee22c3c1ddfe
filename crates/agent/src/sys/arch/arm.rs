// SPDX-License-Identifier: MIT OR Apache-2.0
//! 32-bit ARM.

pub use super::without_bench::*;

/// The reason why a program is not told that it was interrupted.
pub const NOT_TOLD: &str = "an ARM processor does not tell a program that it was interrupted";

/// A further name of the clock's line in `/proc/interrupts`: ARM's first multicore processors
/// have a timer of their own.
pub const TIMER: &str = " twd";

/// Handlers of interrupts of which each CPU has its own. An older GIC has no name in sysfs.
pub const OF_EACH_CPU: &[&str] = &["IPI", "arch_timer", "twd"];

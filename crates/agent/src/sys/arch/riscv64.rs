// SPDX-License-Identifier: MIT OR Apache-2.0
//! 64-bit RISC-V.

pub use super::without_bench::*;

/// The reason why a program is not told that it was interrupted.
pub const NOT_TOLD: &str = "a RISC-V processor does not tell a program that it was interrupted";

/// The name of the clock's line in `/proc/interrupts`.
pub const TIMER: &str = "riscv-timer";

/// Handlers of interrupts of which each CPU has its own.
pub const OF_EACH_CPU: &[&str] = &["IPI", "riscv-timer", "riscv-pmu"];

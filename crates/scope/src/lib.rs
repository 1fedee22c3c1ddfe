// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scope: why was this sample late?
//!
//! The virtual bench is deterministic, and QEMU shows a plugin each instruction without changing
//! any. So a sample of a run can be repeated while every instruction is watched. [`repeat`] does
//! that, [`walk`] follows the plugin's output, and [`breakdown`] breaks it down.
#![forbid(unsafe_code)]

mod arch;
pub mod arrivals;
pub mod audit;
mod blocks;
pub mod bound;
pub mod breakdown;
pub mod captured;
mod cycle;
mod decode;
pub mod error;
pub mod explain;
pub mod guest_clock;
mod lines;
mod masks;
mod names;
pub mod observe;
pub mod pasted;
mod pipe;
mod preemptibility;
mod probes;
pub mod profile;
pub mod repeat;
pub mod survey;
pub mod symbols;
pub mod tally;
mod user_symbols;
mod walk;
mod windows;

pub use lines::FileLines;
pub use names::is_entry;

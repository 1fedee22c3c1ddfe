// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every reader of bytes that Punctual did not write itself, or that a guest may have forged,
//! is given sound bytes with small damage. It must not panic, and takes memory and time in
//! proportion to its input.
//!
//! ```text
//! cargo test --package punctual-fuzz                     a short round
//! cargo run --release --package punctual-fuzz -- --inputs 100000000 frames
//! ```
//!
//! Input `n` of a seed is always the same, so that a failure can be repeated: `--from n`.
#![forbid(unsafe_code)]

mod mutate;
mod round;
mod targets;

pub use round::{Found, Round};

/// A reader, and bytes that it accepts.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Sound inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Reads an input, and says whether it was accepted; panics where what came out is wrong.
    pub run: fn(&[u8]) -> bool,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    targets::model::BOARD,
    targets::model::FRAMES,
    targets::model::PLAN,
    targets::model::RECORD,
    targets::model::STATUS,
    targets::model::SUITE,
    targets::trace::TRACE,
    targets::formats::FORMATS,
    targets::formats::FTRACE,
    targets::kernels::APT,
    targets::kernels::ELF,
    targets::kernels::IMAGE,
    targets::kernels::INITRAMFS,
    targets::kernels::KCONFIG,
    targets::kernels::MODULE,
    targets::calls::GRAMMAR,
    targets::calls::PROGRAM,
    targets::bench::CONSOLE,
    targets::bench::LABGRID,
    targets::bench::QMP,
    targets::doctor::MACHINE,
    targets::scope::CLOCK,
    targets::scope::KALLSYMS,
    targets::scope::LINES,
    targets::scope::PASTED,
    targets::published::CLAIMS,
    targets::published::PUBLISHED,
    targets::report::EXTREMES,
    targets::report::REPORT,
    targets::runner::FILES,
    targets::runner::IMPORT,
    targets::runner::SQUEUE,
    targets::serve::ACCESS,
    targets::serve::QUERY,
    targets::store::STORED,
    targets::exchange::EXPORT,
    targets::exchange::WITNESS,
];

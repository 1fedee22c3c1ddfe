// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions that do nothing and show the position of the program.
//!
//! Each is one instruction with a number of its own, which only a watcher of instructions (the
//! scope's plugin) notices. They are always there, so that a program that is
//! watched and one that is not are the same. Where there are no guests, nobody watches, and
//! there are no markers.

use super::arch;

/// Marks that a step of the plan begins.
#[inline]
pub fn step() {
    arch::mark::<0x01>();
}

/// Marks that the plan was carried out.
#[inline]
pub fn end() {
    arch::mark::<0x02>();
}

/// Marks that a sample may begin from here on.
///
/// Its number is the number of samples taken before it in this step. If the clock is read
/// all the time, and only some readings end a sample, the marker is before each: a sample begins
/// after the last but one.
#[inline]
pub fn armed() {
    arch::mark::<0x10>();
}

/// Marks that the armed sample is taken: the clock was read before. If none is armed, it means
/// nothing.
#[inline]
pub fn taken() {
    arch::mark::<0x20>();
}

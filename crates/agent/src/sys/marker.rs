// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions that do nothing and say where the program is.
//!
//! Each is one instruction with a number of its own, which nobody but a watcher of instructions
//! (the scope's plugin) takes notice of. They are always there, so that a program that is
//! watched and one that is not are the same. Where there are no guests, nobody watches, and
//! there is none.

use super::arch;

/// A step of the plan begins.
#[inline]
pub fn step() {
    arch::mark::<0x01>();
}

/// The plan is carried out.
#[inline]
pub fn end() {
    arch::mark::<0x02>();
}

/// From here on there may be a sample.
///
/// It has the number of those that were taken before in this step. Where the clock is read
/// all the time, and only some readings end a sample, this is before each: a sample begins
/// behind the last but one.
#[inline]
pub fn armed() {
    arch::mark::<0x10>();
}

/// The armed sample is taken: the clock was read before. Where none is armed this says
/// nothing.
#[inline]
pub fn taken() {
    arch::mark::<0x20>();
}

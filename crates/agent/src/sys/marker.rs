// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions that do nothing and say where the program is.
//!
//! Each is one `nop` with an address of its own, which nobody but a watcher of instructions
//! (the scope's plugin) takes notice of. They are always there, so that a program that is
//! watched and one that is not are the same.

/// A step of the plan begins.
#[inline]
pub fn step() {
    x86::mark::<0x01>();
}

/// The plan is carried out.
#[inline]
pub fn end() {
    x86::mark::<0x02>();
}

/// From here on there may be a sample.
///
/// It has the number of those that were taken before in this step. Where the clock is read
/// all the time, and only some readings end a sample, this is before each: a sample begins
/// behind the last but one.
#[inline]
pub fn armed() {
    x86::mark::<0x10>();
}

/// The armed sample is taken: the clock was read before. Where none is armed this says
/// nothing.
#[inline]
pub fn taken() {
    x86::mark::<0x20>();
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;

    #[inline]
    pub fn mark<const KIND: u8>() {
        // SAFETY: `nop` with an operand computes its address and touches nothing. What is
        // behind it may rely on what is before it being done: hence no `nomem`.
        unsafe {
            asm!(
                ".byte 0x0f, 0x1f, 0x80, {kind}, 0x50, 0x4e, 0x43",
                kind = const KIND,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    pub fn mark<const KIND: u8>() {}
}

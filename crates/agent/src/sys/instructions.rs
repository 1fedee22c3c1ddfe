// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions whose number is known, so that a measurement of them can be checked.

use std::arch::asm;

/// Executes 1,000 instructions that do nothing.
#[inline]
pub fn thousand() {
    // SAFETY: `nop` does nothing.
    unsafe {
        asm!(
            ".rept 1000",
            "nop",
            ".endr",
            options(nomem, nostack, preserves_flags)
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions whose number is known: what a measurement of them must find.

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

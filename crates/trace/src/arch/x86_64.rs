// SPDX-License-Identifier: MIT OR Apache-2.0
//! x86-64.

/// `nopl 0x434e50KK(%rax)`: seven bytes, of which the fourth is the number.
pub fn marked(code: &[u8]) -> Option<u8> {
    match code {
        [0x0f, 0x1f, 0x80, kind, 0x50, 0x4e, 0x43] => Some(*kind),
        _ => None,
    }
}

/// Returns true if an instruction is a plain `mov` between a register and memory (or registers).
///
/// Only accesses of these are reported. QEMU 7.2 keeps the callbacks of an instruction that needs
/// one of QEMU's helpers (`cmpxchg`, `popf`, …) in its CPU's state, and may call them once more
/// after it has dropped them.
pub fn is_move(code: &[u8]) -> bool {
    let rex = code
        .first()
        .is_some_and(|first| (0x40..0x50).contains(first));
    matches!(code.get(usize::from(rex)), Some(0x89 | 0x8b))
}

/// Returns true if an instruction is a plain `mov` of a constant to memory (or a register). It can
/// release a lock that another CPU may wait for.
pub fn is_store(code: &[u8]) -> bool {
    matches!(code.first(), Some(0xc6 | 0xc7))
}

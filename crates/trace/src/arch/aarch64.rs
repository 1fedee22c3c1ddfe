// SPDX-License-Identifier: MIT OR Apache-2.0
//! arm64. Encodings are those of the Arm Architecture Reference Manual (DDI 0487), chapter C4.1.

fn word(code: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(code.try_into().ok()?))
}

/// `movz xzr, #0x50KK, lsl #48`: a value moved to the zero register is dropped.
pub fn marked(code: &[u8]) -> Option<u8> {
    let word = word(code)?;
    let is_one = word & 0xffff_e01f == 0xd2ea_001f;
    is_one.then_some((word >> 5) as u8)
}

/// Returns true if an instruction is a plain load or store of general registers, one or a pair, at
/// a register's value plus a constant: it needs none of QEMU's helpers (see x86-64).
pub fn is_move(code: &[u8]) -> bool {
    let Some(word) = word(code) else { return false };
    let pair = word & 0x3e00_0000 == 0x2800_0000;
    let unsigned = word & 0x3f00_0000 == 0x3900_0000;
    // Bits 11:10 are 10 where privileges are those of user space.
    let signed = word & 0x3f20_0000 == 0x3800_0000 && word & 0xc00 != 0x800;
    pair || unsigned || signed
}

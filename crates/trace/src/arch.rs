// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of each architecture: its markers, and the accesses to memory that QEMU reports
//! reliably.

mod aarch64;
mod x86_64;

/// An architecture whose instructions are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arch {
    /// x86-64.
    #[default]
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Arch {
    /// All architectures.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Returns its name, as the kernel and QEMU use it.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Returns the architecture with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|arch| arch.name() == name)
    }

    /// Returns the number of the marker that an instruction is, if it has the form of one.
    pub(crate) fn marked(self, code: &[u8]) -> Option<u8> {
        match self {
            Self::X86_64 => x86_64::marked(code),
            Self::Aarch64 => aarch64::marked(code),
        }
    }

    /// Returns true if an instruction's accesses to memory can be reported. `stores` is true if
    /// those that only store a constant are of interest, too.
    pub(crate) fn is_told(self, code: &[u8], stores: bool) -> bool {
        match self {
            Self::X86_64 => x86_64::is_move(code) || stores && x86_64::is_store(code),
            Self::Aarch64 => aarch64::is_move(code),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marker::Marker;

    #[test]
    fn a_marker_is_known_by_its_bytes_and_nothing_else_is_one() {
        for marker in [Marker::Step, Marker::End, Marker::Armed, Marker::Taken] {
            let kind = marker.kind();
            let nop = [0x0f, 0x1f, 0x80, kind, 0x50, 0x4e, 0x43];
            // movz xzr, #0x50KK, lsl #48
            let movz = 0xd2e0_001f_u32 | (0x5000 | u32::from(kind)) << 5;
            let movz = movz.to_le_bytes();
            assert_eq!(Marker::of(&nop), Some(marker));
            assert_eq!(Marker::of(&movz), Some(marker));
            // On x86-64 the other one's first byte is an instruction by itself, or none.
            assert!([0x3f, 0x5f, 0x1f].contains(&movz[0]), "{movz:x?}");
            let to_x0 = (u32::from_le_bytes(movz) & !31).to_le_bytes();
            assert_eq!(Marker::of(&to_x0), None);
        }
        // The padding that compilers write.
        assert_eq!(Marker::of(&[0x0f, 0x1f, 0x80, 0, 0, 0, 0]), None);
        assert_eq!(Marker::of(&[0x90]), None);
        assert_eq!(Marker::of(&0xd503_201f_u32.to_le_bytes()), None);
    }

    #[test]
    fn plain_loads_and_stores_of_arm64_are_told_and_nothing_that_needs_a_helper() {
        let told = |word: u32| Arch::Aarch64.is_told(&word.to_le_bytes(), false);
        // As the assembler of binutils writes them.
        let moves = [
            0xf940_0e60, // ldr x0, [x19, #24]
            0xb900_1260, // str w0, [x19, #16]
            0xf85f_8260, // ldur x0, [x19, #-8]
            0xf840_8660, // ldr x0, [x19], #8
            0xa8c1_253d, // ldp x29, x9, [x9], #16
            0xa900_2510, // stp x16, x9, [x8]
        ];
        let others = [
            0xc85f_fc60, // ldaxr x0, [x3]
            0xf820_0041, // ldadd x0, x1, [x2]
            0xf860_6822, // ldr x2, [x1, x0]
            0x3dc0_0000, // ldr q0, [x0]
            0xad40_0400, // ldp q0, q1, [x0]
            0x9100_0400, // add x0, x0, #1
        ];
        assert_eq!(moves.map(told), [true; 6]);
        assert_eq!(others.map(told), [false; 6]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trace file: a magic number, then pieces that begin with a [`tag`]. Most of them
//! consist of words, each of which is one event, in eight bytes.
//!
//! ```text
//! 63    56 55                24 23             0
//! | 0     | block             | instructions   |  a block ran, as far as that
//! | 1     | insn   | address, low 48 bits      |  that instruction accessed memory
//! | 2     | 0                 | kind           |  a marker
//! | 3     | 0                 | CPU            |  a CPU gets its turn
//! ```
//!
//! Memory accesses and markers come before the block that they belong to. Words after a turn are
//! that CPU's, up to the next turn; with only one CPU, there are no turns.

/// The first bytes of a trace.
pub(crate) const MAGIC: &[u8; 8] = b"PNCTRC1\n";

/// Tags of the pieces of a trace.
pub(crate) mod tag {
    pub const BLOCK: u8 = b'B';
    pub const WINDOW: u8 = b'W';
    /// The window that follows belongs to this CPU.
    pub const OF_CPU: u8 = b'C';
    pub const WORDS: u8 = b'X';
    pub const WHOLE: u8 = b'R';
    pub const END: u8 = b'E';
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A block ran.
    Ran {
        /// Its number.
        block: u32,
        /// The number of its instructions that were begun, at most 2^24 - 1.
        instructions: u32,
    },
    /// An instruction of the block that follows accessed memory.
    Memory {
        /// The number of the instruction in the block, from 0.
        insn: u8,
        /// The address.
        address: u64,
    },
    /// A marker was reached.
    Marker(u8),
    /// This CPU has the turn.
    Turn(u32),
}

const RAN: u64 = 0;
const MEMORY: u64 = 1;
const MARKER: u64 = 2;
const TURN: u64 = 3;

/// The most instructions of a block that a word has room for.
const INSTRUCTIONS_MAX: u32 = 0xff_ffff;

impl Word {
    /// Creates the word for a block that ran; `None` if there is no room for the number.
    pub fn ran(block: u32, instructions: u64) -> Option<Self> {
        let instructions = u32::try_from(instructions).ok();
        let instructions = instructions.filter(|count| *count <= INSTRUCTIONS_MAX)?;
        Some(Self::Ran {
            block,
            instructions,
        })
    }

    /// Encodes the word for writing.
    pub fn encode(self) -> u64 {
        match self {
            Self::Ran {
                block,
                instructions,
            } => RAN << 56 | u64::from(block) << 24 | u64::from(instructions),
            Self::Memory { insn, address } => {
                MEMORY << 56 | u64::from(insn) << 48 | address & 0xffff_ffff_ffff
            }
            Self::Marker(kind) => MARKER << 56 | u64::from(kind),
            Self::Turn(cpu) => TURN << 56 | u64::from(cpu),
        }
    }

    /// Decodes a word that was read; `None` if it is none.
    pub fn decode(word: u64) -> Option<Self> {
        match word >> 56 {
            RAN => Some(Self::Ran {
                block: (word >> 24) as u32,
                instructions: (word as u32) & INSTRUCTIONS_MAX,
            }),
            MEMORY => Some(Self::Memory {
                insn: (word >> 48) as u8,
                // Addresses are canonical: bit 47 stands for all above it.
                address: ((word << 16) as i64 >> 16) as u64,
            }),
            MARKER => Some(Self::Marker(word as u8)),
            TURN => Some(Self::Turn(word as u32)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_their_travel() {
        for word in [
            Word::Ran {
                block: u32::MAX,
                instructions: INSTRUCTIONS_MAX,
            },
            Word::Memory {
                insn: 255,
                address: 0xffff_8880_0123_4567,
            },
            Word::Memory {
                insn: 0,
                address: 0x7fff_dead_beef,
            },
            Word::Marker(0x2f),
            Word::Turn(7),
        ] {
            assert_eq!(Word::decode(word.encode()), Some(word));
        }
        assert_eq!(Word::decode(9 << 56), None);
        assert_eq!(Word::ran(1, 1 << 24), None);
        assert_eq!(Word::ran(1, 1 << 40), None);
    }
}

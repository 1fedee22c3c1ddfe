// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instructions by which the target says where it is. Each does nothing, and has a telling
//! number, which each architecture writes in its own way.

use crate::arch::Arch;

/// What a marker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A step of the plan begins.
    Step,
    /// The plan is carried out.
    End,
    /// A sample may begin behind this, or behind the one before if none was taken since.
    Armed,
    /// The armed sample is taken; where none is armed it says nothing.
    Taken,
}

impl Marker {
    /// The marker that an instruction is, if it is one. What is one on one architecture is no
    /// instruction of another.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let mut kinds = Arch::ALL.into_iter().filter_map(|arch| arch.marked(bytes));
        kinds.find_map(Self::from_kind)
    }

    /// The marker with this number.
    pub fn from_kind(kind: u8) -> Option<Self> {
        match kind {
            0x01 => Some(Self::Step),
            0x02 => Some(Self::End),
            0x10 => Some(Self::Armed),
            0x20 => Some(Self::Taken),
            _ => None,
        }
    }

    /// Its number.
    pub fn kind(self) -> u8 {
        match self {
            Self::Step => 0x01,
            Self::End => 0x02,
            Self::Armed => 0x10,
            Self::Taken => 0x20,
        }
    }
}

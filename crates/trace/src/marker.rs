// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instructions by which the target reports its position. Each does nothing, and carries a
//! number, which each architecture writes in its own way.

use crate::arch::Arch;

/// The meaning of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A step of the plan begins.
    Step,
    /// The plan was carried out.
    End,
    /// A sample may begin after this, or after the previous one if none was taken since.
    Armed,
    /// The armed sample is taken; if none is armed, the marker means nothing.
    Taken,
}

impl Marker {
    /// Returns the marker that an instruction is, if it is one. A marker of one architecture is no
    /// instruction of another.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let mut kinds = Arch::ALL.into_iter().filter_map(|arch| arch.marked(bytes));
        kinds.find_map(Self::from_kind)
    }

    /// Returns the marker with this number.
    pub fn from_kind(kind: u8) -> Option<Self> {
        match kind {
            0x01 => Some(Self::Step),
            0x02 => Some(Self::End),
            0x10 => Some(Self::Armed),
            0x20 => Some(Self::Taken),
            _ => None,
        }
    }

    /// Returns its number.
    pub fn kind(self) -> u8 {
        match self {
            Self::Step => 0x01,
            Self::End => 0x02,
            Self::Armed => 0x10,
            Self::Taken => 0x20,
        }
    }
}

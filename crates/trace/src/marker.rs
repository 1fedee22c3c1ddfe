// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instructions by which the target says where it is: `nop` with a telling address.
//!
//! `nopl 0x434e50KK(%rax)`: seven bytes, of which the fourth is the kind.

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
    /// The marker that an instruction is, if it is one.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x0f, 0x1f, 0x80, kind, 0x50, 0x4e, 0x43] => Self::from_kind(*kind),
            _ => None,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_known_by_its_bytes_and_nothing_else_is_one() {
        for marker in [Marker::Step, Marker::End, Marker::Armed, Marker::Taken] {
            let bytes = [0x0f, 0x1f, 0x80, marker.kind(), 0x50, 0x4e, 0x43];
            assert_eq!(Marker::of(&bytes), Some(marker));
        }
        // The padding that compilers write.
        assert_eq!(Marker::of(&[0x0f, 0x1f, 0x80, 0, 0, 0, 0]), None);
        assert_eq!(Marker::of(&[0x90]), None);
    }
}

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
    /// From here on a sample of this lane can be late.
    Armed(u8),
    /// The armed sample of this lane is taken.
    Taken(u8),
}

/// How many kinds of samples a step can tell apart.
pub const LANES: usize = 16;

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
            0x10..0x20 => Some(Self::Armed(kind & 0xf)),
            0x20..0x30 => Some(Self::Taken(kind & 0xf)),
            _ => None,
        }
    }

    /// Its number.
    pub fn kind(self) -> u8 {
        match self {
            Self::Step => 0x01,
            Self::End => 0x02,
            Self::Armed(lane) => 0x10 | lane,
            Self::Taken(lane) => 0x20 | lane,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_known_by_its_bytes_and_nothing_else_is_one() {
        for marker in [
            Marker::Step,
            Marker::End,
            Marker::Armed(3),
            Marker::Taken(15),
        ] {
            let bytes = [0x0f, 0x1f, 0x80, marker.kind(), 0x50, 0x4e, 0x43];
            assert_eq!(Marker::of(&bytes), Some(marker));
        }
        // The padding that compilers write.
        assert_eq!(Marker::of(&[0x0f, 0x1f, 0x80, 0, 0, 0, 0]), None);
        assert_eq!(Marker::of(&[0x90]), None);
    }
}

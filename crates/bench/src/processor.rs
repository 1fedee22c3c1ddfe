// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processors of boards.

use std::fmt;

use punctual_model::Architecture;

/// A processor for which there is a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// A processor that also has a machine on the virtual bench.
    OfGuests(Architecture),
    /// 32-bit ARM, from version 7 on, with floating point.
    Armv7,
    /// 64-bit RISC-V.
    Riscv64,
}

impl Processor {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::OfGuests(Architecture::Amd64),
        Self::OfGuests(Architecture::Arm64),
        Self::Armv7,
        Self::Riscv64,
    ];

    /// The name that `./build --targets` and the file name of its target use, such as `aarch64`.
    /// `tools/machine` uses the same names.
    pub fn machine(self) -> &'static str {
        match self {
            Self::OfGuests(architecture) => architecture.machine(),
            Self::Armv7 => "armv7",
            Self::Riscv64 => "riscv64",
        }
    }

    /// The output of `uname -m` there.
    pub fn uname(self) -> &'static str {
        match self {
            Self::Armv7 => "armv7l",
            other => other.machine(),
        }
    }

    /// The processor with this output of `uname -m`. A 64-bit ARM with a 32-bit system says
    /// `armv8l`.
    pub fn that_says(machine: &str) -> Option<Self> {
        match machine {
            "armv7l" | "armv8l" => Some(Self::Armv7),
            "riscv64" => Some(Self::Riscv64),
            other => Architecture::of_machine(other).map(Self::OfGuests),
        }
    }
}

impl From<Architecture> for Processor {
    fn from(architecture: Architecture) -> Self {
        Self::OfGuests(architecture)
    }
}

/// The form that people write: `x86-64`, `arm64`, `armv7`.
impl fmt::Display for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfGuests(architecture) => architecture.fmt(f),
            other => f.write_str(other.machine()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_by_what_uname_says() {
        for one in Processor::ALL {
            assert_eq!(Processor::that_says(one.uname()), Some(one));
        }
        assert_eq!(Processor::that_says("armv8l"), Some(Processor::Armv7));
        assert_eq!(Processor::that_says("armv6l"), None);
        for architecture in Architecture::ALL {
            assert!(Processor::ALL.contains(&architecture.into()));
        }
    }
}

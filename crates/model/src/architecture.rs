// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor architectures for which there is a target.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A processor architecture for which there is a target, and a machine on the virtual bench.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Architecture {
    /// 64-bit x86.
    #[default]
    Amd64,
    /// 64-bit ARM.
    Arm64,
}

impl Architecture {
    /// All architectures.
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// Returns Debian's name for it, which the files in `kernels/` use: `amd64`, `arm64`.
    pub fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// Returns its name in `uname -m`, with which Rust's targets begin: `x86_64`, `aarch64`.
    pub fn machine(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// Returns the architecture with this name in `uname -m`.
    pub fn of_machine(machine: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.machine() == machine)
    }

    /// Returns true if it is not the architecture that punctual itself runs on.
    pub fn is_foreign(self) -> bool {
        self.machine() != std::env::consts::ARCH
    }
}

/// Prints the usual spelling: `x86-64`, `arm64`.
impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Amd64 => "x86-64",
            Self::Arm64 => "arm64",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_by_what_uname_says() {
        for one in Architecture::ALL {
            assert_eq!(Architecture::of_machine(one.machine()), Some(one));
            let text = format!("\"{}\"", one.debian());
            assert_eq!(serde_json::to_string(&one).unwrap(), text);
        }
        assert_eq!(Architecture::of_machine("armv7l"), None);
        let foreign = |one: &Architecture| one.is_foreign();
        assert_eq!(
            Architecture::ALL.iter().filter(|one| !foreign(one)).count(),
            1
        );
    }
}

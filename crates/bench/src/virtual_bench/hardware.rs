// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual machines, one file for each architecture.

mod amd64;
mod arm64;

use punctual_model::Architecture;

/// What the virtual machine of an architecture is, beside what all have in common.
pub struct Hardware {
    /// The program that emulates it.
    pub program: &'static str,
    /// The package of Debian that has this program.
    pub package: &'static str,
    /// Boot arguments that every subject gets.
    pub boot: &'static str,
    /// Its devices and clocks, as QEMU's arguments.
    pub devices: &'static [&'static str],
    /// The ports between the guest and the bench.
    pub ports: &'static [&'static str],
    /// What brings more CPUs than one.
    pub further_cpus: fn(u32) -> Vec<String>,
    /// Whether they come with the board, for which QEMU then waits to be told how many they
    /// are, rather than as devices of their own.
    pub cpus_of_board: bool,
}

/// The virtual machine of this architecture.
pub fn of(architecture: Architecture) -> &'static Hardware {
    match architecture {
        Architecture::Amd64 => &amd64::AMD64,
        Architecture::Arm64 => &arm64::ARM64,
    }
}

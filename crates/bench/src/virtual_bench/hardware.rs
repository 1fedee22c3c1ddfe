// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual machines, with one file for each architecture.

mod amd64;
mod arm64;

use punctual_model::Architecture;

/// The parts of an architecture's virtual machine that are not common to all.
pub struct Hardware {
    /// The program that emulates the machine.
    pub program: &'static str,
    /// The Debian package that contains this program.
    pub package: &'static str,
    /// Boot arguments that every subject gets.
    pub boot: &'static str,
    /// Its devices and clocks, as QEMU's arguments.
    pub devices: &'static [&'static str],
    /// The ports between the guest and the bench.
    pub ports: &'static [&'static str],
    /// Returns the arguments that add further CPUs.
    pub further_cpus: fn(u32) -> Vec<String>,
    /// True if further CPUs come with the board rather than as devices of their own. QEMU then
    /// waits to be told their number.
    pub cpus_of_board: bool,
}

/// The virtual machine of this architecture.
pub fn of(architecture: Architecture) -> &'static Hardware {
    match architecture {
        Architecture::Amd64 => &amd64::AMD64,
        Architecture::Arm64 => &arm64::ARM64,
    }
}

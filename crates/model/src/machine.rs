// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine that a run was made on: everything needed to repeat the run there.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::network::Card;

/// The machine that a run was made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "bench", rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MachineRecord {
    /// QEMU with a clock that counts instructions.
    Virtual(VirtualMachine),
    /// The workstation itself or a board, in real time.
    Host(HostMachine),
}

/// A virtual machine: everything except the plan that decides what its guest does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VirtualMachine {
    /// The kernel's release, as its modules have it; `None` if it was not noted.
    pub release: Option<String>,
    /// The SHA-256 of the kernel's image, lower-case hexadecimal digits.
    pub image_sha256: String,
    /// The kernel's origin: a package and its version, or a file.
    pub origin: String,
    /// The initramfs's SHA-256, lower-case hexadecimal digits.
    pub initramfs_sha256: String,
    /// The kernel's whole command line.
    pub cmdline: String,
    /// Memory, in mebibytes.
    pub memory_mib: u32,
    /// The number of its CPUs.
    pub cpus: u32,
    /// The longest time that one of several CPUs runs while the others wait for their turn, in
    /// microseconds of virtual time; `None` with one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_us: Option<u32>,
    /// The two cards of its wire; `None` without a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Card>,
    /// Nanoseconds of virtual time per instruction.
    pub ns_per_insn: u32,
    /// QEMU's own description of itself.
    pub qemu: String,
    /// QEMU's command line, with file names in place of paths.
    pub qemu_command: String,
}

/// The clock of a virtual machine. Times of different clocks are not compared: the time of
/// one of several CPUs includes the turns of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualClock {
    /// Nanoseconds of virtual time per instruction.
    pub ns_per_insn: u32,
    /// The number of CPUs whose instructions it counts.
    pub cpus: u32,
    /// The longest turn of one of several CPUs, in microseconds.
    pub turn_us: Option<u32>,
}

impl Display for VirtualClock {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns per instruction", self.ns_per_insn)?;
        if self.cpus > 1 {
            write!(f, " of any of {} CPUs", self.cpus)?;
        }
        match self.turn_us {
            Some(turn) => write!(f, ", in turns of {turn} µs"),
            None => Ok(()),
        }
    }
}

/// A host in real time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostMachine {
    /// Its name.
    pub host: String,
    /// The kernel's release; `None` if it was not noted.
    pub release: Option<String>,
    /// The number of its CPUs; `None` if it was not noted.
    pub cpus: Option<u32>,
    /// The SHA-256 of the target program; `None` if it could not be read.
    pub target_sha256: Option<String>,
    /// The address by which it was reached, `[USER@]HOST[:DIRECTORY]`, or
    /// `labgrid:PLACE[:DIRECTORY]`; `None` for the workstation itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<String>,
}

impl MachineRecord {
    /// Returns the bench's name: `virtual`, `host`.
    pub fn bench(&self) -> &'static str {
        match self {
            Self::Virtual(_) => "virtual",
            Self::Host(_) => "host",
        }
    }

    /// Returns the virtual machine, if it is one.
    pub fn as_virtual(&self) -> Option<&VirtualMachine> {
        match self {
            Self::Virtual(machine) => Some(machine),
            Self::Host(_) => None,
        }
    }

    /// Returns its clock; `None` in real time.
    pub fn clock(&self) -> Option<VirtualClock> {
        self.as_virtual().map(|machine| VirtualClock {
            ns_per_insn: machine.ns_per_insn,
            cpus: machine.cpus,
            turn_us: machine.turn_us,
        })
    }

    /// Returns the SHA-256 of the kernel's image; `None` if the kernel is the host's own.
    pub fn image_sha256(&self) -> Option<&str> {
        self.as_virtual().map(|machine| &*machine.image_sha256)
    }

    /// Returns all of it as pairs of a name and a text, for people to read.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
        match self {
            Self::Virtual(machine) => [
                ("qemu", machine.qemu.clone()),
                ("qemu command line", machine.qemu_command.clone()),
                ("kernel image sha256", machine.image_sha256.clone()),
                ("kernel origin", machine.origin.clone()),
                ("initramfs sha256", machine.initramfs_sha256.clone()),
                ("memory", format!("{} MiB", machine.memory_mib)),
                ("cpus", machine.cpus.to_string()),
            ]
            .into_iter()
            .chain(machine.turn_us.map(|turn| ("turn", format!("{turn} us"))))
            .collect(),
            Self::Host(machine) => [
                ("host", machine.host.clone()),
                ("cpus", known(&machine.cpus.map(|cpus| cpus.to_string()))),
                ("target sha256", known(&machine.target_sha256)),
            ]
            .into_iter()
            .chain(machine.ssh.clone().map(|ssh| ("reached by ssh", ssh)))
            .collect(),
        }
    }
}

impl Default for MachineRecord {
    fn default() -> Self {
        Self::Host(HostMachine::default())
    }
}

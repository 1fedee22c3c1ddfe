// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a virtual subject, as QEMU's command line.
//!
//! Everything that can change what the guest does is in a [`Machine`], and everything in a
//! [`Machine`] is in its [key](Machine::key). Paths are not: the same bytes elsewhere are
//! the same machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::hardware::{self, Hardware};
use super::qemu::Qemu;
use punctual_kernels::Kernel;
use punctual_kernels::checksum;
use punctual_model::Nanos;
use punctual_model::network::Card;

/// The clock: it counts instructions, and leaps over the time that the guest sleeps.
///
/// `rr=record` makes QEMU's main loop and its virtual CPU take turns. Without it the main loop may
/// see that the CPU sleeps before the CPU's last instructions are counted, and then leaps too far:
/// by a few hundred nanoseconds, about once in a hundred sleeps, depending on the host's scheduler.
/// The recording itself is not used here.
const CLOCK: &str = "sleep=off,align=off,rr=record,rrfile=/dev/null";

/// The source of a resumed guest's devices.
pub(super) const DEVICES_STATE: &str = "exec:cat devices";

/// The boot argument that leaves all CPUs but the first to the target.
const BOOT_CPU_ONLY: &str = "maxcpus=1";

/// The most CPUs that a virtual subject can have.
pub const CPUS_MAX: u32 = 8;

/// The length of a turn unless another is asked for.
pub const TURN: Nanos = Nanos::from_micros(10);

/// The location of the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In QEMU, and lost with it.
    Fresh,
    /// In the file `memory`, so that it can be kept.
    Kept,
    /// In QEMU, as a copy on write of the file `memory`; the devices' state is in `devices`.
    Resumed,
}

/// The longest time that an instruction can be made to take, in nanoseconds.
pub const NS_PER_INSN_MAX: u32 = 1 << 10;

/// A virtual subject: everything that decides what its guest does, but the plan.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The kernel.
    pub kernel: Kernel,
    /// The whole kernel command line.
    pub cmdline: String,
    /// The initramfs.
    pub initramfs: PathBuf,
    /// The initramfs's SHA-256.
    pub initramfs_sha256: String,
    /// Memory, in mebibytes.
    pub memory_mib: u32,
    /// The number of CPUs, up to [`CPUS_MAX`].
    pub cpus: u32,
    /// The longest turn of one of several CPUs: a whole number of microseconds.
    pub turn: Nanos,
    /// The model of the two cards that a wire joins, if it has a network.
    pub network: Option<Card>,
    /// Nanoseconds of virtual time per instruction: a power of two up to
    /// [`NS_PER_INSN_MAX`].
    pub ns_per_insn: u32,
}

/// The command line of a virtual subject with `cpus` CPUs: the bench's, the kernel's, and its own
/// arguments.
pub fn cmdline(kernel: &Kernel, boot: &str, cpus: u32) -> String {
    let several = if cpus > 1 { BOOT_CPU_ONLY } else { "" };
    let common = hardware::of(kernel.architecture).boot;
    [common, several, &kernel.boot, boot]
        .iter()
        .flat_map(|part| part.split_whitespace())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Two cards and the wire between them.
///
/// - `hubport`: QEMU's hub hands a frame from one card to the other within the register access that
///   sends it, in the thread of the CPU. Nothing in this waits for the host. Hub 0 belongs to the
///   turns of several CPUs.
/// - `romfile=`: the firmware finds no boot program on the cards.
/// - `pcie-root-port`: an igb has virtual functions, which would have the places of other devices.
/// - `announce-rounds=0`: otherwise a QEMU that has resumed a guest sends frames in its name, and
///   by the host's clock.
fn wire(card: Card) -> Vec<String> {
    let mut words: Vec<String> = ["-global", "migration.announce-rounds=0"]
        .map(Into::into)
        .into();
    for end in 0..2 {
        let port = format!("hubport,id=wire{end},hubid=1");
        let mac = format!("52:54:00:00:00:0{}", end + 1);
        words.extend(["-netdev".into(), port]);
        let mut bus = String::new();
        if card == Card::Igb {
            bus = format!(",bus=port{end}");
            let root = format!("pcie-root-port,id=port{end},chassis={}", end + 1);
            words.extend(["-device".into(), root]);
        }
        let device = format!("{card},netdev=wire{end},mac={mac},romfile={bus}");
        words.extend(["-device".into(), device]);
    }
    words
}

impl Machine {
    fn hardware(&self) -> &'static Hardware {
        hardware::of(self.kernel.architecture)
    }

    /// The arguments of QEMU for it. Its files are in QEMU's working directory: `plan` and, if it
    /// is resumed, `memory` and `devices`. QEMU makes `stream` and `console` there.
    pub fn arguments(&self, memory: Memory) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = self.fixed().into_iter().map(Into::into).collect();
        let mut file = |flag: &str, path: &Path| arguments.extend([flag.into(), path.into()]);
        file("-kernel", &self.kernel.image);
        file("-initrd", &self.initramfs);
        arguments.extend(self.hardware().ports.iter().map(Into::into));
        let backend = match memory {
            Memory::Fresh => "memory-backend-ram",
            Memory::Kept => "memory-backend-file,mem-path=memory,share=on",
            Memory::Resumed => "memory-backend-file,mem-path=memory,share=off",
        };
        let object = format!("{backend},id=memory,size={}M", self.memory_mib);
        arguments.extend(["-object".into(), object.into()]);
        if memory == Memory::Resumed {
            let from = if self.is_board_made_later() {
                "defer"
            } else {
                DEVICES_STATE
            };
            arguments.extend(["-S", "-incoming", from].map(Into::into));
        }
        arguments
    }

    /// Returns true if QEMU waits to be told its CPUs before it makes the machine.
    pub(super) fn is_board_made_later(&self) -> bool {
        self.cpus > 1 && self.hardware().cpus_of_board
    }

    /// The arguments that do not depend on where the files are.
    fn fixed(&self) -> Vec<String> {
        let hardware = self.hardware();
        let devices = hardware.devices.iter();
        let mut arguments: Vec<String> = devices.map(|word| (*word).into()).collect();
        if self.cpus > 1 {
            arguments.extend((hardware.further_cpus)(self.cpus));
        }
        arguments.extend(self.network.into_iter().flat_map(wire));
        let shift = self.ns_per_insn.trailing_zeros();
        arguments.extend([
            "-icount".into(),
            format!("shift={shift},{CLOCK}"),
            "-m".into(),
            self.memory_mib.to_string(),
            "-append".into(),
            self.cmdline.clone(),
        ]);
        arguments
    }

    /// The key of its snapshot: the same for the same guest under the same QEMU, and for no other.
    pub(super) fn key(&self, qemu: &Qemu) -> String {
        let mut text = format!(
            "{}\n{}\n{}\n",
            qemu.version, self.kernel.image_sha256, self.initramfs_sha256
        );
        for word in self
            .fixed()
            .iter()
            .map(String::as_str)
            .chain(self.hardware().ports.iter().copied())
        {
            text.push_str(word);
            text.push('\n');
        }
        checksum::of_bytes(text.as_bytes())
    }

    /// The command line for a person to read, with file names for paths.
    pub fn shown(&self) -> String {
        let name = |path: &Path| {
            path.file_name()
                .map_or_else(String::new, |n| n.to_string_lossy().into_owned())
        };
        let mut words = vec![self.hardware().program.to_owned()];
        words.extend(self.fixed());
        words.extend([
            "-kernel".into(),
            name(&self.kernel.image),
            "-initrd".into(),
            name(&self.initramfs),
        ]);
        let ports = self.hardware().ports.iter();
        words.extend(ports.map(|word| (*word).to_owned()));
        let quoted = |word: String| {
            if word.contains(' ') {
                format!("'{word}'")
            } else {
                word
            }
        };
        words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}

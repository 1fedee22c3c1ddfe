// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a virtual subject is made of, as QEMU's command line.
//!
//! Everything that can change what the guest does is in a [`Machine`], and everything in a
//! [`Machine`] is in its [key](Machine::key). Paths are not: the same bytes elsewhere are
//! the same machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::qemu::Qemu;
use punctual_kernels::Kernel;
use punctual_kernels::checksum;
use punctual_model::Nanos;

/// Boot arguments that every virtual subject gets, before the kernel's and the subject's own.
///
/// - `console`, `earlyprintk`: all that the kernel says is kept, from the first line on.
/// - `nokaslr norandmaps`: addresses are the same in every boot.
/// - `panic=-1 oops=panic softlockup_panic=1 hung_task_panic=1`: what goes wrong ends the
///   guest at once.
/// - `cryptomgr.notests tsc=reliable no_timer_check lpj=1000000`: the kernel does not test
///   its ciphers, nor its clocks against one another; the machine's clocks are exact by
///   construction. This shortens the boot by 0.8 s of virtual time. `lpj` sizes `udelay`
///   loops only until the kernel knows the TSC's rate.
pub const BOOT_ARGUMENTS: &str = "console=ttyS0 earlyprintk=ttyS0 nokaslr norandmaps \
    panic=-1 oops=panic softlockup_panic=1 hung_task_panic=1 \
    cryptomgr.notests tsc=reliable no_timer_check lpj=1000000";

/// The guest's devices and clocks: no network, no disk, nothing that the host could answer
/// in its own time.
///
/// - `pc-q35`: its HPET has an interrupt line of its own, and it has PCI. The version keeps
///   the machine the same under a newer QEMU, which warns of its age since 10.2 and is to
///   drop it with 13.2 (`MACHINE_VER_DELETION` in QEMU's `boards.h`).
/// - `thread=single`: CPUs run in turn. `-smp 1`: QEMU records no clock of a machine that has
///   more; further CPUs are devices.
/// - `qemu64` has no RDRAND, so the guest has no source of chance.
/// - `clock=vm`: the real-time clock runs in virtual time, from a fixed date.
/// - `seed`: what the firmware hands to the kernel's random number generator.
/// - `ib700` with `watchdog=pause`: the guest has its machine stopped while it sleeps.
/// - `edu`: its interrupt is raised at the very instruction that asks for it.
/// - `suppress-vmdesc`, `send-configuration`: a snapshot of the devices has no other parts
///   than the devices.
const HARDWARE: &[&str] = &[
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-M",
    "pc-q35-7.2,memory-backend=memory,suppress-vmdesc=on",
    "-global",
    "migration.send-configuration=off",
    "-accel",
    "tcg,thread=single",
    "-cpu",
    "qemu64",
    "-smp",
    "1",
    "-rtc",
    "base=2026-01-01,clock=vm",
    "-seed",
    "7",
    "-nic",
    "none",
    "-no-reboot",
    "-device",
    "ib700",
    "-action",
    "watchdog=pause",
    "-device",
    "edu",
];

/// The clock: it counts instructions, and leaps over the time in which the guest sleeps.
///
/// `rr=record` has QEMU's main loop and its virtual CPU take turns. Without it the main loop
/// may see that the CPU sleeps before the CPU's last instructions are counted, and leaps so
/// much too far: by a few hundred nanoseconds, once in some hundred sleeps, as the host's
/// scheduler will have it. The recording itself is of no use here.
const CLOCK: &str = "sleep=off,align=off,rr=record,rrfile=/dev/null";

/// What brings more CPUs than one. The kernel boots with the first; the target brings up the
/// others where a run begins, so that a boot stays as repeatable as that of one CPU.
///
/// A turn of a CPU ends at the latest where a timer of the guest's time is due. `hubport`
/// leads nowhere: its filter is a timer that the guest does not see, [`Process::set_turn`].
///
/// [`Process::set_turn`]: super::qemu::Process::set_turn
fn further_cpus(cpus: u32) -> Vec<String> {
    // A later `-smp` takes the place of an earlier one.
    let sockets = format!("1,maxcpus={cpus},sockets={cpus},cores=1,threads=1");
    let turn = "hubport,id=turn,hubid=0".into();
    let mut words = vec!["-smp".into(), sockets, "-netdev".into(), turn];
    for socket in 1..cpus {
        let place = format!("socket-id={socket},core-id=0,thread-id=0");
        words.extend(["-device".into(), format!("qemu64-x86_64-cpu,{place}")]);
    }
    words
}

/// The boot argument that leaves all CPUs but the first to the target.
const BOOT_CPU_ONLY: &str = "maxcpus=1";

/// The most CPUs that a virtual subject can have.
pub const CPUS_MAX: u32 = 8;

/// How long a turn is where nothing else is asked for.
pub const TURN: Nanos = Nanos::from_micros(10);

/// The ports between the guest and the bench; the names are files in QEMU's working
/// directory.
const PORTS: &[&str] = &[
    "-chardev",
    "file,id=stream,path=stream",
    "-device",
    "isa-debugcon,iobase=0xe9,chardev=stream",
    "-chardev",
    "file,id=console,path=console",
    "-serial",
    "chardev:console",
    "-fw_cfg",
    "name=opt/punctual/plan,file=plan",
    "-qmp",
    "stdio",
];

/// Where the guest's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In QEMU, and gone with it.
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
    /// How many CPUs, up to [`CPUS_MAX`].
    pub cpus: u32,
    /// How long the turn of one of several CPUs is at most: a whole number of microseconds.
    pub turn: Nanos,
    /// Nanoseconds of virtual time per instruction: a power of two up to
    /// [`NS_PER_INSN_MAX`].
    pub ns_per_insn: u32,
}

/// The command line of a virtual subject with so many CPUs: the bench's, the kernel's, and its
/// own arguments.
pub fn cmdline(kernel: &Kernel, boot: &str, cpus: u32) -> String {
    let several = if cpus > 1 { BOOT_CPU_ONLY } else { "" };
    [BOOT_ARGUMENTS, several, &kernel.boot, boot]
        .iter()
        .flat_map(|part| part.split_whitespace())
        .collect::<Vec<_>>()
        .join(" ")
}

impl Machine {
    /// QEMU's arguments for it. Its files are in QEMU's working directory: `plan`, and, where
    /// it is resumed, `memory` and `devices`; QEMU makes `stream` and `console` there.
    pub fn arguments(&self, memory: Memory) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = self.fixed().into_iter().map(Into::into).collect();
        let mut file = |flag: &str, path: &Path| arguments.extend([flag.into(), path.into()]);
        file("-kernel", &self.kernel.image);
        file("-initrd", &self.initramfs);
        arguments.extend(PORTS.iter().map(Into::into));
        let backend = match memory {
            Memory::Fresh => "memory-backend-ram",
            Memory::Kept => "memory-backend-file,mem-path=memory,share=on",
            Memory::Resumed => "memory-backend-file,mem-path=memory,share=off",
        };
        let object = format!("{backend},id=memory,size={}M", self.memory_mib);
        arguments.extend(["-object".into(), object.into()]);
        if memory == Memory::Resumed {
            arguments.extend(["-S", "-incoming", "exec:cat devices"].map(Into::into));
        }
        arguments
    }

    /// The arguments that are the same wherever the files are.
    fn fixed(&self) -> Vec<String> {
        let mut arguments: Vec<String> = HARDWARE.iter().map(|word| (*word).into()).collect();
        if self.cpus > 1 {
            arguments.extend(further_cpus(self.cpus));
        }
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

    /// What names its snapshot: the same for the same guest under the same QEMU, and for
    /// no other.
    pub(super) fn key(&self, qemu: &Qemu) -> String {
        let mut text = format!(
            "{}\n{}\n{}\n",
            qemu.version, self.kernel.image_sha256, self.initramfs_sha256
        );
        for word in self
            .fixed()
            .iter()
            .map(String::as_str)
            .chain(PORTS.iter().copied())
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
        let mut words = vec![super::qemu::PROGRAM.to_owned()];
        words.extend(self.fixed());
        words.extend([
            "-kernel".into(),
            name(&self.kernel.image),
            "-initrd".into(),
            name(&self.initramfs),
        ]);
        words.extend(PORTS.iter().map(|word| (*word).to_owned()));
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

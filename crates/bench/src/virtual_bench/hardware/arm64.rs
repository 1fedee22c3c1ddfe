// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual machine of arm64 subjects.

use super::Hardware;

/// The arm64 machine.
pub const ARM64: Hardware = Hardware {
    program: "qemu-system-aarch64",
    package: "qemu-system-arm",
    boot: BOOT_ARGUMENTS,
    devices: DEVICES,
    ports: PORTS,
    further_cpus,
    cpus_of_board: true,
};

/// Boot arguments that every arm64 subject gets, before the kernel's and the subject's own.
///
/// - `console`, `earlycon`: the kernel's whole output is kept, from the first line on.
/// - the others: as for x86-64. Nothing calibrates clocks on arm64.
const BOOT_ARGUMENTS: &str = "console=ttyAMA0 earlycon=pl011,0x9000000 nokaslr norandmaps \
    panic=-1 oops=panic softlockup_panic=1 hung_task_panic=1 cryptomgr.notests";

/// The guest's devices and clocks: no network, no disk, nothing that the host could answer
/// in its own time.
///
/// - `virt`: the machine that every arm64 kernel of a distribution knows. The version keeps it
///   the same under a newer QEMU.
/// - `gic-version=3`: an interrupt controller like those of servers and newer boards.
/// - `cntfrq`: the counter that is the guest's clock counts nanoseconds; else it would be 62.5
///   MHz, and the guest's clock a multiple of 16 ns.
/// - `thread=single`, `-smp 1`, `clock=vm`, `suppress-vmdesc`, `send-configuration`: as for
///   x86-64.
/// - `seed`: also what QEMU's device tree hands to the kernel's random number generator.
/// - `i6300esb` with `watchdog=pause`: lets the guest stop its machine while it sleeps.
const DEVICES: &[&str] = &[
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-M",
    "virt-7.2,gic-version=3,memory-backend=memory,suppress-vmdesc=on",
    "-global",
    "migration.send-configuration=off",
    "-accel",
    "tcg,thread=single",
    "-cpu",
    "cortex-a57,cntfrq=1000000000",
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
    "i6300esb,addr=2",
    "-action",
    "watchdog=pause",
];

/// Arguments that add further CPUs. They have no power until the target brings them up when a run
/// begins.
///
/// - `-smp 1`: QEMU records no clock of a machine with more CPUs, and decides so when it reads this
///   argument. Machine `virt` takes no CPU as a device, but it is made only after `--preconfig`,
///   when [`Process::make_board`] sets its number of CPUs.
/// - `hubport`: as for x86-64.
///
/// [`Process::make_board`]: crate::virtual_bench::qemu::Process::make_board
fn further_cpus(cpus: u32) -> Vec<String> {
    let most = format!("1,maxcpus={cpus}");
    let words = [
        "--preconfig",
        "-smp",
        &most,
        "-netdev",
        "hubport,id=turn,hubid=0",
    ];
    words.map(Into::into).into()
}

/// The ports between the guest and the bench; the names are files in QEMU's working
/// directory. The target looks for the PCI devices at these addresses.
const PORTS: &[&str] = &[
    "-chardev",
    "file,id=stream,path=stream",
    "-device",
    "pci-serial,addr=3,chardev=stream",
    "-chardev",
    "file,id=console,path=console",
    "-serial",
    "chardev:console",
    "-fw_cfg",
    "name=opt/punctual/plan,file=plan",
    "-qmp",
    "stdio",
];

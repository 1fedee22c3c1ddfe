// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual machine of x86-64 subjects.

use super::Hardware;

/// The x86-64 machine.
pub const AMD64: Hardware = Hardware {
    program: "qemu-system-x86_64",
    package: "qemu-system-x86",
    boot: BOOT_ARGUMENTS,
    devices: DEVICES,
    ports: PORTS,
    further_cpus,
    cpus_of_board: false,
};

/// Boot arguments that every x86-64 subject gets, before the kernel's and the subject's own.
///
/// - `console`, `earlyprintk`: the kernel's whole output is kept, from the first line on.
/// - `nokaslr norandmaps`: addresses are the same in every boot.
/// - `panic=-1 oops=panic softlockup_panic=1 hung_task_panic=1`: any fault ends the guest at once.
/// - `cryptomgr.notests tsc=reliable no_timer_check lpj=1000000`: the kernel does not test
///   its ciphers, nor its clocks against one another; the machine's clocks are exact by
///   construction. This shortens the boot by 0.8 s of virtual time. `lpj` sizes `udelay`
///   loops only until the kernel knows the TSC's rate.
const BOOT_ARGUMENTS: &str = "console=ttyS0 earlyprintk=ttyS0 nokaslr norandmaps \
    panic=-1 oops=panic softlockup_panic=1 hung_task_panic=1 \
    cryptomgr.notests tsc=reliable no_timer_check lpj=1000000";

/// The guest's devices and clocks: no network, no disk, nothing that the host could answer in its
/// own time.
///
/// - `pc-q35`: its HPET has an interrupt line of its own, and it has PCI. The version keeps the
///   machine the same under a newer QEMU. QEMU has warned of its age since 10.2 and is to drop it
///   with 13.2 (`MACHINE_VER_DELETION` in QEMU's `boards.h`).
/// - `thread=single`: CPUs run in turn. `-smp 1`: QEMU records no clock of a machine with more
///   CPUs; further CPUs are devices.
/// - `qemu64` has no RDRAND, so the guest has no source of randomness.
/// - `clock=vm`: the real-time clock runs in virtual time, from a fixed date.
/// - `seed`: what the firmware hands to the kernel's random number generator.
/// - `ib700` with `watchdog=pause`: lets the guest stop its machine while it sleeps.
/// - `edu`: its interrupt is raised at the very instruction that asks for it.
/// - `suppress-vmdesc`, `send-configuration`: a snapshot of the devices has no parts other than the
///   devices.
const DEVICES: &[&str] = &[
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

/// Arguments that add further CPUs. The kernel boots with the first; the target brings up the
/// others when a run begins, so that a boot stays as repeatable as that of one CPU.
///
/// A CPU's turn ends at the latest when a timer in guest time is due. `hubport` leads nowhere: its
/// filter is a timer that the guest does not see, see [`Process::set_turn`].
///
/// [`Process::set_turn`]: crate::virtual_bench::qemu::Process::set_turn
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

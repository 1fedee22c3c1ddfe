// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines that tell less or other things than usual: guests, containers, absurd files.

use std::fs;

use super::*;

/// Only x86 has a flag for it.
#[test]
fn guests_of_other_architectures_are_known_by_their_firmware() {
    let told = |path: &'static str, text: &'static str| {
        let arm = ("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\n");
        of("virtualisation", &made(&[arm, (path, text)])).name()
    };
    let tree = "/sys/firmware/devicetree/base/compatible";
    assert_eq!(told("/sys/class/dmi/id/sys_vendor", "Amazon EC2"), "wrong");
    assert_eq!(told("/sys/class/dmi/id/sys_vendor", "Ampere"), "fine");
    assert_eq!(told("/sys/class/dmi/id/product_name", "a1.metal"), "fine");
    assert_eq!(told(tree, "linux,dummy-virt"), "wrong");
    assert_eq!(told(tree, "raspberrypi,4-model-b"), "fine");
    assert_eq!(
        told("/proc/device-tree/compatible", "riscv-virtio"),
        "wrong"
    );
    assert_eq!(told(VERSION, "Linux"), "unknown");
}

#[test]
fn who_holds_the_latency_is_named() {
    let edits = [
        File("/sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "0"),
        File("/dev/cpu_dma_latency", "\0\0\0\0"),
        File("/proc/700/comm", "tuned\n"),
    ];
    let tree = with(&edits).linked("/proc/700/fd/3", "/dev/cpu_dma_latency");
    let Verdict::Fine(found) = of("cpu-dma-latency", &tree) else {
        panic!("held at 0");
    };
    assert_eq!(
        found.to_string(),
        "cpu_dma_latency, held by tuned (700): 0 ns"
    );
}

#[test]
fn a_container_does_not_tell_what_runs_beside_it() {
    let hidden = [Gone("/proc/2/comm")];
    for id in ["fifo-99", "irqbalance"] {
        assert_eq!(of(id, &with(&hidden)).name(), "unknown", "{id}");
    }
    let outer = [
        File("/proc/self/cgroup", "0::/\n"),
        File("/sys/fs/cgroup/cpu.max", "200000 100000"),
    ];
    assert_eq!(of("cfs-bandwidth", &with(&outer)).name(), "wrong");
    // Only the outermost group of all has no type.
    let inner = [
        File("/proc/self/cgroup", "0::/\n"),
        File("/sys/fs/cgroup/cgroup.type", "domain\n"),
    ];
    let unlimited = File("/sys/fs/cgroup/cpu.max", "max 100000");
    let told = |id, edits: &[Edit]| of(id, &with(&inner).edited(edits)).name();
    assert_eq!(told("cfs-bandwidth", &[unlimited]), "unknown");
    assert_eq!(told("cfs-bandwidth", &[]), "unknown");
    assert_eq!(
        told("rt-group-sched", &[Option("RT_GROUP_SCHED")]),
        "unknown"
    );
    assert_eq!(of("cfs-bandwidth", &with(&inner[..1])).name(), "fine");
    // Docker hides the firmware.
    let hidden = with(&[Gone("/sys/firmware")]).directory("/sys/firmware");
    assert_eq!(of("efi-runtime", &hidden).name(), "unknown");
}

/// The kernel asks in the initial user namespace; in another one everybody may have all
/// capabilities.
#[test]
fn a_capability_of_a_user_namespace_starts_no_thread_of_real_time() {
    let told = |map: &'static str, limit: &'static str| {
        let edits = [
            File("/proc/self/uid_map", map),
            File("/proc/self/limits", limit),
        ];
        found("rt-permission", &with(&edits))
    };
    let none = "Max realtime priority     0                    0  \n";
    let initial = "         0          0 4294967295\n";
    assert_eq!(told(initial, none), "fine: capability: CAP_SYS_NICE");
    for below in ["         0       1000          1\n", "0 0 65536\n", ""] {
        assert_eq!(told(below, none), "wrong: limit rtprio: 0", "{below}");
    }
    let some = "Max realtime priority     98                   98  \n";
    assert_eq!(told("0 1000 1\n", some), "fine: limit rtprio: 98");
}

#[test]
fn a_group_of_version_2_has_no_time_for_real_time() {
    let in_group = [Option("RT_GROUP_SCHED")];
    assert_eq!(of("rt-group-sched", &with(&in_group)).name(), "wrong");
    let outermost = [Option("RT_GROUP_SCHED"), Gone("/sys/fs/cgroup/a/cpu.max")];
    let tree = with(&outermost).edited(&[File("/sys/fs/cgroup/a/cgroup.procs", "")]);
    assert_eq!(of("rt-group-sched", &tree).name(), "fine");
    // Linux 6.15 brought the argument; of an older kernel an option shows that it has it.
    let off = with(&[Option("RT_GROUP_SCHED"), Argument("rt_group_sched=0")]);
    let newer = [
        File("/proc/sys/kernel/osrelease", "6.15.1"),
        Edit::Rename(CONFIG, "6.15.1"),
    ];
    assert_eq!(of("rt-group-sched", &off).name(), "wrong");
    assert_eq!(
        of("rt-group-sched", &off.clone().edited(&newer)).name(),
        "fine"
    );
    let patched = off.edited(&[Option("RT_GROUP_SCHED_DEFAULT_DISABLED")]);
    assert_eq!(of("rt-group-sched", &patched).name(), "fine");
    let on = patched.edited(&[NoOption("rt_group_sched"), Argument("rt_group_sched=1")]);
    assert_eq!(of("rt-group-sched", &on).name(), "wrong");
    let group = [Option("RT_GROUP_SCHED"), Gone("/sys/fs/cgroup/a")];
    assert_eq!(of("rt-group-sched", &with(&group)).name(), "unknown");
}

#[test]
fn smi_counters_are_intels_and_a_guest_sees_nothing_of_its_host() {
    let amd = [File(CPUINFO, "vendor_id : AuthenticAMD\nflags : tsc\n")];
    assert_eq!(of("smi", &with(&amd)).name(), "unknown");
    // Some come while the firmware boots.
    let few = [File("/dev/cpu/0/msr", tree::msr!("\u{7}\0\0\0\0\0\0\0"))];
    let found = of("smi", &with(&few));
    assert!(matches!(&found, Verdict::Unknown(why) if why.to_string().starts_with("7 SMIs")));
    let guest = [
        File(CPUINFO, tree::cpuinfo!("hypervisor")),
        File(ONLINE, "0"),
        Gone("/sys/devices/system/cpu/cpu0/cpuidle"),
        File("/sys/devices/system/cpu/cpuidle/current_driver", "none"),
    ];
    for id in ["smi", "smt", "idle-states", "cpu-dma-latency"] {
        assert_eq!(of(id, &with(&guest)).name(), "unknown", "{id}");
        let own = if id == "smt" { "fine" } else { "moot" };
        let expected = if id == "smi" { "fine" } else { own };
        assert_eq!(of(id, &with(&guest[1..])).name(), expected, "{id}");
    }
}

/// A guest's halt ends in its host, which may sleep deeply. Only x86 has a flag for guests.
#[test]
fn a_guest_without_deep_idle_states_does_not_know_how_its_host_idles() {
    let x86 = File(CPUINFO, tree::cpuinfo!("hypervisor"));
    let arm = File(CPUINFO, "processor\t: 0\nCPU implementer\t: 0x41\n");
    let tree = File(
        "/sys/firmware/devicetree/base/compatible",
        "linux,dummy-virt",
    );
    let driver = File("/sys/devices/system/cpu/cpuidle/current_driver", "none");
    let halts = [
        driver,
        File(ONLINE, "0"),
        Gone("/sys/devices/system/cpu/cpu0/cpuidle"),
    ];
    for id in ["idle-states", "cpu-dma-latency", "smt", "shared-caches"] {
        for guest in [&[x86][..], &[arm, tree]] {
            for idle in [&[][..], &halts] {
                let found = found(id, &with(guest).edited(idle));
                assert!(found.starts_with("unknown: a guest"), "{id}: {found}");
            }
        }
    }
    let deep = File("/sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "0");
    assert_eq!(of("idle-states", &with(&[x86, deep])).name(), "wrong");
}

/// Whatever a file holds, there is some answer.
#[test]
fn absurd_files_do_no_harm() {
    let tree = Tree::sound();
    let directory = tree.make();
    let absurd = [
        "",
        "\0",
        "9223372036854775807",
        "-9223372036854775808",
        "ffffffff,ffffffff,\u{ff}",
        "8191-8191,0-8191",
        "] [ ( ) : = , \n: \n] [",
    ];
    let write = |file: &String, text: &[u8]| {
        fs::write(directory.path().join(file.trim_start_matches('/')), text).unwrap();
    };
    let examined = || {
        let found = examine(&Machine::new(directory.path()), &|_| true);
        assert_eq!(found.0.len(), all().count());
    };
    for file in tree.files() {
        let own = fs::read(directory.path().join(file.trim_start_matches('/'))).unwrap();
        write(file, absurd[2].as_bytes());
        examined();
        write(file, &own);
    }
    for text in absurd {
        tree.files().for_each(|file| write(file, text.as_bytes()));
        examined();
    }
}

#[test]
fn weight_decides() {
    let health = |edits: &[Edit]| examine(&with(edits).machine(), &|_| true).health();
    assert_eq!(
        health(&[File("/proc/sys/vm/stat_interval", "1")]),
        Health::Fit
    );
    assert_eq!(health(&[Gone("/dev/cpu/0/msr")]), Health::Undecided);
    assert_eq!(health(&[Gone("/dev/cpu/0/msr"), STOCK]), Health::Unfit);
}

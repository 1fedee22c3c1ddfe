// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each check sees its defect, and nothing that is missing makes one fine.

use std::collections::BTreeSet;
use std::fs;

use punctual_model::Nanos;
use punctual_model::units::CpuId;

use super::*;

/// A defect: the check that sees it, the edits that make it, and the file without which it is
/// unknown.
type Defect = (&'static str, &'static [Edit], &'static str);

pub(super) const DEFECTS: &[Defect] = &[
    ("preempt-rt", &[STOCK], VERSION),
    ("rt-name", &[STOCK], VERSION),
    (
        "preemption-model",
        &[
            STOCK,
            File("/sys/kernel/debug/sched/preempt", "none (voluntary) full"),
        ],
        VERSION,
    ),
    ("preempt-argument", &[Argument("preempt=none")], CMDLINE),
    ("cpu-freq", &[NoOption("CPU_FREQ")], CONFIG),
    ("governors", &[Option("CPU_FREQ_GOV_ONDEMAND")], CONFIG),
    ("irqsoff-tracer", &[Option("IRQSOFF_TRACER")], CONFIG),
    ("preempt-tracer", &[Option("PREEMPT_TRACER")], CONFIG),
    ("prove-locking", &[Option("PROVE_LOCKING")], CONFIG),
    (
        "lockup-detector",
        &[File("/proc/sys/kernel/watchdog", "1")],
        CONFIG,
    ),
    (
        "efi-runtime",
        &[
            File("/sys/firmware/efi/runtime", "0x1"),
            NoOption("EFI_DISABLE_RUNTIME"),
        ],
        CONFIG,
    ),
    (
        "no-hz",
        &[Option("NO_HZ_IDLE"), NoOption("nohz_full")],
        CMDLINE,
    ),
    (
        "high-resolution-timers",
        &[File("/proc/timer_list", "cpu: 0\n  .hres_active    : 0\n")],
        "/proc",
    ),
    ("threadirqs", &[STOCK], VERSION),
    ("tracing", &[NoOption("TRACING")], CONFIG),
    ("hwlat-tracer", &[NoOption("HWLAT_TRACER")], CONFIG),
    (
        "active-tracer",
        &[File("/sys/kernel/tracing/current_tracer", "function")],
        "/sys/kernel/tracing/current_tracer",
    ),
    (
        "rt-throttling",
        &[
            File("/proc/sys/kernel/sched_rt_runtime_us", "950000"),
            Option("RT_GROUP_SCHED"),
        ],
        "/proc/sys/kernel/sched_rt_runtime_us",
    ),
    (
        "fair-server",
        &[File(
            "/sys/kernel/debug/sched/fair_server/cpu1/runtime",
            "50000000",
        )],
        "/sys/kernel/debug/sched/fair_server",
    ),
    (
        "soft-watchdog",
        &[
            File("/proc/sys/kernel/soft_watchdog", "1"),
            Option("SOFTLOCKUP_DETECTOR"),
        ],
        "/proc/sys/kernel/soft_watchdog",
    ),
    (
        "nmi-watchdog",
        &[
            File("/proc/sys/kernel/nmi_watchdog", "1"),
            Option("HARDLOCKUP_DETECTOR"),
        ],
        "/proc/sys/kernel/nmi_watchdog",
    ),
    (
        "transparent-huge-pages",
        &[
            File(
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "[always] madvise never",
            ),
            Option("TRANSPARENT_HUGEPAGE"),
        ],
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ),
    (
        "numa-balancing",
        &[
            File("/proc/sys/kernel/numa_balancing", "1"),
            Option("NUMA_BALANCING"),
        ],
        "/proc/sys/kernel/numa_balancing",
    ),
    (
        "vm-stat-interval",
        &[File("/proc/sys/vm/stat_interval", "1")],
        "/proc/sys/vm/stat_interval",
    ),
    (
        "timer-migration",
        &[File("/proc/sys/kernel/timer_migration", "1")],
        "/proc/sys/kernel/timer_migration",
    ),
    (
        "swappiness",
        &[
            File("/proc/sys/vm/swappiness", "60"),
            File("/proc/swaps", "Filename Type\n/dev/sda2 partition\n"),
        ],
        "/proc/sys/vm/swappiness",
    ),
    ("skew-tick", &[NoOption("skew_tick")], CMDLINE),
    (
        "rcu-normal",
        &[File("/sys/kernel/rcu_normal", "0")],
        "/sys/kernel/rcu_normal",
    ),
    (
        "mitigations",
        &[File(
            "/sys/devices/system/cpu/vulnerabilities/mds",
            "Mitigation: Clear buffers",
        )],
        "/sys/devices/system/cpu/vulnerabilities",
    ),
    (
        "pcie-aspm",
        &[
            File(
                "/sys/module/pcie_aspm/parameters/policy",
                "[default] performance",
            ),
            Option("PCIEASPM"),
        ],
        "/sys/module/pcie_aspm/parameters/policy",
    ),
    (
        "isolcpus",
        &[File(ISOLATED, ""), NoOption("isolcpus")],
        ISOLATED,
    ),
    (
        "nohz-full",
        &[NoOption("nohz_full"), Argument("nohz_full=2")],
        ISOLATED,
    ),
    (
        "rcu-nocbs",
        &[NoOption("nohz_full"), NoOption("rcu_nocbs")],
        ISOLATED,
    ),
    ("workqueues", &[File(WORKQUEUES, "f")], WORKQUEUES),
    (
        "writeback",
        &[File(WRITEBACK, "8"), File(WORKQUEUES, "f")],
        WRITEBACK,
    ),
    (
        "irqbalance",
        &[File("/proc/700/comm", "irqbalance\n"), File(ISOLATED, "")],
        "/proc/2/comm",
    ),
    (
        "rt-permission",
        &[File("/proc/self/status", "CapEff:\t0000000000000000\n")],
        "/proc/self/limits",
    ),
    (
        "rt-group-sched",
        &[
            Option("RT_GROUP_SCHED"),
            File(
                "/proc/self/mounts",
                "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n",
            ),
            File("/proc/self/cgroup", "3:cpu:/user\n0::/\n"),
            File("/sys/fs/cgroup/cpu/user/cpu.rt_runtime_us", "0\n"),
        ],
        CONFIG,
    ),
    (
        "cfs-bandwidth",
        &[File("/sys/fs/cgroup/a/cpu.max", "50000 100000\n")],
        "/sys/fs/cgroup",
    ),
    (
        "fifo-99",
        &[File("/proc/700/task/701/stat", tree::stat!("(a) b", 0, 99))],
        "/proc/2/comm",
    ),
    (
        "virtualisation",
        &[File(CPUINFO, tree::cpuinfo!("hypervisor"))],
        CPUINFO,
    ),
    (
        "smi",
        &[File("/dev/cpu/0/msr", tree::msr!("\0\0\u{1}\0\0\0\0\0"))],
        "/dev/cpu/0/msr",
    ),
    (
        "governor",
        &[File(
            "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor",
            "powersave\n",
        )],
        "/sys/devices/system/cpu/cpufreq",
    ),
    (
        "idle-states",
        &[File(
            "/sys/devices/system/cpu/cpu0/cpuidle/state2/disable",
            "0",
        )],
        "/sys/devices/system/cpu/cpu0/cpuidle/state2/latency",
    ),
    (
        "cpu-dma-latency",
        &[
            File("/sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "0"),
            // 2,000 s: nobody asks for anything.
            File("/dev/cpu_dma_latency", "\0\0\0\u{7f}"),
        ],
        "/dev/cpu_dma_latency",
    ),
    (
        "smt",
        &[File("/sys/devices/system/cpu/smt/active", "1")],
        "/sys/devices/system/cpu/smt/active",
    ),
    (
        "clocksource",
        &[File(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet\n",
        )],
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    ("tsc-reliable", &[NoOption("tsc")], CMDLINE),
    ("harmful-arguments", &[Argument("irqpoll")], CMDLINE),
    (
        "contradicting-arguments",
        &[Argument("isolcpus=domain,2-5")],
        CMDLINE,
    ),
    ("unknown-arguments", &[Argument("noirqbalance")], CMDLINE),
    (
        "shared-interrupts",
        &[File(
            "/proc/interrupts",
            "    CPU0\n 16:  1  IO-APIC 16-fasteoi  ehci_hcd:usb1, i801_smbus\n",
        )],
        "/proc/interrupts",
    ),
    (
        "shared-caches",
        &[File(
            "/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
            "0-3",
        )],
        "/sys/devices/system/cpu/cpu0/cache",
    ),
    (
        "graphics",
        &[
            File("/sys/class/drm/card0", ""),
            File("/sys/class/drm/card0-DP-1", ""),
        ],
        "/sys/class",
    ),
];

#[test]
fn nothing_is_found_on_a_sound_machine() {
    let found = examine(&Tree::sound().machine(), &|_| true);
    for one in &found.0 {
        let is_sound = matches!(one.verdict, Verdict::Fine(_) | Verdict::Moot(_));
        assert!(is_sound, "{}: {:?}", one.check.id, one.verdict);
    }
    assert_eq!(found.health(), Health::Fit);
    let fine = found
        .0
        .iter()
        .filter(|one| matches!(one.verdict, Verdict::Fine(_)));
    assert!(fine.count() > 40);
    assert!(
        found
            .0
            .is_sorted_by_key(|one| std::cmp::Reverse(one.check.severity))
    );
}

#[test]
fn each_check_sees_its_defect() {
    for (id, edits, _) in DEFECTS {
        let found = of(id, &with(edits));
        assert!(matches!(found, Verdict::Wrong(_)), "{id}: {found:?}");
    }
    let tested: BTreeSet<&str> = DEFECTS.iter().map(|(id, ..)| *id).collect();
    let known: BTreeSet<&str> = all().map(|check| check.id).collect();
    assert_eq!(tested, known);
    assert_eq!(known.len(), all().count(), "an id is there twice");
}

#[test]
fn what_a_machine_does_not_tell_is_unknown() {
    let empty = examine(&Tree::empty().machine(), &|_| true);
    for one in &empty.0 {
        let is_unknown = matches!(one.verdict, Verdict::Unknown(_));
        assert!(is_unknown, "{}: {:?}", one.check.id, one.verdict);
    }
    assert_eq!(empty.health(), Health::Undecided);
    for (id, edits, file) in DEFECTS {
        let found = of(id, &with(edits).edited(&[Gone(file)]));
        let is_config = matches!(found, Verdict::Wrong(_)) && *id == "lockup-detector";
        let is_unknown = matches!(found, Verdict::Unknown(_)) || is_config;
        assert!(is_unknown, "{id} without {file}: {found:?}");
    }
}

/// Checks whose defect is a file itself.
const FILES: [&str; 8] = [
    "efi-runtime",
    "cpu-dma-latency",
    "idle-states",
    "mitigations",
    "fair-server",
    "governor",
    "graphics",
    "cfs-bandwidth",
];

/// No file can be removed from a defective machine so that it passes. (A thread or a process that
/// is gone is gone. If the kernel's own statement about its timers cannot be read, its
/// configuration and boot arguments decide.)
#[test]
fn no_missing_file_makes_a_defect_fine() {
    for (id, edits, _) in DEFECTS {
        let tree = with(edits);
        let directory = tree.make();
        let aside = directory.path().join("aside");
        for file in tree.files().filter(|path| !path.starts_with("/proc/7")) {
            let path = directory.path().join(file.trim_start_matches('/'));
            fs::rename(&path, &aside).unwrap();
            let found = examine(&Machine::new(directory.path()), &|check| check.id == *id);
            let found = &found.0[0].verdict;
            fs::rename(&aside, &path).unwrap();
            let is_own = edits
                .iter()
                .any(|edit| matches!(edit, File(own, _) if own == file));
            let is_defect = is_own && (FILES.contains(id) || file == "/proc/timer_list");
            let passes = matches!(found, Verdict::Fine(_) | Verdict::Moot(_));
            assert!(!passes || is_defect, "{id} without {file}: {found:?}");
        }
    }
}

#[test]
fn what_was_found_is_typed() {
    let value = |id, edits: &[Edit]| match of(id, &with(edits)) {
        Verdict::Fine(found) | Verdict::Wrong(found) => found.value,
        other => panic!("{id}: {other:?}"),
    };
    let edits = |id: &str| DEFECTS.iter().find(|(own, ..)| *own == id).unwrap().1;
    assert_eq!(
        value("rt-throttling", edits("rt-throttling")),
        Value::Number(950_000)
    );
    assert_eq!(
        value("fair-server", edits("fair-server")),
        Value::Nanos(Nanos::from_millis(50))
    );
    assert_eq!(
        value("isolcpus", &[]),
        Value::Cpus(vec![CpuId(2), CpuId(3)])
    );
    assert_eq!(
        value("fifo-99", edits("fifo-99")),
        Value::Names(vec!["(a) b (700)".into()])
    );
    assert_eq!(
        value("nohz-full", edits("nohz-full")),
        Value::Cpus(vec![CpuId(3)])
    );
    assert_eq!(value("smi", edits("smi")), Value::Number(65_536));
    assert_eq!(
        value("cpu-dma-latency", edits("cpu-dma-latency")),
        Value::Nanos(Nanos::from_micros(0x7f00_0000))
    );
    assert_eq!(
        value("graphics", edits("graphics")),
        Value::Names(vec!["card0".into()])
    );
}

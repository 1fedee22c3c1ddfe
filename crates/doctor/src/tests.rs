// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs each check on made-up machines: one with the defect, one without, one that cannot tell.

mod tree;

use std::collections::BTreeSet;
use std::fs;

use punctual_model::Nanos;
use punctual_model::units::CpuId;

use super::*;
use tree::Edit::{self, Argument, File, Gone, NoOption, Option};
use tree::{RELEASE, Tree};

/// A defect: the check that sees it, the edits that make it, and the file without which it is
/// unknown.
type Defect = (&'static str, &'static [Edit], &'static str);

const CONFIG: &str = tree::CONFIG;
const STOCK: Edit = File(
    "/proc/version",
    "Linux version 6.12.117 (x) #1 SMP PREEMPT_DYNAMIC x",
);
const VERSION: &str = "/proc/version";
const CMDLINE: &str = "/proc/cmdline";
const CPUINFO: &str = "/proc/cpuinfo";
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";

const DEFECTS: &[Defect] = &[
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
        &[
            File("/sys/module/rcupdate/parameters/rcu_normal_after_boot", "0"),
            STOCK,
        ],
        "/sys/module/rcupdate/parameters/rcu_normal_after_boot",
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
    (
        "workqueues",
        &[File("/sys/devices/virtual/workqueue/cpumask", "f")],
        "/sys/devices/virtual/workqueue/cpumask",
    ),
    (
        "writeback",
        &[File("/sys/bus/workqueue/devices/writeback/cpumask", "8")],
        "/sys/bus/workqueue/devices/writeback/cpumask",
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

fn all() -> impl Iterator<Item = &'static Check> {
    ALL.into_iter().flatten()
}

/// The verdict of one check on a machine.
fn of(id: &str, tree: &Tree) -> Verdict {
    let found = examine(&tree.machine(), &|check| check.id == id);
    assert_eq!(found.0.len(), 1, "{id}");
    found.0[0].verdict.clone()
}

fn with(edits: &[Edit]) -> Tree {
    Tree::sound().edited(edits)
}

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

#[test]
fn the_model_of_preemption_is_read_back_or_follows_from_how_it_was_booted() {
    let dynamic = [STOCK, Option("PREEMPT_DYNAMIC"), Option("PREEMPT_NONE")];
    let model = |edits: &[Edit]| of("preemption-model", &with(&dynamic).edited(edits)).name();
    assert_eq!(model(&[]), "wrong");
    assert_eq!(model(&[Argument("preempt=full")]), "fine");
    assert_eq!(model(&[Argument("preempt=fulll")]), "wrong");
    assert_eq!(model(&[Argument("preempt=lazy")]), "wrong");
    let lazy = [Argument("preempt=lazy"), Option("ARCH_HAS_PREEMPT_LAZY")];
    assert_eq!(model(&lazy), "fine");
    let in_force = File("/sys/kernel/debug/sched/preempt", "(none) voluntary full");
    assert_eq!(model(&[Argument("preempt=full"), in_force]), "wrong");
    // From 7.0 on voluntary is not to be had.
    let asked = |release| {
        let edits = [
            Option("ARCH_HAS_PREEMPT_LAZY"),
            Argument("preempt=voluntary"),
            File("/proc/sys/kernel/osrelease", release),
            Edit::Rename(CONFIG, release),
        ];
        of("preempt-argument", &with(&dynamic).edited(&edits)).name()
    };
    assert_eq!(asked("6.18.2"), "fine");
    assert_eq!(asked("7.0.1"), "wrong");
}

#[test]
fn older_kernels_are_asked_what_they_have() {
    let old = [
        File("/proc/sys/kernel/osrelease", "4.19.1-rt3"),
        File(VERSION, "Linux version 4.19.1-rt3 (x) #1 SMP PREEMPT RT x"),
    ];
    assert_eq!(of("preempt-rt", &with(&old)).name(), "fine");
    assert_eq!(of("rt-name", &with(&old)).name(), "fine");
    assert_eq!(of("fair-server", &with(&old)).name(), "moot");
    let throttled = [
        &old[..],
        &[File("/proc/sys/kernel/sched_rt_runtime_us", "950000")],
    ]
    .concat();
    assert_eq!(of("rt-throttling", &with(&throttled)).name(), "wrong");
    let since = [File("/proc/sys/kernel/sched_rt_runtime_us", "950000")];
    assert_eq!(of("rt-throttling", &with(&since)).name(), "moot");
}

/// A machine with these files.
fn made(files: &[(&'static str, &'static str)]) -> Tree {
    let files: Vec<Edit> = files.iter().map(|(path, text)| File(path, text)).collect();
    Tree::empty().edited(&files)
}

fn found(id: &str, tree: &Tree) -> String {
    match of(id, tree) {
        Verdict::Fine(found) => format!("fine: {found}"),
        Verdict::Wrong(found) => format!("wrong: {found}"),
        Verdict::Unknown(reason) => format!("unknown: {reason}"),
        Verdict::Moot(why) => format!("moot: {why}"),
    }
}

/// A copy of a machine of which somebody has posted only the arguments.
#[test]
fn arguments_decide_without_other_files_and_those_that_harm_are_named() {
    let tree = made(&[
        (
            CMDLINE,
            "isolcpus=domain,managed_irq,2-3 nohz_full=2-3 rcu_nocbs=2-3 preempt=full \
             workqueue.cpumask=1 mitigations=off tsc=reliable skew_tick=1 irqpoll noirqbalance",
        ),
        ("/proc/sys/kernel/osrelease", "6.12.40-rt10"),
        (VERSION, "Linux version 6.12.40-rt10 (x) #1 SMP PREEMPT_RT"),
        ("/sys/devices/system/cpu/online", "0-3"),
        (ISOLATED, "2-3"),
    ]);
    for (id, expected) in [
        ("isolcpus", "fine: isolated CPUs: 2-3"),
        (
            "nohz-full",
            "fine: isolated CPUs that are not in nohz_full: none",
        ),
        ("skew-tick", "fine: boot argument skew_tick: 1"),
        ("harmful-arguments", "wrong: boot arguments: irqpoll"),
        ("contradicting-arguments", "fine: boot arguments: none"),
        (
            "unknown-arguments",
            "wrong: boot arguments: workqueue.cpumask=1, noirqbalance",
        ),
        (
            "preempt-argument",
            "wrong: boot argument preempt, on PREEMPT_RT: full",
        ),
        ("tsc-reliable", "fine: boot argument tsc: reliable"),
        ("mitigations", "fine: boot argument mitigations: off"),
    ] {
        assert_eq!(found(id, &tree), expected, "{id}");
    }
}

/// A configuration that somebody has cut short.
#[test]
fn a_cut_configuration_tells_nothing_of_what_it_does_not_name() {
    let tree = made(&[
        (
            "/boot/config-6.12.1-rt1",
            "CONFIG_X86_64=y\nCONFIG_SMP=y\nCONFIG_PREEMPT_RT=y\n\
             CONFIG_CPU_FREQ_GOV_POWERSAVE=m\nCONFIG_CPU_FREQ_GOV_ONDEMAND=m\n\
             CONFIG_CPU_FREQ_GOV_SCHEDUTIL=y\n",
        ),
        ("/proc/sys/kernel/osrelease", "6.12.1-rt1"),
        (CMDLINE, "quiet"),
        (VERSION, "Linux version 6.12.1-rt1 (x) #1 SMP PREEMPT_RT"),
        ("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
        ("/sys/devices/system/cpu/online", "0"),
    ]);
    let cut = [
        "irqsoff-tracer",
        "preempt-tracer",
        "prove-locking",
        "lockup-detector",
        "rt-group-sched",
        "soft-watchdog",
        "nmi-watchdog",
        "cpu-freq",
        "high-resolution-timers",
        "tracing",
        "hwlat-tracer",
        "no-hz",
    ];
    for id in cut {
        let found = found(id, &tree);
        assert!(found.contains("is an excerpt, or was cut"), "{id}: {found}");
    }
    assert_eq!(
        found("governors", &tree),
        "wrong: options that are built in: CONFIG_CPU_FREQ_GOV_SCHEDUTIL"
    );
    assert_eq!(
        found("rt-throttling", &tree),
        "fine: kernel.sched_rt_runtime_us: -1"
    );
}

/// With `tsc_adjust` a timer visits all CPUs, whether or not the watchdog watches.
#[test]
fn only_a_reliable_counter_is_left_alone() {
    let told = |line: &'static str, flags: &'static str| {
        found(
            "tsc-reliable",
            &made(&[
                (CMDLINE, line),
                (CPUINFO, flags),
                ("/proc/sys/kernel/osrelease", "6.12.1"),
            ]),
        )
    };
    let adjusted = tree::cpuinfo!("constant_tsc nonstop_tsc tsc_adjust");
    let plain = tree::cpuinfo!("constant_tsc nonstop_tsc");
    assert!(told("quiet tsc=nowatchdog", adjusted).starts_with("wrong: "));
    assert!(told("quiet", adjusted).starts_with("wrong: "));
    assert!(told("quiet tsc=nowatchdog", plain).starts_with("fine: "));
    assert!(told("tsc=nowatchdog tsc=reliable", adjusted).starts_with("fine: "));
    assert!(told("tsc=reliable", "Features : fp asimd\n").starts_with("moot: "));
}

#[test]
fn lists_of_cpus_that_are_not_there_or_leave_none_are_named() {
    let told = |line: &'static str| {
        found(
            "contradicting-arguments",
            &made(&[(CMDLINE, line), ("/sys/devices/system/cpu/online", "0-3")]),
        )
    };
    assert_eq!(
        told("isolcpus=managed_irq,domain,2-7"),
        "wrong: boot arguments: isolcpus=managed_irq,domain,2-7: there is no CPU 4-7"
    );
    assert_eq!(
        told("nohz_full=0-3 nohz=off"),
        "wrong: boot arguments: nohz=off and nohz_full, nohz_full=0-3: no CPU is left for the rest"
    );
    assert_eq!(told("isolcpus=2-3 idle=poll"), "fine: boot arguments: none");
}

/// Command lines of real machines.
#[test]
fn lists_that_take_from_each_other_are_named() {
    let told = |release: &'static str, line: &'static str| {
        let online = ("/sys/devices/system/cpu/online", "0-15");
        let files = [
            (CMDLINE, line),
            online,
            ("/proc/sys/kernel/osrelease", release),
        ];
        found("contradicting-arguments", &made(&files))
    };
    // seapath/ansible#865
    let seapath = "isolcpus=managed_irq,domain,4-15 nohz_full=4-15 irqaffinity=0,1,2,3,4,5,6,7,8,9,\
                   10,11,12,13,14,15";
    assert!(told("6.12.48+deb13-rt-amd64", seapath).contains("isolated CPUs 4-15 are in it"));
    // qualcomm-linux/meta-qcom#1542
    let qcom = "rcupdate.rcu_expedited=1 rcu_nocbs=7 isolcpus=7 irqaffinity=0-6 cpuidle.off=1";
    assert_eq!(told("6.18.2", qcom), "fine: boot arguments: none");
    let wider = "isolcpus=2-3 nohz_full=2-5";
    assert_eq!(told("6.1.46-rt13", wider), "fine: boot arguments: none");
    for release in ["5.4.140-rt64", "5.15.0-1032-realtime"] {
        assert!(
            told(release, wider).contains("not before Linux 5.18"),
            "{release}"
        );
    }
    let twice = "isolcpus=3 quiet isolcpus=managed_irq,domain,2-3";
    assert!(told("6.12.1", twice).contains("the first list counts"));
}

/// A Raspberry Pi with arguments that were found for a workstation.
#[test]
fn arguments_of_another_architecture_are_named() {
    let line = "isolcpus=3 tsc=reliable intel_pstate=disable idle=poll skew_tick=1";
    let told = |cpuinfo: &'static str| {
        found(
            "unknown-arguments",
            &made(&[(CMDLINE, line), (CPUINFO, cpuinfo)]),
        )
    };
    let arm = told("processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n");
    assert_eq!(
        arm,
        "wrong: boot arguments: tsc=reliable (x86 alone takes it), intel_pstate=disable (x86 \
         alone takes it), idle=poll (x86 alone takes it)"
    );
    let x86 = told("vendor_id\t: GenuineIntel\nflags\t\t: fpu tsc\n");
    assert_eq!(x86, "fine: boot arguments: none");
}

/// `managed_irq` came with Linux 5.6; an existing list is kept.
#[test]
fn isolation_is_asked_for_as_the_kernel_knows_it() {
    let steps = |release: &'static str, line: &'static str, isolated: &'static str| {
        let tree = made(&[
            (CMDLINE, line),
            ("/sys/devices/system/cpu/online", "0-3"),
            (ISOLATED, isolated),
            ("/proc/sys/kernel/osrelease", release),
        ]);
        let machine = tree.machine();
        let steps = examine(&machine, &|_| true).first_steps(&machine, 9);
        let own = steps.into_iter().find(|step| step.check == "isolcpus");
        own.map(|step| step.commands[0].1.join("\n"))
    };
    let rpi = steps("6.6.31-rt31-v8+", "quiet isolcpus=3 rootwait", "3").unwrap();
    assert!(
        rpi.contains("'s#isolcpus=3#isolcpus=managed_irq,domain,3#'"),
        "{rpi}"
    );
    let none = steps("5.4.140-rt64", "quiet", "").unwrap();
    assert!(none.contains("isolcpus=domain,2-3"), "{none}");
    // Nothing of it was taken.
    let old = "isolcpus=nohz,domain,managed_irq,2-3";
    let told = steps("5.4.140-rt64", old, "").unwrap();
    assert!(told.contains("#isolcpus=domain,2-3#"), "{told}");
    assert_eq!(steps("5.4.140-rt64", "isolcpus=2-3", "2-3"), None);
    // Red Hat's 4.18 knows the flag.
    assert_eq!(
        steps("4.18.0-305.rt7.72.el8", "isolcpus=managed_irq,2-3", "2-3"),
        None
    );
}

/// Siblings stay together, and what is offline is not isolated.
#[test]
fn the_half_that_is_isolated_has_whole_cores_that_are_online() {
    let steps = |online: &'static str, siblings: &[(&'static str, &'static str)]| {
        let mut files = vec![
            (CMDLINE, "quiet"),
            ("/sys/devices/system/cpu/online", online),
            (ISOLATED, ""),
            ("/proc/sys/kernel/osrelease", "6.12.1"),
        ];
        files.extend(siblings);
        let tree = made(&files);
        let machine = tree.machine();
        let steps = examine(&machine, &|_| true).first_steps(&machine, 9);
        let own = steps.into_iter().find(|step| step.check == "isolcpus");
        own.unwrap().commands[0].1.join("\n")
    };
    let off = steps("0,2,4,6", &[]);
    assert!(off.contains("isolcpus=managed_irq,domain,4,6"), "{off}");
    let threads = steps(
        "0-5",
        &[
            (
                "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
                "0,3",
            ),
            (
                "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
                "1,4",
            ),
            (
                "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list",
                "2,5",
            ),
            (
                "/sys/devices/system/cpu/cpu3/topology/thread_siblings_list",
                "0,3",
            ),
            (
                "/sys/devices/system/cpu/cpu4/topology/thread_siblings_list",
                "1,4",
            ),
            (
                "/sys/devices/system/cpu/cpu5/topology/thread_siblings_list",
                "2,5",
            ),
        ],
    );
    assert!(
        threads.contains("isolcpus=managed_irq,domain,2,5"),
        "{threads}"
    );
}

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
fn what_a_kernel_does_not_take_covers_nothing() {
    for (name, expected) in [("NO_HZ_FULL", "nohz-full"), ("RCU_NOCB_CPU", "rcu-nocbs")] {
        let both = "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3";
        let edits = [File(CMDLINE, both), NoOption(name), NoOption("NO_HZ_FULL")];
        let verdict = of(expected, &with(&edits));
        assert_eq!(verdict.name(), "wrong", "{name}");
    }
    for off in ["nohz=0", "nohz=n", "nohz=off"] {
        assert_eq!(
            of("no-hz", &with(&[File(CMDLINE, off)])).name(),
            "fine",
            "{off}"
        );
    }
}

#[test]
fn arguments_for_process_1_are_not_the_kernels() {
    let line = "skew_tick=1 rcupdate.rcu-normal-after-boot=1 quiet -- skew_tick=0";
    let tree = with(&[File(CMDLINE, line)]);
    let machine = tree.machine();
    assert_eq!(machine.argument("skew_tick"), Ok(Some("1".into())));
    assert_eq!(
        machine.argument("rcupdate.rcu_normal_after_boot"),
        Ok(Some("1".into()))
    );
    assert_eq!(machine.argument("quiet"), Ok(Some(String::new())));
    assert_eq!(machine.argument("qui"), Ok(None));
}

#[test]
fn a_packed_configuration_counts_and_a_torn_one_tells_nothing() {
    let packed = "# Automatically generated file; DO NOT EDIT.\nCONFIG_TRACING=y\n\
                  # Kernel hacking\n# end of Kernel hacking\n";
    let tree = with(&[Gone(CONFIG)]).packed_config(packed);
    assert_eq!(of("tracing", &tree).name(), "fine");
    assert_eq!(of("cpu-freq", &tree).name(), "wrong");
    for torn in ["", "not packed", "# nothing\n"] {
        let tree = with(&[File(CONFIG, torn)]);
        assert_eq!(of("tracing", &tree).name(), "unknown");
    }
    let tree = with(&[File("/proc/config.gz", "not packed")]);
    assert_eq!(of("tracing", &tree).name(), "unknown");
    assert_eq!(RELEASE, CONFIG.strip_prefix("/boot/config-").unwrap());
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
}

#[test]
fn a_group_of_version_2_has_no_time_for_real_time() {
    let in_group = [Option("RT_GROUP_SCHED")];
    assert_eq!(of("rt-group-sched", &with(&in_group)).name(), "wrong");
    let outermost = [Option("RT_GROUP_SCHED"), Gone("/sys/fs/cgroup/a/cpu.max")];
    let tree = with(&outermost).edited(&[File("/sys/fs/cgroup/a/cgroup.procs", "")]);
    assert_eq!(of("rt-group-sched", &tree).name(), "fine");
    let off = [Option("RT_GROUP_SCHED"), Argument("rt_group_sched=0")];
    assert_eq!(of("rt-group-sched", &with(&off)).name(), "fine");
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

/// Every check that a purpose weighs differently exists.
#[test]
fn a_purpose_names_checks_that_there_are_and_asks_of_its_own() {
    let ids: Vec<&str> = ALL.into_iter().flatten().map(|check| check.id).collect();
    for id in purpose::NOT_FOR_AUDIO {
        assert!(ids.contains(&id), "{id}");
    }
    let stock = || examine(&Tree::sound().edited(&[STOCK]).machine(), &|_| true);
    let severity = |diagnosis: &Diagnosis, id: &str| {
        let found = diagnosis.0.iter().find(|one| one.check.id == id);
        found.map(|one| one.severity)
    };
    // Who makes sound lives without PREEMPT_RT; who controls a machine does not.
    let (audio, control) = (
        stock().weighed(Purpose::Audio),
        stock().weighed(Purpose::Control),
    );
    assert_eq!(severity(&audio, "preempt-rt"), Some(Severity::Low));
    assert_eq!(severity(&control, "preempt-rt"), Some(Severity::Fatal));
    assert_eq!(control.health(), Health::Unfit);
    assert_eq!(severity(&audio, "isolcpus"), None);
    let isolated = stock().weighed(Purpose::Isolated);
    assert_eq!(severity(&isolated, "isolcpus"), Some(Severity::High));
    assert_eq!(severity(&isolated, "no-hz"), None);
    for diagnosis in [audio, control, isolated] {
        assert!(
            diagnosis
                .0
                .is_sorted_by_key(|one| std::cmp::Reverse(one.severity))
        );
    }
    for purpose in Purpose::ALL {
        assert_eq!(purpose.name().parse(), Ok(purpose));
    }
    assert!("music".parse::<Purpose>().is_err());
}

/// A machine without PREEMPT_RT, of this system.
fn of_system(edits: &[Edit]) -> Tree {
    Tree::sound().edited(&[STOCK]).edited(edits)
}

/// The commands for the kernel and for a boot argument are those of the machine's own system.
#[test]
fn the_commands_are_those_of_the_machines_system() {
    const OS: &str = "/etc/os-release";
    const PI: Edit = File(
        "/proc/device-tree/model",
        "Raspberry Pi 4 Model B Rev 1.4\0",
    );
    for (edits, system, kernel) in [
        (
            &[File(OS, "NAME=\"Debian GNU/Linux\"\nID=debian\n")][..],
            System::Debian,
            "sudo apt install linux-image-rt-$(dpkg --print-architecture)",
        ),
        // Debian itself on a Raspberry Pi is Debian.
        (
            &[File(OS, "ID=debian\n"), PI],
            System::Debian,
            "sudo apt install linux-image-rt-$(dpkg --print-architecture)",
        ),
        (
            &[File(OS, "ID=debian\n"), PI, File("/etc/rpi-issue", "x")],
            System::RaspberryPi,
            "sudo apt install linux-image-rpi-v8-rt",
        ),
        (
            &[File(OS, "ID=raspbian\nID_LIKE=debian\n"), PI],
            System::RaspberryPi32,
            "apt search linux-image-rpi",
        ),
        (
            &[File(OS, "ID=ubuntu\nID_LIKE=debian\n")],
            System::Ubuntu,
            "sudo pro enable realtime-kernel   # LTS releases only",
        ),
        (
            &[File(OS, "ID=ubuntu\n"), PI],
            System::UbuntuOnPi,
            "sudo pro enable realtime-kernel --variant=raspi   # LTS releases only",
        ),
        // No command of Debian's is told to others.
        (
            &[File(OS, "ID=\"fedora\"\n")],
            System::Other,
            "# install a kernel with PREEMPT_RT, often called rt or realtime",
        ),
    ] {
        let tree = of_system(edits);
        let machine = tree.machine();
        let steps = examine(&machine, &|_| true).first_steps(&machine, 3);
        assert_eq!(steps[0].check, "preempt-rt");
        assert!(steps[0].reboot);
        let [(own, commands)] = &steps[0].commands[..] else {
            panic!("{steps:?}");
        };
        assert_eq!(*own, system);
        assert!(commands.iter().any(|line| line == kernel), "{commands:?}");
    }
    let tree = of_system(&[]);
    let machine = tree.machine();
    let steps = examine(&machine, &|_| true).first_steps(&machine, 3);
    let told: Vec<System> = steps[0]
        .commands
        .iter()
        .map(|(system, _)| *system)
        .collect();
    assert_eq!(told, System::COMMON);
}

/// Each step fits a terminal of 80 columns, and its boot argument is the one that the trial tries.
#[test]
fn steps_are_short_and_say_what_the_trials_try() {
    let mut seen = BTreeSet::new();
    for (id, edits, _) in DEFECTS {
        let tree = Tree::sound().edited(edits);
        let machine = tree.machine();
        let diagnosis = examine(&machine, &|check| check.id == *id);
        for step in diagnosis.first_steps(&machine, 3) {
            for line in step.commands.iter().flat_map(|(_, lines)| lines) {
                assert!(line.chars().count() <= 75, "{line}");
            }
            seen.insert(step.check);
        }
        for (tried, told) in diagnosis.wrong().filter_map(steps::of_trial) {
            // Which CPUs are isolated differs from machine to machine, and so does how: the
            // trial turns a detector off at boot, a setting later.
            let is_same =
                tried == told || ["isolcpus", "lockup-detector", "soft-watchdog"].contains(id);
            assert!(is_same, "{id}: {tried} {told}");
        }
    }
    for id in [
        "preempt-rt",
        "governor",
        "rt-permission",
        "isolcpus",
        "harmful-arguments",
    ] {
        assert!(seen.contains(id), "{id}: {seen:?}");
    }
}

/// The checks that a step settles are listed with it, unless they weigh as much by themselves.
#[test]
fn what_a_step_settles_stands_under_it() {
    let tree = of_system(&[
        File("/sys/kernel/debug/sched/preempt", "none (voluntary) full"),
        File("/etc/os-release", "ID=debian\n"),
    ]);
    let machine = tree.machine();
    let all = || examine(&machine, &|_| true);
    let steps = all().first_steps(&machine, 9);
    assert!(steps[0].settles.contains(&"preemption-model"), "{steps:?}");
    assert!(steps.iter().all(|step| step.check != "preemption-model"));
    let audio = all().weighed(Purpose::Audio).first_steps(&machine, 9);
    let model = audio
        .iter()
        .find(|step| step.check == "preemption-model")
        .unwrap();
    let (_, commands) = &model.commands[0];
    assert_eq!(commands[1], "  preempt=full\"' | \\");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work on isolated CPUs: callbacks, pages, interrupts.

use super::*;

#[test]
fn the_list_of_rcu_nocbs_is_read_as_the_kernel_does() {
    let told = |edits: &[Edit]| {
        let bare = with(&[NoOption("nohz_full"), NoOption("rcu_nocbs")]);
        found("rcu-nocbs", &bare.edited(edits))
    };
    let fine = "fine: isolated CPUs that are not in rcu_nocbs: none";
    let wrong = "wrong: isolated CPUs that are not in rcu_nocbs: 2-3";
    // Without a list no CPU is set.
    for none in ["rcu_nocbs", "rcu_nocbs="] {
        assert_eq!(told(&[Argument(none)]), wrong, "{none}");
    }
    for all in ["rcu_nocbs=2-N", "rcu_nocbs=all", "rcu_nocbs=2,N"] {
        assert_eq!(told(&[Argument(all)]), fine, "{all}");
    }
    let two = "wrong: isolated CPUs that are not in rcu_nocbs: 2";
    assert_eq!(told(&[Argument("rcu_nocbs=N")]), two);
    let more = File("/sys/devices/system/cpu/possible", "0-7");
    assert_eq!(told(&[more, Argument("rcu_nocbs=N")]), wrong);
    let default = Option("RCU_NOCB_CPU_DEFAULT_ALL");
    assert_eq!(told(&[default]), fine);
    assert_eq!(told(&[default, Argument("rcu_nocbs")]), wrong);
    assert_eq!(told(&[default, Argument("nohz_full=3")]), two);
    assert!(told(&[Gone(CONFIG)]).starts_with("unknown: "));
}

/// Before Linux 6.7 no file lists all isolated partitions; version 1 never says which CPUs it
/// isolates, and a container does not see its host's groups.
#[test]
fn partitions_isolate_and_what_may_be_isolated_unseen_is_unknown() {
    let bare = || {
        with(&[
            File(ISOLATED, ""),
            NoOption("isolcpus"),
            File(WORKQUEUES, "f"),
        ])
        .edited(&[File("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n")])
    };
    let told = |id, edits: &[Edit]| found(id, &bare().edited(edits));
    assert!(told("workqueues", &[]).starts_with("moot: "));
    let effective = File("/sys/fs/cgroup/rt/cpuset.cpus.effective", "2-3\n");
    let partition = |kind| {
        [
            File("/sys/fs/cgroup/rt/cpuset.cpus.partition", kind),
            effective,
        ]
    };
    let wrong = format!("wrong: isolated CPUs in {WORKQUEUES}: 2-3");
    assert_eq!(told("workqueues", &partition("isolated\n")), wrong);
    for other in ["member\n", "root\n", "isolated invalid (x)\n"] {
        let moot = told("workqueues", &partition(other));
        assert!(moot.starts_with("moot: "), "{other}: {moot}");
    }
    let version_1 = [
        Gone("/sys/fs/cgroup/cgroup.controllers"),
        File("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "0\n"),
    ];
    let container = [File("/sys/fs/cgroup/cgroup.type", "domain\n")];
    let by_boot = File(ISOLATED, "2-3");
    for hidden in [&version_1[..], &container] {
        for id in ["isolcpus", "workqueues", "nohz-full", "irqbalance"] {
            let own = [hidden, &[File("/proc/700/comm", "irqbalance\n")]].concat();
            let unknown = told(id, &own);
            assert!(unknown.starts_with("unknown: "), "{id}: {unknown}");
        }
        assert_eq!(
            told("isolcpus", &[hidden, &[by_boot]].concat()),
            "fine: isolated CPUs: 2-3"
        );
        // A CPU that is isolated by boot and not kept out decides; else there may be another.
        let seen = |mask| told("workqueues", &[hidden, &[by_boot, mask]].concat());
        assert_eq!(seen(File(WORKQUEUES, "f")), wrong);
        let unknown = seen(File(WORKQUEUES, "3"));
        assert!(unknown.starts_with("unknown: "), "{unknown}");
        let covered = |line| {
            let own = [hidden, &[by_boot, File(CMDLINE, line)]].concat();
            told("nohz-full", &own)
        };
        let bare = "wrong: isolated CPUs that are not in nohz_full: 2-3";
        assert_eq!(covered("quiet"), bare);
        let unknown = covered("nohz_full=2-3");
        assert!(unknown.starts_with("unknown: "), "{unknown}");
    }
    let nested = [
        File("/sys/fs/cgroup/a/cpuset.cpus.partition", "root\n"),
        File("/sys/fs/cgroup/a/b/cpuset.cpus.partition", "isolated\n"),
        File("/sys/fs/cgroup/a/b/cpuset.cpus.effective", "2-3\n"),
    ];
    assert_eq!(told("workqueues", &nested), wrong);
    let balanced = File("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance", "1\n");
    let moot = told("workqueues", &[version_1[0], balanced]);
    assert!(moot.starts_with("moot: "), "{moot}");
}

/// The mask of all workqueues bounds each one's own.
#[test]
fn pages_are_written_back_where_both_masks_allow_it() {
    let told = |own: &'static str, all: &'static str| {
        found(
            "writeback",
            &with(&[File(WRITEBACK, own), File(WORKQUEUES, all)]),
        )
    };
    let fine = "fine: isolated CPUs that write pages back: none";
    assert_eq!(told("f", "3"), fine);
    assert_eq!(told("3", "f"), fine);
    assert_eq!(
        told("f", "f"),
        "wrong: isolated CPUs that write pages back: 2-3"
    );
    // With no CPU in both the mask of all counts.
    assert_eq!(told("c", "3"), fine);
    assert_eq!(
        told("3", "8"),
        "wrong: isolated CPUs that write pages back: 3"
    );
    let unknown = of("writeback", &with(&[Gone(WORKQUEUES)]));
    assert_eq!(unknown.name(), "unknown");
}

/// It does not know of isolated partitions of control groups.
#[test]
fn irqbalance_leaves_out_what_boot_arguments_isolate_or_what_it_is_given() {
    let told = |edits: &[Edit]| {
        let runs = with(&[File("/proc/700/comm", "irqbalance\n"), File(ISOLATED, "")]);
        found("irqbalance", &runs.edited(edits))
    };
    let partition = File("/sys/fs/cgroup/cpuset.cpus.isolated", "2-3\n");
    let environment = |text| File("/proc/700/environ", text);
    let fine = "fine: irqbalance: runs, and leaves isolated CPUs out";
    let wrong = "wrong: isolated CPUs that irqbalance does not leave out";
    assert_eq!(told(&[partition]), format!("{wrong}: 2-3"));
    assert_eq!(told(&[File(ISOLATED, "2-3")]), fine);
    assert_eq!(
        told(&[partition, File(ISOLATED, "2")]),
        format!("{wrong}: 3")
    );
    let tickless = File("/sys/devices/system/cpu/nohz_full", "2-3");
    assert_eq!(told(&[partition, tickless]), fine);
    let listed = environment("PATH=/bin\0IRQBALANCE_BANNED_CPULIST=2-3\0");
    assert_eq!(told(&[partition, listed]), fine);
    let masked = environment("IRQBALANCE_BANNED_CPUS=0000000c\0");
    assert_eq!(told(&[partition, masked]), fine);
    // What it is given replaces what it finds.
    let fewer = environment("IRQBALANCE_BANNED_CPULIST=3\0");
    assert_eq!(told(&[File(ISOLATED, "2-3"), fewer]), format!("{wrong}: 2"));
    let damaged = environment("IRQBALANCE_BANNED_CPULIST=x\0");
    assert!(told(&[partition, damaged]).starts_with("unknown: "));
}

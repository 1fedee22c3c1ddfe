// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boot arguments.

use super::*;

/// A copy of a machine of which somebody has posted only the arguments.
#[test]
fn arguments_decide_without_other_files_and_those_that_harm_are_named() {
    let tree = made(&[
        (
            CMDLINE,
            "isolcpus=domain,managed_irq,2-3 nohz_full=2-3 rcu_nocbs=2-3 preempt=none \
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
            "wrong: boot argument preempt, on PREEMPT_RT: none",
        ),
        ("tsc-reliable", "fine: boot argument tsc: reliable"),
        ("mitigations", "fine: boot argument mitigations: off"),
    ] {
        assert_eq!(found(id, &tree), expected, "{id}");
    }
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
    for line in ["isolcpus=domain,0-N", "isolcpus=domain,0-2,N"] {
        assert_eq!(
            told(line),
            format!("wrong: boot arguments: {line}: no CPU is left for the rest")
        );
    }
    assert_eq!(told("isolcpus=2-3 idle=poll"), "fine: boot arguments: none");
    // More CPUs are possible than there are.
    let possible = made(&[
        (CMDLINE, "isolcpus=domain,2-N"),
        (ONLINE, "0-3"),
        ("/sys/devices/system/cpu/possible", "0-7"),
    ]);
    assert_eq!(
        found("contradicting-arguments", &possible),
        "fine: boot arguments: none"
    );
}

#[test]
fn an_argument_that_switches_off_what_it_is_for_does_no_harm() {
    let told = |line: &'static str, cpuinfo: &'static str| {
        let tree = made(&[(CMDLINE, line), (CPUINFO, cpuinfo)]);
        found("harmful-arguments", &tree)
    };
    let fine = "fine: boot arguments: none";
    let x86 = tree::cpuinfo!("");
    assert_eq!(told("slub_debug=- slab_debug=- ftrace=nop", x86), fine);
    assert_eq!(
        told("slub_debug slab_debug=FZ ftrace=function", x86),
        "wrong: boot arguments: slub_debug, slab_debug=FZ, ftrace=function"
    );
    // Arm has device trees, and takes none of the others.
    let arm = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n";
    let line = "acpi=off noapic tsc=unstable";
    let wrong = "wrong: boot arguments: acpi=off, noapic, tsc=unstable";
    assert_eq!(told(line, arm), fine);
    assert_eq!(told(line, x86), wrong);
    // Of an unknown architecture it is harmful.
    assert_eq!(told(line, ""), wrong);
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

/// The last one counts, and older ones are not forgotten.
#[test]
fn arguments_that_switch_efi_off_are_read_as_the_kernel_does() {
    let told = |line| {
        let edits = [
            File("/sys/firmware/efi/runtime", "0x1"),
            NoOption("EFI_DISABLE_RUNTIME"),
            File(CMDLINE, line),
        ];
        of("efi-runtime", &with(&edits)).name()
    };
    for off in [
        "efi=noruntime efi=debug",
        "noefi",
        "efi=runtime efi=noruntime",
    ] {
        assert_eq!(told(off), "fine", "{off}");
    }
    for on in [
        "efi=noruntime,runtime",
        "efi=noruntime efi=runtime",
        "efi=debug",
    ] {
        assert_eq!(told(on), "wrong", "{on}");
    }
}

/// With the tick always on no timer moves, whatever the setting says.
#[test]
fn timers_stay_where_the_tick_does_not_stop() {
    let told = |more: &[Edit]| {
        let moves = with(&[File("/proc/sys/kernel/timer_migration", "1")]);
        found("timer-migration", &moves.edited(more))
    };
    let fine = "fine: boot argument nohz: off";
    assert_eq!(told(&[Argument("nohz=off")]), fine);
    let wrong = "wrong: kernel.timer_migration: 1";
    assert_eq!(told(&[Argument("nohz=on")]), wrong);
    assert_eq!(told(&[Gone(CMDLINE)]), wrong);
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels: their versions, their configurations, their models of preemption.

use super::*;

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

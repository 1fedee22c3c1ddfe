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

/// PREEMPT_RT has models to choose from if it was built with `PREEMPT_DYNAMIC`: full and lazy differ.
#[test]
fn a_model_that_preempt_rt_offers_may_be_asked_for() {
    let told = |edits: &[Edit]| found("preempt-argument", &with(edits));
    let name = "boot argument preempt, on PREEMPT_RT";
    let dynamic = Option("PREEMPT_DYNAMIC");
    assert_eq!(
        told(&[dynamic, Argument("preempt=full")]),
        format!("fine: {name}: full")
    );
    assert_eq!(
        told(&[Argument("preempt=full")]),
        format!("wrong: {name}: full")
    );
    assert_eq!(
        told(&[dynamic, Argument("preempt=voluntary")]),
        format!("wrong: {name}: voluntary")
    );
    assert_eq!(
        told(&[dynamic, Argument("preempt=lazy")]),
        format!("wrong: {name}: lazy")
    );
    let unknown = told(&[Gone(CONFIG), Argument("preempt=full")]);
    assert!(unknown.starts_with("unknown: "), "{unknown}");
}

/// Linux 5.19 brought the option. Red Hat's 5.14 has it, too.
#[test]
fn preempt_rt_turns_efi_off_by_itself_before_there_was_an_option_for_it() {
    let told = |release: &'static str, config: Edit, version: &'static str| {
        let edits = [
            File("/sys/firmware/efi/runtime", "0x1"),
            config,
            File(VERSION, version),
            File("/proc/sys/kernel/osrelease", release),
            Edit::Rename(CONFIG, release),
        ];
        found("efi-runtime", &with(&edits))
    };
    let rt = "Linux version x #1 SMP PREEMPT_RT x";
    let absent = NoOption("EFI_DISABLE_RUNTIME");
    let off = "wrong: CONFIG_EFI_DISABLE_RUNTIME: off";
    let by_rt = "fine: /proc/version: PREEMPT_RT";
    assert_eq!(told("5.10.1-rt1", absent, rt), by_rt);
    assert_eq!(told("5.10.1", absent, "Linux version x #1 SMP x"), off);
    assert_eq!(told("5.19.1-rt1", absent, rt), off);
    assert_eq!(told("4.9.1-rt1", absent, rt), off);
    let named = "# Automatically generated file; DO NOT EDIT.\nCONFIG_PREEMPT_RT=y\n\
                 # CONFIG_EFI_DISABLE_RUNTIME is not set\n# Kernel hacking\n";
    assert_eq!(told("5.14.0-rt", File(CONFIG, named), rt), off);
    let cut = told("5.10.1-rt1", File(CONFIG, "CONFIG_PREEMPT_RT=y\n"), rt);
    assert!(cut.starts_with("unknown: "), "{cut}");
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

/// Each instance of the kernel's tracing has its own tracer and events.
#[test]
fn a_tracer_of_an_instance_is_active_too() {
    let at = "/sys/kernel/tracing/instances/rtla/current_tracer";
    let events = File("/sys/kernel/tracing/instances/rtla/set_event", "");
    let told = |tracer| found("active-tracer", &with(&[File(at, tracer), events]));
    assert_eq!(told("nop"), "fine: tracers and events: none");
    assert_eq!(
        told("timerlat"),
        "wrong: tracers and events: instances/rtla/timerlat"
    );
    let unknown = with(&[events]);
    assert_eq!(of("active-tracer", &unknown).name(), "unknown");
}

/// RCU does what its setting says now, not what was asked for at boot.
#[test]
fn the_setting_of_rcu_in_force_counts() {
    let told = |edits: &[Edit]| of("rcu-normal", &with(edits)).name();
    let asked = File("/sys/module/rcupdate/parameters/rcu_normal_after_boot", "1");
    let hurries = File("/sys/kernel/rcu_normal", "0");
    assert_eq!(told(&[asked, hurries]), "wrong");
    assert_eq!(told(&[asked, Gone("/sys/kernel/rcu_normal")]), "unknown");
    assert_eq!(told(&[STOCK]), "fine");
}

/// These remain with `mitigations=off`, and make no path longer.
#[test]
fn mitigations_that_cannot_be_switched_off_are_no_defect() {
    let told = |state| {
        let file = "/sys/devices/system/cpu/vulnerabilities/spectre_v1";
        of("mitigations", &with(&[File(file, state)])).name()
    };
    for always in [
        "Mitigation: __user pointer sanitization\n",
        "Mitigation: CSV2, but not BHB\n",
        "Mitigation: SMT disabled\n",
    ] {
        assert_eq!(told(always), "fine", "{always}");
    }
    for costs in [
        "Mitigation: usercopy/swapgs barriers and __user pointer sanitization",
        "Mitigation: CSV2, BHB",
        "Mitigation: Branch predictor hardening, but not BHB",
        "Mitigation: Clear CPU buffers; SMT disabled",
    ] {
        assert_eq!(told(costs), "wrong", "{costs}");
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

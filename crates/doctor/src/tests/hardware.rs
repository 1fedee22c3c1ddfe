// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that are offline or differ from each other, and interrupts.

use super::*;

const DRIVER_1: Edit = File(
    "/sys/devices/system/cpu/cpufreq/policy1/scaling_driver",
    "x",
);
const GOVERNOR_1: &str = "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor";

/// The kernel shows no file of a policy whose CPUs are all offline; older ones show the governor of
/// its past.
#[test]
fn the_governor_of_cpus_that_are_offline_does_not_matter() {
    let told = |edits: &[Edit]| found("governor", &with(edits));
    let fine = "fine: scaling_governor: performance";
    let offline = File(ONLINE, "0,2-3");
    assert_eq!(told(&[DRIVER_1, offline]), fine);
    let none = File("/sys/devices/system/cpu/cpufreq/policy1/affected_cpus", "");
    assert_eq!(told(&[File(GOVERNOR_1, "powersave"), none]), fine);
    assert_eq!(told(&[none]), fine);
    // What an online CPU does not tell is unknown, unless another one is wrong.
    let unknown = told(&[DRIVER_1]);
    assert!(unknown.starts_with("unknown: "), "{unknown}");
    let other = "/sys/devices/system/cpu/cpufreq/policy2/scaling_governor";
    assert_eq!(
        told(&[DRIVER_1, File(other, "powersave")]),
        "wrong: scaling_governor: performance, powersave"
    );
    assert!(told(&[DRIVER_1, Gone(ONLINE)]).starts_with("unknown: "));
    // A CPU without a policy runs as fast as its firmware likes.
    let fewer = File(
        "/sys/devices/system/cpu/cpufreq/policy0/affected_cpus",
        "0 1",
    );
    let bare = told(&[fewer]);
    assert!(bare.starts_with("unknown: "), "{bare}");
    assert!(bare.contains("no policy has CPU 2-3"), "{bare}");
    assert_eq!(told(&[fewer, File(ONLINE, "0-1")]), fine);
    let linked = with(&[DRIVER_1, offline])
        .linked("/sys/devices/system/cpu/cpu2/cpufreq", "../cpufreq/policy1");
    assert!(found("governor", &linked).starts_with("unknown: "));
}

#[test]
fn the_deepest_idle_state_of_any_online_cpu_counts() {
    let told = |id, edits: &[Edit]| found(id, &with(edits));
    let deep = File("/sys/devices/system/cpu/cpu3/cpuidle/state0/latency", "250");
    let not_held = File("/dev/cpu_dma_latency", "\0\0\0\u{7f}");
    assert_eq!(
        told("idle-states", &[deep]),
        "wrong: latency of the idle state C1 of CPU 3: 250 µs"
    );
    assert!(told("cpu-dma-latency", &[deep, not_held]).starts_with("wrong: "));
    assert_eq!(
        told("idle-states", &[deep, File(ONLINE, "0-2")]),
        "fine: latency of the idle state C1 of CPU 0: 2.00 µs"
    );
    // A CPU that does not tell may sleep deeply, and a deep one decides.
    let silent = Gone("/sys/devices/system/cpu/cpu1/cpuidle");
    for id in ["idle-states", "cpu-dma-latency"] {
        assert!(told(id, &[silent]).starts_with("unknown: "), "{id}");
        assert!(
            told(id, &[File(ONLINE, "")]).starts_with("unknown: "),
            "{id}"
        );
        assert!(
            told(id, &[silent, deep, not_held]).starts_with("wrong: "),
            "{id}"
        );
    }
}

#[test]
fn handlers_of_one_usb_controller_and_of_several_share_nothing_with_others() {
    let told = |line: &str| {
        let text = format!("            CPU0       CPU1\n{line}\n");
        let tree = Tree::sound().edited(&[File("/proc/interrupts", text.leak())]);
        found("shared-interrupts", &tree)
    };
    let fine = "fine: shared interrupts: none";
    for line in [
        " 56:  9  0  ARMCTRL-level  64 Edge      dwc_otg, dwc_otg_pcd, dwc_otg_hcd:usb1",
        " 40:  9  0  GICv2 105 Level     fe980000.usb, fe980000.usb, dwc2_hsotg:usb1",
        " 18:  9  0  IO-APIC  18-fasteoi   ehci_hcd:usb1, uhci_hcd:usb5, uhci_hcd:usb8",
        " 24:  9  0  IO-APIC  24-fasteoi   snd_hda_intel:card0",
    ] {
        assert_eq!(told(line), fine, "{line}");
    }
    assert_eq!(
        told(" 56:  9  0  ARMCTRL-level  64 Edge  dwc_otg, dwc_otg_hcd:usb1, mmc0"),
        "wrong: shared interrupts: 56 (dwc_otg and dwc_otg_hcd:usb1 and mmc0)"
    );
    assert_eq!(
        told(" 17:  9  0  IO-APIC  17-fasteoi  snd_hda_intel:card0, ehci_hcd:usb1"),
        "wrong: shared interrupts: 17 (snd_hda_intel:card0 and ehci_hcd:usb1)"
    );
}

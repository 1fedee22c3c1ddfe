// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first steps, and the purposes of machines.

use std::collections::BTreeSet;

use super::defects::DEFECTS;
use super::*;

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
    assert!(told.contains("#isolcpus=nohz,domain,2-3#"), "{told}");
    // The owner's flags stay.
    let nohz = steps("6.6.31-rt31-v8+", "isolcpus=nohz,domain,2-N", "2-3").unwrap();
    assert!(
        nohz.contains("#isolcpus=managed_irq,nohz,domain,2-N#"),
        "{nohz}"
    );
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

/// A switch of a single size does not follow the common one.
#[test]
fn huge_pages_of_single_sizes_are_seen_and_switched_off_where_they_are_made() {
    let size = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
    let told = |text| found("transparent-huge-pages", &with(&[File(size, text)]));
    let never = "fine: transparent_hugepage/enabled: never";
    assert_eq!(told("always inherit madvise [never]"), never);
    assert_eq!(told("always [inherit] madvise never"), never);
    assert_eq!(
        told("[always] inherit madvise never"),
        "wrong: transparent_hugepage/hugepages-*/enabled: hugepages-64kB always"
    );
    let tree = with(&[File(size, "always inherit [madvise] never")]);
    let machine = tree.machine();
    let steps = examine(&machine, &|check| check.id == "transparent-huge-pages");
    let steps = steps.first_steps(&machine, 1);
    let (_, commands) = &steps[0].commands[0];
    assert!(
        commands[1].ends_with("/hugepages-*/enabled"),
        "{commands:?}"
    );
    for line in commands {
        assert!(line.chars().count() <= 75, "{line}");
    }
}

/// The checks that a step settles are listed with it, unless they weigh as much by themselves.
#[test]
fn what_a_step_settles_stands_under_it() {
    let own = of_system(&[
        File("/sys/kernel/debug/sched/preempt", "none (voluntary) full"),
        File("/etc/os-release", "ID=debian\n"),
    ]);
    let tree = own.clone().edited(&[Option("PREEMPT_DYNAMIC")]);
    let machine = tree.machine();
    let steps = examine(&machine, &|_| true).first_steps(&machine, 9);
    assert!(steps[0].settles.contains(&"preemption-model"), "{steps:?}");
    assert!(steps.iter().all(|step| step.check != "preemption-model"));
    let model = |tree: &Tree| {
        let machine = tree.machine();
        let all = examine(&machine, &|_| true).weighed(Purpose::Audio);
        let steps = all.first_steps(&machine, 9);
        let own = steps.iter().find(|step| step.check == "preemption-model");
        own.unwrap().commands[0].1.join("\n")
    };
    let taken = model(&tree);
    assert!(taken.contains("  preempt=full\"' | \\"), "{taken}");
    // A kernel that does not take the argument must be another one.
    let ignored = model(&own);
    assert!(ignored.contains("linux-image-rt"), "{ignored}");
}

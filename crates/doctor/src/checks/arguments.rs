// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boot arguments that harm, contradict each other, or are unknown to every kernel.

use punctual_model::Reason;
use punctual_model::cpus::show_list;
use punctual_model::units::CpuId;

use super::hardware::is_other_architecture;
use super::source;
use crate::check::{Check, Severity, Trial, Verdict};
use crate::machine::{Machine, is_cpus};

pub const CHECKS: &[Check] = &[
    Check {
        id: "harmful-arguments",
        severity: Severity::High,
        wanted: "no boot argument makes the kernel slower, or its clock worse",
        advice: "remove them: they are for machines that do not boot, and for finding faults",
        source: source::KERNEL_PARAMETERS,
        needs_root: false,
        trial: Trial::None("they change what the guest does not have, or are for tests"),
        look: harmful,
    },
    Check {
        id: "contradicting-arguments",
        severity: Severity::Medium,
        wanted: "boot arguments do not contradict each other or the machine",
        advice: "keep one of the two; name only CPUs that are there, and leave one for the rest",
        source: source::KERNEL_PARAMETERS,
        needs_root: false,
        trial: Trial::None("the arguments show it by themselves"),
        look: contradicting,
    },
    Check {
        id: "unknown-arguments",
        severity: Severity::Low,
        wanted: "the kernel takes each boot argument that is meant for it",
        advice: "write it as the kernel's documentation does, or take it away; `dmesg | grep \
                 Unknown` names all that the kernel did not take",
        source: source::KERNEL_PARAMETERS,
        needs_root: false,
        trial: Trial::None("an argument that is ignored costs nothing"),
        look: unknown,
    },
];

/// Harmful arguments, with their harmful values; an empty list means any value.
const HARMFUL: [(&str, &[&str]); 14] = [
    // Each timer interrupt, or each that nobody wanted, polls all handlers.
    ("irqpoll", &[]),
    ("irqfixup", &[]),
    ("noapic", &[]),
    ("nolapic", &[]),
    ("nolapic_timer", &[]),
    ("acpi", &["off"]),
    ("notsc", &[]),
    ("tsc", &["unstable"]),
    ("clocksource", &["hpet", "acpi_pm", "jiffies", "pit"]),
    ("slub_debug", &[]),
    ("slab_debug", &[]),
    ("debug_pagealloc", &["on", "1"]),
    ("kmemleak", &["on"]),
    ("ftrace", &[]),
];

/// Values that switch off what the argument is for.
const HARMLESS: [(&str, &str); 3] = [("slub_debug", "-"), ("slab_debug", "-"), ("ftrace", "nop")];

fn harmful(machine: &Machine) -> Result<Verdict, Reason> {
    let given = machine.command_line()?;
    let is_other = is_other_architecture(machine);
    let is_harmful = |(name, value): &&(String, String)| {
        let (name, value) = (name.as_str(), value.as_str());
        // Without ACPI an Arm machine has its device tree.
        if is_other && (name == "acpi" || X86.contains(&name)) {
            return false;
        }
        let known = HARMFUL.iter().find(|(own, _)| *own == name);
        known.is_some_and(|(_, values)| values.is_empty() || values.contains(&value))
            && !HARMLESS.contains(&(name, value))
    };
    let found: Vec<String> = given.iter().filter(is_harmful).map(shown).collect();
    Ok(Verdict::of(found.is_empty(), "boot arguments", found))
}

fn shown((name, value): &(String, String)) -> String {
    if value.is_empty() {
        name.clone()
    } else {
        format!("{name}={value}")
    }
}

/// An argument's name and value; an empty value means any.
type Argument = (&'static str, &'static str);

/// Pairs of arguments that are useless together.
const PAIRS: [(Argument, Argument); 5] = [
    (("nohz", "off"), ("nohz_full", "")),
    (("nowatchdog", ""), ("nmi_watchdog", "1")),
    (("nosoftlockup", ""), ("softlockup_panic", "1")),
    (("tsc", "reliable"), ("tsc", "unstable")),
    (("highres", "off"), ("skew_tick", "1")),
];

fn contradicting(machine: &Machine) -> Result<Verdict, Reason> {
    let given = machine.command_line()?;
    let has = |(name, value): Argument| {
        given
            .iter()
            .any(|(own, own_value)| own == name && (value.is_empty() || own_value == value))
    };
    let is_contradiction = |(one, other): &&(Argument, Argument)| has(*one) && has(*other);
    let name = |(name, value): Argument| match value {
        "" => name.to_owned(),
        value => format!("{name}={value}"),
    };
    let pairs = PAIRS.iter().filter(is_contradiction);
    let mut found: Vec<String> = pairs
        .map(|(one, other)| format!("{} and {}", name(*one), name(*other)))
        .collect();
    found.extend(absent_cpus(machine, &given)?);
    found.extend(crossed_lists(machine, &given));
    Ok(Verdict::of(found.is_empty(), "boot arguments", found))
}

/// The CPUs of a list that follows its flags: `managed_irq,domain,2-3`.
fn listed(machine: &Machine, value: &str) -> Option<Vec<CpuId>> {
    let list: Vec<&str> = value.split(',').filter(|part| is_cpus(part)).collect();
    let cpus = machine.listed(&list.join(",")).ok()?;
    Some(cpus).filter(|cpus| !cpus.is_empty())
}

/// Finds lists of CPUs that undo each other.
fn crossed_lists(machine: &Machine, given: &[(String, String)]) -> Vec<String> {
    let all = |name: &str| {
        let own = given.iter().filter(|(own, _)| own == name);
        let lists = own.filter_map(|(_, value)| Some((value.as_str(), listed(machine, value)?)));
        lists.collect::<Vec<_>>()
    };
    let mut found = Vec::new();
    let isolated = all("isolcpus");
    // `housekeeping_setup()`: of two lists for the same purpose the second one is not taken.
    if let [(_, first), .., (again, last)] = &isolated[..] {
        if first != last {
            found.push(format!("isolcpus={again}: the first list counts"));
        }
    }
    let ticks = all("nohz_full");
    if let ([(own, isolated), ..], [(value, ticks), ..]) = (&isolated[..], &ticks[..]) {
        if isolated != ticks && machine.is_since(5, 18) == Ok(false) {
            let pair = format!("isolcpus={own} and nohz_full={value}");
            found.push(format!("{pair}: not before Linux 5.18"));
        }
    }
    if let ([(_, isolated), ..], [(_, irqs), ..]) = (&isolated[..], &all("irqaffinity")[..]) {
        let both: Vec<CpuId> = irqs
            .iter()
            .filter(|cpu| isolated.contains(cpu))
            .copied()
            .collect();
        if !both.is_empty() {
            let both = show_list(&both);
            found.push(format!("irqaffinity: isolated CPUs {both} are in it"));
        }
    }
    found
}

/// Finds lists of CPUs that name absent CPUs, or all CPUs.
fn absent_cpus(machine: &Machine, given: &[(String, String)]) -> Result<Vec<String>, Reason> {
    let lists = ["isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity"];
    let lists: Vec<_> = given
        .iter()
        .filter(|(name, value)| lists.contains(&name.as_str()) && !value.is_empty())
        .collect();
    if lists.is_empty() {
        return Ok(Vec::new());
    }
    let there = machine
        .cpus("/sys/devices/system/cpu/present")
        .or_else(|_| machine.online())?;
    let mut found = Vec::new();
    for (name, value) in lists {
        let Some(cpus) = listed(machine, value) else {
            continue;
        };
        let absent: Vec<CpuId> = cpus
            .iter()
            .filter(|cpu| !there.contains(cpu))
            .copied()
            .collect();
        // With `N` it is the kernel that names the last one.
        if !absent.is_empty() && !value.contains('N') {
            let absent = show_list(&absent);
            found.push(format!("{name}={value}: there is no CPU {absent}"));
        } else if name != "rcu_nocbs"
            && name != "irqaffinity"
            && there.iter().all(|cpu| cpus.contains(cpu))
        {
            found.push(format!("{name}={value}: no CPU is left for the rest"));
        }
    }
    Ok(found)
}

/// Arguments that people give and no kernel takes.
const NOBODYS: [&str; 10] = [
    // Until 2.6 and 4.20.
    "noht",
    "elevator",
    // It is `rcupdate.rcu_normal_after_boot`.
    "rcu_normal_after_boot",
    "workqueue.cpumask",
    "noirqbalance",
    "irqbalance",
    "nohz_idle",
    "rt",
    "realtime",
    "nortthrottle",
];

/// Arguments for real-time work, used to recognise misspelt ones.
const KNOWN: [&str; 37] = [
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "rcu_nocb_poll",
    "irqaffinity",
    "kthread_cpus",
    "skew_tick",
    "threadirqs",
    "preempt",
    "nosmt",
    "nohz",
    "highres",
    "idle",
    "mitigations",
    "nowatchdog",
    "nosoftlockup",
    "nmi_watchdog",
    "tsc",
    "clocksource",
    "transparent_hugepage",
    "rcupdate.rcu_expedited",
    "rcupdate.rcu_normal",
    "rcupdate.rcu_normal_after_boot",
    "processor.max_cstate",
    "intel_idle.max_cstate",
    "intel_pstate",
    "amd_pstate",
    "cpufreq.default_governor",
    "cpuidle.off",
    "pcie_aspm",
    "pcie_aspm.policy",
    "efi",
    "numa_balancing",
    "rt_group_sched",
    "irqpoll",
    "irqfixup",
    "workqueue.unbound_cpus",
];

fn unknown(machine: &Machine) -> Result<Verdict, Reason> {
    let given = machine.command_line()?;
    let told = |(name, value): &(String, String)| {
        if NOBODYS.contains(&name.as_str()) {
            return Some(shown(&(name.clone(), value.clone())));
        }
        let meant = KNOWN.iter().find(|known| is_misspelt(name, known))?;
        Some(format!("{name} (is {meant} meant?)"))
    };
    let mut found: Vec<String> = given.iter().filter_map(told).collect();
    if is_other_architecture(machine) {
        let of_x86 = |(name, value): &&(String, String)| {
            X86.contains(&name.as_str()) || (name == "idle" && value == "poll")
        };
        let own = given.iter().filter(of_x86);
        found.extend(own.map(|own| format!("{} (x86 alone takes it)", shown(own))));
    }
    Ok(Verdict::of(found.is_empty(), "boot arguments", found))
}

/// Arguments that only x86 kernels take.
const X86: [&str; 11] = [
    "tsc",
    "notsc",
    "noapic",
    "nolapic",
    "nolapic_timer",
    "intel_pstate",
    "amd_pstate",
    "intel_idle.max_cstate",
    "hpet",
    "intel_iommu",
    "mce",
];

/// Returns true if a name of six letters or more is a known one with one letter too many, too few
/// or wrong, or with two letters swapped.
fn is_misspelt(name: &str, known: &str) -> bool {
    if name.len() < 6 || name == known || KNOWN.contains(&name) || OTHERS.contains(&name) {
        return false;
    }
    let (one, other) = (name.as_bytes(), known.as_bytes());
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    let same = one.iter().rev().zip(other.iter().rev());
    let same = same.take_while(|(a, b)| a == b).count();
    match (&one[..one.len() - same], &other[..other.len() - same]) {
        ([], [_]) | ([_], [] | [_]) => true,
        ([a, b], [c, d]) => (a, b) == (d, c),
        _ => false,
    }
}

/// Arguments of the kernel that differ by one letter from others.
const OTHERS: [&str; 2] = ["nosmap", "nosmep"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_misspelt_is_told_from_what_is_another_word() {
        assert!(is_misspelt("isolcpu", "isolcpus"));
        assert!(is_misspelt("ioslcpus", "isolcpus"));
        assert!(is_misspelt("nohz_ful", "nohz_full"));
        assert!(is_misspelt("threadirq", "threadirqs"));
        assert!(!is_misspelt("nohz", "nohz_full"));
        assert!(!is_misspelt("rcu_nocbs", "rcu_nocb_poll"));
        let known = KNOWN
            .iter()
            .any(|one| KNOWN.iter().any(|other| is_misspelt(one, other)));
        assert!(!known);
    }
}

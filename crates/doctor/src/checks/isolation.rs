// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work that is kept away from the CPUs that do the real-time work.

use std::collections::BTreeSet;

use punctual_model::Reason;
use punctual_model::units::CpuId;

use super::source;
use crate::check::{Check, Severity, Trial, Verdict};
use crate::machine::{Machine, cpu_list};

const UNBOUND: Trial = Trial::None("no boot argument sets it apart from isolcpus=");

pub const CHECKS: &[Check] = &[
    Check {
        id: "isolcpus",
        severity: Severity::Medium,
        wanted: "CPUs are isolated for real-time work, from managed interrupts, too",
        advice: "boot with isolcpus=managed_irq,domain,LIST (before Linux 5.6 leave managed_irq \
                 out, or the kernel ignores all of it), or make an isolated partition of control \
                 groups (cpuset.cpus.partition)",
        source: source::TUNED_REALTIME,
        needs_root: false,
        trial: Trial::Beside("isolcpus=managed_irq,domain,1"),
        look: isolcpus,
    },
    Check {
        id: "nohz-full",
        severity: Severity::Low,
        wanted: "isolated CPUs have no tick while one thread computes there",
        advice: "boot with nohz_full=LIST for threads that only compute; for periodic work \
                 leave it",
        source: source::TUNED_PARTITIONING,
        needs_root: false,
        trial: Trial::Beside("nohz_full=1"),
        look: nohz_full,
    },
    Check {
        id: "rcu-nocbs",
        severity: Severity::Low,
        wanted: "RCU's callbacks do not run on isolated CPUs",
        advice: "boot with rcu_nocbs=LIST (nohz_full=LIST implies it)",
        source: source::KERNEL_PARAMETERS,
        needs_root: false,
        trial: Trial::Beside("rcu_nocbs=1"),
        look: rcu_nocbs,
    },
    Check {
        id: "workqueues",
        severity: Severity::Medium,
        wanted: "unbound work does not run on isolated CPUs",
        advice: "write the mask of the other CPUs to /sys/devices/virtual/workqueue/cpumask",
        source: source::TUNED_REALTIME,
        needs_root: false,
        trial: UNBOUND,
        look: workqueues,
    },
    Check {
        id: "writeback",
        severity: Severity::Low,
        wanted: "pages are not written back from isolated CPUs",
        advice: "write the mask of the other CPUs to \
                 /sys/bus/workqueue/devices/writeback/cpumask",
        source: source::TUNED_REALTIME,
        needs_root: false,
        trial: UNBOUND,
        look: writeback,
    },
    Check {
        id: "irqbalance",
        severity: Severity::Medium,
        wanted: "irqbalance does not move interrupts to the real-time CPUs",
        advice: "`systemctl disable --now irqbalance`, or list the isolated CPUs in \
                 IRQBALANCE_BANNED_CPULIST (/etc/default/irqbalance): by itself it leaves out \
                 those of isolcpus= and nohz_full=, not those of control groups",
        source: source::TUNED_REALTIME,
        needs_root: true,
        trial: Trial::None("no boot argument does what a daemon does"),
        look: irqbalance,
    },
];

const NONE_ISOLATED: &str = "no CPU is isolated; see isolcpus";
const BY_BOOT: &str = "/sys/devices/system/cpu/isolated";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
const WORKQUEUES: &str = "/sys/devices/virtual/workqueue/cpumask";

/// The CPUs that the scheduler leaves alone, by boot argument or by control groups, and whether
/// these are all: those by boot argument may decide a question even if others are hidden.
fn isolated(machine: &Machine) -> Result<(Vec<CpuId>, Result<(), Reason>), Reason> {
    let mut cpus = machine.cpus(BY_BOOT)?;
    let whole = partitioned(machine).map(|own| cpus.extend(own));
    cpus.sort_unstable();
    cpus.dedup();
    Ok((cpus, whole))
}

/// The CPUs of isolated partitions of control groups. An error if others may be hidden.
fn partitioned(machine: &Machine) -> Result<Vec<CpuId>, Reason> {
    let all = "/sys/fs/cgroup/cpuset.cpus.isolated";
    if machine.find(all)?.is_some() {
        return machine.cpus(all);
    }
    let balanced = "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance";
    if machine.find(balanced)?.as_deref() == Some("0") {
        let divided = "it is 0: cpusets of version 1 divide the CPUs, and no file lists those that \
                       are isolated";
        return Err(Reason::unreadable(balanced, divided));
    }
    let groups = "/sys/fs/cgroup";
    if machine
        .find(&format!("{groups}/cgroup.controllers"))?
        .is_none()
    {
        return Ok(Vec::new());
    }
    machine.sees_all_groups()?;
    // Before Linux 6.7 no file lists them all. A partition's parent is the outermost group, or a
    // partition.
    let mut cpus = Vec::new();
    let mut places = vec![groups.to_owned()];
    while let Some(place) = places.pop() {
        for group in machine.names(&place)? {
            let group = format!("{place}/{group}");
            let kind = machine.find(&format!("{group}/cpuset.cpus.partition"))?;
            if kind.as_deref() == Some("isolated") {
                cpus.extend(machine.cpus(&format!("{group}/cpuset.cpus.effective"))?);
            }
            if matches!(kind.as_deref(), Some("isolated" | "root")) {
                places.push(group);
            }
        }
    }
    Ok(cpus)
}

fn isolcpus(machine: &Machine) -> Result<Verdict, Reason> {
    if machine.online()?.len() == 1 {
        return Ok(Verdict::Moot("there is one CPU".into()));
    }
    let (isolated, whole) = isolated(machine)?;
    if isolated.is_empty() {
        whole?;
    }
    let asked = machine.argument("isolcpus")?;
    // Linux 5.6 has brought the flag; before, an argument with it is not taken at all.
    let is_flag_known = machine.is_since(5, 6) != Ok(false);
    let is_wrong = |asked: &String| {
        if asked.contains("managed_irq") {
            !is_flag_known && isolated.is_empty()
        } else {
            is_flag_known
        }
    };
    if let Some(asked) = asked.filter(is_wrong) {
        return Ok(Verdict::of(false, "boot argument isolcpus", asked.as_str()));
    }
    Ok(Verdict::of(!isolated.is_empty(), "isolated CPUs", isolated))
}

/// Compares the isolated CPUs with those that something covers.
fn covers(machine: &Machine, name: &str, covered: &[CpuId]) -> Result<Verdict, Reason> {
    let (mut bare, whole) = isolated(machine)?;
    if bare.is_empty() {
        whole?;
        return Ok(Verdict::Moot(NONE_ISOLATED.into()));
    }
    bare.retain(|cpu| !covered.contains(cpu));
    if bare.is_empty() {
        whole?;
    }
    let name = format!("isolated CPUs that are not in {name}");
    Ok(Verdict::of(bare.is_empty(), &name, bare))
}

/// The CPUs that a boot argument lists; none if it is not given, or without a list.
fn listed(machine: &Machine, name: &str) -> Result<Vec<CpuId>, Reason> {
    let list = machine.argument(name)?.unwrap_or_default();
    let listed = machine.listed(&list);
    listed.map_err(|error| format!("{name}: {error}").into())
}

/// The CPUs without a tick: as the kernel says, else as it was asked.
pub(super) fn tickless(machine: &Machine) -> Result<Vec<CpuId>, Reason> {
    if machine.find(NOHZ_FULL)?.is_some() {
        return machine.cpus(NOHZ_FULL);
    }
    heeded(machine, "nohz_full", "NO_HZ_FULL")
}

/// The CPUs that a boot argument lists; none if the kernel is known not to take it.
fn heeded(machine: &Machine, name: &str, option: &str) -> Result<Vec<CpuId>, Reason> {
    let mut asked = listed(machine, name)?;
    let has = machine.config().and_then(|config| config.has(option));
    if has == Ok(false) {
        asked.clear();
    }
    Ok(asked)
}

fn nohz_full(machine: &Machine) -> Result<Verdict, Reason> {
    covers(machine, "nohz_full", &tickless(machine)?)
}

fn rcu_nocbs(machine: &Machine) -> Result<Verdict, Reason> {
    let mut covered = heeded(machine, "rcu_nocbs", "RCU_NOCB_CPU")?;
    covered.extend(tickless(machine)?);
    let is_default = covered.is_empty()
        && machine.argument("rcu_nocbs")?.is_none()
        && !isolated(machine)?.0.is_empty();
    // `rcu_init_nohz()` in `kernel/rcu/tree_nocb.h`.
    if is_default && machine.config()?.has("RCU_NOCB_CPU_DEFAULT_ALL")? {
        covered = machine.online()?;
    }
    covers(machine, "rcu_nocbs", &covered)
}

/// The CPUs of a mask such as `ff,00000003`.
fn mask(text: &str) -> Option<BTreeSet<CpuId>> {
    let digits = text.chars().rev().filter(|c| *c != ',');
    let mut cpus = BTreeSet::new();
    for (digit, first) in digits.zip((0..).step_by(4)) {
        let bits = digit.to_digit(16)?;
        let set = (0..4).filter(|bit| bits >> bit & 1 == 1);
        cpus.extend(set.map(|bit| CpuId(first + bit)));
    }
    Some(cpus).filter(|_| !text.is_empty())
}

/// The CPUs of the mask in a file.
fn masked(machine: &Machine, path: &str) -> Result<BTreeSet<CpuId>, Reason> {
    let text = machine.text(path)?;
    let expected = || Reason::unreadable(path, format!("expected a mask, found \"{text}\""));
    mask(&text).ok_or_else(expected)
}

/// Checks that no isolated CPU is among those that do some work.
fn keeps_out(
    machine: &Machine,
    name: &str,
    working: impl FnOnce() -> Result<BTreeSet<CpuId>, Reason>,
) -> Result<Verdict, Reason> {
    let (mut inside, whole) = isolated(machine)?;
    if inside.is_empty() {
        whole?;
        return Ok(Verdict::Moot(NONE_ISOLATED.into()));
    }
    let working = working()?;
    inside.retain(|cpu| working.contains(cpu));
    if inside.is_empty() {
        whole?;
    }
    Ok(Verdict::of(inside.is_empty(), name, inside))
}

fn workqueues(machine: &Machine) -> Result<Verdict, Reason> {
    let name = format!("isolated CPUs in {WORKQUEUES}");
    keeps_out(machine, &name, || masked(machine, WORKQUEUES))
}

/// A workqueue works on the CPUs that both its own mask and that of all have; if there are none, on
/// the latter's (`wqattrs_actualize_cpumask()` in `kernel/workqueue.c`).
fn writeback(machine: &Machine) -> Result<Verdict, Reason> {
    keeps_out(machine, "isolated CPUs that write pages back", || {
        let all = masked(machine, WORKQUEUES)?;
        let own = masked(machine, "/sys/bus/workqueue/devices/writeback/cpumask")?;
        let both: BTreeSet<CpuId> = all.intersection(&own).copied().collect();
        Ok(if both.is_empty() { all } else { both })
    })
}

/// The CPUs that irqbalance leaves out: as its environment says, else those that the boot arguments
/// isolate or keep without a tick (`setup_banned_cpus()` in its `cputree.c`).
fn left_out(machine: &Machine, process: u32) -> Result<Vec<CpuId>, Reason> {
    let path = format!("/proc/{process}/environ");
    let environment = machine.find(&path)?.unwrap_or_default();
    let given = |name: &str| {
        let mut words = environment.split('\0');
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let banned = given("IRQBALANCE_BANNED_CPUS").filter(|text| !text.is_empty());
    if let Some(text) = banned {
        let cpus = mask(text).map(|cpus| cpus.into_iter().collect());
        let expected = || Reason::unreadable(&path, format!("expected a mask, found \"{text}\""));
        return cpus.ok_or_else(expected);
    }
    if let Some(list) = given("IRQBALANCE_BANNED_CPULIST") {
        return cpu_list(list).map_err(|error| Reason::unreadable(&path, error));
    }
    let mut cpus = machine.cpus(BY_BOOT)?;
    if machine.find(NOHZ_FULL)?.is_some() {
        cpus.extend(machine.cpus(NOHZ_FULL)?);
    }
    Ok(cpus)
}

fn irqbalance(machine: &Machine) -> Result<Verdict, Reason> {
    let comm = |process: &u32| machine.text(&format!("/proc/{process}/comm"));
    let mut processes = machine.processes()?.into_iter();
    let runs = processes.find(|one| comm(one).as_deref() == Ok("irqbalance"));
    let name = "irqbalance";
    let Some(process) = runs else {
        return Ok(Verdict::of(true, name, "does not run"));
    };
    let (mut bare, whole) = isolated(machine)?;
    if bare.is_empty() {
        whole?;
        let told = "runs, and no CPU is isolated";
        return Ok(Verdict::of(false, name, told));
    }
    let left_out = left_out(machine, process)?;
    bare.retain(|cpu| !left_out.contains(cpu));
    if bare.is_empty() {
        whole?;
        let told = "runs, and leaves isolated CPUs out";
        return Ok(Verdict::of(true, name, told));
    }
    let name = "isolated CPUs that irqbalance does not leave out";
    Ok(Verdict::of(false, name, bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_from_the_right() {
        let cpus = |text| mask(text).map(|cpus| cpus.into_iter().map(|cpu| cpu.0).collect());
        assert_eq!(cpus("3"), Some(vec![0, 1]));
        assert_eq!(cpus("8,00000001"), Some(vec![0, 35]));
        assert_eq!(cpus("0"), Some(vec![]));
        assert_eq!((cpus(""), cpus("x")), (None, None));
    }
}

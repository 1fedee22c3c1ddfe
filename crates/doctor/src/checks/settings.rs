// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of a running kernel.

use punctual_model::{Nanos, Reason};

use super::{kernel, source};
use crate::check::{Check, Severity, Trial, Value, Verdict};
use crate::machine::Machine;

pub const CHECKS: &[Check] = &[
    Check {
        id: "rt-throttling",
        severity: Severity::Medium,
        wanted: "real-time threads are not stopped after a share of each second",
        advice: "`sysctl kernel.sched_rt_runtime_us=-1`, if none of them can spin for ever",
        source: source::TUNED_REALTIME,
        needs_root: false,
        trial: Trial::None("it stops only threads that spin, and a probe's sleep"),
        look: rt_throttling,
    },
    Check {
        id: "fair-server",
        severity: Severity::Medium,
        wanted: "the fair server keeps no time for other threads (Linux 6.12)",
        advice: "`echo 0 > /sys/kernel/debug/sched/fair_server/cpuN/runtime` for the CPUs in \
                 question, if no thread there can spin for ever",
        source: source::FAIR_SERVER,
        needs_root: true,
        trial: Trial::None("no boot argument turns it off"),
        look: fair_server,
    },
    Check {
        id: "soft-watchdog",
        severity: Severity::Medium,
        wanted: "the detector of soft lockups is off",
        advice: "boot with nosoftlockup, or `sysctl kernel.soft_watchdog=0`",
        source: source::TUNED_REALTIME,
        needs_root: false,
        trial: Trial::Boot("nosoftlockup"),
        look: |m| {
            is(m, "kernel.soft_watchdog", "SOFTLOCKUP_DETECTOR", |on| {
                on == 0
            })
        },
    },
    Check {
        id: "nmi-watchdog",
        severity: Severity::Medium,
        wanted: "the detector of hard lockups is off",
        advice: "`sysctl kernel.nmi_watchdog=0`",
        source: source::TUNED_NETWORK_LATENCY,
        needs_root: false,
        trial: Trial::None("the guest has no counter that could interrupt"),
        look: |m| {
            is(m, "kernel.nmi_watchdog", "HARDLOCKUP_DETECTOR", |on| {
                on == 0
            })
        },
    },
    Check {
        id: "transparent-huge-pages",
        severity: Severity::Medium,
        wanted: "transparent huge pages are never made",
        advice: "`echo never > /sys/kernel/mm/transparent_hugepage/enabled`, or boot with \
                 transparent_hugepage=never; since Linux 6.8 each size has its own switch, too: \
                 hugepages-*/enabled beside it",
        source: source::TUNED_NETWORK_LATENCY,
        needs_root: false,
        trial: Trial::Boot("transparent_hugepage=never"),
        look: transparent_huge_pages,
    },
    Check {
        id: "numa-balancing",
        severity: Severity::Medium,
        wanted: "pages are not moved between nodes",
        advice: "`sysctl kernel.numa_balancing=0`",
        source: source::TUNED_NETWORK_LATENCY,
        needs_root: false,
        trial: Trial::None("the guest has one node of memory"),
        look: |m| is(m, "kernel.numa_balancing", "NUMA_BALANCING", |on| on == 0),
    },
    Check {
        id: "vm-stat-interval",
        severity: Severity::Low,
        wanted: "statistics of memory are gathered every 10 s or more rarely",
        advice: "`sysctl vm.stat_interval=10`",
        source: source::TUNED_NETWORK_LATENCY,
        needs_root: false,
        trial: Trial::Boot("sysctl.vm.stat_interval=10"),
        look: |m| is(m, "vm.stat_interval", "SMP", |seconds| seconds >= 10),
    },
    Check {
        id: "timer-migration",
        severity: Severity::Low,
        wanted: "timers stay on the CPU that set them",
        advice: "`sysctl kernel.timer_migration=0`: a timer that has moved to another CPU waits \
                 until that one has interrupts on",
        source: source::TUNED_NETWORK_LATENCY,
        needs_root: false,
        trial: Trial::Beside("sysctl.kernel.timer_migration=0"),
        look: timer_migration,
    },
    Check {
        id: "swappiness",
        severity: Severity::Low,
        wanted: "there is no swap, or vm.swappiness is at most 10",
        advice: "`sysctl vm.swappiness=10`, or `swapoff -a`; lock the memory of real-time \
                 threads in any case",
        source: source::RTCQS,
        needs_root: false,
        trial: Trial::None("the guest has no swap"),
        look: swappiness,
    },
    Check {
        id: "skew-tick",
        severity: Severity::Low,
        wanted: "the CPUs' ticks do not come at the same moment (skew_tick=1)",
        advice: "boot with skew_tick=1",
        source: source::TUNED_NETWORK_LATENCY,
        needs_root: false,
        trial: Trial::Beside("skew_tick=1"),
        look: skew_tick,
    },
    Check {
        id: "rcu-normal",
        severity: Severity::Low,
        wanted: "RCU does not hurry by interrupting other CPUs",
        advice: "boot with rcupdate.rcu_normal_after_boot=1",
        source: source::KERNEL_PARAMETERS,
        needs_root: false,
        trial: Trial::Beside("rcupdate.rcu_normal_after_boot=1"),
        look: rcu_normal,
    },
    Check {
        id: "mitigations",
        severity: Severity::Low,
        wanted: "no path is made longer by mitigations of the CPU's weaknesses",
        advice: "mitigations=off makes paths shorter, and the machine open to attacks: only \
                 where nothing foreign runs on it",
        source: source::RTCQS,
        needs_root: false,
        trial: Trial::Boot("mitigations=off"),
        look: mitigations,
    },
    Check {
        id: "pcie-aspm",
        severity: Severity::Low,
        wanted: "PCIe links are not put to sleep",
        advice: "boot with pcie_aspm.policy=performance",
        source: source::HARDWARE,
        needs_root: false,
        trial: Trial::None("the guest has no PCIe link"),
        look: pcie_aspm,
    },
];

/// Checks a sysctl. A kernel without it lacks the option that makes it.
fn is(
    machine: &Machine,
    name: &str,
    option: &str,
    is_fine: fn(i64) -> bool,
) -> Result<Verdict, Reason> {
    if let Some(value) = machine.find_sysctl(name)? {
        return Ok(Verdict::of(is_fine(value), name, value));
    }
    if machine.config()?.has(option)? {
        let expected = format!("there is no such sysctl, though CONFIG_{option} is on");
        return Err(Reason::unreadable(name, expected));
    }
    Ok(Verdict::Moot(format!("CONFIG_{option} is off")))
}

/// The word in force of a list such as `always [madvise] never`.
fn chosen(machine: &Machine, path: &str) -> Result<String, Reason> {
    let list = machine.text(path)?;
    let chosen = list
        .split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let expected = || Reason::unreadable(path, format!("expected a [choice], found \"{list}\""));
    chosen.map(str::to_owned).ok_or_else(expected)
}

fn rt_throttling(machine: &Machine) -> Result<Verdict, Reason> {
    let name = "kernel.sched_rt_runtime_us";
    let runtime = machine.sysctl(name)?;
    if runtime < 0 {
        return Ok(Verdict::of(true, name, runtime));
    }
    let is_whole = runtime >= machine.sysctl("kernel.sched_rt_period_us")?;
    if !is_whole && machine.is_since(6, 12)? && !machine.config()?.has("RT_GROUP_SCHED")? {
        let moot = "from Linux 6.12 on it stops no thread; see fair-server";
        return Ok(Verdict::Moot(moot.into()));
    }
    Ok(Verdict::of(is_whole, name, runtime))
}

fn fair_server(machine: &Machine) -> Result<Verdict, Reason> {
    if !machine.is_since(6, 12)? {
        return Ok(Verdict::Moot("there is none before Linux 6.12".into()));
    }
    let directory = "/sys/kernel/debug/sched/fair_server";
    let mut longest = None;
    for cpu in machine.names(directory)? {
        let runtime = machine.number(&format!("{directory}/{cpu}/runtime"))?;
        longest = longest.max(Some(Nanos(runtime)));
    }
    let longest = longest.ok_or_else(|| Reason::unreadable(directory, "it is empty"))?;
    let name = "runtime of the fair server in each second, at most";
    Ok(Verdict::of(longest == Nanos::ZERO, name, longest))
}

/// Since Linux 6.8 each size has a switch of its own, which follows the common one only if it says
/// `inherit`.
fn transparent_huge_pages(machine: &Machine) -> Result<Verdict, Reason> {
    let directory = "/sys/kernel/mm/transparent_hugepage";
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    if machine.find(path)?.is_none() && !machine.config()?.has("TRANSPARENT_HUGEPAGE")? {
        let moot = "CONFIG_TRANSPARENT_HUGEPAGE is off";
        return Ok(Verdict::Moot(moot.into()));
    }
    let common = chosen(machine, path)?;
    let name = "transparent_hugepage/enabled";
    if common != "never" {
        return Ok(Verdict::of(false, name, common.as_str()));
    }
    let mut made = Vec::new();
    for size in machine.names(directory)? {
        let path = format!("{directory}/{size}/enabled");
        if machine.find(&path)?.is_none() {
            continue;
        }
        let own = chosen(machine, &path)?;
        if !["never", "inherit"].contains(&&*own) {
            made.push(format!("{size} {own}"));
        }
    }
    Ok(if made.is_empty() {
        Verdict::of(true, name, common.as_str())
    } else {
        Verdict::of(false, SIZES_OF_HUGE_PAGES, made)
    })
}

/// The name of the finding if only the switches of single sizes make huge pages.
pub(crate) const SIZES_OF_HUGE_PAGES: &str = "transparent_hugepage/hugepages-*/enabled";

/// While the tick does not stop, no timer moves (`timers_update_migration()` in
/// `kernel/time/timer.c`).
fn timer_migration(machine: &Machine) -> Result<Verdict, Reason> {
    let verdict = is(machine, "kernel.timer_migration", "NO_HZ_COMMON", |on| {
        on == 0
    })?;
    let off = kernel::nohz_off(machine).ok().flatten();
    if let (Verdict::Wrong(_), Some(value)) = (&verdict, off) {
        return Ok(Verdict::of(true, "boot argument nohz", value.as_str()));
    }
    Ok(verdict)
}

fn swappiness(machine: &Machine) -> Result<Verdict, Reason> {
    let swaps = machine.text("/proc/swaps")?;
    let mut lines = swaps.lines();
    if !lines
        .next()
        .is_some_and(|head| head.starts_with("Filename"))
    {
        let expected = "expected a line of heads";
        return Err(Reason::unreadable("/proc/swaps", expected));
    }
    if lines.next().is_none() {
        return Ok(Verdict::Moot("there is no swap".into()));
    }
    let name = "vm.swappiness";
    let value = machine.sysctl(name)?;
    Ok(Verdict::of(value <= 10, name, value))
}

fn skew_tick(machine: &Machine) -> Result<Verdict, Reason> {
    if machine.online()?.len() == 1 {
        return Ok(Verdict::Moot("there is one CPU".into()));
    }
    let value = machine.argument("skew_tick")?;
    let value = value.unwrap_or_else(|| "not given".to_owned());
    Ok(Verdict::of(
        value == "1",
        "boot argument skew_tick",
        &*value,
    ))
}

/// Reads the setting in force: the boot argument, and on PREEMPT_RT the kernel itself, sets it to 1
/// at the end of the boot, and root may change it afterwards.
fn rcu_normal(machine: &Machine) -> Result<Verdict, Reason> {
    if machine.online()?.len() == 1 {
        return Ok(Verdict::Moot("there is one CPU".into()));
    }
    let path = "/sys/kernel/rcu_normal";
    let value = machine.number(path)?;
    Ok(Verdict::of(value != 0, path, value))
}

fn mitigations(machine: &Machine) -> Result<Verdict, Reason> {
    let directory = "/sys/devices/system/cpu/vulnerabilities";
    let mut mitigated = Vec::new();
    let names = match machine.names(directory) {
        Err(_) if machine.argument("mitigations")?.as_deref() == Some("off") => {
            return Ok(Verdict::of(true, "boot argument mitigations", "off"));
        }
        names => names?,
    };
    for name in names {
        let state = machine.text(&format!("{directory}/{name}"))?;
        if state.contains("Mitigation") && !costs_nothing(&state) {
            mitigated.push(name);
        }
    }
    Ok(Verdict::of(
        mitigated.is_empty(),
        "mitigated",
        Value::Names(mitigated),
    ))
}

/// Returns true for what remains with `mitigations=off`: page tables are always inverted, and
/// without guests there is nothing to do for them (`arch/x86/kernel/cpu/bugs.c`). Arm always
/// sanitises pointers, and calls a feature of its hardware (CSV2) a mitigation
/// (`arch/arm64/kernel/proton-pack.c`).
fn costs_nothing(state: &str) -> bool {
    state.starts_with("KVM: Mitigation: VMX ")
        || state == "Mitigation: PTE Inversion"
        || state == "Mitigation: TSX disabled"
        || state == "Mitigation: SMT disabled"
        || state == "Mitigation: __user pointer sanitization"
        || state == "Mitigation: CSV2, but not BHB"
        || state.contains("PTE Inversion; VMX: vulnerable")
        || state.contains("VMX: EPT disabled")
}

fn pcie_aspm(machine: &Machine) -> Result<Verdict, Reason> {
    if machine.argument("pcie_aspm")?.as_deref() == Some("off") {
        let why = "pcie_aspm=off leaves each link as the firmware has set it";
        return Err(why.into());
    }
    let path = "/sys/module/pcie_aspm/parameters/policy";
    if machine.find(path)?.is_none() && !machine.config()?.has("PCIEASPM")? {
        return Ok(Verdict::Moot("CONFIG_PCIEASPM is off".into()));
    }
    let policy = chosen(machine, path)?;
    let is_fine = policy == "performance";
    Ok(Verdict::of(is_fine, "pcie_aspm.policy", policy.as_str()))
}

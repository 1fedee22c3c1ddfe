// SPDX-License-Identifier: MIT OR Apache-2.0
//! Permissions of this user and process, and competing programs.

use punctual_model::Reason;

use super::source;
use crate::check::{Check, Severity, Trial, Verdict};
use crate::machine::Machine;

const PERMISSION: Trial = Trial::None("what a user may do costs no time");

pub const CHECKS: &[Check] = &[
    Check {
        id: "rt-permission",
        severity: Severity::High,
        wanted: "this user may start real-time threads",
        advice: "run as root (root of a user namespace or of a rootless container is not enough), \
                 or put `@realtime - rtprio 98` and `@realtime - memlock unlimited` into \
                 /etc/security/limits.d/ and the user into the group realtime; start a container \
                 with `--cap-add SYS_NICE --ulimit rtprio=98 --ulimit memlock=-1`",
        source: source::RTCQS,
        needs_root: false,
        trial: PERMISSION,
        look: rt_permission,
    },
    Check {
        id: "rt-group-sched",
        severity: Severity::High,
        wanted: "control groups do not refuse real-time threads (CONFIG_RT_GROUP_SCHED)",
        advice: "boot with rt_group_sched=0 (Linux 6.15), give the group a cpu.rt_runtime_us, \
                 or build the kernel without CONFIG_RT_GROUP_SCHED",
        source: source::RT_GROUP,
        needs_root: false,
        trial: PERMISSION,
        look: rt_group_sched,
    },
    Check {
        id: "cfs-bandwidth",
        severity: Severity::Medium,
        wanted: "this control group has no quota of CPU time",
        advice: "remove CPUQuota=, cpu.max or the container's limit: it stops threads \
                 without a real-time priority, even if they hold a lock that others need",
        source: source::CFS_BANDWIDTH,
        needs_root: false,
        trial: Trial::None("the guest has no control groups"),
        look: cfs_bandwidth,
    },
    Check {
        id: "fifo-99",
        severity: Severity::Medium,
        wanted: "no other program has a thread of the highest priority",
        advice: "give such threads a lower priority (`chrt -f -p 50 PID`), and your own at most 98",
        source: source::FIFO_99,
        needs_root: false,
        trial: Trial::None("it is not the kernel that does it"),
        look: fifo_99,
    },
];

/// `CAP_SYS_NICE`, in `include/uapi/linux/capability.h`.
const SYS_NICE: u32 = 23;

fn rt_permission(machine: &Machine) -> Result<Verdict, Reason> {
    if machine.is_capable(SYS_NICE)? {
        return Ok(Verdict::of(true, "capability", "CAP_SYS_NICE"));
    }
    let limit = machine.limit("Max realtime priority")?;
    Ok(Verdict::of(limit != "0", "limit rtprio", limit.as_str()))
}

fn rt_group_sched(machine: &Machine) -> Result<Verdict, Reason> {
    let option = "RT_GROUP_SCHED";
    let config = machine.config()?;
    if !config.has(option)? {
        return Ok(Verdict::of(true, &format!("CONFIG_{option}"), "off"));
    }
    // Linux 6.15 has brought the argument, and this option with it.
    let default = "RT_GROUP_SCHED_DEFAULT_DISABLED";
    let is_known = config.names(default) || machine.is_since(6, 15)?;
    let is_off = match machine.argument("rt_group_sched")?.as_deref() {
        Some("0") if is_known => true,
        Some("1") if is_known => false,
        _ => config.has(default)?,
    };
    if is_off {
        return Ok(Verdict::of(true, "rt_group_sched", "off at boot"));
    }
    // The own group counts: without time of its own it has no real-time thread.
    // Groups of version 2 have none, but for the outermost, which has no quota either.
    let groups = machine.cpu_groups("cpu.rt_runtime_us", "cpu.max")?;
    let Some((name, runtime)) = groups.first() else {
        machine.sees_all_groups()?;
        return Ok(Verdict::of(true, "control group", "the outermost"));
    };
    if name.ends_with("cpu.max") {
        return Ok(Verdict::of(
            false,
            name,
            "a group of version 2, which has no time for real-time threads",
        ));
    }
    let expected = || Reason::unreadable(name, format!("expected a number, found \"{runtime}\""));
    let runtime: i64 = runtime.parse().map_err(|_| expected())?;
    Ok(Verdict::of(runtime != 0, name, runtime))
}

fn cfs_bandwidth(machine: &Machine) -> Result<Verdict, Reason> {
    let groups = machine.cpu_groups("cpu.cfs_quota_us", "cpu.max")?;
    let is_unlimited = |quota: &str| quota.starts_with("max") || quota.starts_with('-');
    let limited = groups.iter().find(|(_, quota)| !is_unlimited(quota));
    if let Some((name, quota)) = limited {
        return Ok(Verdict::of(false, name, quota.as_str()));
    }
    machine.sees_all_groups()?;
    Ok(Verdict::of(true, "quota", "none"))
}

fn fifo_99(machine: &Machine) -> Result<Verdict, Reason> {
    let threads = machine.threads()?;
    let highest = threads
        .iter()
        .filter(|one| !one.is_kernel && one.priority == 99);
    let names: Vec<String> = highest
        .map(|one| format!("{} ({})", one.name, one.process))
        .collect();
    let name = "threads of priority 99 that are not the kernel's";
    Ok(Verdict::of(names.is_empty(), name, names))
}

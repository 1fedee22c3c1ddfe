//! Preparing a thread for measuring: memory, CPU, policy, priority, and reading them back.

use std::collections::BTreeMap;

use punctual_model::CpuId;

use crate::sys::{memory, sched};

/// How a measuring thread was really scheduled, as the kernel tells it.
pub type Settings = BTreeMap<String, String>;

/// Prepares the calling thread: bound to `cpu`, `SCHED_FIFO` with `priority`, timer slack
/// 1 ns, stack touched. Returns what the kernel says when asked; an error is the reason
/// why the thread cannot measure. There is no fallback to another policy.
pub fn prepare_thread(cpu: CpuId, priority: u8) -> Result<Settings, String> {
    sched::pin(cpu).map_err(|error| format!("cannot bind a thread to {cpu}: {error}"))?;
    let slack = sched::minimise_timer_slack()
        .map_err(|error| format!("cannot set the timer slack: {error}"))?;
    sched::set_fifo(priority).map_err(|error| {
        format!("SCHED_FIFO {priority} is refused ({error}): run as root, or raise RLIMIT_RTPRIO")
    })?;
    memory::touch_stack();
    read_back(cpu, priority, slack)
}

fn read_back(cpu: CpuId, priority: u8, slack: i32) -> Result<Settings, String> {
    let (policy, found) = sched::policy().map_err(|error| format!("sched_getparam: {error}"))?;
    if policy != "SCHED_FIFO" || found != i32::from(priority) {
        return Err(format!(
            "asked for SCHED_FIFO {priority}, but the kernel says {policy} {found}"
        ));
    }
    let cpus = sched::affinity().map_err(|error| format!("sched_getaffinity: {error}"))?;
    if cpus != [cpu] {
        return Err(format!("asked for {cpu}, but the kernel says {cpus:?}"));
    }
    Ok(BTreeMap::from([
        ("policy".into(), policy.into()),
        ("priority".into(), found.to_string()),
        ("affinity".into(), cpu.to_string()),
        ("timer_slack_ns".into(), slack.to_string()),
    ]))
}

/// The priority of the thread that starts and stops loads: above every load, below every probe.
pub const CONDUCTOR_PRIORITY: u8 = 1;

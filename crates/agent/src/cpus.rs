// SPDX-License-Identifier: MIT OR Apache-2.0
//! Brings up the CPUs of a guest that was booted with one of several.
//!
//! QEMU gives its virtual CPUs their turns in one thread. While all of them sleep its main loop
//! moves the clock, at a moment that is the host's; with one CPU nothing depends on it, with
//! several the order of their turns does. So before the second CPU runs, a thread sees to it
//! that the first one never sleeps again.

use std::fs;
use std::sync::mpsc;
use std::thread;

use punctual_model::CpuId;

use crate::rt;
use crate::sys::instructions;
use crate::sys::sched::Policy;

/// The CPU that a guest boots with.
const BOOT_CPU: CpuId = CpuId(0);
/// The CPUs that the guest has, and those that run, as `0-3`.
const PRESENT: &str = "/sys/devices/system/cpu/present";
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Brings up all CPUs. Where there is but one, nothing is done.
pub fn bring_up() -> Result<(), String> {
    let (present, online) = (read(PRESENT)?, read(ONLINE)?);
    let all = list(&present)?;
    if all.len() == 1 {
        return Ok(());
    }
    let online = list(&online)?;
    keep_awake()?;
    for cpu in all.iter().filter(|cpu| !online.contains(cpu)) {
        let path = format!("/sys/devices/system/cpu/{cpu}/online");
        fs::write(&path, "1").map_err(|error| format!("{path}: {error}"))?;
    }
    let now = read(ONLINE)?;
    if now == present {
        Ok(())
    } else {
        Err(format!("of the CPUs {present} only {now} run"))
    }
}

/// Starts the thread that keeps the boot CPU from sleeping. All others come first, as it is
/// `SCHED_IDLE`; it gives up its turn often, so that it takes no time from other CPUs.
fn keep_awake() -> Result<(), String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let prepared = rt::pin(BOOT_CPU).and_then(|()| rt::schedule(Policy::Idle, 0));
        if prepared.is_err() {
            _ = send.send(prepared);
            return;
        }
        _ = send.send(prepared);
        loop {
            instructions::turn();
        }
    });
    let failed = |why: String| format!("{BOOT_CPU} cannot be kept awake: {why}");
    receive
        .recv()
        .map_err(|error| failed(error.to_string()))?
        .map_err(|reason| failed(reason.to_string()))
}

fn read(path: &str) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(text.trim().to_owned())
}

/// The CPUs of a list as the kernel writes it: `0`, `0-3`, `0,2-3`.
fn list(text: &str) -> Result<Vec<CpuId>, String> {
    let part_of = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(part_of).collect();
    let ranges = ranges.ok_or_else(|| format!("{text:?} is no list of CPUs"))?;
    Ok(ranges.into_iter().flatten().map(CpuId).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lists_are_read() {
        let found = |text| list(text).map(|cpus| cpus.iter().map(|cpu| cpu.0).collect::<Vec<_>>());
        assert_eq!(found("0"), Ok(vec![0]));
        assert_eq!(found("0-3"), Ok(vec![0, 1, 2, 3]));
        assert_eq!(found("0,2-3"), Ok(vec![0, 2, 3]));
        assert!(found("").is_err() && found("0-").is_err() && found("all").is_err());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUs of the machine: those on which loads may run, and those of a guest, which boots with
//! one of several and brings up the others here.
//!
//! QEMU gives its virtual CPUs their turns in one thread. While all of them sleep, its main loop
//! moves the clock, at a moment that is the host's. With one CPU nothing depends on this; with
//! several the order of their turns does. So before the second CPU runs, a thread makes sure
//! that the first one never sleeps again.

use std::fs;
use std::io::ErrorKind;
use std::sync::mpsc;
use std::thread;

use punctual_model::CpuId;
use punctual_model::cpus::{Placement, parse_list, show_list};

use crate::rt;
use crate::sys::arch;
use crate::sys::sched::Policy;

/// The CPU that a guest boots with.
const BOOT_CPU: CpuId = CpuId(0);
/// The CPUs that the guest has, and those that are online, as `0-3`.
const PRESENT: &str = "/sys/devices/system/cpu/present";
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// The CPUs that the scheduler leaves alone (`isolcpus=`), and those without a tick
/// (`nohz_full=`). The kernel shows nothing, or `(null)`, if there are none.
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const TICKLESS: &str = "/sys/devices/system/cpu/nohz_full";

/// Brings up all CPUs. Does nothing if there is only one.
pub fn bring_up() -> Result<(), String> {
    let (present, online) = (read(PRESENT)?, read(ONLINE)?);
    let all = parse_list(&present)?;
    if all.len() == 1 {
        return Ok(());
    }
    let online = parse_list(&online)?;
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

/// Starts the thread that keeps the boot CPU from sleeping. All other threads come first, as it
/// is `SCHED_IDLE`; it yields its turn often, so that it takes no time from other CPUs.
fn keep_awake() -> Result<(), String> {
    let (send, receive) = mpsc::channel();
    let awake = move || {
        let prepared = rt::pin(BOOT_CPU).and_then(|()| rt::schedule(Policy::Idle, 0));
        if prepared.is_err() {
            _ = send.send(prepared);
            return;
        }
        _ = send.send(prepared);
        loop {
            arch::turn();
        }
    };
    let failed = |why: String| format!("{BOOT_CPU} cannot be kept awake: {why}");
    let started = thread::Builder::new().spawn(awake);
    started.map_err(|error| failed(error.to_string()))?;
    receive
        .recv()
        .map_err(|error| failed(error.to_string()))?
        .map_err(|reason| failed(reason.to_string()))
}

/// Returns the CPUs on which a load may run beside a probe that measures on `measured`; an error
/// if one of them is offline, or none is left.
pub fn of(placement: &Placement, measured: &[CpuId]) -> Result<Vec<CpuId>, String> {
    let online = parse_list(&read(ONLINE)?)?;
    let running = show_list(&online);
    match placement {
        Placement::All => Ok(online),
        Placement::Listed(cpus) if cpus.iter().all(|cpu| online.contains(cpu)) => Ok(cpus.clone()),
        Placement::Listed(_) => Err(format!("the CPUs {placement}: expected some of {running}")),
        Placement::Housekeeping => {
            let (isolated, tickless) = (set_apart(ISOLATED)?, set_apart(TICKLESS)?);
            let left = |cpu: &CpuId| ![&isolated, &tickless].iter().any(|set| set.contains(cpu));
            let cpus = online.into_iter().filter(left);
            let cpus: Vec<CpuId> = cpus.filter(|cpu| !measured.contains(cpu)).collect();
            if cpus.is_empty() {
                return Err(format!(
                    "no housekeeping CPU: expected one of {running} that is neither isolated \
                     nor measured"
                ));
            }
            Ok(cpus)
        }
    }
}

/// Reads the CPUs in a file that older kernels do not have.
fn set_apart(path: &str) -> Result<Vec<CpuId>, String> {
    match fs::read_to_string(path) {
        Ok(text) => match text.trim() {
            "" | "(null)" => Ok(Vec::new()),
            text => parse_list(text),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

fn read(path: &str) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_runs_on_cpus_that_there_are_and_nobody_measures_on() {
        let online = of(&Placement::All, &[]).unwrap();
        let on = |text: &str, measured: &[CpuId]| of(&text.parse().unwrap(), measured);
        assert_eq!(on(&show_list(&online), &[]), Ok(online.clone()));
        let absent = on("8000", &[]).unwrap_err();
        assert!(absent.contains("8000: expected some of"), "{absent}");
        let none = on("housekeeping", &online).unwrap_err();
        assert!(none.contains("neither isolated nor measured"), "{none}");
        if let Ok(left) = on("housekeeping", &online[..1]) {
            assert!(!left.contains(&online[0]));
        }
    }
}

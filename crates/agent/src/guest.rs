// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's use of QEMU's devices on the virtual bench: it gets its plan, and stops
//! itself where a snapshot is to be taken.

use std::io;

use punctual_model::aim::Aim;
use punctual_model::{Nanos, Plan};

use crate::sys::arch::{self, FwCfg};
use crate::sys::time;

/// The name under which the bench hands over the plan.
pub const PLAN_ITEM: &str = "opt/punctual/plan";

/// A sleep that is longer than the watchdog needs.
const SLEEP: Nanos = Nanos::from_millis(2_500);

/// Keys of `fw_cfg`.
const FW_CFG_SIGNATURE: u16 = 0x00;
const FW_CFG_DIRECTORY: u16 = 0x19;
const DIRECTORY_ENTRY: usize = 64;

/// Sleeps, and lets the watchdog stop the machine meanwhile, until the bench continues it.
///
/// The bench takes its snapshot there. A machine that is stopped while its CPU sleeps stops
/// at one exact moment of its own time. (One that is stopped by an instruction, a write to
/// `pvpanic` for instance, does not: QEMU's main loop may or may not believe for a moment
/// that the stopped CPU sleeps, and may or may not leap to the next timer.)
pub fn pause() -> io::Result<()> {
    arch::start_watchdog()?;
    time::sleep(SLEEP);
    arch::stop_watchdog()
}

/// Reads the plan that the bench hands over, with the aim after it.
pub fn plan() -> Result<Plan, String> {
    let item = item(PLAN_ITEM).map_err(|error| format!("no plan from the bench: {error}"))?;
    let (text, aim) = Aim::split(&item).ok_or("the plan has no aim behind it")?;
    let text = std::str::from_utf8(text).map_err(|_| "the plan is no UTF-8 text".to_owned())?;
    let plan: Plan =
        toml::from_str(text).map_err(|error| format!("the plan cannot be read: {error}"))?;
    Ok(Plan { aim, ..plan })
}

/// Reads the content of a `fw_cfg` item.
fn item(name: &str) -> io::Result<Vec<u8>> {
    let device = FwCfg::open()?;
    let mut signature = [0; 4];
    device.select(FW_CFG_SIGNATURE);
    device.read(&mut signature);
    if &signature != b"QEMU" {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "there is no fw_cfg device",
        ));
    }
    let (key, size) = find(&device, name)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no item {name}")))?;
    let mut content = vec![0; size];
    device.select(key);
    device.read(&mut content);
    Ok(content)
}

/// Returns the key and the size of the item called `name`.
fn find(device: &FwCfg, name: &str) -> Option<(u16, usize)> {
    let mut count = [0; 4];
    device.select(FW_CFG_DIRECTORY);
    device.read(&mut count);
    (0..u32::from_be_bytes(count)).find_map(|_| {
        let mut entry = [0; DIRECTORY_ENTRY];
        device.read(&mut entry);
        let size = u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]) as usize;
        let key = u16::from_be_bytes([entry[4], entry[5]]);
        let end = entry[8..].iter().position(|byte| *byte == 0)? + 8;
        (&entry[8..end] == name.as_bytes()).then_some((key, size))
    })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's disk: the drivers of the subject's own kernel that emulate one, and a file system.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::init;
use crate::sys::mount;

/// The directory where the bench puts the drivers, if the guest is to have a disk.
const MODULES: &str = "/lib/modules/disk";

/// The disk in memory that holds the file system.
const DEVICE: &str = "/dev/ram0";

/// The mount point of the file system, for loads; it does not exist on a host.
const PLACE: &str = "/run/punctual-disk";

/// The command that makes the file system. Its number and the secret of its directories are fixed,
/// so that all guests have the same.
const MKE2FS: [&str; 9] = [
    "/usr/bin/mke2fs",
    "-q",
    "-F",
    "-t",
    "ext4",
    "-U",
    "00000000-0000-4000-8000-000000000001",
    "-E",
    "nodiscard,hash_seed=00000000-0000-4000-8000-000000000002",
];

/// Loads the drivers, if there are any, and makes and mounts the file system.
pub fn set_up() -> Result<(), String> {
    if init::load_modules(Path::new(MODULES))? == 0 {
        return Ok(());
    }
    let status = Command::new(MKE2FS[0])
        .args(&MKE2FS[1..])
        .arg(DEVICE)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("{}: {error}", MKE2FS[0]))?;
    if !status.success() {
        return Err(format!("{} ended with {status}", MKE2FS[0]));
    }
    fs::create_dir(PLACE).map_err(|error| format!("{PLACE}: {error}"))?;
    mount::mount_device(Path::new(DEVICE), "ext4", Path::new(PLACE))
        .map_err(|error| format!("{DEVICE} on {PLACE}: {error}"))
}

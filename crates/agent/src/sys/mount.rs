// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mounting, and loading of kernel modules: the work of an init.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, mount as mount2};
use rustix::system::finit_module;

/// Mounts a file system that has no device: `proc`, `sysfs`, `tmpfs`.
pub fn mount(kind: &str, target: &Path) -> io::Result<()> {
    Ok(mount2(kind, target, kind, MountFlags::empty(), None)?)
}

/// Mounts a file system that is on a device.
pub fn mount_device(device: &Path, kind: &str, target: &Path) -> io::Result<()> {
    Ok(mount2(device, target, kind, MountFlags::empty(), None)?)
}

/// Loads a kernel module from a file.
pub fn load_module(path: &Path, parameters: &str) -> io::Result<()> {
    let parameters = CString::new(parameters)?;
    Ok(finit_module(File::open(path)?, &parameters, 0)?)
}

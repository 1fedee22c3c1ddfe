//! Mounting, and loading of kernel modules: what an init does.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Mounts a file system that has no device: `proc`, `sysfs`, `tmpfs`.
pub fn mount(kind: &str, target: &Path) -> io::Result<()> {
    let kind = CString::new(kind)?;
    let target = CString::new(target.as_os_str().as_encoded_bytes())?;
    // SAFETY: both strings are live and end in a zero; no data is handed over.
    super::check(unsafe {
        libc::mount(
            kind.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            0,
            std::ptr::null(),
        )
    })?;
    Ok(())
}

/// Loads a kernel module from a file.
pub fn load_module(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let no_parameters = c"";
    // SAFETY: the descriptor is open, the string is live and ends in a zero.
    let result = unsafe {
        libc::syscall(
            libc::SYS_finit_module,
            file.as_raw_fd(),
            no_parameters.as_ptr(),
            0,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

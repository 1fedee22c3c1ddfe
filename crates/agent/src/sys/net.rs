// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network of a guest: its loopback interface.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Switches the loopback interface on, as the scripts of a distribution do at boot.
pub fn switch_on_loopback() -> io::Result<()> {
    // SAFETY: the call takes plain numbers, and what it returns belongs to nobody else.
    let socket = unsafe {
        let number = super::check(libc::socket(
            libc::AF_INET,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            0,
        ))?;
        OwnedFd::from_raw_fd(number)
    };
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the kernel reads an ifreq, which lives here.
    super::check(unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        )
    })?;
    Ok(())
}

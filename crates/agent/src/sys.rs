// SPDX-License-Identifier: MIT OR Apache-2.0
//! All unsafe code of the target: system calls, instructions, process control.
//!
//! Each file wraps one subject of the kernel's or the processor's interface in safe
//! functions with types of [`punctual_model`]. The common argument for their soundness:
//! pointers handed to the kernel point to live local variables of the size that the call
//! expects, file descriptors come from owned or borrowed handles, and every result is
//! checked. Further arguments are given at the block.
//!
//! A C `long`, and with it the nanoseconds of a time, has 32 bits on a 32-bit machine. Seconds have
//! 64 bits everywhere: on a 32-bit machine if that is requested, as `./build` does
//! (`libc_unstable_gnu_time_bits`), else nothing compiles.
#![allow(unsafe_code)]

pub mod alarm;
pub mod arch;
#[cfg(test)]
pub mod counting_allocator;
pub mod instructions;
pub mod kernel_entry;
pub mod marker;
pub mod memory;
pub mod mount;
pub mod mutex;
pub mod net;
pub mod periodic;
pub mod pipe;
pub mod process;
pub mod pulse;
pub mod sched;
pub mod semaphore;
pub mod signal;
#[cfg(feature = "wire")]
pub mod stamping;
pub mod time;
pub mod tsc;
#[cfg(feature = "wire")]
pub mod xdp;

use std::io;

/// Turns the `-1` of a system call into the error that it stands for.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Converts a C `long` to 64 bits.
#[inline]
fn long(number: libc::c_long) -> i64 {
    // On most machines it has them.
    #[allow(clippy::useless_conversion)]
    i64::from(number)
}

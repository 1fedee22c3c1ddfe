// SPDX-License-Identifier: MIT OR Apache-2.0
//! All unsafe code of the target: system calls, instructions, process control.
//!
//! Each file wraps one subject of the kernel's or the processor's interface in safe
//! functions with types of [`punctual_model`]. The common argument for their soundness:
//! pointers handed to the kernel point to live local variables of the size that the call
//! expects, file descriptors come from owned or borrowed handles, and every result is
//! checked. What goes beyond that is said at the block.
//!
//! A C `long`, and with it what a time counts nanoseconds by, has 32 bits on a 32-bit machine.
//! The two macros know that. Seconds have 64 bits everywhere: on a 32-bit machine where they
//! are asked for, as `./build` does (`libc_unstable_gnu_time_bits`), else nothing compiles.
#![allow(unsafe_code)]

/// A number that is a C `long`, in 64 bits.
#[cfg(target_pointer_width = "64")]
macro_rules! long {
    ($number:expr) => {
        $number
    };
}
#[cfg(target_pointer_width = "32")]
macro_rules! long {
    ($number:expr) => {
        i64::from($number)
    };
}

/// A time as the C library takes it; its nanoseconds fit into 32 bits.
#[cfg(target_pointer_width = "64")]
macro_rules! timespec {
    (tv_sec: $seconds:expr, tv_nsec: $nanos:expr,) => {
        libc::timespec {
            tv_sec: $seconds,
            tv_nsec: $nanos,
        }
    };
}
#[cfg(target_pointer_width = "32")]
macro_rules! timespec {
    (tv_sec: $seconds:expr, tv_nsec: $nanos:expr,) => {{
        // It has a field that cannot be named.
        let mut time = libc::timespec::default();
        time.tv_sec = $seconds;
        time.tv_nsec = $nanos as libc::c_long;
        time
    }};
}

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
pub mod time;
pub mod tsc;

use std::io;

/// Turns the `-1` of a system call into the error that it stands for.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

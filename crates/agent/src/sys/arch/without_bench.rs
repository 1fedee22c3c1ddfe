// SPDX-License-Identifier: MIT OR Apache-2.0
//! What architectures have in common for which there is no virtual bench: a host or a board is
//! measured, without what needs a bench, or instructions that they lack.

use std::io;

/// Nothing: no watcher of instructions knows this architecture.
#[inline]
pub fn mark<const KIND: u8>() {}

/// Tells the processor that nothing is to be done: only guests have emulated CPUs that count
/// instructions.
#[inline]
pub fn turn() {
    std::hint::spin_loop();
}

/// Nothing: see `NOT_TOLD`.
#[inline]
pub fn arm_interruption() {}

/// Never: see `NOT_TOLD`.
#[inline]
pub fn was_interrupted() -> bool {
    false
}

/// Never.
pub fn tells_interruptions() -> bool {
    false
}

/// None: only x86 has a time stamp counter.
#[inline]
pub fn tsc() -> Option<u64> {
    None
}

fn no_bench<T>() -> io::Result<T> {
    let text = "there is no virtual bench for this architecture";
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

/// An error: there is no bench.
pub fn send(_bytes: &[u8]) -> io::Result<()> {
    no_bench()
}

/// An error: there is no bench.
pub fn find_bench() -> io::Result<()> {
    no_bench()
}

/// An error: there is no bench.
pub fn start_watchdog() -> io::Result<()> {
    no_bench()
}

/// An error: there is no bench.
pub fn stop_watchdog() -> io::Result<()> {
    no_bench()
}

/// QEMU's `fw_cfg`, which is not there.
#[derive(Debug)]
pub struct FwCfg {
    never: std::convert::Infallible,
}

impl FwCfg {
    /// An error: there is no bench.
    pub fn open() -> io::Result<Self> {
        no_bench()
    }

    /// Never called.
    pub fn select(&self, _key: u16) {
        match self.never {}
    }

    /// Never called.
    pub fn read(&self, _bytes: &mut [u8]) {
        match self.never {}
    }
}

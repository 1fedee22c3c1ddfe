// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common functions of architectures without a virtual bench: a host or a board is measured,
//! without functions that need a bench, or instructions that they lack.

use std::io;

/// Does nothing: no watcher of instructions knows this architecture.
#[inline]
pub fn mark<const KIND: u8>() {}

/// Tells the processor that nothing is to be done: only guests have emulated CPUs that count
/// instructions.
#[inline]
pub fn turn() {
    std::hint::spin_loop();
}

/// Does nothing: see `NOT_TOLD`.
#[inline]
pub fn arm_interruption() {}

/// Returns false: see `NOT_TOLD`.
#[inline]
pub fn was_interrupted() -> bool {
    false
}

/// Returns false.
pub fn tells_interruptions() -> bool {
    false
}

/// Returns `None`: only x86 has a time stamp counter.
#[inline]
pub fn tsc() -> Option<u64> {
    None
}

fn no_bench<T>() -> io::Result<T> {
    let text = "there is no virtual bench for this architecture";
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

/// Returns an error: there is no bench.
pub fn send(_bytes: &[u8]) -> io::Result<()> {
    no_bench()
}

/// Returns an error: there is no bench.
pub fn find_bench() -> io::Result<()> {
    no_bench()
}

/// Returns an error: there is no bench.
pub fn start_watchdog() -> io::Result<()> {
    no_bench()
}

/// Returns an error: there is no bench.
pub fn stop_watchdog() -> io::Result<()> {
    no_bench()
}

/// QEMU's `fw_cfg`, which does not exist here.
#[derive(Debug)]
pub struct FwCfg {
    never: std::convert::Infallible,
}

impl FwCfg {
    /// Returns an error: there is no bench.
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

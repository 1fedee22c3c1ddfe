// SPDX-License-Identifier: MIT OR Apache-2.0
//! The benches on which subjects run: the virtual bench, this machine, and boards.
#![forbid(unsafe_code)]

pub mod cache;
mod console;
mod error;
pub mod host;
mod hwlat;
pub mod labgrid;

mod processor;
pub mod ssh;
pub mod system;
pub mod virtual_bench;
mod watch;
mod workdir;

/// Parsers of what guests and QEMU print, for `fuzz`.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::console::Console;

    /// Returns true if this is what `labgrid-client` shows of a place, and the complaint that it
    /// contains.
    pub fn labgrid(text: &str) -> (bool, String) {
        let shown = crate::labgrid::shown(text);
        (shown.is_some(), crate::labgrid::complaint(text))
    }

    pub use crate::virtual_bench::Qmp;
}

pub use console::tail;
pub use error::RunError;
pub use processor::Processor;
pub use workdir::WorkDir;

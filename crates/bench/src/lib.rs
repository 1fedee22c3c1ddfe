// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where subjects run: the virtual bench, this machine, and boards.
#![forbid(unsafe_code)]

pub mod cache;
mod console;
mod error;
pub mod host;
pub mod labgrid;

mod processor;
pub mod ssh;
pub mod system;
pub mod virtual_bench;
mod watch;
mod workdir;

/// Readers of what guests and QEMU say, for `fuzz`.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::console::Console;

    /// Whether that is what `labgrid-client` shows of a place, and what it complains of.
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

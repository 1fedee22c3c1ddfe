// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where subjects run: the virtual bench and this machine.
#![forbid(unsafe_code)]

pub mod cache;
mod console;
mod error;
pub mod host;
pub mod site;
pub mod virtual_bench;
mod watch;
mod workdir;

pub use console::tail;
pub use error::RunError;
pub use workdir::WorkDir;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The orders to the scope's plugin, and the trace that it writes.
//!
//! The plugin itself has the calls from and to QEMU, and nothing else. It hands them to
//! the [`Watcher`] here, ordinary code that needs no QEMU. The scope reads the trace
//! with a [`Reader`].
#![forbid(unsafe_code)]

mod arch;
mod format;
pub mod marker;
mod orders;
mod read;
mod watcher;

pub use arch::Arch;
pub use format::Word;
pub use orders::{Orders, Window};
pub use read::{Block, Insn, Item, ReadError, Reader};
pub use watcher::{Change, Instrument, Watcher};

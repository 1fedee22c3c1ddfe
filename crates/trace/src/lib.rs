// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scope's plugin is told and what it writes.
//!
//! The plugin itself has the calls from and to QEMU, and nothing else: what it does with
//! them is the [`Watcher`] here, ordinary code that needs no QEMU. The scope reads what it
//! wrote with a [`Reader`].
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

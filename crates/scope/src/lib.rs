//! The scope: why was this sample late?
//!
//! The virtual bench is deterministic, and QEMU shows a plugin each instruction without
//! changing any. So a sample of a run can be lived through again with every instruction
//! watched. [`repeat`] does that; what the plugin wrote is followed by [`walk`], and told by
//! [`story`].
#![forbid(unsafe_code)]

pub mod chrome;
pub mod code;
pub mod compare;
pub mod error;
pub mod explain;
pub mod json;
pub mod library;
pub mod names;
pub mod page;
mod pipe;
pub mod preemption;
pub mod probes;
pub mod programs;
pub mod repeat;
pub mod scale;
pub mod story;
pub mod survey;
pub mod symbols;
pub mod tally;
pub mod text;
pub mod walk;
pub mod windows;

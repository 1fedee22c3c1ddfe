// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a window instruction by instruction: which function ran for which thread, with
//! interrupts and preemption on or off.

mod path;
mod walker;

#[cfg(test)]
pub use path::Activation;
pub use path::{Access, Moment, Number, Span, Switch, Task, Wake, Walk};
pub use walker::Walker;

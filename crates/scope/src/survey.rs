// SPDX-License-Identifier: MIT OR Apache-2.0
//! Surveys a whole run while it is watched: finds the longest sections with interrupts or
//! preemption off, whether or not a sample fell into them.
//!
//! Each is found from instructions alone. Interrupts are off from where they are masked, or where
//! the CPU enters an interrupt, an exception or a system call, to where they are opened or to the
//! way back. Preemption is off while the low byte of the preemption count is not 0. A soft
//! interrupt is the code that `handle_softirqs` calls through its table, until that goes on: on
//! `PREEMPT_RT`, other threads may run within it. Where the kernel is not preempted at all, a
//! section is a stretch of kernel code without `__cond_resched`, switch or return to user space.
//! Where several CPUs take turns, each is followed by itself. One that pauses in the kernel waits
//! for another.

mod delays;
mod ring;
mod run_tracer;
mod section;
mod tracer;

pub use delays::{Delay, DelayKind, Delays, Interrupt};
pub use run_tracer::RunTracer;
pub use section::{Hotspot, SectionKind, Survey};
pub(crate) use tracer::SectionTracer;

#[cfg(test)]
mod tests;

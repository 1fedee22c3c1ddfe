//! The target side of Punctual: probes and loads, in one static program without any
//! dependency at run time.
//!
//! `punctual-target` runs as a child process, on a board, or as process 1 of a guest
//! ([`init`]). It is told what to do by a [`punctual_model::Plan`], carries it out
//! ([`session`]) and answers with a stream of framed records ([`stream`]). The probes are
//! in [`probes`], one file each.
//!
//! Between arming a probe and its last sample nothing here allocates, locks, prints or
//! does I/O.

pub mod crew;
pub mod guest;
pub mod hackbench;
pub mod init;
pub mod knob;
pub mod line;
pub mod loads;
pub mod phase;
pub mod probes;
pub mod programs;
pub mod provenance;
pub mod rt;
pub mod scratch;
pub mod session;
pub mod stall;
pub mod stamps;
pub mod stream;
pub mod sys;
pub mod taker;
pub mod undertaker;

#[cfg(test)]
mod counting_allocator;

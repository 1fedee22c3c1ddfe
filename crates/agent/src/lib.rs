// SPDX-License-Identifier: MIT OR Apache-2.0
//! The target side of Punctual: probes and loads, in one static program without any
//! dependency at run time.
//!
//! `punctual-target` runs as a child process, on a board, or as process 1 of a guest
//! ([`init`]). It gets its orders from a [`punctual_model::Plan`], carries them out
//! ([`session`]) and answers with a stream of framed records ([`stream`]). The probes are
//! in [`probes`], one file each.
//!
//! Between arming a probe and its last sample nothing here allocates, locks, prints or
//! does I/O.

mod ageing;
pub mod board;
pub mod bursts;
pub mod busy;
pub mod cpus;
pub mod cycles;
pub mod disk;
pub mod dma_latency;
#[cfg(feature = "wire")]
pub mod echo;
pub mod event_log;
pub mod figures;
pub mod guest;
pub mod hackbench_workers;
pub mod hand_over;
pub mod hwlat;
pub mod init;
pub mod linear_fit;
pub mod loads;
pub mod network;
pub mod phases;
pub mod probes;
pub mod programs;
pub mod provenance;
pub mod real_machine;
pub mod rt;
pub mod scratch;
pub mod session;
pub mod setting;
pub mod shutdown;
pub mod sink;
pub mod stall;
pub mod status_page;
pub mod stream;
pub mod sys;
pub mod threads;
pub mod tracer;
pub mod virtualised;

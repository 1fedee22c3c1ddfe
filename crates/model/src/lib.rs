// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vocabulary of Punctual, shared by the target side and the workstation side.
//!
//! Nothing here does I/O and nothing here is unsafe. The words are those of
//! `docs/GLOSSARY.md`: a *suite* is resolved into a [`plan::Plan`], which a target
//! carries out; it answers with a stream of [`frame`]s, each holding one
//! [`record::Record`]; the workstation gathers them into a [`run::Run`].
#![forbid(unsafe_code)]

pub mod aim;
pub mod amount;
pub mod architecture;
pub mod arrivals;
pub mod board;
pub mod campaign;
pub mod capture;
mod contradiction;
pub mod cpus;
pub mod digest;
pub mod finding;
pub mod frame;
pub mod histogram;
pub mod imported;
pub mod key;
pub mod limit;
pub mod machine;
pub mod network;
pub mod place;
pub mod plan;
pub mod pool;
pub mod probe;
pub mod quantiles;
pub mod reason;
pub mod record;
pub mod recording;
pub mod run;
pub mod status_page;
pub mod suite;
pub mod units;

pub use architecture::Architecture;
pub use capture::{Capture, Tracer};
pub use finding::{Fact, Facts, Finding, Findings};
pub use histogram::Histogram;
pub use key::RecordingKey;
pub use limit::Limit;
pub use machine::{MachineRecord, VirtualClock};
pub use plan::Plan;
pub use quantiles::Quantiles;
pub use reason::{NotLoaded, Reason};
pub use record::{Preemption, Record};
pub use recording::{Recorder, Recording, Sample};
pub use run::{Run, Subject};
pub use status_page::{Progress, ThreadProgress, WorkerProgress};
pub use units::{CpuId, Nanos};

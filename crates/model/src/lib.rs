//! The vocabulary of Punctual, shared by the target side and the workstation side.
//!
//! Nothing here does I/O and nothing here is unsafe. The words are those of
//! `docs/GLOSSARY.md`: a *suite* is resolved into a [`plan::Plan`], which a target
//! carries out; it answers with a stream of [`frame`]s, each holding one
//! [`record::Record`]; the workstation gathers them into a [`run::Run`].
#![forbid(unsafe_code)]

pub mod digest;
pub mod frame;
pub mod histogram;
pub mod plan;
pub mod pool;
pub mod probe;
pub mod record;
pub mod recording;
pub mod run;
pub mod status_page;
pub mod suite;
pub mod units;

pub use histogram::Histogram;
pub use plan::Plan;
pub use record::Record;
pub use recording::{Recorder, Recording, Sample};
pub use run::{Run, Subject};
pub use status_page::Progress;
pub use units::{CpuId, Nanos};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs as one file: to be exchanged, published, and repeated by others.
//!
//! A file is compressed text, one JSON object to a line, with a checksum in the last one.
//! `docs/export.md` describes it. It names no file and no path, and a reader holds one run in
//! memory at a time.
#![forbid(unsafe_code)]

mod error;
mod line;
mod read;
pub mod witness;
mod write;

use std::sync::Arc;

use punctual_model::Run;
use punctual_model::suite::Suite;

pub use error::ExchangeError;
pub use line::Baseline;
pub use read::{Reader, is_export};
pub use witness::Witness;
pub use write::Writer;

/// The form's name and version.
pub const SCHEMA: &str = "punctual.export/1";

/// A run in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// The run; its id is the one in the store that it comes from.
    pub run: Run,
    /// The suite of the run, as it was measured, if that was known.
    pub suite: Option<Arc<Suite>>,
}

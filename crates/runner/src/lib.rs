//! Runs suites on subjects and stores what comes: what `punctual run` does, as a library.
#![forbid(unsafe_code)]

mod companion;
mod data_files;
pub mod documents;
mod error;
pub mod loads;
mod mistakes;
mod observer;
mod preemption;
mod runner;
mod scale;
pub mod sites;
mod subjects;
pub mod suites;

pub use companion::Companion;
pub use data_files::is_path;
pub use error::{Error, did_you_mean};
pub use observer::Observer;
pub use runner::{Job, Results, Runner};
pub use scale::Scale;
pub use subjects::{Choice, choose};

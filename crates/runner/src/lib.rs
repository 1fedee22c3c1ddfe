// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs suites on subjects and stores the results: the work of `punctual run`, as a library.
//!
//! A suite ([`suites`]) and the loads that it names ([`loads`]) become plans, and subjects
//! ([`choose`]) become systems, ready to run ([`systems`]). A [`Runner`] carries out [`Job`]s, each
//! a plan on a system, and tells an [`Observer`] what happens. On this machine:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::atomic::AtomicBool;
//!
//! use punctual_bench::system::SILENCE;
//! use punctual_kernels::paths;
//! use punctual_model::run::Request;
//! use punctual_model::suite::SubjectSpec;
//! use punctual_runner::{Job, Runner, loads, systems, suites};
//! use punctual_store::Store;
//!
//! let suite = suites::find("demo")?;
//! let plan = suites::plan(&suite, &suite.steps, &loads::of(&suite)?, 1)?;
//! let subject = SubjectSpec {
//!     name: "host".into(),
//!     kernel: "as it runs".into(),
//!     boot: String::new(),
//! };
//! let system = systems::host(&suite, paths::cache_dir()?, SILENCE)?;
//! let store = Store::open("runs.db".as_ref())?;
//! let runner = Runner {
//!     store: &store,
//!     observer: &(),
//!     cancel: &AtomicBool::new(false),
//!     resume: false,
//! };
//! let job = Job {
//!     group: 0,
//!     suite: &suite.name,
//!     subject: &subject,
//!     system: system.system.as_ref(),
//!     plan,
//!     request: Request::default(),
//! };
//! for recording in &runner.carry_out(&[job], 1)?.runs[0].recordings {
//!     println!("{}: {:?}", recording.title(), recording.max());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! `examples/worst.rs` does the same on the virtual bench.
#![forbid(unsafe_code)]

pub mod campaign;
pub mod claims;
mod companion;
mod data_files;
pub mod documents;
mod error;
pub mod gate;
pub mod import;
pub mod limits;
pub mod loads;
pub mod memory;
mod mistakes;
mod observer;
pub mod options;
pub mod pages;
mod preemption;
pub mod program;
pub mod repeats;
pub mod run_names;
mod runner;
mod scale;
mod subjects;
pub mod suites;
pub mod systems;
pub mod times;

/// Parsers of text from people and other programs, for the tests that give them damaged input.
#[doc(hidden)]
pub mod fuzzing {
    use std::path::Path;

    pub use crate::campaign::slurm::listed_tasks;

    /// Reads a text as a campaign, options, a load, a suite and limits; returns each result.
    pub fn files(text: &str) -> Vec<Result<(), String>> {
        let path = Path::new("f.toml");
        let limits = crate::limits::parse(path, text).map(drop);
        let all = [
            crate::campaign::parse(path, text, &|_| Ok(())).map(drop),
            crate::options::parse(path, text).map(drop),
            crate::loads::parse(path, text).map(drop),
            crate::suites::parse(path, text).map(drop),
            limits,
        ];
        let told = all.map(|read| read.map_err(|error| error.to_string()));
        told.into()
    }
}

pub use companion::Companion;
pub use data_files::{is_export, is_path};
pub use error::{Error, did_you_mean};
pub use observer::Observer;
pub use runner::{Ended, Job, Results, Runner, now};
pub use scale::Scale;
pub use subjects::{Choice, choose};

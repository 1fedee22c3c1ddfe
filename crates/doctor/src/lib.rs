// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds what stands in the way of real-time work on a machine: pure functions of its files.
//!
//! A machine is a directory: `/`, a copy of another machine's files, or one made up for a test.
//! Anything that cannot be read is unknown, with the reason, and never fine. `docs/DOCTOR.md` lists
//! all checks.
#![forbid(unsafe_code)]

mod check;
mod checks;
mod config;
mod machine;
mod processes;
mod purpose;
mod steps;

pub use check::{Check, Diagnosis, Finding, Found, Health, Severity, Trial, Value, Verdict};
pub use checks::{ALL, examine};
pub use machine::Machine;
pub use purpose::Purpose;
pub use steps::{Step, System};

#[cfg(test)]
mod tests;

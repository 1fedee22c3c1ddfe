// SPDX-License-Identifier: MIT OR Apache-2.0
//! The presentation of runs: tables for terminals, figures, pages, JSON.
//!
//! Everything here is a pure function of runs. Gaps in measurement are shown as such, with the
//! reason: never as a blank, never as a zero.
#![forbid(unsafe_code)]

pub mod ablate;
pub mod arrivals;
pub mod asked;
pub mod bisect;
pub mod block;
pub mod campaign;
pub mod compare;
pub mod csv;
pub mod doctor;
pub mod extremes;
mod figure;
pub mod gate;
pub mod gnuplot;
mod json;
pub mod judgement;
pub mod lists;
pub mod mail;
mod matrix;
pub mod metal;
mod names;
mod page;
pub mod profile;
pub mod published;
pub mod repeat;
mod rows;
pub mod scope;
pub mod search;
pub mod series;
pub mod shell;
mod stats;
mod summary;
mod table;
pub mod text;
pub mod tracers;
pub mod verification;
mod views;
pub mod why;
pub mod witnesses;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod schema;

pub use json::{runs_json, write_runs_json};
use matrix::Column;
pub use page::{compared_page, comparison_page, page, runs_page};
pub use published::{directions_text, documents_text};
pub use summary::summary;
pub use table::table;
pub use views::counts_by_worst;

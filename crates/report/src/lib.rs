// SPDX-License-Identifier: MIT OR Apache-2.0
//! What runs look like: tables for terminals, figures, pages, JSON.
//!
//! Everything here is a pure function of runs. What was not measured is shown as such,
//! with the reason: never as a blank, never as a zero.
#![forbid(unsafe_code)]

pub mod compare;
pub mod figure;
pub mod gnuplot;
pub mod json;
pub mod judgement;
pub mod matrix;
pub mod page;
pub mod published;
pub mod repeat;
pub mod rows;
pub mod scope;
mod shell;
pub mod stats;
pub mod summary;
pub mod table;
pub mod text;
pub mod views;

#[cfg(test)]
mod fixtures;

pub use figure::Figure;
pub use json::runs_json;
pub use matrix::{Cell, Column, Matrix, Measurement};
pub use page::{comparison_page, page};
pub use published::{directions_text, documents_text};
pub use summary::summary;
pub use table::table;

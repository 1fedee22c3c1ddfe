// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings beside published ones: the same figures, and the same claims checked.
//!
//! A document is beside runs of its own suite only. Virtual time cannot be compared with published
//! times in absolute terms, but it can tell which of two kernels has the lower figure.

pub mod directions;
pub mod improvement;
pub mod judged;
mod measure;
mod roles;
pub mod scale;
pub mod steps;
pub mod tables;
pub mod text;

use punctual_published::Document;

use crate::matrix::Matrix;

pub use directions::{Checked, checked};
pub use judged::ClaimVerdict;
pub(crate) use judged::says;
pub(crate) use measure::{OfRun, by_run, independent, rows};
pub use tables::{Source, Table, table};
pub use text::{directions_text, documents_text};

/// A warning that must stand wherever virtual times are beside published ones.
pub const ABSOLUTE: &str = "Virtual times are lengths of code paths: they must not be compared \
    with the published ones in absolute terms. What may be compared is which kernel has the \
    lower figure, and by how many times.";

/// The documents that these runs repeat: those of their suite, if all have the same.
pub fn repeated<'a>(matrix: &Matrix<'_>, documents: &'a [Document]) -> Vec<&'a Document> {
    let suites = matrix.suites();
    let repeated = |document: &&Document| suites == [document.suite.as_str()];
    documents.iter().filter(repeated).collect()
}

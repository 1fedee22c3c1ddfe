// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published figures of the documents that Punctual's suites repeat, as data.
//!
//! Each file in `published/` holds one document: its tables, histograms and lists, the results that
//! it shows only as pictures, the trends that it claims, and the differences in method here. All
//! numbers are given as printed there, beside a quotation in which they can be found.
#![forbid(unsafe_code)]

mod check;
mod claims;
mod direction;
mod document;
mod figures;

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use thiserror::Error;

pub use claims::{Claim, Claims, Side, Way, parse_claims, release_numbers};
pub use direction::{
    Below, Check, Comparison, Direction, Improved, Measure, Need, Ratio, Role, Statistic, Told,
};
pub use document::{
    Column, Document, Histogram, List, Picture, Quotes, Row, Series, Statement, Table, Unit,
};
pub use figures::{Figure, figures};

static FILES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../published");

/// The text of a cell that a document shows only as a picture.
pub const PICTURE: &str = "picture";

/// A fault in a file of published figures.
#[derive(Debug, Error)]
pub enum PublishedError {
    /// It is not TOML, or not in the form of a document.
    #[error("{}: {}", file.display(), reason.to_string().trim_end())]
    Form {
        /// The file.
        file: PathBuf,
        /// The fault, with line and column.
        reason: toml::de::Error,
    },
    /// It says something impossible.
    #[error("{}, line {line}: {expected}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The expected content, and what was found instead.
        expected: String,
    },
    /// A claim says something impossible.
    #[error("{}: claim \"{says}\": {wrong}", file.display())]
    Claim {
        /// The file.
        file: PathBuf,
        /// The claim.
        says: String,
        /// The fault in the claim.
        wrong: String,
    },
}

/// The suites of the documents, in the order in which these are listed; others come last.
const ORDER: [&str; 5] = ["osadl", "linux-journal", "patch-review", "vub", "celf"];

/// The documents that come with Punctual, in a fixed order.
pub fn documents() -> Result<Vec<Document>, PublishedError> {
    let mut documents = Vec::new();
    for file in FILES.files() {
        let path = Path::new("published").join(file.path());
        let text = file.contents_utf8().unwrap_or_default();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            documents.push(parse(&path, text)?);
        }
    }
    documents.sort_by_key(|document: &Document| {
        let place = ORDER.iter().position(|suite| *suite == document.suite);
        place.unwrap_or(ORDER.len())
    });
    Ok(documents)
}

/// Parses one document; error messages call it `file`.
pub fn parse(file: &Path, text: &str) -> Result<Document, PublishedError> {
    let mut document: Document = toml::from_str(text).map_err(|reason| PublishedError::Form {
        file: file.to_owned(),
        reason,
    })?;
    document.fill();
    check::check(&document).map_err(|fault| PublishedError::Content {
        file: file.to_owned(),
        line: 1 + text
            .bytes()
            .take(fault.at)
            .filter(|byte| *byte == b'\n')
            .count(),
        expected: fault.expected,
    })?;
    Ok(document)
}

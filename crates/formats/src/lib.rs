// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formats of the programs that people's scripts know, one file each: written from
//! numbers to text, and read back.
//!
//! All here are pure functions. Numbers are those that are shown, in the unit of the format
//! (most often whole microseconds): who calls has rounded already.
#![forbid(unsafe_code)]

pub mod cyclictest_histogram;
pub mod cyclictest_json;
pub mod cyclictest_lines;
pub mod hackbench;
pub mod realfeel;
pub mod sendme;

/// A text that is not of the form that was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found \"{found}\"")]
pub struct FormatError {
    /// The line's number, from 1.
    pub line: usize,
    /// What should have been there.
    pub expected: &'static str,
    /// What was there.
    pub found: String,
}

impl FormatError {
    fn new(line: usize, expected: &'static str, found: &str) -> Self {
        let found = found.chars().take(60).collect();
        Self {
            line,
            expected,
            found,
        }
    }
}

/// All numbers in a line; `None` where one of its words is none.
fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> Option<Vec<u64>> {
    words.map(|word| word.parse().ok()).collect()
}

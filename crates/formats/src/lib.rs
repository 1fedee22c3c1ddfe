// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formats of the programs that users' scripts know, one file each: written from
//! numbers to text, and read back.
//!
//! All functions here are pure. Numbers are those that are shown, in the unit of the format
//! (usually whole microseconds): the caller has already rounded them.
#![forbid(unsafe_code)]

use std::borrow::Cow;

pub mod cyclicdeadline_json;
pub mod cyclictest_command;
pub mod cyclictest_histogram;
pub mod cyclictest_json;
pub mod cyclictest_lines;
pub mod foreign;
pub mod ftrace;
pub mod hackbench;
pub mod hwlat;
pub mod jitterdebugger;
pub mod latmus;
mod once;
pub mod oslat_json;
pub mod pasted;
pub mod realfeel;
pub mod rtla_analysis;
pub mod rtla_timerlat;
pub mod sendme;
pub mod trace_page;
pub mod xenomai_latency;

/// A text that does not have the expected form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.told())]
pub struct FormatError {
    /// The line's number, from 1; 0 if several lines contradict each other.
    pub line: usize,
    /// The expected text, or the numbers that contradict each other.
    pub expected: Cow<'static, str>,
    /// The text that was found.
    pub found: String,
}

impl FormatError {
    fn new(line: usize, expected: impl Into<Cow<'static, str>>, found: &str) -> Self {
        let (expected, found) = (expected.into(), found.chars().take(60).collect());
        Self {
            line,
            expected,
            found,
        }
    }

    /// Creates the error for numbers of a text that contradict each other.
    fn contradiction(what: String) -> Self {
        Self {
            line: 0,
            expected: what.into(),
            found: String::new(),
        }
    }

    fn told(&self) -> String {
        let Self {
            line,
            expected,
            found,
        } = self;
        match line {
            0 => expected.clone().into_owned(),
            line => format!("line {line}: expected {expected}, found \"{found}\""),
        }
    }
}

/// Deserializes a JSON text; an error names the line, and what is missing or wrong there.
fn from_json<T: serde::de::DeserializeOwned>(
    text: &str,
    of: &'static str,
) -> Result<T, FormatError> {
    let once = serde_json::from_str::<once::Once>(text);
    once.and_then(|_| serde_json::from_str(text))
        .map_err(|error| {
            let line = error.line().max(1);
            let found = text.lines().nth(line - 1).unwrap_or_default().trim();
            let expected = if error.is_data() {
                let told = error.to_string();
                let told = told.split(" at line").next().unwrap_or_default();
                format!("{of} ({told})").into()
            } else {
                Cow::from("JSON")
            };
            FormatError::new(line, expected, found)
        })
}

/// Parses all numbers in a line; `None` if one of its words is not a number.
fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> Option<Vec<u64>> {
    words.map(|word| word.parse().ok()).collect()
}

/// Parses a number with three decimals, in thousandths: `-0.343` is -343.
fn thousandths(text: &str) -> Option<i64> {
    let (whole, decimals) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    if decimals.len() != 3 || !digits(decimals) || !digits(whole.trim_start_matches('-')) {
        return None;
    }
    (whole.to_owned() + decimals).parse().ok()
}

/// Converts `01:00:12` to seconds.
fn hours_minutes_seconds(text: &str) -> Option<u64> {
    let parts: Option<Vec<u64>> = text.split(':').map(|part| part.parse().ok()).collect();
    let [hours, minutes, seconds] = parts?[..] else {
        return None;
    };
    hours
        .checked_mul(60)?
        .checked_add(minutes)?
        .checked_mul(60)?
        .checked_add(seconds)
}

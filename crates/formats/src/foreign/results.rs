// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one result of one program that a text holds. Parts of another are never skipped.

use crate::{FormatError, cyclictest_histogram, latmus, rtla_timerlat};

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// cyclictest's or jitterdebugger's JSON.
    Json,
    /// The output of `rtla timerlat hist`.
    Rtla,
    /// cyclictest's histogram.
    Histogram,
    /// The histogram of `latmus -g`.
    Latmus,
    /// The output of Xenomai's `latency -h`.
    Xenomai,
    /// cyclictest's lines of threads.
    Lines,
}

/// Texts in lines that show latencies of other programs.
const OTHERS: [&str; 9] = [
    "RTLA osnoise",
    "Operating System Noise",
    "Timer Latency",
    "oslat V",
    "hwlatdetect:",
    "RTAI Testsuite",
    "|    ovl min",
    "cyclic: sched",
    ", Cycles ",
];

impl Form {
    /// Returns the form of which a line is the title; each result has only one title.
    pub fn of_title(line: &str) -> Option<Self> {
        match line.trim_end() {
            rtla_timerlat::TITLE => Some(Self::Rtla),
            cyclictest_histogram::TITLE => Some(Self::Histogram),
            _ if latmus::is_title(line) => Some(Self::Latmus),
            _ if line.starts_with("RTS|") => Some(Self::Xenomai),
            _ => None,
        }
    }

    /// Returns the form of which a line is a part.
    fn of_part(line: &str) -> Option<Self> {
        let line = line.trim_start();
        let mut words = line.split_whitespace();
        let (first, is_more) = (words.next().unwrap_or_default(), words.next().is_some());
        if let Some(form) = Self::of_title(line) {
            return Some(form);
        }
        match first {
            _ if line.starts_with('{') => Some(Self::Json),
            _ if line.starts_with("T:") => Some(Self::Lines),
            "over:" | "count:" | "ALL:" | "Index" if is_more => Some(Self::Rtla),
            _ if ["RTT|", "RTD|", "HSD|", "HSS|"]
                .iter()
                .any(|part| line.starts_with(part)) =>
            {
                Some(Self::Xenomai)
            }
            _ if cyclictest_histogram::is_foot(line) => Some(Self::Histogram),
            _ => None,
        }
    }

    /// Returns true if a part of another form belongs to this one, too.
    fn has(self, part: Self) -> bool {
        match (self, part) {
            // A screen shows the threads' lines before the others, and each second of latmus.
            (Self::Histogram | Self::Json, Self::Lines) | (Self::Latmus, Self::Xenomai) => true,
            _ => self == part,
        }
    }
}

/// Checks that each line is part of the one result; an error names the first that is not.
///
/// # Errors
/// Fails if there is such a line.
pub fn check_alone<'a>(
    lines: impl Iterator<Item = (usize, &'a str)>,
    form: Form,
) -> Result<(), FormatError> {
    // Above its title a form has no row and no summary.
    let mut is_begun = !matches!(form, Form::Rtla | Form::Histogram);
    for (number, line) in lines {
        is_begun |= Form::of_title(line) == Some(form);
        let part = Form::of_part(line);
        let is_row = || crate::numbers(line.split_whitespace()).is_some_and(|row| row.len() > 1);
        let is_other = match part {
            Some(part) if part == form => !is_begun,
            Some(part) => !form.has(part),
            None => OTHERS.iter().any(|other| line.contains(other)) || (!is_begun && is_row()),
        };
        if is_other {
            return Err(second(number, line));
        }
    }
    Ok(())
}

/// Creates the error for a line of a second result.
pub fn second(number: usize, line: &str) -> FormatError {
    let expected = "one result in a file (this is a second one: cut the file in two)";
    FormatError::new(number, expected, line)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of kernels as a table for other programs.

use std::fmt::Write as _;

use super::Line;
use crate::csv::quoted;

/// One line of text for each figure of each run: RFC 4180, times in nanoseconds.
pub fn series_csv(lines: &[Line]) -> String {
    let mut text = "line,release,subject,probe,load,variant,figure,seed,ns,digest\n".to_owned();
    for line in lines {
        for row in &line.rows {
            for (release, values) in line.releases.iter().zip(&row.values) {
                for one in values {
                    let words = [
                        &line.name,
                        &release.version,
                        &release.subject,
                        &row.row.probe,
                        &row.row.load,
                        &row.row.label(),
                        row.figure.name(),
                    ]
                    .map(quoted);
                    let (seed, ns) = (one.seed, one.value.0);
                    let digest = one.digest.as_deref().unwrap_or_default();
                    let _ = writeln!(text, "{},{seed},{ns},{digest}", words.join(","));
                }
            }
        }
    }
    text
}

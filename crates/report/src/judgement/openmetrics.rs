// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs and verdicts as `OpenMetrics` (<https://prometheus.io/docs/specs/om/>).

use std::fmt::Write as _;

use punctual_model::{Histogram, Run};

use super::{Case, Outcome};
use crate::matrix::{Availability, Matrix};
use crate::text::clean;

/// The upper ends of buckets, in nanoseconds: 1, 2 and 5 of each decade.
const ENDS: [i64; 19] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];

/// Returns a histogram of each measurement without negative samples, and each verdict.
/// A verdict is 0 if fit (or no worse), 1 if undecided, 2 if unfit (or worse).
pub fn openmetrics(cases: &[Case], runs: &[Run]) -> String {
    let mut text = "# TYPE punctual_sample_seconds histogram\n\
                    # UNIT punctual_sample_seconds seconds\n"
        .to_owned();
    let matrix = Matrix::new(runs);
    for column in &matrix.columns {
        for row in &matrix.rows {
            let Availability::Measured { found, .. } = column.cell(row) else {
                continue;
            };
            let mut gathered = Histogram::new();
            for one in &found {
                gathered.add(&one.recording.histogram);
            }
            if gathered.negative() == 0 {
                let sum = found
                    .iter()
                    .map(|one| one.recording.sum.as_secs_f64())
                    .sum();
                let names = [&column.name, &row.probe, &row.load, &row.label()];
                text += &histogram(&labels(&names.map(String::as_str)), &gathered, sum);
            }
        }
    }
    text += "# TYPE punctual_verdict gauge\n# HELP punctual_verdict 0 fit, 1 undecided, 2 unfit\n";
    for case in cases {
        let [probe, load, variant] = &case.key;
        let names = [case.subject.as_str(), probe, load, variant];
        let limit = case.parts.join(".");
        let value = match case.outcome {
            Outcome::Pass => 0,
            Outcome::Undecided | Outcome::Missing => 1,
            Outcome::Fail => 2,
        };
        let labels = labels(&names);
        let limit = escaped(&format!("{limit} {}", case.demand));
        _ = writeln!(
            text,
            "punctual_verdict{{{labels},limit=\"{limit}\"}} {value}"
        );
    }
    text + "# EOF\n"
}

fn labels(names: &[&str; 4]) -> String {
    let keys = ["subject", "probe", "load", "variant"];
    let pairs = keys.iter().zip(names);
    let pairs: Vec<String> = pairs
        .map(|(key, name)| format!("{key}=\"{}\"", escaped(name)))
        .collect();
    pairs.join(",")
}

fn histogram(labels: &str, histogram: &Histogram, sum: f64) -> String {
    let mut text = String::new();
    for end in ENDS {
        let within = histogram.bins().filter(|bin| bin.high.0 <= end);
        let count: u64 = within.map(|bin| bin.count).sum();
        let end = end as f64 / 1e9;
        _ = writeln!(
            text,
            "punctual_sample_seconds_bucket{{{labels},le=\"{end}\"}} {count}"
        );
    }
    let count = histogram.count();
    _ = writeln!(
        text,
        "punctual_sample_seconds_bucket{{{labels},le=\"+Inf\"}} {count}"
    );
    _ = writeln!(text, "punctual_sample_seconds_sum{{{labels}}} {sum}");
    _ = writeln!(text, "punctual_sample_seconds_count{{{labels}}} {count}");
    text
}

fn escaped(text: &str) -> String {
    clean(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs and verdicts as `OpenMetrics` (<https://prometheus.io/docs/specs/om/>).

use std::fmt::Write as _;

use punctual_model::histogram::{Bin, is_close};
use punctual_model::{Histogram, Run};

use super::names::distinct;
use super::{Case, Outcome};
use crate::matrix::Matrix;
use crate::stats::Stats;
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
            let found = column.found(row);
            if found.is_empty() {
                continue;
            }
            let mut gathered = Histogram::new();
            for one in &found {
                gathered.add(&one.recording.histogram);
            }
            if gathered.negative() == 0 {
                let sums = found.iter().map(|one| i128::from(one.recording.sum.0));
                let sum = sums.sum::<i128>() as f64 / 1e9;
                let stats = Stats::of(&found);
                let is_known = stats.count == 0 || stats.mean.is_some();
                let sum = is_known.then_some(sum);
                let names = [&column.name, &row.probe, &row.load, &row.label()];
                text += &histogram(&labels(&names.map(String::as_str)), &gathered, sum);
            }
        }
    }
    text += "# TYPE punctual_verdict gauge\n# HELP punctual_verdict 0 fit, 1 undecided, 2 unfit\n";
    let series = |case: &Case| {
        let [probe, load, variant] = &case.key;
        let labels = labels(&[case.subject.as_str(), probe, load, variant]);
        let limit = escaped(&format!("{} {}", case.parts.join("."), case.demand));
        format!("{labels},limit=\"{limit}")
    };
    // Two series of one name would be one to a reader.
    let all = distinct(cases.iter().map(series));
    for (case, series) in cases.iter().zip(&all) {
        let value = match case.outcome {
            Outcome::Pass => 0,
            Outcome::Undecided | Outcome::Missing => 1,
            Outcome::Fail => 2,
        };
        _ = writeln!(text, "punctual_verdict{{{series}\"}} {value}");
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

/// Returns the buckets, and, if the sum is known, sum and count: neither stands without the other.
fn histogram(labels: &str, histogram: &Histogram, sum: Option<f64>) -> String {
    let mut text = String::new();
    for end in ENDS {
        // Nobody knows how many samples of a wide bin are below an end within it.
        let is_within = |bin: &Bin| bin.low.0 < end && end < bin.high.0;
        let is_wide = |bin: &Bin| !is_close(bin.low, bin.high);
        let mut wide = histogram.foreign().filter(is_wide);
        if wide.any(|bin| is_within(&bin)) {
            continue;
        }
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
    if let Some(sum) = sum {
        _ = writeln!(text, "punctual_sample_seconds_sum{{{labels}}} {sum}");
        _ = writeln!(text, "punctual_sample_seconds_count{{{labels}}} {count}");
    }
    text
}

fn escaped(text: &str) -> String {
    clean(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signed samples, counted in steps as the published histograms count them.
//! Realfeel counts samples below zero in the first step. (`punctual-formats` has its bins.)

use std::collections::BTreeMap;

use punctual_published::Histogram;

use super::measure::rows;
use crate::matrix::{Matrix, Measurement, distinct};

/// A kernel's counts by the number of the step, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The kernel's name.
    pub name: String,
    /// The number of its column; `None` if it was published.
    pub column: Option<usize>,
    /// The load; empty if it was published.
    pub load: String,
    /// The number of samples in each step that has any.
    pub steps: BTreeMap<u64, u64>,
}

/// The loads of ours, each once.
pub fn loads(all: &[Counts]) -> Vec<&str> {
    let ours = all.iter().filter(|one| one.column.is_some());
    distinct(ours.map(|one| one.load.as_str()))
}

/// Returns the published histograms, then ours for each load.
/// All are in the steps of the first published one, whose length in nanoseconds comes first.
pub fn counts(matrix: &Matrix<'_>, published: &[Histogram]) -> Option<(i64, Vec<Counts>)> {
    let first = published.first()?;
    let step = first.step.parse::<f64>().ok()? * first.unit.nanos()?;
    let step = step.round() as i64;
    let mut all: Vec<Counts> = published
        .iter()
        .map(|histogram| Counts {
            name: format!("published: {}", histogram.name),
            column: None,
            load: String::new(),
            steps: histogram.steps().into_iter().collect(),
        })
        .collect();
    let measure = punctual_published::Measure {
        probe: first.probe.clone(),
        variant: String::new(),
        load: None,
        statistic: punctual_published::Statistic::Farthest,
    };
    for row in rows(matrix, &measure, None) {
        all.extend(ours(matrix, row, step));
    }
    Some((step, all))
}

/// The subjects without counts, because not all of their samples were kept.
pub fn uncounted(matrix: &Matrix<'_>, probe: &str) -> Vec<String> {
    let mut names = Vec::new();
    for row in matrix.rows.iter().filter(|row| row.probe == probe) {
        for column in &matrix.columns {
            let found = column.found(row);
            if found.iter().any(|one| !one.recording.is_complete()) {
                names.push(format!("{}, {}", column.name, row.load));
            }
        }
    }
    names
}

/// Each subject whose samples were all kept: bins would not tell the sign.
fn ours(matrix: &Matrix<'_>, row: &Measurement, step: i64) -> Vec<Counts> {
    let counts = |(at, column): (usize, &crate::Column<'_>)| {
        let mut steps = BTreeMap::new();
        for recording in column.found(row).iter().map(|one| one.recording) {
            if !recording.is_complete() {
                return None;
            }
            for sample in recording.samples.iter() {
                *steps
                    .entry((sample.value.0.max(0) / step) as u64)
                    .or_default() += 1;
            }
        }
        (!steps.is_empty()).then(|| Counts {
            name: format!("{}, {}", column.name, row.load),
            column: Some(at),
            load: row.load.clone(),
            steps,
        })
    };
    let columns = matrix.columns.iter().enumerate();
    columns.filter_map(counts).collect()
}

#[cfg(test)]
mod tests {
    use punctual_model::RecordingKey;

    use punctual_model::recording::Recorder;
    use punctual_model::units::Nanos;
    use punctual_published::documents;

    use super::*;
    use crate::fixtures;

    #[test]
    fn what_is_too_short_is_in_the_first_step_and_each_other_in_its_own() {
        let values = [0, 99_999, -99_999, 100_000, 199_999, 200_000, -370_000];
        let jitter = fixtures::recording(["realfeel", "combined", "rtc 2048 Hz"], &values);
        let runs = [fixtures::run_with(vec![jitter])];
        let documents = documents().unwrap();
        let matrix = Matrix::new(&runs);
        let (step, all) = counts(&matrix, &documents[2].histograms).unwrap();
        assert_eq!(step, 100_000);
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names[..2],
            ["published: 2.6.15 vanilla", "published: 2.6.15-rt16"]
        );
        assert_eq!(names[2..], ["rt, combined"]);
        assert_eq!(all[0].steps[&0], 54_410);
        assert_eq!(all[2].steps, BTreeMap::from([(0, 4), (1, 2), (2, 1)]));
    }

    #[test]
    fn samples_that_were_not_all_kept_are_not_counted() {
        let mut recorder = Recorder::new(1);
        recorder.record(Nanos::ZERO, Nanos(-5));
        recorder.record(Nanos::ZERO, Nanos(7));
        let jitter = recorder.finish(RecordingKey::new("realfeel", "idle", "rtc 2048 Hz"));
        let runs = [fixtures::run_with(vec![jitter])];
        let documents = documents().unwrap();
        let matrix = Matrix::new(&runs);
        let (_, all) = counts(&matrix, &documents[2].histograms).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(uncounted(&matrix, "realfeel"), ["rt, idle"]);
    }
}

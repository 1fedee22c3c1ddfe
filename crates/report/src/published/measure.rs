// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figure of a subject to compare with a document's figure.

use punctual_model::probe::is_beginning;
use punctual_model::recording::Recording;
use punctual_model::units::Nanos;
use punctual_published::{Measure, Statistic};

use crate::arrivals::Watched;
use crate::matrix::{Availability, Column, Matrix, Measured, Measurement, distinct};
use crate::stats::Stats;

/// The rows that are meant: those under the named load.
/// If none is named, these are the rows under any load, or idle ones if there are no others.
pub fn rows<'a>(
    matrix: &'a Matrix<'_>,
    measure: &Measure,
    load: Option<&str>,
) -> Vec<&'a Measurement> {
    // What could run nowhere has no variant, but its reason belongs here too.
    let meant = |row: &&Measurement| {
        measure.means(&row.probe, &row.variant)
            || (row.probe == measure.probe && row.variant.is_empty())
    };
    let rows: Vec<&Measurement> = matrix.rows.iter().filter(meant).collect();
    let under = |test: &dyn Fn(&str) -> bool| -> Vec<&'a Measurement> {
        let rows = rows.iter().filter(|row| test(&row.load));
        rows.copied().collect()
    };
    match load.or(measure.load.as_deref()) {
        Some(load) => under(&|other| other == load),
        None if rows.iter().any(|row| !row.is_idle()) => under(&|other| other != "idle"),
        None => rows,
    }
}

/// Returns the loads of these rows, for a sentence: ` (osadl)`; empty if all are idle.
pub fn loads(rows: &[&Measurement]) -> String {
    let loaded = rows.iter().filter(|row| !row.is_idle());
    let loads = distinct(loaded.map(|row| row.load.as_str()));
    if loads.is_empty() {
        return String::new();
    }
    format!(" ({})", loads.join(", "))
}

/// The figure of one run.
#[derive(Clone, Debug)]
pub struct OfRun<'a> {
    /// The run's place among all runs of its subject, from 0. In real time seeds may be equal.
    pub number: usize,
    /// The run's seed.
    pub seed: u64,
    /// The figure, in nanoseconds, or a quotient of two.
    pub value: f64,
    /// The recordings that it was taken from.
    pub recordings: Vec<&'a Recording>,
}

impl OfRun<'_> {
    /// Returns true if both runs measured the same to the last sample.
    /// If the figure is the latest arrival, that must be the same too: equal samples say nothing of
    /// arrivals between them.
    pub fn is_same(&self, other: &Self) -> bool {
        self.value.to_bits() == other.value.to_bits() && self.has_samples_of(other)
    }

    /// Returns true if it is the same run once more.
    fn is_again(&self, other: &Self) -> bool {
        self.seed == other.seed && self.has_samples_of(other)
    }

    fn has_samples_of(&self, other: &Self) -> bool {
        let alike = |(one, other): (&&Recording, &&Recording)| {
            (one.count, one.sum, &one.histogram) == (other.count, other.sum, &other.histogram)
        };
        self.recordings.len() == other.recordings.len()
            && self.recordings.iter().zip(&other.recordings).all(alike)
    }

    /// Returns true if its samples differ from each other.
    fn varies(&self) -> bool {
        let mut all = self.recordings.iter();
        all.any(|one| one.extremes.is_some_and(|(low, high)| low != high))
    }
}

/// Keeps the runs in which the seed changed something.
/// Samples that vary within a run, but are the same in another, are one draw. Samples that never
/// vary are exact, and count in each run.
pub fn independent(runs: Vec<OfRun<'_>>) -> Vec<OfRun<'_>> {
    let mut kept: Vec<OfRun<'_>> = Vec::new();
    for run in runs {
        let is_known = |other: &OfRun<'_>| other.is_same(&run) || other.is_again(&run);
        if !run.varies() || !kept.iter().any(is_known) {
            kept.push(run);
        }
    }
    kept
}

/// Returns the figure of each run of a subject, or the reason why there is none.
/// Interrupted recordings have fewer samples than others, and do not count.
pub fn by_run<'a>(
    column: &Column<'a>,
    rows: &[&Measurement],
    statistic: Statistic,
) -> Result<Vec<OfRun<'a>>, String> {
    let found = measured(column, rows)?;
    let mut runs = Vec::new();
    for (number, run) in column.runs.iter().enumerate() {
        let is_own = |one: &&Measured<'a>| std::ptr::eq(one.run, *run);
        let is_whole = |one: &&Measured<'a>| !one.recording.interrupted;
        let own = found.iter().filter(is_own).filter(is_whole);
        let own: Vec<Measured<'a>> = own.copied().collect();
        if !own.is_empty() {
            runs.push(OfRun {
                number,
                seed: run.seed,
                value: of(&own, statistic).ok_or(NOT_KEPT)?,
                recordings: own.iter().map(|one| one.recording).collect(),
            });
        }
    }
    if runs.is_empty() {
        return Err("interrupted".to_owned());
    }
    Ok(runs)
}

/// Returns the sharpest measure for comparing two subjects.
/// A largest sample is one draw of the moments of its run. The latest of every arrival looks at all
/// of them, and takes its place if each run of both was watched. Events that a run did not meet are
/// in neither.
pub fn sharpest(measure: &Measure, columns: [&Column<'_>; 2], rows: &[&Measurement]) -> Measure {
    let is_known = |column| by_run(column, rows, Statistic::Arrival).is_ok();
    let is_watched = measure.statistic == Statistic::Max && columns.into_iter().all(is_known);
    Measure {
        statistic: if is_watched {
            Statistic::Arrival
        } else {
            measure.statistic
        },
        ..measure.clone()
    }
}

/// The figure over all runs, or why there is none.
pub fn figure(
    column: &Column<'_>,
    rows: &[&Measurement],
    statistic: Statistic,
) -> Result<Nanos, String> {
    let value = match statistic {
        Statistic::WorstMean => {
            let mean = |row| of(&measured(column, &[row]).ok()?, Statistic::Mean);
            let rows = rows.iter().filter(|row| !is_beginning(&row.variant));
            let means = rows.filter_map(|row| mean(*row));
            means.max_by(f64::total_cmp)
        }
        _ => of(&measured(column, rows)?, statistic),
    };
    Ok(Nanos(value.ok_or(NOT_KEPT)?.round() as i64))
}

const NOT_KEPT: &str = "not every sample was kept";

/// Returns the recordings, or the reason why there are none.
fn measured<'a>(column: &Column<'a>, rows: &[&Measurement]) -> Result<Vec<Measured<'a>>, String> {
    let (mut found, mut reason) = (Vec::new(), None);
    for row in rows {
        match column.cell(row) {
            Availability::Measured { found: more, .. } => {
                found.extend(more.into_iter().filter(|one| one.recording.count > 0));
            }
            Availability::Unsupported(why) => reason = Some(format!("unsupported: {why}")),
            Availability::Missing(absent) => {
                let why = || absent.first().map(|absent| absent.word().to_owned());
                reason = reason.or_else(why);
            }
        }
    }
    if found.is_empty() {
        return Err(reason.unwrap_or_else(|| "not measured".to_owned()));
    }
    Ok(found)
}

/// The figure, corrected where the cost of taking time stamps is known.
fn of(found: &[Measured<'_>], statistic: Statistic) -> Option<f64> {
    let stats = Stats::of(found);
    let tracing = stats.tracing.map_or(0.0, |tracing| tracing.0 as f64);
    Some(raw(&stats, found, statistic)? - tracing)
}

/// The figure with the cost of taking time stamps.
fn raw(stats: &Stats, found: &[Measured<'_>], statistic: Statistic) -> Option<f64> {
    let all = || found.iter().map(|one| one.recording);
    let mean = |sum: i128, count: u64| sum as f64 / count as f64;
    let time = match statistic {
        Statistic::Mean => {
            let sum = all().map(|one| i128::from(one.sum.0)).sum();
            return (stats.count > 0).then(|| mean(sum, stats.count));
        }
        Statistic::WorstMean => {
            let all = all().filter(|one| !is_beginning(&one.key.variant));
            let means = all.map(|one| mean(one.sum.0.into(), one.count));
            return means.max_by(f64::total_cmp);
        }
        Statistic::Min => stats.extremes.map(|(min, _)| min),
        Statistic::Max => stats.worst(),
        Statistic::Arrival => Watched::of(found).worst(),
        Statistic::Median => stats.median(),
        Statistic::Last => {
            let last = found.last()?.recording;
            let samples = last.is_complete().then(|| last.samples.iter());
            samples?.last().map(|sample| sample.value)
        }
        Statistic::Farthest => stats.farthest(),
        Statistic::MedianDistance => {
            if !all().all(Recording::is_complete) {
                return None;
            }
            let samples = all().flat_map(|one| one.samples.iter());
            let mut distances: Vec<i64> = samples.map(|one| one.value.0.abs()).collect();
            distances.sort_unstable();
            let middle = distances.len().checked_sub(1)? / 2;
            distances.get(middle).map(|ns| Nanos(*ns))
        }
    };
    time.map(|time| time.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn measure(variant: &str, statistic: Statistic) -> Measure {
        Measure {
            probe: "signal".into(),
            variant: variant.into(),
            load: None,
            statistic,
        }
    }

    #[test]
    fn each_statistic_is_what_a_hand_finds() {
        let values = [-900, 40, 30, 700, 10];
        let signal = fixtures::recording(["signal", "idle", "from"], &values);
        let runs = [fixtures::run_with(vec![signal])];
        let matrix = Matrix::new(&runs);
        let value = |statistic| {
            let rows = rows(&matrix, &measure("from", statistic), None);
            figure(&matrix.columns[0], &rows, statistic).unwrap().0
        };
        assert_eq!(value(Statistic::Min), -900);
        assert_eq!(value(Statistic::Max), 700);
        assert_eq!(value(Statistic::Mean), -24);
        assert_eq!(value(Statistic::Median), 30);
        assert_eq!(value(Statistic::Last), 10);
        assert_eq!(value(Statistic::Farthest), 900);
        assert_eq!(value(Statistic::MedianDistance), 40);
    }

    #[test]
    fn a_load_is_taken_before_idleness_and_a_name_before_both() {
        let runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        let mut measure = measure("", Statistic::Max);
        measure.probe = "timer".into();
        let loads_of = |load| {
            let rows = rows(&matrix, &measure, load);
            rows.iter().map(|row| row.load.clone()).collect::<Vec<_>>()
        };
        assert_eq!(loads_of(None), ["stress"]);
        assert_eq!(loads_of(Some("idle")), ["idle"]);
        assert!(loads_of(Some("celf-50")).is_empty());
    }

    #[test]
    fn what_is_missing_says_why_and_is_no_zero() {
        let mut runs = fixtures::with_gaps();
        let empty = fixtures::recording(["signal", "idle", "to"], &[]);
        runs[0].recordings.push(empty);
        let matrix = Matrix::new(&runs);
        let why = |probe: &str| {
            let mut measure = measure("", Statistic::Max);
            measure.probe = probe.into();
            figure(
                &matrix.columns[0],
                &rows(&matrix, &measure, None),
                Statistic::Max,
            )
        };
        let unsupported = format!("unsupported: {}", fixtures::NO_MODULE);
        assert_eq!(why("irq"), Err(unsupported));
        assert_eq!(why("mutex"), Err("not measured".to_owned()));
        assert_eq!(why("signal"), Err("not measured".to_owned()));
    }
}

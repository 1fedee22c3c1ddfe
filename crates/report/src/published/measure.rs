// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figure of a subject that a document's figure is to be compared with.

use punctual_model::probe::is_beginning;
use punctual_model::units::Nanos;
use punctual_published::{Measure, Statistic};

use crate::matrix::{Cell, Column, Matrix, Measured, Measurement};
use crate::stats::Stats;
use crate::text::thousands;

/// The rows that are meant: under the load that is named; without a name under any load,
/// and idle where there are no others.
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
    match load {
        Some(load) => under(&|other| other == load),
        None if rows.iter().any(|row| !row.is_idle()) => under(&|other| other != "idle"),
        None => rows,
    }
}

/// The loads of these rows, for a sentence: ` (osadl)`; nothing where all are idle.
pub fn loads(rows: &[&Measurement]) -> String {
    let mut loads: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| !row.is_idle()) {
        if !loads.contains(&row.load.as_str()) {
            loads.push(&row.load);
        }
    }
    if loads.is_empty() {
        return String::new();
    }
    format!(" ({})", loads.join(", "))
}

/// From fewer samples than this no worst case is compared.
const ENOUGH: u64 = 1_000;
/// From fewer runs of some work than this nothing is compared whose ranges overlap.
const RUNS: u64 = 5;

/// What figures rest on: how many samples, and how far they reach.
#[derive(Clone, Copy, Debug)]
pub struct Basis {
    count: u64,
    reach: (Nanos, Nanos),
}

/// What a subject's figure rests on; `None` where there are no samples.
pub fn basis(column: &Column<'_>, rows: &[&Measurement]) -> Option<Basis> {
    let cells = rows.iter().map(|row| column.cell(row));
    let found = cells.filter_map(|cell| match cell {
        Cell::Measured { found, .. } => Some(found),
        _ => None,
    });
    let found: Vec<Measured<'_>> = found.flatten().collect();
    let stats = Stats::of(&found);
    let (count, reach) = (stats.count, stats.extremes?);
    Some(Basis { count, reach })
}

/// Why two figures cannot be told apart: there are too few samples.
pub fn too_few(rows: &[&Measurement], statistic: Statistic, pair: [Basis; 2]) -> Option<String> {
    let count = pair[0].count.min(pair[1].count);
    // What has a value for each run by design is no worst of many.
    if rows.iter().any(|row| row.view().is_without_samples()) {
        return None;
    }
    let is_work = rows.iter().all(|row| row.is_throughput());
    let is_extreme = matches!(statistic, Statistic::Max | Statistic::Farthest);
    let [one, other] = pair.map(|basis| basis.reach);
    let overlap = one.0 <= other.1 && other.0 <= one.1;
    let expected = match (is_work, is_extreme) {
        (true, _) if count < RUNS && (overlap || count < 2) => RUNS,
        (false, true) if count < ENOUGH => ENOUGH,
        _ => return None,
    };
    let (count, expected) = (thousands(count), thousands(expected));
    Some(format!(
        "too few samples to tell: {count}, expected {expected} or more"
    ))
}

/// The figure, or why there is none.
pub fn figure(
    column: &Column<'_>,
    rows: &[&Measurement],
    statistic: Statistic,
) -> Result<Nanos, String> {
    let (mut found, mut reason) = (Vec::new(), None);
    for row in rows {
        match column.cell(row) {
            Cell::Measured { found: more, .. } => {
                found.extend(more.into_iter().filter(|one| one.recording.count > 0));
            }
            Cell::Unsupported(why) => reason = Some(format!("unsupported: {why}")),
            Cell::Missing(absent) => {
                let why = || absent.first().map(|absent| absent.word().to_owned());
                reason = reason.or_else(why);
            }
        }
    }
    if found.is_empty() {
        return Err(reason.unwrap_or_else(|| "not measured".to_owned()));
    }
    if statistic == Statistic::WorstMean {
        found.retain(|one| !is_beginning(&one.recording.key.variant));
        let variants =
            found.chunk_by(|one, other| one.recording.key.variant == other.recording.key.variant);
        let means = variants.filter_map(|variant| of(variant, Statistic::Mean));
        return means.max().ok_or_else(|| "not measured".to_owned());
    }
    of(&found, statistic).ok_or_else(|| "not every sample was kept".to_owned())
}

fn of(found: &[Measured<'_>], statistic: Statistic) -> Option<Nanos> {
    let stats = Stats::of(found);
    match statistic {
        Statistic::Min => stats.extremes.map(|(min, _)| min),
        Statistic::Mean | Statistic::WorstMean => stats.mean,
        Statistic::Max => stats.worst(),
        Statistic::Median => stats.median(),
        Statistic::Last => {
            let last = found.last()?.recording;
            let samples = last.is_complete().then(|| last.samples.iter());
            samples?.last().map(|sample| sample.value)
        }
        Statistic::Farthest => stats.farthest(),
        Statistic::MedianDistance => {
            let all = found.iter().map(|one| one.recording);
            let mut distances = Vec::new();
            for recording in all {
                if !recording.is_complete() {
                    return None;
                }
                distances.extend(recording.samples.iter().map(|one| one.value.0.abs()));
            }
            distances.sort_unstable();
            distances
                .get((distances.len() - 1) / 2)
                .map(|ns| Nanos(*ns))
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::RecordingKey;

    use punctual_model::recording::Recorder;

    use super::*;
    use crate::fixtures;

    fn measure(variant: &str, statistic: Statistic) -> Measure {
        Measure {
            probe: "signal".into(),
            variant: variant.into(),
            statistic,
        }
    }

    #[test]
    fn each_statistic_is_what_a_hand_finds() {
        let mut recorder = Recorder::new(10);
        for (number, value) in (0..).zip([-900, 40, 30, 700, 10]) {
            recorder.record(Nanos(number), Nanos(value));
        }
        let mut run = fixtures::run("rt", 1);
        run.recordings = vec![recorder.finish(RecordingKey::new("signal", "idle", "from"))];
        let runs = [run];
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
        runs[0]
            .recordings
            .push(Recorder::new(1).finish(RecordingKey::new("signal", "idle", "to")));
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

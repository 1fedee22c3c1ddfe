// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings as files for gnuplot.
//! Data have their provenance above them, and each figure has a script.

mod header;
mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use punctual_model::probe::Shape;
use punctual_model::{Nanos, Recording, Run};

use crate::matrix::{Matrix, Measured, Measurement};
use crate::stats::Stats;
use crate::text::clean;

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without a directory; no two are alike.
    pub name: String,
    /// Its contents.
    pub text: String,
}

/// Returns all files about these runs.
/// For each recording, there is a histogram (`.hist.dat`) and, if samples were kept, a series
/// (`.series.dat`). For each measurement, there are its subjects' figures (`.bars.dat`) and a
/// script for each figure (`.gp`), which makes a file of the same name with `.svg`.
pub fn files(runs: &[Run]) -> Vec<File> {
    let matrix = Matrix::new(runs);
    let mut names = Names::default();
    let mut files = Vec::new();
    let several = matrix.seeds().len() > 1;
    let mut add = |name: String, text: String| files.push(File { name, text });
    for row in &matrix.rows {
        let base = names.new_one(&[&row.probe, &row.load, &row.variant]);
        let (mut histograms, mut series) = (Vec::new(), Vec::new());
        let found = matrix.columns.iter().flat_map(|column| {
            let found = column.found(row).into_iter();
            found.map(move |one| (&column.name, one))
        });
        for (subject, one) in found {
            let seed = format!("seed{}", one.run.seed);
            let seed = if several { seed.as_str() } else { "" };
            let name = names.new_one(&[&row.probe, &row.load, &row.variant, subject, seed]);
            let drawn = |file: &str, is_positive| script::Drawn {
                file: file.to_owned(),
                title: format!("{subject} {seed}").trim().to_owned(),
                is_positive,
            };
            let file = format!("{name}.hist.dat");
            let mut bins = one.recording.histogram.bins();
            let are_positive = bins.all(|bin| bin.low > Nanos::ZERO);
            histograms.extend((one.recording.count > 0).then(|| drawn(&file, are_positive)));
            add(file, histogram(&one, row));
            let file = format!("{name}.series.dat");
            // One sample alone makes no axis.
            let mut kept = one.recording.samples.iter();
            let are_positive = kept.all(|sample| sample.value > Nanos::ZERO);
            series.extend((one.recording.samples.len() > 1).then(|| drawn(&file, are_positive)));
            if !one.recording.samples.is_empty() {
                add(file, samples(&one));
            }
        }
        if !histograms.is_empty() {
            let data = format!("{base}.bars.dat");
            add(format!("{base}.bars.gp"), script::bars(&base, row, &data));
            add(data, bars(&matrix, row));
            let script = script::histogram(&base, row, &histograms);
            add(format!("{base}.hist.gp"), script);
        }
        if !series.is_empty() {
            let script = script::series(&base, row, &series);
            add(format!("{base}.series.gp"), script);
        }
    }
    files
}

/// Names that every file system takes, each given once.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn new_one(&mut self, parts: &[&str]) -> String {
        let odd = |c: char| !c.is_ascii_alphanumeric() && c != '.';
        let parts = parts.iter().filter(|part| !part.is_empty());
        let parts: Vec<String> = parts.map(|part| part.replace(odd, "-")).collect();
        let mut base: String = parts.join("_").chars().take(150).collect();
        if base.starts_with('.') {
            base.insert(0, '_');
        }
        let mut name = base.clone();
        let mut number = 2;
        while !self.0.insert(name.to_lowercase()) {
            name = format!("{base}-{number}");
            number += 1;
        }
        name
    }
}

/// Returns every value with its count.
/// The values are exact if all samples of a signed recording were kept, else they are bins.
fn histogram(one: &Measured<'_>, row: &Measurement) -> String {
    let recording = one.recording;
    let mut text = header::of(one);
    let is_exact = row.view().shape == Shape::Jitter && recording.is_complete();
    let (over, below) = (
        recording.histogram.overflow(),
        recording.histogram.negative(),
    );
    if over + below > 0 && !is_exact {
        let _ = writeln!(
            text,
            "# not among the bins: {below} samples below zero, {over} past the last bin"
        );
    }
    text += "# low_ns high_ns count\n";
    if is_exact {
        for (value, count) in exact(recording) {
            let _ = writeln!(text, "{value} {value} {count}");
        }
        return text;
    }
    for bin in recording.histogram.bins() {
        let _ = writeln!(text, "{} {} {}", bin.low.0, bin.high.0, bin.count);
    }
    text
}

fn exact(recording: &Recording) -> BTreeMap<i64, u64> {
    let mut counts = BTreeMap::new();
    for sample in recording.samples.iter() {
        *counts.entry(sample.value.0).or_default() += 1;
    }
    counts
}

fn samples(one: &Measured<'_>) -> String {
    let recording = one.recording;
    let mut text = header::of(one);
    if !recording.is_complete() {
        let (kept, count) = (recording.samples.len(), recording.count);
        let _ = writeln!(
            text,
            "# the first {kept} of {count} samples: the others were counted, not kept"
        );
    }
    text += "# sequence time_ns value_ns\n";
    for sample in recording.samples.iter() {
        let _ = writeln!(text, "{} {} {}", sample.seq, sample.at.0, sample.value.0);
    }
    text
}

/// A line for each subject; `-` if there is no figure.
fn bars(matrix: &Matrix<'_>, row: &Measurement) -> String {
    let mut text = format!("# {}\n", clean(&row.title()));
    text.extend(matrix.runs().map(header::run));
    text += "# times in nanoseconds; - where nothing was measured\n";
    text += "# subject min mean median max count\n";
    for column in &matrix.columns {
        let stats = Stats::of(&column.found(row));
        let name = clean(&column.name).replace('"', "'");
        let min = stats.extremes.map(|(min, _)| min);
        let times = [min, stats.mean, stats.median(), stats.worst()];
        let times =
            times.map(|time| time.map_or_else(|| "-".to_owned(), |time| time.0.to_string()));
        let _ = writeln!(text, "\"{name}\" {} {}", times.join(" "), stats.count);
    }
    text
}

#[cfg(test)]
mod tests;

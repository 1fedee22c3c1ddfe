// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings as files for gnuplot: data with their provenance above them, and a script for
//! each figure.

mod header;
mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use punctual_model::recording::Recording;
use punctual_model::run::Run;

use crate::matrix::{Matrix, Measured, Measurement};
use crate::stats::Stats;
use punctual_model::probe::Shape;

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without a directory; no two are alike.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// All files about these runs: for each recording a histogram (`.hist.dat`) and, where samples
/// were kept, a series (`.series.dat`); for each measurement its subjects' figures
/// (`.bars.dat`) and a script for each figure (`.gp`), which makes a file of the same name
/// with `.svg`.
pub fn files(runs: &[Run]) -> Vec<File> {
    let matrix = Matrix::new(runs);
    let mut names = Names::default();
    let mut files = Vec::new();
    for row in &matrix.rows {
        let base = names.new_one(&[&row.probe, &row.load, &row.variant]);
        let (mut histograms, mut series) = (Vec::new(), Vec::new());
        for column in &matrix.columns {
            for one in column.found(row) {
                let seed = if matrix.seeds().len() > 1 {
                    format!("seed{}", one.run.seed)
                } else {
                    String::new()
                };
                let parts = [&row.probe, &row.load, &row.variant, &column.name, &seed];
                let name = names.new_one(&parts.map(String::as_str));
                let title = [column.name.as_str(), seed.as_str()].join(" ");
                let file = |kind: &str, text| File {
                    name: format!("{name}.{kind}.dat"),
                    text,
                };
                let drawn = |file: &File| script::Drawn {
                    file: file.name.clone(),
                    title: title.trim().to_owned(),
                };
                let file_of = file("hist", histogram(&one, row));
                if one.recording.count > 0 {
                    histograms.push(drawn(&file_of));
                }
                files.push(file_of);
                if !one.recording.samples.is_empty() {
                    let file_of = file("series", samples(&one));
                    // One sample alone makes no axis.
                    if one.recording.samples.len() > 1 {
                        series.push(drawn(&file_of));
                    }
                    files.push(file_of);
                }
            }
        }
        let bars = File {
            name: format!("{base}.bars.dat"),
            text: bars(&matrix, row),
        };
        if !histograms.is_empty() {
            let text = script::bars(&base, row, &bars.name);
            let name = format!("{base}.bars.gp");
            files.extend([bars, File { name, text }]);
            let text = script::histogram(&base, row, &histograms);
            let name = format!("{base}.hist.gp");
            files.push(File { name, text });
        }
        if !series.is_empty() {
            let text = script::series(&base, row, &series);
            let name = format!("{base}.series.gp");
            files.push(File { name, text });
        }
    }
    files
}

/// Names that every file system takes, each given once.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn new_one(&mut self, parts: &[&str]) -> String {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        };
        let parts = parts.iter().filter(|part| !part.is_empty());
        let parts: Vec<String> = parts
            .map(|part| part.chars().map(plain).collect())
            .collect();
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

/// Every value with how often it occurred: exactly where all samples of a signed recording
/// were kept, else by bin.
fn histogram(one: &Measured<'_>, row: &Measurement) -> String {
    let recording = one.recording;
    let mut text = header::of(one);
    if row.view().shape == Shape::Jitter && recording.is_complete() {
        text.push_str("# low_ns high_ns count\n");
        for (value, count) in exact(recording) {
            writeln!(text, "{value} {value} {count}").expect("memory can be written");
        }
        return text;
    }
    let (over, below) = (
        recording.histogram.overflow(),
        recording.histogram.negative(),
    );
    if over + below > 0 {
        writeln!(
            text,
            "# not among the bins: {below} samples below zero, {over} past the last bin"
        )
        .expect("memory can be written");
    }
    text.push_str("# low_ns high_ns count\n");
    for bin in recording.histogram.bins() {
        writeln!(text, "{} {} {}", bin.low.0, bin.high.0, bin.count)
            .expect("memory can be written");
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
        writeln!(
            text,
            "# the first {kept} of {count} samples: the others were counted, not kept"
        )
        .expect("memory can be written");
    }
    text.push_str("# sequence time_ns value_ns\n");
    for sample in recording.samples.iter() {
        writeln!(text, "{} {} {}", sample.seq, sample.at.0, sample.value.0)
            .expect("memory can be written");
    }
    text
}

/// A line for each subject; `-` where there is no figure.
fn bars(matrix: &Matrix<'_>, row: &Measurement) -> String {
    let mut text = format!("# {}\n", header::plain(&row.title()));
    for column in &matrix.columns {
        for run in &column.runs {
            text.push_str(&header::run(run));
        }
    }
    text.push_str("# times in nanoseconds; - where nothing was measured\n");
    text.push_str("# subject min mean median max count\n");
    for column in &matrix.columns {
        let stats = Stats::of(&column.found(row));
        let number = |time: Option<punctual_model::Nanos>| {
            time.map_or_else(|| "-".to_owned(), |time| time.0.to_string())
        };
        writeln!(
            text,
            "\"{}\" {} {} {} {} {}",
            header::plain(&column.name).replace('"', "'"),
            number(stats.extremes.map(|(min, _)| min)),
            number(stats.mean),
            number(stats.median()),
            number(stats.worst()),
            stats.count
        )
        .expect("memory can be written");
    }
    text
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs as tables for other programs: RFC 4180, times in whole nanoseconds.
//! A field is empty if nothing is known of it.

use std::io::{self, Write};
use std::iter;

use punctual_model::histogram::{Bin, Histogram};
use punctual_model::{Nanos, Quantiles, Recording, Run, Sample};
use serde_json::Value;

use crate::arrivals::Watched;
use crate::matrix::Measured;
use crate::stats::{known_samples, supports};
use crate::text::clean;

/// The first columns of both tables.
const KEY: &str = "run,subject,seed,probe,load,variant,repetition";

/// The quantiles of [`write_figures_csv`], with the names of their columns.
const QUANTILES: [(&str, f64); 4] = [
    ("median_ns", 0.5),
    ("p99_ns", 0.99),
    ("p99.9_ns", 0.999),
    ("p99.99_ns", 0.9999),
];

/// Writes a line for each recording of the runs, with its figures.
///
/// # Errors
///
/// Fails if the writer does.
pub fn write_figures_csv(runs: &[Run], out: &mut dyn Write) -> io::Result<()> {
    let quantiles = QUANTILES.map(|(name, _)| name).join(",");
    writeln!(
        out,
        "{KEY},count,missed,min_ns,mean_ns,{quantiles},max_ns,arrival_ns,reached_ns,digest"
    )?;
    for (run, recording) in recordings(runs) {
        let all = Quantiles::of(iter::once(recording));
        let quantile = |q| supports(recording.count, q).then(|| all.at(q)).flatten();
        let missed = recording.missed_periods();
        write!(out, "{},{}", key(run, recording), recording.count)?;
        write!(
            out,
            ",{}",
            missed.map(|n| n.to_string()).unwrap_or_default()
        )?;
        write!(out, ",{},{}", ns(recording.min()), ns(recording.mean()))?;
        for (_, q) in QUANTILES {
            write!(out, ",{}", ns(quantile(q)))?;
        }
        let digest = run.digest().unwrap_or_default();
        let watched = Watched::of(&[Measured { run, recording }]);
        let (worst, reached) = (ns(watched.worst()), ns(watched.reached()));
        writeln!(out, ",{},{worst},{reached},{digest}", ns(recording.max()))?;
    }
    Ok(())
}

/// Writes a line for each sample of the runs.
/// If not all samples of a recording were kept, the others come in the bins of its histogram. These
/// have no moment, but their two edges and their count.
///
/// # Errors
///
/// Fails if the writer does.
pub fn write_samples_csv(runs: &[Run], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{KEY},at_ns,low_ns,high_ns,count")?;
    for (run, recording) in recordings(runs) {
        let key = key(run, recording);
        let mut sample = |one: &Sample| writeln!(out, "{key},{},{1},{1},1", one.at.0, one.value.0);
        if recording.is_complete() {
            recording.samples.iter().try_for_each(|one| sample(&one))?;
            continue;
        }
        let known = known_samples(recording);
        let all = Counted::of(&recording.histogram);
        // No sample is written twice: if it is not known which bins have these, all are in bins.
        let rest = if let Some(rest) = all.without(&known) {
            known.iter().try_for_each(sample)?;
            rest
        } else {
            Counted::of(&recording.histogram)
        };
        // Without an edge on the side on which the histogram ends.
        if rest.below > 0 {
            writeln!(out, "{key},,,-1,{}", rest.below)?;
        }
        for bin in rest.bins {
            writeln!(out, "{key},,{},{},{}", bin.low.0, bin.high.0, bin.count)?;
        }
        if rest.above > 0 {
            writeln!(out, "{key},,,,{}", rest.above)?;
        }
    }
    Ok(())
}

/// The counts of a histogram.
struct Counted {
    /// The number of samples below zero.
    below: u64,
    bins: Vec<Bin>,
    /// The number of samples beyond the last bin.
    above: u64,
}

impl Counted {
    fn of(histogram: &Histogram) -> Self {
        Self {
            below: histogram.negative(),
            bins: histogram.bins().collect(),
            above: histogram.overflow(),
        }
    }

    /// The same without some samples; `None` if one of them was not counted, or in a bin with edges
    /// of its own.
    fn without(mut self, samples: &[Sample]) -> Option<Self> {
        let mut counted = Histogram::new();
        for sample in samples {
            counted.record(sample.value);
        }
        self.below = self.below.checked_sub(counted.negative())?;
        self.above = self.above.checked_sub(counted.overflow())?;
        // Both begin with the lowest.
        let mut bins = self.bins.iter_mut();
        for own in counted.own() {
            let bin = bins.find(|bin| (bin.low, bin.high) == (own.low, own.high))?;
            bin.count = bin.count.checked_sub(own.count)?;
        }
        self.bins.retain(|bin| bin.count > 0);
        Some(self)
    }
}

fn recordings(runs: &[Run]) -> impl Iterator<Item = (&Run, &Recording)> {
    let of = |run| iter::repeat(run);
    runs.iter()
        .flat_map(move |run| of(run).zip(&run.recordings))
}

fn key(run: &Run, recording: &Recording) -> String {
    let key = &recording.key;
    let words = [&run.id, &run.subject.name]
        .map(|word| quoted(word))
        .join(",");
    // In real time there is none.
    let seed = run
        .clock()
        .map(|_| run.seed.to_string())
        .unwrap_or_default();
    let [probe, load, variant] = [&key.probe, &key.load, &key.variant].map(|word| quoted(word));
    format!("{words},{seed},{probe},{load},{variant},{}", key.repetition)
}

fn ns(time: Option<Nanos>) -> String {
    time.map(|time| time.0.to_string()).unwrap_or_default()
}

/// Returns rows of a result's JSON as a table: RFC 4180.
/// `path` leads from list to list, with a dot between a thing and its part. Each element of the
/// last list is a row, which begins with the words and numbers of all that contains the element. An
/// object without such a list, or with an empty one, is a row by itself. Columns are named by the
/// path to them.
pub fn rows_csv(result: &Value, path: &str) -> String {
    let steps: Vec<&str> = path.split('.').collect();
    let mut columns: Vec<String> = Vec::new();
    let mut rows: Vec<Vec<(String, String)>> = Vec::new();
    add_rows(result, "", &steps, &[], &mut rows);
    // An empty list has no row.
    rows.retain(|row| {
        let mut told = row.iter();
        told.any(|(name, text)| name != "schema" && !text.is_empty())
    });
    if rows.is_empty() {
        return String::new();
    }
    for (column, _) in rows.iter().flatten() {
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    }
    // What is a thing with parts in one row is nothing in another.
    let has_parts = |column: &String, all: &[String]| {
        let begin = format!("{column}.");
        all.iter().any(|other| other.starts_with(&begin))
    };
    let all = columns.clone();
    columns.retain(|column| !has_parts(column, &all));
    let cell = |row: &[(String, String)], column: &String| {
        let found = row.iter().find(|(own, _)| own == column);
        quoted(found.map_or("", |(_, text)| text))
    };
    let head = columns.iter().map(|column| quoted(column));
    let mut lines = vec![head.collect::<Vec<_>>().join(",")];
    for row in &rows {
        let cells = columns.iter().map(|column| cell(row, column));
        lines.push(cells.collect::<Vec<_>>().join(","));
    }
    lines.join("\n") + "\n"
}

/// Adds the rows of an object.
/// `name` is the path to it, `before` the cells of everything around it.
fn add_rows(
    object: &Value,
    name: &str,
    steps: &[&str],
    before: &[(String, String)],
    rows: &mut Vec<Vec<(String, String)>>,
) {
    let mut cells = before.to_vec();
    add_cells(object, name, &mut cells);
    // To the next list, which may be within a part of this.
    let mut place = object;
    let mut to = name.to_owned();
    for (number, step) in steps.iter().enumerate() {
        place = &place[step];
        to = joined(&to, step);
        if let Some(elements) = place.as_array().filter(|all| !all.is_empty()) {
            for element in elements {
                add_rows(element, &to, &steps[number + 1..], &cells, rows);
            }
            return;
        }
    }
    rows.push(cells);
}

/// The words and numbers of an object and its parts; lists of words as one.
fn add_cells(object: &Value, name: &str, cells: &mut Vec<(String, String)>) {
    for (key, value) in object.as_object().into_iter().flatten() {
        let name = joined(name, key);
        match value {
            Value::Object(_) => add_cells(value, &name, cells),
            Value::Array(all) if all.iter().any(|one| one.is_object() || one.is_array()) => {}
            Value::Array(all) => {
                let words: Vec<String> = all.iter().map(word).collect();
                cells.push((name, words.join(" ")));
            }
            _ => cells.push((name, word(value))),
        }
    }
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn joined(path: &str, step: &str) -> String {
    if path.is_empty() {
        step.to_owned()
    } else {
        format!("{path}.{step}")
    }
}

/// A field of a table.
/// It is quoted if it holds a separator, and has no characters that command a terminal.
pub fn quoted(word: &str) -> String {
    let word = clean(word);
    if word.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", word.replace('"', "\"\""));
    }
    word
}

/// A number, or nothing.
pub fn field(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn lines(
        write: impl Fn(&[Run], &mut dyn Write) -> io::Result<()>,
        runs: &[Run],
    ) -> Vec<String> {
        let mut out = Vec::new();
        write(runs, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn rows_have_what_they_are_in_and_nothing_is_left_out_for_want_of_a_list() {
        let result = serde_json::json!({
            "run": "r1",
            "samples": [
                { "seq": 7, "story": { "says": "a, b", "parts": [{ "ns": 1 }, { "ns": 2 }] } },
                { "seq": 8, "story": null, "cpus": [0, 1] },
                { "seq": 9, "story": { "says": "c", "parts": [] } },
            ],
        });
        let found = rows_csv(&result, "samples.story.parts");
        let expected = "run,samples.seq,samples.story.says,samples.story.parts.ns,\
            samples.cpus\n\
            r1,7,\"a, b\",1,\n\
            r1,7,\"a, b\",2,\n\
            r1,8,,,0 1\n\
            r1,9,c,,\n";
        assert_eq!(found, expected);
        let none = rows_csv(&serde_json::json!({ "run": "r1", "places": [] }), "places");
        assert_eq!(none, "places,run\n,r1\n");
    }

    #[test]
    fn a_line_for_each_recording_with_nothing_where_nothing_is_known() {
        let run = fixtures::run("rt", 1);
        let digest = run.digest().unwrap();
        let lines = lines(write_figures_csv, std::slice::from_ref(&run));
        assert_eq!(lines.len(), 1 + run.recordings.len());
        let (names, stress) = (lines[0].split(','), lines[2].split(','));
        let stress: Vec<(&str, &str)> = names.zip(stress).collect();
        let value = |name| stress.iter().find(|(one, _)| *one == name).unwrap().1;
        assert_eq!(["run", "seed", "load"].map(value), ["rt-1", "1", "stress"]);
        assert_eq!(value("max_ns"), "8070");
        assert_eq!(value("digest"), digest);
        assert!(value("p99.9_ns").parse::<i64>().is_ok());
        // Ten samples say nothing of one in ten thousand.
        assert!(lines[3].contains(",,"), "{}", lines[3]);
    }

    #[test]
    fn a_line_for_each_sample_or_for_each_bin() {
        let whole = fixtures::run("rt", 1);
        let kept = lines(write_samples_csv, std::slice::from_ref(&whole));
        let count: u64 = whole.recordings.iter().map(|one| one.count).sum();
        assert_eq!(kept.len() as u64, 1 + count);
        let counted = lines(write_samples_csv, &[fixtures::run_without_samples("rt", 1)]);
        assert!(counted.len() < kept.len());
        let in_bins = counted[1..].iter();
        let in_bins = in_bins.map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap());
        assert_eq!(in_bins.sum::<u64>(), count);
    }

    #[test]
    fn of_what_was_not_kept_the_worst_are_samples_and_the_others_are_in_bins() {
        let mut recorder = punctual_model::Recorder::new(40);
        for seq in 0..50 {
            let value = match seq {
                0..40 => 5_000 + seq,
                45 => 900_000,
                46 => -3,
                _ => 4_000,
            };
            recorder.record(Nanos(seq * 1_000), Nanos(value));
        }
        let key = punctual_model::RecordingKey::new("timer", "idle", "cpu0");
        let mut run = fixtures::run_with(vec![recorder.finish(key)]);
        let found = lines(write_samples_csv, std::slice::from_ref(&run));
        let begin = "rt-1,rt,1,timer,idle,cpu0,1,";
        let found: Vec<&str> = found[1..]
            .iter()
            .map(|line| line.strip_prefix(begin).unwrap())
            .collect();
        assert_eq!(found.len(), 40 + 1 + 2, "{found:?}");
        assert_eq!(found[0], "0,5000,5000,1");
        assert_eq!(found[39], "39000,5039,5039,1");
        assert_eq!(found[40], "45000,900000,900000,1");
        assert_eq!(found[41..], [",,-1,1", ",4000,4001,8"]);
        // Nobody knows in which of another program's bins the kept ones are.
        let mut foreign = Histogram::new();
        foreign.record_between(Nanos(1_000), Nanos(999_999), 50);
        run.recordings[0].histogram = foreign;
        let found = lines(write_samples_csv, &[run]);
        assert_eq!(found[1..], [format!("{begin},1000,999999,50")]);
    }

    #[test]
    fn a_field_is_one_field_whatever_is_in_it() {
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quoted("\u{1b}[2Ja"), " [2Ja");
    }
}

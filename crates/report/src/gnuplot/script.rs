// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scripts that draw the data beside them: `gnuplot NAME.gp` writes `NAME.svg`.

use std::fmt::Write as _;

use crate::matrix::Measurement;
use crate::text::clean;
use punctual_model::probe::Shape;

/// A file of data, and the name of its line.
pub struct Drawn {
    /// The file's name.
    pub file: String,
    /// The subject.
    pub title: String,
    /// True if each of its values is above zero, as a logarithmic scale wants it.
    pub is_positive: bool,
}

/// Returns true if the values of all lines have a place on a logarithmic scale.
fn is_logarithmic(row: &Measurement, drawn: &[Drawn]) -> bool {
    row.view().shape != Shape::Jitter && drawn.iter().all(|one| one.is_positive)
}

/// Draws the frequency of each value.
pub fn histogram(base: &str, row: &Measurement, drawn: &[Drawn]) -> String {
    let mut text = head(&format!("{base}.hist"), row);
    text.push_str("set xlabel 'µs'\nset ylabel 'samples'\nset logscale y\nset yrange [0.5:*]\n");
    if is_logarithmic(row, drawn) {
        text.push_str("set logscale x\n");
    }
    text.push_str(&plot(drawn, "using ($1/1e3):3 with impulses lw 2"));
    text
}

/// Each sample at its time; jitter by its number.
pub fn series(base: &str, row: &Measurement, drawn: &[Drawn]) -> String {
    let mut text = head(&format!("{base}.series"), row);
    text.push_str("set ylabel 'µs'\n");
    let what = if row.view().shape == Shape::Jitter {
        text.push_str("set xlabel 'sample'\nset xzeroaxis\n");
        "using 1:($3/1e3) with dots"
    } else {
        text.push_str("set xlabel 's'\n");
        "using ($2/1e9):($3/1e3) with points pt 7 ps 0.2"
    };
    if is_logarithmic(row, drawn) {
        text.push_str("set logscale y\n");
    }
    text.push_str(&plot(drawn, what));
    text
}

/// The mean and the largest value of each subject.
pub fn bars(base: &str, row: &Measurement, file: &str) -> String {
    let mut text = head(&format!("{base}.bars"), row);
    text.push_str(
        "set ylabel 'µs'\nset yrange [0:*]\nset style data histogram\nset style histogram clustered\n\
         set style fill solid 0.8\nset datafile missing '-'\n",
    );
    let file = quoted(file);
    let _ = writeln!(
        text,
        "plot {file} using ($3/1e3):xtic(1) title 'mean', {file} using ($5/1e3) title 'max'"
    );
    text
}

fn head(base: &str, row: &Measurement) -> String {
    let title = quoted(&clean(&row.title()));
    let output = quoted(&format!("{base}.svg"));
    format!(
        "# gnuplot {base}.gp\nreset\nset encoding utf8\n\
         set terminal svg size 960,540 noenhanced background rgb 'white'\n\
         set output {output}\nset title {title}\nset key outside right\nset grid\n"
    )
}

fn plot(drawn: &[Drawn], how: &str) -> String {
    let part = |one: &Drawn| {
        let (file, title) = (quoted(&one.file), quoted(&clean(&one.title)));
        format!("{file} {how} title {title}")
    };
    let parts: Vec<String> = drawn.iter().map(part).collect();
    format!("plot {}\n", parts.join(", \\\n     "))
}

/// In single quotes nothing has a meaning but the quote itself.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

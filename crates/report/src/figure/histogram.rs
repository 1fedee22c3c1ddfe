//! How often each latency occurred: both scales logarithmic, one stepped line per subject.

use std::collections::BTreeMap;

use plotters::prelude::Color as _;
use plotters::style::text_anchor::{HPos, VPos};
use punctual_model::units::Nanos;

use super::axis::{Axis, Plot, drawable, number_name, time_name};
use super::canvas::{Area, Drawn, LEGEND, WIDTH, colour, drawing, line, marker, write};
use super::{Figure, Kind, Series, series, without};
use crate::matrix::{Matrix, Measurement};
use crate::stats::{Stats, thousands};

const HEIGHT: i32 = 620;
/// Steps per factor of ten; fine enough to see modes, wide enough to have samples.
const STEPS: f64 = 24.0;
/// Where lines go between steps that have samples: below one sample.
const FLOOR: f64 = 0.6;

/// A subject's counts by step.
struct Counts {
    steps: BTreeMap<i32, u64>,
    /// Samples that a logarithmic scale has no place for, and those past the last bin.
    outside: u64,
}

/// The figure; `None` where there is nothing to draw.
pub fn histogram(matrix: &Matrix<'_>, row: &Measurement) -> Option<Figure> {
    let series = series(matrix, row);
    let counts: Vec<Counts> = series.iter().map(count).collect();
    let steps = || counts.iter().flat_map(|counts| counts.steps.iter());
    let (first, last) = (
        steps().map(|(step, _)| *step).min()?,
        steps().map(|(step, _)| *step).max()?,
    );
    let most = steps().map(|(_, count)| *count).max()?;
    let plot = Plot {
        x: Axis::logarithmic(edge(first), edge(last + 1), (120, WIDTH - LEGEND)),
        y: Axis::logarithmic(FLOOR, most as f64, (HEIGHT - 90, 50)),
    };
    let svg = drawing(HEIGHT, |area| draw(area, &plot, &series, &counts));
    let mut caption =
        vec!["Both scales are logarithmic. A sign marks each subject's worst sample.".to_owned()];
    for (series, counts) in series
        .iter()
        .zip(&counts)
        .filter(|(_, counts)| counts.outside > 0)
    {
        caption.push(format!(
            "Samples of {} at or below zero, or past the last bin, are not drawn: {}.",
            series.name,
            thousands(counts.outside)
        ));
    }
    caption.extend(without(matrix, &series));
    Some(Figure::new(Kind::Histogram, row, caption.join(" "), &svg))
}

fn count(series: &Series<'_>) -> Counts {
    let mut counts = Counts {
        steps: BTreeMap::new(),
        outside: 0,
    };
    for histogram in series.found.iter().map(|one| &one.recording.histogram) {
        counts.outside += histogram.overflow() + histogram.negative();
        for bin in histogram.bins() {
            match drawable(bin.low) {
                Some(value) => *counts.steps.entry(step(value)).or_default() += bin.count,
                None => counts.outside += bin.count,
            }
        }
    }
    counts
}

fn step(value: f64) -> i32 {
    (value.log10() * STEPS).floor() as i32
}

/// Where a step begins.
fn edge(step: i32) -> f64 {
    10_f64.powf(f64::from(step) / STEPS)
}

fn draw(area: &Area<'_>, plot: &Plot, series: &[Series<'_>], counts: &[Counts]) -> Drawn {
    write(area, "samples", (108, 14), HPos::Right, VPos::Top)?;
    plot.draw_y(area, |value| {
        if value < 1.0 {
            String::new()
        } else {
            thousands_name(value)
        }
    })?;
    plot.draw_x(area, time_name)?;
    plot.title_x(area, "latency")?;
    for (series, counts) in series.iter().zip(counts) {
        line(
            area,
            outline(plot, counts),
            colour(series.column).stroke_width(3),
        )?;
    }
    // Signs come last, so that no line runs over them.
    for (number, series) in (0..).zip(series) {
        let worst = Stats::of(&series.found).worst();
        if let Some(value) = worst.and_then(drawable) {
            marker(area, series.column, plot.place(value, 1.0))?;
        }
        legend(area, series, worst, 70 + number * 84)?;
    }
    Ok(())
}

fn thousands_name(value: f64) -> String {
    if value >= 1_000.0 {
        thousands(value.round() as u64)
    } else {
        number_name(value)
    }
}

/// The stepped line, down to the floor wherever there are no samples.
fn outline(plot: &Plot, counts: &Counts) -> Vec<(i32, i32)> {
    let mut points = Vec::new();
    let mut next = None;
    for (step, count) in &counts.steps {
        if next != Some(*step) {
            points.extend(next.map(|end| plot.place(edge(end), FLOOR)));
            points.push(plot.place(edge(*step), FLOOR));
        }
        points.push(plot.place(edge(*step), *count as f64));
        points.push(plot.place(edge(step + 1), *count as f64));
        next = Some(step + 1);
    }
    points.extend(next.map(|end| plot.place(edge(end), FLOOR)));
    points
}

/// A line as it is drawn, the subject's sign and name, its worst case below.
fn legend(area: &Area<'_>, series: &Series<'_>, worst: Option<Nanos>, y: i32) -> Drawn {
    let left = WIDTH - LEGEND + 30;
    let style = colour(series.column).stroke_width(4);
    line(area, vec![(left, y), (left + 60, y)], style)?;
    marker(area, series.column, (left + 30, y))?;
    write(area, &series.name, (left + 74, y), HPos::Left, VPos::Center)?;
    let worst = worst.map_or_else(String::new, |worst| format!("worst {worst}"));
    write(area, &worst, (left + 74, y + 32), HPos::Left, VPos::Center)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn no_sample_is_lost_between_bins_and_steps() {
        let runs = fixtures::seeds(3);
        let matrix = Matrix::new(&runs);
        for one in series(&matrix, &matrix.rows[1]) {
            let counts = count(&one);
            let drawn: u64 = counts.steps.values().sum();
            assert_eq!(drawn + counts.outside, 3 * fixtures::SAMPLES);
        }
    }

    #[test]
    fn each_subject_has_its_line_and_its_worst_case() {
        let runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        let figure = histogram(&matrix, &matrix.rows[1]).unwrap();
        for text in [
            "none",
            "voluntary",
            "full",
            "rt",
            "worst 8.07 µs",
            "worst 508 µs",
            "100 µs",
        ] {
            assert!(figure.inline().contains(&format!("\n{text}\n")), "{text}");
        }
        assert_eq!(figure.inline().matches("stroke-dasharray").count(), 2 * 3);
    }
}

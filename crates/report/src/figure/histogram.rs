// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frequency of each latency: both scales logarithmic, one stepped line per subject.

use std::collections::BTreeMap;

use super::axis::{Axis, Plot, count_name, drawable, time_name};
use super::canvas::{Anchor, Canvas, Ink, LEFT, RIGHT};
use super::{
    Edge, Figure, Key, Kind, Series, at_edges, is_drawn, is_placed, not_placed, of_limits, series,
    with_limits, without,
};
use crate::matrix::{Matrix, Measurement};
use crate::text::thousands;

const HEIGHT: i32 = 300;
/// The place of the highest count.
const TOP: i32 = 26;
/// Steps per factor of ten; fine enough to see modes, wide enough to have samples.
const STEPS: f64 = 24.0;
/// The lower edge: below one sample.
const FLOOR: f64 = 0.7;

/// A subject's counts by step.
#[derive(Default)]
struct StepCounts {
    steps: BTreeMap<i32, u64>,
    /// Samples without a place on a logarithmic scale, and those past the last bin.
    outside: u64,
}

/// The figure; `None` where there are too few samples to draw.
pub fn histogram(matrix: &Matrix<'_>, row: &Measurement) -> Option<Figure> {
    let drawn = series(matrix, row).into_iter().filter(is_drawn);
    let (mut series, others): (Vec<Series<'_>>, Vec<_>) = drawn.partition(is_placed);
    let counts: Vec<StepCounts> = series.iter().map(count).collect();
    let steps = || counts.iter().flat_map(|counts| counts.steps.iter());
    let numbers = || steps().map(|(step, _)| *step);
    let (first, end) = (numbers().min()?, numbers().max()? + 1);
    let most = steps().map(|(_, count)| *count).max()?;
    let bounds = matrix.bounds(row);
    let (least, highest) = with_limits((edge(first), edge(end)), &bounds);
    let plot = Plot {
        x: Axis::logarithmic(least, highest, (LEFT, RIGHT)),
        y: Axis::logarithmic(FLOOR, most as f64, (HEIGHT - 50, TOP)),
    };
    let mut canvas = Canvas::new(HEIGHT);
    canvas.write("samples", (LEFT - 8, 9), Anchor::End);
    plot.draw_y(&mut canvas, count_name);
    plot.draw_x(&mut canvas, time_name);
    plot.title_x(&mut canvas, "latency");
    plot.draw_limits(&mut canvas, &bounds, TOP, true);
    for (series, counts) in series.iter().zip(&counts) {
        for outline in outlines(&plot, counts) {
            canvas.line(&outline, Ink::Column(series.column), 2.0);
        }
    }
    let mut caption = vec!["Steps without samples are left out.".to_owned()];
    caption.extend(of_limits(&bounds));
    let mut keys = Vec::new();
    for (series, counts) in series.iter().zip(&counts) {
        let (name, outside) = (&series.name, thousands(counts.outside));
        if counts.outside > 0 {
            caption.push(format!(
                "Samples of {name} at or below zero, or past the last bin, are not drawn: {outside}."
            ));
        }
        let counted = format!("{name}, n = {}", thousands(series.count()));
        keys.push(Key::of(series.column, counted));
    }
    caption.extend(at_edges(&series, Edge::Lower));
    caption.extend(not_placed(&others));
    series.extend(others);
    caption.extend(without(matrix, &series));
    Some(Figure::new(Kind::Histogram, row, keys, &caption, canvas))
}

fn count(series: &Series<'_>) -> StepCounts {
    let mut counts = StepCounts::default();
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

/// Returns the beginning of a step.
fn edge(step: i32) -> f64 {
    10_f64.powf(f64::from(step) / STEPS)
}

/// A stepped line for each stretch of steps that have samples.
fn outlines(plot: &Plot, counts: &StepCounts) -> Vec<Vec<(i32, i32)>> {
    let mut lines: Vec<Vec<(i32, i32)>> = Vec::new();
    let mut next = None;
    for (step, count) in &counts.steps {
        if next != Some(*step) {
            lines.push(Vec::new());
        }
        let ends = [edge(*step), edge(step + 1)];
        let line = lines.last_mut().into_iter();
        line.for_each(|line| line.extend(ends.map(|x| plot.place(x, *count as f64))));
        next = Some(step + 1);
    }
    lines
}

#[cfg(test)]
mod tests {
    use punctual_model::Nanos;

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
    fn samples_in_wide_bins_have_no_line_and_the_caption_says_so() {
        let mut runs = fixtures::whole();
        let wide = fixtures::in_a_wide_bin(&runs[3].recordings[1]);
        runs[3].recordings[1] = wide;
        let matrix = Matrix::new(&runs);
        let figure = histogram(&matrix, &matrix.rows[1]).unwrap();
        assert_eq!(figure.keys.len(), 3);
        let told = "Not drawn, because their distribution is known only in part: rt.";
        assert!(figure.caption.ends_with(told), "{}", figure.caption);
        let matrix = Matrix::new(&runs[3..]);
        assert!(histogram(&matrix, &matrix.rows[1]).is_none());
        // A few beyond a program's last bin hide nothing of the others.
        let few = &mut runs[2].recordings[1];
        few.histogram
            .record_between(Nanos(1_000), Nanos(900_000), 19);
        few.count += 19;
        let matrix = Matrix::new(&runs[2..3]);
        let caption = histogram(&matrix, &matrix.rows[1]).unwrap().caption;
        let told = "Samples in wide bins are drawn at the lower edge: 19.";
        assert!(caption.ends_with(told), "{caption}");
    }

    #[test]
    fn nothing_is_drawn_where_there_is_no_sample() {
        let steps = BTreeMap::from([(24, 5), (25, 3), (40, 1)]);
        let counts = StepCounts { steps, outside: 0 };
        let plot = Plot {
            x: Axis::logarithmic(1.0, 1_000.0, (0, 1_000)),
            y: Axis::logarithmic(FLOOR, 10.0, (1_000, 0)),
        };
        let lines = outlines(&plot, &counts);
        assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [4, 2]);
        let floor = plot.y.place(FLOOR);
        assert!(lines.iter().flatten().all(|(_, y)| *y < floor), "{lines:?}");
    }
}

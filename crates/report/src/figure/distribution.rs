// SPDX-License-Identifier: MIT OR Apache-2.0
//! The share of samples at least so late: both scales logarithmic, one line per subject.

use punctual_model::units::Nanos;

use super::axis::{Axis, Plot, drawable, extent, share_name, time_name};
use super::canvas::{Anchor, Canvas, Ink, LEFT, RIGHT};
use super::{
    Edge, Figure, Key, Kind, Series, at_edges, has_tail, is_drawn, not_placed, of_limits, series,
    with_limits, without,
};
use crate::matrix::{Matrix, Measured, Measurement};
use crate::stats::Stats;
use crate::text::thousands;
use punctual_model::probe::Shape;

const HEIGHT: i32 = 320;
/// The place of the share of all samples.
const TOP: i32 = 26;
/// Values so many times smaller than the largest lie on the left edge.
const REACH: f64 = 20_000.0;

/// A subject's values: the number of samples that have each, rising.
struct Tail {
    values: Vec<(Nanos, u64)>,
    /// Those past the last bin.
    overflow: u64,
}

/// The figure; `None` where there are too few samples to draw.
pub fn distribution(matrix: &Matrix<'_>, row: &Measurement) -> Option<Figure> {
    let signed = row.view().shape == Shape::Jitter;
    let (mut all, mut tails) = (Vec::new(), Vec::new());
    let drawn = series(matrix, row).into_iter().filter(is_drawn);
    let (placed, others): (Vec<_>, Vec<_>) = drawn.partition(has_tail);
    for one in placed {
        let found = &one.found;
        tails.push(if signed {
            distances(found)?
        } else {
            values(found)
        });
        all.push(one);
    }
    let points = tails.iter().flat_map(|tail| &tail.values);
    let most = tails.iter().map(Tail::count).max()?;
    let (least, highest) = extent(points.filter_map(|(value, _)| drawable(*value)))?;
    let bounds = matrix.bounds(row);
    let (least, highest) = with_limits((least.max(highest / REACH), highest), &bounds);
    let plot = Plot {
        x: Axis::logarithmic(least, highest, (LEFT, RIGHT)),
        y: Axis::logarithmic(1.0 / most as f64, 1.0, (HEIGHT - 50, TOP)),
    };
    let mut canvas = Canvas::new(HEIGHT);
    let what = if signed { "distance" } else { "latency" };
    draw(&mut canvas, &plot, &all, &tails, what);
    plot.draw_limits(&mut canvas, &bounds, TOP, true);
    let mut caption = vec![if signed {
        "Which share of the intervals was at least so far from the nominal one, to either side. \
         A sign marks the farthest."
            .to_owned()
    } else {
        "Which share of the samples took at least so long. A sign marks the worst.".to_owned()
    }];
    caption.extend(of_limits(&bounds));
    let outside: u64 = tails.iter().map(Tail::outside).sum();
    if outside > 0 {
        let outside = thousands(outside);
        caption.push(format!(
            "Samples at or below zero, or past the last bin, are counted and have no place: {outside}."
        ));
    }
    let keys = all.iter().zip(&tails).map(|(one, tail)| key(one, tail));
    let keys = keys.collect();
    caption.extend(at_edges(&all, Edge::Upper));
    caption.extend(not_placed(&others));
    all.extend(others);
    caption.extend(without(matrix, &all));
    Some(Figure::new(Kind::Distribution, row, keys, &caption, canvas))
}

fn key(series: &Series<'_>, tail: &Tail) -> Key {
    let worst = tail.values.last().map_or(Nanos::ZERO, |(worst, _)| *worst);
    let exact = Stats::of(&series.found).worst();
    let worst = exact.map_or(worst, |exact| worst.max(exact));
    let text = format!("{}: {worst}, n = {}", series.name, thousands(tail.count()));
    Key::of(series.column, text)
}

impl Tail {
    fn count(&self) -> u64 {
        self.values.iter().map(|(_, count)| count).sum::<u64>() + self.overflow
    }

    fn outside(&self) -> u64 {
        let below = self.values.iter().filter(|(value, _)| value.0 <= 0);
        below.map(|(_, count)| count).sum::<u64>() + self.overflow
    }
}

/// The values of the bins; the last one is the worst sample itself.
fn values(found: &[Measured<'_>]) -> Tail {
    let (mut values, mut overflow) = (Vec::new(), 0);
    for recording in found.iter().map(|one| one.recording) {
        overflow += recording.histogram.overflow();
        let below = recording.histogram.negative();
        values.extend((below > 0).then_some((Nanos(-1), below)));
        let worst = recording.max().unwrap_or(Nanos::ZERO);
        let bins = recording.histogram.bins();
        values.extend(bins.map(|bin| (bin.high.min(worst), bin.count)));
    }
    values.sort_unstable();
    Tail { values, overflow }
}

/// Returns the distances of the samples from zero.
/// Returns `None` if not all were kept, for bins lack the sign.
fn distances(found: &[Measured<'_>]) -> Option<Tail> {
    let mut values = Vec::new();
    for recording in found.iter().map(|one| one.recording) {
        if !recording.is_complete() {
            return None;
        }
        let samples = recording.samples.iter();
        values.extend(samples.map(|one| (Nanos(one.value.0.abs()), 1)));
    }
    values.sort_unstable();
    let overflow = 0;
    Some(Tail { values, overflow })
}

fn draw(canvas: &mut Canvas, plot: &Plot, all: &[Series<'_>], tails: &[Tail], what: &str) {
    canvas.write("share", (LEFT - 8, 9), Anchor::End);
    plot.draw_y(canvas, share_name);
    plot.draw_x(canvas, time_name);
    plot.title_x(canvas, what);
    let columns = all.iter().map(|series| series.column);
    let outlines = tails.iter().map(|tail| outline(plot, tail));
    let lines: Vec<_> = columns.zip(outlines).collect();
    for (column, points) in &lines {
        canvas.line(points, Ink::Column(*column), 2.0);
    }
    // Signs come last, so that no line runs over them.
    for (column, points) in &lines {
        if let Some(at) = points.last() {
            canvas.sign(*column, *at);
        }
    }
}

/// Returns the stepped line, which falls at each value by the samples that have it.
/// It ends above the worst sample, at the share of one.
fn outline(plot: &Plot, tail: &Tail) -> Vec<(i32, i32)> {
    let all = tail.count();
    let (mut left, mut points) = (all, Vec::new());
    for (value, count) in &tail.values {
        if let Some(value) = drawable(*value) {
            let share = left as f64 / all as f64;
            // Both ends of the vertical: where it comes from, and where it goes on.
            points.push(plot.place(value, share));
            let rest = left - count;
            if rest > 0 {
                points.push(plot.place(value, rest as f64 / all as f64));
            }
        }
        left -= count;
    }
    points.dedup();
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, assert_has};

    #[test]
    fn no_sample_is_lost_and_the_line_ends_at_the_worst() {
        let runs = fixtures::seeds(3);
        let matrix = Matrix::new(&runs);
        for one in series(&matrix, &matrix.rows[1]) {
            let tail = values(&one.found);
            assert_eq!(tail.count(), 3 * fixtures::SAMPLES);
            let worst = Stats::of(&one.found).worst().unwrap();
            assert_eq!(tail.values.last().unwrap().0, worst);
        }
    }

    #[test]
    fn samples_in_wide_bins_have_no_line_and_the_caption_says_so() {
        let mut runs = fixtures::whole();
        let wide = fixtures::in_a_wide_bin(&runs[3].recordings[1]);
        runs[3].recordings[1] = wide;
        let matrix = Matrix::new(&runs);
        let figure = distribution(&matrix, &matrix.rows[1]).unwrap();
        assert_eq!(figure.keys.len(), 3);
        let told = "Not drawn, because their distribution is known only in part: rt.";
        assert!(figure.caption.ends_with(told), "{}", figure.caption);
        let matrix = Matrix::new(&runs[3..]);
        assert!(distribution(&matrix, &matrix.rows[1]).is_none());
    }

    #[test]
    fn a_wide_bin_far_below_the_worst_does_not_hide_the_tail() {
        let mut runs = fixtures::whole();
        runs[3] = fixtures::run_without_samples("rt", 1);
        let one = &mut runs[3].recordings[1];
        let below = (Nanos(-34), Nanos(99));
        one.histogram.record_between(below.0, below.1, one.count);
        one.count *= 2;
        one.extremes = one.extremes.map(|(_, high)| (below.0, high));
        let matrix = Matrix::new(&runs);
        let figure = distribution(&matrix, &matrix.rows[1]).unwrap();
        assert_eq!(figure.keys.len(), 4, "{}", figure.caption);
    }

    #[test]
    fn a_line_falls_at_each_value_to_the_share_that_is_above_it() {
        let tail = Tail {
            values: vec![(Nanos(10), 90), (Nanos(100), 9), (Nanos(1_000), 1)],
            overflow: 0,
        };
        let plot = Plot {
            x: Axis::linear(0.0, 1_000.0, (0, 100)),
            y: Axis::linear(0.0, 100.0, (100, 0)),
        };
        let ends = [
            (10.0, 1.0),
            (10.0, 0.1),
            (100.0, 0.1),
            (100.0, 0.01),
            (1e3, 0.01),
        ];
        let mut expected = ends.map(|(x, share)| plot.place(x, share)).to_vec();
        expected.dedup();
        assert_eq!(outline(&plot, &tail), expected);
    }

    #[test]
    fn each_subject_has_its_line_its_worst_case_and_its_count() {
        let runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        let figure = distribution(&matrix, &matrix.rows[1]).unwrap();
        let keys: Vec<&str> = figure.keys.iter().map(|key| key.text.as_str()).collect();
        assert_eq!(keys[3], "rt: 8.07 µs, n = 2,000");
        assert_has(&figure.svg.0, &[">100 µs<", ">0.1 %<", ">100 %<"]);
    }
}

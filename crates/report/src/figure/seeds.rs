// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worst case of each seed, which shows how much one run's maximum says.

use super::axis::{Axis, Plot, drawable, extent, time_name};
use super::canvas::{Anchor, Canvas, Ink, WIDTH};
use super::{Figure, Kind, Series, of_limits, series, with_limits, without};
use crate::matrix::{Matrix, Measurement};
use crate::stats::Stats;
use crate::text::span;

const NAMES: i32 = 158;
const FIGURES: i32 = 150;
const ROW: i32 = 30;
const TOP: i32 = 4;
/// Half the length of a seed's stroke.
const STROKE: i32 = 8;

/// The figure; `None` unless some subject ran with several seeds.
pub fn seeds(matrix: &Matrix<'_>, row: &Measurement) -> Option<Figure> {
    let series = series(matrix, row);
    let stats: Vec<Stats> = series.iter().map(|one| Stats::of(&one.found)).collect();
    if stats.iter().all(|stats| stats.worst_by_seed.len() < 2) {
        return None;
    }
    let all = stats.iter().flat_map(|stats| &stats.worst_by_seed);
    let bounds = matrix.bounds(row);
    let extent = extent(all.filter_map(|(_, worst)| drawable(*worst)))?;
    let (low, high) = with_limits(extent, &bounds);
    let bottom = TOP + series.len() as i32 * ROW;
    let plot = Plot {
        x: Axis::logarithmic(low, high, (NAMES, WIDTH - FIGURES)),
        y: Axis::from_zero(series.len() as f64, (bottom, TOP)),
    };
    let mut canvas = Canvas::new(bottom + 28);
    draw(&mut canvas, &plot, &series, &stats);
    plot.draw_limits(&mut canvas, &bounds, TOP, false);
    let mut caption = vec!["The worst sample of each seed: one stroke for each.".to_owned()];
    caption.extend(of_limits(&bounds));
    caption.extend(without(matrix, &series));
    Some(Figure::new(Kind::Seeds, row, Vec::new(), &caption, canvas))
}

fn draw(canvas: &mut Canvas, plot: &Plot, series: &[Series<'_>], stats: &[Stats]) {
    plot.draw_x(canvas, time_name);
    for (number, (series, stats)) in (0..).zip(series.iter().zip(stats)) {
        let y = TOP + number * ROW + ROW / 2;
        let ink = Ink::Column(series.column);
        canvas.write(&series.name, (NAMES - 8, y), Anchor::End);
        // Strokes stay apart where dots would run together.
        let worst = stats.worst_by_seed.iter();
        for worst in worst.filter_map(|(_, worst)| drawable(*worst)) {
            let x = plot.x.place(worst);
            canvas.rectangle((x - 1, y - STROKE), (x + 1, y + STROKE), ink);
        }
        let label = match (stats.worst_range(), stats.worst()) {
            (Some((low, high)), _) => span(low, high),
            (None, Some(worst)) => format!("{worst} (one seed)"),
            (None, None) => String::new(),
        };
        canvas.write(&label, (WIDTH - FIGURES + 14, y), Anchor::Start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn each_seed_has_its_sign() {
        let runs = fixtures::seeds(5);
        let matrix = Matrix::new(&runs);
        let svg = seeds(&matrix, &matrix.rows[1]).unwrap().svg.into_string();
        assert_eq!(svg.matches("<rect").count(), 4 * 5);
        assert!(svg.contains("355–381 µs"));
    }

    #[test]
    fn one_seed_has_no_spread() {
        let runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        assert!(seeds(&matrix, &matrix.rows[1]).is_none());
    }
}

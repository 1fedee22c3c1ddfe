// SPDX-License-Identifier: MIT OR Apache-2.0
//! A length by a number that was halved and doubled.

use maud::Markup;

use super::axis::{Axis, Plot, count_name, extent, time_name};
use super::canvas::{Canvas, Ink, LEFT, RIGHT, TEXT};

const TOP: i32 = 8;
const BOTTOM: i32 = 260;

/// The figure of pairs of a number and a length in nanoseconds, in the order of the numbers.
/// Both scales are logarithmic, so that a linear relation is a diagonal. `None` if there are fewer
/// than two pairs.
pub fn growth(with: &str, lengths: &[(u64, i64)]) -> Option<Markup> {
    let points = lengths.iter().filter(|(number, ns)| *number > 0 && *ns > 0);
    let points: Vec<(f64, f64)> = points
        .map(|(number, ns)| (*number as f64, *ns as f64))
        .collect();
    let (first, last) = extent(points.iter().map(|point| point.0))?;
    let (low, high) = extent(points.iter().map(|point| point.1))?;
    if points.len() < 2 {
        return None;
    }
    let plot = Plot {
        x: Axis::logarithmic(first, last, (LEFT + 10, RIGHT - 10)),
        y: Axis::logarithmic(low, high, (BOTTOM, TOP)),
    };
    let mut canvas = Canvas::new(BOTTOM + 12 + 5 * TEXT / 2);
    plot.draw_y(&mut canvas, time_name);
    plot.draw_x(&mut canvas, count_name);
    plot.title_x(&mut canvas, with);
    let places: Vec<(i32, i32)> = points.iter().map(|(x, y)| plot.place(*x, *y)).collect();
    canvas.line(&places, Ink::Column(0), 2.0);
    for place in places {
        canvas.sign(0, place);
    }
    Some(canvas.finish(&format!("The longest stretch by {with}")))
}

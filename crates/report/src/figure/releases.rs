// SPDX-License-Identifier: MIT OR Apache-2.0
//! A figure release by release: each run, and the levels between changes.

use maud::{Markup, html};

use super::axis::{Axis, Plot, drawable, extent, time_name};
use super::canvas::{Anchor, Canvas, Ink, LEFT, RIGHT, swatch};
use crate::series::{Level, Line, Row};
use crate::text::seconds;

const TOP: i32 = 8;
const BOTTOM: i32 = 300;
/// The most names of releases that have room side by side.
const NAMES: usize = 9;

/// The figure, with a key where it shows several lines; `None` where there is nothing to draw.
/// Each line has the whole width: its first release at the left, its last at the right.
pub fn by_release(lines: &[(&Line, &Row)], is_work: bool) -> Option<Markup> {
    let all = lines
        .iter()
        .flat_map(|(_, row)| row.values.iter().flatten());
    let (low, high) = extent(all.filter_map(|one| drawable(one.value)))?;
    let plot = Plot {
        x: Axis::from_zero(1.0, (LEFT + 10, RIGHT - 10)),
        y: Axis::logarithmic(low, high, (BOTTOM, TOP)),
    };
    let names_of_releases = 22 * lines.len() as i32;
    let mut canvas = Canvas::new(BOTTOM + 12 + names_of_releases);
    let name = |value: f64| {
        if is_work {
            seconds(punctual_model::Nanos(value as i64))
        } else {
            time_name(value)
        }
    };
    plot.draw_y(&mut canvas, name);
    for (number, (line, row)) in lines.iter().enumerate() {
        draw(&mut canvas, &plot, (number, lines.len()), line, row);
    }
    let title = lines.first().map_or(String::new(), |(_, row)| row.title());
    let svg = canvas.finish(&format!("{title}, release by release"));
    Some(html! {
        (svg)
        @if lines.len() > 1 { ul.key { @for (number, (line, _)) in lines.iter().enumerate() {
            li { (swatch(number)) " " (line.name) }
        } } }
    })
}

fn draw(canvas: &mut Canvas, plot: &Plot, (number, all): (usize, usize), line: &Line, row: &Row) {
    let count = row.values.len();
    // Releases of several lines stand a little beside one another.
    let aside = 6 * number as i32 - 3 * (all as i32 - 1);
    let x = |at: usize| {
        let share = (at as f64 + 0.5) / count as f64;
        plot.x.place(share) + aside
    };
    let ink = Ink::Column(number);
    for level in row.levels() {
        let Level {
            releases: (first, last),
            middle,
            ..
        } = level;
        if let Some(middle) = drawable(middle) {
            let y = plot.y.place(middle);
            canvas.line(&[(x(first) - 6, y), (x(last) + 6, y)], ink, 2.0);
        }
    }
    for (at, values) in row.values.iter().enumerate() {
        let values = values.iter().filter_map(|one| drawable(one.value));
        canvas.dots(values.map(|value| (x(at), plot.y.place(value))), ink);
    }
    let step = count.div_ceil(NAMES).max(1);
    let y = BOTTOM + 16 + 22 * number as i32;
    for at in (0..count).step_by(step) {
        canvas.write(
            &line.releases[at].version,
            (x(at) - aside, y),
            Anchor::Middle,
        );
    }
}

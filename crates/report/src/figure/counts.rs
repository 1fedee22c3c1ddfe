// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published histograms and ours in the same steps: counts on a logarithmic scale.

use super::axis::{Axis, Plot, count_name, time_name};
use super::canvas::{Anchor, Canvas, Ink, LEFT, RIGHT};
use super::{Figure, Key, Kind};
use crate::matrix::Measurement;
use crate::published::steps::Counts;

const HEIGHT: i32 = 320;
/// The beginning of lines: below one sample.
const FLOOR: f64 = 0.6;

/// The figure; `None` where nothing was counted.
pub fn counts(row: &Measurement, step: i64, all: &[Counts]) -> Option<Figure> {
    let last = all.iter().filter_map(|one| one.steps.keys().max()).max()?;
    let most = all.iter().flat_map(|one| one.steps.values()).max()?;
    let end = (last + 1) as f64 * step as f64;
    let plot = Plot {
        x: Axis::from_zero(end, (LEFT, RIGHT)),
        y: Axis::logarithmic(FLOOR, *most as f64, (HEIGHT - 50, 26)),
    };
    let mut canvas = Canvas::new(HEIGHT);
    draw(&mut canvas, &plot, step, all);
    let caption = "Published histograms in the colour of text, ours in colours; a mark for each \
        step that has samples. The scale of counts is logarithmic.";
    let keys = all.iter().enumerate().map(|(number, one)| {
        let mut swatch = Canvas::new(16);
        sign(&mut swatch, one, number, (18, 8));
        let (swatch, text) = (swatch.swatch(), one.name.clone());
        Key { swatch, text }
    });
    let (keys, caption) = (keys.collect(), [caption.to_owned()]);
    Some(Figure::new(Kind::Counts, row, keys, &caption, canvas))
}

fn draw(canvas: &mut Canvas, plot: &Plot, step: i64, all: &[Counts]) {
    canvas.write("samples", (LEFT - 8, 9), Anchor::End);
    plot.draw_y(canvas, count_name);
    plot.draw_x(canvas, time_name);
    plot.title_x(canvas, "distance from the nominal interval");
    let width = 1.0 / (all.len() as f64 + 1.0);
    for (number, one) in all.iter().enumerate() {
        let ink = one.column.map_or(Ink::Text, Ink::Column);
        for (at, count) in &one.steps {
            let x = (*at as f64 + width * (number as f64 + 0.75)) * step as f64;
            let (bottom, top) = (plot.place(x, FLOOR), plot.place(x, *count as f64));
            canvas.rectangle((bottom.0 - 1, bottom.1), (top.0 + 1, top.1), ink);
            sign(canvas, one, number, top);
        }
    }
}

/// Published counts have a bar across or a ring, in turn; ours their subject's sign.
fn sign(canvas: &mut Canvas, one: &Counts, number: usize, (x, y): (i32, i32)) {
    match one.column {
        Some(column) => canvas.sign(column, (x, y)),
        None if number % 2 == 0 => canvas.line(&[(x - 6, y), (x + 6, y)], Ink::Text, 3.0),
        None => canvas.ring((x, y), Ink::Text),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_step_that_has_samples_has_a_mark() {
        let counts_of = |name: &str, column, steps: &[(u64, u64)]| Counts {
            name: name.into(),
            column,
            load: String::new(),
            steps: steps.iter().copied().collect::<BTreeMap<_, _>>(),
        };
        let all = [
            counts_of("published: a", None, &[(0, 54_410), (37, 1)]),
            counts_of("rt", Some(0), &[(0, 4_000), (3, 2)]),
        ];
        let row = Measurement {
            probe: "realfeel".into(),
            load: "combined".into(),
            variant: String::new(),
            repetition: 1,
        };
        let figure = counts(&row, 100_000, &all).unwrap();
        assert_eq!(figure.svg.0.matches("<circle").count(), 2);
        assert_eq!(figure.keys[0].text, "published: a");
        assert!(figure.svg.0.contains(">3 ms<"));
        assert!(counts(&row, 100_000, &[]).is_none());
    }
}

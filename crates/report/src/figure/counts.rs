//! Published histograms and ours in the same steps: counts on a logarithmic scale.

use plotters::prelude::{Circle, Color as _};
use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, VPos};

use super::axis::{Axis, Plot, number_name, time_name};
use super::canvas::{Area, Drawn, INK, LEGEND, WIDTH, colour, drawing, line, marker, write};
use super::{Figure, Kind};
use crate::matrix::Measurement;
use crate::published::steps::Counts;
use crate::stats::thousands;

const LEAST: i32 = 560;
/// Where lines begin: below one sample.
const FLOOR: f64 = 0.6;
const LEGEND_ROW: i32 = 44;

/// The figure; `None` where nothing was counted.
pub fn counts(row: &Measurement, step: i64, all: &[Counts]) -> Option<Figure> {
    let last = all.iter().filter_map(|one| one.steps.keys().max()).max()?;
    let most = all.iter().flat_map(|one| one.steps.values()).max()?;
    let height = LEAST.max(90 + all.len() as i32 * LEGEND_ROW);
    let end = (last + 1) as f64 * step as f64;
    // The names of published kernels need more room than a subject's.
    let plot = Plot {
        x: Axis::from_zero(end, (120, WIDTH - LEGEND - 140)),
        y: Axis::logarithmic(FLOOR, *most as f64, (height - 90, 50)),
    };
    let svg = drawing(height, |area| draw(area, &plot, step, all));
    let caption = "Published histograms in the colour of text, ours in colours; a mark for each \
        step that has samples. The scale of counts is logarithmic.";
    Some(Figure::new(Kind::Counts, row, caption.to_owned(), &svg))
}

fn draw(area: &Area<'_>, plot: &Plot, step: i64, all: &[Counts]) -> Drawn {
    write(area, "samples", (108, 14), HPos::Right, VPos::Top)?;
    plot.draw_y(area, |value| match value {
        value if value < 1.0 => String::new(),
        value if value >= 1_000.0 => thousands(value.round() as u64),
        value => number_name(value),
    })?;
    plot.draw_x(area, time_name)?;
    plot.title_x(area, "distance from the nominal interval")?;
    let width = 1.0 / (all.len() as f64 + 1.0);
    for (number, one) in all.iter().enumerate() {
        let ink = paint(one);
        for (at, count) in &one.steps {
            let x = (*at as f64 + width * (number as f64 + 0.75)) * step as f64;
            let (bottom, top) = (plot.place(x, FLOOR), plot.place(x, *count as f64));
            line(area, vec![bottom, top], ink.stroke_width(3))?;
            sign(area, one, number, top)?;
        }
        let (x, y) = (WIDTH - LEGEND - 110, 60 + number as i32 * LEGEND_ROW);
        sign(area, one, number, (x, y))?;
        write(area, &one.name, (x + 22, y), HPos::Left, VPos::Center)?;
    }
    Ok(())
}

fn paint(one: &Counts) -> RGBColor {
    one.column.map_or(INK, colour)
}

/// Published counts have a bar across or a ring, in turn; ours their subject's sign.
fn sign(area: &Area<'_>, one: &Counts, number: usize, (x, y): (i32, i32)) -> Drawn {
    match one.column {
        Some(column) => marker(area, column, (x, y)),
        None if number % 2 == 0 => line(area, vec![(x - 9, y), (x + 9, y)], INK.stroke_width(5)),
        None => Ok(area.draw(&Circle::new((x, y), 8, INK.stroke_width(3)))?),
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
        // Two steps and the legend.
        assert_eq!(figure.inline().matches("<circle").count(), 3);
        assert!(figure.inline().contains("\npublished: a\n"));
        assert!(figure.inline().contains("\n3 ms\n"));
        assert!(counts(&row, 100_000, &[]).is_none());
    }
}

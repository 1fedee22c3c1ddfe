//! The worst case of each seed: how much one run's maximum says.

use plotters::prelude::{Color as _, Rectangle};
use plotters::style::text_anchor::{HPos, VPos};

use super::axis::{Axis, Plot, drawable, time_name};
use super::canvas::{Area, Drawn, LEGEND, WIDTH, colour, drawing, line, write};
use super::{Figure, Kind, Series, series, without};
use crate::matrix::{Matrix, Measurement};
use crate::stats::{Stats, span};

const ROW: i32 = 64;
const TOP: i32 = 20;
/// Half the length of a seed's stroke.
const STROKE: i32 = 16;

/// The figure; `None` unless some subject ran with several seeds.
pub fn seeds(matrix: &Matrix<'_>, row: &Measurement) -> Option<Figure> {
    let series = series(matrix, row);
    let stats: Vec<Stats> = series.iter().map(|one| Stats::of(&one.found)).collect();
    if stats.iter().all(|stats| stats.worst_by_seed.len() < 2) {
        return None;
    }
    let values = || {
        stats
            .iter()
            .flat_map(|stats| &stats.worst_by_seed)
            .filter_map(|(_, worst)| drawable(*worst))
    };
    let bottom = TOP + series.len() as i32 * ROW;
    let plot = Plot {
        x: Axis::logarithmic(
            values().reduce(f64::min)?,
            values().reduce(f64::max)?,
            (260, WIDTH - LEGEND),
        ),
        y: Axis::from_zero(series.len() as f64, (bottom, TOP)),
    };
    let svg = drawing(bottom + 90, |area| draw(area, &plot, &series, &stats));
    let caption: Vec<String> = std::iter::once("One stroke per seed.".to_owned())
        .chain(without(matrix, &series))
        .collect();
    Some(Figure::new(Kind::Seeds, row, caption.join(" "), &svg))
}

fn draw(area: &Area<'_>, plot: &Plot, series: &[Series<'_>], stats: &[Stats]) -> Drawn {
    plot.draw_x(area, time_name)?;
    plot.title_x(area, "worst latency")?;
    for (number, (series, stats)) in (0..).zip(series.iter().zip(stats)) {
        let y = TOP + number * ROW + ROW / 2;
        write(area, &series.name, (240, y), HPos::Right, VPos::Center)?;
        let places = stats
            .worst_by_seed
            .iter()
            .filter_map(|(_, worst)| Some(plot.x.place(drawable(*worst)?)));
        let places: Vec<i32> = places.collect();
        if let (Some(first), Some(last)) = (places.iter().min(), places.iter().max()) {
            line(
                area,
                vec![(*first, y), (*last, y)],
                colour(series.column).stroke_width(3),
            )?;
        }
        // Strokes stay apart where dots would run together.
        for x in places {
            let corners = [(x - 2, y - STROKE), (x + 2, y + STROKE)];
            area.draw(&Rectangle::new(corners, colour(series.column).filled()))?;
        }
        let label = match (stats.worst_range(), stats.worst()) {
            (Some((low, high)), _) => span(low, high),
            (None, Some(worst)) => format!("{worst} (one seed)"),
            (None, None) => String::new(),
        };
        write(
            area,
            &label,
            (WIDTH - LEGEND + 30, y),
            HPos::Left,
            VPos::Center,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn each_seed_has_its_sign() {
        let runs = fixtures::seeds(5);
        let matrix = Matrix::new(&runs);
        let figure = seeds(&matrix, &matrix.rows[1]).unwrap();
        assert_eq!(figure.inline().matches("<rect").count(), 4 * 5);
        assert!(figure.inline().contains("355–381 µs"));
    }

    #[test]
    fn one_seed_has_no_spread() {
        let runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        assert!(seeds(&matrix, &matrix.rows[1]).is_none());
    }
}

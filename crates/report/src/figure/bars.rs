//! How long work took: a bar per subject, from zero.

use plotters::prelude::{Color as _, Rectangle};
use plotters::style::text_anchor::{HPos, VPos};

use super::axis::{Axis, Plot, number_name};
use super::canvas::{Area, Drawn, INK, LEGEND, WIDTH, colour, drawing, line, write};
use super::{Figure, Kind, Series, series, without};
use crate::matrix::{Matrix, Measurement};
use crate::stats::{Stats, seconds};

const ROW: i32 = 64;
const TOP: i32 = 20;

/// The figure; `None` where nothing was measured.
pub fn bars(matrix: &Matrix<'_>, row: &Measurement) -> Option<Figure> {
    let series = series(matrix, row);
    let stats: Vec<Stats> = series.iter().map(|one| Stats::of(&one.found)).collect();
    let longest = stats.iter().filter_map(Stats::worst).max()?;
    let bottom = TOP + series.len() as i32 * ROW;
    let plot = Plot {
        x: Axis::from_zero(longest.as_secs_f64() * 1.02, (260, WIDTH - LEGEND)),
        y: Axis::from_zero(series.len() as f64, (bottom, TOP)),
    };
    let svg = drawing(bottom + 90, |area| draw(area, &plot, &series, &stats));
    let reading = "The middle of all samples; the thin line reaches from the shortest to the \
                   longest. Shorter is better.";
    let caption: Vec<String> = std::iter::once(reading.to_owned())
        .chain(without(matrix, &series))
        .collect();
    Some(Figure::new(Kind::Bars, row, caption.join(" "), &svg))
}

fn draw(area: &Area<'_>, plot: &Plot, series: &[Series<'_>], stats: &[Stats]) -> Drawn {
    plot.draw_x(area, number_name)?;
    plot.title_x(area, "seconds")?;
    for (number, (series, stats)) in (0..).zip(series.iter().zip(stats)) {
        let y = TOP + number * ROW + ROW / 2;
        write(area, &series.name, (240, y), HPos::Right, VPos::Center)?;
        let Some(median) = stats.median() else {
            continue;
        };
        let end = plot.x.place(median.as_secs_f64());
        let corners = [(plot.x.place(0.0), y - 18), (end, y + 18)];
        area.draw(&Rectangle::new(corners, colour(series.column).filled()))?;
        if let Some((low, high)) = stats.extremes {
            let [low, high] = [low, high].map(|time| plot.x.place(time.as_secs_f64()));
            line(area, vec![(low, y), (high, y)], INK.stroke_width(3))?;
        }
        write(
            area,
            &seconds(median),
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
    fn each_subject_has_its_bar_and_its_figure() {
        let runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        let figure = bars(&matrix, &matrix.rows[2]).unwrap();
        assert_eq!(figure.inline().matches("<rect").count(), 4);
        for text in ["0.101 s", "0.104 s", "0.118 s", "0.301 s"] {
            assert!(figure.inline().contains(&format!("\n{text}\n")), "{text}");
        }
    }
}

//! How long each execution of some work took: bars in groups, from zero.

use plotters::prelude::{Color as _, Rectangle};
use plotters::style::text_anchor::{HPos, VPos};

use super::axis::{Axis, Plot, number_name};
use super::canvas::{Area, Drawn, LEGEND, WIDTH, colour, drawing, write};
use super::{Figure, Kind, Series, series, without};
use crate::matrix::{Matrix, Measurement};

/// The probe whose executions are wanted one by one.
const PROBE: &str = "image";
const HEIGHT: i32 = 460;
/// More than these would run into each other.
const MOST: usize = 24;

/// The figure; `None` where it is not wanted, or there is but one execution.
pub fn each(matrix: &Matrix<'_>, row: &Measurement) -> Option<Figure> {
    if row.probe != PROBE {
        return None;
    }
    let all = series(matrix, row);
    let values: Vec<Vec<f64>> = all.iter().map(seconds).collect();
    let count = values
        .iter()
        .map(Vec::len)
        .max()
        .filter(|count| *count > 1)?;
    let longest = values.iter().flatten().copied().reduce(f64::max)?;
    let plot = Plot {
        x: Axis::from_zero(count as f64, (120, WIDTH - LEGEND)),
        y: Axis::from_zero(longest * 1.05, (HEIGHT - 90, 40)),
    };
    let svg = drawing(HEIGHT, |area| draw(area, &plot, &all, &values, count));
    let mut caption =
        vec!["One bar for each execution, in their order. Shorter is better.".to_owned()];
    let left_out = all
        .iter()
        .any(|one| one.found[0].recording.samples.len() > MOST);
    if left_out {
        caption.push(format!("The first {MOST} are shown."));
    }
    caption.extend(without(matrix, &all));
    Some(Figure::new(Kind::Each, row, caption.join(" "), &svg))
}

/// Of several seeds, the first.
fn seconds(series: &Series<'_>) -> Vec<f64> {
    let samples = series.found[0].recording.samples.iter().take(MOST);
    samples.map(|sample| sample.value.as_secs_f64()).collect()
}

fn draw(
    area: &Area<'_>,
    plot: &Plot,
    all: &[Series<'_>],
    values: &[Vec<f64>],
    count: usize,
) -> Drawn {
    write(area, "seconds", (108, 10), HPos::Right, VPos::Top)?;
    plot.draw_y(area, number_name)?;
    plot.title_x(area, "execution")?;
    let bottom = plot.y.place(0.0);
    for number in 0..count {
        let middle = plot.x.place(number as f64 + 0.5);
        write(
            area,
            &(number + 1).to_string(),
            (middle, bottom + 14),
            HPos::Center,
            VPos::Top,
        )?;
    }
    // A fifth of each group stays free on either side.
    let width = 0.6 / all.len() as f64;
    for (at, (series, values)) in all.iter().zip(values).enumerate() {
        let style = colour(series.column).filled();
        for (number, value) in values.iter().enumerate() {
            let left = number as f64 + 0.2 + at as f64 * width;
            let corners = [
                (plot.x.place(left) + 1, plot.y.place(*value)),
                (plot.x.place(left + width) - 1, bottom),
            ];
            area.draw(&Rectangle::new(corners, style))?;
        }
        let (x, y) = (WIDTH - LEGEND + 30, 60 + at as i32 * 44);
        area.draw(&Rectangle::new([(x, y - 10), (x + 40, y + 10)], style))?;
        write(area, &series.name, (x + 54, y), HPos::Left, VPos::Center)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn every_execution_has_its_bar_and_other_work_has_none() {
        let runs = fixtures::all_probes();
        let matrix = Matrix::new(&runs);
        let row = |variant: &str| {
            let mut rows = matrix.rows.iter();
            rows.find(|row| row.probe == "image" && row.variant == variant)
                .unwrap()
        };
        let figure = each(&matrix, row("system")).unwrap();
        // Two executions on two subjects, and the legend.
        assert_eq!(figure.inline().matches("<rect").count(), 2 * 2 + 2);
        let runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        assert!(each(&matrix, &matrix.rows[2]).is_none());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time of each execution of some work: bars in groups, from zero.

use super::axis::{Axis, Plot, number_name};
use super::canvas::{Anchor, Canvas, Ink, LEFT, RIGHT, TEXT};
use super::{Figure, Kind, Series, keys, series, without};
use crate::matrix::{Matrix, Measurement};

/// The probe whose executions are wanted one by one.
const PROBE: &str = "image";
const HEIGHT: i32 = 240;
/// More than these would run into each other.
const MOST: usize = 24;

/// The figure; `None` if it is not wanted, or there is but one execution.
pub fn each(matrix: &Matrix<'_>, row: &Measurement) -> Option<Figure> {
    if row.probe != PROBE {
        return None;
    }
    let all = series(matrix, row);
    let values: Vec<Vec<f64>> = all.iter().map(seconds).collect();
    let count = values.iter().map(Vec::len).max()?;
    if count < 2 {
        return None;
    }
    let longest = values.iter().flatten().copied().reduce(f64::max)?;
    let plot = Plot {
        x: Axis::from_zero(count as f64, (LEFT, RIGHT)),
        y: Axis::from_zero(longest * 1.05, (HEIGHT - 50, 26)),
    };
    let mut canvas = Canvas::new(HEIGHT);
    draw(&mut canvas, &plot, &all, &values, count);
    let reading = "One bar for each execution, in their order. Shorter is better.";
    let mut caption = vec![reading.to_owned()];
    let is_more = |one: &Series<'_>| one.found[0].recording.samples.len() > MOST;
    if all.iter().any(is_more) {
        caption.push(format!("The first {MOST} are shown."));
    }
    if all.iter().any(|one| one.found.len() > 1) {
        caption.push("Of several runs the first is shown.".to_owned());
    }
    caption.extend(without(matrix, &all));
    Some(Figure::new(Kind::Each, row, keys(&all), &caption, canvas))
}

/// Of several runs, the first.
fn seconds(series: &Series<'_>) -> Vec<f64> {
    let samples = series.found[0].recording.samples.iter().take(MOST);
    samples.map(|sample| sample.value.as_secs_f64()).collect()
}

fn draw(canvas: &mut Canvas, plot: &Plot, all: &[Series<'_>], values: &[Vec<f64>], count: usize) {
    canvas.write("seconds", (LEFT - 8, 9), Anchor::End);
    plot.draw_y(canvas, number_name);
    plot.title_x(canvas, "execution");
    let bottom = plot.y.place(0.0);
    for number in 0..count {
        let middle = plot.x.place(number as f64 + 0.5);
        let name = (number + 1).to_string();
        canvas.write(&name, (middle, bottom + 6 + TEXT / 2), Anchor::Middle);
    }
    // A fifth of each group stays free on either side.
    let width = 0.6 / all.len() as f64;
    for (at, (series, values)) in all.iter().zip(values).enumerate() {
        for (number, value) in values.iter().enumerate() {
            let left = number as f64 + 0.2 + at as f64 * width;
            let top = (plot.x.place(left) + 1, plot.y.place(*value));
            let end = (plot.x.place(left + width) - 1, bottom);
            canvas.rectangle(top, end, Ink::Column(series.column));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn every_execution_has_its_bar_and_other_work_has_none() {
        let runs = fixtures::all_probes();
        let matrix = Matrix::new(&runs);
        let mut rows = matrix.rows.iter();
        let row = rows.find(|row| row.probe == "image" && row.variant == "system");
        let figure = each(&matrix, row.unwrap()).unwrap();
        // Two executions on two subjects.
        assert_eq!(figure.svg.0.matches("<rect").count(), 2 * 2);
        let runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        assert!(each(&matrix, &matrix.rows[2]).is_none());
    }

    #[test]
    fn of_several_runs_it_says_which_is_shown() {
        let mut runs = fixtures::all_probes();
        let caption = |runs: &[punctual_model::Run]| {
            let matrix = Matrix::new(runs);
            let row = matrix.rows.iter().find(|row| row.probe == "image");
            each(&matrix, row.unwrap()).unwrap().caption
        };
        assert!(!caption(&runs).contains("the first"));
        let mut other = runs[0].clone();
        other.seed = 2;
        runs.push(other);
        assert!(caption(&runs).contains("Of several runs the first is shown."));
    }
}

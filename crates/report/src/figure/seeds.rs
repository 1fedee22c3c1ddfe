// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worst case of each seed, which shows how much one run's maximum says.

use punctual_model::Nanos;
use punctual_model::probe::Shape;

use super::axis::{Axis, Plot, drawable, extent, time_name};
use super::canvas::{Anchor, Canvas, Ink, WIDTH, room};
use super::{Figure, Kind, Series, of_limits, series, with_limits, without};
use crate::matrix::{Matrix, Measured, Measurement};
use crate::stats::Stats;
use crate::summary::worst_of;
use crate::text::span;

/// The room for names, if they are not longer.
const NAMES: i32 = 158;
/// The room for figures, if they are not longer.
const FIGURES: i32 = 150;
const ROW: i32 = 30;
const TOP: i32 = 4;
/// The space between a name and the values.
const GAP: i32 = 8;
/// The space between the values and a figure.
const BEFORE_FIGURES: i32 = 14;
/// Half the length of a seed's stroke.
const STROKE: i32 = 8;

/// The figure; `None` unless some subject ran with several seeds.
pub fn seeds(matrix: &Matrix<'_>, row: &Measurement) -> Option<Figure> {
    let series = series(matrix, row);
    let worst = |one: &Measured<'_>| worst_of(row)(&Stats::of(std::slice::from_ref(one)));
    let of_seeds = |one: &Series<'_>| one.found.iter().filter_map(worst).collect();
    let all: Vec<Vec<Nanos>> = series.iter().map(of_seeds).collect();
    if all.iter().all(|worst| worst.len() < 2) {
        return None;
    }
    let bounds = matrix.bounds(row);
    let extent = extent(all.iter().flatten().filter_map(|worst| drawable(*worst)))?;
    let (low, high) = with_limits(extent, &bounds);
    let bottom = TOP + series.len() as i32 * ROW;
    let labels: Vec<String> = all.iter().map(|worst| label(worst)).collect();
    let names = series.iter().map(|one| one.name.as_str());
    let left = room(names, GAP, NAMES);
    let right = WIDTH - room(labels.iter().map(String::as_str), BEFORE_FIGURES, FIGURES);
    let plot = Plot {
        x: Axis::logarithmic(low, high, (left, right)),
        y: Axis::from_zero(series.len() as f64, (bottom, TOP)),
    };
    let mut canvas = Canvas::new(bottom + 28);
    plot.draw_x(&mut canvas, time_name);
    for (number, ((series, worst), label)) in (0..).zip(series.iter().zip(&all).zip(&labels)) {
        let y = TOP + number * ROW + ROW / 2;
        canvas.write(&series.name, (left - GAP, y), Anchor::End);
        // Strokes stay apart where dots would run together.
        for worst in worst.iter().filter_map(|worst| drawable(*worst)) {
            let x = plot.x.place(worst);
            let ink = Ink::Column(series.column);
            canvas.rectangle((x - 1, y - STROKE), (x + 1, y + STROKE), ink);
        }
        canvas.write(label, (right + BEFORE_FIGURES, y), Anchor::Start);
    }
    plot.draw_limits(&mut canvas, &bounds, TOP, false);
    let mut caption = vec![match row.view().shape {
        Shape::Jitter => {
            "The sample of each run that is farthest from zero: one stroke for each.".to_owned()
        }
        _ => "The worst sample of each run: one stroke for each.".to_owned(),
    }];
    caption.extend(of_limits(&bounds));
    caption.extend(without(matrix, &series));
    Some(Figure::new(Kind::Seeds, row, Vec::new(), &caption, canvas))
}

/// The lowest and the highest of the worst cases.
fn label(worst: &[Nanos]) -> String {
    match (worst, worst.iter().min(), worst.iter().max()) {
        ([one], ..) => format!("{one} (one run)"),
        (_, Some(low), Some(high)) => span(*low, *high),
        _ => String::new(),
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
    fn runs_of_a_machine_are_not_called_seeds() {
        let mut runs = fixtures::seeds(2);
        runs.truncate(3);
        for run in &mut runs {
            run.machine = punctual_model::MachineRecord::default();
        }
        let matrix = Matrix::new(&runs);
        let figure = seeds(&matrix, &matrix.rows[1]).unwrap();
        assert_eq!(figure.kind.name(), "Worst case of each run");
        assert!(figure.svg.0.contains("(one run)<"), "{}", figure.svg.0);
        assert!(!figure.caption.contains("seed"), "{}", figure.caption);
    }

    #[test]
    fn one_seed_has_no_spread() {
        let runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        assert!(seeds(&matrix, &matrix.rows[1]).is_none());
    }

    #[test]
    fn the_worst_of_jitter_is_farthest_from_zero_on_either_side() {
        let runs = [(1, -5_000), (2, 4_500)].map(|(seed, farthest)| {
            let values = [farthest, 4_000, 0].repeat(10);
            let jitter = fixtures::recording(["realfeel", "idle", "rtc 2048 Hz"], &values);
            let mut run = fixtures::run_with(vec![jitter]);
            run.seed = seed;
            run
        });
        let matrix = Matrix::new(&runs);
        let figure = seeds(&matrix, &matrix.rows[0]).unwrap();
        assert!(figure.svg.0.contains(">4.50–5.00 µs<"), "{}", figure.svg.0);
        assert!(figure.caption.contains("farthest from zero"));
    }

    #[test]
    fn a_name_with_its_clock_has_room() {
        let mut runs = [fixtures::seeds(2), fixtures::seeds(2)].concat();
        for run in &mut runs[8..] {
            run.machine = punctual_model::MachineRecord::default();
        }
        for run in &mut runs {
            run.subject.name = format!("a-long-name-of-{}", run.subject.name);
        }
        let matrix = Matrix::new(&runs);
        assert!(matrix.is_mixed());
        let svg = seeds(&matrix, &matrix.rows[1]).unwrap().svg.into_string();
        let names = svg.split("<text x=\"").skip(1).filter_map(|text| {
            let (x, rest) = text.split_once('"')?;
            let name = rest.split_once('>')?.1.split_once('<')?.0;
            name.ends_with(" (virtual)")
                .then(|| (x.parse::<i32>(), name.to_owned()))
        });
        let names: Vec<_> = names.collect();
        assert!(!names.is_empty(), "{svg}");
        for (x, name) in names {
            assert!(x.unwrap() >= super::super::canvas::width(&name), "{name}");
        }
    }
}

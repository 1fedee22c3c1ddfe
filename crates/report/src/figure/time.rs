// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each sample at its time: a panel per subject, all to the same scales.

use std::collections::{BTreeMap, BTreeSet};

use punctual_model::probe::Shape;
use punctual_model::{Nanos, Recording, Run, Sample};

use super::axis::{Axis, Plot, drawable, extent, number_name, time_name};
use super::canvas::{Anchor, Canvas, Ink, LEFT, RIGHT};
use super::{Figure, Kind, Series, is_drawn, series, without};
use crate::matrix::{Matrix, Measurement};
use crate::stats::known_samples;
use crate::text::{list, thousands};

const PANEL: i32 = 90;
const GAP: i32 = 30;
const TOP: i32 = 26;
/// With more samples than this, only the worst of each column of dots is drawn.
const DOTS: usize = 20_000;

/// The aspect of a sample that is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Its value on a logarithmic scale, at its time.
    Lateness,
    /// Its signed value, by its number.
    Jitter,
}

impl Look {
    fn of(row: &Measurement) -> Self {
        match row.view().shape {
            Shape::Jitter => Self::Jitter,
            _ => Self::Lateness,
        }
    }

    fn x(self, sample: &Sample) -> f64 {
        match self {
            Self::Lateness => sample.at.as_secs_f64(),
            Self::Jitter => sample.seq as f64,
        }
    }

    /// The value by which the worst of several seeds is found; `None` without samples.
    fn worst_of(self, recording: &Recording) -> Option<Nanos> {
        match self {
            Self::Lateness => recording.max(),
            Self::Jitter => {
                let (low, high) = recording.extremes?;
                Some(Nanos(low.0.saturating_abs().max(high.0.saturating_abs())))
            }
        }
    }

    /// The sample that a ring marks.
    fn farthest(self, panel: &Panel<'_>) -> Option<Sample> {
        match self {
            Self::Lateness => panel.recording.worst.first().copied(),
            Self::Jitter => {
                let points = panel.points.iter().copied();
                points.max_by_key(|point| point.value.0.unsigned_abs())
            }
        }
    }

    /// Returns `None` if there is no place for it.
    fn y(self, sample: &Sample) -> Option<f64> {
        match self {
            Self::Lateness => drawable(sample.value),
            Self::Jitter => Some(sample.value.0 as f64),
        }
    }
}

/// A subject's panel.
struct Panel<'a> {
    series: Series<'a>,
    recording: &'a Recording,
    run: &'a Run,
    points: Vec<Sample>,
}

/// The figure; `None` where no samples were kept.
pub fn over_time(matrix: &Matrix<'_>, row: &Measurement) -> Option<Figure> {
    let all = series(matrix, row).into_iter().filter(is_drawn);
    let look = Look::of(row);
    let mut panels: Vec<Panel<'_>> = all.filter_map(|one| panel(one, look)).collect();
    let points = || panels.iter().flat_map(|panel| &panel.points);
    let reach = extent(points().filter_map(|point| look.y(point)))?;
    let (_, end) = extent(points().map(|point| look.x(point)))?;
    let thinned = panels.iter().any(|panel| panel.points.len() > DOTS);
    let numbers = 0..panels.len() as i32;
    let plots: Vec<Plot> = numbers.map(|at| plot(at, look, reach, end)).collect();
    for (panel, plot) in panels.iter_mut().zip(&plots) {
        if panel.points.len() > DOTS {
            panel.points = worst_of_columns(&panel.points, plot, look);
        }
    }
    let height = TOP + panels.len() as i32 * (PANEL + GAP) + 22;
    let is_virtual = !matrix.is_mixed() && matrix.columns[0].is_virtual();
    let title = match (look, is_virtual) {
        (Look::Jitter, _) => "sample",
        (Look::Lateness, true) => "time (virtual s)",
        (Look::Lateness, false) => "time (s)",
    };
    let mut canvas = Canvas::new(height);
    draw(&mut canvas, &plots, &panels, look, title);
    let mut caption = caption(&panels, look, thinned);
    let drawn: Vec<Series<'_>> = panels.into_iter().map(|panel| panel.series).collect();
    caption.extend(without(matrix, &drawn));
    let kind = match look {
        Look::Lateness => Kind::OverTime,
        Look::Jitter => Kind::Jitter,
    };
    Some(Figure::new(kind, row, Vec::new(), &caption, canvas))
}

/// Of several seeds, the one with the worst case is drawn.
fn panel(series: Series<'_>, look: Look) -> Option<Panel<'_>> {
    let found = series.found.iter().rev();
    let worst = found.max_by_key(|one| look.worst_of(one.recording))?;
    let (recording, run) = (worst.recording, worst.run);
    Some(Panel {
        series,
        recording,
        run,
        points: known_samples(recording),
    })
}

fn plot(number: i32, look: Look, (lowest, highest): (f64, f64), end: f64) -> Plot {
    let top = TOP + number * (PANEL + GAP);
    let ends = (top + PANEL, top);
    Plot {
        x: Axis::from_zero(end, (LEFT, RIGHT)),
        y: match look {
            Look::Lateness => Axis::logarithmic(lowest, highest, ends),
            Look::Jitter => Axis::linear(lowest, highest, ends),
        },
    }
}

/// The sample of each column of dots that is farthest from zero, on either side of it.
fn worst_of_columns(points: &[Sample], plot: &Plot, look: Look) -> Vec<Sample> {
    let mut columns: BTreeMap<(i32, bool), Sample> = BTreeMap::new();
    let distance = |sample: &Sample| sample.value.0.unsigned_abs();
    for point in points {
        let place = (plot.x.place(look.x(point)), point.value < Nanos::ZERO);
        let worst = columns.entry(place).or_insert(*point);
        if distance(point) > distance(worst) {
            *worst = *point;
        }
    }
    columns.into_values().collect()
}

fn caption(panels: &[Panel<'_>], look: Look, thinned: bool) -> Vec<String> {
    let mut caption = vec![if thinned {
        format!(
            "Of more than {} samples, the worst of each moment that the figure can tell apart \
             is drawn; a ring marks the worst.",
            thousands(DOTS as u64)
        )
    } else {
        "Each dot is a sample; a ring marks the worst.".to_owned()
    }];
    if look == Look::Jitter {
        let what = "A sample is an interval minus its nominal length: below zero it was too short.";
        caption.insert(0, what.to_owned());
    }
    if panels.iter().any(|panel| panel.series.found.len() > 1) {
        // In real time seeds may be equal.
        let which = |run: &Run| {
            if run.is_virtual() {
                run.seed.to_string()
            } else {
                run.id.clone()
            }
        };
        let name = |panel: &Panel<'_>| format!("{} of {}", which(panel.run), panel.series.name);
        let names: Vec<String> = panels.iter().map(name).collect();
        let is_virtual = |panel: &Panel<'_>| panel.run.is_virtual();
        let what = match (panels.iter().all(is_virtual), panels.iter().any(is_virtual)) {
            (true, _) => "seeds",
            (_, true) => "seeds and runs",
            _ => "runs",
        };
        caption.push(format!(
            "The {what} with the worst case are shown: {}.",
            list(&names)
        ));
    }
    for panel in panels.iter().filter(|panel| !panel.recording.is_complete()) {
        let parts = match panel.recording.maxima.len() {
            0 => String::new(),
            parts => format!(
                ", and the worst of each of {} parts",
                thousands(parts as u64)
            ),
        };
        caption.push(format!(
            "Of {}, {} of {} samples were kept, and the worst{parts}.",
            panel.series.name,
            thousands(panel.recording.samples.len() as u64),
            thousands(panel.recording.count)
        ));
    }
    let points = panels.iter().flat_map(|panel| &panel.points);
    let outside = points.filter(|point| look.y(point).is_none()).count();
    if outside > 0 {
        let outside = thousands(outside as u64);
        caption.push(format!(
            "Samples at or below zero are not drawn: {outside}."
        ));
    }
    caption
}

fn draw(canvas: &mut Canvas, plots: &[Plot], panels: &[Panel<'_>], look: Look, title: &str) {
    let last = plots.len() - 1;
    for (number, (plot, panel)) in plots.iter().zip(panels).enumerate() {
        plot.draw_y(canvas, time_name);
        let unnamed = |_: f64| String::new();
        plot.draw_x(canvas, if number == last { number_name } else { unnamed });
        dots(canvas, plot, panel, look);
        let top = (LEFT, plot.y.place(f64::MAX) - 12);
        canvas.write(&described(panel, look), top, Anchor::Start);
    }
    plots[last].title_x(canvas, title);
}

/// Dots that would lie on each other are drawn once.
fn dots(canvas: &mut Canvas, plot: &Plot, panel: &Panel<'_>, look: Look) {
    let place = |point: &Sample| Some(plot.place(look.x(point), look.y(point)?));
    let places: BTreeSet<(i32, i32)> = panel.points.iter().filter_map(place).collect();
    canvas.dots(places.into_iter(), Ink::Column(panel.series.column));
    if let Some(at) = look.farthest(panel).as_ref().and_then(place) {
        canvas.ring(at, Ink::Text);
    }
}

/// Describes a panel in a line above it.
fn described(panel: &Panel<'_>, look: Look) -> String {
    let (name, count) = (&panel.series.name, thousands(panel.recording.count));
    let Some(farthest) = look.farthest(panel) else {
        return name.clone();
    };
    let (value, moment) = (farthest.value, at(farthest.at));
    let word = match look {
        Look::Jitter => "farthest",
        Look::Lateness => "worst",
    };
    format!("{name}: {word} {value}, {moment}; n = {count}")
}

/// Returns its moment, in the unit of the axis unless that shows nothing but zeros.
fn at(moment: Nanos) -> String {
    if moment < Nanos::from_millis(10) {
        return format!("at {moment}");
    }
    format!("at {:.3} s", moment.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, assert_has};

    #[test]
    fn every_panel_has_its_dots_and_its_worst() {
        let runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        let figure = over_time(&matrix, &matrix.rows[1]).unwrap();
        let dots = figure.svg.0.matches("h0").count();
        assert!(
            (500..=4 * fixtures::SAMPLES as usize).contains(&dots),
            "{dots}"
        );
        assert_eq!(figure.svg.0.matches("<circle").count(), 4);
        assert!(figure.svg.0.contains("at 1.230 s"));
        assert!(figure.svg.0.contains("time (virtual s)"));
    }

    #[test]
    fn many_samples_keep_their_worst() {
        let mut late: Vec<i64> = (0..50_000).map(|seq| 4_000 + seq % 700).collect();
        late[31_007] = 900_000;
        let timer = fixtures::recording(["timer", "stress", "cpu0"], &late);
        let runs = [fixtures::run_with(vec![timer])];
        let matrix = Matrix::new(&runs);
        let figure = over_time(&matrix, &matrix.rows[0]).unwrap();
        let dots = figure.svg.0.matches("h0").count();
        assert!(dots <= RIGHT as usize, "{dots}");
        assert_has(&figure.caption, &["more than 20,000 samples"]);
        let top = plot(0, Look::Lateness, (4_000.0, 900_000.0), 49.849_003);
        let (x, y) = top.place(30.913_979, 900_000.0);
        assert!(figure.svg.0.contains(&format!("M{x} {y}h0")));
    }

    #[test]
    fn what_was_not_kept_is_drawn_by_the_worst_of_each_part() {
        let mut timer = fixtures::recording(["timer", "stress", "cpu0"], &[5_000; 10]);
        timer.count = 1_000_000;
        let part = |number: i64| Sample {
            seq: number as u64 * 60_000,
            at: Nanos::from_millis(number * 60_000),
            value: Nanos(6_000 + number),
        };
        timer.maxima = (0..=700).map(part).collect();
        let runs = [fixtures::run_with(vec![timer])];
        let matrix = Matrix::new(&runs);
        let figure = over_time(&matrix, &matrix.rows[0]).unwrap();
        assert_has(&figure.caption, &["the worst of each of 701 parts"]);
        let dots = figure.svg.0.matches("h0").count();
        // As many as columns can be told apart.
        assert!(dots > 400, "{dots}");
    }

    #[test]
    fn the_seed_with_the_worst_case_is_named() {
        let runs = fixtures::seeds(2);
        let matrix = Matrix::new(&runs);
        let figure = over_time(&matrix, &matrix.rows[1]).unwrap();
        assert_has(&figure.caption, &["1 of none"]);
    }

    #[test]
    fn the_run_with_the_worst_case_is_named_in_real_time() {
        let mut runs = fixtures::seeds(2);
        runs.truncate(2);
        for (run, id) in runs.iter_mut().zip(["r7", "r8"]) {
            run.machine = punctual_model::MachineRecord::default();
            run.id = id.to_owned();
            run.seed = 1;
        }
        let matrix = Matrix::new(&runs);
        let figure = over_time(&matrix, &matrix.rows[1]).unwrap();
        let shown = "The runs with the worst case are shown: r7 of none.";
        assert_has(&figure.caption, &[shown]);
    }

    #[test]
    fn jitter_is_drawn_on_both_sides_of_zero() {
        let values = [-5_000, 4_000, 0].repeat(10);
        let jitter = fixtures::recording(["realfeel", "idle", "rtc 2048 Hz"], &values);
        let runs = [fixtures::run_with(vec![jitter])];
        let matrix = Matrix::new(&runs);
        let figure = over_time(&matrix, &matrix.rows[0]).unwrap();
        assert_eq!(figure.svg.0.matches("h0").count(), 30);
        assert!(figure.svg.0.contains("farthest -5.00 µs"));
        assert!(!figure.caption.contains("not drawn"), "{}", figure.caption);
    }

    #[test]
    fn the_seed_with_the_sample_that_is_farthest_from_zero_is_drawn() {
        let runs = [(1, -5_000), (2, 4_500)].map(|(seed, farthest)| {
            let values = [farthest, 4_000, 0].repeat(10);
            let jitter = fixtures::recording(["realfeel", "idle", "rtc 2048 Hz"], &values);
            let mut run = fixtures::run_with(vec![jitter]);
            run.seed = seed;
            run
        });
        let matrix = Matrix::new(&runs);
        let figure = over_time(&matrix, &matrix.rows[0]).unwrap();
        assert!(figure.svg.0.contains("farthest -5.00 µs"));
        assert_has(&figure.caption, &["1 of rt"]);
    }
}

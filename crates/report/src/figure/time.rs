//! Each sample at its time: a panel per subject, all to the same scales.

use std::collections::{BTreeMap, BTreeSet};

use plotters::prelude::{Circle, Color as _};
use plotters::style::text_anchor::{HPos, VPos};
use punctual_model::recording::{Recording, Sample};
use punctual_model::units::Nanos;

use super::axis::{Axis, Plot, drawable, number_name, time_name};
use super::canvas::{Area, DOT, Drawn, INK, LEGEND, WIDTH, colour, drawing, write};
use super::{Figure, Kind, Series, series, without};
use crate::matrix::{Matrix, Measurement};
use crate::stats::{list, thousands};
use punctual_model::probe::Shape;

const PANEL: i32 = 190;
const GAP: i32 = 26;
const TOP: i32 = 16;
/// With more samples than this, only the worst of each column of dots is drawn.
const DOTS: usize = 20_000;

/// What is drawn of a sample.
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

    /// `None` where there is no place for it.
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
    seed: u64,
    points: Vec<Sample>,
}

/// The figure; `None` where no samples were kept.
pub fn over_time(matrix: &Matrix<'_>, row: &Measurement) -> Option<Figure> {
    let all = series(matrix, row);
    let look = Look::of(row);
    let mut panels: Vec<Panel<'_>> = all.into_iter().filter_map(panel).collect();
    let points = || panels.iter().flat_map(|panel| &panel.points);
    let values = || points().filter_map(|point| look.y(point));
    let lowest = values().reduce(f64::min)?;
    let highest = values().reduce(f64::max)?;
    let end = points().map(|point| look.x(point)).reduce(f64::max)?;
    let thinned = panels.iter().any(|panel| panel.points.len() > DOTS);
    let plots: Vec<Plot> = (0..panels.len())
        .map(|at| plot(at as i32, look, (lowest, highest), end))
        .collect();
    for (panel, plot) in panels.iter_mut().zip(&plots) {
        if panel.points.len() > DOTS {
            panel.points = worst_of_columns(&panel.points, plot, look);
        }
    }
    let height = TOP + panels.len() as i32 * (PANEL + GAP) + 80;
    let is_virtual = !matrix.is_mixed() && matrix.columns[0].is_virtual();
    let title = match (look, is_virtual) {
        (Look::Jitter, _) => "sample",
        (Look::Lateness, true) => "time (virtual s)",
        (Look::Lateness, false) => "time (s)",
    };
    let svg = drawing(height, |area| draw(area, &plots, &panels, look, title));
    let mut caption = caption(&panels, look, thinned);
    let drawn: Vec<Series<'_>> = panels.into_iter().map(|panel| panel.series).collect();
    caption.extend(without(matrix, &drawn));
    let kind = match look {
        Look::Lateness => Kind::OverTime,
        Look::Jitter => Kind::Jitter,
    };
    Some(Figure::new(kind, row, caption.join(" "), &svg))
}

/// Of several seeds, the one with the worst case is drawn.
fn panel(series: Series<'_>) -> Option<Panel<'_>> {
    let worst = series
        .found
        .iter()
        .rev()
        .max_by_key(|one| one.recording.max())?;
    let (recording, seed) = (worst.recording, worst.run.seed);
    let mut points: Vec<Sample> = recording.samples.iter().collect();
    // Where not all samples were kept, the worst were, each with its time.
    let kept = points.len() as u64;
    let mut worst = recording.worst.clone();
    worst.retain(|sample| sample.seq >= kept);
    worst.sort_unstable_by_key(|sample| sample.seq);
    points.extend(worst);
    Some(Panel {
        series,
        recording,
        seed,
        points,
    })
}

fn plot(number: i32, look: Look, (lowest, highest): (f64, f64), end: f64) -> Plot {
    let top = TOP + number * (PANEL + GAP);
    let ends = (top + PANEL, top);
    Plot {
        x: Axis::from_zero(end, (120, WIDTH - LEGEND)),
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
             is drawn; a ring marks the worst of all.",
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
        let seed = |panel: &Panel<'_>| format!("{} of {}", panel.seed, panel.series.name);
        let seeds: Vec<String> = panels.iter().map(seed).collect();
        caption.push(format!(
            "The seeds with the worst case are shown: {}.",
            list(&seeds)
        ));
    }
    for panel in panels.iter().filter(|panel| !panel.recording.is_complete()) {
        caption.push(format!(
            "Of {}, {} of {} samples were kept, and the worst.",
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

fn draw(area: &Area<'_>, plots: &[Plot], panels: &[Panel<'_>], look: Look, title: &str) -> Drawn {
    let last = plots.len() - 1;
    for (number, (plot, panel)) in plots.iter().zip(panels).enumerate() {
        plot.draw_y(area, time_name)?;
        plot.draw_x(area, |value| {
            if number == last {
                number_name(value)
            } else {
                String::new()
            }
        })?;
        dots(area, plot, panel, look)?;
        name(area, plot, panel, look)?;
    }
    plots[last].title_x(area, title)
}

/// Dots that would lie on each other are drawn once.
fn dots(area: &Area<'_>, plot: &Plot, panel: &Panel<'_>, look: Look) -> Drawn {
    let place = |point: &Sample| Some(plot.place(look.x(point), look.y(point)?));
    let places: BTreeSet<(i32, i32)> = panel.points.iter().filter_map(place).collect();
    let style = colour(panel.series.column).filled();
    for at in places {
        area.draw(&Circle::new(at, DOT, style))?;
    }
    if let Some(at) = panel.recording.worst.first().and_then(place) {
        area.draw(&Circle::new(at, 11, INK.stroke_width(3)))?;
    }
    Ok(())
}

fn name(area: &Area<'_>, plot: &Plot, panel: &Panel<'_>, look: Look) -> Drawn {
    let left = WIDTH - LEGEND + 30;
    let top = plot.y.place(f64::MAX) + 24;
    write(
        area,
        &panel.series.name,
        (left, top),
        HPos::Left,
        VPos::Center,
    )?;
    let Some(worst) = panel.recording.worst.first() else {
        return Ok(());
    };
    let (text, below) = match (look, panel.recording.min()) {
        (Look::Jitter, Some(least)) => (
            format!("longest {}", worst.value),
            format!("shortest {least}"),
        ),
        _ => (format!("worst {}", worst.value), at(worst.at)),
    };
    write(area, &text, (left, top + 32), HPos::Left, VPos::Center)?;
    write(area, &below, (left, top + 64), HPos::Left, VPos::Center)
}

/// When it was, in the unit of the axis unless that shows nothing but zeros.
fn at(moment: Nanos) -> String {
    if moment < Nanos::from_millis(10) {
        return format!("at {moment}");
    }
    format!("at {:.3} s", moment.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use punctual_model::recording::Recorder;

    use super::*;
    use crate::fixtures;

    #[test]
    fn every_panel_has_its_dots_and_its_worst() {
        let runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        let figure = over_time(&matrix, &matrix.rows[1]).unwrap();
        let dots = figure.inline().matches("h0").count();
        assert!(
            (1_000..=4 * fixtures::SAMPLES as usize).contains(&dots),
            "{dots}"
        );
        assert_eq!(figure.inline().matches("r=\"11\"").count(), 4);
        assert!(figure.inline().contains("at 1.230 s"));
        assert!(figure.inline().contains("time (virtual s)"));
    }

    #[test]
    fn many_samples_keep_their_worst() {
        let mut recorder = Recorder::new(usize::MAX >> 40);
        for seq in 0..50_000 {
            let value = if seq == 31_007 {
                900_000
            } else {
                4_000 + seq % 700
            };
            recorder.record(Nanos(seq * 1_000_000), Nanos(value));
        }
        let mut runs = vec![fixtures::run("rt", 1)];
        runs[0].recordings = vec![recorder.finish("timer", "stress", "cpu0")];
        let matrix = Matrix::new(&runs);
        let figure = over_time(&matrix, &matrix.rows[0]).unwrap();
        let dots = figure.inline().matches("h0").count();
        assert!(dots <= WIDTH as usize, "{dots}");
        assert!(
            figure.caption.contains("more than 20,000 samples"),
            "{}",
            figure.caption
        );
        let top = plot(0, Look::Lateness, (4_000.0, 900_000.0), 49.999);
        let (x, y) = top.place(31.007, 900_000.0);
        assert!(figure.inline().contains(&format!("M{x} {y}h0")));
    }

    #[test]
    fn the_seed_with_the_worst_case_is_named() {
        let runs = fixtures::seeds(2);
        let matrix = Matrix::new(&runs);
        let figure = over_time(&matrix, &matrix.rows[1]).unwrap();
        assert!(figure.caption.contains("1 of none"), "{}", figure.caption);
    }

    #[test]
    fn jitter_is_drawn_on_both_sides_of_zero() {
        let mut recorder = Recorder::new(10);
        for (number, value) in (0..).zip([-3_000, 4_000, 0]) {
            recorder.record(Nanos(number * 1_000_000), Nanos(value));
        }
        let mut runs = vec![fixtures::run("rt", 1)];
        runs[0].recordings = vec![recorder.finish("realfeel", "idle", "rtc 2048 Hz")];
        let matrix = Matrix::new(&runs);
        let figure = over_time(&matrix, &matrix.rows[0]).unwrap();
        assert_eq!(figure.inline().matches("h0").count(), 3);
        assert!(figure.inline().contains("shortest -3.00 µs"));
        assert!(!figure.caption.contains("not drawn"), "{}", figure.caption);
    }
}

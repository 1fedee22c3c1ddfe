// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worst case and the middle against a number of threads: a line per subject.

use std::collections::BTreeMap;

use punctual_model::probe::Shape;
use punctual_model::{Nanos, Recording};

use super::axis::{Axis, Plot, drawable, extent, number_name, time_name};
use super::canvas::{Anchor, Canvas, Ink, LEFT, RIGHT};
use super::{Figure, Kind, Series, keys, series, without};
use crate::matrix::{Matrix, Measurement};
use crate::stats::Stats;

const PANEL: i32 = 130;
const GAP: i32 = 56;
const TOP: i32 = 26;
/// With more points than this their signs would run into each other.
const SIGNS: usize = 20;

/// A subject's figures by number of threads.
type Points = BTreeMap<u64, Both>;

/// The worst case, and the mean or the median.
#[derive(Clone, Copy)]
struct Both {
    worst: Nanos,
    middle: Nanos,
}

/// A subject's line.
struct Curve<'a> {
    series: Series<'a>,
    points: Points,
}

/// Draws the figure. Returns `None` if no number of threads is known or no samples were kept.
pub fn against(matrix: &Matrix<'_>, group: &[Measurement]) -> Option<Figure> {
    let row = group.first()?;
    let (curves, title, middle) = if row.view().shape == Shape::Steps {
        (steps(matrix, group), "threads", "mean")
    } else {
        (waiting(matrix, row), "threads that wait", "median")
    };
    if curves.iter().all(|curve| curve.points.len() < 2) {
        return None;
    }
    let panels = [
        panel(0, &curves, "worst", |both| both.worst)?,
        panel(1, &curves, middle, |both| both.middle)?,
    ];
    let mut canvas = Canvas::new(TOP + 2 * (PANEL + GAP));
    draw(&mut canvas, &panels, &curves, title);
    let mut caption = vec![format!(
        "Above the worst of all samples, below their {middle}. A scale without zero is logarithmic."
    )];
    let drawn: Vec<Series<'_>> = curves.into_iter().map(|curve| curve.series).collect();
    caption.extend(without(matrix, &drawn));
    let mut whole = row.clone();
    if group.len() > 1 {
        whole.variant.clear();
    }
    let figure = Figure::new(Kind::Against, &whole, keys(&drawn), &caption, canvas);
    Some(figure)
}

/// Variants `N=2`, `N=10`, …: each is a point, whose worst may be at its beginning.
fn steps<'a>(matrix: &Matrix<'a>, group: &[Measurement]) -> Vec<Curve<'a>> {
    let mut curves: BTreeMap<usize, Curve<'a>> = BTreeMap::new();
    for row in group {
        let number = row.variant.split(['=', ' ']).nth(1);
        let Some(number) = number.and_then(|number| number.parse().ok()) else {
            continue;
        };
        for series in series(matrix, row) {
            let stats = Stats::of(&series.found);
            let points = Points::new();
            let curve = curves.entry(series.column);
            let curve = curve.or_insert(Curve { series, points });
            if let Some((worst, middle)) = stats.worst().zip(stats.mean) {
                // The beginnings come after what they are the beginnings of.
                let both = curve.points.entry(number).or_insert(Both { worst, middle });
                both.worst = both.worst.max(worst);
            }
        }
    }
    curves.into_values().collect()
}

/// One variant with the number of waiting threads in its samples.
fn waiting<'a>(matrix: &Matrix<'a>, row: &Measurement) -> Vec<Curve<'a>> {
    let curve = |series: Series<'a>| {
        let mut values: BTreeMap<u64, Vec<Nanos>> = BTreeMap::new();
        for one in &series.found {
            for (number, value) in by_waiting(one.recording)? {
                values.entry(number).or_default().push(value);
            }
        }
        let points = values.into_iter().filter_map(|(number, mut values)| {
            values.sort_unstable();
            let middle = values[(values.len() - 1) / 2];
            let worst = *values.last()?;
            Some((number, Both { worst, middle }))
        });
        let points = points.collect();
        Some(Curve { series, points })
    };
    series(matrix, row).into_iter().filter_map(curve).collect()
}

/// Counts the waiting threads at each sample of `semaphore`.
/// In a round there is one more at every attempt, and one fewer at every post. Returns `None` if
/// not every sample is there.
fn by_waiting(recording: &Recording) -> Option<Vec<(u64, Nanos)>> {
    let all = recording.settings.get("waiters")?.number()?;
    let all = u64::try_from(all).ok()?;
    let whole = recording.is_complete() && recording.missed == 0;
    if all == 0 || !whole || recording.count % all != 0 {
        return None;
    }
    let waiting: fn(u64, u64) -> u64 = match recording.key.variant.split(' ').next()? {
        "acquire" => |turn, _| turn,
        "release" => |turn, all| all - turn,
        _ => return None,
    };
    let samples = recording.samples.iter();
    let counted = samples.map(|one| (waiting(one.seq % all, all), one.value));
    Some(counted.collect())
}

/// Half of the figure.
struct Panel {
    plot: Plot,
    name: &'static str,
    value: fn(&Both) -> Nanos,
}

fn panel(
    number: i32,
    curves: &[Curve<'_>],
    name: &'static str,
    value: fn(&Both) -> Nanos,
) -> Option<Panel> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (low, high) = extent(points().filter_map(|(_, both)| drawable(value(both))))?;
    let (first, last) = extent(points().map(|(number, _)| *number as f64))?;
    let top = TOP + number * (PANEL + GAP);
    let across = (LEFT, RIGHT);
    // Numbers that come one by one stand one by one.
    let x = if last <= points().count() as f64 {
        Axis::from_zero(last, across)
    } else {
        Axis::suiting(first, last, across)
    };
    let y = Axis::suiting(low, high, (top + PANEL, top));
    let plot = Plot { x, y };
    Some(Panel { plot, name, value })
}

fn draw(canvas: &mut Canvas, panels: &[Panel; 2], curves: &[Curve<'_>], title: &str) {
    for panel in panels {
        panel.plot.draw_y(canvas, time_name);
        panel.plot.draw_x(canvas, number_name);
        let top = (LEFT, panel.plot.y.place(f64::MAX) - 13);
        canvas.write(panel.name, top, Anchor::Start);
        for curve in curves {
            draw_curve(canvas, panel, curve);
        }
    }
    panels[1].plot.title_x(canvas, title);
}

fn draw_curve(canvas: &mut Canvas, panel: &Panel, curve: &Curve<'_>) {
    let place = |(number, both): (&u64, &Both)| {
        let value = drawable((panel.value)(both))?;
        Some(panel.plot.place(*number as f64, value))
    };
    let places: Vec<(i32, i32)> = curve.points.iter().filter_map(place).collect();
    let column = curve.series.column;
    canvas.line(&places, Ink::Column(column), 2.0);
    let apart = places.len().div_ceil(SIGNS).max(1);
    for at in places.into_iter().step_by(apart) {
        canvas.sign(column, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, assert_has};

    fn semaphore(variant: &str, values: &[i64]) -> Recording {
        let mut recording = fixtures::recording(["semaphore", "idle", variant], values);
        recording.settings.insert("waiters".into(), 3.into());
        recording
    }

    #[test]
    fn the_number_of_waiters_follows_from_the_turn() {
        let numbers = |variant| {
            let told = by_waiting(&semaphore(variant, &[7; 6])).unwrap();
            told.iter().map(|(number, _)| *number).collect::<Vec<_>>()
        };
        assert_eq!(numbers("acquire"), [0, 1, 2, 0, 1, 2]);
        assert_eq!(numbers("release"), [3, 2, 1, 3, 2, 1]);
    }

    #[test]
    fn no_thread_that_waits_has_a_place_too() {
        let runs = [fixtures::run_with(vec![semaphore("acquire", &[7; 6])])];
        let matrix = Matrix::new(&runs);
        let figure = against(&matrix, &matrix.rows).unwrap();
        assert!(figure.svg.0.contains(">threads that wait<"));
    }

    #[test]
    fn samples_that_lack_one_tell_no_number() {
        assert!(by_waiting(&semaphore("acquire", &[7; 5])).is_none());
        let mut missing = semaphore("acquire", &[7; 6]);
        missing.missed = 3;
        assert!(by_waiting(&missing).is_none());
        let mut unsaid = semaphore("acquire", &[7; 6]);
        unsaid.settings.clear();
        assert!(by_waiting(&unsaid).is_none());
    }

    #[test]
    fn steps_are_one_figure_with_a_line_for_each_subject() {
        let runs = fixtures::all_probes();
        let matrix = Matrix::new(&runs);
        let mut groups = matrix.groups().into_iter();
        let group = groups.find(|group| group[0].probe == "switch").unwrap();
        let figure = against(&matrix, group).unwrap();
        assert_eq!(figure.subject, "switch, idle");
        assert_has(&figure.svg.0, &[">worst<", ">mean<", ">threads<"]);
        assert_eq!(figure.keys.len(), 2);
    }

    #[test]
    fn names_of_panels_stand_over_the_values_on_a_logarithmic_scale_too() {
        let step = |variant, value| fixtures::recording(["switch", "idle", variant], &[value; 30]);
        let steps = vec![step("N=2", 1_300), step("N=1000", 2_400)];
        let runs = [fixtures::run_with(steps)];
        let matrix = Matrix::new(&runs);
        let svg = against(&matrix, &matrix.rows).unwrap().svg.into_string();
        for name in ["worst", "mean"] {
            let (before, _) = svg.split_once(&format!(">{name}</text>")).unwrap();
            let (_, place) = before.rsplit_once("<text x=\"").unwrap();
            assert!(place.starts_with(&format!("{LEFT}\"")), "{name}: {place}");
        }
    }
}

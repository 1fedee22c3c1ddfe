// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bar per subject, from zero: the middle of its samples, and their range.

use punctual_model::units::Nanos;

use super::axis::{Axis, Plot, time_name};
use super::canvas::{Anchor, Canvas, Ink, TEXT, WIDTH, room};
use super::{Figure, Kind, Series, series, without};
use crate::matrix::{Matrix, Measurement};
use crate::stats::Stats;
use crate::text::{seconds, seconds_span, span};

/// The probes of whose services the average and the maximum are wanted, beside all work.
const PROBES: [&str; 5] = ["tick", "irq", "irqrate", "semaphore", "mutex"];
/// The room for names, if they are not longer.
const NAMES: i32 = 158;
/// The space between a name and its bar.
const GAP: i32 = 8;
const FIGURES: i32 = 232;
const ROW: i32 = 30;
const TITLE: i32 = 24;
const TOP: i32 = 4;

/// A subject's bar, or a title over some of them.
struct BarRow {
    top: i32,
    name: String,
    /// The bar; `None` if the row is a title.
    bar: Option<Bar>,
}

struct Bar {
    column: usize,
    middle: Nanos,
    reach: (Nanos, Nanos),
    text: String,
}

/// Returns true if bars are wanted of a measurement.
fn is_wanted(row: &Measurement) -> bool {
    // What is no tick has another cause each time: its average says nothing.
    let is_service = PROBES.contains(&row.probe.as_str());
    row.is_throughput() || is_service && (row.probe != "tick" || row.variant == "tick")
}

/// The figure of the measurements of one probe under one load.
/// Returns `None` if it is not wanted, or nothing was measured.
pub fn bars(matrix: &Matrix<'_>, group: &[Measurement]) -> Option<Figure> {
    let (mut rows, mut top, mut drawn) = (Vec::new(), TOP, Vec::new());
    let wanted: Vec<&Measurement> = group.iter().filter(|row| is_wanted(row)).collect();
    for row in &wanted {
        let all = series(matrix, row);
        if wanted.len() > 1 && !all.is_empty() {
            let name = row.variant.clone();
            let bar = None;
            rows.push(BarRow { top, name, bar });
            top += TITLE;
        }
        for one in all {
            let name = one.name.clone();
            let bar = bar(row, &one);
            rows.push(BarRow { top, name, bar });
            top += ROW;
            drawn.push(one);
        }
    }
    let bars = || rows.iter().filter_map(|row| row.bar.as_ref());
    let longest = bars().map(|bar| bar.reach.1).max()?;
    let names = rows.iter().filter(|row| row.bar.is_some());
    let left = room(names.map(|row| row.name.as_str()), GAP, NAMES);
    let plot = Plot {
        x: Axis::from_zero(longest.0 as f64 * 1.02, (left, WIDTH - FIGURES)),
        y: Axis::from_zero(1.0, (top, TOP)),
    };
    let mut canvas = Canvas::new(top + 28);
    draw(&mut canvas, &plot, left, &rows);
    let first = wanted.first()?;
    let middle = if first.is_throughput() {
        "median"
    } else {
        "average"
    };
    let mut caption = vec![format!(
        "The bar reaches to the {middle}, the line from the shortest to the longest. Shorter is \
         better."
    )];
    caption.extend(without(matrix, &drawn));
    let mut whole = (*first).clone();
    if wanted.len() > 1 {
        whole.variant.clear();
    }
    let figure = Figure::new(Kind::Bars, &whole, Vec::new(), &caption, canvas);
    Some(figure)
}

fn bar(row: &Measurement, series: &Series<'_>) -> Option<Bar> {
    let stats = Stats::of(&series.found);
    let reach = stats.extremes?;
    let is_work = row.is_throughput();
    let middle = if is_work { stats.median() } else { stats.mean }?;
    let (low, high) = reach;
    let text = match (stats.count, is_work) {
        (1, true) => seconds(middle),
        (1, false) => middle.to_string(),
        (_, true) => format!("{} ({})", seconds(middle), seconds_span(low, high)),
        (_, false) => format!("{middle} ({})", span(low, high)),
    };
    Some(Bar {
        column: series.column,
        middle,
        reach,
        text,
    })
}

fn draw(canvas: &mut Canvas, plot: &Plot, left: i32, rows: &[BarRow]) {
    plot.draw_x(canvas, time_name);
    for row in rows {
        let Some(bar) = &row.bar else {
            canvas.write(&row.name, (0, row.top + TITLE - TEXT / 2), Anchor::Start);
            continue;
        };
        let y = row.top + ROW / 2;
        canvas.write(&row.name, (left - GAP, y), Anchor::End);
        let end = |value: Nanos| plot.x.place(value.0 as f64);
        let corners = [(end(Nanos::ZERO), y - 9), (end(bar.middle), y + 9)];
        canvas.rectangle(corners[0], corners[1], Ink::Column(bar.column));
        let reach = [(end(bar.reach.0), y), (end(bar.reach.1), y)];
        canvas.line(&reach, Ink::Text, 2.0);
        canvas.write(&bar.text, (WIDTH - FIGURES + 14, y), Anchor::Start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, assert_has};

    fn drawn(runs: &[punctual_model::Run], probe: &str) -> String {
        let matrix = Matrix::new(runs);
        let of_probe = |row: &&Measurement| row.probe == probe;
        let group: Vec<_> = matrix.rows.iter().filter(of_probe).cloned().collect();
        bars(&matrix, &group).unwrap().svg.into_string()
    }

    #[test]
    fn each_subject_has_its_bar_and_its_figure() {
        let svg = drawn(&fixtures::whole(), "hackbench");
        assert_eq!(svg.matches("<rect").count(), 4);
        let texts = ["0.101 s (0.100–0.102 s)", "0.301 s (0.300–0.302 s)"];
        assert_has(&svg, &texts);
    }

    #[test]
    fn variants_of_a_probe_share_a_figure() {
        let svg = drawn(&fixtures::all_probes(), "semaphore");
        assert_eq!(svg.matches("<rect").count(), 2 * 2);
        let average = "3.04 µs (3.00–3.10 µs)";
        assert_has(&svg, &[">acquire<", ">release<", average, ">rt<"]);
    }

    #[test]
    fn a_name_with_its_clock_has_room() {
        let mut runs = [fixtures::whole(), fixtures::whole()].concat();
        for run in &mut runs[4..] {
            run.machine = punctual_model::MachineRecord::default();
        }
        for run in &mut runs {
            run.subject.name = format!("a-long-name-of-{}", run.subject.name);
        }
        let svg = drawn(&runs, "hackbench");
        let names = svg.split(" text-anchor=\"end\">").skip(1);
        let names = names.filter_map(|text| text.split_once('<').map(|(name, _)| name));
        let widest = names.map(super::super::canvas::width).max().unwrap();
        assert!(widest > NAMES, "{svg}");
        let place = format!("x=\"{widest}\"");
        assert!(svg.contains(&place), "{svg}");
    }

    #[test]
    fn one_value_is_no_range() {
        let limit = fixtures::recording(["irqrate", "idle", "burst of 1000"], &[25_000]);
        let runs = [fixtures::run_with(vec![limit])];
        assert_has(&drawn(&runs, "irqrate"), &[">25.0 µs<"]);
        let work = ["hackbench", "idle", "pipe process 1"];
        let work = fixtures::recording(work, &[301_234_567]);
        let runs = [fixtures::run_with(vec![work])];
        assert_has(&drawn(&runs, "hackbench"), &[">0.301 s<"]);
    }
}

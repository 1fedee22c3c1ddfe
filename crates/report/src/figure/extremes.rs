//! The average and the maximum of each subject: two bars, from zero.

use plotters::prelude::{Color as _, Rectangle};
use plotters::style::text_anchor::{HPos, VPos};
use punctual_model::units::Nanos;

use super::axis::{Axis, Plot, time_name};
use super::canvas::{Area, Drawn, LEGEND, WIDTH, colour, drawing, write};
use super::{Figure, Kind, series, without};
use crate::matrix::{Matrix, Measurement};
use crate::stats::Stats;

/// The probes of whose services the average and the maximum are wanted.
const PROBES: [&str; 5] = ["tick", "irq", "irqrate", "semaphore", "mutex"];
const BAR: i32 = 20;
const ROW: i32 = 64;
const TITLE: i32 = 46;
const TOP: i32 = 12;

/// The measurements that belong into one figure: those of one probe under one load.
pub fn groups<'a>(matrix: &'a Matrix<'_>) -> impl Iterator<Item = Vec<Measurement>> + 'a {
    let rows = matrix
        .rows
        .iter()
        .filter(|row| PROBES.contains(&row.probe.as_str()));
    // What is no tick has another cause each time: its average says nothing.
    let rows = rows.filter(|row| row.probe != "tick" || row.variant == "tick");
    let rows: Vec<Measurement> = rows.cloned().collect();
    let alike = |one: &Measurement, other: &Measurement| {
        (&one.probe, &one.load) == (&other.probe, &other.load)
    };
    let groups: Vec<Vec<Measurement>> = rows.chunk_by(alike).map(<[_]>::to_vec).collect();
    groups.into_iter()
}

/// A subject's bars, or a title over some of them.
struct Line {
    top: i32,
    name: String,
    /// Nothing where it is a title.
    bars: Option<Bars>,
}

#[derive(Clone, Copy)]
struct Bars {
    column: usize,
    mean: Nanos,
    worst: Nanos,
    single: bool,
}

/// The figure; `None` where there are no samples.
pub fn extremes(matrix: &Matrix<'_>, group: &[Measurement]) -> Option<Figure> {
    let (mut lines, mut top, mut drawn) = (Vec::new(), TOP, Vec::new());
    for row in group {
        let all = series(matrix, row);
        if all.is_empty() {
            continue;
        }
        if !row.variant.is_empty() {
            let name = row.variant.clone();
            lines.push(Line {
                top,
                name,
                bars: None,
            });
            top += TITLE;
        }
        for one in all {
            let stats = Stats::of(&one.found);
            let bars = stats.mean.zip(stats.worst()).map(|(mean, worst)| Bars {
                column: one.column,
                mean,
                worst,
                single: stats.count == 1,
            });
            let name = one.name.clone();
            lines.push(Line { top, name, bars });
            top += ROW;
            drawn.push(one);
        }
    }
    let bars = || lines.iter().filter_map(|line| line.bars);
    let longest = bars().map(|bars| bars.worst).max()?;
    let plot = Plot {
        x: Axis::from_zero(longest.0 as f64 * 1.02, (260, WIDTH - LEGEND)),
        y: Axis::from_zero(1.0, (top, TOP)),
    };
    let svg = drawing(top + 90, |area| draw(area, &plot, &lines));
    let single = bars().all(|bars| bars.single);
    let reading = if single {
        "One value for each subject. Shorter is better."
    } else {
        "The full bar reaches to the maximum, the bar above it to the average. Shorter is better."
    };
    let caption: Vec<String> = std::iter::once(reading.to_owned())
        .chain(without(matrix, &drawn))
        .collect();
    let mut whole = group.first()?.clone();
    whole.variant.clear();
    Some(Figure::new(Kind::Extremes, &whole, caption.join(" "), &svg))
}

fn draw(area: &Area<'_>, plot: &Plot, lines: &[Line]) -> Drawn {
    plot.draw_x(area, time_name)?;
    let right = WIDTH - LEGEND + 30;
    for line in lines {
        let Some(bars) = line.bars else {
            let at = (20, line.top + TITLE - 14);
            write(area, &line.name, at, HPos::Left, VPos::Bottom)?;
            continue;
        };
        let middle = line.top + ROW / 2;
        write(area, &line.name, (240, middle), HPos::Right, VPos::Center)?;
        let left = plot.x.place(0.0);
        let end = |value: Nanos| plot.x.place(value.0 as f64);
        let style = colour(bars.column);
        if bars.single {
            let corners = [
                (left, middle - BAR / 2),
                (end(bars.worst), middle + BAR / 2),
            ];
            area.draw(&Rectangle::new(corners, style.filled()))?;
            write(
                area,
                &bars.worst.to_string(),
                (right, middle),
                HPos::Left,
                VPos::Center,
            )?;
            continue;
        }
        let above = [(left, middle - BAR - 1), (end(bars.mean), middle - 1)];
        area.draw(&Rectangle::new(above, style.mix(0.5).filled()))?;
        let below = [(left, middle + 1), (end(bars.worst), middle + BAR + 1)];
        area.draw(&Rectangle::new(below, style.filled()))?;
        let texts = [
            (bars.mean, "avg", middle - 14),
            (bars.worst, "max", middle + 14),
        ];
        for (value, word, y) in texts {
            write(
                area,
                &format!("{word} {value}"),
                (right, y),
                HPos::Left,
                VPos::Center,
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use punctual_model::RecordingKey;

    use punctual_model::recording::Recorder;

    use super::*;
    use crate::fixtures;

    #[test]
    fn variants_of_a_probe_share_a_figure_with_two_bars_for_each_subject() {
        let runs = fixtures::all_probes();
        let matrix = Matrix::new(&runs);
        let groups: Vec<_> = groups(&matrix).collect();
        assert_eq!(groups.len(), 1);
        let figure = extremes(&matrix, &groups[0]).unwrap();
        assert_eq!(figure.subject, "semaphore, idle");
        assert_eq!(figure.inline().matches("<rect").count(), 2 * 2 * 2);
        for text in ["acquire", "release", "avg 3.04 µs", "max 3.10 µs", "rt"] {
            assert!(figure.inline().contains(&format!("\n{text}\n")), "{text}");
        }
    }

    #[test]
    fn one_value_has_one_bar() {
        let mut run = fixtures::run("rt", 1);
        let mut recorder = Recorder::new(1);
        recorder.record(Nanos::ZERO, Nanos(25_000));
        run.recordings =
            vec![recorder.finish(RecordingKey::new("irqrate", "idle", "burst of 1000"))];
        let runs = [run];
        let matrix = Matrix::new(&runs);
        let figure = extremes(&matrix, &groups(&matrix).next().unwrap()).unwrap();
        assert_eq!(figure.inline().matches("<rect").count(), 1);
        assert!(figure.inline().contains("\n25.0 µs\n"));
    }
}

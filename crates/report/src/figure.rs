// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures as SVG, made for white and for black paper alike.

mod against;
mod axis;
mod bars;
mod canvas;
mod counts;
mod distribution;
mod each;
mod histogram;
mod seeds;
mod time;

use maud::Markup;
use punctual_model::run::Run;

use crate::matrix::{Cell, Column, Matrix, Measured, Measurement};
use crate::text::{cut, list, thousands};
use punctual_model::probe::Shape;

pub use against::against;
pub use bars::bars;
pub use counts::counts;
pub use distribution::distribution;
pub use each::each;
pub use histogram::histogram;
pub use seeds::seeds;
pub use time::over_time;

/// A subject with fewer samples than this is not drawn: the table says all of them.
const FEWEST: u64 = 20;

/// What a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Which share of samples was at least so late.
    Distribution,
    /// How often each latency occurred.
    Histogram,
    /// Each sample at its time.
    OverTime,
    /// Each signed sample by its number.
    Jitter,
    /// The worst case and the middle against the number of threads.
    Against,
    /// The worst case of each seed.
    Seeds,
    /// The middle of each subject's samples, and how far they reach.
    Bars,
    /// How long each execution took.
    Each,
    /// How many samples fell into the steps of a published histogram.
    Counts,
}

impl Kind {
    /// What it shows, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Distribution => "Share of samples at least so late",
            Self::Histogram => "How often each latency occurred",
            Self::OverTime => "Latency against time",
            Self::Jitter => "Jitter against sample number",
            Self::Against => "Against the number of threads",
            Self::Seeds => "Worst case of each seed",
            Self::Bars => "Average and reach",
            Self::Each => "Each execution",
            Self::Counts => "In the steps of the published histogram",
        }
    }

    /// Whether a page shows it only when asked to.
    pub fn is_detail(self) -> bool {
        matches!(self, Self::Histogram | Self::OverTime | Self::Jitter)
    }
}

/// What a sign of a figure stands for.
#[derive(Clone, Debug)]
pub struct Key {
    /// The sign.
    pub swatch: Markup,
    /// Whose it is.
    pub text: String,
}

impl Key {
    /// A subject's, by the number of its column.
    fn of(column: usize, text: String) -> Self {
        let swatch = canvas::swatch(column);
        Self { swatch, text }
    }

    /// One with a sign of its own.
    fn drawn(sign: canvas::Canvas, text: String) -> Self {
        let swatch = sign.swatch();
        Self { swatch, text }
    }
}

/// A figure and what is to be said about it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it shows.
    pub kind: Kind,
    /// Which measurement it shows.
    pub subject: String,
    /// Whose lines are whose.
    pub keys: Vec<Key>,
    /// How to read it, and what it leaves out.
    pub caption: String,
    /// The `svg` element.
    pub svg: Markup,
}

impl Figure {
    fn new(
        kind: Kind,
        row: &Measurement,
        keys: Vec<Key>,
        caption: &[String],
        canvas: canvas::Canvas,
    ) -> Self {
        let subject = row.title();
        let svg = canvas.finish(&format!("{}: {subject}", kind.name()));
        Self {
            kind,
            subject,
            keys,
            caption: caption.join(" "),
            svg,
        }
    }
}

/// All figures of one probe under one load, those that count first.
#[derive(Debug)]
pub struct Group {
    /// Which probe, under which load.
    pub title: String,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// All figures for which these runs have samples.
pub fn groups(runs: &[Run]) -> Vec<Group> {
    of_matrix(&Matrix::new(runs))
}

/// The same, in the order of a matrix's rows.
pub fn of_matrix(matrix: &Matrix<'_>) -> Vec<Group> {
    let alike = |one: &Measurement, other: &Measurement| {
        (&one.probe, &one.load) == (&other.probe, &other.load)
    };
    let groups = matrix.rows.chunk_by(alike).map(|rows| Group {
        title: format!("{}, {}", rows[0].probe, rows[0].load),
        figures: figures(matrix, rows),
    });
    groups.filter(|group| !group.figures.is_empty()).collect()
}

fn figures(matrix: &Matrix<'_>, rows: &[Measurement]) -> Vec<Figure> {
    let view = rows[0].view();
    // Where a verdict counts, the times are few and say little.
    let latencies = || {
        let is_latency = !rows[0].is_throughput() && view.verdict().is_none();
        rows.iter().filter(move |_| is_latency)
    };
    let is_steps = view.shape == Shape::Steps;
    let each_alone = || latencies().filter(|_| !is_steps);
    let mut figures: Vec<Figure> = each_alone()
        .filter_map(|row| distribution(matrix, row))
        .collect();
    if is_steps {
        figures.extend(against(matrix, rows));
    } else {
        let alone = latencies().filter_map(|row| against(matrix, std::slice::from_ref(row)));
        figures.extend(alone);
    }
    figures.extend(bars(matrix, rows));
    figures.extend(latencies().filter_map(|row| seeds(matrix, row)));
    figures.extend(rows.iter().filter_map(|row| each(matrix, row)));
    let unsigned = each_alone().filter(|row| row.view().shape != Shape::Jitter);
    figures.extend(unsigned.filter_map(|row| histogram(matrix, row)));
    figures.extend(each_alone().filter_map(|row| over_time(matrix, row)));
    figures
}

/// A name that fits beside a bar.
const NAME: usize = 18;

/// A subject that has samples to draw.
struct Series<'a> {
    /// The number of its column, which gives it its colour and its dashes.
    column: usize,
    name: String,
    found: Vec<Measured<'a>>,
}

impl Series<'_> {
    /// How many samples there are.
    fn count(&self) -> u64 {
        self.found.iter().map(|one| one.recording.count).sum()
    }

    /// Its name, and how many samples there are.
    fn counted(&self) -> String {
        format!("{}, n = {}", self.name, thousands(self.count()))
    }
}

/// Whether there are enough samples for a line of their own.
fn is_drawn(series: &Series<'_>) -> bool {
    series.count() >= FEWEST
}

/// The subjects with samples of a measurement.
fn series<'a>(matrix: &Matrix<'a>, row: &Measurement) -> Vec<Series<'a>> {
    let mixed = matrix.is_mixed();
    let name = |column: &Column<'_>| {
        let name = cut(&column.name, NAME);
        if mixed {
            format!("{name} ({})", column.clock())
        } else {
            name
        }
    };
    let of = |(at, column): (usize, &Column<'a>)| match column.cell(row) {
        Cell::Measured { mut found, .. } => {
            found.retain(|one| one.recording.count > 0);
            (!found.is_empty()).then(|| Series {
                column: at,
                name: name(column),
                found,
            })
        }
        _ => None,
    };
    matrix.columns.iter().enumerate().filter_map(of).collect()
}

/// What the caption must say of subjects that are not drawn.
fn without(matrix: &Matrix<'_>, drawn: &[Series<'_>]) -> Option<String> {
    let absent: Vec<String> = (0..matrix.columns.len())
        .filter(|at| drawn.iter().all(|series| series.column != *at))
        .map(|at| matrix.columns[at].name.clone())
        .collect();
    (!absent.is_empty()).then(|| format!("Not drawn, without enough samples: {}.", list(&absent)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn all(runs: &[Run]) -> Vec<Figure> {
        let groups = groups(runs).into_iter();
        groups.flat_map(|group| group.figures).collect()
    }

    #[test]
    fn every_measurement_has_its_figures() {
        let kinds = |runs: &[Run]| all(runs).iter().map(|one| one.kind).collect::<Vec<_>>();
        let timer = [Kind::Distribution, Kind::Histogram, Kind::OverTime];
        assert_eq!(
            kinds(&fixtures::whole()),
            [&timer[..], &timer, &[Kind::Bars]].concat()
        );
        let timer = [
            Kind::Distribution,
            Kind::Seeds,
            Kind::Histogram,
            Kind::OverTime,
        ];
        assert_eq!(
            kinds(&fixtures::seeds(2)),
            [&timer[..], &timer, &[Kind::Bars]].concat()
        );
        assert!(kinds(&[]).is_empty());
    }

    #[test]
    fn few_samples_are_not_drawn() {
        let runs = fixtures::all_probes();
        let titles: Vec<String> = groups(&runs).into_iter().map(|group| group.title).collect();
        assert_eq!(titles, ["switch, idle", "semaphore, idle", "image, idle"]);
    }

    #[test]
    fn figures_suit_light_and_dark_paper_and_need_nothing_else() {
        for figure in all(&fixtures::seeds(2)) {
            let svg = figure.svg.0;
            assert!(
                svg.starts_with("<svg viewBox=") && svg.contains("role=\"img\""),
                "{svg}"
            );
            assert!(svg.contains("currentColor"), "{svg}");
            assert!(!svg.contains("http") && !svg.contains("#fff"), "{svg}");
        }
    }

    #[test]
    fn a_name_cannot_leave_its_place() {
        let mut runs = fixtures::whole();
        runs[0].subject.name = "<script>".into();
        runs[0].recordings[1].key.variant = "\"><script>".into();
        for figure in all(&runs) {
            assert!(!figure.svg.0.contains("<script"), "{}", figure.subject);
        }
    }

    #[test]
    fn subjects_without_samples_are_named() {
        for figure in all(&fixtures::with_gaps()) {
            let caption = figure.caption;
            assert!(
                caption.contains("without enough samples: full."),
                "{caption}"
            );
        }
    }
}

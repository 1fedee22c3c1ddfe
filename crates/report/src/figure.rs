//! Figures as SVG, made for white and for black paper alike.

mod against;
mod axis;
mod bars;
mod canvas;
mod counts;
mod each;
mod extremes;
mod histogram;
mod seeds;
mod time;

use punctual_model::run::Run;

use crate::matrix::{Cell, Column, Matrix, Measured, Measurement};
use punctual_model::probe::Shape;

pub use against::against;
pub use bars::bars;
pub use counts::counts;
pub use each::each;
pub use extremes::extremes;
pub use histogram::histogram;
pub use seeds::seeds;
pub use time::over_time;

/// What a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// How often each latency occurred.
    Histogram,
    /// Each sample at its time.
    OverTime,
    /// Each signed sample by its number.
    Jitter,
    /// The average and the maximum of each subject.
    Extremes,
    /// The worst case and the middle against the number of threads.
    Against,
    /// The worst case of each seed.
    Seeds,
    /// How long work took.
    Bars,
    /// How long each execution took.
    Each,
    /// How many samples fell into the steps of a published histogram.
    Counts,
}

/// A figure and what is to be said about it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it is about.
    pub kind: Kind,
    /// Which measurement it shows.
    pub subject: String,
    /// What it shows of which measurement.
    pub title: String,
    /// How to read it, and what it leaves out.
    pub caption: String,
    svg: String,
}

impl Figure {
    fn new(kind: Kind, row: &Measurement, caption: String, drawing: &str) -> Self {
        let subject = row.title();
        let what = match kind {
            Kind::Histogram => "How often each latency occurred",
            Kind::OverTime => "Latency against time",
            Kind::Jitter => "Jitter against sample number",
            Kind::Extremes => "Average and maximum",
            Kind::Against => "Against the number of threads",
            Kind::Seeds => "Worst case of each seed",
            Kind::Bars => "How long it took",
            Kind::Each => "Each execution",
            Kind::Counts => "In the steps of the published histogram",
        };
        let title = format!("{what}: {subject}");
        let svg = canvas::finish(drawing, &title);
        Self {
            kind,
            subject,
            title,
            caption,
            svg,
        }
    }

    /// The `svg` element, for a page.
    pub fn inline(&self) -> &str {
        &self.svg
    }

    /// The figure as a file of its own.
    pub fn file(&self) -> String {
        let name_space = "<svg xmlns=\"http://www.w3.org/2000/svg\"";
        self.svg.replacen("<svg", name_space, 1)
    }
}

/// All figures that these runs have matter for, in the order in which they are read.
pub fn figures(runs: &[Run]) -> Vec<Figure> {
    let matrix = Matrix::new(runs);
    let groups = matrix.groups();
    // Of steps the first is drawn alone; all of them are in the figure against their number.
    let rows = || groups.iter().map(|group| &group[0]);
    // Where a verdict counts, the times are few and say little.
    let latencies = || rows().filter(|row| !row.is_throughput() && row.view().verdict().is_none());
    let unsigned = latencies().filter(|row| row.view().shape != Shape::Jitter);
    let work = rows().filter(|row| row.is_throughput());
    let mut figures: Vec<Figure> = unsigned.filter_map(|row| histogram(&matrix, row)).collect();
    figures.extend(latencies().filter_map(|row| over_time(&matrix, row)));
    figures.extend(groups.iter().filter_map(|group| against(&matrix, group)));
    figures.extend(extremes::groups(&matrix).filter_map(|group| extremes(&matrix, &group)));
    figures.extend(latencies().filter_map(|row| seeds(&matrix, row)));
    figures.extend(work.clone().filter_map(|row| bars(&matrix, row)));
    figures.extend(work.filter_map(|row| each(&matrix, row)));
    figures
}

/// A subject that has samples to draw.
struct Series<'a> {
    /// The number of its column, which gives it its colour and its dashes.
    column: usize,
    name: String,
    found: Vec<Measured<'a>>,
}

/// The subjects with samples of a measurement.
fn series<'a>(matrix: &Matrix<'a>, row: &Measurement) -> Vec<Series<'a>> {
    let mixed = matrix.is_mixed();
    let name = |column: &Column<'_>| {
        let name = canvas::short(&column.name);
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
    (!absent.is_empty()).then(|| format!("Without samples: {}.", crate::stats::list(&absent)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn every_measurement_has_its_figures() {
        let kinds = |runs: &[Run]| {
            figures(runs)
                .iter()
                .map(|figure| figure.kind)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            kinds(&fixtures::whole()),
            [
                Kind::Histogram,
                Kind::Histogram,
                Kind::OverTime,
                Kind::OverTime,
                Kind::Bars
            ]
        );
        assert_eq!(
            kinds(&fixtures::seeds(2))[4..],
            [Kind::Seeds, Kind::Seeds, Kind::Bars]
        );
        assert!(kinds(&[]).is_empty());
    }

    #[test]
    fn figures_suit_light_and_dark_paper_and_need_nothing_else() {
        for figure in figures(&fixtures::seeds(2)) {
            let svg = figure.inline();
            assert!(
                svg.starts_with("<svg viewBox=") && svg.contains("role=\"img\""),
                "{svg}"
            );
            assert!(
                svg.contains("currentColor") && !svg.contains("#0102"),
                "{svg}"
            );
            assert!(!svg.contains("http") && !svg.contains("#FFFFFF"), "{svg}");
            assert!(
                figure
                    .file()
                    .contains("xmlns=\"http://www.w3.org/2000/svg\"")
            );
        }
    }

    #[test]
    fn a_name_cannot_leave_its_place() {
        let mut runs = fixtures::whole();
        runs[0].subject.name = "<script>".into();
        runs[0].recordings[1].variant = "\"><script>".into();
        for figure in figures(&runs) {
            assert!(!figure.inline().contains("<script"), "{}", figure.title);
        }
    }

    #[test]
    fn subjects_without_samples_are_named() {
        for figure in figures(&fixtures::with_gaps()) {
            assert!(
                figure.caption.contains("Without samples: full."),
                "{}",
                figure.caption
            );
        }
    }
}

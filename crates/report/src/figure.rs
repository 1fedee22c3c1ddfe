// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures as SVG, made for white and for black paper alike.

mod against;
mod axis;
mod bars;
mod canvas;
mod counts;
mod distribution;
mod each;
mod growth;
mod histogram;
mod releases;
mod seeds;
mod time;

use maud::Markup;

use crate::matrix::{Column, Matrix, Measured, Measurement};
use crate::text::{cut, list, thousands};
use punctual_model::Nanos;
use punctual_model::histogram::{Bin, is_close};
use punctual_model::probe::Shape;

pub use against::against;
pub use bars::bars;
pub use counts::counts;
pub use distribution::distribution;
pub use each::each;
pub use growth::growth;
pub use histogram::histogram;
pub use releases::by_release;
pub use seeds::seeds;
pub use time::over_time;

/// A subject with fewer samples than this is not drawn: the table says all of them.
const FEWEST: u64 = 20;

/// The kind of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The share of samples at least so late.
    Distribution,
    /// The frequency of each latency.
    Histogram,
    /// Each sample at its time.
    OverTime,
    /// Each signed sample by its number.
    Jitter,
    /// The worst case and the middle against the number of threads.
    Against,
    /// The worst case of each run.
    Seeds,
    /// The middle of each subject's samples, and their range.
    Bars,
    /// The time of each execution.
    Each,
    /// The number of samples in each step of a published histogram.
    Counts,
}

impl Kind {
    /// Returns the kind in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Distribution => "Share of samples at least so late",
            Self::Histogram => "How often each latency occurred",
            Self::OverTime => "Latency against time",
            Self::Jitter => "Jitter against sample number",
            Self::Against => "Against the number of threads",
            Self::Seeds => "Worst case of each run",
            Self::Bars => "Middle and range",
            Self::Each => "Each execution",
            Self::Counts => "In the steps of the published histogram",
        }
    }
}

/// The key to a sign of a figure.
#[derive(Clone, Debug)]
pub struct Key {
    /// The sign.
    pub swatch: Markup,
    /// The name of its owner.
    pub text: String,
}

impl Key {
    /// A subject's, by the number of its column.
    fn of(column: usize, text: String) -> Self {
        let swatch = canvas::swatch(column);
        Self { swatch, text }
    }
}

/// A key for each subject, by its name.
fn keys(series: &[Series<'_>]) -> Vec<Key> {
    let keys = series
        .iter()
        .map(|one| Key::of(one.column, one.name.clone()));
    keys.collect()
}

/// A figure with its explanations.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its kind.
    pub kind: Kind,
    /// The measurement that it shows.
    pub subject: String,
    /// The keys to its lines.
    pub keys: Vec<Key>,
    /// Instructions for reading it, and omissions.
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

/// All figures of one probe under one load, in order of importance.
#[derive(Debug)]
pub struct Group {
    /// The probe and the load.
    pub title: String,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// All figures that have samples, in the order of the matrix's rows.
pub fn groups(matrix: &Matrix<'_>) -> Vec<Group> {
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
    let is_latency = !rows[0].is_throughput() && view.verdict().is_none();
    let latencies = if is_latency { rows } else { &[] };
    let (alone, groups): (&[Measurement], _) = match view.shape {
        Shape::Steps => (&[], latencies.chunks(latencies.len().max(1))),
        _ => (latencies, latencies.chunks(1)),
    };
    let unsigned = alone.iter().filter(|row| row.view().shape != Shape::Jitter);
    let mut figures = Vec::new();
    figures.extend(alone.iter().filter_map(|row| distribution(matrix, row)));
    figures.extend(groups.filter_map(|rows| against(matrix, rows)));
    figures.extend(bars(matrix, rows));
    figures.extend(latencies.iter().filter_map(|row| seeds(matrix, row)));
    figures.extend(rows.iter().filter_map(|row| each(matrix, row)));
    figures.extend(unsigned.filter_map(|row| histogram(matrix, row)));
    figures.extend(alone.iter().filter_map(|row| over_time(matrix, row)));
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
    /// Counts the samples.
    fn count(&self) -> u64 {
        self.found.iter().map(|one| one.recording.count).sum()
    }
}

/// Returns true if there are enough samples for a line of their own.
fn is_drawn(series: &Series<'_>) -> bool {
    series.count() >= FEWEST
}

/// Counts the samples in those of another program's bins that satisfy `is_such`.
fn counted_in(series: &Series<'_>, is_such: impl Fn(&Bin) -> bool) -> u64 {
    let found = series.found.iter();
    let bins = found.flat_map(|one| one.recording.histogram.foreign());
    bins.filter(is_such).map(|bin| bin.count).sum()
}

/// Returns true unless more than one sample in a hundred may be anywhere between a value and more
/// than twice that value. Other programs may give only the smallest and the largest.
fn is_placed(series: &Series<'_>) -> bool {
    has_places_from(series, Nanos(i64::MIN))
}

/// The same of the samples' tail alone: what is known to lie below a tenth of the worst does not
/// move it.
fn has_tail(series: &Series<'_>) -> bool {
    let found = series.found.iter();
    let worst = found.filter_map(|one| Some(one.recording.extremes?.1));
    has_places_from(series, Nanos(worst.max().unwrap_or_default().0 / 10))
}

fn has_places_from(series: &Series<'_>, least: Nanos) -> bool {
    let anywhere = |bin: &Bin| bin.high > bin.low * 2 && bin.high > least;
    counted_in(series, anywhere).saturating_mul(100) <= series.count()
}

/// The edge of a bin at which a figure draws its samples.
#[derive(Clone, Copy)]
enum Edge {
    Lower,
    Upper,
}

/// Returns the caption's sentence about samples whose bins are wider than a histogram's own, and
/// which have a place there.
fn at_edges(series: &[Series<'_>], edge: Edge) -> Option<String> {
    let (name, place): (_, fn(&Bin) -> Nanos) = match edge {
        Edge::Lower => ("lower", |bin| bin.low),
        Edge::Upper => ("upper", |bin| bin.high),
    };
    let is_wide = |bin: &Bin| !is_close(bin.low, bin.high) && axis::drawable(place(bin)).is_some();
    let count: u64 = series.iter().map(|one| counted_in(one, is_wide)).sum();
    let told = thousands(count);
    (count > 0).then(|| format!("Samples in wide bins are drawn at the {name} edge: {told}."))
}

/// Returns the caption's sentence about subjects that are not drawn because their samples are not
/// placed.
fn not_placed(series: &[Series<'_>]) -> Option<String> {
    let names: Vec<String> = series.iter().map(|one| one.name.clone()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Not drawn, because their distribution is known only in part: {}.",
            list(&names)
        )
    })
}

/// The subjects with samples of a measurement.
fn series<'a>(matrix: &Matrix<'a>, row: &Measurement) -> Vec<Series<'a>> {
    let mixed = matrix.is_mixed();
    let name = |column: &Column<'_>| match (mixed, cut(&column.name, NAME)) {
        (true, name) => format!("{name} ({})", column.time()),
        (false, name) => name,
    };
    let of = |(at, column): (usize, &Column<'a>)| Series {
        column: at,
        name: name(column),
        found: column.sampled(row),
    };
    let all = matrix.columns.iter().enumerate().map(of);
    all.filter(|series| !series.found.is_empty()).collect()
}

/// The least and the largest of some values, and of the limits beside them.
fn with_limits((least, most): (f64, f64), bounds: &[Nanos]) -> (f64, f64) {
    let bounds = bounds.iter().filter_map(|bound| axis::drawable(*bound));
    bounds.fold((least, most), |(least, most), bound| {
        (least.min(bound), most.max(bound))
    })
}

/// Returns the caption's sentence about limits.
fn of_limits(bounds: &[Nanos]) -> Option<String> {
    let told: Vec<String> = bounds.iter().map(ToString::to_string).collect();
    match told.as_slice() {
        [] => None,
        [one] => Some(format!("The dotted line is the limit: {one}.")),
        several => Some(format!(
            "The dotted lines are the limits: {}.",
            list(several)
        )),
    }
}

/// Returns the caption's sentence about subjects that are not drawn.
fn without(matrix: &Matrix<'_>, drawn: &[Series<'_>]) -> Option<String> {
    let columns = matrix.columns.iter().enumerate();
    let absent: Vec<String> = columns
        .filter(|(at, _)| drawn.iter().all(|series| series.column != *at))
        .map(|(_, column)| column.name.clone())
        .collect();
    (!absent.is_empty()).then(|| format!("Not drawn, without enough samples: {}.", list(&absent)))
}

#[cfg(test)]
mod tests {
    use punctual_model::Limit;
    use punctual_model::limit::Demand;
    use punctual_model::run::Run;

    use super::*;
    use crate::fixtures::{self, assert_has};

    fn all(runs: &[Run]) -> Vec<Figure> {
        let groups = groups(&Matrix::new(runs)).into_iter();
        groups.flat_map(|group| group.figures).collect()
    }

    #[test]
    fn every_measurement_has_its_figures() {
        let kinds = |runs: &[Run]| all(runs).iter().map(|one| one.kind).collect::<Vec<_>>();
        let timer = [Kind::Distribution, Kind::Histogram, Kind::OverTime];
        let expected = [&timer[..], &timer, &[Kind::Bars]].concat();
        assert_eq!(kinds(&fixtures::whole()), expected);
        let [first, more @ ..] = timer;
        let timer = [&[first, Kind::Seeds], &more[..]].concat();
        let expected = [&timer[..], &timer, &[Kind::Bars]].concat();
        assert_eq!(kinds(&fixtures::seeds(2)), expected);
        assert!(kinds(&[]).is_empty());
    }

    #[test]
    fn a_limit_is_drawn_with_its_value_where_it_is_meant() {
        let runs = fixtures::seeds(2);
        let mut matrix = Matrix::new(&runs);
        let limit = Limit {
            name: None,
            probe: "timer".into(),
            load: Some("stress".into()),
            variant: None,
            part: None,
            subject: None,
            demand: Demand::Never(Nanos::from_micros(900)),
            confidence: 0.95,
            runs: None,
        };
        let without: Vec<Figure> = groups(&matrix)
            .into_iter()
            .flat_map(|one| one.figures)
            .collect();
        matrix.limits = vec![limit];
        let with: Vec<Figure> = groups(&matrix)
            .into_iter()
            .flat_map(|one| one.figures)
            .collect();
        let limited = [Kind::Distribution, Kind::Seeds, Kind::Histogram];
        for (without, with) in without.into_iter().zip(with) {
            let dotted = |one: &Figure| {
                one.svg
                    .clone()
                    .into_string()
                    .matches("stroke-dasharray=\"2 4\"")
                    .count()
            };
            let is_meant = limited.contains(&with.kind) && with.subject.contains("stress");
            let told = format!("{:?} of {}", with.kind, with.subject);
            assert_eq!(
                dotted(&with),
                dotted(&without) + usize::from(is_meant),
                "{told}"
            );
            let caption = with
                .caption
                .contains("The dotted line is the limit: 900 µs.");
            assert_eq!(caption, is_meant, "{told}");
            let value = with.svg.into_string().contains(">limit 900 µs<");
            assert_eq!(value, is_meant && with.kind != Kind::Seeds, "{told}");
        }
    }

    #[test]
    fn few_samples_are_not_drawn() {
        let runs = fixtures::all_probes();
        let groups = groups(&Matrix::new(&runs)).into_iter();
        let titles: Vec<String> = groups.map(|group| group.title).collect();
        assert_eq!(titles, ["switch, idle", "semaphore, idle", "image, idle"]);
    }

    #[test]
    fn figures_suit_light_and_dark_paper_and_need_nothing_else() {
        for figure in all(&fixtures::seeds(2)) {
            let svg = figure.svg.0;
            assert!(svg.starts_with("<svg viewBox="), "{svg}");
            assert_has(&svg, &["role=\"img\"", "currentColor"]);
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
            assert_has(&caption, &["without enough samples: full."]);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of kernels for programs.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Change, Level, Line, News, OfRun, Release, Row};
use crate::names::Names;
use crate::scope::json::Told;
use crate::why::{Different, Why};

/// The form's name and version; `docs/schema/series-1.json` describes it.
const SCHEMA: &str = "punctual.series/1";

/// `punctual.series/1`: times in nanoseconds.
/// `docs/schema/series-1.json` describes it. `news` is present if news are asked for.
pub fn series_json(lines: &[Line], news: Option<&News>) -> Value {
    json!(Document {
        schema: SCHEMA,
        lines: lines.iter().map(line_of).collect(),
        news: news.map(|news| night(lines, news)),
    })
}

/// Lines of kernels, release by release. Times are whole nanoseconds; in virtual time they are
/// lengths of code paths. New fields may be added to version 1; none is removed or changes its
/// meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The lines.
    lines: Vec<LineOf<'a>>,
    /// The news since the last time, with `--nightly`.
    #[serde(skip_serializing_if = "Option::is_none")]
    news: Option<Night<'a>>,
}

/// A line of kernels.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LineOf<'a> {
    /// The kernels' common name, without versions; boot arguments behind it.
    line: &'a str,
    /// The releases that could not be had, with the reasons.
    left_out: Vec<String>,
    /// The releases, the oldest first.
    releases: Vec<OfRelease<'a>>,
    /// Each figure of each measurement.
    figures: Vec<Figure<'a>>,
}

/// One release of a line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfRelease<'a> {
    /// The subject's name.
    subject: &'a str,
    /// The version, as short as tells it from the others of its line.
    version: &'a str,
    /// The reasons why runs of it have not finished.
    gaps: &'a [String],
}

/// The name of a figure.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Key<'a> {
    #[serde(flatten)]
    names: Names<'a>,
    /// The figure; `arrival` is the latest of every arrival, as it is foretold, and `reached` the
    /// latest aimed sample.
    #[cfg_attr(test, schemars(extend("enum" = ["worst", "median", "arrival", "reached"])))]
    figure: &'static str,
}

/// One figure of one measurement, release by release.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Figure<'a> {
    #[serde(flatten)]
    key: Key<'a>,
    /// The figures of each release's runs, in the order of the releases and of the seeds.
    values: Vec<Vec<Single<'a>>>,
    /// The levels between its changes.
    levels: Vec<Steady>,
    /// The changes that were explained.
    why: Vec<Reason<'a>>,
}

/// A run's figure.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Single<'a> {
    /// The run.
    run: &'a str,
    /// Its seed.
    seed: u64,
    /// Its digest; null in real time.
    digest: Option<&'a str>,
    /// The figure.
    ns: i64,
}

/// Releases without a change between them.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Steady {
    /// The number of the first release with figures, from 0.
    first: usize,
    /// The number of the last release with figures.
    last: usize,
    /// The middle figure of all their runs.
    middle_ns: i64,
    /// The smallest of these figures.
    least_ns: i64,
    /// The largest of these figures.
    most_ns: i64,
    /// The chance of so large a change as the one that it begins with; null for the first level.
    p: Option<f64>,
}

/// A change that was explained: a sample of the release that is different, and one of the release
/// before.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Reason<'a> {
    /// The number of the release that is different, from 0.
    release: usize,
    /// The run of that release.
    run: &'a str,
    /// The story of its sample.
    here: Told<'a>,
    /// The run of the release before.
    run_before: &'a str,
    /// The story of its sample.
    before: Told<'a>,
    #[serde(flatten)]
    different: Different<'a>,
}

/// The news since the last time.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Night<'a> {
    /// The outcome of the night.
    #[cfg_attr(
        test,
        schemars(extend("enum" = ["no change", "undecided", "incomplete", "changed"]))
    )]
    standing: &'static str,
    /// The changes, the largest first.
    changes: Vec<Changed<'a>>,
    /// The figures of a newest release that has too few runs.
    undecided: Vec<Place<'a>>,
    /// The releases that could not be had or measured, with the reasons.
    missing: &'a [String],
}

/// A figure of a line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Place<'a> {
    /// The line.
    line: &'a str,
    #[serde(flatten)]
    key: Key<'a>,
}

/// A change that was not told before.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Changed<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    /// The last release before the change.
    from: &'a str,
    /// The first release with it.
    to: &'a str,
    /// The middle figure of the releases before.
    before_ns: i64,
    /// The middle figure of the releases since.
    after_ns: i64,
    /// The ratio of the figures since to those before; null if one is not above zero.
    ratio: Option<f64>,
    /// The ratio's lower bound; null if there are too few runs.
    ratio_low: Option<f64>,
    /// The ratio's upper bound; null if there are too few runs.
    ratio_high: Option<f64>,
    /// The chance of so large a change.
    p: Option<f64>,
}

fn line_of(line: &Line) -> LineOf<'_> {
    LineOf {
        line: &line.name,
        left_out: line.left_out.iter().map(ToString::to_string).collect(),
        releases: line.releases.iter().map(release).collect(),
        figures: line.rows.iter().map(figure).collect(),
    }
}

fn release(one: &Release) -> OfRelease<'_> {
    OfRelease {
        subject: &one.subject,
        version: &one.version,
        gaps: &one.gaps,
    }
}

fn key(one: &Row) -> Key<'_> {
    Key {
        names: Names::from(&one.row),
        figure: one.figure.name(),
    }
}

fn figure(one: &Row) -> Figure<'_> {
    let values = one.values.iter();
    let values = values.map(|release| release.iter().map(single).collect());
    Figure {
        key: key(one),
        values: values.collect(),
        levels: one.levels().iter().map(level).collect(),
        why: one.why.iter().map(reason).collect(),
    }
}

fn single(one: &OfRun) -> Single<'_> {
    Single {
        run: &one.run,
        seed: one.seed,
        digest: one.digest.as_deref(),
        ns: one.value.0,
    }
}

fn level(one: &Level) -> Steady {
    Steady {
        first: one.releases.0,
        last: one.releases.1,
        middle_ns: one.middle.0,
        least_ns: one.ends.0.0,
        most_ns: one.ends.1.0,
        p: one.change.map(|change| change.p),
    }
}

fn reason((at, why): &(usize, Why)) -> Reason<'_> {
    let ((here, own), (there, other)) = (&why.here, &why.there);
    Reason {
        release: *at,
        run: &here.id,
        here: own.into(),
        run_before: &there.id,
        before: other.into(),
        different: why.different(),
    }
}

fn night<'a>(lines: &'a [Line], news: &'a News) -> Night<'a> {
    let undecided = news.undecided.iter();
    let undecided = undecided.map(|(line, row)| place(lines, *line, *row));
    Night {
        standing: news.standing().name(),
        changes: news.changes.iter().map(|one| changed(lines, one)).collect(),
        undecided: undecided.collect(),
        missing: &news.missing,
    }
}

fn place(lines: &[Line], line: usize, row: usize) -> Place<'_> {
    let line = &lines[line];
    Place {
        line: &line.name,
        key: key(&line.rows[row]),
    }
}

fn changed<'a>(lines: &'a [Line], one: &Change) -> Changed<'a> {
    let (from, to) = one.releases;
    let version = |at: usize| lines[one.line].releases[at].version.as_str();
    let bounds = one.compared.ratio.and_then(|ratio| ratio.bounds);
    let [before, after] = one.levels;
    Changed {
        place: place(lines, one.line, one.row),
        from: version(from),
        to: version(to),
        before_ns: before.middle.0,
        after_ns: after.middle.0,
        ratio: one.compared.ratio.map(|ratio| ratio.estimate),
        ratio_low: bounds.map(|(low, _)| low),
        ratio_high: bounds.map(|(_, high)| high),
        p: after.change.map(|change| change.p),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "series-1.json",
            "Lines of kernels, release by release: what `punctual series --json` prints",
        );
    }
}

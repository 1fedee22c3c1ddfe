// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of kernels for programs.

use serde_json::{Value, json};

use super::{Change, Level, Line, News, OfRun, Release, Row};
use crate::gate::Why;
use crate::scope::json::told;

/// `punctual.series/1`: times in nanoseconds.
/// `docs/schema/series-1.json` describes it. `news` is present if news are asked for.
pub fn series_json(lines: &[Line], news: Option<&News>) -> Value {
    let line = |line: &Line| {
        json!({
            "line": line.name,
            "left_out": line.left_out.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "releases": line.releases.iter().map(release).collect::<Vec<_>>(),
            "figures": line.rows.iter().map(row).collect::<Vec<_>>(),
        })
    };
    let mut told = json!({
        "schema": "punctual.series/1",
        "lines": lines.iter().map(line).collect::<Vec<_>>(),
    });
    if let Some(news) = news {
        told["news"] = of_news(lines, news);
    }
    told
}

fn of_news(lines: &[Line], news: &News) -> Value {
    let row = |(line, row): (usize, usize)| {
        let (line, row) = (&lines[line], &lines[line].rows[row]);
        json!({
            "line": line.name,
            "probe": row.row.probe,
            "load": row.row.load,
            "variant": row.row.variant,
            "repetition": row.row.repetition,
            "figure": row.figure.name(),
        })
    };
    let change = |one: &Change| {
        let mut told = row((one.line, one.row));
        let (from, to) = one.releases;
        let [from, to] = [from, to].map(|at| &lines[one.line].releases[at].version);
        let bounds = one.compared.ratio.and_then(|ratio| ratio.bounds);
        told["from"] = from.as_str().into();
        told["to"] = to.as_str().into();
        told["before_ns"] = one.levels[0].middle.0.into();
        told["after_ns"] = one.levels[1].middle.0.into();
        told["ratio"] = one.compared.ratio.map(|ratio| ratio.estimate).into();
        told["ratio_low"] = bounds.map(|(low, _)| low).into();
        told["ratio_high"] = bounds.map(|(_, high)| high).into();
        told["p"] = one.levels[1].change.map(|change| change.p).into();
        told
    };
    json!({
        "standing": news.standing().name(),
        "changes": news.changes.iter().map(change).collect::<Vec<_>>(),
        "undecided": news.undecided.iter().copied().map(row).collect::<Vec<_>>(),
        "missing": news.missing,
    })
}

fn release(one: &Release) -> Value {
    json!({ "subject": one.subject, "version": one.version, "gaps": one.gaps })
}

fn row(one: &Row) -> Value {
    let of_release = |release: &Vec<OfRun>| release.iter().map(run).collect::<Vec<_>>();
    json!({
        "probe": one.row.probe,
        "load": one.row.load,
        "variant": one.row.variant,
        "repetition": one.row.repetition,
        "figure": one.figure.name(),
        "values": one.values.iter().map(of_release).collect::<Vec<_>>(),
        "levels": one.levels().iter().map(level).collect::<Vec<_>>(),
        "why": one.why.iter().map(why).collect::<Vec<_>>(),
    })
}

fn run(one: &OfRun) -> Value {
    json!({ "run": one.run, "seed": one.seed, "digest": one.digest, "ns": one.value.0 })
}

fn level(one: &Level) -> Value {
    json!({
        "first": one.releases.0,
        "last": one.releases.1,
        "middle_ns": one.middle.0,
        "least_ns": one.ends.0.0,
        "most_ns": one.ends.1.0,
        "p": one.change.map(|change| change.p),
    })
}

fn why((at, why): &(usize, Why)) -> Value {
    let ((here, own), (there, other)) = (&why.here, &why.there);
    json!({
        "release": at,
        "run": here.id,
        "here": told(own),
        "run_before": there.id,
        "before": told(other),
    })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of kernels for programs.

use serde_json::{Value, json};

use super::{Level, Line, OfRun, Release, Row};
use crate::gate::Why;
use crate::scope::json::told;

/// `punctual.series/1`: times in nanoseconds. `docs/schema/series-1.json` describes it.
pub fn series_json(lines: &[Line]) -> Value {
    let line = |line: &Line| {
        json!({
            "line": line.name,
            "left_out": line.left_out,
            "releases": line.releases.iter().map(release).collect::<Vec<_>>(),
            "figures": line.rows.iter().map(row).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": "punctual.series/1",
        "lines": lines.iter().map(line).collect::<Vec<_>>(),
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

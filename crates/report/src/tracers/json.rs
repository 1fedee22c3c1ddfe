// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracers as JSON.

use serde_json::{Map, Value, json};

use super::{Agreement, Group, STAGES, Told, Traced, groups};
use crate::scope::text::sentence;
use crate::scope::told;

/// The schema that [`tracers_json`] names.
pub const TRACERS_SCHEMA: &str = "punctual.tracers/1";

/// The costs and stories of each tracer, on each kernel; the first of a kernel is without one.
pub fn tracers_json(all: &[Traced]) -> Value {
    let groups: Vec<Value> = groups(all).iter().map(group).collect();
    json!({ "schema": TRACERS_SCHEMA, "measured": groups })
}

fn group(group: &Group<'_>) -> Value {
    let ids: Vec<&str> = group.runs.iter().map(|one| one.run.id.as_str()).collect();
    let stages = STAGES.map(|stage| (stage.name().to_owned(), json!(group.stage(stage))));
    let is_there = group.absent().is_none();
    let count = |agreement: Agreement| (agreement.name().to_owned(), group.count(agreement).into());
    let counts = Agreement::ALL.map(count);
    let samples = group.runs.iter().flat_map(|one| {
        let sample = |told| sample(one, told);
        one.told.iter().map(sample)
    });
    json!({
        "kernel": group.kernel,
        "tracer": group.tracer.map(punctual_model::Tracer::name),
        "absent": group.absent(),
        "runs": ids,
        "median_ns": group.median().filter(|_| is_there),
        "worst_ns": group.worst().filter(|_| is_there),
        "stages_ns": is_there.then(|| stages.into_iter().collect::<Map<_, _>>()),
        "agreement": is_there.then(|| counts.into_iter().collect::<Map<_, _>>()),
        "caught": samples.collect::<Vec<_>>(),
    })
}

fn sample(traced: &Traced, one: &Told) -> Value {
    let late = one
        .truth
        .as_ref()
        .ok()
        .map(|story| story.chosen.sample.value);
    json!({
        "run": traced.run.id,
        "seq": one.seq,
        "value_ns": late,
        "agreement": one.agreement().map(Agreement::name),
        "scope": told(&one.truth),
        "tracer": one.tracer.as_ref().ok().map(sentence),
        "tracer_says_nothing": one.tracer.as_ref().err(),
    })
}

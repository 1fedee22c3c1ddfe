// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracers as JSON.

use std::collections::BTreeMap;

use punctual_model::{Nanos, Tracer};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Agreement, Group, STAGES, Told, Traced, groups};
use crate::scope::text::sentence;
use crate::scope::told;

/// The schema that [`tracers_json`] names.
pub const TRACERS_SCHEMA: &str = "punctual.tracers/1";

/// Times are whole nanoseconds of virtual time. New fields may be added to version 1; none is
/// removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = TRACERS_SCHEMA)))]
    schema: &'static str,
    /// Each kernel without a tracer, then with each.
    measured: Vec<Measured<'a>>,
}

/// A kernel with a tracer, or without one.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Measured<'a> {
    /// The kernel.
    kernel: &'a str,
    /// The tracer; null if none ran.
    tracer: Option<&'static str>,
    /// The reason why there are no figures: the tracer did not run, or a run was not measured to
    /// its end; null if there are.
    absent: Option<&'a str>,
    /// The runs, one for each seed.
    runs: Vec<&'a str>,
    /// The median of all samples.
    median_ns: Option<Nanos>,
    /// The worst of all samples.
    worst_ns: Option<Nanos>,
    /// The median length of each stage, as the scope sees it; a tracer adds the difference to the
    /// kernel's entry without one.
    #[cfg_attr(test, schemars(with = "Option<BTreeMap<String, Option<i64>>>"))]
    stages_ns: Option<BTreeMap<&'static str, Option<Nanos>>>,
    /// The number of caught samples of each agreement, by the words that `caught` has.
    agreement: Option<BTreeMap<&'static str, usize>>,
    /// The samples that were caught.
    caught: Vec<Caught<'a>>,
}

/// A sample that was caught.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Caught<'a> {
    /// Its run.
    run: &'a str,
    /// Its number.
    seq: u64,
    /// Its lateness; null if the scope has no story.
    value_ns: Option<Nanos>,
    /// The agreement of the tracer with the scope; null if the scope has no story.
    /// `the same`: the function is the scope's, or both say that nothing stood in the way.
    /// `its kind`: the cause is of the same kind. `another`: the cause is another one. `nothing`:
    /// the tracer names no cause, but there was one. `itself`: the tracer itself took most of the
    /// time.
    #[cfg_attr(
        test,
        schemars(extend("enum" = ["the same", "its kind", "another", "nothing", "itself", null]))
    )]
    agreement: Option<&'static str>,
    /// The scope's story, or the reason why there is none.
    scope: String,
    /// The tracer's story.
    tracer: Option<String>,
    /// The reason why the tracer tells nothing.
    tracer_says_nothing: Option<&'a str>,
}

/// The costs and stories of each tracer, on each kernel; the first of a kernel is without one.
pub fn tracers_json(all: &[Traced]) -> Value {
    let groups = groups(all);
    json!(Document {
        schema: TRACERS_SCHEMA,
        measured: groups.iter().map(Measured::of).collect(),
    })
}

impl<'a> Measured<'a> {
    fn of(group: &'a Group<'_>) -> Self {
        let is_there = group.absent().is_none();
        let stages = || STAGES.map(|stage| (stage.name(), group.stage(stage)));
        let counts = || Agreement::ALL.map(|one| (one.name(), group.count(one)));
        let runs = group.runs.iter().map(|one| one.run.id.as_str());
        let caught = group.runs.iter().flat_map(|one| {
            let caught = move |told| Caught::of(one, told);
            one.told.iter().map(caught)
        });
        Self {
            kernel: group.kernel,
            tracer: group.tracer.map(Tracer::name),
            absent: group.absent(),
            runs: runs.collect(),
            median_ns: group.median().filter(|_| is_there),
            worst_ns: group.worst().filter(|_| is_there),
            stages_ns: is_there.then(|| stages().into()),
            agreement: is_there.then(|| counts().into()),
            caught: caught.collect(),
        }
    }
}

impl<'a> Caught<'a> {
    fn of(traced: &'a Traced, one: &'a Told) -> Self {
        let story = one.truth.as_ref().ok();
        Self {
            run: &traced.run.id,
            seq: one.seq,
            value_ns: story.map(|story| story.chosen.sample.value),
            agreement: one.agreement().map(Agreement::name),
            scope: told(&one.truth),
            tracer: one.tracer.as_ref().ok().map(sentence),
            tracer_says_nothing: one.tracer.as_ref().err().map(String::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "tracers-1.json",
            "Costs and accuracy of the kernel's tracers: what `punctual tracers --json` prints",
        );
    }
}

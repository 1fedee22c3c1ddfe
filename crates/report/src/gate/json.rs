// SPDX-License-Identifier: MIT OR Apache-2.0
//! A gate's verdict for programs.

use punctual_judge::Difference;
use punctual_model::Sample;
use serde::Serialize;
use serde_json::Value;

use super::text::{Longer, longer_functions};
use super::{Gate, Gated, Judged, Row, Side, Why};
use crate::compare::verdict_json;
use crate::scope::json::told;

/// `punctual.gate/1`: times in nanoseconds. `docs/schema/gate-1.json` describes it.
///
/// # Panics
/// Never: all of it can be written as JSON.
pub fn gate_json(gate: &Gate) -> Value {
    let document = Document {
        schema: "punctual.gate/1",
        suite: &gate.suite,
        baseline: &gate.baseline,
        verdict: gate.standing().name(),
        title: super::title(gate),
        tolerance: gate.tolerance,
        repeat: gate.again.as_deref(),
        decide: gate.decide.as_deref().filter(|_| gate.has_open()),
        subjects: gate.subjects.iter().map(|one| subject(gate, one)).collect(),
    };
    serde_json::to_value(document).expect("it has no map but of texts")
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    suite: &'a str,
    baseline: &'a str,
    verdict: &'static str,
    title: String,
    tolerance: f64,
    repeat: Option<&'a str>,
    decide: Option<&'a str>,
    subjects: Vec<Subject<'a>>,
}

#[derive(Serialize)]
struct Subject<'a> {
    #[serde(rename = "subject")]
    name: &'a str,
    verdict: &'static str,
    sentence: String,
    before: About<'a>,
    after: About<'a>,
    runs: Vec<Pair<'a>>,
    implied_seeds: &'a [u64],
    level: f64,
    effect: f64,
    measurements: Vec<Measurement<'a>>,
    notes: &'a [String],
    why: Option<Reason<'a>>,
}

#[derive(Serialize)]
struct About<'a> {
    subject: &'a str,
    release: &'a str,
    boot: &'a str,
    machine: &'a str,
    runs: &'a [String],
    digests: &'a [String],
}

#[derive(Serialize)]
struct Pair<'a> {
    seed: u64,
    baseline: &'a str,
    run: &'a str,
    digest_equal: bool,
}

#[derive(Serialize)]
struct Measurement<'a> {
    probe: &'a str,
    load: &'a str,
    variant: &'a str,
    repetition: u32,
    verdict: &'static str,
    compared: Option<Value>,
    figures: Vec<Figure<'a>>,
    gap: Option<&'a str>,
    decide: Option<&'a str>,
    differences: Vec<Differs>,
}

#[derive(Serialize)]
struct Figure<'a> {
    name: &'a str,
    of: &'static str,
    share: f64,
    verdict: &'static str,
    counts: bool,
    function: Option<&'a str>,
    within_ns: Option<i64>,
    before_ns: i64,
    after_ns: i64,
    higher_seeds: usize,
    seeds: usize,
    compared: Value,
}

#[derive(Serialize)]
struct Differs {
    seed: u64,
    compared: u64,
    differing: u64,
    first: Option<First>,
    middle_longer_ns: i64,
    most_longer_ns: i64,
    baseline_count: u64,
    count: u64,
}

#[derive(Serialize)]
struct First {
    seq: u64,
    baseline: At,
    here: At,
}

#[derive(Serialize)]
struct At {
    at_ns: i64,
    value_ns: i64,
}

#[derive(Serialize)]
struct Reason<'a> {
    probe: &'a str,
    load: &'a str,
    variant: &'a str,
    run: &'a str,
    here: Value,
    baseline_run: &'a str,
    baseline: Value,
    longer: Vec<Longer<'a>>,
}

fn subject<'a>(gate: &'a Gate, one: &'a Gated) -> Subject<'a> {
    let pair = |pair: &'a super::Pair| Pair {
        seed: pair.seed,
        baseline: &pair.there,
        run: &pair.here,
        digest_equal: pair.is_equal,
    };
    let [before, after] = &one.sides;
    Subject {
        name: &one.subject,
        verdict: one.standing.name(),
        sentence: one.sentence(),
        before: about(before),
        after: about(after),
        runs: one.pairs.iter().map(pair).collect(),
        implied_seeds: &one.implied,
        level: one.rule.level,
        effect: one.rule.effect,
        measurements: one.rows.iter().map(|row| measurement(gate, row)).collect(),
        notes: &one.notes,
        why: one.why.as_ref().map(|why| reason(one, why)),
    }
}

fn about(side: &Side) -> About<'_> {
    About {
        subject: &side.subject,
        release: &side.release,
        boot: &side.boot,
        machine: &side.machine,
        runs: &side.runs,
        digests: &side.digests,
    }
}

fn measurement<'a>(gate: &'a Gate, row: &'a Row) -> Measurement<'a> {
    let leading = row.figures.iter().find(|figure| figure.leads);
    Measurement {
        probe: &row.row.probe,
        load: &row.row.load,
        variant: &row.row.variant,
        repetition: row.row.repetition,
        verdict: row.standing.name(),
        compared: leading.map(|figure| verdict_json(&figure.compared)),
        figures: row.figures.iter().map(figure).collect(),
        gap: row.gap.as_deref(),
        decide: gate.decides(row),
        differences: row.differences.iter().map(difference).collect(),
    }
}

fn figure(figure: &Judged) -> Figure<'_> {
    Figure {
        name: &figure.name,
        of: figure.of.name(),
        share: figure.share,
        verdict: figure.standing.name(),
        counts: figure.counts(),
        function: figure.blame.as_deref(),
        within_ns: figure.within.map(|latest| latest.0),
        before_ns: figure.there.0,
        after_ns: figure.here.0,
        higher_seeds: figure.higher,
        seeds: figure.seeds,
        compared: verdict_json(&figure.compared),
    }
}

fn difference((seed, found): &(u64, Difference)) -> Differs {
    let at = |one: &Sample| At {
        at_ns: one.at.0,
        value_ns: one.value.0,
    };
    let first = found.first.as_ref().map(|(there, here)| First {
        seq: here.seq,
        baseline: at(there),
        here: at(here),
    });
    Differs {
        seed: *seed,
        compared: found.compared,
        differing: found.differing,
        first,
        middle_longer_ns: found.middle.0,
        most_longer_ns: found.most.0,
        baseline_count: found.counts.0,
        count: found.counts.1,
    }
}

fn reason<'a>(gated: &'a Gated, why: &'a Why) -> Reason<'a> {
    let row = &gated.rows[why.row].row;
    let ((here, own), (there, other)) = (&why.here, &why.there);
    Reason {
        probe: &row.probe,
        load: &row.load,
        variant: &row.variant,
        run: &here.id,
        here: told(own),
        baseline_run: &there.id,
        baseline: told(other),
        longer: longer_functions(why),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A gate's verdict for programs.

use punctual_judge::Difference;
use punctual_model::Sample;
use serde_json::{Value, json};

use super::{Gate, Gated, Pair, Row, Why};
use crate::compare::verdict_json;
use crate::scope::json::told;

/// `punctual.gate/1`: times in nanoseconds. `docs/schema/gate-1.json` describes it.
pub fn gate_json(gate: &Gate) -> Value {
    json!({
        "schema": "punctual.gate/1",
        "suite": gate.suite,
        "baseline": gate.baseline,
        "verdict": gate.standing().name(),
        "subjects": gate.subjects.iter().map(subject).collect::<Vec<_>>(),
    })
}

fn subject(one: &Gated) -> Value {
    json!({
        "subject": one.subject,
        "verdict": one.standing.name(),
        "sentence": one.sentence(),
        "runs": one.pairs.iter().map(pair).collect::<Vec<_>>(),
        "implied_seeds": one.implied,
        "level": one.rule.level,
        "effect": one.rule.effect,
        "measurements": one.rows.iter().map(row).collect::<Vec<_>>(),
        "notes": one.notes,
        "why": one.why.as_ref().map(|why| self::why(one, why)),
    })
}

fn pair(pair: &Pair) -> Value {
    json!({
        "seed": pair.seed,
        "baseline": pair.there,
        "run": pair.here,
        "digest_equal": pair.is_equal,
    })
}

fn row(row: &Row) -> Value {
    json!({
        "probe": row.row.probe,
        "load": row.row.load,
        "variant": row.row.variant,
        "repetition": row.row.repetition,
        "verdict": row.standing.name(),
        "compared": row.judged.as_ref().map(verdict_json),
        "gap": row.gap,
        "differences": row.differences.iter().map(difference).collect::<Vec<_>>(),
    })
}

fn difference((seed, found): &(u64, Difference)) -> Value {
    let sample = |one: &Sample| json!({ "at_ns": one.at.0, "value_ns": one.value.0 });
    json!({
        "seed": seed,
        "compared": found.compared,
        "differing": found.differing,
        "first": found.first.as_ref().map(|(there, here)| json!({
            "seq": here.seq,
            "baseline": sample(there),
            "here": sample(here),
        })),
        "middle_longer_ns": found.middle.0,
        "most_longer_ns": found.most.0,
        "baseline_count": found.counts.0,
        "count": found.counts.1,
    })
}

fn why(gated: &Gated, why: &Why) -> Value {
    let row = &gated.rows[why.row].row;
    let ((here, own), (there, other)) = (&why.here, &why.there);
    json!({
        "probe": row.probe,
        "load": row.load,
        "variant": row.variant,
        "run": here.id,
        "here": told(own),
        "baseline_run": there.id,
        "baseline": told(other),
    })
}

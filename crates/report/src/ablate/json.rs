// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benefits of options, for programs.

use serde_json::{Value, json};

use super::{Ablation, Advice, Row, Side, Trial, Untried};
use crate::compare::verdict_json;
use crate::scope::json::told;

/// `punctual.ablation/1`: times in nanoseconds. `docs/schema/ablation-1.json` describes it.
pub fn ablation_json(ablation: &Ablation) -> Value {
    let trials = ablation.trials.iter().map(|one| trial(ablation, one));
    json!({
        "schema": "punctual.ablation/1",
        "suite": ablation.suite,
        "base": side(&ablation.base),
        "base_unmeasured": ablation.unmeasured,
        "level": ablation.rule.level,
        "effect": ablation.rule.effect,
        "interrupted": ablation.is_interrupted,
        "options": trials.collect::<Vec<_>>(),
        "not_tried": ablation.untried.iter().map(untried).collect::<Vec<_>>(),
    })
}

fn side(side: &Side) -> Value {
    json!({ "kernel": side.kernel, "boot": side.boot, "setup": side.setup })
}

fn advice(advice: &Advice) -> Value {
    json!({
        "source": advice.source,
        "says": advice.says,
        "expects": if advice.is_higher { "higher" } else { "lower" },
        "probe": advice.probe,
        "load": advice.load,
    })
}

fn trial(ablation: &Ablation, one: &Trial) -> Value {
    json!({
        "names": one.names,
        "subject": side(&one.side),
        "runs": one.runs,
        "gap": one.gap,
        "unknown": one.unknown,
        "identical": one.is_identical(),
        "advice": one.advice.as_ref().map(advice),
        "outcome": one.outcome(&ablation.rule).map(super::Outcome::name),
        "figures": one.rows.iter().map(|own| row(ablation, one, own)).collect::<Vec<_>>(),
        "why": why(one),
    })
}

fn row(ablation: &Ablation, trial: &Trial, one: &Row) -> Value {
    json!({
        "probe": one.row.probe,
        "load": one.row.load,
        "variant": one.row.variant,
        "repetition": one.row.repetition,
        "figure": one.figure.name(),
        "base_ns": one.base.0,
        "with_ns": one.with.0,
        "verdict": verdict_json(&one.judged),
        "sum_of_parts_ns": ablation.sum_of_parts(trial, one).map(|sum| sum.0),
    })
}

fn untried(one: &Untried) -> Value {
    json!({
        "name": one.name,
        "why": one.why,
        "advice": one.advice.as_ref().map(advice),
    })
}

fn why(trial: &Trial) -> Option<Value> {
    let (asked, why) = trial.why.as_ref()?;
    let ((with, own), (base, other)) = (&why.here, &why.there);
    Some(json!({
        "probe": asked.key.probe,
        "load": asked.key.load,
        "variant": asked.key.variant,
        "repetition": asked.key.repetition,
        "figure": asked.figure(),
        "run": with.id,
        "with": told(own),
        "base_run": base.id,
        "base": told(other),
    }))
}

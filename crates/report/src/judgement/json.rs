// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts for programs.

use punctual_judge::{Answer, Judgement, More, Why};
use punctual_model::limit::{Bound, Demand};
use serde_json::{Value, json};

use super::Stories;
use crate::scope::{self, Story};

/// The form's name and version; `docs/schema/verdict-1.json` describes it.
const SCHEMA: &str = "punctual.verdict/1";

/// `punctual.verdict/1`: times in nanoseconds, rates per second of measured time.
pub fn judgement_json(judgement: &Judgement, stories: &Stories) -> Value {
    let answers = judgement.answers.iter().zip(0..);
    let answers = answers.map(|(one, number)| answer(one, stories.get(&number)));
    json!({
        "schema": SCHEMA,
        "verdict": judgement.fitness().name(),
        "remarks": judgement.remarks,
        "decide": judgement.decide,
        "answers": answers.collect::<Vec<_>>(),
    })
}

fn answer(answer: &Answer, story: Option<&Story>) -> Value {
    let limit = &answer.limit;
    json!({
        "limit": {
            "name": limit.name,
            "text": limit.demand.to_string(),
            "demand": demand(&limit.demand),
            "confidence": limit.confidence,
        },
        "subject": answer.subject,
        "probe": answer.key.probe,
        "load": answer.key.load,
        "variant": answer.key.variant,
        "repetition": answer.key.repetition,
        "verdict": answer.fitness.name(),
        "reason": answer.reason(),
        "why": why(&answer.why),
        "sample": answer.sample.as_ref().map(|one| json!({
            "run": one.run,
            "seed": one.seed,
            "seq": one.seq,
            "at_ns": one.at.map(|at| at.0),
            "value_ns": one.value.0,
        })),
        "runs": answer.runs,
        "samples": answer.samples,
        "time_ns": answer.time.0,
        "excluded_per_second": answer.excluded,
        "more": answer.more.as_ref().map(more),
        "explain": super::explain_command(answer),
        "story": story.map(scope::json::told),
    })
}

fn demand(demand: &Demand) -> Value {
    let side = |bound: &Bound| match bound {
        Bound::AtMost(value) => ("at_most", *value),
        Bound::AtLeast(value) => ("at_least", *value),
    };
    match demand {
        Demand::Never(bound) => json!({ "kind": "never", "above_ns": bound.0 }),
        Demand::Arrival { most, reached } => {
            let kind = if *reached { "reached" } else { "arrival" };
            json!({ "kind": kind, "at_most": most.0 })
        }
        Demand::Missed(most) => json!({ "kind": "missed", "at_most": most }),
        Demand::Jitter(most) => json!({ "kind": "jitter", "at_most_ns": most.0 }),
        Demand::Rare { above, once_in } => {
            json!({ "kind": "rare", "above_ns": above.0, "once_in_ns": once_in.0 })
        }
        Demand::Typical(figure, bound) => {
            let (side, value) = side(bound);
            json!({ "kind": "typical", "figure": figure.to_string(), side: value })
        }
        Demand::Relative(figure, bound, of) => {
            let (side, value) = side(bound);
            json!({ "kind": "relative", "figure": figure.to_string(), side: value, "of": of.to_string() })
        }
    }
}

fn why(why: &Why) -> Value {
    match why {
        Why::Broken { runs_with, .. } => json!({ "kind": "broken", "runs_with": runs_with }),
        Why::Kept { .. } => json!({ "kind": "kept" }),
        Why::Reached {
            run,
            seed,
            late,
            function,
        } => json!({
            "kind": "reached",
            "run": run,
            "seed": seed,
            "late_ns": late.0,
            "function": function,
        }),
        Why::Arrivals {
            time,
            worst,
            reached,
        } => json!({
            "kind": "arrivals",
            "time_ns": time.0,
            "worst_ns": worst.0,
            "reached_ns": reached.map(|late| late.0),
        }),
        Why::Missed { count, run } => json!({ "kind": "missed", "count": count, "run": run }),
        Why::Jitter { jitter, run } => {
            json!({ "kind": "jitter", "jitter_ns": jitter.0, "run": run })
        }
        Why::Rate { count, per_limit } => json!({
            "kind": "rate",
            "count": count,
            "times_low": per_limit.0,
            "times_high": per_limit.1,
        }),
        Why::Typical { within, middle } => {
            json!({ "kind": "typical", "runs_within": within, "middle": middle })
        }
        Why::Ratio { estimate, bounds } => json!({
            "kind": "ratio",
            "ratio": estimate,
            "low": bounds.map(|bounds| bounds.0),
            "high": bounds.map(|bounds| bounds.1),
        }),
        Why::Gap(gap) => json!({ "kind": "gap", "gap": gap }),
    }
}

fn more(more: &More) -> Value {
    match more {
        More::Runs(runs) | More::Imports(runs) => json!({ "kind": "runs", "runs": runs }),
        More::Time(time) => json!({ "kind": "time", "time_ns": time.0 }),
        More::Watched { aimed } => json!({ "kind": "watched", "aimed": aimed }),
        More::Whole => json!({ "kind": "whole" }),
    }
}

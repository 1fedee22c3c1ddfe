// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bisection for programs.

use punctual_judge::Found;
use serde_json::{Value, json};

use super::{Bisect, Step};
use crate::arrivals::latest;
use crate::judgement::{Stories, judgement_json};
use crate::scope::json::told;

/// `punctual.bisect/1`. `docs/schema/bisect-1.json` describes it.
pub fn bisect_json(bisect: &Bisect) -> Value {
    let kernel = |at: usize| bisect.candidates[at].clone();
    let ends = match bisect.found {
        Some(Found::Between { fit, unfit }) => Some((fit, unfit)),
        _ => None,
    };
    json!({
        "schema": "punctual.bisect/1",
        "suite": bisect.suite,
        "limits": bisect.demands(),
        "kernels": bisect.candidates,
        "backwards": bisect.is_backwards,
        "steps": bisect.steps.iter().map(|one| step(bisect, one)).collect::<Vec<_>>(),
        "steps_between": bisect.steps_between(),
        "result": result(bisect),
        "sentence": bisect.sentence(),
        "last_fit": ends.map(|(fit, _)| kernel(fit)),
        "first_unfit": ends.map(|(_, unfit)| kernel(unfit)),
        "suspects": bisect.suspects().into_iter().map(kernel).collect::<Vec<_>>(),
        "why": why(bisect),
    })
}

fn result(bisect: &Bisect) -> &'static str {
    match bisect.found {
        Some(Found::Between { .. }) if bisect.suspects().len() == 1 => "found",
        Some(Found::Between { .. }) => "span",
        Some(Found::GoodIsNot(_)) => "good-is-not",
        Some(Found::BadIsNot(_)) => "bad-is-not",
        None => "interrupted",
    }
}

fn step(bisect: &Bisect, step: &Step) -> Value {
    let judgement = step.judgement.as_ref();
    json!({
        "kernel": bisect.candidates[step.at],
        "verdict": step.known.name(),
        "skipped": step.skipped,
        "runs": step.runs.iter().map(|run| run.id.clone()).collect::<Vec<_>>(),
        "arrivals": latest(&step.runs),
        "judgement": judgement.map(|one| judgement_json(one, &Stories::new())),
    })
}

fn why(bisect: &Bisect) -> Option<Value> {
    let (asked, why) = bisect.why.as_ref()?;
    let ((bad, own), (good, other)) = (&why.here, &why.there);
    Some(json!({
        "probe": asked.key.probe,
        "load": asked.key.load,
        "variant": asked.key.variant,
        "repetition": asked.key.repetition,
        "figure": asked.figure(),
        "unfit_run": bad.id,
        "unfit": told(own),
        "fit_run": good.id,
        "fit": told(other),
    }))
}

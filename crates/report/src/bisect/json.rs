// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bisection for programs.

use punctual_judge::Found;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Bisect, Step};
use crate::arrivals::{Latest, latest};
use crate::judgement::{Stories, Verdicts};
use crate::names::Names;
use crate::scope::json::Told;
use crate::why::Different;

/// The form's name and version; `docs/schema/bisect-1.json` describes it.
const SCHEMA: &str = "punctual.bisect/1";

/// `punctual.bisect/1`. `docs/schema/bisect-1.json` describes it.
pub fn bisect_json(bisect: &Bisect) -> Value {
    let kernel = |at: usize| bisect.candidates[at].as_str();
    let ends = match bisect.found {
        Some(Found::Between { fit, unfit }) => Some((fit, unfit)),
        _ => None,
    };
    json!(Document {
        schema: SCHEMA,
        suite: &bisect.suite,
        limits: bisect.demands(),
        kernels: &bisect.candidates,
        backwards: bisect.is_backwards,
        steps: bisect.steps.iter().map(|one| tried(bisect, one)).collect(),
        steps_between: bisect.steps_between(),
        result: result(bisect),
        sentence: bisect.sentence(),
        last_fit: ends.map(|(fit, _)| kernel(fit)),
        first_unfit: ends.map(|(_, unfit)| kernel(unfit)),
        suspects: bisect.suspects().into_iter().map(kernel).collect(),
        why: reason(bisect),
    })
}

/// A bisection. Times are whole nanoseconds. New fields may be added to version 1; none is removed
/// or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The suite's name.
    suite: &'a str,
    /// The limits demanded.
    #[cfg_attr(test, schemars(length(min = 1)))]
    limits: Vec<String>,
    /// The kernels, from the one said to be good to the one said to be bad.
    #[cfg_attr(test, schemars(length(min = 2)))]
    kernels: &'a [String],
    /// True if the good one is the newer: the change that is looked for made it fit.
    backwards: bool,
    /// The kernels tried, in order of trial; both ends come first.
    steps: Vec<Tried<'a>>,
    /// The number of kernels tried between the ends.
    steps_between: usize,
    /// The result: `found` if the first that is different is known; `span` if it is one of several,
    /// as some were skipped; `good-is-not` or `bad-is-not` if an end is not as it was said to be,
    /// or cannot be told; `interrupted` if Ctrl-C ended it.
    #[cfg_attr(
        test,
        schemars(extend("enum" = ["found", "span", "good-is-not", "bad-is-not", "interrupted"]))
    )]
    result: &'static str,
    /// The result in one sentence.
    sentence: String,
    /// The last kernel that is fit; null if nothing was found.
    last_fit: Option<&'a str>,
    /// The first kernel that is unfit; null if nothing was found.
    first_unfit: Option<&'a str>,
    /// The candidates for the first that is different: one, if it was found.
    suspects: Vec<&'a str>,
    /// A sample of the unfit kernel and one of the fit kernel, explained.
    why: Option<Reason<'a>>,
}

/// A kernel that was tried.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Tried<'a> {
    /// The kernel.
    kernel: &'a str,
    /// The verdict on it.
    #[cfg_attr(test, schemars(extend("enum" = ["fit", "unfit", "skipped"])))]
    verdict: &'static str,
    /// The reason for skipping it; null if it was not skipped.
    skipped: Option<&'a str>,
    /// The runs that the verdict rests on.
    runs: Vec<&'a str>,
    /// The known arrivals, measurement by measurement, over all of its runs; empty if nothing was
    /// watched (`--arrivals`).
    arrivals: Vec<Latest>,
    /// The verdict as `punctual.verdict/1`; null if nothing could be measured.
    judgement: Option<Verdicts<'a>>,
}

/// No step's samples are explained.
static NO_STORIES: Stories = Stories::new();

/// The sample that stands for the change.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Reason<'a> {
    #[serde(flatten)]
    names: Names<'a>,
    /// The sample's place among all: `worst`, `median`, `p99.9`.
    figure: String,
    /// The run of the unfit kernel.
    unfit_run: &'a str,
    /// The story of its sample.
    unfit: Told<'a>,
    /// The run of the fit kernel.
    fit_run: &'a str,
    /// The story of its sample.
    fit: Told<'a>,
    #[serde(flatten)]
    different: Different<'a>,
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

fn tried<'a>(bisect: &'a Bisect, step: &'a Step) -> Tried<'a> {
    let judgement = step.judgement.as_ref();
    Tried {
        kernel: &bisect.candidates[step.at],
        verdict: step.known.name(),
        skipped: step.skipped.as_deref(),
        runs: step.runs.iter().map(|run| run.id.as_str()).collect(),
        arrivals: latest(&step.runs),
        judgement: judgement.map(|one| Verdicts::of(one, &NO_STORIES)),
    }
}

fn reason(bisect: &Bisect) -> Option<Reason<'_>> {
    let (asked, why) = bisect.why.as_ref()?;
    let ((bad, own), (good, other)) = (&why.here, &why.there);
    Some(Reason {
        names: Names::from(&asked.key),
        figure: asked.figure(),
        unfit_run: &bad.id,
        unfit: own.into(),
        fit_run: &good.id,
        fit: other.into(),
        different: why.different(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "bisect-1.json",
            "A bisection: what `punctual bisect --json` prints",
        );
    }
}

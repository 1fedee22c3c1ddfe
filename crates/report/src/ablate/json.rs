// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benefits of options, for programs.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Ablation, Advice, Outcome, Row, Side, Trial, Untried};
use crate::compare::Compared;
use crate::names::Names;
use crate::scope::json::Told;
use crate::why::Different;

/// The form's name and version; `docs/schema/ablation-1.json` describes it.
const SCHEMA: &str = "punctual.ablation/1";

/// `punctual.ablation/1`: times in nanoseconds. `docs/schema/ablation-1.json` describes it.
pub fn ablation_json(ablation: &Ablation) -> Value {
    let options = ablation.trials.iter().map(|one| tried(ablation, one));
    json!(Document {
        schema: SCHEMA,
        suite: &ablation.suite,
        base: subject(&ablation.base),
        base_unmeasured: &ablation.unmeasured,
        level: ablation.rule.level,
        effect: ablation.rule.effect,
        interrupted: ablation.is_interrupted,
        options: options.collect(),
        not_tried: ablation.untried.iter().map(not_tried).collect(),
    })
}

/// The benefit of each option, measured against a base without it. Times are whole nanoseconds of
/// virtual time. New fields may be added to version 1; none is removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The suite's name.
    suite: &'a str,
    /// The base.
    base: Subject<'a>,
    /// The measurements that some of the base's runs lack, with the reasons.
    base_unmeasured: &'a [String],
    /// The chance that one option's verdicts are wrong, over all of its figures together.
    level: f64,
    /// The smallest ratio worth finding.
    effect: f64,
    /// True if Ctrl-C ended it before everything was tried.
    interrupted: bool,
    /// The options that were tried; the one that changes a latency by most nanoseconds comes first.
    /// Pairs, which have no verdict, come last.
    options: Vec<Tried<'a>>,
    /// The options that were not tried.
    not_tried: Vec<NotTried<'a>>,
}

/// A kernel with boot arguments, and the setup of its guest.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Subject<'a> {
    /// The kernel.
    kernel: &'a str,
    /// Its boot arguments.
    boot: &'a str,
    /// The commands that `sh` runs in the guest as each step begins, one after the other.
    setup: &'a [String],
}

/// An option, or two, that was tried.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Tried<'a> {
    /// The names of its options.
    #[cfg_attr(test, schemars(length(min = 1, max = 2)))]
    names: &'a [String],
    /// The kernel and the boot arguments with it.
    subject: Subject<'a>,
    /// The runs with it, by their ids.
    runs: &'a [String],
    /// The reason why it could not be measured as a whole; null if it was.
    gap: Option<&'a str>,
    /// The boot arguments that its kernel said it does not know.
    unknown: &'a [String],
    /// True if it is the same as the base to the last sample of all figures.
    identical: bool,
    /// The advice about it.
    advice: Option<Advised<'a>>,
    /// The outcome of the advice; null if there is none.
    #[cfg_attr(
        test,
        schemars(extend("enum" = [
            "holds",
            "holds in part, and elsewhere the opposite is so",
            "does not hold",
            "does not hold: the opposite is so",
            "undecided",
            null,
        ]))
    )]
    outcome: Option<&'static str>,
    /// Each figure of each measurement.
    figures: Vec<OfRow<'a>>,
    /// The sample that stands for what changes most, explained with the option and in the base.
    why: Option<Reason<'a>>,
}

/// Advice about an option.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Advised<'a> {
    /// The author of the advice.
    source: &'a str,
    /// The text of the advice.
    says: &'a str,
    /// The direction in which samples are expected to change with the option.
    #[cfg_attr(test, schemars(extend("enum" = ["lower", "higher"])))]
    expects: &'static str,
    /// The probe that it is about; null for each latency.
    probe: Option<&'a str>,
    /// The load that it is about; null for each load.
    load: Option<&'a str>,
}

/// One figure of one measurement.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfRow<'a> {
    #[serde(flatten)]
    names: Names<'a>,
    /// The figure; `arrival` is the latest of every arrival, as it is foretold, and `reached` the
    /// latest aimed sample.
    #[cfg_attr(test, schemars(extend("enum" = ["worst", "median", "arrival", "reached"])))]
    figure: &'static str,
    /// The value of the base's middle run.
    base_ns: i64,
    /// The value of the middle run with the option.
    with_ns: i64,
    /// The comparison of the runs with the option and the base's; undecided, without numbers, for a
    /// pair, which has figures and no verdict.
    verdict: Compared,
    /// The sum of the changes that two options make separately; null if it is not a pair, or one of
    /// the two was not measured.
    sum_of_parts_ns: Option<i64>,
}

/// The sample that stands for what changes most.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Reason<'a> {
    #[serde(flatten)]
    names: Names<'a>,
    /// The sample's place among all: `worst`, `median`, `p99.9`.
    figure: String,
    /// The run with the option.
    run: &'a str,
    /// The story of its sample.
    with: Told<'a>,
    /// The base's run.
    base_run: &'a str,
    /// The story of its sample.
    base: Told<'a>,
    #[serde(flatten)]
    different: Different<'a>,
}

/// An option that was not tried.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NotTried<'a> {
    /// The option's name.
    name: &'a str,
    /// The reason.
    why: &'a str,
    /// The advice about it.
    advice: Option<Advised<'a>>,
}

fn subject(side: &Side) -> Subject<'_> {
    Subject {
        kernel: &side.kernel,
        boot: &side.boot,
        setup: &side.setup,
    }
}

fn advised(advice: &Advice) -> Advised<'_> {
    Advised {
        source: &advice.source,
        says: &advice.says,
        expects: if advice.is_higher { "higher" } else { "lower" },
        probe: advice.probe.as_deref(),
        load: advice.load.as_deref(),
    }
}

fn tried<'a>(ablation: &Ablation, one: &'a Trial) -> Tried<'a> {
    let figures = one.rows.iter().map(|row| figure(ablation, one, row));
    Tried {
        names: &one.names,
        subject: subject(&one.side),
        runs: &one.runs,
        gap: one.gap.as_deref(),
        unknown: &one.unknown,
        identical: one.is_identical(),
        advice: one.advice.as_ref().map(advised),
        outcome: one.outcome(&ablation.rule).map(Outcome::name),
        figures: figures.collect(),
        why: reason(one),
    }
}

fn figure<'a>(ablation: &Ablation, trial: &Trial, one: &'a Row) -> OfRow<'a> {
    OfRow {
        names: Names::from(&one.row),
        figure: one.figure.name(),
        base_ns: one.base.0,
        with_ns: one.with.0,
        verdict: if trial.is_pair() {
            Compared::undecided()
        } else {
            Compared::from(&one.judged)
        },
        sum_of_parts_ns: ablation.sum_of_parts(trial, one).map(|sum| sum.0),
    }
}

fn not_tried(one: &Untried) -> NotTried<'_> {
    NotTried {
        name: &one.name,
        why: &one.why,
        advice: one.advice.as_ref().map(advised),
    }
}

fn reason(trial: &Trial) -> Option<Reason<'_>> {
    let (asked, why) = trial.why.as_ref()?;
    let ((with, own), (base, other)) = (&why.here, &why.there);
    Some(Reason {
        names: Names::from(&asked.key),
        figure: asked.figure(),
        run: &with.id,
        with: own.into(),
        base_run: &base.id,
        base: other.into(),
        different: why.different(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Document<'_>>(
            "ablation-1.json",
            "The benefits of options: what `punctual ablate --json` prints",
        );
    }
}

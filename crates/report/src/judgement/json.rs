// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verdicts for programs.

use punctual_judge::{self as judge, Decisive, Judgement};
use punctual_model::{Nanos, limit};
use serde::Serialize;
use serde_json::{Value, json};

use super::Stories;
use crate::scope;
use crate::scope::json::Told;

/// The form's name and version; `docs/schema/verdict-1.json` describes it.
const SCHEMA: &str = "punctual.verdict/1";

/// The verdicts on limits. Times are whole nanoseconds, rates are per second of measured time. New
/// fields may be added to version 1; none is removed or changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdicts<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The verdict on all limits: that of the worst answer.
    #[cfg_attr(test, schemars(extend("enum" = ["fit", "undecided", "unfit"])))]
    verdict: &'static str,
    /// Remarks on how runs were counted: copies, which count once; other seeds with the same
    /// samples.
    remarks: &'a [String],
    /// The commands that decide what further runs can decide; empty if none does, or none is known.
    decide: &'a [String],
    /// One answer for each limit, subject and measurement.
    #[cfg_attr(test, schemars(length(min = 1)))]
    answers: Vec<Answer<'a>>,
}

/// The answer to one limit, for one subject and one measurement.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
struct Answer<'a> {
    /// The limit.
    limit: Limit<'a>,
    /// The subject's name.
    subject: &'a str,
    /// The probe's name.
    probe: &'a str,
    /// The load's name.
    load: &'a str,
    /// The variant; empty if nothing was measured.
    variant: &'a str,
    /// The number of this recording among those of its probe, load and variant, from 1.
    repetition: u32,
    /// The verdict.
    #[cfg_attr(test, schemars(extend("enum" = ["fit", "undecided", "unfit"])))]
    verdict: &'static str,
    /// The reason for the verdict in one sentence.
    reason: String,
    /// The reason, by its kind.
    why: Why<'a>,
    /// The sample that decided the verdict, or came closest to the limit.
    sample: Option<Sample<'a>>,
    /// The number of independent runs.
    runs: usize,
    /// The number of samples in these runs.
    samples: u64,
    /// The measured time of these runs, as far as it is known; 0 if it is not.
    time_ns: Nanos,
    /// The number of samples above the limit per second that is excluded, at the confidence.
    excluded_per_second: Option<f64>,
    /// The evidence that would decide it, if it is undecided.
    more: Option<More>,
    /// The command that explains the sample that broke the limit.
    explain: Option<String>,
    /// The story of the sample that broke the limit, or the reason why there is none; null where
    /// nothing was explained.
    story: Option<Told<'a>>,
}

/// A limit.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Limit<'a> {
    /// Its name, if it has one.
    name: Option<&'a str>,
    /// The demand in words.
    text: String,
    /// The demand.
    demand: Demand,
    /// The confidence that the verdict needs.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0.5, "exclusiveMaximum" = 1)))]
    confidence: f64,
}

/// A demand.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Demand {
    /// No sample is above a time.
    Never {
        /// The time.
        above_ns: Nanos,
    },
    /// No arrival is later than this.
    Arrival {
        /// The greatest lateness, in nanoseconds.
        at_most: Nanos,
    },
    /// No arrival is later than this, and samples are aimed at the worst of them.
    Reached {
        /// The greatest lateness, in nanoseconds.
        at_most: Nanos,
    },
    /// No run misses more periods than this.
    Missed {
        /// The number of periods.
        at_most: u64,
    },
    /// No two samples of a run differ by more than this.
    Jitter {
        /// The difference.
        at_most_ns: Nanos,
    },
    /// Samples above a time are rare.
    Rare {
        /// The time.
        above_ns: Nanos,
        /// The measured time in which fewer than one such sample occurs.
        once_in_ns: Nanos,
    },
    /// A figure of the typical run meets a bound.
    Typical {
        /// The figure.
        figure: String,
        #[serde(flatten)]
        bound: Bound,
    },
    /// A figure, as a share of another one's, meets a bound: 1 means that they are equal.
    Relative {
        /// The figure.
        figure: String,
        #[serde(flatten)]
        bound: Bound,
        /// The subject or the baseline that the share refers to.
        of: String,
    },
}

/// A bound.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Bound {
    /// An upper bound: in nanoseconds, in work per second, or a share, of which 1 is 100 %.
    AtMost(f64),
    /// A lower bound, likewise.
    AtLeast(f64),
}

/// The reason for a verdict.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Why<'a> {
    /// A sample is above the bound.
    Broken {
        /// The number of runs with such a sample.
        runs_with: u64,
    },
    /// No sample is above the bound.
    Kept,
    /// An aimed sample was later than the limit.
    Reached {
        /// The run of the sample.
        run: &'a str,
        /// The run's seed.
        seed: u64,
        /// The lateness of the sample.
        late_ns: Nanos,
        /// The function that ran for most of its delay.
        function: Option<&'a str>,
    },
    /// No arrival is later than the limit.
    Arrivals {
        /// The time that was looked at, and so the number of moments.
        time_ns: Nanos,
        /// The lateness of the latest arrival.
        worst_ns: Nanos,
        /// The lateness of the latest aimed sample; null where none was aimed.
        reached_ns: Option<Nanos>,
    },
    /// Periods were missed in the worst run.
    Missed {
        /// The number of missed periods.
        count: u64,
        /// The run.
        run: &'a str,
    },
    /// The samples of the worst run differ.
    Jitter {
        /// The difference between the largest and the smallest.
        jitter_ns: Nanos,
        /// The run.
        run: &'a str,
    },
    /// Samples above the bound come at a rate.
    Rate {
        /// The number of samples.
        count: u64,
        /// The least in the time that the limit names.
        times_low: f64,
        /// The most in the time that the limit names.
        times_high: f64,
    },
    /// A number of runs keep to the bound.
    Typical {
        /// The number of these runs.
        runs_within: usize,
        /// The figure of the middle run, in nanoseconds or in work per second.
        middle: f64,
    },
    /// The figure has a ratio to the other one's.
    Ratio {
        /// The ratio.
        ratio: f64,
        /// Its lower bound; null where there are too few runs.
        low: Option<f64>,
        /// Its upper bound; null where there are too few runs.
        high: Option<f64>,
    },
    /// There is no complete answer.
    Gap {
        /// The reason why there is none.
        gap: &'a str,
    },
}

/// A sample and its place.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Sample<'a> {
    /// Its run.
    run: &'a str,
    /// The run's seed.
    seed: u64,
    /// Its number; null where samples were only counted.
    seq: Option<u64>,
    /// The time at which it was due; null where samples were only counted.
    at_ns: Option<Nanos>,
    /// Its value.
    value_ns: Nanos,
}

/// Further evidence.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
enum More {
    /// Further runs, with seeds of their own if there are any.
    Runs {
        /// The least number of them.
        runs: usize,
    },
    /// More measured time without a further sample above the bound.
    Time {
        /// The least time.
        time_ns: Nanos,
    },
    /// Knowledge of every arrival of each run.
    Watched {
        /// True if samples must be aimed at the worst arrivals.
        aimed: bool,
    },
    /// A measurement without the gap.
    Whole,
}

/// `punctual.verdict/1`: times in nanoseconds, rates per second of measured time.
pub fn judgement_json(judgement: &Judgement, stories: &Stories) -> Value {
    json!(Verdicts::of(judgement, stories))
}

impl<'a> Verdicts<'a> {
    /// The verdicts, with the stories of the samples that broke limits.
    pub fn of(judgement: &'a Judgement, stories: &'a Stories) -> Self {
        let answers = judgement.answers.iter().enumerate();
        let answers = answers.map(|(number, one)| Answer::of(one, stories.get(&number)));
        Self {
            schema: SCHEMA,
            verdict: judgement.fitness().name(),
            remarks: &judgement.remarks,
            decide: &judgement.decide,
            answers: answers.collect(),
        }
    }
}

impl<'a> Answer<'a> {
    fn of(answer: &'a judge::Answer, story: Option<&'a scope::Story>) -> Self {
        let limit = &answer.limit;
        Self {
            limit: Limit {
                name: limit.name.as_deref(),
                text: limit.demand.to_string(),
                demand: Demand::of(&limit.demand),
                confidence: limit.confidence,
            },
            subject: &answer.subject,
            probe: &answer.key.probe,
            load: &answer.key.load,
            variant: &answer.key.variant,
            repetition: answer.key.repetition,
            verdict: answer.fitness.name(),
            reason: answer.reason(),
            why: Why::of(&answer.why),
            sample: answer.sample.as_ref().map(Sample::of),
            runs: answer.runs,
            samples: answer.samples,
            time_ns: answer.time,
            excluded_per_second: answer.excluded,
            more: answer.more.map(More::of),
            explain: super::explain_command(answer),
            story: story.map(Told::from),
        }
    }
}

impl Demand {
    fn of(demand: &limit::Demand) -> Self {
        match demand {
            limit::Demand::Never(most) => Self::Never { above_ns: *most },
            limit::Demand::Arrival { most, reached } => {
                let at_most = *most;
                if *reached {
                    Self::Reached { at_most }
                } else {
                    Self::Arrival { at_most }
                }
            }
            limit::Demand::Missed(most) => Self::Missed { at_most: *most },
            limit::Demand::Jitter(most) => Self::Jitter { at_most_ns: *most },
            limit::Demand::Rare { above, once_in } => Self::Rare {
                above_ns: *above,
                once_in_ns: *once_in,
            },
            limit::Demand::Typical(figure, bound) => Self::Typical {
                figure: figure.to_string(),
                bound: Bound::of(*bound),
            },
            limit::Demand::Relative(figure, bound, of) => Self::Relative {
                figure: figure.to_string(),
                bound: Bound::of(*bound),
                of: of.to_string(),
            },
        }
    }
}

impl Bound {
    fn of(bound: limit::Bound) -> Self {
        match bound {
            limit::Bound::AtMost(value) => Self::AtMost(value),
            limit::Bound::AtLeast(value) => Self::AtLeast(value),
        }
    }
}

impl<'a> Why<'a> {
    fn of(why: &'a judge::Why) -> Self {
        match why {
            judge::Why::Broken { runs_with, .. } => Self::Broken {
                runs_with: *runs_with,
            },
            judge::Why::Kept { .. } => Self::Kept,
            judge::Why::Reached {
                run,
                seed,
                late,
                function,
            } => Self::Reached {
                run,
                seed: *seed,
                late_ns: *late,
                function: function.as_deref(),
            },
            judge::Why::Arrivals {
                time,
                worst,
                reached,
            } => Self::Arrivals {
                time_ns: *time,
                worst_ns: *worst,
                reached_ns: *reached,
            },
            judge::Why::Missed { count, run } => Self::Missed { count: *count, run },
            judge::Why::Jitter { jitter, run } => Self::Jitter {
                jitter_ns: *jitter,
                run,
            },
            judge::Why::Rate { count, per_limit } => Self::Rate {
                count: *count,
                times_low: per_limit.0,
                times_high: per_limit.1,
            },
            judge::Why::Typical { within, middle } => Self::Typical {
                runs_within: *within,
                middle: *middle,
            },
            judge::Why::Ratio { estimate, bounds } => Self::Ratio {
                ratio: *estimate,
                low: bounds.map(|bounds| bounds.0),
                high: bounds.map(|bounds| bounds.1),
            },
            judge::Why::Gap(gap) => Self::Gap { gap },
        }
    }
}

impl<'a> Sample<'a> {
    fn of(sample: &'a Decisive) -> Self {
        Self {
            run: &sample.run,
            seed: sample.seed,
            seq: sample.seq,
            at_ns: sample.at,
            value_ns: sample.value,
        }
    }
}

impl More {
    fn of(more: judge::More) -> Self {
        match more {
            judge::More::Runs(runs) | judge::More::Imports(runs) => Self::Runs { runs },
            judge::More::Time(time) => Self::Time { time_ns: time },
            judge::More::Watched { aimed } => Self::Watched { aimed },
            judge::More::Whole => Self::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_what_the_type_says() {
        crate::schema::assert_is_of::<Verdicts<'_>>(
            "verdict-1.json",
            "Verdicts of Punctual: what `punctual judge --json` prints",
        );
    }
}

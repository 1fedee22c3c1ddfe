// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign, and its plan, for programs.

use std::time::Duration;

use punctual_model::Run;
use serde::Serialize;
use serde_json::Value;

use super::Campaign;
use crate::judgement::Verdicts;
use crate::names::Names;
use crate::scope::Story;
use crate::scope::json::Told;

/// The form's name and version; `docs/schema/campaign-1.json` describes it.
const SCHEMA: &str = "punctual.campaign/1";
/// The schema of a plan; `docs/schema/campaign-plan-1.json` describes it.
const PLAN: &str = "punctual.campaign-plan/1";

/// The results of a campaign. Times are nanoseconds of virtual time: lengths of code paths.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Its name.
    campaign: &'a str,
    /// Its purpose in one line.
    summary: &'a str,
    /// The number of runs that it asks for.
    asked: usize,
    /// The number of these that are finished.
    finished: usize,
    /// The parts that are not measured at all, with the reasons.
    left_out: &'a [String],
    /// The suites, each with its subjects.
    settings: Vec<Setting<'a>>,
    /// The worst samples, with their stories.
    worst: Vec<Worst<'a>>,
    /// The measurements that failed or are missing.
    gaps: Vec<String>,
    /// The use of a cluster; null if there was none, or nothing is known of it.
    cluster: Option<Cluster>,
}

/// A suite with its subjects, which may be compared with each other.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
struct Setting<'a> {
    /// The name that tells it from the others.
    #[serde(rename = "setting")]
    name: &'a str,
    /// Its subjects.
    subjects: Vec<Subject<'a>>,
    /// The subjects by their figures, the lowest first; a subject that lacks one is not ranked.
    ranking: Vec<Rank>,
    /// Each figure of each measurement.
    figures: Vec<OfRow<'a>>,
    /// The verdict; null if there are no limits that its plan can answer.
    verdict: Option<Verdict<'a>>,
}

/// A subject, and its runs.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Subject<'a> {
    /// Its name.
    #[serde(rename = "subject")]
    name: &'a str,
    /// The seeds that are asked for.
    seeds: &'a [u64],
    /// The runs that have ended, by seed.
    runs: Vec<RunOf<'a>>,
}

/// A run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RunOf<'a> {
    /// Its name in the store.
    run: &'a str,
    /// Its seed.
    seed: u64,
    /// The state that it reached.
    #[cfg_attr(test, schemars(extend("enum" = ["running", "finished", "interrupted", "failed"])))]
    state: &'static str,
    /// Its digest; null if it has none.
    digest: Option<&'a str>,
}

/// A subject's place in a setting.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Rank {
    /// The subject's number, from 0.
    subject: usize,
    /// The geometric mean of its figures' ratios to the lowest of each row.
    times: f64,
}

/// One figure of one measurement, subject by subject.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfRow<'a> {
    #[serde(flatten)]
    names: Names<'a>,
    /// The figure. `arrival` is the latest of every arrival, as it is foretold; `reached` is the
    /// latest aimed sample.
    #[cfg_attr(test, schemars(extend("enum" = ["worst", "median", "arrival", "reached"])))]
    figure: &'static str,
    /// Its values, one for each subject, in their order.
    subjects: Vec<OfSubject<'a>>,
}

/// A figure of one subject.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfSubject<'a> {
    /// The value over all seeds: the worst, the latest arrival or aimed sample, or the middle of
    /// the medians. It is null if no run has one.
    ns: Option<i64>,
    /// The value's ratio to the lowest of all subjects.
    times_lowest: Option<f64>,
    /// The value of each run, by seed.
    runs: Vec<OfRun<'a>>,
}

/// A figure of one run.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OfRun<'a> {
    /// The run.
    run: &'a str,
    /// Its seed.
    seed: u64,
    /// The value.
    ns: i64,
}

/// The verdict on a setting.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
enum Verdict<'a> {
    /// The runs were judged: `punctual.verdict/1`.
    Judged(Verdicts<'a>),
    /// No verdict can be given.
    Unanswered {
        /// The reason.
        unanswered: &'a str,
    },
}

/// The worst sample of a subject in one measurement.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Worst<'a> {
    /// The number of its setting, from 0.
    setting: usize,
    /// Its subject.
    subject: &'a str,
    /// Its probe.
    probe: &'a str,
    /// Its load.
    load: &'a str,
    /// Its variant.
    variant: &'a str,
    /// Its run.
    run: &'a str,
    /// The sample.
    value_ns: i64,
    /// Its story, or the reason why there is none.
    story: Told<'a>,
}

/// The use of a cluster, by the tasks that delivered what they measured.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Cluster {
    /// The number of these tasks.
    tasks: usize,
    /// The time for which their guests ran, together, in seconds.
    guest_s: f64,
    /// The time for which they had a node, together, in seconds.
    allocated_s: f64,
    /// The guests' share of that time.
    efficiency: f64,
}

/// The runs that a campaign would measure. New fields may be added to version 1; none is removed or
/// changes its meaning.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Plan<'a> {
    #[cfg_attr(test, schemars(extend("const" = PLAN)))]
    schema: &'static str,
    /// The campaign's name.
    campaign: &'a str,
    /// The parts that are not measured at all, with the reasons.
    left_out: &'a [String],
    /// The time that the runs which are left may take.
    seconds_left: f64,
    /// The runs, those that are left and those that are not.
    runs: Vec<PlannedRun<'a>>,
}

/// A run that a campaign asks for.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlannedRun<'a> {
    /// Its setting.
    pub setting: &'a str,
    /// Its subject.
    pub subject: &'a str,
    /// The kernel's id.
    pub kernel: &'a str,
    /// The boot arguments.
    pub boot: &'a str,
    /// The seed.
    pub seed: u64,
    /// The measurement's key, a short word.
    pub key: &'a str,
    /// The run of the store that is this one; null if it is left to measure.
    pub run: Option<&'a str>,
    /// The time that it may take.
    pub seconds: f64,
}

/// `punctual.campaign/1`: times in nanoseconds. `docs/schema/campaign-1.json` describes it.
///
/// # Panics
/// Never: all of it can be written as JSON.
pub fn campaign_json(campaign: &Campaign) -> Value {
    let (finished, asked) = campaign.progress();
    let cluster = campaign.cluster.map(|cluster| Cluster {
        tasks: cluster.tasks,
        guest_s: cluster.guest_s,
        allocated_s: cluster.allocated_s,
        efficiency: cluster.efficiency(),
    });
    let document = Document {
        schema: SCHEMA,
        campaign: &campaign.name,
        summary: &campaign.summary,
        asked,
        finished,
        left_out: &campaign.left_out,
        settings: campaign.settings.iter().map(setting).collect(),
        worst: campaign.stories.iter().map(worst).collect(),
        gaps: campaign.gaps(),
        cluster,
    };
    serde_json::to_value(document).expect("it has no map but of texts")
}

/// `punctual.campaign-plan/1`: the runs of a campaign, and how long those may take that are left.
/// `docs/schema/campaign-plan-1.json` describes it.
///
/// # Panics
/// Never: all of it can be written as JSON.
pub fn plan_json(
    campaign: &str,
    left_out: &[String],
    left: Duration,
    runs: Vec<PlannedRun<'_>>,
) -> Value {
    let plan = Plan {
        schema: PLAN,
        campaign,
        left_out,
        seconds_left: left.as_secs_f64(),
        runs,
    };
    serde_json::to_value(plan).expect("it has no map but of texts")
}

fn setting(one: &super::Setting) -> Setting<'_> {
    let rank = |rank: super::Rank| Rank {
        subject: rank.subject,
        times: rank.times,
    };
    let verdict = one.judgement.as_ref().map(|judged| match judged {
        Ok(judgement) => Verdict::Judged(Verdicts::of(judgement, &one.verdict_stories)),
        Err(why) => Verdict::Unanswered { unanswered: why },
    });
    Setting {
        name: &one.name,
        subjects: one.subjects.iter().map(subject).collect(),
        ranking: one.ranking().into_iter().map(rank).collect(),
        figures: one.rows.iter().map(figure).collect(),
        verdict,
    }
}

fn subject(one: &super::Subject) -> Subject<'_> {
    let runs = one.runs.iter().map(|run| RunOf {
        run: &run.id,
        seed: run.seed,
        state: run.state.name(),
        digest: run.digest.as_deref(),
    });
    Subject {
        name: &one.name,
        seeds: &one.seeds,
        runs: runs.collect(),
    }
}

fn figure(row: &super::Row) -> OfRow<'_> {
    let subjects = row.values.iter().zip(0..).map(|(runs, subject)| OfSubject {
        ns: row.value(subject).map(|value| value.0),
        times_lowest: row.times(subject),
        runs: runs.iter().map(of_run).collect(),
    });
    OfRow {
        names: Names::from(&row.row),
        figure: row.figure.name(),
        subjects: subjects.collect(),
    }
}

fn of_run(one: &super::OfRun) -> OfRun<'_> {
    OfRun {
        run: &one.run,
        seed: one.seed,
        ns: one.value.0,
    }
}

fn worst((worst, run, story): &(super::Worst, Run, Story)) -> Worst<'_> {
    Worst {
        setting: worst.setting,
        subject: &worst.subject,
        probe: &worst.key.probe,
        load: &worst.key.load,
        variant: &worst.key.variant,
        run: &run.id,
        value_ns: worst.value.0,
        story: Told::from(story),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::assert_is_of;

    #[test]
    fn the_schemas_are_what_the_types_say() {
        assert_is_of::<Document<'_>>(
            "campaign-1.json",
            "The results of a campaign: what `punctual campaign --json` prints",
        );
        assert_is_of::<Plan<'_>>(
            "campaign-plan-1.json",
            "What a campaign would measure: what `punctual campaign --plan --json` prints",
        );
    }
}

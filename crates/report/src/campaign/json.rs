// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign for programs.

use serde_json::{Value, json};

use super::{Campaign, RunOf, Setting, Subject};
use crate::judgement::judgement_json;
use crate::scope::json::told;

/// `punctual.campaign/1`: times in nanoseconds. `docs/schema/campaign-1.json` describes it.
pub fn campaign_json(campaign: &Campaign) -> Value {
    let (finished, asked) = campaign.progress();
    let stories = campaign.stories.iter().map(|(worst, run, story)| {
        json!({
            "setting": worst.setting,
            "subject": worst.subject,
            "probe": worst.key.probe,
            "load": worst.key.load,
            "variant": worst.key.variant,
            "run": run.id,
            "value_ns": worst.value.0,
            "story": told(story),
        })
    });
    json!({
        "schema": "punctual.campaign/1",
        "campaign": campaign.name,
        "summary": campaign.summary,
        "asked": asked,
        "finished": finished,
        "left_out": campaign.left_out,
        "settings": campaign.settings.iter().map(setting).collect::<Vec<_>>(),
        "worst": stories.collect::<Vec<_>>(),
        "gaps": campaign.gaps(),
        "cluster": campaign.cluster.map(|cluster| json!({
            "tasks": cluster.tasks,
            "guest_s": cluster.guest_s,
            "allocated_s": cluster.allocated_s,
            "efficiency": cluster.efficiency(),
        })),
    })
}

fn setting(one: &Setting) -> Value {
    let rank = |rank: &super::Rank| json!({ "subject": rank.subject, "times": rank.times });
    let figure = |row: &super::Row| {
        let subjects = row.values.iter().zip(0..).map(|(runs, subject)| {
            let runs = runs
                .iter()
                .map(|one| json!({ "run": one.run, "seed": one.seed, "ns": one.value.0 }));
            json!({
                "ns": row.value(subject).map(|value| value.0),
                "times_lowest": row.times(subject),
                "runs": runs.collect::<Vec<_>>(),
            })
        });
        json!({
            "probe": row.row.probe,
            "load": row.row.load,
            "variant": row.row.variant,
            "repetition": row.row.repetition,
            "figure": row.figure.name(),
            "subjects": subjects.collect::<Vec<_>>(),
        })
    };
    let verdict = one.judgement.as_ref().map(|judged| match judged {
        Ok(judgement) => judgement_json(judgement, &one.verdict_stories),
        Err(why) => json!({ "unanswered": why }),
    });
    json!({
        "setting": one.name,
        "subjects": one.subjects.iter().map(subject).collect::<Vec<_>>(),
        "ranking": one.ranking().iter().map(rank).collect::<Vec<_>>(),
        "figures": one.rows.iter().map(figure).collect::<Vec<_>>(),
        "verdict": verdict,
    })
}

fn subject(one: &Subject) -> Value {
    let run = |run: &RunOf| {
        json!({
            "run": run.id,
            "seed": run.seed,
            "state": run.state.name(),
            "digest": run.digest,
        })
    };
    json!({
        "subject": one.name,
        "seeds": one.seeds,
        "runs": one.runs.iter().map(run).collect::<Vec<_>>(),
    })
}

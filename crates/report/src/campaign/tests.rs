// SPDX-License-Identifier: MIT OR Apache-2.0

use punctual_judge::{Baselines, judge};
use punctual_model::Limit;
use serde_json::json;

use super::*;
use crate::fixtures::{self, assert_has};

const NAMES: [&str; 4] = ["none", "voluntary", "full", "rt"];

fn campaign(runs: &[Run]) -> Campaign {
    let names = NAMES.map(str::to_owned).into_iter();
    let mut setting = Setting::new("demo", names, &[1, 2]);
    for run in runs {
        let subject = NAMES.iter().position(|name| *name == run.subject.name);
        setting.take(subject.unwrap(), run);
    }
    Campaign {
        name: "nightly".into(),
        summary: "four models".into(),
        left_out: vec!["demo: rt preempt=none: not offered".into()],
        settings: vec![setting],
        stories: Vec::new(),
        cluster: Cluster::of(&[(29.5, 30.0), (28.5, 30.0)]),
    }
}

fn limit(at_most: &str) -> Vec<Limit> {
    let text = format!(
        "probe = \"timer\"\nload = \"stress\"\nwhat = \"worst\"\nat_most = \"{at_most}\"\n"
    );
    vec![toml::from_str(&text).unwrap()]
}

#[test]
fn figures_are_the_worst_and_the_middle_over_all_seeds() {
    let runs = fixtures::seeds(2);
    let campaign = campaign(&runs);
    assert_eq!(campaign.progress(), (8, 8));
    assert!(campaign.is_whole());
    let setting = &campaign.settings[0];
    let row = setting
        .rows
        .iter()
        .find(|row| (row.row.load.as_str(), row.figure) == ("stress", Figure::Worst));
    let row = row.unwrap();
    let of_rt = |run: &&Run| run.subject.name == "rt";
    let worst = runs.iter().filter(of_rt).map(|run| run.recordings[1].max());
    assert_eq!(row.value(3), worst.max().unwrap());
    assert_eq!(row.times(3), Some(1.0), "rt has the lowest");
    assert!(row.times(0).unwrap() > 20.0);
    let seeds: Vec<u64> = row.values[0].iter().map(|one| one.seed).collect();
    assert_eq!(seeds, [1, 2]);
}

#[test]
fn what_was_cut_short_is_listed_as_not_measured() {
    let mut runs = fixtures::seeds(2);
    runs[0].recordings[0].interrupted = true;
    let gaps = campaign(&runs).gaps().join("\n");
    assert_has(&gaps, &["none-1: ", "interrupted after "]);
}

#[test]
fn whoever_lacks_a_figure_is_not_ranked_and_nothing_missing_is_a_zero() {
    let mut runs = fixtures::seeds(2);
    runs.retain(|run| run.subject.name != "full");
    runs.pop();
    runs[0].state = State::Failed;
    runs[0].error = Some(fixtures::NO_BOOT.into());
    let campaign = campaign(&runs);
    assert_eq!(campaign.progress(), (4, 8));
    assert!(!campaign.is_whole());
    let setting = &campaign.settings[0];
    let ranked: Vec<usize> = setting.ranking().iter().map(|rank| rank.subject).collect();
    assert!(!ranked.contains(&2), "{ranked:?}");
    assert_eq!(setting.rows[0].value(2), None);
    let gaps = campaign.gaps();
    assert_has(
        &gaps.join("\n"),
        &[
            "demo: full: 2 runs were not begun",
            "demo: rt: 1 run was not begun",
            "seed 1: none-1: ",
            "the run failed",
        ],
    );
    let text = campaign_text(&campaign, 80);
    assert_has(
        &text,
        &[
            "4 of 8 runs",
            "full is not ranked",
            "Not measured:",
            "rt preempt=none",
        ],
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert_has(
        &campaign_page(&campaign),
        &["<td class=\"gap\">–</td>", "not begun"],
    );
}

#[test]
fn the_worst_are_of_different_subjects_or_loads() {
    let campaign = campaign(&fixtures::seeds(2));
    let worst = campaign.worst(3);
    assert_eq!(worst.len(), 3);
    assert!(worst[0].value >= worst[1].value);
    let about = |one: &Worst| {
        (
            one.subject.clone(),
            one.key.probe.clone(),
            one.key.load.clone(),
        )
    };
    assert_ne!(about(&worst[0]), about(&worst[1]));
    assert!(worst.iter().all(|one| one.key.probe != "hackbench"));
    assert_eq!(campaign.worst(0), []);
}

#[test]
fn what_is_printed_is_what_the_schema_describes() {
    let schema = include_str!("../../../../docs/schema/campaign-1.json");
    let check = |value: &serde_json::Value| crate::schema::check("campaign-1.json", schema, value);
    let runs = fixtures::seeds(2);
    let mut campaign = campaign(&runs);
    check(&campaign_json(&campaign)).unwrap();
    let judged = judge(&limit("9 us"), &runs, &Baselines::new()).unwrap();
    campaign.settings[0].judgement = Some(Ok(judged));
    let worst = campaign.worst(1).remove(0);
    let why = "its kernel is not here".to_owned();
    campaign.stories.push((worst, runs[0].clone(), Err(why)));
    let mut value = campaign_json(&campaign);
    check(&value).unwrap();
    assert_has(
        &campaign_page(&campaign),
        &[
            "Ranking",
            "Heat map",
            "heat5",
            "Verdicts",
            "its kernel is not here",
            "left out: ",
        ],
    );
    assert_has(
        &campaign_text(&campaign, 80),
        &["unfit", "The worst, and why:"],
    );
    campaign.settings[0].judgement = Some(Err("no such probe".into()));
    check(&campaign_json(&campaign)).unwrap();
    value["settings"][0]["more"] = json!(1);
    assert!(check(&value).is_err());
}

#[test]
fn a_node_that_nobody_had_was_not_used_in_part() {
    assert_eq!(Cluster::of(&[]), None);
    assert_eq!(Cluster::of(&[(0.0, 0.0)]), None);
}

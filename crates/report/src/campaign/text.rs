// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign for terminals.

use super::{Campaign, Row, Setting};
use crate::judgement::judgement_text;
use crate::scope::told;
use crate::text::{Lines, clean, counted, thousands, times};

/// The most gaps that are listed; further ones are counted.
const GAPS: usize = 10;

/// Each setting with its ranking, figures and verdicts, then stories and gaps.
/// No line is longer than `width`.
pub fn campaign_text(campaign: &Campaign, width: usize) -> String {
    let mut lines = Lines::new(width);
    lines.put(&clean(&head(campaign)));
    if let Some(cluster) = campaign.cluster {
        lines.put(&cluster.told());
    }
    for setting in &campaign.settings {
        lines.line("");
        lines.put(&clean(&setting.name));
        for line in ranking_told(setting) {
            lines.wrap(&clean(&line), "  ", "    ");
        }
        for row in &setting.rows {
            lines.wrap(&clean(&row_told(setting, row)), "  ", "    ");
        }
        match &setting.judgement {
            Some(Ok(judgement)) => {
                lines.line("");
                let text = judgement_text(judgement, &setting.verdict_stories, width);
                for line in text.trim_end().lines() {
                    lines.line(line);
                }
            }
            Some(Err(why)) => lines.wrap(&clean(why), "  not judged: ", "    "),
            None => {}
        }
    }
    if !campaign.stories.is_empty() {
        lines.line("");
        lines.put("The worst, and why:");
        for (worst, run, story) in &campaign.stories {
            let about = format!(
                "{} in {} ({}, {}, seed {}): {}",
                worst.value,
                worst.key,
                worst.subject,
                run.id,
                run.seed,
                told(story)
            );
            lines.wrap(&clean(&about), "  ", "    ");
        }
    }
    let gaps = campaign.gaps();
    let gaps = campaign.left_out.iter().chain(&gaps);
    let gaps: Vec<&String> = gaps.collect();
    if !gaps.is_empty() {
        lines.line("");
        lines.put("Not measured:");
        for gap in gaps.iter().take(GAPS) {
            lines.wrap(&clean(gap), "  ", "    ");
        }
        if let Some(more) = gaps.len().checked_sub(GAPS).filter(|more| *more > 0) {
            lines.line(format!("  and {} more", thousands(more as u64)));
        }
    }
    lines.finish()
}

/// `nightly: 80 of 80 runs, 4 subjects in 1 setting.`
pub fn head(campaign: &Campaign) -> String {
    let (finished, asked) = campaign.progress();
    let (finished, asked) = (thousands(finished as u64), counted(asked, "run"));
    let settings: Vec<&str> = campaign.settings.iter().map(|one| &*one.name).collect();
    let summary = match campaign.summary.as_str() {
        "" => String::new(),
        summary if summary.ends_with(['.', '?', '!']) => format!(" {summary}"),
        summary => format!(" {summary}."),
    };
    format!(
        "{}: {finished} of {asked} ({}).{summary}",
        campaign.name,
        settings.join("; ")
    )
}

/// The subjects in order, each with the ratio of its figures to the lowest; and those not ranked.
pub fn ranking_told(setting: &Setting) -> Vec<String> {
    let ranks = setting.ranking();
    let mut told: Vec<String> = ranks
        .iter()
        .zip(1..)
        .map(|(rank, place)| {
            let name = &setting.subjects[rank.subject].name;
            format!("{place}. {name} {}", times(rank.times))
        })
        .collect();
    for (subject, number) in setting.subjects.iter().zip(0..) {
        if !ranks.iter().any(|rank| rank.subject == number) {
            told.push(format!(
                "–  {} is not ranked: it lacks figures",
                subject.name
            ));
        }
    }
    told
}

/// `timer, stress, cpu0: worst: rt 9.73 µs, full 257 µs`, the lowest first.
fn row_told(setting: &Setting, row: &Row) -> String {
    let mut values: Vec<_> = setting
        .subjects
        .iter()
        .zip(0..)
        .filter_map(|(subject, number)| Some((row.value(number)?, &subject.name)))
        .collect();
    values.sort();
    let is_work = row.row.is_throughput();
    let told = values.iter().map(|(value, name)| {
        let value = crate::text::time(*value, is_work);
        format!("{name} {value}")
    });
    let told: Vec<String> = told.collect();
    format!("{}: {}", row.title(), told.join(", "))
}

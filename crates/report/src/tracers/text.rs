// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracers for the terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use punctual_model::Nanos;

use super::{Agreement, Group, STAGES, Told, Traced, groups};
use crate::scope::text::sentence;
use crate::scope::{Story, told};
use crate::text::{exact, wrap};

/// The most samples told in words.
const IN_WORDS: usize = 6;

/// The tables, and the stories of samples that are told differently.
pub fn tracers_text(all: &[Traced], width: usize) -> String {
    let groups = groups(all);
    let mut text = costs(&groups);
    text += "\n";
    text += &agreements(&groups);
    text += &absences(&groups, width);
    text += &unexplained(&groups, width);
    text += &differing(all, width);
    text
}

/// Tables the extra length of samples with each tracer over those without one, and its stages.
fn costs(groups: &[Group<'_>]) -> String {
    let mut text = format!(
        "What a tracer adds, in ns\n{:16} {:10} {:>9} {:>9}",
        "kernel", "tracer", "median", "worst"
    );
    for stage in STAGES {
        let _ = write!(text, " {:>9}", stage.name());
    }
    text.push('\n');
    for group in groups {
        let _ = write!(text, "{:16} {:10}", group.kernel, group.name());
        if group.absent().is_some() {
            text.push_str("  not had\n");
            continue;
        }
        let mut plain = groups.iter();
        let plain = plain.find(|one| one.kernel == group.kernel && one.tracer.is_none());
        let added = |of: &dyn Fn(&Group<'_>) -> Option<Nanos>| {
            // Without whole figures of none, what is added is not known.
            let plain = plain.filter(|plain| plain.absent().is_none());
            let before = group.tracer.map(|_| plain.and_then(of));
            match (of(group), before) {
                (Some(now), None) => exact(now),
                (Some(now), Some(Some(before))) => signed(now - before),
                _ => "–".to_owned(),
            }
        };
        let figures = [
            added(&|group: &Group<'_>| group.median()),
            added(&|group: &Group<'_>| group.worst()),
        ];
        let stages = STAGES.map(|stage| added(&|group: &Group<'_>| group.stage(stage)));
        for figure in figures.iter().chain(&stages) {
            let _ = write!(text, " {figure:>9}");
        }
        text.push('\n');
    }
    text
}

fn signed(time: Nanos) -> String {
    let sign = if time > Nanos::ZERO { "+" } else { "" };
    format!("{sign}{}", exact(time))
}

/// Tables how often each tracer's story names the scope's culprit.
fn agreements(groups: &[Group<'_>]) -> String {
    let mut text = format!(
        "Whom a tracer blames for the samples that it caught\n{:16} {:10} {:>7}",
        "kernel", "tracer", "caught"
    );
    for agreement in Agreement::ALL {
        let _ = write!(text, " {:>8}", agreement.name());
    }
    text.push('\n');
    let traced = |group: &&Group<'_>| group.tracer.is_some() && group.absent().is_none();
    for group in groups.iter().filter(traced) {
        let (kernel, caught) = (group.kernel, group.told().count());
        let _ = write!(text, "{kernel:16} {:10} {caught:>7}", group.name());
        for agreement in Agreement::ALL {
            let _ = write!(text, " {:>8}", group.count(agreement));
        }
        text.push('\n');
    }
    text
}

fn absences(groups: &[Group<'_>], width: usize) -> String {
    let mut text = String::new();
    for group in groups {
        if let Some(why) = group.absent() {
            let told = format!("{}, {}: {why}", group.kernel, group.name());
            text += &(wrap(&told, "", "  ", width).join("\n") + "\n");
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

/// Describes the samples that the scope does not explain, with the reasons: those that were caught,
/// which are in no column; and those that were followed, if none of them gives the stages.
fn unexplained(groups: &[Group<'_>], width: usize) -> String {
    let mut text = String::new();
    for group in groups.iter().filter(|group| group.absent().is_none()) {
        let followed = group.runs.iter().flat_map(|one| &one.followed);
        let has_none = STAGES.iter().all(|stage| group.stage(*stage).is_none());
        let followed: Vec<&Story> = followed.filter(|_| has_none).collect();
        let caught: Vec<&Story> = group.told().map(|one| &one.truth).collect();
        for (what, stories) in [("caught", caught), ("evenly spaced", followed)] {
            for (why, count) in reasons(&stories) {
                let (kernel, name, all) = (group.kernel, group.name(), stories.len());
                let told = format!(
                    "{kernel}, {name}: the scope does not explain {count} of the {all} {what} \
                     samples: {why}"
                );
                text += &(wrap(&told, "", "  ", width).join("\n") + "\n");
            }
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

/// The reasons why these stories are not told, each with the number of stories.
fn reasons<'a>(stories: &[&'a Story]) -> BTreeMap<&'a str, usize> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for &story in stories {
        if let Err(why) = story.as_ref().and_then(|one| one.breakdown.as_ref()) {
            *reasons.entry(why.as_str()).or_default() += 1;
        }
    }
    reasons
}

/// Describes samples with different stories from tracer and scope, the worst first.
fn differing(all: &[Traced], width: usize) -> String {
    let mut found: Vec<(&Traced, &Told, Nanos)> = Vec::new();
    for one in all {
        for told in &one.told {
            let differs = matches!(
                told.agreement(),
                Some(Agreement::Other | Agreement::Nothing)
            );
            let truth = told.truth.as_ref().ok();
            if let (true, Some(truth)) = (differs, truth) {
                found.push((one, told, truth.chosen.sample.value));
            }
        }
    }
    found.sort_by_key(|(_, _, late)| -late.0);
    let mut kept: Vec<(&Traced, &Told, Nanos)> = Vec::new();
    // One of each tracer on each kernel first: the worst may all be of one.
    for one in &found {
        let is_alike = |other: &&(&Traced, &Told, Nanos)| {
            (&other.0.run.subject.name, other.0.tracer) == (&one.0.run.subject.name, one.0.tracer)
        };
        if kept.iter().filter(is_alike).count() < 1 && kept.len() < IN_WORDS {
            kept.push(*one);
        }
    }
    let mut text = String::new();
    for (traced, one, _) in kept {
        let run = &traced.run;
        let _ = writeln!(
            text,
            "\n{}, {}, sample {}",
            run.id, run.subject.name, one.seq
        );
        let tracer = one
            .tracer
            .as_ref()
            .map_or_else(|why| format!("nothing: {why}"), sentence);
        for (who, told) in [("the scope", told(&one.truth)), ("the tracer", tracer)] {
            let line = wrap(&format!("{who}: {told}"), "  ", "    ", width).join("\n");
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

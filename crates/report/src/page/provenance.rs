// SPDX-License-Identifier: MIT OR Apache-2.0
//! The provenance of the numbers: the facts common to all runs once, then each one's own.

use maud::{Markup, html};
use punctual_judge::fate;
use punctual_model::record::Provenance;
use punctual_model::run::NoDigest;
use punctual_model::{Recording, Run};
use std::fmt::Write as _;

use super::evidence::name;
use crate::matrix::Matrix;
use crate::shell::{folded, wide};
use crate::text::{counted, thousands};

/// The facts of a run, by name.
type Facts = Vec<(String, String)>;

/// The provenance of all runs.
pub fn provenance(matrix: &Matrix<'_>) -> Markup {
    let all: Vec<(&Run, Facts)> = matrix.runs().map(|run| (run, facts(run))).collect();
    let Some((_, first)) = all.first() else {
        return html! {};
    };
    let is_shared = |fact: &&(String, String)| {
        let several = all.len() > 1;
        several && all.iter().all(|(_, facts)| facts.contains(fact))
    };
    let shared: Facts = first.iter().filter(is_shared).cloned().collect();
    let own = |facts: &Facts| -> Facts {
        let facts = facts.iter().filter(|fact| !shared.contains(fact));
        facts.cloned().collect()
    };
    let body = html! {
        @if !shared.is_empty() {
            (folded("What all runs have in common", &counted(shared.len(), "fact"), &table(&shared)))
        }
        @for (run, facts) in &all {
            (folded(&name(matrix, run), &short_identity(run), &table(&own(facts))))
        }
    };
    folded("Provenance", "as read back from the running kernels", &body)
}

fn table(facts: &Facts) -> Markup {
    wide(
        &html! { table.text { tbody { @for (key, value) in facts { tr {
            th scope="row" { (key) }
            td.free { @if value.contains('\n') { pre { (value) } } @else { (value) } }
        } } } } },
    )
}

fn short_identity(run: &Run) -> String {
    match &run.provenance {
        Some(read_back) => format!("{}, preemption {}", read_back.release, read_back.preemption),
        None => fate(run),
    }
}

fn facts(run: &Run) -> Facts {
    let mut facts = Facts::new();
    let mut add = |key: &str, value: &str| facts.push((key.to_owned(), value.to_owned()));
    let (subject, finished) = (&run.subject, run.finished.as_deref());
    let digest = match run.no_digest() {
        Some(NoDigest::Unfinished(_)) => format!("none: {}", fate(run)),
        _ => run.digest_or_why(),
    };
    add("run", &run.id);
    add("state", &fate(run));
    add("digest", &digest);
    add("seed", &run.seed.to_string());
    match run.clock() {
        Some(clock) => add("time", &format!("virtual, {clock}")),
        None => add("time", "real time"),
    }
    add("started", &run.started);
    add("finished", finished.unwrap_or("not recorded"));
    add("bench", &subject.bench);
    add("kernel", &subject.kernel);
    let boot = Some(subject.boot.as_str()).filter(|boot| !boot.is_empty());
    add("boot arguments asked for", boot.unwrap_or("none"));
    let read_back = |value: fn(&Provenance) -> String| {
        let none = || "not read back: the subject never got so far".to_owned();
        run.provenance.as_ref().map_or_else(none, value)
    };
    add("release", &read_back(|found| found.release.clone()));
    add("version", &read_back(|found| found.version.clone()));
    let preemption = read_back(|found| found.preemption.to_string());
    add("preemption, read back", &preemption);
    let cmdline = read_back(|found| found.cmdline.clone());
    add("command line, read back", &cmdline);
    for (key, value) in run.provenance.iter().flat_map(|found| &found.facts) {
        add(key, &value.to_string());
    }
    for (key, value) in run.machine.facts() {
        add(key, &value);
    }
    add("punctual", &run.punctual);
    for recording in &run.recordings {
        add(&recording.title(), &settings(recording));
    }
    add("plan", &run.plan);
    facts
}

/// Describes the making of a recording, as read back.
fn settings(recording: &Recording) -> String {
    let count = thousands(recording.count);
    let warmup = thousands(recording.warmup);
    let mut text = format!("{count} samples after {warmup} set aside");
    if let Some(interval) = recording.interval {
        let _ = write!(text, ", one every {interval}");
    }
    for (key, value) in &recording.settings {
        let _ = write!(text, "; {key} {value}");
    }
    text
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the numbers come from: what all runs have in common once, then what is each one's own.

use maud::{Markup, html};
use punctual_model::record::Provenance;
use punctual_model::recording::Recording;
use punctual_model::run::Run;
use std::fmt::Write as _;

use super::evidence::{counted, name};
use crate::matrix::{Matrix, fate};
use crate::shell::folded;
use crate::text::thousands;

/// What is known of a run, by name.
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
    html! {
        div.wide { table.text { tbody {
            @for (key, value) in facts { tr {
                th scope="row" { (key) }
                td.free { @if value.contains('\n') { pre { (value) } } @else { (value) } }
            } }
        } } }
    }
}

fn short_identity(run: &Run) -> String {
    match &run.provenance {
        Some(read_back) => format!("{}, preemption {}", read_back.release, read_back.preemption),
        None => fate(run),
    }
}

fn facts(run: &Run) -> Facts {
    let none = "not read back: the subject never got so far";
    let read_back = |value: fn(&Provenance) -> String| {
        let provenance = run.provenance.as_ref();
        provenance.map_or_else(|| none.to_owned(), value)
    };
    let digest = || {
        run.digest()
            .unwrap_or_else(|| format!("none: {}", fate(run)))
    };
    let clock = run.ns_per_insn().map_or_else(
        || "real time".to_owned(),
        |ns| format!("virtual, {ns} ns per instruction"),
    );
    let mut lines: Facts = [
        ("run", run.id.clone()),
        ("state", fate(run)),
        ("digest", digest()),
        ("seed", run.seed.to_string()),
        ("time", clock),
        ("started", run.started.clone()),
        (
            "finished",
            run.finished
                .clone()
                .unwrap_or_else(|| "not recorded".to_owned()),
        ),
        ("bench", run.subject.bench.clone()),
        ("kernel", run.subject.kernel.clone()),
        ("boot arguments asked for", or_none(&run.subject.boot)),
        (
            "release",
            read_back(|provenance| provenance.release.clone()),
        ),
        (
            "version",
            read_back(|provenance| provenance.version.clone()),
        ),
        (
            "preemption, read back",
            read_back(|provenance| provenance.preemption.to_string()),
        ),
        (
            "command line, read back",
            read_back(|provenance| provenance.cmdline.clone()),
        ),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect();
    let facts = run.provenance.iter();
    let facts = facts.flat_map(|provenance| &provenance.facts);
    lines.extend(facts.map(|(key, value)| (key.clone(), value.to_string())));
    let machine = run.machine.facts().into_iter();
    lines.extend(machine.map(|(key, value)| (key.to_owned(), value)));
    lines.push(("punctual".to_owned(), run.punctual.clone()));
    lines.extend(run.recordings.iter().map(settings));
    lines.push(("plan".to_owned(), run.plan.clone()));
    lines
}

fn or_none(text: &str) -> String {
    if text.is_empty() {
        "none".to_owned()
    } else {
        text.to_owned()
    }
}

/// How a recording was made, as read back.
fn settings(recording: &Recording) -> (String, String) {
    let count = thousands(recording.count);
    let warmup = thousands(recording.warmup);
    let mut text = format!("{count} samples after {warmup} set aside");
    if let Some(interval) = recording.interval {
        let _ = write!(text, ", one every {interval}");
    }
    for (key, value) in &recording.settings {
        let _ = write!(text, "; {key} {value}");
    }
    (recording.title(), text)
}

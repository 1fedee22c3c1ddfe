//! The second half of a page: what the figures rest on.

use maud::{Markup, html};
use punctual_model::recording::Recording;
use punctual_model::run::Run;

use crate::matrix::{Cell, Matrix, Measurement, fate};
use crate::stats::{seconds, thousands};

/// How many of the worst samples each recording shows.
const WORST_SHOWN: usize = 5;

/// `rt`, with the seed where there are several.
pub fn name(matrix: &Matrix<'_>, run: &Run) -> String {
    if matrix.seeds().len() > 1 {
        format!("{}, seed {}", matrix.name_of(run), run.seed)
    } else {
        matrix.name_of(run).to_owned()
    }
}

/// What could not be measured, and why.
pub fn unmeasured(matrix: &Matrix<'_>) -> Markup {
    let mut gaps: Vec<[String; 3]> = Vec::new();
    for column in &matrix.columns {
        for row in &matrix.rows {
            let absent = match column.cell(row) {
                Cell::Measured { absent, .. } | Cell::Missing(absent) => absent
                    .iter()
                    .map(|absent| [row.title(), name(matrix, absent.run), absent.reason()])
                    .collect(),
                Cell::Unsupported(reason) => {
                    vec![[row.title(), column.name.clone(), reason.to_string()]]
                }
            };
            gaps.extend(absent);
        }
    }
    // First what one run lacks for one reason, then which runs lack the same.
    let gaps = joined(joined(gaps, 0), 1);
    html! {
        @if !gaps.is_empty() {
            h2 { "What could not be measured" }
            div.wide { table.text {
                thead { tr { th { "measurement" } th { "subject" } th { "reason" } } }
                tbody { @for [what, subject, reason] in &gaps {
                    tr { td.free { (what) } td.free { (subject) } td.free { (reason) } }
                } }
            } }
        }
    }
}

/// Lines that differ in one column only, made one.
fn joined(lines: Vec<[String; 3]>, column: usize) -> Vec<[String; 3]> {
    let mut kept: Vec<[String; 3]> = Vec::new();
    for line in lines {
        let alike =
            |other: &&mut [String; 3]| (0..3).all(|at| at == column || other[at] == line[at]);
        match kept.iter_mut().find(alike) {
            Some(same) => {
                same[column].push_str("; ");
                same[column].push_str(&line[column]);
            }
            None => kept.push(line),
        }
    }
    kept
}

/// Every recording, measurement by measurement, so that subjects stand together.
pub fn recordings<'a>(matrix: &Matrix<'a>) -> Vec<(Measurement, &'a Run, &'a Recording)> {
    let mut all = Vec::new();
    for row in &matrix.rows {
        for column in &matrix.columns {
            if let Cell::Measured { found, .. } = column.cell(row) {
                all.extend(
                    found
                        .iter()
                        .map(|one| (row.clone(), one.run, one.recording)),
                );
            }
        }
    }
    all
}

/// The loads' proof that they worked.
pub fn work(matrix: &Matrix<'_>) -> Markup {
    let all = recordings(matrix);
    let worked: Vec<_> = all
        .iter()
        .filter(|(_, run, recording)| !run.work(recording).is_empty())
        .collect();
    let silent: Vec<_> = all
        .iter()
        .filter(|(row, run, recording)| !row.is_idle() && run.work(recording).is_empty())
        .collect();
    html! {
        @if !worked.is_empty() || !silent.is_empty() {
            h2 { "What the loads did" }
            div.wide { table.text {
                thead { tr {
                    th { "measurement" } th { "subject" } th { "worker" }
                    th.number { "rounds" } th.number { "work" } th.number { "CPU time" }
                } }
                tbody {
                    @for (row, run, recording) in &worked { @for work in run.work(recording) { tr {
                        td { (row.title()) } td { (name(matrix, run)) } td { code { (work.worker) } }
                        td.number { (thousands(work.rounds)) }
                        td.number { (thousands(work.amount)) " " (work.unit) }
                        td.number { (seconds(work.cpu)) }
                    } } }
                    @for (row, run, _) in &silent { tr {
                        td { (row.title()) } td { (name(matrix, run)) }
                        td.gap colspan="4" { "the load reported no work" }
                    } }
                }
            } }
        }
    }
}

/// The worst samples, with their numbers and times.
pub fn worst(matrix: &Matrix<'_>) -> Markup {
    let all = recordings(matrix);
    let late = all
        .iter()
        .filter(|(row, _, recording)| !row.is_throughput() && !recording.worst.is_empty());
    let late: Vec<_> = late.collect();
    html! {
        @if !late.is_empty() {
            h2 { "Worst samples" }
            p.soft { "Each with its number and the time since the recording began." }
            div.wide { table.text {
                thead { tr {
                    th { "measurement" } th { "subject" }
                    @for number in 1..=WORST_SHOWN { th { (number) } }
                } }
                tbody { @for (row, run, recording) in late { tr {
                    td { (row.title()) } td { (name(matrix, run)) }
                    @for sample in recording.worst.iter().take(WORST_SHOWN) {
                        td {
                            b { (sample.value) } br;
                            span.soft { "#" (sample.seq) ", " (format!("{:.3} s", sample.at.as_secs_f64())) }
                        }
                    }
                    @for _ in recording.worst.len()..WORST_SHOWN { td.gap { "–" } }
                } } }
            } }
        }
    }
}

/// Where the numbers come from, run by run.
pub fn provenance(matrix: &Matrix<'_>) -> Markup {
    html! {
        h2 { "Provenance" }
        @for run in matrix.runs() {
            details.evidence {
                summary { (name(matrix, run)) " " span { (short_identity(run)) } }
                div.wide { table.text { tbody {
                    @for (key, value) in identity(run) { tr { th scope="row" { (key) } td.free { (value) } } }
                } } }
                @for recording in &run.recordings { (settings(recording)) }
                p.soft { "The plan that the target was given:" }
                pre { (run.plan) }
            }
        }
    }
}

fn short_identity(run: &Run) -> String {
    match &run.provenance {
        Some(read_back) => format!("{}, preemption {}", read_back.release, read_back.preemption),
        None => fate(run),
    }
}

fn identity(run: &Run) -> Vec<(String, String)> {
    let none = "not read back: the subject never got so far";
    let read_back = |value: fn(&punctual_model::record::Provenance) -> String| {
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
    let mut lines: Vec<(String, String)> = [
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
fn settings(recording: &Recording) -> Markup {
    let settings: Vec<String> = recording
        .settings
        .iter()
        .map(|(key, value)| format!("{key} {value}"))
        .collect();
    html! {
        p {
            (recording.title()) ": "
            span.soft {
                (thousands(recording.count)) " samples after " (thousands(recording.warmup)) " set aside"
                @if let Some(interval) = recording.interval { ", one every " (interval) }
                @if !settings.is_empty() { "; " (settings.join(", ")) }
                "."
            }
        }
    }
}

/// What each subject's console showed.
pub fn consoles(matrix: &Matrix<'_>) -> Markup {
    html! {
        h2 { "Consoles" }
        @for run in matrix.runs() {
            details {
                summary { (name(matrix, run)) " " span { (lines(&run.console)) } }
                @if run.console.is_empty() {
                    p.soft { "Nothing was shown." }
                } @else {
                    pre { (run.console) }
                }
            }
        }
    }
}

pub fn lines(text: &str) -> String {
    match text.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{} lines", thousands(count as u64)),
    }
}

/// The commands that repeat these runs, one for each.
pub fn repeat(matrix: &Matrix<'_>) -> Markup {
    let mut commands: Vec<String> = matrix.runs().map(command).collect();
    commands.dedup();
    html! {
        h2 { "To repeat it" }
        pre { (commands.join("\n")) }
    }
}

fn command(run: &Run) -> String {
    let mut words = vec!["punctual run".to_owned(), run.suite.clone()];
    words.push(format!("--kernel {}", run.subject.kernel));
    if !run.subject.boot.is_empty() {
        words.push(format!("--boot {}", quoted(&run.subject.boot)));
    }
    words.push(format!("--seed {}", run.seed));
    if let Some(ns @ 2..) = run.ns_per_insn() {
        words.push(format!("--ns-per-insn {ns}"));
    }
    words.join(" ")
}

/// A word that a shell takes as it is.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

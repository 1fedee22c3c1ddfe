// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second half of a page: what the figures rest on.

use maud::{Markup, html};
use punctual_model::Nanos;
use punctual_model::recording::Recording;
use punctual_model::run::Run;
use punctual_model::units::Nanos;

use crate::matrix::{Cell, Matrix, Measurement};
use crate::shell::folded;
use crate::text::{seconds, thousands};

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
    let table = html! {
            div.wide { table.text.kept {
                thead { tr {
                    th { "measurement" } th { "subject" } th { "worker" }
                    th.number { "rounds" } th.number { "work" } th.number { "CPU time" }
                    th.number { "of" } th.number { "periods" }
                } }
                tbody {
                    @for (row, run, recording) in &worked { @for work in run.work(recording) { tr {
                        td { (row.title()) } td { (name(matrix, run)) } td.free { code { (work.worker) } }
                        td.number { (thousands(work.rounds)) }
                        td.number { (thousands(work.amount)) " " (work.unit) }
                        td.number { (seconds(work.cpu)) }
                        td.number { @if work.span > Nanos::ZERO { (seconds(work.span)) } }
                        td.number { @if let Some(periods) = work.periods() { (format!("{periods:.2}")) } }
                    } } }
                    @for (row, run, _) in &silent { tr {
                        td { (row.title()) } td { (name(matrix, run)) }
                        td.gap colspan="6" { "the load reported no work" }
                    } }
                }
            } }
    };
    let size = counted(worked.len() + silent.len(), "recording");
    html! {
        @if !worked.is_empty() || !silent.is_empty() {
            (folded("What the loads did", &size, &table))
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
    let size = format!("{WORST_SHOWN} of each recording");
    let table = html! {
            p.soft { "Each with its number and the time since the recording began." }
            div.wide { table.text.kept {
                thead { tr {
                    th { "measurement" } th { "subject" }
                    @for number in 1..=WORST_SHOWN { th { (number) } }
                } }
                tbody { @for (row, run, recording) in &late { tr {
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
    };
    html! { @if !late.is_empty() { (folded("Worst samples", &size, &table)) } }
}

/// What each subject's console showed.
pub fn consoles(matrix: &Matrix<'_>) -> Markup {
    let console = |run: &Run| match run.console.as_str() {
        "" => html! { p.soft { "Nothing was shown." } },
        console => html! { pre { (console) } },
    };
    let all = html! { @for run in matrix.runs() {
        (folded(&name(matrix, run), &lines(&run.console), &console(run)))
    } };
    folded("Consoles", &counted(matrix.runs().count(), "run"), &all)
}

/// How many lines a text has, in words.
pub fn lines(text: &str) -> String {
    counted(text.lines().count(), "line")
}

/// A number of things: `1 line`, `2 lines`.
pub fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", thousands(count as u64))
}

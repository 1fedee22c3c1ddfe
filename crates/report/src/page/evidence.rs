// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second half of a page: the evidence for the figures.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use maud::{Markup, html};
use punctual_model::probe::Shape;
use punctual_model::{Nanos, Recording, Run, Sample};

use crate::matrix::{Absent, Availability, Matrix, Measurement};
use crate::shell::{folded, wide};
use crate::text::{counted, seconds, thousands};

/// The number of the worst samples that each recording shows.
const WORST_SHOWN: usize = 5;

/// `rt`, with the seed where there are several. In real time seeds may be equal: there it is the
/// run's id.
pub fn name(matrix: &Matrix<'_>, run: &Run) -> String {
    let name = matrix.name_of(run);
    let column = matrix.column_of(run);
    let has_several = column.is_some_and(|column| column.runs.len() > 1);
    if run.is_virtual() && matrix.seeds().len() > 1 {
        format!("{name}, seed {}", run.seed)
    } else if !run.is_virtual() && has_several {
        format!("{name}, {}", run.id)
    } else {
        name.to_owned()
    }
}

/// Lists measurements that failed, and the reasons.
pub fn unmeasured(matrix: &Matrix<'_>) -> Markup {
    let mut gaps: Vec<[String; 3]> = Vec::new();
    for column in &matrix.columns {
        for row in &matrix.rows {
            match column.cell(row) {
                Availability::Measured { absent, .. } | Availability::Missing(absent) => {
                    let gap = |one: Absent<'_>| [row.title(), name(matrix, one.run), one.reason()];
                    gaps.extend(absent.into_iter().map(gap));
                }
                Availability::Unsupported(reason) => {
                    gaps.push([row.title(), column.name.clone(), reason.to_string()]);
                }
            }
        }
    }
    // First what one run lacks for one reason, then which runs lack the same.
    let gaps = joined(joined(gaps, 0), 1);
    let table = html! { table.text {
        thead { tr { th { "measurement" } th { "subject" } th { "reason" } } }
        tbody { @for [what, subject, reason] in &gaps {
            tr { td.free { (what) } td.free { (subject) } td.free { (reason) } }
        } }
    } };
    html! { @if !gaps.is_empty() { (wide(&table)) } }
}

/// Lines that differ in one column only, made one.
fn joined(lines: Vec<[String; 3]>, column: usize) -> Vec<[String; 3]> {
    let mut kept: Vec<[String; 3]> = Vec::new();
    for line in lines {
        let alike =
            |other: &&mut [String; 3]| (0..3).all(|at| at == column || other[at] == line[at]);
        match kept.iter_mut().find(alike) {
            Some(same) => same[column] = format!("{}; {}", same[column], line[column]),
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
            let found = column.found(row).into_iter();
            all.extend(found.map(|one| (row.clone(), one.run, one.recording)));
        }
    }
    all
}

/// The loads' proof that they worked.
pub fn work(matrix: &Matrix<'_>) -> Markup {
    let mut seen = BTreeSet::new();
    let mut steps = recordings(matrix);
    // A step's recordings share its load, whose work is told once.
    steps.retain(|(row, run, one)| !row.is_idle() && seen.insert((&run.id, one.key.step)));
    let mut all = steps.iter().flat_map(|(_, run, one)| run.work(one));
    let has_periods = all.any(|work| work.periods().is_some());
    let table = wide(&html! { table.text.kept {
        thead { tr {
            th { "step" } th { "subject" } th { "worker" }
            th.number { "rounds" } th.number { "work" } th.number { "CPU time" }
            th.number { "measured time" } @if has_periods { th.number { "periods" } }
        } }
        tbody { @for (row, run, recording) in &steps {
            @let (title, work) = (format!("{}, {}", row.probe, row.load), run.work(recording));
            @for work in work { tr {
                td { (title) } td { (name(matrix, run)) } td.free { code { (work.worker) } }
                td.number { (thousands(work.rounds)) }
                td.number { (thousands(work.amount)) " " (work.unit) }
                td.number { (seconds(work.cpu)) }
                td.number { @if work.span > Nanos::ZERO { (seconds(work.span)) } }
                @if has_periods { td.number {
                    @if let Some(periods) = work.periods() { (format!("{periods:.2}")) }
                } }
            } }
            @if work.is_empty() { tr {
                td { (title) } td { (name(matrix, run)) }
                td.gap colspan=(if has_periods { 6 } else { 5 }) { "the load reported no work" }
            } }
        } }
    } });
    let size = counted(steps.len(), "step");
    html! { @if !steps.is_empty() { (folded("What the loads did", &size, &table)) } }
}

/// Lists the marks made by whoever watched the runs.
pub fn marks(matrix: &Matrix<'_>) -> Markup {
    let marked = |run: &&Run| run.steps.iter().any(|step| !step.marks.is_empty());
    let runs: Vec<_> = matrix.runs().filter(marked).collect();
    let table = wide(&html! { table.text.kept {
        thead { tr {
            th { "step" } th { "subject" } th.number { "from its begin" }
            th.number { "samples" } th.number { "worst so far" }
        } }
        tbody { @for run in &runs { @for step in &run.steps { @for mark in &step.marks { tr {
            td { (step.probe) ", " (step.load) } td { (name(matrix, run)) }
            td.number { (seconds(mark.at)) } td.number { (thousands(mark.count)) }
            td.number { @if let Some(worst) = mark.worst { (worst) } }
        } } } } }
    } });
    let of = |run: &&Run| run.steps.iter().map(|step| step.marks.len()).sum::<usize>();
    let size = counted(runs.iter().map(of).sum(), "mark");
    html! { @if !runs.is_empty() { (folded("Marked while it was watched", &size, &table)) } }
}

/// The worst samples of a recording, the worst first: of jitter those farthest from zero, the first
/// without its place if that was not kept.
fn worst_samples(row: &Measurement, recording: &Recording) -> Vec<(Nanos, Option<Sample>)> {
    let distance = |value: Nanos| value.0.unsigned_abs();
    let mut kept = recording.worst.clone();
    let mut farthest = None;
    if row.view().shape == Shape::Jitter {
        kept.extend(recording.samples.iter());
        kept.sort_unstable_by_key(|one| (Reverse(distance(one.value)), one.seq));
        kept.dedup_by_key(|one| one.seq);
        let ends = recording.extremes.map(|(low, high)| [low, high]);
        let ends = ends.into_iter().flatten();
        let end = ends.max_by_key(|value| distance(*value));
        let first = kept.first().map_or(0, |one| distance(one.value));
        farthest = end.filter(|end| distance(*end) > first);
    }
    let lost = farthest.into_iter().map(|value| (value, None));
    let kept = kept.into_iter().map(|one| (one.value, Some(one)));
    lost.chain(kept).take(WORST_SHOWN).collect()
}

/// The worst samples, with their numbers and times.
pub fn worst(matrix: &Matrix<'_>) -> Markup {
    let mut late = recordings(matrix);
    late.retain(|(row, _, recording)| !row.is_throughput() && !recording.worst.is_empty());
    let size = format!("{WORST_SHOWN} of each recording");
    let table = wide(&html! { table.text.kept {
        thead { tr {
            th { "measurement" } th { "subject" } th { "run" }
            @for number in 1..=WORST_SHOWN { th { (number) } }
        } }
        tbody { @for (row, run, recording) in &late { tr {
            td { (row.title()) } td { (name(matrix, run)) } td { (run.id) }
            @let worst = worst_samples(row, recording);
            @for (value, sample) in &worst { td {
                b { (value) } br;
                span.soft { @match sample {
                    Some(one) => { "#" (one.seq) ", " (format!("{:.3} s", one.at.as_secs_f64())) }
                    None => "its place was not kept",
                } }
            } }
            @for _ in worst.len()..WORST_SHOWN { td.gap { "–" } }
        } } }
    } });
    let has_jitter = late
        .iter()
        .any(|(row, ..)| row.view().shape == Shape::Jitter);
    let body = html! {
        p.soft {
            "Each with its number and the time since the recording began."
            @if has_jitter { " Of jitter, those that were kept and are farthest from zero." }
        }
        (table)
    };
    html! { @if !late.is_empty() { (folded("Worst samples", &size, &body)) } }
}

/// Shows the console output of each subject.
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

/// Counts the lines of a text, in words.
pub fn lines(text: &str) -> String {
    counted(text.lines().count(), "line")
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explains a sample by the kernel's own tracer, in the words of the scope.
//!
//! A tracer sees events, not instructions. The cause between two of them is inferred: from the
//! thread that had the CPU, the context in which the kernel noted the events, and the stacks at the
//! wake-up and at the switch. `docs/method/tracers.md` says where that misleads.

pub(crate) mod stack;
mod timeline;

use punctual_model::capture::{Capture, Tracer};
use punctual_model::{Fact, Recording, Run};

use crate::breakdown::{Breakdown, Cause, Part, culprit_of};
use crate::error::ScopeError;
use crate::explain::{Explained, Wanted};
use crate::preemptibility::Preemptibility;
use crate::probes::{choose, watched};
use timeline::Timeline;

pub(crate) use timeline::LONGEST_WAY;

/// Returns what the tracer reported about these samples, the worst first; an error if it caught
/// none.
pub fn explained(run: &Run, wanted: &Wanted) -> Result<Vec<Explained>, ScopeError> {
    let numbered = run.recordings.iter().enumerate();
    let meant = numbered.filter(|(_, recording)| wanted.wants(recording));
    let mut found: Vec<(usize, &Capture)> = meant
        .flat_map(|(number, one)| one.captures.iter().map(move |capture| (number, capture)))
        .filter(|(_, capture)| wanted.sample.is_none_or(|seq| seq == capture.sample.seq))
        .collect();
    found.sort_by_key(|(number, one)| (-one.sample.value.0, *number, one.sample.seq));
    found.truncate(wanted.worst);
    if found.is_empty() {
        let what = "no sample of that kind that a tracer has caught".to_owned();
        return Err(ScopeError::NoSuch(run.id.clone(), what));
    }
    let explain = |(number, capture): (usize, &Capture)| {
        Ok(Explained {
            chosen: choose(run, number, capture.sample)?,
            breakdown: breakdown(run, &run.recordings[number], capture),
        })
    };
    found.into_iter().map(explain).collect()
}

/// Returns what a tracer reported about a sample of a recording, if it was caught.
pub fn of_sample(run: &Run, recording: &Recording, seq: u64) -> Option<Result<Breakdown, String>> {
    let mut captures = recording.captures.iter();
    let capture = captures.find(|capture| capture.sample.seq == seq)?;
    Some(breakdown(run, recording, capture))
}

/// Returns the story of a capture of a recording; the error is the reason why there is none.
pub fn breakdown(run: &Run, recording: &Recording, capture: &Capture) -> Result<Breakdown, String> {
    let late = capture.sample.value;
    let span = watched(recording)?.span;
    let mut parts = match capture.tracer {
        Tracer::Wakeup | Tracer::Irqsoff => timeline::of_longest(capture)?,
        _ => Timeline::new(capture, span, Preemptibility::of(run))?.parts(),
    };
    parts.retain(|part| part.length.0 > 0);
    let mut story = Breakdown {
        culprit: culprit_of(&parts, late),
        notes: notes(run, capture, &parts),
        ..Breakdown::empty(span, late)
    };
    story.parts = parts;
    Ok(story)
}

/// Returns the notes on a story that a tracer tells.
fn notes(run: &Run, capture: &Capture, parts: &[Part]) -> Vec<String> {
    let mut notes = vec![format!(
        "told by the kernel's tracer ({}), to the microsecond; what it does not note is inferred",
        capture.tracer
    )];
    if parts.iter().any(|part| part.cause == Cause::Outside) {
        notes.push(
            "the interrupt came late to a thread in user space, where nothing can mask it; firmware, a hypervisor or the hardware had the CPU, or the \
             kernel masked the interrupt until it returned"
                .into(),
        );
    }
    if is_virtualised(run) {
        notes.push(
            "the machine is a virtual one: its hypervisor takes the CPU where it likes, and the \
             kernel's tracer blames whoever had it"
                .into(),
        );
    }
    if let Some(longest) = &capture.longest {
        let (latency, task) = (longest.latency, &longest.task);
        let (comm, pid) = (&task.comm, task.pid);
        notes.push(if longest.started.is_empty() {
            format!("its longest since it was read last: {latency} ({comm}-{pid})")
        } else {
            let (started, ended) = (&longest.started, &longest.ended);
            format!(
                "its longest since it was read last: {latency}, from {started} to {ended} \
                 ({comm}-{pid}); it need not have been in the sample"
            )
        });
    }
    if capture.lost > 0 {
        notes.push(format!("{} events were lost or not kept", capture.lost));
    }
    notes
}

/// Returns true if a real machine says that a hypervisor runs it.
fn is_virtualised(run: &Run) -> bool {
    let facts = run.provenance.as_ref().map(|found| &found.facts);
    let said = facts.and_then(|facts| facts.get("virtualised"));
    !run.is_virtual() && matches!(said, Some(Fact::Flag(true)))
}

#[cfg(test)]
mod tests;

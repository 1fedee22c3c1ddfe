// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a breakdown.

use std::collections::HashMap;

use punctual_model::Nanos;

use super::context::{SampleContext, Unexplained};
use super::cycle::Absence;
use super::frame::Leg;
use super::ipi::{self, Sent};
use super::spin::{self, Spun};
use super::stages::Milestone;
use crate::names::{CodeKind, Name};
use crate::walk::{Number, Span, Switch, Task, Walk};
use punctual_model::probe::SampleSpan;

/// The longest delay of a timer for which an idle CPU waits: the clocks in which it is programmed
/// are coarser than a nanosecond.
pub(super) const GRAIN: Nanos = Nanos(100);

/// The tolerance between two readings of the clock and the instructions between them: for rounding
/// of each, and of the guest's own idea of its counter's rate.
const ROUNDING: Nanos = Nanos(3);
const SHARE: i64 = 500_000;

/// The share of a part that counts as most of it.
pub(super) const MOST: f64 = 0.8;

pub(super) struct Attribution<'a> {
    pub(super) walk: &'a Walk,
    pub(super) names: &'a [Name],
    pub(super) about: SampleContext,
    /// Position at which it was taken.
    pub(super) end: u64,
    /// Position at which it was due, or at which the CPU woke up thereafter.
    pub(super) begin: u64,
    /// True if it is the latter.
    pub(super) slept: bool,
    /// The range of its spans.
    pub(super) spans: std::ops::Range<usize>,
    pub(super) task: Task,
    /// The stages, each with its end.
    pub(super) milestones: Vec<Milestone>,
    /// The frames that made the sample.
    pub(super) legs: Vec<Leg>,
    /// The interrupts that CPUs sent one another.
    pub(super) sent: Vec<Sent>,
    /// The spins of CPUs for one another.
    pub(super) spun: Vec<Spun>,
    /// The stretches in which a cycle's thread did not have a CPU.
    pub(super) absences: Vec<Absence>,
    pub(super) switched: bool,
    pub(super) woken: bool,
    pub(super) threads: HashMap<Task, String>,
}

/// The start of a sample.
struct Begin {
    at: u64,
    /// True if the CPU slept up to there.
    slept: bool,
}

impl<'a> Attribution<'a> {
    pub(super) fn new(
        walk: &'a Walk,
        names: &'a [Name],
        about: SampleContext,
        end: u64,
    ) -> Result<Self, Unexplained> {
        let begin = match about.span {
            SampleSpan::Lateness | SampleSpan::Cycle => due(walk, about, end),
            SampleSpan::Handover | SampleSpan::Gap => read(walk, about, end)?,
        };
        let spans = spans_after(walk, begin.at)..walk.spans.partition_point(|span| span.from < end);
        let mut attribution = Self {
            walk,
            names,
            about,
            end,
            begin: begin.at,
            slept: begin.slept,
            spans,
            task: 0,
            milestones: Vec::new(),
            legs: Vec::new(),
            sent: ipi::all(walk, names),
            spun: spin::all(walk),
            absences: Vec::new(),
            switched: false,
            woken: false,
            threads: HashMap::new(),
        };
        attribution.task = attribution.taker();
        attribution.threads = attribution.threads();
        attribution.find_milestones();
        Ok(attribution)
    }

    /// Returns the thread that takes the sample.
    fn taker(&self) -> Task {
        if let Some([begun, _]) = self.about.cycle {
            let begins = |switch: &&Switch| switch.at >= begun;
            let switch = self.walk.switches.iter().find(begins);
            return switch.map_or(0, |switch| switch.task);
        }
        let own = |switch: &&Switch| switch.at < self.end && switch.cpu == self.walk.cpu;
        let switch = self.walk.switches.iter().rfind(own);
        switch.map_or_else(|| self.walk.first(self.walk.cpu), |switch| switch.task)
    }

    /// Returns the thread with which the sample began.
    pub(super) fn beginner(&self) -> Task {
        let first = self.walk.spans.get(self.spans.start);
        first.map_or_else(|| self.walk.first(self.walk.cpu), |span| span.task)
    }

    pub(super) fn is(&self, number: Number, kind: CodeKind) -> bool {
        self.kind(number) == kind
    }

    pub(super) fn kind(&self, number: Number) -> CodeKind {
        self.names[self.walk.activation(number).func as usize].kind
    }

    pub(super) fn text(&self, number: Number) -> &str {
        &self.names[self.walk.activation(number).func as usize].text
    }

    pub(super) fn at(&self, position: u64) -> Nanos {
        let before = self.about.clock.time(self.end.saturating_sub(position));
        (self.about.late - before).max(Nanos::ZERO)
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.walk.mended > 0 {
            notes.push(format!(
                "{} times the state that was followed had to be mended by what the code proved",
                self.walk.mended
            ));
        }
        notes.extend(self.absence_notes());
        if !matches!(self.about.span, SampleSpan::Lateness | SampleSpan::Cycle) {
            return notes;
        }
        if !self.switched {
            notes.push("no other thread had the CPU before: there was no switch".to_owned());
        } else if !self.woken {
            notes.push("who woke the thread was not seen".to_owned());
        }
        notes
    }
}

/// Returns where it was due, or where the CPU woke up thereafter.
fn due(walk: &Walk, about: SampleContext, end: u64) -> Begin {
    let due = end.saturating_sub(about.clock.instructions(about.late));
    if walk.in_turn {
        // One of them never sleeps: no time is left out.
        let (at, slept) = (due, false);
        return Begin { at, slept };
    }
    let halts = walk.halts.iter().map(|halt| halt.at);
    let halt = halts.rev().find(|at| *at < end);
    // An interrupt that is pending when the CPU would sleep wakes it at once: then it did
    // not sleep, and what ran before counts.
    let masked = || {
        let span = walk.spans.get(spans_after(walk, due));
        span.is_some_and(|span| span.irqs_off.is_some())
    };
    let slept = halt.filter(|at| *at > due && (about.clock.time(*at - due) <= GRAIN || !masked()));
    Begin {
        at: slept.unwrap_or(due),
        slept: slept.is_some(),
    }
}

/// Returns the reading of the clock with which it began.
fn read(walk: &Walk, about: SampleContext, end: u64) -> Result<Begin, Unexplained> {
    let distance = |at: &u64| (about.clock.time(end - at) - about.late).0.abs();
    let readings = walk.clocks.iter().map(|clock| clock.at);
    let readings = readings.filter(|at| *at < end);
    let nearest = readings.min_by_key(distance);
    let exact = |at: &u64| distance(at) <= ROUNDING.0 + about.late.0 / SHARE;
    let at = nearest.filter(exact).ok_or(Unexplained::NoBegin)?;
    Ok(Begin { at, slept: false })
}

/// Returns the index of the first span that ends after a position.
fn spans_after(walk: &Walk, position: u64) -> usize {
    walk.spans.partition_point(|span| end_of(span) <= position)
}

pub(super) fn end_of(span: &Span) -> u64 {
    span.from + u64::from(span.length)
}

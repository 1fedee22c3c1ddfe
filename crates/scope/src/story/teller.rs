//! What is known while a story is told.

use std::collections::HashMap;

use punctual_model::Nanos;

use super::{Circumstances, Stage};
use crate::names::{Kind, Name};
use crate::walk::{Number, Span, Task, Walk};

/// A timer that an idle CPU waits for comes so much after it is due, at most: the clocks that
/// it is programmed in are coarser than a nanosecond.
const GRAIN: Nanos = Nanos(100);

pub(super) struct Teller<'a> {
    pub(super) walk: &'a Walk,
    pub(super) names: &'a [Name],
    pub(super) about: Circumstances,
    /// Where it was taken.
    pub(super) end: u64,
    /// Where it was due, or the CPU woke up thereafter.
    pub(super) begin: u64,
    /// Whether it is the latter.
    pub(super) slept: bool,
    /// From where to where which spans lie.
    pub(super) spans: std::ops::Range<usize>,
    pub(super) task: Task,
    /// The stages, each with where it ends.
    pub(super) milestones: Vec<(u64, Stage)>,
    pub(super) switched: bool,
    pub(super) woken: bool,
    pub(super) threads: HashMap<Task, String>,
}

impl<'a> Teller<'a> {
    pub(super) fn new(walk: &'a Walk, names: &'a [Name], about: Circumstances, end: u64) -> Self {
        let due = end.saturating_sub(about.scale.instructions(about.late));
        let halt = walk.halts.iter().copied().rfind(|at| *at < end);
        let after = |from: u64| walk.spans.partition_point(|span| end_of(span) <= from);
        // An interrupt that is pending when the CPU would sleep wakes it at once: then it did
        // not sleep, and what ran before counts.
        let masked = || {
            walk.spans
                .get(after(due))
                .is_some_and(|span| span.irqs_off.is_some())
        };
        let slept =
            halt.filter(|at| *at > due && (about.scale.time(*at - due) <= GRAIN || !masked()));
        let begin = slept.unwrap_or(due);
        let spans = after(begin)..walk.spans.partition_point(|span| span.from < end);
        let switch = walk.switches.iter().copied().rfind(|(at, _)| *at < end);
        let task = switch.map_or(0, |(_, task)| task);
        let mut teller = Self {
            walk,
            names,
            about,
            end,
            begin,
            slept: slept.is_some(),
            spans,
            task,
            milestones: Vec::new(),
            switched: false,
            woken: false,
            threads: HashMap::new(),
        };
        teller.threads = teller.threads();
        teller.find_milestones();
        teller
    }

    pub(super) fn is(&self, number: Number, kind: Kind) -> bool {
        self.kind(number) == kind
    }

    pub(super) fn kind(&self, number: Number) -> Kind {
        self.names[self.walk.activation(number).func as usize].kind
    }

    pub(super) fn text(&self, number: Number) -> &str {
        &self.names[self.walk.activation(number).func as usize].text
    }

    pub(super) fn at(&self, position: u64) -> Nanos {
        self.about.late - self.about.scale.time(self.end.saturating_sub(position))
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.walk.mended > 0 {
            notes.push(format!(
                "{} times the state that was followed had to be mended by what the code proved",
                self.walk.mended
            ));
        }
        if !self.switched {
            notes.push("no other thread had the CPU before: there was no switch".to_owned());
        } else if !self.woken {
            notes.push("who woke the thread was not seen".to_owned());
        }
        notes
    }
}

pub(super) fn end_of(span: &Span) -> u64 {
    span.from + u64::from(span.length)
}

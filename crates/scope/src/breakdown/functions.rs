// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the functions that took the time.

use std::collections::HashMap;

use punctual_model::Nanos;
use punctual_model::probe::SampleSpan;

use super::attribution::MOST;
use super::attribution::{Attribution, end_of};
use super::part::{Cause, FunctionSpan, FunctionTime};
use super::parts::Piece;
use crate::names::CodeKind;
use crate::walk::{Number, Span, Task};

/// The number of functions that are listed within a part.
const LISTED: usize = 4;

impl Attribution<'_> {
    /// Returns the innermost function that filled most of a part, and the functions in it that took
    /// the time.
    pub(super) fn main(&self, piece: &Piece) -> (Option<FunctionTime>, Vec<FunctionTime>) {
        let times = self.times(piece);
        let whole = (piece.to - piece.from).0 as f64;
        let Some((main, length)) = self.filling(piece, &times) else {
            return (None, self.most(&times, None, whole));
        };
        let caller = self.walk.activation(main).parent;
        let time = self.about.clock.time(length);
        let ran = FunctionTime {
            function: self.text(main).to_owned(),
            caller: caller.map(|caller| self.text(caller).to_owned()),
            time,
            whole: if self.is_whole(main) {
                self.watched(main)
            } else {
                time
            },
            times: 1,
        };
        (Some(ran), self.most(&times, Some(main), whole))
    }

    /// Returns the time of each function within a part, with all that it called.
    fn times(&self, piece: &Piece) -> HashMap<Number, u64> {
        let mut times: HashMap<Number, u64> = HashMap::new();
        for span in &self.walk.spans[piece.spans.clone()] {
            for number in self.walk.chain(span.top) {
                *times.entry(number).or_default() += self.inside(span);
            }
        }
        times
    }

    /// Returns the innermost function that filled most of a part, and its time.
    fn filling(&self, piece: &Piece, times: &HashMap<Number, u64>) -> Option<(Number, u64)> {
        let whole = (piece.to - piece.from).0 as f64;
        let most = |length: &u64| self.about.clock.time(*length).0 as f64 >= MOST * whole;
        let depth = |number: Number| self.walk.chain(number).count();
        let filling = times.iter().filter(|(_, length)| most(length));
        let main = filling.max_by_key(|(number, _)| (depth(**number), **number));
        main.map(|(main, length)| (*main, *length))
    }

    /// Returns true if a function began and ended within the window.
    fn is_whole(&self, function: Number) -> bool {
        let activation = self.walk.activation(function);
        activation.begin.is_some() && activation.end.is_some()
    }

    /// Returns how long a function and all that it called ran, in the whole window.
    fn watched(&self, function: Number) -> Nanos {
        let spans = self.walk.spans.iter();
        let within = spans.filter(|span| {
            let mut chain = self.walk.chain(span.top);
            chain.any(|number| number == function)
        });
        let length = within.map(|span| u64::from(span.length)).sum();
        self.about.clock.time(length)
    }

    /// Tells, in a sentence, how long the function that filled most of a part ran at least, if that
    /// is longer than it `held` the sample up and not all of it was watched.
    pub(super) fn note_of_rest(&self, piece: &Piece, held: Nanos) -> Option<String> {
        let is_told = matches!(self.about.span, SampleSpan::Lateness | SampleSpan::Cycle);
        if !is_told || piece.cause == Cause::Asleep || self.is_of_program(piece) {
            return None;
        }
        let (main, _) = self.filling(piece, &self.times(piece))?;
        if self.is(main, CodeKind::User) || self.is_whole(main) {
            return None;
        }
        let watched = self.watched(main);
        let text = || {
            let function = self.text(main);
            format!("`{function}` ran {watched} at least: not all of it was watched")
        };
        ((watched - held).0 * 20 > held.0).then(text)
    }

    /// Returns the functions that took most of the time, by name: those that `within` itself
    /// called.
    fn most(
        &self,
        times: &HashMap<Number, u64>,
        within: Option<Number>,
        whole: f64,
    ) -> Vec<FunctionTime> {
        let mut by_name: HashMap<&str, (u64, u32)> = HashMap::new();
        for (number, length) in times {
            let parent = self.walk.activation(*number).parent;
            let any = within.is_none() && !self.is(*number, CodeKind::User) && parent.is_some();
            if parent == within || any {
                let sum = by_name.entry(self.text(*number)).or_default();
                *sum = (sum.0 + length, sum.1 + 1);
            }
        }
        let ran = |(function, (length, times)): (&str, _)| FunctionTime {
            function: function.to_owned(),
            caller: None,
            time: self.about.clock.time(length),
            whole: self.about.clock.time(length),
            times,
        };
        let mut ran: Vec<FunctionTime> = by_name.into_iter().map(ran).collect();
        ran.retain(|ran| ran.time.0 as f64 >= 0.05 * whole);
        ran.sort_by(|a, b| (b.time, &a.function).cmp(&(a.time, &b.function)));
        ran.truncate(LISTED);
        ran
    }

    /// Returns the number of a span's instructions between due and taken.
    pub(super) fn inside(&self, span: &Span) -> u64 {
        let end = end_of(span).min(self.end);
        end.saturating_sub(span.from.max(self.begin))
    }

    pub(super) fn flame(&self) -> Vec<(String, Nanos)> {
        let mut stacks: HashMap<(Option<u32>, Task, Number), u64> = HashMap::new();
        for span in &self.walk.spans[self.spans.clone()] {
            let (_, cpu) = self.stage(span.from.max(self.begin));
            let other = (span.cpu != cpu).then_some(span.cpu);
            *stacks.entry((other, span.task, span.top)).or_default() += self.inside(span);
        }
        let mut folded: HashMap<String, u64> = HashMap::new();
        for ((other, task, top), length) in stacks {
            let mut frames: Vec<&str> = self.walk.chain(top).map(|n| self.text(n)).collect();
            let thread = self.thread(task);
            let program = thread.split(" (").next();
            if frames.last().copied() == program {
                frames.pop();
            }
            frames.push(thread);
            let other = other.map(|cpu| format!("the turns of CPU {cpu}"));
            frames.extend(other.as_deref());
            frames.reverse();
            frames.dedup();
            *folded.entry(frames.join(";")).or_default() += length;
        }
        let time = |(stack, length)| (stack, self.about.clock.time(length));
        let mut folded: Vec<(String, Nanos)> = folded.into_iter().map(time).collect();
        folded.sort();
        folded
    }

    pub(super) fn functions(&self) -> Vec<FunctionSpan> {
        let mut found = Vec::new();
        for activation in &self.walk.activations {
            let begin = activation.begin.unwrap_or(0).max(self.begin);
            let end = activation.end.unwrap_or(self.end).min(self.end);
            if end > begin {
                found.push(FunctionSpan {
                    function: self.names[activation.func as usize].text.clone(),
                    thread: self.thread(activation.task).to_owned(),
                    from: self.at(begin),
                    length: self.at(end) - self.at(begin),
                });
            }
        }
        found
    }

    pub(super) fn blocks(&self) -> Vec<(Nanos, u32, u64, String)> {
        let spans = &self.walk.spans[self.spans.clone()];
        let block = |span: &Span| {
            let from = self.at(span.from.max(self.begin));
            let ran = self.inside(span) as u32;
            (from, ran, span.address, self.text(span.top).to_owned())
        };
        spans.iter().map(block).collect()
    }
}

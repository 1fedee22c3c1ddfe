// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the sample has come, and when.

use super::attribution::{Attribution, end_of};
use super::part::PathStage;
use crate::names::CodeKind;
use crate::walk::{Number, Span, Task, Wake};
use punctual_model::probe::SampleSpan;

impl Attribution<'_> {
    /// Where each stage ends, the last one excepted.
    pub(super) fn find_milestones(&mut self) {
        match self.about.span {
            SampleSpan::Lateness => self.go_back(),
            SampleSpan::Handover => self.milestones = self.handover(),
            SampleSpan::Gap => self.milestones = self.gap(),
        }
    }

    /// From the call, through the kernel, to the thread that takes the sample.
    fn handover(&self) -> Vec<(u64, PathStage)> {
        let switched = self.switch_to(self.task, self.end);
        let ends = switched.map(|at| {
            [
                (at, PathStage::Call),
                (self.user_from(at), PathStage::Return),
            ]
        });
        ends.into_iter().flatten().collect()
    }

    /// From the interrupt to the way back.
    fn gap(&self) -> Vec<(u64, PathStage)> {
        let spans = &self.walk.spans[self.spans.clone()];
        let kernel = |span: &&Span| !span.user;
        let (first, last) = (spans.iter().find(kernel), spans.iter().rfind(kernel));
        let ends = first.zip(last).map(|(first, last)| {
            let entered = (first.from, PathStage::Interrupt);
            [entered, (end_of(last), PathStage::Return)]
        });
        ends.into_iter().flatten().collect()
    }

    /// Where user space runs for the first time from a position on.
    fn user_from(&self, position: u64) -> u64 {
        let user = |span: &&Span| span.user && span.from >= position;
        let spans = &self.walk.spans[self.spans.clone()];
        spans.iter().find(user).map_or(self.end, |span| span.from)
    }

    /// Goes back from where it was taken: who woke the thread, who woke that one, up to the
    /// interrupt that began it.
    fn go_back(&mut self) {
        let switched = self.switch_to(self.task, self.end);
        let user = self.user_from(switched.unwrap_or(self.begin));
        let mut found = vec![(user, PathStage::Return)];
        let (mut task, mut switched) = (self.task, switched);
        while let Some(at) = switched {
            found.push((at, PathStage::Switch));
            let ours =
                |wake: &&Wake| wake.at < at && wake.at >= self.begin && wake.bases.contains(&task);
            let Some(wake) = self.walk.wakes.iter().rfind(ours) else {
                break;
            };
            self.woken = true;
            found.push((wake.at, PathStage::Handler));
            if let Some(entry) = self.interrupt_of(wake.by) {
                found.push((entry, PathStage::Interrupt));
                break;
            }
            // A thread did it, which was itself woken for that, it may be.
            task = self.walk.activation(wake.by).task;
            switched = self.switch_to(task, wake.at);
        }
        self.switched = found.len() > 1;
        if !self.switched {
            found.extend(self.find_handler());
        }
        found.reverse();
        self.milestones = found;
    }

    /// Where a thread got the CPU, the last time before `before`.
    fn switch_to(&self, task: Task, before: u64) -> Option<u64> {
        let ours = |(at, to): &&(u64, Task)| *to == task && *at < before && *at >= self.begin;
        self.walk.switches.iter().rfind(ours).map(|(at, _)| *at)
    }

    /// Where the interrupt was taken in which a function runs.
    fn interrupt_of(&self, function: Number) -> Option<u64> {
        let chain = self.walk.chain(function);
        let entries = chain.filter(|number| self.is(*number, CodeKind::Interrupt));
        self.walk.activation(entries.last()?).begin
    }

    /// Where it ends in an interrupt's handler, nobody need be woken for it.
    fn find_handler(&self) -> Vec<(u64, PathStage)> {
        let last = self.walk.spans[self.spans.clone()].last();
        let entry = last.and_then(|last| self.interrupt_of(last.top));
        let ends = entry.map(|entry| {
            [
                (self.end, PathStage::Handler),
                (entry, PathStage::Interrupt),
            ]
        });
        ends.into_iter().flatten().collect()
    }

    pub(super) fn stage(&self, position: u64) -> PathStage {
        let passed = |(until, _): &(u64, PathStage)| *until <= position;
        let next = self.milestones.get(self.milestones.partition_point(passed));
        next.map_or(PathStage::User, |(_, stage)| *stage)
    }
}

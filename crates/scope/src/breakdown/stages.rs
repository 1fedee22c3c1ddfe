// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stage that the sample has reached: when, and on which CPU.

use super::attribution::{Attribution, end_of};
use super::ipi::Sent;
use super::part::PathStage;
use crate::names::CodeKind;
use crate::walk::{Number, Span, Switch, Task, Wake};
use punctual_model::probe::SampleSpan;

/// The end of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Milestone {
    /// Position at which it ends.
    pub(super) until: u64,
    pub(super) stage: PathStage,
    /// The CPU that goes the way up to there.
    pub(super) cpu: u32,
}

impl Attribution<'_> {
    /// Finds the end of each stage but the last.
    pub(super) fn find_milestones(&mut self) {
        match self.about.span {
            SampleSpan::Lateness => self.go_back(),
            SampleSpan::Handover => {
                self.legs = self.legs();
                self.milestones = self.handover();
            }
            SampleSpan::Gap => self.milestones = self.gap(),
            SampleSpan::Cycle => self.find_cycle(),
        }
    }

    /// Returns the end of a stage on the CPU that takes the sample.
    pub(super) fn own(&self, until: u64, stage: PathStage) -> Milestone {
        let cpu = self.walk.cpu;
        Milestone { until, stage, cpu }
    }

    /// Returns the stages from the call, through the kernel, to the thread that takes the sample.
    fn handover(&self) -> Vec<Milestone> {
        let Some(switched) = self.switch_to(self.task, self.end) else {
            return Vec::new();
        };
        let at = switched.at;
        let user = self.own(self.user_from(at), PathStage::Return);
        if !self.legs.is_empty() {
            return self.over_the_wire(at, user);
        }
        match self
            .wake_of(self.task, at)
            .filter(|wake| wake.cpu != self.walk.cpu)
        {
            None => vec![self.own(at, PathStage::Call), user],
            Some(wake) => {
                let mut found = self.across(wake, switched, PathStage::Call);
                found.extend([self.own(at, PathStage::Switch), user]);
                found
            }
        }
    }

    /// Returns the stages frame by frame, to the thread that takes the sample. A frame that came
    /// while its card was already being served has no interrupt of its own, and so has other
    /// stages.
    fn over_the_wire(&self, switched: u64, user: Milestone) -> Vec<Milestone> {
        let mut found: Vec<Milestone> = Vec::new();
        for leg in &self.legs {
            if !found.is_empty() {
                let woken = self.switch_to(leg.sender, leg.queued);
                found.extend(woken.map(|switch| self.own(switch.at, PathStage::Switch)));
            }
            found.extend(self.stages_of(leg));
        }
        found.extend([self.own(switched, PathStage::Switch), user]);
        let mut last = self.begin;
        found.retain(|milestone| {
            let goes_on = milestone.until > last;
            last = last.max(milestone.until);
            goes_on
        });
        found
    }

    /// Returns the stages from the interrupt to the way back.
    fn gap(&self) -> Vec<Milestone> {
        let spans = &self.walk.spans[self.spans.clone()];
        let kernel = |span: &&Span| span.cpu == self.walk.cpu && !span.user;
        let (first, last) = (spans.iter().find(kernel), spans.iter().rfind(kernel));
        let ends = first.zip(last).map(|(first, last)| {
            let entered = self.own(first.from, PathStage::Interrupt);
            [entered, self.own(end_of(last), PathStage::Return)]
        });
        ends.into_iter().flatten().collect()
    }

    /// Returns where user space first runs from a position on.
    fn user_from(&self, position: u64) -> u64 {
        let own = |span: &&Span| span.cpu == self.walk.cpu && span.user;
        let user = |span: &&Span| own(span) && span.from >= position;
        let spans = &self.walk.spans[self.spans.clone()];
        spans.iter().find(user).map_or(self.end, |span| span.from)
    }

    /// Goes back from where it was taken: who woke the thread, who woke that one, up to the
    /// interrupt that began it.
    fn go_back(&mut self) {
        let switched = self.switch_to(self.task, self.end);
        let user = self.user_from(switched.map_or(self.begin, |switch| switch.at));
        let mut found = vec![self.own(user, PathStage::Return)];
        found.extend(self.way_to(switched));
        self.switched = found.len() > 1;
        if !self.switched {
            found.extend(self.find_handler());
        }
        found.reverse();
        self.milestones = found;
    }

    /// Returns the stages up to where its thread got the CPU, the last one first.
    pub(super) fn way_to(&mut self, switched: Option<Switch>) -> Vec<Milestone> {
        let mut found = Vec::new();
        let (mut task, mut switched, mut woken) = (self.task, switched, false);
        while let Some(switch) = switched {
            let Switch { at, cpu, .. } = switch;
            let stage = PathStage::Switch;
            found.push(Milestone {
                until: at,
                stage,
                cpu,
            });
            let Some(wake) = self.wake_of(task, at) else {
                break;
            };
            woken = true;
            if wake.cpu == cpu {
                let (until, stage) = (wake.at, PathStage::Handler);
                found.push(Milestone { until, stage, cpu });
            } else {
                let across = self.across(wake, switch, PathStage::Handler);
                found.extend(across.into_iter().rev());
            }
            if let Some(until) = self.interrupt_of(wake.by, wake.at) {
                let (stage, cpu) = (PathStage::Interrupt, wake.cpu);
                found.push(Milestone { until, stage, cpu });
                break;
            }
            // A thread did it, which was itself woken for that, it may be.
            task = self.walk.activation(wake.by).task;
            switched = self.switch_to(task, wake.at);
        }
        self.woken = woken;
        found
    }

    /// Returns the wake-up of a thread that got its CPU at a position.
    pub(super) fn wake_of(&self, task: Task, switched: u64) -> Option<&Wake> {
        let ours = |wake: &&Wake| {
            wake.at < switched && wake.at >= self.begin && wake.bases.contains(&task)
        };
        self.walk.wakes.iter().rfind(ours)
    }

    /// Returns the last switch to a thread before `before`.
    pub(super) fn switch_to(&self, task: Task, before: u64) -> Option<Switch> {
        let ours =
            |switch: &&Switch| switch.task == task && switch.at < before && switch.at >= self.begin;
        self.walk.switches.iter().rfind(ours).copied()
    }

    /// Returns the stages from where a thread is woken on one CPU to where another one knows of it,
    /// which then switches to it. The first goes on up to the interrupt that it sends, if it sends
    /// one.
    fn across(&self, wake: &Wake, switched: Switch, stage: PathStage) -> Vec<Milestone> {
        let (from, to) = (wake.cpu, switched.cpu);
        let ours = |sent: &&Sent| {
            let within = wake.at <= sent.left && sent.taken <= switched.at;
            within && (sent.from, sent.to) == (from, to)
        };
        let milestone = |until, stage, cpu| Milestone { until, stage, cpu };
        match self.sent.iter().find(ours) {
            None => vec![milestone(wake.at, stage, from)],
            Some(sent) => vec![
                milestone(sent.left, stage, from),
                milestone(sent.taken, PathStage::Ipi, to),
            ],
        }
    }

    /// Returns where the interrupt was taken in which a function runs at a position.
    fn interrupt_of(&self, function: Number, at: u64) -> Option<u64> {
        self.walk.activation(self.interrupt_in(function, at)?).begin
    }

    /// Returns the interrupt in which a function runs at a position: the innermost, since one may
    /// come while another serves soft interrupts. Where its thread has got the CPU since, the
    /// interrupt is over, and the thread itself goes on.
    pub(super) fn interrupt_in(&self, function: Number, at: u64) -> Option<Number> {
        let mut chain = self.walk.chain(function);
        let number = chain.find(|number| self.is(*number, CodeKind::Interrupt))?;
        let interrupt = self.walk.activation(number);
        let since = interrupt.begin.unwrap_or(0)..at;
        let again = |switch: &Switch| switch.task == interrupt.task && since.contains(&switch.at);
        (!self.walk.switches.iter().any(again)).then_some(number)
    }

    /// Returns the stages of a sample that ends in an interrupt's handler. Nobody need be woken for
    /// it.
    fn find_handler(&self) -> Vec<Milestone> {
        let own = |span: &&Span| span.cpu == self.walk.cpu;
        let last = self.walk.spans[self.spans.clone()].iter().rfind(own);
        let entry = last.and_then(|last| self.interrupt_of(last.top, self.end));
        let ends = entry.map(|entry| {
            [
                self.own(self.end, PathStage::Handler),
                self.own(entry, PathStage::Interrupt),
            ]
        });
        ends.into_iter().flatten().collect()
    }

    /// Returns the stage that the sample has reached at a position, and the CPU that goes the way
    /// there.
    pub(super) fn stage(&self, position: u64) -> (PathStage, u32) {
        let passed = |milestone: &Milestone| milestone.until <= position;
        let next = self.milestones.get(self.milestones.partition_point(passed));
        next.map_or((PathStage::User, self.walk.cpu), |next| {
            (next.stage, next.cpu)
        })
    }
}

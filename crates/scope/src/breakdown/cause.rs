// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds what keeps the sample from going on.

use super::attribution::{Attribution, GRAIN};
use super::part::{Cause, PathStage};
use crate::names::CodeKind;
use crate::preemptibility::Preemptibility;
use crate::walk::{Number, Span};
use punctual_model::probe::SampleSpan;

impl Attribution<'_> {
    /// The same where several CPUs take turns, and `cpu` is the one that goes the way.
    pub(super) fn cause_on(
        &self,
        span: &Span,
        stage: PathStage,
        cpu: u32,
    ) -> (Cause, Option<Number>) {
        match (span.cpu == cpu, self.spin_at(span.from, cpu)) {
            (true, None) => self.cause(span, stage),
            (true, Some(site)) => (Cause::Spin, Some(site)),
            (false, None) => (Cause::OtherTurn, None),
            (false, Some(site)) => (Cause::AwaitedTurn, Some(site)),
        }
    }

    fn cause(&self, span: &Span, stage: PathStage) -> (Cause, Option<Number>) {
        let masked = (Cause::IrqsOff, span.irqs_off);
        match stage {
            PathStage::Wait => self.cause_in_cycle(span),
            PathStage::Interrupt if self.about.span == SampleSpan::Gap => (Cause::Path, None),
            PathStage::Interrupt | PathStage::Ipi if span.irqs_off.is_some() => masked,
            PathStage::Interrupt if !self.is_pending(span) => self.cause_before(span),
            PathStage::Interrupt | PathStage::Ipi => (Cause::Pending, None),
            PathStage::Call | PathStage::Send | PathStage::Queue | PathStage::Driver => {
                self.cause_of_call(span)
            }
            PathStage::Switch | PathStage::IrqThread => self.cause_of_switch(span),
            PathStage::CardIrq | PathStage::Napi | PathStage::Socket => self.cause_at_card(span),
            PathStage::Return if self.about.span == SampleSpan::Gap => self.cause_of_call(span),
            PathStage::Handler | PathStage::Return | PathStage::User => match self.context(span) {
                CodeKind::Interrupt => (Cause::HardIrq, None),
                CodeKind::Exception => (Cause::Exception, None),
                CodeKind::Softirq => (Cause::Softirq, None),
                _ => self.clean_up_or(span, Cause::Path),
            },
        }
    }

    /// Returns true if the interrupt that began it was due. Where interrupts are open, it comes at
    /// once then: code that runs longer before it runs before its timer was set. For example, RT's
    /// `ktimers` sets no timer while it has to wait in the middle of its work. Where CPUs take
    /// turns, this cannot be determined.
    fn is_pending(&self, span: &Span) -> bool {
        let interrupt = self.milestones.first().filter(|_| !self.walk.in_turn);
        interrupt.is_none_or(|interrupt| {
            let from = span.from.max(self.begin);
            self.about.clock.time(interrupt.until.saturating_sub(from)) <= GRAIN
        })
    }

    /// Returns what ran before the timer was set.
    fn cause_before(&self, span: &Span) -> (Cause, Option<Number>) {
        match self.context(span) {
            CodeKind::Interrupt => (Cause::HardIrq, None),
            CodeKind::Softirq => (Cause::Softirq, None),
            CodeKind::Scheduler => self.clean_up_or(span, Cause::Scheduler),
            _ if span.task == self.task => (Cause::Path, None),
            _ => (Cause::OtherThread, None),
        }
    }

    pub(super) fn clean_up_or(&self, span: &Span, otherwise: Cause) -> (Cause, Option<Number>) {
        match self.clean_up(span) {
            Some(function) => (Cause::CleanUp, Some(function)),
            None => (otherwise, None),
        }
    }

    /// Returns the function that the end of a switch has called to clean up after the thread that
    /// had the CPU: the memory of a dead process, say, goes with the last thread that is switched
    /// from it. Where that is preempted, the scheduler is at work again.
    fn clean_up(&self, span: &Span) -> Option<Number> {
        let chain = self.walk.chain(span.top);
        let in_it = |number: &Number| !self.is(*number, CodeKind::Scheduler);
        let mut chain = chain.take_while(in_it).peekable();
        while let Some(number) = chain.next() {
            let end = |caller: &Number| self.is(*caller, CodeKind::SwitchEnd);
            if chain.peek().is_some_and(end) {
                return Some(number).filter(|number| self.is(*number, CodeKind::Plain));
            }
        }
        None
    }

    /// Returns the cause during a call. The own work of the threads that take part is the way.
    fn cause_of_call(&self, span: &Span) -> (Cause, Option<Number>) {
        match self.context(span) {
            CodeKind::Interrupt => (Cause::HardIrq, None),
            CodeKind::Exception => (Cause::Exception, None),
            CodeKind::Softirq => (Cause::Softirq, None),
            CodeKind::Scheduler => self.clean_up_or(span, Cause::Scheduler),
            _ if self.takes_part(span) => (Cause::Path, None),
            _ => (Cause::OtherThread, None),
        }
    }

    /// Returns the cause at a card. The card's own interrupt is the way, and so is the work that
    /// was asked for there.
    fn cause_at_card(&self, span: &Span) -> (Cause, Option<Number>) {
        match self.context(span) {
            CodeKind::Interrupt | CodeKind::Softirq if self.is_of_card(span.top) => {
                (Cause::Path, None)
            }
            _ => self.cause_of_call(span),
        }
    }

    /// Returns true if the CPU works for the thread with which the sample began, for the one that
    /// takes it, or for one that is on a frame's way.
    fn takes_part(&self, span: &Span) -> bool {
        let ends = [self.task, self.beginner()];
        ends.contains(&span.task) || self.is_on_the_wire(span.task)
    }

    pub(super) fn cause_of_switch(&self, span: &Span) -> (Cause, Option<Number>) {
        match self.context(span) {
            CodeKind::Interrupt => return (Cause::HardIrq, None),
            CodeKind::Softirq => return (Cause::Softirq, None),
            CodeKind::Scheduler => return self.clean_up_or(span, Cause::Scheduler),
            _ => {}
        }
        if span.user {
            return (Cause::OtherThread, None);
        }
        if self.about.preemption == Preemptibility::Asked {
            return (Cause::NotPreemptible, None);
        }
        match (span.preempt_off, span.irqs_off) {
            (Some(site), _) => (self.preempt_hold(site), Some(site)),
            (None, Some(site)) => (Cause::IrqsOff, Some(site)),
            (None, None) => (Cause::OtherThread, None),
        }
    }

    pub(super) fn preempt_hold(&self, site: Number) -> Cause {
        if self.is(site, CodeKind::Lock) {
            Cause::Lock
        } else {
            Cause::PreemptOff
        }
    }

    /// Returns the context of the CPU. An interrupt or exception is over where the kernel works for
    /// a thread before it lets it go on in user space.
    pub(super) fn context(&self, span: &Span) -> CodeKind {
        match self.innermost(span) {
            CodeKind::Interrupt | CodeKind::Exception if self.is_on_way_back(span) => {
                CodeKind::Plain
            }
            context => context,
        }
    }

    /// Returns true if the way back to user space has opened interrupts, and has called the
    /// function that runs. In a gap all of that counts to what came in.
    fn is_on_way_back(&self, span: &Span) -> bool {
        let chain = self.walk.chain(span.top);
        let mut chain = chain.take_while(|number| !self.kind(*number).is_entry());
        let way = chain.find(|number| self.is(*number, CodeKind::WayBack));
        let called = way.filter(|way| *way != span.top && self.about.span != SampleSpan::Gap);
        called.is_some_and(|way| {
            // Before its last steps the way back itself masks them.
            let within =
                |site: Number| site != way && self.walk.chain(site).any(|number| number == way);
            span.irqs_off.is_none_or(within)
        })
    }

    /// Returns the innermost interrupt, exception, soft interrupt or scheduler. On RT, a soft
    /// interrupt is a thread's work like any other.
    pub(super) fn innermost(&self, span: &Span) -> CodeKind {
        let kinds = self.walk.chain(span.top).map(|number| self.kind(number));
        let contexts = [
            CodeKind::Interrupt,
            CodeKind::Exception,
            CodeKind::Softirq,
            CodeKind::Scheduler,
            CodeKind::Syscall,
            CodeKind::User,
        ];
        let rt = self.about.preemption == Preemptibility::Rt;
        let is_context =
            |kind: &CodeKind| contexts.contains(kind) && !(rt && *kind == CodeKind::Softirq);
        let mut kinds = kinds.filter(is_context);
        kinds.next().unwrap_or(CodeKind::Plain)
    }
}

//! What keeps the sample from going on.

use super::attribution::Attribution;
use super::{Cause, Measure, Stage};
use crate::names::Kind;
use crate::preemption::Preemption;
use crate::walk::{Number, Span};

impl Attribution<'_> {
    pub(super) fn cause(&self, span: &Span, stage: Stage) -> (Cause, Option<Number>) {
        let masked = (Cause::IrqsOff, span.irqs_off);
        match stage {
            Stage::Interrupt if self.about.measure == Measure::Gap => (Cause::Way, None),
            Stage::Interrupt if span.irqs_off.is_some() => masked,
            Stage::Interrupt => (Cause::Coming, None),
            Stage::Switch => self.cause_of_switch(span),
            Stage::Call => self.cause_of_call(span),
            Stage::Return if self.about.measure == Measure::Gap => self.cause_of_call(span),
            Stage::Handler | Stage::Return | Stage::User => match self.context(span) {
                Kind::Interrupt => (Cause::HardIrq, None),
                Kind::Exception => (Cause::Exception, None),
                Kind::Softirq => (Cause::Softirq, None),
                _ => match self.clean_up(span) {
                    Some(function) => (Cause::CleanUp, Some(function)),
                    None => (Cause::Way, None),
                },
            },
        }
    }

    /// What the end of a switch has called, to clean up after the thread that had the CPU: the
    /// memory of a dead process, say, goes with the last thread that is switched from it.
    fn clean_up(&self, span: &Span) -> Option<Number> {
        let mut chain = self.walk.chain(span.top).peekable();
        while let Some(number) = chain.next() {
            let end = |caller: &Number| self.is(*caller, Kind::SwitchEnd);
            if chain.peek().is_some_and(end) {
                return Some(number).filter(|number| self.is(*number, Kind::Plain));
            }
        }
        None
    }

    /// What the threads that take part do themselves is the way.
    fn cause_of_call(&self, span: &Span) -> (Cause, Option<Number>) {
        match self.context(span) {
            Kind::Interrupt => (Cause::HardIrq, None),
            Kind::Exception => (Cause::Exception, None),
            Kind::Softirq => (Cause::Softirq, None),
            Kind::Scheduler => (Cause::Scheduler, None),
            _ if self.takes_part(span) => (Cause::Way, None),
            _ => (Cause::OtherThread, None),
        }
    }

    /// Whether the CPU works for the thread with which the sample began, or that takes it.
    fn takes_part(&self, span: &Span) -> bool {
        span.task == self.task || span.task == self.beginner()
    }

    fn cause_of_switch(&self, span: &Span) -> (Cause, Option<Number>) {
        match self.context(span) {
            Kind::Interrupt => return (Cause::HardIrq, None),
            Kind::Softirq => return (Cause::Softirq, None),
            Kind::Scheduler => return (Cause::Scheduler, None),
            _ => {}
        }
        if span.user {
            return (Cause::OtherThread, None);
        }
        if self.about.preemption == Preemption::Asked {
            return (Cause::NotPreemptible, None);
        }
        match (span.preempt_off, span.irqs_off) {
            (Some(site), _) => (self.preempt_hold(site), Some(site)),
            (None, Some(site)) => (Cause::IrqsOff, Some(site)),
            (None, None) => (Cause::OtherThread, None),
        }
    }

    pub(super) fn preempt_hold(&self, site: Number) -> Cause {
        if self.is(site, Kind::Lock) {
            Cause::Lock
        } else {
            Cause::PreemptOff
        }
    }

    /// In what the CPU is: the innermost that is an interrupt, an exception, a soft
    /// interrupt or the scheduler. On RT a soft interrupt is a thread's work like any other.
    fn context(&self, span: &Span) -> Kind {
        let kinds = self.walk.chain(span.top).map(|number| self.kind(number));
        let telling = [
            Kind::Interrupt,
            Kind::Exception,
            Kind::Softirq,
            Kind::Scheduler,
            Kind::Syscall,
            Kind::User,
        ];
        let rt = self.about.preemption == Preemption::Rt;
        let tells = |kind: &Kind| telling.contains(kind) && !(rt && *kind == Kind::Softirq);
        let mut kinds = kinds.filter(tells);
        kinds.next().unwrap_or(Kind::Plain)
    }
}

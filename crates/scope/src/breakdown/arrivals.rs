// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds what took the CPU from a thread that ran there, and the work that it did.

use punctual_model::Nanos;
use punctual_model::probe::SampleSpan;

use super::attribution::Attribution;
use super::part::Arrival;
use crate::arch;
use crate::names::CodeKind;
use crate::walk::{Number, Span, Task};

/// Functions that carry out what somebody has asked for before: they call it through a pointer.
/// They are listed in the order of the folders and files of `kernel/`.
const DISPATCHERS: [&str; 13] = [
    "__handle_irq_event_percpu",
    "irq_work_single",
    "rcu_do_batch",
    "__flush_smp_call_function_queue",
    "cpu_stopper_thread",
    "smpboot_thread_fn",
    "handle_softirqs",
    "__do_softirq",
    "tasklet_action_common",
    "task_work_run",
    "__hrtimer_run_queues",
    "call_timer_fn",
    "process_one_work",
];

/// A function of the same kind that is called by its name.
const BY_NAME: &str = "sched_ttwu_pending";

/// The code that took the CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taker {
    /// An interrupt or an exception.
    Entry(Number),
    /// Another thread.
    Thread(Task),
}

impl Attribution<'_> {
    /// Returns what came in, in order; empty if the sample is no gap.
    pub(super) fn arrivals(&self) -> Vec<Arrival> {
        if self.about.span != SampleSpan::Gap {
            return Vec::new();
        }
        let sent: Vec<Number> = self.taken().map(|sent| sent.entry).collect();
        let mut found: Vec<(Taker, Arrival, u64)> = Vec::new();
        let own = |span: &&Span| span.cpu == self.walk.cpu;
        for span in self.walk.spans[self.spans.clone()].iter().filter(own) {
            let Some(taker) = self.taker_in(span) else {
                continue;
            };
            let known = found.iter().position(|(known, ..)| *known == taker);
            let place = known.unwrap_or_else(|| {
                found.push((taker, self.arrival(taker, &sent), 0));
                found.len() - 1
            });
            let (_, arrival, length) = &mut found[place];
            *length += self.inside(span);
            self.note_what_it_did(span, taker, &mut arrival.did);
        }
        let timed = |(_, arrival, length): (Taker, Arrival, u64)| Arrival {
            own: self.about.clock.time(length),
            ..arrival
        };
        found.into_iter().map(timed).collect()
    }

    /// Returns the innermost interrupt or exception, or else the thread, if that is another one.
    fn taker_in(&self, span: &Span) -> Option<Taker> {
        let entry = self
            .walk
            .chain(span.top)
            .find(|number| self.is_entry(*number));
        let thread = (span.task != self.task).then_some(Taker::Thread(span.task));
        entry.map(Taker::Entry).or(thread)
    }

    fn is_entry(&self, number: Number) -> bool {
        matches!(self.kind(number), CodeKind::Interrupt | CodeKind::Exception)
    }

    fn arrival(&self, taker: Taker, sent: &[Number]) -> Arrival {
        let (entry, ipi) = match taker {
            Taker::Thread(task) => (self.thread(task).to_owned(), None),
            Taker::Entry(number) => {
                let short = arch::entry_name(self.text(number));
                let ipi = sent.iter().position(|entry| *entry == number);
                (short.to_owned(), ipi)
            }
        };
        Arrival {
            entry,
            did: Vec::new(),
            own: Nanos::ZERO,
            ipi,
        }
    }

    /// Notes the innermost work that was asked for before, up to the entry.
    fn note_what_it_did(&self, span: &Span, taker: Taker, did: &mut Vec<String>) {
        let inside = |number: &Number| Taker::Entry(*number) != taker;
        let mut chain = self.walk.chain(span.top).take_while(inside);
        let asked = chain.find(|number| self.was_asked_for(*number));
        let text = asked.map(|number| self.text(number));
        if let Some(text) = text.filter(|text| !did.iter().any(|known| known == text)) {
            did.push(text.to_owned());
        }
    }

    fn was_asked_for(&self, number: Number) -> bool {
        let activation = self.walk.activation(number);
        let caller = activation.parent.map(|parent| self.text(parent));
        let caller = caller.and_then(|text| text.split('.').next());
        let is_asked_for = activation.by_pointer || self.text(number) == BY_NAME;
        is_asked_for && caller.is_some_and(|text| DISPATCHERS.contains(&text))
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of a frame: from the call that sends it, over the card, to the thread that it wakes.
//!
//! It is found backwards. The functions within which the thread was woken say who served the
//! card; what had it served is the card's interrupt; before that a thread sent the frame.

use super::attribution::Attribution;
use super::part::PathStage;
use super::stages::Milestone;
use crate::walk::{Number, Switch, Task, Wake};

/// A frame is given to the queueing discipline.
const QUEUE: [&str; 1] = ["__dev_queue_xmit"];
/// It is given to the driver.
const DRIVER: [&str; 1] = ["dev_hard_start_xmit"];
/// The driver asks to have its card served.
const ASK: [&str; 2] = ["__napi_schedule", "__napi_schedule_irqoff"];
/// The card is served: by the soft interrupt, by a thread, or by whoever waits.
const SERVE: [&str; 3] = ["net_rx_action", "__napi_poll", "napi_poll"];
/// A frame leaves the driver for the protocols and their sockets.
const TAKE: [&str; 4] = [
    "netif_receive_skb",
    "netif_receive_skb_list_internal",
    "__netif_receive_skb",
    "__netif_receive_skb_core",
];

/// The way of one frame.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    /// The thread that sent it, or in which the kernel did.
    pub(super) sender: Task,
    /// The function that gave it to the queueing discipline; where it did, and where that gave
    /// it to the driver.
    queue: Number,
    pub(super) queued: u64,
    driven: u64,
    /// The card's interrupt; none where the card was served already.
    interrupt: Option<Number>,
    /// The thread that the interrupt woke to serve the card, if one does: who woke it, and where
    /// it got the CPU.
    thread: Option<(u64, Switch)>,
    /// The function that serves the card, and from where on.
    serve: Number,
    served: u64,
    /// Where the frame left the driver.
    taken: u64,
    /// Where the thread was woken that waited for it, or the kernel's answer was on its way.
    came: u64,
}

/// Where a frame came to.
#[derive(Clone, Copy)]
struct Came {
    /// The function that woke a thread for it, or answers it.
    by: Number,
    at: u64,
    /// The thread; none where the kernel answers.
    to: Option<Task>,
}

impl Attribution<'_> {
    /// The frames that made the sample, the first first: an answer is another one. None where it
    /// is no frame that woke the thread, or where CPUs take turns.
    pub(super) fn legs(&self) -> Vec<Leg> {
        let mut legs = Vec::new();
        let mut next = self.woken(self.task, self.end);
        while let Some(leg) = next.take().and_then(|came| self.leg(came)) {
            let queue = leg.queue;
            next = if self.is_answer(queue) {
                let (by, at, to) = (queue, leg.queued, None);
                Some(Came { by, at, to })
            } else {
                self.woken(leg.sender, leg.queued)
            };
            legs.push(leg);
        }
        legs.reverse();
        legs
    }

    /// What woke a thread, the last time before a position.
    fn woken(&self, task: Task, before: u64) -> Option<Came> {
        let switched = self.switch_to(task, before);
        let switched = switched.filter(|_| !self.walk.in_turn)?;
        let wake = self.wake_of(task, switched.at)?;
        Some(Came {
            by: wake.by,
            at: wake.at,
            to: Some(task),
        })
    }

    /// The way of a frame that came.
    fn leg(&self, came: Came) -> Option<Leg> {
        let taken = self.begin_of(self.outermost(came.by, &TAKE)?)?;
        let serve = self.outermost(came.by, &SERVE)?;
        let drive = self.sent(came.to, taken)?;
        let (driven, sender) = (self.begin_of(drive)?, self.walk.activation(drive).task);
        let is_answer = self.is_answer(drive);
        let mut queues = self.all(&QUEUE, driven);
        let queue = queues.rfind(|queue| {
            self.walk.activation(*queue).task == sender && self.is_answer(*queue) == is_answer
        })?;
        let ask = self.all(&ASK, taken).next_back();
        let ask = ask.filter(|ask| self.begin_of(*ask) > Some(driven));
        let thread = ask.and_then(|ask| self.thread_that_asked(ask));
        let interrupt = match thread {
            Some((woken, _)) => self.interrupt_in(woken.by),
            None => ask.and_then(|ask| self.interrupt_in(ask)),
        };
        let by = self.walk.activation(serve).task;
        let went_on = self.switch_to(by, taken).map(|switch| switch.at);
        let served = [self.begin_of(serve), went_on].into_iter().flatten();
        Some(Leg {
            sender,
            queue,
            queued: self.begin_of(queue)?,
            driven,
            interrupt,
            thread: thread.map(|(woken, switch)| (woken.at, switch)),
            serve,
            served: served.max().unwrap_or(taken).max(driven),
            taken,
            came: came.at,
        })
    }

    /// Where the frame that came was given to the driver: by the thread with which the sample
    /// began. If it is that which waited, for an answer, by the last other thread that a frame
    /// reached; where there is none, the kernel answered.
    fn sent(&self, to: Option<Task>, before: u64) -> Option<Number> {
        let beginner = self.beginner();
        let task = |number: Number| self.walk.activation(number).task;
        let drives = self.all(&DRIVER, before);
        let (mut answers, frames): (Vec<Number>, Vec<Number>) =
            drives.partition(|number| self.is_answer(*number));
        let mut frames = frames.into_iter();
        if to != Some(beginner) {
            return frames.rfind(|number| task(*number) == beginner);
        }
        let is_reached = |task: Task| {
            let came = self.woken(task, before);
            came.is_some_and(|came| self.outermost(came.by, &TAKE).is_some())
        };
        let other = frames.rfind(|number| {
            let task = task(*number);
            task != beginner && is_reached(task)
        });
        other.or_else(|| answers.pop())
    }

    /// Whether the kernel sends what a function is about because a frame came.
    fn is_answer(&self, function: Number) -> bool {
        self.outermost(function, &TAKE).is_some()
    }

    /// Where it is no interrupt that asked, but a thread that an interrupt woke.
    fn thread_that_asked(&self, ask: Number) -> Option<(&Wake, Switch)> {
        let asked = self
            .begin_of(ask)
            .filter(|_| self.interrupt_in(ask).is_none())?;
        let thread = self.walk.activation(ask).task;
        let switched = self.switch_to(thread, asked)?;
        Some((self.wake_of(thread, switched.at)?, switched))
    }

    /// The outermost of such functions within which a function runs.
    fn outermost(&self, function: Number, names: &[&str]) -> Option<Number> {
        let chain = self.walk.chain(function);
        chain.filter(|number| self.is_one_of(*number, names)).last()
    }

    /// All such functions that were entered within the sample and before a position.
    fn all<'a>(
        &'a self,
        names: &'a [&str],
        before: u64,
    ) -> impl DoubleEndedIterator<Item = Number> + 'a {
        let ours = move |number: &Number| {
            let begin = self.begin_of(*number);
            begin.is_some_and(|at| at < before) && self.is_one_of(*number, names)
        };
        (0..self.walk.activations.len() as Number).filter(ours)
    }

    /// Where a function was entered, if it was within the sample.
    fn begin_of(&self, function: Number) -> Option<u64> {
        let begin = self.walk.activation(function).begin;
        begin.filter(|at| *at >= self.begin)
    }

    /// Without what a compiler adds to a name.
    fn is_one_of(&self, function: Number, names: &[&str]) -> bool {
        let name = self.text(function).split('.').next();
        name.is_some_and(|name| names.contains(&name))
    }

    /// The stages of a frame, up to where the thread is woken.
    pub(super) fn stages_of(&self, leg: &Leg) -> Vec<Milestone> {
        let interrupted = leg.interrupt.and_then(|number| self.begin_of(number));
        let mut stages = vec![
            self.own(leg.queued, PathStage::Send),
            self.own(leg.driven, PathStage::Queue),
            self.own(interrupted.unwrap_or(leg.served), PathStage::Driver),
        ];
        stages.extend(match leg.thread {
            None => vec![self.own(leg.served, PathStage::CardIrq)],
            Some((woken, switch)) => vec![
                self.own(woken, PathStage::CardIrq),
                self.own(switch.at, PathStage::IrqThread),
            ],
        });
        stages.extend([
            self.own(leg.taken, PathStage::Napi),
            self.own(leg.came, PathStage::Socket),
        ]);
        stages
    }

    /// Whether a function runs within what serves a card for the sample: its interrupt itself,
    /// or what was asked for there.
    pub(super) fn is_of_card(&self, function: Number) -> bool {
        let ours = |number: Number| {
            let is = |leg: &Leg| leg.interrupt == Some(number) || leg.serve == number;
            self.legs.iter().any(is)
        };
        let entry = |number: &Number| self.kind(*number).is_entry() || ours(*number);
        let innermost = self.walk.chain(function).find(entry);
        innermost.is_some_and(ours)
    }

    /// Whether a thread sends a frame of the sample, or serves a card for it.
    pub(super) fn is_on_the_wire(&self, task: Task) -> bool {
        let is = |leg: &Leg| leg.sender == task || self.walk.activation(leg.serve).task == task;
        self.legs.iter().any(is)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of a frame: from the call that sends it, over the card, to the thread that it wakes.
//!
//! It is found backwards. The functions within which the thread was woken show who served the card.
//! The card's interrupt had it served. Before that, a thread sent the frame.

use super::attribution::Attribution;
use super::part::PathStage;
use super::stages::Milestone;
use crate::walk::{Number, Switch, Task, Wake};

/// Functions at which a frame is given to the queueing discipline; the second one, of `AF_XDP`, has
/// none, and gives it to the driver itself.
const QUEUE: [&str; 2] = ["__dev_queue_xmit", "__dev_direct_xmit"];
/// Functions at which a frame is given to the driver.
const DRIVER: [&str; 2] = ["dev_hard_start_xmit", "__dev_direct_xmit"];
/// Functions by which the driver asks to have its card served.
const ASK: [&str; 2] = ["__napi_schedule", "__napi_schedule_irqoff"];
/// Functions that serve the card: the soft interrupt's, a thread's, or those of whoever waits.
const SERVE: [&str; 3] = ["net_rx_action", "__napi_poll", "napi_poll"];
/// Functions at which a frame leaves the driver for the protocols and their sockets; the last
/// two for `AF_XDP`, if the driver knows it.
const TAKE: [&str; 6] = [
    "netif_receive_skb",
    "netif_receive_skb_list_internal",
    "__netif_receive_skb",
    "__netif_receive_skb_core",
    "xdp_do_flush",
    "__xsk_map_flush",
];

/// The way of one frame.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    /// The thread that sent it, or in which the kernel sent it.
    pub(super) sender: Task,
    /// The function that gave it to the queueing discipline; the position of that; and the position
    /// at which the discipline gave it to the driver.
    queue: Number,
    pub(super) queued: u64,
    driven: u64,
    /// The card's interrupt; `None` if the card was served already.
    interrupt: Option<Number>,
    /// The thread that the interrupt woke to serve the card, if there is one: the position of the
    /// wake-up, and the switch to it.
    thread: Option<(u64, Switch)>,
    /// The function that serves the card, and the position from which on it does.
    serve: Number,
    served: u64,
    /// Position at which the frame left the driver.
    taken: u64,
    /// Position at which the waiting thread was woken, or at which the kernel's answer was on its
    /// way.
    came: u64,
}

/// The arrival of a frame.
#[derive(Clone, Copy)]
struct Came {
    /// The function that woke a thread for it, or that answers it.
    by: Number,
    at: u64,
    /// The thread; `None` if the kernel answers.
    to: Option<Task>,
}

impl Attribution<'_> {
    /// Returns the frames that made the sample, in order: an answer is another one. Empty if no
    /// frame woke the thread, or if CPUs take turns.
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

    /// Returns what woke a thread, the last time before a position.
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

    /// Returns the way of a frame that came.
    fn leg(&self, came: Came) -> Option<Leg> {
        let taken = self.begin_of(self.outermost(came.by, &TAKE)?)?;
        let serve = self.outermost(came.by, &SERVE)?;
        let drive = self.sent(came.to, taken)?;
        let (driven, sender) = (self.begin_of(drive)?, self.walk.activation(drive).task);
        let is_answer = self.is_answer(drive);
        let mut queues = self.all(&QUEUE, driven + 1);
        let queue = queues.rfind(|queue| {
            self.walk.activation(*queue).task == sender && self.is_answer(*queue) == is_answer
        })?;
        let ask = self.all(&ASK, taken).next_back();
        let ask = ask.filter(|ask| self.begin_of(*ask) > Some(driven));
        let thread = ask.and_then(|ask| self.thread_that_asked(ask));
        let interrupt = match thread {
            Some((woken, _)) => self.interrupt_in(woken.by, woken.at),
            None => ask.and_then(|ask| self.interrupt_in(ask, self.begin_of(ask)?)),
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

    /// Returns where the frame that came was given to the driver. The thread with which the sample
    /// began gave it. If that thread itself waited for an answer, the last other thread that a
    /// frame reached gave it; if there is none, the kernel answered.
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

    /// Returns true if the kernel sends a function's frame because another frame came.
    fn is_answer(&self, function: Number) -> bool {
        self.outermost(function, &TAKE).is_some()
    }

    /// Returns the thread that asked, and its wake-up, if an interrupt woke a thread and did not
    /// ask itself.
    fn thread_that_asked(&self, ask: Number) -> Option<(&Wake, Switch)> {
        let asked = self
            .begin_of(ask)
            .filter(|asked| self.interrupt_in(ask, *asked).is_none())?;
        let thread = self.walk.activation(ask).task;
        let switched = self.switch_to(thread, asked)?;
        Some((self.wake_of(thread, switched.at)?, switched))
    }

    /// Returns the outermost of such functions within which a function runs.
    fn outermost(&self, function: Number, names: &[&str]) -> Option<Number> {
        let chain = self.walk.chain(function);
        chain.filter(|number| self.is_one_of(*number, names)).last()
    }

    /// Returns all such functions that were entered within the sample and before a position.
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

    /// Returns where a function was entered, if that was within the sample.
    fn begin_of(&self, function: Number) -> Option<u64> {
        let begin = self.walk.activation(function).begin;
        begin.filter(|at| *at >= self.begin)
    }

    /// Returns true if a function has one of these names, without what a compiler adds to a name.
    fn is_one_of(&self, function: Number, names: &[&str]) -> bool {
        let name = self.text(function).split('.').next();
        name.is_some_and(|name| names.contains(&name))
    }

    /// Returns the stages of a frame, up to where the thread is woken.
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

    /// Returns true if a function runs within the code that serves a card for the sample: its
    /// interrupt itself, or the work that was asked for there.
    pub(super) fn is_of_card(&self, function: Number) -> bool {
        let ours = |number: Number| {
            let is = |leg: &Leg| leg.interrupt == Some(number) || leg.serve == number;
            self.legs.iter().any(is)
        };
        let entry = |number: &Number| self.kind(*number).is_entry() || ours(*number);
        let innermost = self.walk.chain(function).find(entry);
        innermost.is_some_and(ours)
    }

    /// Returns true if a thread sends a frame of the sample, or serves a card for it.
    pub(super) fn is_on_the_wire(&self, task: Task) -> bool {
        let is = |leg: &Leg| leg.sender == task || self.walk.activation(leg.serve).task == task;
        self.legs.iter().any(is)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits the time between two moments into parts, by the events of one CPU.

use std::collections::BTreeMap;

use punctual_model::Nanos;
use punctual_model::capture::{Happened, Longest, Task, TraceEvent};

use super::{Kind, Piece, name, way};
use crate::captured::stack;

/// Times up to this belong to the way itself, as in captures.
const GRAIN: Nanos = Nanos::from_micros(3);

/// The part of a trace that is looked at.
pub struct Window<'a> {
    /// The CPU's events, in the order of time.
    pub events: Vec<&'a TraceEvent>,
    pub from: Nanos,
    pub to: Nanos,
    /// The thread that waits.
    pub victim: Option<u32>,
    pub priorities: &'a BTreeMap<u32, i32>,
    /// True if the kernel gives the CPU away only where it asks.
    pub is_asked: bool,
    /// True if the times are of a latency tracer, which notes nothing before its section.
    pub is_since: bool,
    /// Pairs of moments between which the text was cut: what took so long there is not known.
    pub breaks: &'a [(Nanos, Nanos)],
}

/// The known state of the CPU between two events.
#[derive(Default)]
struct State {
    task: Task,
    irqs: Vec<String>,
    softirq: Option<String>,
    /// The thread from which a switch takes the CPU, until another one is seen.
    leaving: Option<u32>,
}

impl State {
    fn take(&mut self, event: &TraceEvent) {
        if self.leaving.is_none_or(|pid| pid != event.task.pid) {
            self.leaving = None;
            self.task = event.task.clone();
        }
        match &event.what {
            Happened::Switch { next, .. } => {
                self.leaving = Some(event.task.pid);
                self.task = next.clone();
            }
            Happened::IrqEntry { name } => self.irqs.push(name.clone()),
            Happened::IrqExit { .. } => drop(self.irqs.pop()),
            Happened::SoftirqEntry { name } => self.softirq = Some(name.clone()),
            Happened::SoftirqExit { .. } => self.softirq = None,
            _ => {}
        }
    }
}

impl Window<'_> {
    /// Returns the parts, without gaps.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut state = State::default();
        let mut before: Option<&TraceEvent> = None;
        let mut begin = self.from;
        let mut pieces = Pieces::default();
        for event in &self.events {
            if event.at > self.to {
                break;
            }
            if event.at > begin {
                let last = before.or(self.is_since.then_some(event));
                let piece = match last {
                    Some(last) => self.piece(last, Some(event), &state, (begin, event.at)),
                    None => Piece::new(Kind::Unknown, begin - self.from, event.at - begin),
                };
                pieces.push(piece);
                begin = event.at;
            }
            state.take(event);
            before = Some(event);
        }
        if begin < self.to {
            let piece = match before {
                Some(last) => self.piece(last, None, &state, (begin, self.to)),
                None => Piece::new(Kind::Unknown, begin - self.from, self.to - begin),
            };
            pieces.push(piece);
        }
        pieces.done()
    }

    /// Returns what the CPU did from one event to the next.
    fn piece(
        &self,
        last: &TraceEvent,
        next: Option<&TraceEvent>,
        state: &State,
        (from, to): (Nanos, Nanos),
    ) -> Piece {
        let kind = match self.kind(last, next, state, to - from) {
            Kind::Path => way(to - from),
            kind => kind,
        };
        let mut piece = Piece::new(kind, from - self.from, to - from);
        let idle = if state.task.comm.is_empty() {
            &last.task
        } else {
            &state.task
        };
        piece.thread = Some(name(idle));
        let function = |event: &TraceEvent| match &event.what {
            Happened::Function { name, caller } => Some((name.clone(), Some(caller.clone()))),
            Happened::Other { name, detail } if detail.is_empty() && is_symbol(name) => {
                Some((name.clone(), None))
            }
            _ => None,
        };
        let of_stack = |stack: &[String]| {
            let place = stack::switched(stack)?;
            Some((place.function.to_owned(), place.caller.map(str::to_owned)))
        };
        let what = match kind {
            Kind::Interrupt => state.irqs.last().map(|name| (name.clone(), None)),
            Kind::SoftInterrupt => state.softirq.as_ref().map(|name| (name.clone(), None)),
            Kind::PreemptionOff | Kind::NotPreemptible => self
                .switch()
                .and_then(|event| of_stack(&event.stack).filter(|_| !event.stack.is_empty())),
            Kind::HigherThread | Kind::Thread | Kind::Path | Kind::Unknown => return piece,
            _ => None,
        };
        if let Some((what, caller)) = what.or_else(|| function(last)) {
            (piece.what, piece.caller) = (Some(what), caller);
        }
        piece
    }

    fn kind(
        &self,
        last: &TraceEvent,
        next: Option<&TraceEvent>,
        state: &State,
        length: Nanos,
    ) -> Kind {
        let (one, other) = (last.context, next.unwrap_or(last).context);
        let task = if state.task.comm.is_empty() {
            &last.task
        } else {
            &state.task
        };
        if next.is_some_and(|next| self.is_cut(&[last, next])) {
            return self.kind_of_cut(task, next);
        }
        if !state.irqs.is_empty() || (one.hard_irq && other.hard_irq) {
            return Kind::Interrupt;
        }
        if state.softirq.is_some() || (one.soft_irq && other.soft_irq) {
            return Kind::SoftInterrupt;
        }
        // Until the next thread is seen the one before is being left.
        let is_leaving = |pid| next.is_none_or(|next| next.task.pid == pid);
        if state.leaving.is_some_and(is_leaving) || is_of_scheduler(last) {
            return Kind::Scheduler;
        }
        if Some(task.pid) == self.victim {
            return Kind::Path;
        }
        if one.hard_irq && next.is_some_and(|next| self.is_end_of_interrupt(next)) {
            return Kind::Interrupt;
        }
        if task.pid == 0 {
            return Kind::Idle;
        }
        let is_told = tells_what_is_off(last) || next.is_none_or(tells_what_is_off);
        if is_told && one.irqs_off && other.irqs_off && !one.hard_irq {
            return Kind::InterruptsOff;
        }
        if length <= GRAIN {
            return Kind::Scheduler;
        }
        let is_off = one.preempt_depth > 0 && other.preempt_depth > 0;
        self.kind_of_thread(task.pid, is_told && is_off)
    }

    /// Returns the kind where the text was cut. There only the thread that had the CPU is known,
    /// and that only from both ends.
    fn kind_of_cut(&self, task: &Task, next: Option<&TraceEvent>) -> Kind {
        let is_one = next.is_some_and(|next| next.task.pid == task.pid);
        match self.kind_of_thread(task.pid, false) {
            _ if !is_one => Kind::Unknown,
            _ if Some(task.pid) == self.victim => Kind::Path,
            _ if task.pid == 0 => Kind::Idle,
            Kind::HigherThread => Kind::HigherThread,
            _ => Kind::Unknown,
        }
    }

    /// Returns what keeps a thread from the CPU that another one has.
    fn kind_of_thread(&self, pid: u32, is_off: bool) -> Kind {
        let own = self.victim.and_then(|pid| self.priorities.get(&pid));
        match (self.priorities.get(&pid), own) {
            (Some(other), Some(own)) if other <= own => Kind::HigherThread,
            (Some(_), Some(_)) if self.is_asked || self.has_asked() => Kind::NotPreemptible,
            (Some(_), Some(_)) => Kind::PreemptionOff,
            _ if is_off => Kind::PreemptionOff,
            _ => Kind::Thread,
        }
    }

    /// Returns the switch to the waiting thread.
    fn switch(&self) -> Option<&TraceEvent> {
        let is_it = |event: &&&TraceEvent| match &event.what {
            Happened::Switch { next, .. } => Some(next.pid) == self.victim,
            _ => false,
        };
        self.events.iter().rfind(is_it).copied()
    }

    /// Returns true if the CPU was given away where the kernel asks whether to give it away.
    fn has_asked(&self) -> bool {
        let stack = self
            .switch()
            .map(|event| &event.stack[..])
            .unwrap_or_default();
        stack.iter().any(|one| one.contains("cond_resched"))
    }

    /// Returns true if a thread is preempted at the end of an interrupt, after its soft interrupts.
    fn is_end_of_interrupt(&self, next: &TraceEvent) -> bool {
        let ends = ["preempt_schedule_irq", "irqentry_exit", "raw_irqentry_exit"];
        let is_end = |text: &str| ends.iter().any(|end| text.starts_with(end));
        let by_name = match &next.what {
            Happened::Function { name, caller } => is_end(name) || is_end(caller),
            _ => false,
        };
        let stack = self
            .switch()
            .map(|event| &event.stack[..])
            .unwrap_or_default();
        by_name || stack.iter().take(5).any(|one| is_end(one))
    }

    /// Explains the longest section of a tracer, by what was handled meanwhile.
    pub fn section(&self, tracer: &str, longest: &Longest) -> Piece {
        let mut hard = Nanos::ZERO;
        let mut soft = Nanos::ZERO;
        let mut masked = Nanos::ZERO;
        for pair in self.events.windows(2).filter(|pair| !self.is_cut(pair)) {
            let length = pair[1].at - pair[0].at;
            let [one, other] = [pair[0].context, pair[1].context];
            let all = |is: fn(&punctual_model::capture::Context) -> bool| is(&one) && is(&other);
            let is_to_exit = matches!(&pair[1].what, Happened::Function { name, .. } if name.starts_with("irq_exit"));
            if all(|context| context.hard_irq) || (one.hard_irq && is_to_exit) {
                hard += length;
            } else if all(|context| context.soft_irq) {
                soft += length;
            }
            if all(|context| context.irqs_off) {
                masked += length;
            }
        }
        let most = |time: Nanos| time * 2 > longest.latency;
        let kind = match tracer {
            _ if most(hard) => Kind::Interrupt,
            "irqsoff" => Kind::InterruptsOff,
            _ if most(soft) => Kind::SoftInterrupt,
            "preemptirqsoff" if most(masked) => Kind::InterruptsOff,
            _ => Kind::PreemptionOff,
        };
        let mut piece = Piece::new(kind, Nanos::ZERO, longest.latency);
        piece.thread = Some(name(&longest.task));
        let long = self.longest_gap().filter(|(_, length)| most(*length));
        let long = long.and_then(|(event, _)| match &event.what {
            Happened::Function { name, caller } => Some((name.clone(), Some(caller.clone()))),
            _ => None,
        });
        let place = if stack::is_release_or_lock(&longest.started) {
            longest.ended.clone()
        } else {
            longest.started.clone()
        };
        let caller = None;
        let of_head = (!place.is_empty()).then_some((place, caller));
        let is_own = |(name, _): &(String, Option<String>)| !stack::is_release_or_lock(name);
        let of_stack = || {
            let names = self.events.iter().rev().flat_map(|event| &event.stack);
            let mut own = names.filter(|name| !stack::is_release_or_lock(name));
            Some((own.next()?.clone(), None))
        };
        let named = long.filter(is_own).or(of_head.clone().filter(is_own));
        if let Some((what, caller)) = named.or_else(of_stack).or(of_head) {
            (piece.what, piece.caller) = (Some(what), caller);
        }
        piece
    }

    /// Returns true if the text was cut between two events.
    fn is_cut(&self, pair: &[&TraceEvent]) -> bool {
        let mut breaks = self.breaks.iter();
        breaks.any(|(from, to)| pair[0].at <= *from && *to <= pair[1].at)
    }

    /// Returns the longest time between two events of the section out of which nothing was cut.
    fn longest_gap(&self) -> Option<(&TraceEvent, Nanos)> {
        let gaps = self.events.windows(2).filter(|pair| !self.is_cut(pair));
        let gaps = gaps.map(|pair| (pair[0], pair[1].at - pair[0].at));
        gaps.max_by_key(|(_, length)| *length)
    }

    /// Notes where a section began and ended.
    pub fn gaps(&self, longest: &Longest) -> Vec<String> {
        let mut notes = vec![format!(
            "from {} to {}: it is the longest section since the tracer began, and need not have \
             made anybody late",
            or_unnamed(&longest.started),
            or_unnamed(&longest.ended)
        )];
        let cut = self.events.windows(2).filter(|pair| self.is_cut(pair));
        let cut = cut.fold(Nanos::ZERO, |sum, pair| sum + (pair[1].at - pair[0].at));
        if cut > Nanos::ZERO {
            notes.push(format!("{cut} of it was cut out of the text"));
        }
        let told = |(_, length): &(_, Nanos)| *length > GRAIN && *length <= longest.latency;
        if let Some((event, length)) = self.longest_gap().filter(told) {
            let after = match &event.what {
                Happened::Function { name, .. } => format!(" after {name}"),
                _ => String::new(),
            };
            notes.push(format!("nothing is noted for {length} of it{after}"));
        }
        notes
    }
}

/// Returns true if the flags of an event say what is off around it. The scheduler notes wake-ups
/// and switches with interrupts and preemption off.
fn tells_what_is_off(event: &TraceEvent) -> bool {
    !matches!(
        event.what,
        Happened::Waking { .. } | Happened::Switch { .. }
    )
}

fn or_unnamed(place: &str) -> &str {
    if place.is_empty() {
        "a place that is not named"
    } else {
        place
    }
}

/// Returns true if an event without details is a function's name, as latency tracers note it.
fn is_symbol(text: &str) -> bool {
    let is_part = |one: u8| one.is_ascii_alphanumeric() || one == b'_' || one == b'.';
    text.len() > 1 && !text.as_bytes()[0].is_ascii_digit() && text.bytes().all(is_part)
}

/// Returns true if the noted event is the scheduler's own.
fn is_of_scheduler(event: &TraceEvent) -> bool {
    let is_own = |name: &str| {
        let starts = [
            "__schedule",
            "schedule",
            "pick_next_",
            "put_prev_",
            "rcu_note_context",
        ];
        starts.iter().any(|start| name.starts_with(start))
    };
    match &event.what {
        // The next thread has been switched to.
        Happened::Function { name, .. } if name.starts_with("finish_task_switch") => false,
        Happened::Function { name, caller } => is_own(name) || is_own(caller),
        Happened::Other { name, .. } => is_own(name),
        _ => false,
    }
}

/// Parts whose alike neighbours are merged, each described by its longest.
#[derive(Default)]
struct Pieces {
    all: Vec<Piece>,
    longest: Nanos,
}

impl Pieces {
    fn push(&mut self, piece: Piece) {
        let Some(last) = self.all.last_mut() else {
            self.longest = piece.length;
            self.all.push(piece);
            return;
        };
        // Interrupts that the trace names are each their own.
        let is_named = last.caller.is_none() && piece.caller.is_none();
        let is_same = (last.kind, &last.thread) == (piece.kind, &piece.thread)
            && (!is_named || last.what == piece.what);
        if !is_same {
            self.longest = piece.length;
            self.all.push(piece);
            return;
        }
        last.length += piece.length;
        if piece.length > self.longest || last.what.is_none() {
            self.longest = piece.length.max(self.longest);
            (last.what, last.caller) = (piece.what, piece.caller);
        }
    }

    fn done(self) -> Vec<Piece> {
        self.all
    }
}

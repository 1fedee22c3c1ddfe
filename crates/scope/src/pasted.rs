// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace from elsewhere: finds what stood in the way, by the text that somebody has pasted.
//!
//! Accepts the text of the kernel's `trace` file, the text of `trace-cmd report`, and the automatic
//! analysis of `rtla timerlat`. Such a text names no limit and no thread of its own, so that the
//! late thread, and the start of its wait, are looked for in it. Things that it does not tell are
//! unknown; then the commands are named that would tell them. `docs/method/tracers.md` has the
//! rules.

mod analysis;
mod noise;
mod notes;
mod walk;

use std::collections::BTreeMap;

use punctual_formats::{foreign, ftrace, pasted, rtla_analysis};
use punctual_model::Nanos;
use punctual_model::capture::{Happened, Longest, Task, TraceEvent};
use serde::Serialize;

use crate::captured::LONGEST_WAY;
use walk::Window;

/// The kind of thing that stood in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A thread of higher or equal priority had the CPU.
    HigherThread,
    /// Another thread had the CPU; the text does not say its priority.
    Thread,
    /// An interrupt was handled.
    Interrupt,
    /// A soft interrupt was handled.
    SoftInterrupt,
    /// Code had interrupts off.
    InterruptsOff,
    /// Code had preemption off, or held a spinning lock.
    PreemptionOff,
    /// Code of a kernel that gives the CPU away only where it asks.
    NotPreemptible,
    /// Hardware, firmware or a hypervisor had the CPU, or an interrupt that cannot be masked.
    Hardware,
    /// The CPU was idle, and came out of idle.
    Idle,
    /// The scheduler itself.
    Scheduler,
    /// Nothing: this is the way itself.
    Path,
    /// The text does not tell it.
    Unknown,
}

/// A part of the time that somebody waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// The kind of thing.
    pub kind: Kind,
    /// Start, from the moment when the waiting began.
    #[serde(rename = "from_ns")]
    pub from: Nanos,
    /// Length.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
    /// The thread that had the CPU.
    pub thread: Option<String>,
    /// The interrupt, or the function of the kernel.
    pub what: Option<String>,
    /// The function that called that one.
    pub caller: Option<String>,
}

/// The findings from one trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The source that was read: `wakeup_rt`, `rtla timerlat`.
    pub source: String,
    /// The thread that waited, or whose section it is: `cyclictest-217`.
    pub whose: Option<String>,
    /// The CPU on which it was.
    pub cpu: Option<u32>,
    /// Length of the whole.
    #[serde(rename = "whole_ns")]
    pub whole: Option<Nanos>,
    /// The moment of its end, by the trace's clock, where losses of events before it matter.
    #[serde(skip)]
    end: Option<Nanos>,
    /// Its parts, in the order of time.
    pub pieces: Vec<Piece>,
    /// Index of the part that stood in the way for longest; `None` if it is not known.
    pub culprit: Option<usize>,
    /// Index of another part that took at least a quarter.
    pub also: Option<usize>,
    /// The number of events that were read.
    pub events: usize,
    /// The number of events for which the kernel had no room.
    pub lost: u64,
    /// The number of lines that have no known form.
    pub unread: u64,
    /// Notes on the trace, and on what the text does not show.
    pub notes: Vec<String>,
    /// The reason why it is undecided, if it is.
    pub undecided: Option<String>,
    /// Commands that would decide it.
    pub decide: Vec<String>,
}

/// Explains each trace in a text; empty if there is no trace in it.
pub fn explain(text: &str) -> Vec<Told> {
    let text = pasted::clean(text);
    let mut all: Vec<Told> = rtla_analysis::read(&text)
        .iter()
        .map(analysis::told)
        .collect();
    let sections = pasted::sections(&text);
    let told = sections.into_iter().filter_map(of_section);
    // rtla prints its own trace's summary: the analysis says more of it.
    all.extend(told);
    all
}

/// Says what a file without a trace holds, and what was expected of it.
pub fn no_trace(name: &str, bytes: &[u8]) -> String {
    let expected =
        "expected the text of the kernel's trace, of `trace-cmd report` or of `rtla timerlat -a`";
    let text = match foreign::decode(bytes) {
        Ok(text) => text,
        Err(error) => return format!("{expected}: {error}"),
    };
    if let Ok(result) = foreign::read(&text) {
        let program = result.program;
        return format!(
            "{expected}, found what {program} has measured, which does not say who was late: \
             `punctual import {name}`"
        );
    }
    let is_empty = text.contains("# tracer:") && !text.contains("# tracer: function_graph");
    let found = match foreign::name_of(&text) {
        _ if is_empty => "a trace without an event in it",
        known => known.unwrap_or("no event in it"),
    };
    format!("{expected}, found {found}")
}

/// Reads one trace; `None` if the text holds none.
fn of_section(text: &str) -> Option<Told> {
    let mut trace = ftrace::read(text);
    let is_of_trace_cmd = |line: &&str| {
        let line = line.trim();
        line.starts_with("cpus=") || line.starts_with("version = ") || line.ends_with(" is empty")
    };
    let heads = text.lines().filter(is_of_trace_cmd).count() as u64;
    trace.unread = trace.unread.saturating_sub(heads);
    if trace.longest.is_none() && trace.clock == ftrace::Clock::Since {
        trace.longest = longest_of_excerpt(text, &trace.events);
    }
    let is_trace = !trace.events.is_empty() || trace.longest.is_some() || trace.lost > 0;
    if !is_trace {
        return None;
    }
    let tracer = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("# tracer:"));
    let tracer = tracer
        .map(str::trim)
        .next_back()
        .or_else(|| untitled(text, &trace));
    let tracer = tracer.unwrap_or("events").to_owned();
    let page = Page {
        trace: &trace,
        breaks: breaks(text),
        tracer,
        text,
    };
    let mut told = page.told();
    told.events = trace.events.len();
    (told.lost, told.unread) = (trace.lost, trace.unread);
    if told.is_lost(text) {
        let why = || "events of its CPU were lost for most of it".to_owned();
        told.undecided.get_or_insert_with(why);
    }
    told.notes.extend(notes::of(&page, &told));
    let is_short = told
        .whole
        .is_some_and(|whole| whole < Nanos::from_millis(10));
    if is_short && notes::is_coarse(&trace) && !told.pieces.is_empty() {
        // What seems to have taken a millisecond may have been at its end.
        told.pieces.clear();
        told.undecided = Some("its clock tells whole milliseconds, and it was not longer".into());
    }
    told.settle();
    Some(told)
}

/// Returns the tracer of an excerpt without the line that names it: by the head's next line, else
/// by what was off when its section began.
fn untitled<'a>(text: &'a str, trace: &ftrace::Trace) -> Option<&'a str> {
    let mut lines = text.lines();
    let of_head = lines.find_map(|line| {
        let (name, _) = line.split_once(" latency trace v1.")?;
        name.rsplit(['#', ' ']).next()
    });
    let first = || {
        trace
            .longest
            .as_ref()
            .filter(|longest| !longest.started.is_empty())?;
        let first = trace.events.first()?;
        Some(if first.context.irqs_off {
            "irqsoff"
        } else {
            "preemptoff"
        })
    };
    of_head.filter(|name| !name.is_empty()).or_else(first)
}

/// Reads an excerpt that begins below the latency: the start and end of its section, the thread,
/// and the length by the event at its end.
fn longest_of_excerpt(text: &str, events: &[TraceEvent]) -> Option<Longest> {
    let behind = |key: &str| {
        let line = text
            .lines()
            .find_map(|line| Some(line.split_once(key)?.1))?;
        let place = line.trim().split(['+', ' ']).next()?;
        Some(place.to_owned()).filter(|place| !place.is_empty())
    };
    let (started, ended) = (behind("=> started at:")?, behind("=> ended at:")?);
    let is_end = |event: &&TraceEvent| match &event.what {
        Happened::Function { name, .. } | Happened::Other { name, .. } => *name == ended,
        _ => false,
    };
    let first = events.first()?;
    let last = events.iter().skip(1).rfind(is_end)?;
    let is_whole = first.at < Nanos::from_micros(100) && first.at < last.at;
    is_whole.then(|| Longest {
        latency: last.at,
        task: first.task.clone(),
        started,
        ended,
    })
}

/// Returns the pairs of moments of a CPU's events between which others were lost; `None` for what
/// was lost before its first one.
fn losses(text: &str, cpu: u32) -> Vec<(Option<Nanos>, Nanos)> {
    let head = format!("CPU:{cpu} [");
    let mut found = Vec::new();
    let (mut before, mut is_lost) = (None, false);
    for line in text.lines() {
        let read = ftrace::read(line);
        let tells_loss = read.lost > 0 || notes::losses_without_number(line) > 0;
        is_lost |= tells_loss && line.trim_start().starts_with(&head);
        let Some(event) = read.events.first().filter(|_| read.cpus == [cpu]) else {
            continue;
        };
        if is_lost {
            found.push((before, event.at));
        }
        (before, is_lost) = (Some(event.at), false);
    }
    found
}

/// Returns the pairs of moments of a trace between which there are lines of no known form.
fn breaks(text: &str) -> Vec<(Nanos, Nanos)> {
    let mut found = Vec::new();
    let (mut before, mut is_broken) = (None, false);
    for line in text.lines() {
        let own = line.trim_start();
        if own.starts_with(['#', '|']) || own.starts_with("=> ") || own.starts_with("---") {
            continue;
        }
        let read = ftrace::read(line);
        is_broken |= read.unread > 0;
        let Some(event) = read.events.first() else {
            continue;
        };
        found.extend(
            before
                .filter(|_| is_broken)
                .map(|before| (before, event.at)),
        );
        (before, is_broken) = (Some(event.at), false);
    }
    found
}

/// A trace that is being explained.
struct Page<'a> {
    trace: &'a ftrace::Trace,
    /// Pairs of moments between which there are lines that are no events: people who cut a trace
    /// write `[...]`.
    breaks: Vec<(Nanos, Nanos)>,
    tracer: String,
    text: &'a str,
}

impl Page<'_> {
    fn told(&self) -> Told {
        let strategies = [
            Self::of_timerlat,
            Self::of_section_off,
            Self::of_wakeup,
            Self::of_hardware,
            Self::of_osnoise,
            Self::of_mark,
            Self::of_longest_wakeup,
        ];
        let mut tried = strategies.into_iter().filter_map(|strategy| strategy(self));
        tried.next().unwrap_or_else(|| self.of_nothing())
    }

    fn base(&self) -> Told {
        let source = match self.tracer.as_str() {
            "nop" => "events".to_owned(),
            name => name.to_ascii_lowercase(),
        };
        Told {
            source,
            ..Told::default()
        }
    }

    /// Returns the events of a CPU, in the order of time.
    fn of_cpu(&self, cpu: u32) -> Vec<&TraceEvent> {
        let all = self.trace.events.iter().zip(&self.trace.cpus);
        let mut own: Vec<_> = all
            .filter(|(_, own)| **own == cpu)
            .map(|(one, _)| one)
            .collect();
        own.sort_by_key(|event| event.at);
        own
    }

    /// Reads the CPU and the kernel's model of preemption, by the head of a latency tracer.
    fn head(&self) -> (Option<u32>, bool) {
        let mut lines = self.text.lines();
        let is_head = |(_, head): &(&str, &str)| head.contains("CPU#");
        let head = lines.find_map(|line| line.rsplit_once("latency: ").filter(is_head));
        let head = head.map(|(_, head)| head).unwrap_or_default();
        let cpu = head.split_once("CPU#").and_then(|(_, rest)| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            rest[..digits].parse().ok()
        });
        let is_asked = ["M:desktop", "M:server", "M:voluntary", "M:none"];
        (cpu, is_asked.iter().any(|model| head.contains(model)))
    }

    fn window(&self, cpu: u32, from: Nanos, to: Nanos, victim: Option<&Task>) -> Window<'_> {
        Window {
            events: self.of_cpu(cpu),
            from,
            to,
            victim: victim.map(|task| task.pid),
            priorities: &self.trace.priorities,
            is_asked: self.head().1,
            is_since: self.trace.clock == ftrace::Clock::Since,
            breaks: &self.breaks,
        }
    }

    /// Explains `irqsoff`, `preemptoff` and `preemptirqsoff`: the longest section.
    fn of_section_off(&self) -> Option<Told> {
        let tracer = self.tracer.as_str();
        let is_own = ["irqsoff", "preemptoff", "preemptirqsoff"].contains(&tracer);
        let longest = self.trace.longest.as_ref().filter(|_| is_own)?;
        let cpu = self.head().0.or(self.trace.cpus.first().copied());
        let window = self.window(cpu.unwrap_or(0), Nanos::ZERO, longest.latency, None);
        let section = window.section(tracer, longest);
        Some(Told {
            whose: Some(name(&longest.task)),
            cpu,
            whole: Some(longest.latency),
            pieces: vec![section],
            notes: window.gaps(longest),
            ..self.base()
        })
    }

    /// Explains `wakeup`, `wakeup_rt` and `wakeup_dl`: the longest way from a wake-up to the
    /// thread.
    fn of_wakeup(&self) -> Option<Told> {
        let longest = self.trace.longest.as_ref()?;
        let cpu = self.head().0.or(self.trace.cpus.last().copied());
        let window = self.window(
            cpu.unwrap_or(0),
            Nanos::ZERO,
            longest.latency,
            Some(&longest.task),
        );
        Some(Told {
            whose: Some(name(&longest.task)),
            cpu,
            whole: Some(longest.latency),
            pieces: window.pieces(),
            ..self.base()
        })
    }

    /// Explains the mark of a program that was late: cyclictest's `hit latency threshold`.
    fn of_mark(&self) -> Option<Told> {
        let late = |text: &str| -> Option<i64> {
            let (_, rest) = text.split_once("hit latency threshold (")?;
            rest.split(' ').next()?.parse().ok()
        };
        let marks = self.trace.events.iter().zip(&self.trace.cpus);
        let mut marks = marks.filter_map(|(event, cpu)| match &event.what {
            Happened::Mark(text) => Some((event, *cpu, late(text)?)),
            Happened::Other { name, detail } => {
                Some((event, *cpu, late(name).or_else(|| late(detail))?))
            }
            _ => None,
        });
        let (event, cpu, micros) = marks.next()?;
        if self.trace.clock == ftrace::Clock::Order {
            return None;
        }
        let whole = Nanos(micros.checked_mul(1_000)?);
        let window = self.window(cpu, event.at - whole, event.at, Some(&event.task));
        Some(Told {
            whose: Some(name(&event.task)),
            cpu: Some(cpu),
            whole: Some(whole),
            pieces: window.pieces(),
            notes: vec![
                "the mark is written a few µs after the clock was read, so that all \
                         moments are late by as much"
                    .into(),
            ],
            ..self.base()
        })
    }

    /// Explains the longest wait of a thread from its wake-up to the CPU, real-time threads first.
    fn of_longest_wakeup(&self) -> Option<Told> {
        if self.trace.clock == ftrace::Clock::Order {
            return None;
        }
        let (from, to, cpu, task) = self.longest_wakeup()?;
        let window = self.window(cpu, from, to, Some(task));
        Some(Told {
            whose: Some(name(task)),
            cpu: Some(cpu),
            whole: Some(to - from),
            end: Some(to),
            pieces: window.pieces(),
            notes: vec![
                "no limit is named in it: this is the longest wait of a thread from its wake-up \
                 to the CPU"
                    .into(),
            ],
            ..self.base()
        })
    }

    fn longest_wakeup(&self) -> Option<(Nanos, Nanos, u32, &Task)> {
        let is_of_rt = |task: &Task| {
            let priority = self.trace.priorities.get(&task.pid);
            priority.is_some_and(|priority| *priority < 100)
        };
        let mut woken: BTreeMap<u32, Nanos> = BTreeMap::new();
        // Threads that were woken before they were seen to give the CPU away.
        let mut maybe: BTreeMap<u32, Nanos> = BTreeMap::new();
        let mut waits = Vec::new();
        let mut events: Vec<_> = self.trace.events.iter().zip(&self.trace.cpus).collect();
        events.sort_by_key(|(event, _)| event.at);
        for (event, cpu) in events {
            match &event.what {
                // Who is about to sleep, and is woken before, goes on at once.
                Happened::Waking { task } if task.pid == event.task.pid => {}
                Happened::Waking { task } => {
                    maybe.remove(&task.pid);
                    woken.entry(task.pid).or_insert(event.at);
                }
                Happened::Switch { prev, state, next } => {
                    // Who had the CPU was not waiting for it; who falls asleep then may have been
                    // woken meanwhile, unless it is woken again.
                    maybe.remove(&prev.pid);
                    let before = woken.remove(&prev.pid);
                    if let Some(from) = before.filter(|_| state.starts_with(['S', 'D'])) {
                        maybe.insert(prev.pid, from);
                    }
                    let overlapping = maybe.remove(&next.pid);
                    if let Some(from) = woken.remove(&next.pid).or(overlapping) {
                        waits.push((from, event.at, *cpu, next));
                    }
                }
                _ => {}
            }
        }
        let key = |(from, to, _, task): &(Nanos, Nanos, u32, &Task)| (is_of_rt(task), *to - *from);
        waits.into_iter().max_by_key(key)
    }

    /// Explains a trace in which nothing says that anything was late.
    fn of_nothing(&self) -> Told {
        let longest = self.longest_handler();
        let told = longest.map(|(kind, what, length, cpu)| {
            format!(
                "the longest that it shows is {} {what}, {length} on CPU {cpu}",
                match kind {
                    Kind::SoftInterrupt => "the soft interrupt",
                    _ => "the interrupt",
                }
            )
        });
        let why = match self.trace.clock {
            ftrace::Clock::Order => "its clock counts, and tells no time",
            _ if self.trace.events.is_empty() => "all of its events were lost",
            _ => "nothing in it says which thread was late, or when",
        };
        Told {
            undecided: Some(why.to_owned()),
            notes: told.into_iter().collect(),
            ..self.base()
        }
    }

    /// Finds the longest handler of an interrupt or a soft interrupt.
    fn longest_handler(&self) -> Option<(Kind, String, Nanos, u32)> {
        if self.trace.clock == ftrace::Clock::Order {
            return None;
        }
        let mut cpus = self.trace.cpus.clone();
        cpus.sort_unstable();
        cpus.dedup();
        let mut found = Vec::new();
        for cpu in cpus {
            let mut begun: Vec<(Kind, &str, Nanos)> = Vec::new();
            for event in self.of_cpu(cpu) {
                match &event.what {
                    Happened::IrqEntry { name } => begun.push((Kind::Interrupt, name, event.at)),
                    Happened::SoftirqEntry { name } => {
                        begun.push((Kind::SoftInterrupt, name, event.at));
                    }
                    Happened::IrqExit { .. } | Happened::SoftirqExit { .. } => {
                        if let Some((kind, name, at)) = begun.pop() {
                            found.push((kind, name.to_owned(), event.at - at, cpu));
                        }
                    }
                    _ => {}
                }
            }
        }
        found.into_iter().max_by_key(|(_, _, length, _)| *length)
    }
}

impl Told {
    /// Returns true if at least half of its time lies between two events of its CPU of which those
    /// between were lost.
    fn is_lost(&self, text: &str) -> bool {
        let (Some(end), Some(whole), Some(cpu)) = (self.end, self.whole, self.cpu) else {
            return false;
        };
        let begin = end - whole;
        let lost = losses(text, cpu)
            .into_iter()
            .fold(Nanos::ZERO, |sum, (from, to)| {
                let from = from.map_or(begin, |from| from.max(begin));
                sum + (to.min(end) - from).max(Nanos::ZERO)
            });
        lost * 2 >= whole
    }

    /// Finds the culprit, or says that it cannot be determined.
    fn settle(&mut self) {
        let whole = self.whole.unwrap_or_default();
        let culprit = self.longest(None);
        let is_told = culprit.is_some_and(|place| self.pieces[place].kind != Kind::Unknown);
        self.culprit = culprit.filter(|_| is_told && self.undecided.is_none());
        if self.culprit.is_none() {
            let why = || "for the longest part of it the text shows nothing".to_owned();
            self.undecided.get_or_insert_with(why);
            self.decide = notes::commands(whole);
            return;
        }
        let other = self.longest(self.culprit);
        self.also = other.filter(|place| {
            let piece = &self.pieces[*place];
            let is_cause = !matches!(piece.kind, Kind::Path | Kind::Unknown);
            is_cause && self.held(*place) * 4 >= whole
        });
    }

    /// Returns the index of the longest part, counting parts that are alike together. Leaves out
    /// parts that are like the `known` one.
    fn longest(&self, known: Option<usize>) -> Option<usize> {
        let places = 0..self.pieces.len();
        let key = |place: usize| self.pieces[place].key();
        let places = places.filter(|place| known.is_none_or(|known| key(known) != key(*place)));
        places.max_by_key(|place| {
            let is_way = self.pieces[*place].kind == Kind::Path;
            (self.held(*place), !is_way, self.pieces[*place].length)
        })
    }

    /// Returns the length of a part and those like it together.
    pub fn held(&self, place: usize) -> Nanos {
        let key = self.pieces[place].key();
        let alike = self.pieces.iter().filter(|piece| piece.key() == key);
        alike.fold(Nanos::ZERO, |sum, piece| sum + piece.length)
    }
}

/// Returns the kind of time that belongs to the way itself, as far as the text tells, and in which
/// no event is noted: longer time belongs to something that the text does not show.
fn way(length: Nanos) -> Kind {
    if length > LONGEST_WAY {
        Kind::Unknown
    } else {
        Kind::Path
    }
}

impl Piece {
    fn new(kind: Kind, from: Nanos, length: Nanos) -> Self {
        Self {
            kind,
            from,
            length,
            thread: None,
            what: None,
            caller: None,
        }
    }

    /// Returns the key by which parts are alike.
    fn key(&self) -> (Kind, Option<&str>) {
        let of = match self.kind {
            Kind::Interrupt | Kind::SoftInterrupt => self.what.as_deref(),
            Kind::Scheduler | Kind::Path | Kind::Unknown | Kind::Idle => None,
            _ => self.thread.as_deref(),
        };
        (self.kind, of)
    }
}

/// Formats a task like `cyclictest-217`.
fn name(task: &Task) -> String {
    format!("{}-{}", task.comm, task.pid)
}

#[cfg(test)]
mod tests;

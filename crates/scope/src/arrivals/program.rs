// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a program's thread, which marks nothing. The switches that the kernel's tracer noted
//! while it was measured show where its waits begin and end. The tracer's fields of each switch
//! show which threads go before it.

use std::collections::BTreeMap;

use punctual_model::place::{self, EXECUTION, PLACES, Place};
use punctual_model::{Finding, Nanos, Recording};

use crate::blocks::Notes;
use crate::symbols::Symbols;

/// Threads with a smaller number than this are real-time threads; below 0 they have a deadline.
pub const REAL_TIME_BELOW: i64 = 100;

/// The functions that note a switch and the setting of a timer. They are reported with the values
/// that they access.
const NOTE: [&str; 2] = [SWITCH, TIMER];
const SWITCH: &str = "trace_event_raw_event_sched_switch";
const TIMER: &str = "trace_event_raw_event_hrtimer_start";

/// The numbers by which the plugin marks the two halves of a word that was accessed.
const VALUE_LOW: u8 = 254;
const VALUE_HIGH: u8 = 255;

/// Offsets of fields in the record of a switch, by its `format`: the number and the priority of the
/// thread that gets the CPU.
const NEXT: [u64; 2] = [56, 60];
/// All of its fields that are written one by one.
const OF_SWITCH: [u64; 5] = [24, 28, 32, 56, 60];
/// The same for a timer that is set: its earliest expiry, and its mode.
const EXPIRES: u64 = 32;
const MODE: u64 = 40;
const OF_TIMER: [u64; 5] = [8, 16, 24, 32, 40];
/// The bit of the mode that says that the expiry is given by a span (`HRTIMER_MODE_REL`).
const RELATIVE: u64 = 1;

/// The cycles of a thread in its step, by the number of the switch, from 0, with which each begins
/// or ends.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    begins: BTreeMap<u64, u64>,
    ends: BTreeMap<u64, u64>,
}

impl Turns {
    /// Returns the cycles of a recording's thread, as far as they are kept.
    pub fn of(all: &[Recording], own: &Recording) -> Self {
        let execution = place::sister(all, own, EXECUTION);
        let told = execution.and_then(|one| one.findings.get(PLACES));
        let Some(Finding::Text(told)) = told else {
            return Self::default();
        };
        let mut turns = Self::default();
        for seq in told
            .split(' ')
            .filter_map(|word| word.split(',').next()?.parse().ok())
        {
            if let Some(place) = Place::find(told, seq) {
                turns.begins.insert(place.begin, seq);
                turns.ends.insert(place.end, seq);
            }
        }
        turns
    }

    /// Returns the number of waits between two of them.
    pub fn waits(&self) -> usize {
        let ended: Vec<u64> = self.ends.values().copied().collect();
        let follows = |seq: &&u64| {
            seq.checked_sub(1)
                .is_some_and(|before| ended.contains(&before))
        };
        self.begins.values().filter(follows).count()
    }
}

/// A wait for which its thread has set a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The number of the system call in which it waits, from 1, as begun in its step.
    pub call: u64,
    /// Expiry of its timer, by its own clock.
    pub expires: Nanos,
    /// True if the expiry is given by a moment, and not by a span.
    pub is_absolute: bool,
}

/// A thread that gets the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    id: u32,
    /// Its priority as the kernel counts: a smaller number goes first.
    pub priority: i64,
}

/// The meaning of a noted switch for the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A cycle begins: the thread gets the CPU.
    Begins(u64),
    /// A cycle ends: the thread waits.
    Ends,
}

/// Follows a program's thread.
#[derive(Debug, Default)]
pub struct Program {
    turns: BTreeMap<u32, Turns>,
    step: Option<u32>,
    switches: u64,
    /// The event that is being noted.
    event: Option<Event>,
    /// The accesses of that event: addresses with their values.
    accessed: BTreeMap<u64, u64>,
    /// The access at hand, and half of its value.
    access: (u64, u64),
    /// Position at which the kernel last read the clock.
    read: u64,
    /// The thread that gets the CPU by the switch that was noted last; `None` if that was not seen.
    next: Option<Next>,
    own: Option<Next>,
    calls: u64,
    /// The last call of the thread, and its timer.
    call: Option<u64>,
    timer: Option<(Nanos, bool)>,
    /// The number of switches, within the thread's steps, of which it was not seen who gets the
    /// CPU.
    pub unseen: u64,
    /// The last priority of the thread of each step.
    priorities: BTreeMap<u32, i64>,
}

/// The events of the tracer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Switch,
    Timer,
    Other,
}

impl Program {
    /// Creates a follower with these cycles of each step.
    pub fn new(turns: BTreeMap<u32, Turns>) -> Self {
        Self {
            turns,
            ..Self::default()
        }
    }

    /// Returns the code whose accesses are to be reported with their values.
    pub fn values(symbols: &Symbols) -> Vec<(u64, u64)> {
        NOTE.iter().filter_map(|name| symbols.range(name)).collect()
    }

    /// Begins a step.
    pub fn step(&mut self) {
        let step = self.step.map_or(0, |step| step + 1);
        *self = Self {
            turns: std::mem::take(&mut self.turns),
            step: Some(step),
            unseen: self.unseen,
            priorities: std::mem::take(&mut self.priorities),
            ..Self::default()
        };
    }

    /// Returns the last priority of the thread of a step.
    pub fn priority_in(&self, step: u32) -> Option<i64> {
        self.priorities.get(&step).copied()
    }

    /// Takes an access to memory, or a report of the value there.
    pub fn accesses(&mut self, insn: u8, address: u64) {
        match insn {
            VALUE_LOW => self.access.1 = address,
            VALUE_HIGH => {
                let value = address << 32 | self.access.1;
                self.accessed.insert(self.access.0, value);
            }
            _ => self.access = (address, 0),
        }
    }

    /// Notes that the kernel reads the clock.
    pub fn clock(&mut self, at: u64) {
        self.read = at;
    }

    /// Notes that a system call begins.
    pub fn call(&mut self) {
        self.calls += 1;
        if self.has_cpu() {
            self.call = Some(self.calls);
        }
    }

    fn has_cpu(&self) -> bool {
        let id = |one: Option<Next>| one.map(|one| one.id);
        self.own.is_some() && id(self.own) == id(self.next)
    }

    /// Follows the start of a function of the kernel's tracer. If it notes a switch of the thread,
    /// returns its meaning and where the clock was read for it.
    pub fn notes(&mut self, what: Notes, name: &str) -> Option<(Turn, u64)> {
        let event = match what {
            Notes::Done => self.event.take()?,
            Notes::Switch | Notes::Other => {
                self.event = Some(match name {
                    SWITCH => Event::Switch,
                    TIMER => Event::Timer,
                    _ => Event::Other,
                });
                self.accessed.clear();
                return None;
            }
        };
        match event {
            Event::Switch => self.switches(),
            Event::Timer => {
                if self.has_cpu() {
                    self.timer = self.set();
                }
                None
            }
            Event::Other => None,
        }
    }

    fn switches(&mut self) -> Option<(Turn, u64)> {
        let turns = self.turns.get(&self.step?)?;
        let number = self.switches;
        self.switches += 1;
        let (begins, ends) = (turns.begins.get(&number), turns.ends.get(&number));
        let next = self.entry(&OF_SWITCH).map(|entry| Next {
            id: half(entry[&NEXT[0]]),
            priority: i64::from(half(entry[&NEXT[1]]) as i32),
        });
        self.next = next;
        self.unseen += u64::from(next.is_none());
        if let Some(cycle) = begins.copied() {
            (self.own, self.call, self.timer) = (next, None, None);
            let priority = next.map(|next| next.priority);
            self.priorities.extend(self.step.zip(priority));
            return Some((Turn::Begins(cycle), self.read));
        }
        ends.map(|_| (Turn::Ends, self.read))
    }

    /// Returns the record of an event, by offset, if all of these fields were written.
    fn entry(&self, fields: &[u64]) -> Option<BTreeMap<u64, u64>> {
        let of = |first: &u64| {
            let begin = first.checked_sub(fields[0])?;
            let each = fields.iter();
            let each = each.map(|field| Some((*field, *self.accessed.get(&(begin + field))?)));
            each.collect()
        };
        self.accessed.keys().find_map(of)
    }

    fn set(&self) -> Option<(Nanos, bool)> {
        let entry = self.entry(&OF_TIMER)?;
        let expires = Nanos(entry[&EXPIRES] as i64);
        Some((expires, entry[&MODE] & RELATIVE == 0))
    }

    /// Returns the wait that the thread has begun.
    pub fn wait(&self) -> Option<Wait> {
        let (expires, is_absolute) = self.timer?;
        Some(Wait {
            call: self.call?,
            expires,
            is_absolute,
        })
    }

    /// Returns true if the thread that gets the CPU goes before the program's.
    pub fn is_ahead(&self) -> bool {
        let (Some(own), Some(next)) = (self.own, self.next) else {
            return false;
        };
        next.id != own.id && next.priority <= own.priority
    }
}

/// Returns the half of a word that comes first.
fn half(word: u64) -> u32 {
    word as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes a switch to this thread at an address of the tracer's buffer.
    fn switch(program: &mut Program, id: u64, priority: i64) -> Option<(Turn, u64)> {
        assert_eq!(program.notes(Notes::Switch, SWITCH), None);
        let entry = 0xffff_8880_0123_4560;
        let priority = u64::from(priority as u32);
        let words = [
            (24, 7 | 120 << 32),
            (28, 120),
            (32, 1),
            (56, id | priority << 32),
            (60, priority),
            // What is read of threads is no entry.
            (0x1000, 98),
        ];
        for (at, word) in words {
            program.accesses(3, entry + at);
            program.accesses(VALUE_LOW, word & 0xffff_ffff);
            program.accesses(VALUE_HIGH, word >> 32);
        }
        program.notes(Notes::Done, "trace_event_buffer_commit")
    }

    fn program() -> Program {
        let turns = Turns {
            begins: [(0, 4), (4, 5)].into(),
            ends: [(1, 4), (7, 5)].into(),
        };
        let mut program = Program::new([(0, turns)].into());
        program.step();
        program
    }

    #[test]
    fn who_goes_first_is_read_of_what_the_tracer_writes() {
        let mut program = program();
        program.clock(500);
        assert_eq!(switch(&mut program, 42, 19), Some((Turn::Begins(4), 500)));
        assert_eq!(program.priority_in(0), Some(19));
        program.clock(900);
        assert_eq!(switch(&mut program, 0, 120), Some((Turn::Ends, 900)));
        assert!(!program.is_ahead(), "nobody runs");
        let mut ahead = |id, priority| {
            switch(&mut program, id, priority);
            program.is_ahead()
        };
        assert!(
            ahead(9, 19) && ahead(10, -1),
            "its own priority, and a deadline"
        );
        assert!(!ahead(42, 19), "the thread itself");
        assert!(!ahead(11, 20) && !ahead(12, 139));
        assert_eq!(program.unseen, 0);
        assert_eq!(program.notes(Notes::Switch, SWITCH), None);
        program.notes(Notes::Done, "trace_event_buffer_commit");
        assert_eq!((program.unseen, program.is_ahead()), (1, false));
    }

    #[test]
    fn a_wait_is_the_threads_last_call_with_the_timer_that_it_set() {
        let mut program = program();
        program.call();
        switch(&mut program, 42, 19);
        program.call();
        program.call();
        program.notes(Notes::Other, TIMER);
        for (at, word) in [(8, 1), (16, 2), (24, 77), (32, 76), (40, 8)] {
            program.accesses(0, 0xffff_8880_0000_1000 + at);
            program.accesses(VALUE_LOW, word);
            program.accesses(VALUE_HIGH, 1);
        }
        program.notes(Notes::Done, "trace_event_buffer_commit");
        // Of another event nothing is taken.
        program.notes(Notes::Other, "trace_event_raw_event_sched_waking");
        program.notes(Notes::Done, "trace_event_buffer_commit");
        switch(&mut program, 0, 120);
        program.call();
        let wait = Wait {
            call: 3,
            expires: Nanos((1 << 32) + 76),
            is_absolute: true,
        };
        assert_eq!(program.wait(), Some(wait));
    }

    #[test]
    fn cycles_are_found_by_their_switches() {
        let mut execution = punctual_model::Recorder::new(1)
            .finish(punctual_model::RecordingKey::of_variant("loop execution"));
        let places = Finding::Text("0,1,2,1 1,1,4,3,10,20 3,1,9,2".into());
        execution.findings.insert(PLACES.into(), places);
        let turns = Turns::of(std::slice::from_ref(&execution), &execution);
        assert_eq!(turns.begins, [(2, 0), (4, 1), (9, 3)].into());
        assert_eq!(turns.ends, [(3, 0), (7, 1), (11, 3)].into());
        assert_eq!(turns.waits(), 1);
    }
}

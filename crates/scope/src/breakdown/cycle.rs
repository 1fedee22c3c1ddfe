// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cycle of a program: the way to it, and the work of its thread until it waits again.

use super::attribution::{Attribution, MOST};
use super::part::{Cause, FunctionTime, PathStage};
use super::parts::Piece;
use punctual_model::Nanos;

use crate::names::{CodeKind, function, has_line};
use crate::walk::{Number, Span, Switch};

/// The number of lines that are listed within a part.
const LISTED: usize = 6;

/// The prefixes of the names of system calls' functions.
const CALLS: [&str; 3] = ["__x64_sys_", "__ia32_sys_", "__arm64_sys_"];

/// A stretch of a cycle in which its thread did not have a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absence {
    /// Position at which it lost its CPU.
    from: u64,
    /// Position at which it got one again.
    to: u64,
    /// Position up to which it slept, and the kernel's function that woke it; `None` if it could
    /// have run.
    slept: Option<(u64, Number)>,
    /// The function in which it lost its CPU.
    site: Option<Number>,
}

impl Attribution<'_> {
    /// Finds the stages of a cycle.
    pub(super) fn find_cycle(&mut self) {
        let Some([begun, end]) = self.about.cycle else {
            return;
        };
        let begins = |switch: &&Switch| switch.at >= begun && switch.task == self.task;
        let switched = self.walk.switches.iter().find(begins).copied();
        let mut found = self.way_to(switched);
        self.switched = !found.is_empty();
        found.reverse();
        // It began when the kernel noted that it was to get the CPU.
        found.retain(|milestone| milestone.until < begun);
        found.push(self.own(begun, PathStage::Switch));
        found.push(self.own(end, PathStage::Wait));
        self.milestones = found;
        self.absences = self.absences();
    }

    fn absences(&self) -> Vec<Absence> {
        let mut found: Vec<Absence> = Vec::new();
        let mut has = false;
        let spans = self.walk.spans[self.spans.clone()].iter();
        let begun = self.about.cycle.map_or(0, |[begun, _]| begun);
        let mut last: Option<&Span> = None;
        for span in spans {
            let is_own = span.task == self.task;
            if span.from >= begun && has && !is_own {
                let site = last.and_then(|last| self.call_in(last.top));
                found.push(Absence {
                    from: span.from,
                    to: self.end,
                    slept: None,
                    site,
                });
            } else if let Some(absence) = found.last_mut().filter(|_| is_own && !has) {
                absence.to = span.from;
            }
            has = is_own;
            last = Some(span).filter(|_| is_own).or(last);
        }
        for absence in &mut found {
            // Who wakes it may do so before it is off the CPU.
            let woken = self.wake_of(self.task, absence.to);
            let woken = woken.filter(|wake| wake.at >= absence.from);
            absence.slept = woken.map(|wake| (wake.at, wake.by));
        }
        found
    }

    /// Returns what keeps a cycle from its end.
    pub(super) fn cause_in_cycle(&self, span: &Span) -> (Cause, Option<Number>) {
        let from = span.from.max(self.begin);
        let within = |one: &&Absence| one.from <= from && from < one.to;
        if let Some(absence) = self.absences.iter().find(within) {
            return match absence.slept {
                Some((until, _)) if from < until => (Cause::Asleep, absence.site),
                _ if span.asleep => (Cause::Idle, None),
                _ => self.cause_of_switch(span),
            };
        }
        // Of a program's own time, all up to user space is taken by what came in.
        match self.innermost(span) {
            CodeKind::Interrupt => (Cause::HardIrq, None),
            CodeKind::Softirq => (Cause::Softirq, None),
            CodeKind::Exception => (Cause::Exception, self.entry_in(span.top)),
            CodeKind::Scheduler => self.clean_up_or(span, Cause::Scheduler),
            CodeKind::Syscall => (Cause::Call, self.entry_in(span.top)),
            CodeKind::User => (Cause::Program, None),
            _ => (Cause::Path, None),
        }
    }

    /// Tells, in sentences, who woke the thread where it slept within its cycle.
    pub(super) fn absence_notes(&self) -> Vec<String> {
        let told = self.absences.iter().filter_map(|absence| {
            let (until, by) = absence.slept?;
            let waker = if self.interrupt_in(by, until).is_some() {
                "an interrupt".to_owned()
            } else {
                let task = self.walk.activation(by).task;
                let line = self.line_of(by).map(|line| format!(" in {line}"));
                self.thread(task).to_owned() + &line.unwrap_or_default()
            };
            let (from, to) = (self.at(absence.from), self.at(until));
            Some(format!(
                "from {from} to {to} it slept until {waker} woke it"
            ))
        });
        told.collect()
    }

    /// Returns true if most of a part is a program's.
    pub(super) fn is_of_program(&self, piece: &Piece) -> bool {
        let spans = self.walk.spans[piece.spans.clone()].iter();
        let (user, all) = spans.fold((0, 0), |(user, all), span| {
            let length = self.inside(span);
            (user + u64::from(span.user) * length, all + length)
        });
        self.about.cycle.is_some() && user * 2 > all
    }

    /// Returns the system call in which a function runs, by its own function, or the entry.
    fn call_in(&self, top: Number) -> Option<Number> {
        let is_call = |number: &Number| {
            let text = self.text(*number);
            CALLS.iter().any(|begin| text.starts_with(begin))
        };
        let call = self.walk.chain(top).find(is_call);
        call.or_else(|| self.entry_in(top))
    }

    /// Returns the name of a part's site: the system call that was seen of it, or the entry.
    pub(super) fn call(&self, piece: &Piece, site: Number) -> &str {
        let spans = self.walk.spans[piece.spans.clone()].iter();
        let mut calls = spans.filter_map(|span| self.call_in(span.top));
        let is_own = |call: &Number| *call != site && self.entry_in(*call) == Some(site);
        let name = self.text(calls.find(is_own).unwrap_or(site));
        let plain = CALLS.iter().find_map(|begin| name.strip_prefix(begin));
        plain.unwrap_or(name)
    }

    /// Returns the innermost place where the CPU came into the kernel by itself.
    fn entry_in(&self, top: Number) -> Option<Number> {
        let mut chain = self.walk.chain(top);
        chain.find(|number| self.kind(*number).is_entry())
    }

    /// Returns the line of the program that called a function of the kernel, or that it
    /// interrupted; without a line, its function.
    pub(super) fn line_of(&self, function: Number) -> Option<&str> {
        let is_user = |number: &Number| self.kind(*number) == CodeKind::User;
        let mut users = self
            .walk
            .chain(function)
            .filter(is_user)
            .map(|number| self.text(number));
        let first = users.next()?;
        if has_line(first) {
            return Some(first);
        }
        users.find(|text| has_line(text)).or(Some(first))
    }

    /// The same for what ran at a time after the sample began.
    pub(super) fn line_at(&self, after: Nanos) -> Option<&str> {
        let spans = &self.walk.spans[self.spans.clone()];
        let next = spans.partition_point(|span| self.at(span.from) <= after);
        self.line_of(spans.get(next.checked_sub(1)?)?.top)
    }

    /// Returns the line, or else the function, of the program that filled most of a part, and the
    /// lines or functions that took most of it.
    pub(super) fn lines(&self, piece: &Piece) -> (Option<FunctionTime>, Vec<FunctionTime>) {
        let mut lines: Vec<(String, u64, u32)> = Vec::new();
        let mut functions: Vec<(String, u64, u32)> = Vec::new();
        let add = |to: &mut Vec<(String, u64, u32)>, name: String, length: u64| match to
            .iter_mut()
            .find(|one| one.0 == name)
        {
            Some(one) => (one.1, one.2) = (one.1 + length, one.2 + 1),
            None => to.push((name, length, 1)),
        };
        for span in &self.walk.spans[piece.spans.clone()] {
            let Some(line) = self.line_of(span.top) else {
                continue;
            };
            add(&mut functions, function(line), self.inside(span));
            add(&mut lines, line.to_owned(), self.inside(span));
        }
        let whole = (piece.to - piece.from).0 as f64;
        let told = |(function, length, _): &(String, u64, u32)| FunctionTime {
            function: function.clone(),
            caller: None,
            time: self.about.clock.time(*length),
            whole: self.about.clock.time(*length),
            times: 1,
        };
        let most = |one: &&FunctionTime| one.time.0 as f64 >= MOST * whole;
        let mut within: Vec<FunctionTime> = lines.iter().map(told).collect();
        within.sort_by(|a, b| (b.time, &a.function).cmp(&(a.time, &b.function)));
        let functions: Vec<FunctionTime> = functions.iter().map(told).collect();
        let main = within
            .iter()
            .find(most)
            .or_else(|| functions.iter().find(most));
        let main = main.cloned();
        let is_whole = main.as_ref().is_some_and(|main| within.contains(main));
        within.retain(|line| line.time.0 as f64 >= 0.05 * whole);
        within.truncate(if is_whole { 0 } else { LISTED });
        (main, within)
    }
}

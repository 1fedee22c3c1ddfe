// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened in a window.
//!
//! Positions are instructions from the window's begin on, of all CPUs together: where several
//! take turns, that is the time that all of them see.

use std::collections::{BTreeMap, BTreeSet};

use crate::decode::Transfer;
use crate::names::Func;

/// The number of an [`Activation`].
pub type Number = u32;

/// A thread, by the address of its task in the kernel; the CPU's number where it is not known.
pub type Task = u64;

/// A function that runs, from where it is entered to where it is left.
#[derive(Clone, Debug)]
pub struct Activation {
    /// The function.
    pub func: Func,
    /// What called it, or what it interrupted.
    pub parent: Option<Number>,
    /// Where it was entered, in instructions from the window's begin; `None`: before that.
    pub begin: Option<u64>,
    /// Where it was left; `None`: not within the window.
    pub end: Option<u64>,
    /// For whom it ran.
    pub task: Task,
    /// Whether it was called through a pointer: somebody had asked for it before.
    pub by_pointer: bool,
    /// Whether the CPU came here by itself: by an interrupt, an exception, a system call.
    pub(super) entry: bool,
    /// Whether interrupts were open before that.
    pub(super) opened: bool,
    /// What the interrupted code was about to do: its last instruction was done, and none of
    /// those it led to.
    pub(super) pending: Transfer,
}

#[cfg(test)]
impl Activation {
    /// One of which nothing else is known.
    pub fn of(func: Func, parent: Option<Number>, task: Task) -> Self {
        Self {
            func,
            parent,
            begin: None,
            end: None,
            task,
            by_pointer: false,
            entry: false,
            opened: true,
            pending: Transfer::On,
        }
    }
}

/// A stretch in which nothing changes: (a part of) a block.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// On which CPU.
    pub cpu: u32,
    /// Where it begins, in instructions from the window's begin.
    pub from: u64,
    /// How many instructions.
    pub length: u32,
    /// The function that runs.
    pub top: Number,
    /// For whom.
    pub task: Task,
    /// Whether in user space.
    pub user: bool,
    /// Who masked interrupts, where they are.
    pub irqs_off: Option<Number>,
    /// Who switched preemption off, where it is.
    pub preempt_off: Option<Number>,
    /// Where its first instruction is.
    pub address: u64,
    /// Whether the CPU slept for so long, and nothing ran.
    pub asleep: bool,
}

/// Somebody made threads ready to run.
#[derive(Clone, Debug)]
pub struct Wake {
    /// Where.
    pub at: u64,
    /// On which CPU.
    pub cpu: u32,
    /// The kernel's function for it.
    pub by: Number,
    /// What may be the thread's task: all that this function's operands were based on.
    pub bases: BTreeSet<u64>,
}

/// Something happened on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Where: behind the instruction.
    pub at: u64,
    /// On which CPU.
    pub cpu: u32,
}

/// A thread got a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Where.
    pub at: u64,
    /// Which CPU.
    pub cpu: u32,
    /// Which thread.
    pub task: Task,
}

/// A function's access to a lock, or its pause while it waits for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where: behind the block.
    pub at: u64,
    /// On which CPU.
    pub cpu: u32,
    /// The function.
    pub by: Number,
    /// The lock's address; 0 where it is none.
    pub address: u64,
}

/// All that happened in a window.
#[derive(Debug, Default)]
pub struct Walk {
    /// The functions.
    pub activations: Vec<Activation>,
    /// What ran, on one CPU after the other, without gaps.
    pub spans: Vec<Span>,
    /// Who was made ready.
    pub wakes: Vec<Wake>,
    /// The thread that had a CPU first, by CPU; of one to which no other thread came it is not
    /// known.
    pub first: BTreeMap<u32, Task>,
    /// Where threads got a CPU.
    pub switches: Vec<Switch>,
    /// Readings of the clock in user space.
    pub clocks: Vec<Moment>,
    /// Instructions that sleep until an interrupt.
    pub halts: Vec<Moment>,
    /// Where the kernel's tracer read the clock for each switch of threads that it noted.
    pub noted: Vec<u64>,
    /// Where kernel code pauses: it spins.
    pub pauses: Vec<Access>,
    /// Where it looks whether a lock is free, while it spins.
    pub waits: Vec<Access>,
    /// Where a spinning lock is given back.
    pub unlocks: Vec<Access>,
    /// Threads that give up their CPU's turn in user space, again and again.
    pub idlers: BTreeSet<Task>,
    /// How often the followed state was not what the code proved it to be.
    pub mended: u32,
    /// How many instructions ran.
    pub total: u64,
    /// The CPU on which it ended.
    pub cpu: u32,
    /// Whether CPUs take turns.
    pub in_turn: bool,
}

impl Walk {
    /// The function that runs in a span and those that called it, the innermost first.
    pub fn chain(&self, top: Number) -> impl Iterator<Item = Number> + '_ {
        std::iter::successors(Some(top), |number| self.activation(*number).parent)
    }

    /// The CPU that runs at a position.
    pub fn cpu_at(&self, position: u64) -> Option<u32> {
        let behind = self.spans.partition_point(|span| span.from <= position);
        let span = self.spans.get(behind.checked_sub(1)?)?;
        Some(span.cpu)
    }

    /// The thread that had a CPU first; a number that is no thread's where that is not known.
    pub fn first(&self, cpu: u32) -> Task {
        let known = self.first.get(&cpu).copied();
        known.unwrap_or_else(|| Task::from(cpu))
    }

    /// That the CPU slept at a halt, for as long as so many instructions take.
    pub fn sleep(&mut self, halt: u64, by: u64) {
        let place = self.spans.partition_point(|span| span.from < halt);
        let Some(before) = place.checked_sub(1).map(|number| self.spans[number]) else {
            return;
        };
        let moments = self.clocks.iter_mut().chain(&mut self.halts);
        let moments = moments.map(|moment| &mut moment.at);
        let wakes = self.wakes.iter_mut().map(|wake| &mut wake.at);
        let switches = self.switches.iter_mut().map(|switch| &mut switch.at);
        let functions = self.activations.iter_mut();
        let functions = functions.flat_map(|one| one.begin.iter_mut().chain(&mut one.end));
        let all = moments.chain(wakes).chain(switches).chain(functions);
        all.chain(&mut self.noted)
            .filter(|at| **at > halt)
            .for_each(|at| *at += by);
        self.spans[place..]
            .iter_mut()
            .for_each(|span| span.from += by);
        let (mut from, end, mut asleep) = (halt, halt + by, Vec::new());
        while from < end {
            let length = u32::try_from(end - from).unwrap_or(u32::MAX);
            asleep.push(Span {
                from,
                length,
                asleep: true,
                ..before
            });
            from += u64::from(length);
        }
        self.spans.splice(place..place, asleep);
        self.total += by;
    }

    /// What a number stands for.
    pub fn activation(&self, number: Number) -> &Activation {
        &self.activations[number as usize]
    }
}

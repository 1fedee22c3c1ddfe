// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events in a window.
//!
//! Positions are instructions from the window's start on, of all CPUs together. Where several CPUs
//! take turns, that is the time that all of them see.

use std::collections::{BTreeMap, BTreeSet};

use crate::decode::Transfer;
use crate::names::Func;

/// The number of an [`Activation`].
pub type Number = u32;

/// A thread, by the address of its task in the kernel; the CPU's number where that is not known.
pub type Task = u64;

/// A run of a function, from its entry to its end.
#[derive(Clone, Debug)]
pub struct Activation {
    /// The function.
    pub func: Func,
    /// The function that called it, or that it interrupted.
    pub parent: Option<Number>,
    /// Position of its entry, in instructions from the window's start; `None` if before that.
    pub begin: Option<u64>,
    /// Position of its end; `None` if not within the window.
    pub end: Option<u64>,
    /// The thread for which it ran.
    pub task: Task,
    /// True if it was called through a pointer: somebody had asked for it before.
    pub by_pointer: bool,
    /// True if the CPU came here by itself: by an interrupt, an exception or a system call.
    pub(super) entry: bool,
    /// True if interrupts were open before that.
    pub(super) opened: bool,
    /// The pending transfer of the interrupted code. Its last instruction was done, and none of
    /// those it led to.
    pub(super) pending: Transfer,
}

#[cfg(test)]
impl Activation {
    /// Creates an activation of which nothing else is known.
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

/// A stretch in which nothing changes: a block or a part of one.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The CPU.
    pub cpu: u32,
    /// Start, in instructions from the window's start.
    pub from: u64,
    /// The number of instructions.
    pub length: u32,
    /// The function that runs.
    pub top: Number,
    /// The thread for which it runs.
    pub task: Task,
    /// True if in user space.
    pub user: bool,
    /// The function that masked interrupts, where they are masked.
    pub irqs_off: Option<Number>,
    /// The function that switched preemption off, where it is off.
    pub preempt_off: Option<Number>,
    /// Address of its first instruction.
    pub address: u64,
    /// True if the CPU slept for this long and nothing ran.
    pub asleep: bool,
}

/// A wake-up: threads were made ready to run.
#[derive(Clone, Debug)]
pub struct Wake {
    /// Position.
    pub at: u64,
    /// The CPU.
    pub cpu: u32,
    /// The kernel's function that did it.
    pub by: Number,
    /// Candidates for the thread's task: all bases of this function's operands.
    pub bases: BTreeSet<u64>,
}

/// A moment on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Position after the instruction.
    pub at: u64,
    /// The CPU.
    pub cpu: u32,
}

/// A switch: a thread got a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Position.
    pub at: u64,
    /// The CPU.
    pub cpu: u32,
    /// The thread.
    pub task: Task,
}

/// A function's access to a lock, or its pause while it waits for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Position after the block.
    pub at: u64,
    /// The CPU.
    pub cpu: u32,
    /// The function.
    pub by: Number,
    /// The lock's address; 0 if it is none.
    pub address: u64,
}

/// The events in a window.
#[derive(Debug, Default)]
pub struct Walk {
    /// The functions.
    pub activations: Vec<Activation>,
    /// The stretches that ran, on one CPU after the other, without gaps.
    pub spans: Vec<Span>,
    /// The wake-ups.
    pub wakes: Vec<Wake>,
    /// The thread that first had a CPU, by CPU. It is unknown for a CPU that no other thread got.
    pub first: BTreeMap<u32, Task>,
    /// The switches of threads.
    pub switches: Vec<Switch>,
    /// Readings of the clock in user space.
    pub clocks: Vec<Moment>,
    /// Instructions that sleep until an interrupt.
    pub halts: Vec<Moment>,
    /// Positions at which the kernel's tracer read the clock for each switch of threads that it
    /// noted.
    pub noted: Vec<u64>,
    /// Pauses of kernel code: it spins.
    pub pauses: Vec<Access>,
    /// Looks, by spinning code, at whether a lock is free.
    pub waits: Vec<Access>,
    /// Places at which a spinning lock is given back.
    pub unlocks: Vec<Access>,
    /// Threads that give up their CPU's turn in user space, again and again.
    pub idlers: BTreeSet<Task>,
    /// The number of times that the followed state was not what the code proved it to be.
    pub mended: u32,
    /// The number of instructions that ran.
    pub total: u64,
    /// The CPU on which it ended.
    pub cpu: u32,
    /// True if CPUs take turns.
    pub in_turn: bool,
}

impl Walk {
    /// Returns the function that runs in a span and those that called it, innermost first.
    pub fn chain(&self, top: Number) -> impl Iterator<Item = Number> + '_ {
        std::iter::successors(Some(top), |number| self.activation(*number).parent)
    }

    /// Returns the CPU that runs at a position.
    pub fn cpu_at(&self, position: u64) -> Option<u32> {
        let behind = self.spans.partition_point(|span| span.from <= position);
        let span = self.spans.get(behind.checked_sub(1)?)?;
        Some(span.cpu)
    }

    /// Returns the thread that first had a CPU; a number that is no thread's where that is not
    /// known.
    pub fn first(&self, cpu: u32) -> Task {
        let known = self.first.get(&cpu).copied();
        known.unwrap_or_else(|| Task::from(cpu))
    }

    /// Makes the CPU sleep at a halt, for as long as this many instructions take.
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

    /// Returns the activation with this number.
    pub fn activation(&self, number: Number) -> &Activation {
        &self.activations[number as usize]
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened in a window.

use std::collections::BTreeSet;

use crate::decode::Transfer;
use crate::names::Func;

/// The number of an [`Activation`].
pub type Number = u32;

/// A thread, by the address of its task in the kernel; 0 where it is not known.
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
            entry: false,
            opened: true,
            pending: Transfer::On,
        }
    }
}

/// A stretch in which nothing changes: (a part of) a block.
#[derive(Clone, Copy, Debug)]
pub struct Span {
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
}

/// Somebody made threads ready to run.
#[derive(Clone, Debug)]
pub struct Wake {
    /// Where.
    pub at: u64,
    /// The kernel's function for it.
    pub by: Number,
    /// What may be the thread's task: all that this function's operands were based on.
    pub bases: BTreeSet<u64>,
}

/// All that happened in a window.
#[derive(Debug, Default)]
pub struct Walk {
    /// The functions.
    pub activations: Vec<Activation>,
    /// What ran, without gaps.
    pub spans: Vec<Span>,
    /// Who was made ready.
    pub wakes: Vec<Wake>,
    /// The thread that had the CPU first; 0 where no other one came.
    pub first: Task,
    /// Where another thread got the CPU, and which.
    pub switches: Vec<(u64, Task)>,
    /// Behind each reading of the clock in user space.
    pub clocks: Vec<u64>,
    /// Behind each instruction that sleeps until an interrupt.
    pub halts: Vec<u64>,
    /// How often the followed state was not what the code proved it to be.
    pub mended: u32,
    /// Whether the state was known from the begin on.
    pub known: bool,
    /// How many instructions ran.
    pub total: u64,
}

impl Walk {
    /// The function that runs in a span and those that called it, the innermost first.
    pub fn chain(&self, top: Number) -> impl Iterator<Item = Number> + '_ {
        std::iter::successors(Some(top), |number| self.activation(*number).parent)
    }

    /// What a number stands for.
    pub fn activation(&self, number: Number) -> &Activation {
        &self.activations[number as usize]
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What instructions do, as far as it decides who may run: in terms that all architectures
//! share. Which instruction does what is known to [`crate::arch`].

use punctual_trace::marker::Marker;
use punctual_trace::{Block, Insn};

use crate::masks::{Mask, Masking};
use crate::symbols::Symbols;

/// What an instruction does, if that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Does something about what masks interrupts.
    Mask(Mask, Masking),
    /// Sleeps until an interrupt comes.
    Halt,
    /// Reads the counter that is the guest's clock.
    ReadClock,
    /// Changes the preemption count by so much.
    Preempt(i64),
    /// Changes the preemption count by what a register says.
    PreemptBy,
    /// Says whether the running thread is to give up the CPU.
    NeedResched(bool),
    /// Takes the place of the preemption count into the register of this number.
    Point(u8),
    /// Keeps the place of the preemption count on the stack, so far behind the stack pointer.
    Keep(i64),
    /// Puts this number into the register of that number, to be counted by.
    Put(u8, i64),
    /// Does this, if the place of the preemption count is there.
    At(Holder, Counted),
    /// Leaves the running thread's stack; its pointer is put so far into its task.
    LeaveStack(u64),
    /// Takes the stack of another thread, whose pointer lies so far into its task.
    TakeStack(u64),
    /// A marker of the target's.
    Marker(Marker),
}

/// What may have the place of the preemption count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The register of this number.
    Register(u8),
    /// The stack, so far behind its pointer.
    Stack(i64),
}

/// What is done to the preemption count where its place is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// It is changed by so much.
    Preempt(i64),
    /// It is changed by what this register says, which is added to it, or subtracted.
    PreemptBy(u8, bool),
    /// Beside it is said whether the running thread is to give up the CPU.
    NeedResched(bool),
}

impl From<Counted> for Op {
    fn from(counted: Counted) -> Self {
        match counted {
            Counted::Preempt(amount) => Self::Preempt(amount),
            Counted::PreemptBy(..) => Self::PreemptBy,
            Counted::NeedResched(is_needed) => Self::NeedResched(is_needed),
        }
    }
}

/// Preemption is off where these bits of its count are not all 0; the others count soft and
/// hard interrupts.
pub const PREEMPT_BITS: i64 = 0xff;
/// All that the count counts.
pub const ALL_BITS: i64 = 0xff_ffff;

/// By how much `__local_bh_enable_ip` changes the count (`SOFTIRQ_DISABLE_OFFSET`): all but the
/// last one, which is taken off behind the soft interrupts. Where a lock is given back, that one
/// is its own, and is taken off with the others.
pub fn local_bh_enable(is_unlock: bool) -> i64 {
    if is_unlock { -0x200 } else { 1 - 0x200 }
}

/// How an instruction goes on where it is not with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// With the next one, or by a jump.
    On,
    /// Into a function.
    Call,
    /// Out of a function.
    Return,
    /// Back from an interrupt, an exception or a system call.
    Iret,
    /// Into the kernel.
    Syscall,
    /// Back from a system call.
    Sysret,
}

/// A block, understood.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// Where it begins.
    pub start: u64,
    /// Where each of its instructions is, and how far from it memory is accessed: the
    /// displacement of its operand.
    pub insns: Vec<(u64, u64)>,
    /// What it does, by number of the instruction.
    pub ops: Vec<(u32, Op)>,
    /// How its last instruction goes on.
    pub last: Transfer,
    /// Whether its last instruction calls a function through a pointer.
    pub calls_pointer: bool,
    /// Whether it tells the CPU that it only waits.
    pub pauses: bool,
    /// Whether its last instruction accesses memory and is no jump: if the block ends with a
    /// page fault, it is that instruction's.
    pub last_may_fault: bool,
}

impl Decoded {
    /// Understands a block of the guest with these symbols, behind these instructions.
    pub fn of(block: &Block, before: &[Insn], symbols: &Symbols) -> Self {
        (symbols.code().decode)(block, before, symbols)
    }

    /// Where an instruction is.
    pub fn address(&self, number: u32) -> u64 {
        let insn = self.insns.get(number as usize);
        insn.map_or(self.start, |(address, _)| *address)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The effects of instructions, as far as they decide who may run, in terms that all architectures
//! share. [`crate::arch`] knows the instructions themselves.

use punctual_trace::marker::Marker;
use punctual_trace::{Block, Insn};

use crate::masks::{Mask, Masking};
use crate::symbols::Symbols;

/// The effect of an instruction, if it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Changes or reads the interrupt mask.
    Mask(Mask, Masking),
    /// Sleeps until an interrupt comes.
    Halt,
    /// Reads the counter that is the guest's clock.
    ReadClock,
    /// Changes the preemption count by this amount.
    Preempt(i64),
    /// Changes the preemption count by the value of a register.
    PreemptBy,
    /// Says whether the running thread is to give up the CPU.
    NeedResched(bool),
    /// Takes the place of the preemption count into the register of this number.
    Point(u8),
    /// Keeps the place of the preemption count on the stack, at this offset from the stack pointer.
    Keep(i64),
    /// Puts this number into the register of that number, to count by it.
    Put(u8, i64),
    /// Does this, if the place of the preemption count is in the holder.
    At(Holder, Counted),
    /// Leaves the running thread's stack, and puts its pointer into its task at this offset.
    LeaveStack(u64),
    /// Takes the stack of another thread, whose pointer lies in its task at this offset.
    TakeStack(u64),
    /// Is a marker of the target.
    Marker(Marker),
}

/// A holder of the place of the preemption count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The register of this number.
    Register(u8),
    /// The stack, at this offset from its pointer.
    Stack(i64),
}

/// A change of the preemption count whose place is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Changes it by this amount.
    Preempt(i64),
    /// Changes it by the value of this register, which is added or subtracted.
    PreemptBy(u8, bool),
    /// Notes beside it whether the running thread is to give up the CPU.
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

/// The bits of the preemption count that are not all 0 while preemption is off. The others count
/// soft and hard interrupts.
pub const PREEMPT_BITS: i64 = 0xff;
/// All bits that count something.
pub const ALL_BITS: i64 = 0xff_ffff;

/// Returns the amount by which `__local_bh_enable_ip` changes the count (`SOFTIRQ_DISABLE_OFFSET`):
/// all but the last one, which is taken off after the soft interrupts. Where a lock is given back,
/// that one is the lock's own, and is taken off with the others.
pub fn local_bh_enable(is_unlock: bool) -> i64 {
    if is_unlock { -0x200 } else { 1 - 0x200 }
}

/// The way in which an instruction goes on.
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

/// A decoded block.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// Address of its first instruction.
    pub start: u64,
    /// The address of each instruction, and how far from it memory is accessed: the displacement of
    /// its operand.
    pub insns: Vec<(u64, u64)>,
    /// Its effects, by number of the instruction.
    pub ops: Vec<(u32, Op)>,
    /// The way in which its last instruction goes on.
    pub last: Transfer,
    /// True if its last instruction calls a function through a pointer.
    pub calls_pointer: bool,
    /// True if it tells the CPU that it only waits.
    pub pauses: bool,
    /// True if its last instruction accesses memory and is no jump. If the block ends with a page
    /// fault, that instruction caused it.
    pub last_may_fault: bool,
}

impl Decoded {
    /// Decodes a block of the guest with these symbols, after these instructions.
    pub fn of(block: &Block, before: &[Insn], symbols: &Symbols) -> Self {
        (symbols.code().decode)(block, before, symbols)
    }

    /// Returns the address of an instruction.
    pub fn address(&self, number: u32) -> u64 {
        let insn = self.insns.get(number as usize);
        insn.map_or(self.start, |(address, _)| *address)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What instructions do, as far as it decides who may run.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use punctual_trace::marker::Marker;
use punctual_trace::{Block, Insn};

/// What an instruction does, if that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Masks interrupts.
    Cli,
    /// Opens interrupts.
    Sti,
    /// Restores the flags, and with them whether interrupts are open.
    Popf,
    /// Sleeps until an interrupt comes.
    Halt,
    /// Reads the time stamp counter.
    ReadClock,
    /// Changes the preemption count by so much.
    Preempt(i64),
    /// Changes the preemption count by what a register says.
    PreemptBy,
    /// Says, in a bit of the preemption count, whether the running thread is to give up the CPU.
    NeedResched(bool),
    /// Takes the place of the preemption count into this register.
    Point(Register),
    /// Changes what this register points at in the CPU's own area by so much.
    PreemptAt(Register, i64),
    /// Leaves the running thread's stack; its pointer is put so far into its task.
    LeaveStack(u64),
    /// Takes the stack of another thread, whose pointer lies so far into its task.
    TakeStack(u64),
    /// A marker of the target's.
    Marker(Marker),
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
    /// Where an instruction is.
    pub fn address(&self, number: u32) -> u64 {
        let insn = self.insns.get(number as usize);
        insn.map_or(self.start, |(address, _)| *address)
    }

    /// Understands a block. `preempt_count` is where that count is in each CPU's own area.
    pub fn of(block: &Block, preempt_count: Option<u64>) -> Self {
        let decoded: Vec<Instruction> = block.insns.iter().map(decode).collect();
        let numbered = block.insns.iter().zip(&decoded).zip(0..);
        let ops = numbered.filter_map(|((insn, decoded), number)| {
            Some((number, op(insn, decoded, preempt_count)?))
        });
        let last = decoded.last();
        let calls_pointer = |last: &Instruction| last.flow_control() == FlowControl::IndirectCall;
        let may_fault = |last: &Instruction| {
            let memory = (0..last.op_count()).any(|n| last.op_kind(n) == OpKind::Memory);
            let flows = last.flow_control() == FlowControl::Next;
            (memory || last.is_string_instruction() || last.is_stack_instruction()) && flows
        };
        let insns = decoded
            .iter()
            .map(|insn| (insn.ip(), insn.memory_displacement64()));
        Self {
            start: block.insns.first().map_or(0, |insn| insn.address),
            insns: insns.collect(),
            ops: ops.collect(),
            last: last.map_or(Transfer::On, transfer),
            calls_pointer: last.is_some_and(calls_pointer),
            pauses: decoded
                .iter()
                .any(|insn| insn.mnemonic() == Mnemonic::Pause),
            last_may_fault: last.is_some_and(may_fault),
        }
    }
}

fn decode(insn: &Insn) -> Instruction {
    Decoder::with_ip(64, &insn.bytes, insn.address, DecoderOptions::NONE).decode()
}

fn transfer(insn: &Instruction) -> Transfer {
    match insn.mnemonic() {
        Mnemonic::Call => Transfer::Call,
        Mnemonic::Ret => Transfer::Return,
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => Transfer::Iret,
        Mnemonic::Syscall => Transfer::Syscall,
        Mnemonic::Sysret | Mnemonic::Sysretq | Mnemonic::Sysexit => Transfer::Sysret,
        _ => Transfer::On,
    }
}

fn op(insn: &Insn, decoded: &Instruction, preempt_count: Option<u64>) -> Option<Op> {
    match decoded.mnemonic() {
        Mnemonic::Cli => Some(Op::Cli),
        Mnemonic::Sti => Some(Op::Sti),
        Mnemonic::Popf | Mnemonic::Popfd | Mnemonic::Popfq => Some(Op::Popf),
        Mnemonic::Hlt => Some(Op::Halt),
        Mnemonic::Rdtsc | Mnemonic::Rdtscp => Some(Op::ReadClock),
        Mnemonic::Nop => Marker::of(&insn.bytes).map(Op::Marker),
        Mnemonic::Mov
            if decoded.code() == Code::Mov_r64_rm64
                && decoded.op0_register() == Register::RSP
                && decoded.memory_base() == Register::RSI =>
        {
            Some(Op::TakeStack(decoded.memory_displacement64()))
        }
        Mnemonic::Mov
            if decoded.code() == Code::Mov_rm64_r64
                && decoded.op1_register() == Register::RSP
                && decoded.memory_base() == Register::RDI =>
        {
            Some(Op::LeaveStack(decoded.memory_displacement64()))
        }
        Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Add | Mnemonic::Sub => {
            preemption(decoded, preempt_count?)
        }
        Mnemonic::And | Mnemonic::Or => need_resched(decoded, preempt_count?),
        Mnemonic::Mov | Mnemonic::Lea if decoded.op0_kind() == OpKind::Register => {
            let loads = match decoded.op1_kind() {
                OpKind::Memory => {
                    decoded.mnemonic() == Mnemonic::Lea && address(decoded) == preempt_count?
                }
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                    decoded.immediate(1) == preempt_count?
                }
                _ => false,
            };
            loads.then(|| Op::Point(decoded.op0_register().full_register()))
        }
        _ => None,
    }
}

/// The bit of the preemption count that is 0 where the running thread is to give up the CPU
/// (`PREEMPT_NEED_RESCHED`).
const NEED_RESCHED: u32 = 1 << 31;

fn need_resched(decoded: &Instruction, place: u64) -> Option<Op> {
    if !is_of_cpu(decoded) || address(decoded) != place {
        return None;
    }
    match (decoded.mnemonic(), decoded.immediate(1) as u32) {
        (Mnemonic::And, mask) if mask == !NEED_RESCHED => Some(Op::NeedResched(true)),
        (Mnemonic::Or, NEED_RESCHED) => Some(Op::NeedResched(false)),
        _ => None,
    }
}

/// Whether an instruction changes something in the CPU's own area.
fn is_of_cpu(decoded: &Instruction) -> bool {
    decoded.op0_kind() == OpKind::Memory && decoded.memory_segment() == Register::GS
}

fn preemption(decoded: &Instruction, place: u64) -> Option<Op> {
    if !is_of_cpu(decoded) {
        return None;
    }
    if address(decoded) != place {
        return through_register(decoded);
    }
    let sign = match decoded.mnemonic() {
        Mnemonic::Inc => return Some(Op::Preempt(1)),
        Mnemonic::Dec => return Some(Op::Preempt(-1)),
        Mnemonic::Add => 1,
        _ => -1,
    };
    if decoded.op1_kind() == OpKind::Register {
        return Some(Op::PreemptBy);
    }
    // As 32 bits: 0x80000000 is the bit that says that nobody needs the CPU.
    let amount = i64::from(decoded.immediate(1) as i32);
    Some(Op::Preempt(sign * amount))
}

/// Where a compiler has kept the count's place in a register.
fn through_register(decoded: &Instruction) -> Option<Op> {
    let base = decoded.memory_base();
    let amount = match decoded.mnemonic() {
        Mnemonic::Inc => 1,
        Mnemonic::Dec => -1,
        _ => return None,
    };
    let is_bare = decoded.memory_index() == Register::None && decoded.memory_displacement64() == 0;
    (is_bare && base.is_gpr64()).then_some(Op::PreemptAt(base, amount))
}

/// A place in the CPU's own area, absolute or relative to the instruction.
fn address(decoded: &Instruction) -> u64 {
    if decoded.is_ip_rel_memory_operand() {
        return decoded.ip_rel_memory_address();
    }
    if decoded.memory_base() == Register::None && decoded.memory_index() == Register::None {
        return decoded.memory_displacement64();
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ops(code: &[&[u8]]) -> (Vec<(u32, Op)>, Transfer) {
        let mut address = 0xffff_ffff_8100_0000;
        let insns = code.iter().map(|bytes| {
            let bytes = bytes.to_vec();
            address += bytes.len() as u64;
            let address = address - bytes.len() as u64;
            Insn { address, bytes }
        });
        let (number, insns) = (0, insns.collect());
        let code = Decoded::of(&Block { number, insns }, Some(0x34e88));
        (code.ops, code.last)
    }

    #[test]
    fn what_masks_and_what_counts_is_seen_and_nothing_else() {
        let (found, last) = ops(&[
            &[0xfa],                                                       // cli
            &[0x65, 0xff, 0x04, 0x25, 0x88, 0x4e, 0x03, 0x00],             // incl %gs:0x34e88
            &[0x65, 0xff, 0x04, 0x25, 0x8c, 0x4e, 0x03, 0x00],             // another variable
            &[0x65, 0x81, 0x2c, 0x25, 0x88, 0x4e, 0x03, 0x00, 0, 1, 0, 0], // subl $0x100
            &[0x65, 0x29, 0x34, 0x25, 0x88, 0x4e, 0x03, 0x00],             // sub %esi
            &[0x90],
            &[0xfb], // sti
            &[0xc3], // ret
        ]);
        let expected = [
            (0, Op::Cli),
            (1, Op::Preempt(1)),
            (3, Op::Preempt(-0x100)),
            (4, Op::PreemptBy),
            (6, Op::Sti),
        ];
        assert_eq!(found, expected);
        assert_eq!(last, Transfer::Return);
    }

    #[test]
    fn the_count_is_found_relative_to_the_instruction_too() {
        let at: u64 = 0xffff_ffff_8100_0000;
        let displacement = (0x34e88_u64.wrapping_sub(at + 7) as u32).to_le_bytes();
        let code = [&[0x65, 0xff, 0x0d][..], &displacement].concat();
        assert_eq!(ops(&[&code]).0, [(0, Op::Preempt(-1))]);
    }

    #[test]
    fn the_count_is_found_through_a_register() {
        let (found, _) = ops(&[
            &[0x48, 0xc7, 0xc6, 0x88, 0x4e, 0x03, 0x00], // mov $0x34e88,%rsi
            &[0x48, 0xc7, 0xc6, 0x8c, 0x4e, 0x03, 0x00], // mov $0x34e8c,%rsi
            &[0x65, 0xff, 0x0e],                         // decl %gs:(%rsi)
        ]);
        let at = Register::RSI;
        assert_eq!(found, [(0, Op::Point(at)), (2, Op::PreemptAt(at, -1))]);
    }

    #[test]
    fn whether_the_thread_is_to_give_up_the_cpu_is_a_bit_of_the_count() {
        let (found, _) = ops(&[
            // andl $0x7fffffff,%gs:0x34e88; orl $0x80000000, …; andl $0xff, …
            &[
                0x65, 0x81, 0x24, 0x25, 0x88, 0x4e, 0x03, 0x00, 0xff, 0xff, 0xff, 0x7f,
            ],
            &[
                0x65, 0x81, 0x0c, 0x25, 0x88, 0x4e, 0x03, 0x00, 0x00, 0x00, 0x00, 0x80,
            ],
            &[
                0x65, 0x81, 0x24, 0x25, 0x88, 0x4e, 0x03, 0x00, 0xff, 0x00, 0x00, 0x00,
            ],
        ]);
        assert_eq!(
            found,
            [(0, Op::NeedResched(true)), (1, Op::NeedResched(false))]
        );
    }

    #[test]
    fn a_stack_switch_tells_where_the_task_is() {
        // mov 0x1a58(%rsi),%rsp
        let code: &[u8] = &[0x48, 0x8b, 0xa6, 0x58, 0x1a, 0x00, 0x00];
        assert_eq!(ops(&[code]).0, [(0, Op::TakeStack(0x1a58))]);
        // mov %rsp,0x1a58(%rdi)
        let code: &[u8] = &[0x48, 0x89, 0xa7, 0x58, 0x1a, 0x00, 0x00];
        assert_eq!(ops(&[code]).0, [(0, Op::LeaveStack(0x1a58))]);
    }
}

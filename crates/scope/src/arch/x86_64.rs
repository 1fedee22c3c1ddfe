// SPDX-License-Identifier: MIT OR Apache-2.0
//! x86-64.

use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use punctual_trace::marker::Marker;
use punctual_trace::{Arch, Block, Insn};

use super::Code;
use crate::decode::{Counted, Decoded, Holder, Op, Transfer};
use crate::masks::{Mask, Masking};
use crate::names::CodeKind;
use crate::symbols::Symbols;

/// The code of x86-64 kernels.
pub static CODE: Code = Code {
    arch: Arch::X86_64,
    refusal,
    must_save: |_| false,
    decode: |block, _, symbols| understood(block, preempt_count(symbols)),
    looks_back: 0,
    // It is packed; and what holds the place does so for a few instructions.
    pointers: |_| Vec::new(),
    saves: |_| Vec::new(),
    count_place: |_| None,
    functions: &[
        (
            CodeKind::Interrupt,
            "irq_entries_start spurious_entries_start asm_sysvec_* asm_common_interrupt* \
             asm_spurious_interrupt*",
        ),
        (CodeKind::Exception, "asm_exc_*"),
        (
            CodeKind::Syscall,
            "entry_SYSCALL_64 entry_SYSCALL_compat entry_INT80_compat",
        ),
        (CodeKind::Scheduler, "__switch_to_asm"),
        (
            CodeKind::Thunk,
            "__x86_indirect_* __x86_return_* __x86_call_* srso_* retbleed_*",
        ),
        (CodeKind::Lock, "native_queued_spin*"),
    ],
    entry: |_, _| None,
    table: Some("_entries_start"),
    syscall: None,
    in_syscall: None,
    moves_at: Some("entry_SYSCALL_64"),
    detour: Some("__x86_indirect_"),
    switch: "__switch_to_asm",
    timer: "asm_sysvec_apic_timer_interrupt",
    locks: &[
        "native_queued_spin_lock_slowpath",
        "_raw_spin_unlock",
        "_raw_spin_unlock_bh",
        "_raw_spin_unlock_irq",
        "_raw_spin_unlock_irqrestore",
    ],
    variables: &["__preempt_count", "pcpu_hot"],
    vdso: 0x7fff_f7ff_0000..0x7fff_f800_0000,
};

/// The entries of interrupts that other CPUs send, and the functions that send them.
pub const IPIS: [(&str, &str); 3] = [
    ("asm_sysvec_reschedule_ipi", "native_smp_send_reschedule"),
    (
        "asm_sysvec_call_function_single",
        "native_send_call_func_single_ipi",
    ),
    ("asm_sysvec_call_function", "native_send_call_func_ipi"),
];

/// Shortens `asm_sysvec_apic_timer_interrupt` to `apic_timer_interrupt`.
pub fn entry_name(name: &str) -> &str {
    let short = name.strip_prefix("asm_").unwrap_or(name);
    short.strip_prefix("sysvec_").unwrap_or(short)
}

/// Entries of interrupts and exceptions have the names above since Linux 5.8.
fn refusal(release: &str) -> Option<String> {
    let tells = release.starts_with(|first: char| first.is_ascii_digit());
    (tells && super::is_before(release, (5, 8))).then(|| {
        format!(
            "its kernel is {release}, and of x86-64 kernels those from Linux 5.8 on are understood"
        )
    })
}

/// Returns true if a function is a detour on the way into another one, or out of it.
pub fn is_detour(name: &str) -> bool {
    name.starts_with("__x86_") || name == "__fentry__"
}

/// Returns true if an interrupt enters the kernel at a function.
pub fn is_interrupt(function: &str) -> bool {
    function.starts_with("asm_sysvec_") || function.starts_with("asm_common_interrupt")
}

/// Returns the place of the preemption count within each CPU's own area: a variable of its own up
/// to Linux 6.1 and from 6.15 on, the second field of `pcpu_hot` in between.
fn preempt_count(symbols: &Symbols) -> Option<u64> {
    let own = symbols.variable("__preempt_count");
    own.or_else(|| symbols.variable("pcpu_hot").map(|place| place + 8))
}

/// Decodes a block. `preempt_count` is the place of that count in each CPU's own area.
fn understood(block: &Block, preempt_count: Option<u64>) -> Decoded {
    let decoded: Vec<Instruction> = block.insns.iter().map(decode).collect();
    let numbered = block.insns.iter().zip(&decoded).zip(0..);
    let ops = numbered
        .filter_map(|((insn, decoded), number)| Some((number, op(insn, decoded, preempt_count)?)));
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
    Decoded {
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
        Mnemonic::Cli => Some(Op::Mask(Mask::Flag, Masking::Set)),
        // What `popf` restores cannot be seen. The kernel uses it where interrupts are to be open
        // again; where not, the next interrupt that comes says nothing new.
        Mnemonic::Sti | Mnemonic::Popf | Mnemonic::Popfd | Mnemonic::Popfq => {
            Some(Op::Mask(Mask::Flag, Masking::Clear))
        }
        Mnemonic::Hlt => Some(Op::Halt),
        Mnemonic::Rdtsc | Mnemonic::Rdtscp => Some(Op::ReadClock),
        Mnemonic::Nop => Marker::of(&insn.bytes).map(Op::Marker),
        Mnemonic::Mov
            if decoded.code() == Opcode::Mov_r64_rm64
                && decoded.op0_register() == Register::RSP
                && decoded.memory_base() == Register::RSI =>
        {
            Some(Op::TakeStack(decoded.memory_displacement64()))
        }
        Mnemonic::Mov
            if decoded.code() == Opcode::Mov_rm64_r64
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
            loads.then(|| Op::Point(number(decoded.op0_register())))
        }
        _ => None,
    }
}

/// The bit of the preemption count that is 0 if the running thread is to give up the CPU
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

/// Returns true if an instruction changes something in the CPU's own area.
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

/// Reads a change of the count whose place a compiler has kept in a register.
fn through_register(decoded: &Instruction) -> Option<Op> {
    let base = decoded.memory_base();
    let amount = match decoded.mnemonic() {
        Mnemonic::Inc => 1,
        Mnemonic::Dec => -1,
        _ => return None,
    };
    let is_bare = decoded.memory_index() == Register::None && decoded.memory_displacement64() == 0;
    (is_bare && base.is_gpr64())
        .then(|| Op::At(Holder::Register(number(base)), Counted::Preempt(amount)))
}

fn number(register: Register) -> u8 {
    register.full_register().number() as u8
}

/// Returns a place in the CPU's own area, absolute or relative to the instruction.
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
        let code = understood(&Block { number, insns }, Some(0x34e88));
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
            (0, Op::Mask(Mask::Flag, Masking::Set)),
            (1, Op::Preempt(1)),
            (3, Op::Preempt(-0x100)),
            (4, Op::PreemptBy),
            (6, Op::Mask(Mask::Flag, Masking::Clear)),
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
        let at = number(Register::RSI);
        let down = Op::At(Holder::Register(at), Counted::Preempt(-1));
        assert_eq!(found, [(0, Op::Point(at)), (2, down)]);
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

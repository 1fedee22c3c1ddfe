// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short programs, instruction by instruction, with sections of known lengths.

mod cpus;
mod delays;

use punctual_model::Architecture;
use punctual_model::Nanos;
use punctual_trace::marker::Marker;
use punctual_trace::{Block, Insn, Item, Word};

use super::{Hotspot, RunTracer, SectionKind, Survey};
use crate::guest_clock::GuestClock;
use crate::names::Names;
use crate::preemptibility::Preemptibility;
use crate::symbols::Symbols;
use crate::user_symbols::UserSymbols;

const KALLSYMS: &str = "\
0000000000034e80 A pcpu_hot
ffffffff81001000 T worker
ffffffff81002000 T _raw_spin_lock
ffffffff81003000 T _raw_spin_unlock
ffffffff81004000 T handle_softirqs.constprop.0
ffffffff81005000 T run_timer_softirq
ffffffff81006000 T asm_sysvec_apic_timer_interrupt
ffffffff81007000 T entry_SYSCALL_64
ffffffff81008000 T __x86_indirect_thunk_rax
ffffffff81009000 T asm_exc_page_fault
ffffffff8100a000 T __cond_resched
ffffffff8100b000 T do_idle
ffffffff8100c000 T __schedule
ffffffff8100d000 T preempt_schedule
ffffffff8100e000 T preempt_schedule_irq
ffffffff8100f000 T schedule_idle
ffffffff81010000 T native_queued_spin_lock_slowpath
ffffffff81011000 T _cond_resched
";

const USER: u64 = 0x40_1000;
const WORKER: u64 = 0xffff_ffff_8100_1000;
const LOCK: u64 = 0xffff_ffff_8100_2000;
const UNLOCK: u64 = 0xffff_ffff_8100_3000;
const SOFTIRQS: u64 = 0xffff_ffff_8100_4000;
const TIMERS: u64 = 0xffff_ffff_8100_5000;
const TICK: u64 = 0xffff_ffff_8100_6000;
const SYSCALL: u64 = 0xffff_ffff_8100_7000;
const RETPOLINE: u64 = 0xffff_ffff_8100_8000;
const FAULT: u64 = 0xffff_ffff_8100_9000;
const COND_RESCHED: u64 = 0xffff_ffff_8100_a000;
const IDLE: u64 = 0xffff_ffff_8100_b000;

const SCHEDULE: u64 = 0xffff_ffff_8100_c000;
const PREEMPT: u64 = 0xffff_ffff_8100_d000;
const PREEMPT_IRQ: u64 = 0xffff_ffff_8100_e000;
const SCHEDULE_IDLE: u64 = 0xffff_ffff_8100_f000;
const SPIN: u64 = 0xffff_ffff_8101_0000;
/// `__cond_resched`, before Linux 5.12.
const OLD_COND_RESCHED: u64 = 0xffff_ffff_8101_1000;

const NOP: &[u8] = &[0x90];
const CLI: &[u8] = &[0xfa];
const STI: &[u8] = &[0xfb];
const HLT: &[u8] = &[0xf4];
const RET: &[u8] = &[0xc3];
const CALL: &[u8] = &[0xe8, 0, 0, 0, 0];
const CALL_RAX: &[u8] = &[0xff, 0xd0];
const JUMP: &[u8] = &[0xe9, 0, 0, 0, 0];
const PAUSE: &[u8] = &[0xf3, 0x90];
const IRET: &[u8] = &[0x48, 0xcf];
const SYSRET: &[u8] = &[0x48, 0x0f, 0x07];
/// `mov (%rax),%rax`, which may fault.
const LOAD: &[u8] = &[0x48, 0x8b, 0x00];
/// `incl %gs:0x34e88`, `decl …`: the preemption count.
const INC: &[u8] = &[0x65, 0xff, 0x04, 0x25, 0x88, 0x4e, 0x03, 0x00];
const DEC: &[u8] = &[0x65, 0xff, 0x0c, 0x25, 0x88, 0x4e, 0x03, 0x00];

/// `andl $0x7fffffff,%gs:0x34e88`, `orl $0x80000000,…`: the thread is to give up the CPU, or has
/// done so.
const NEED: &[u8] = &[
    0x65, 0x81, 0x24, 0x25, 0x88, 0x4e, 3, 0, 0xff, 0xff, 0xff, 0x7f,
];
const DONE: &[u8] = &[0x65, 0x81, 0x0c, 0x25, 0x88, 0x4e, 3, 0, 0, 0, 0, 0x80];
/// The target's markers.
const ARMED: &[u8] = &[0x0f, 0x1f, 0x80, 0x10, 0x50, 0x4e, 0x43];
const TAKEN: &[u8] = &[0x0f, 0x1f, 0x80, 0x20, 0x50, 0x4e, 0x43];

/// A block: its address, its instructions, and the number of them that ran.
struct Step(u64, Vec<&'static [u8]>, usize);

fn all(address: u64, code: &[&'static [u8]]) -> Step {
    Step(address, code.to_vec(), code.len())
}

/// Creates a block of instructions that do nothing.
fn nops(address: u64, count: usize) -> Step {
    all(address, &vec![NOP; count])
}

/// Surveys these steps, from user space and back to it.
fn survey(steps: &[Step], preemption: Preemptibility, as_wholes: bool) -> Survey {
    let symbols = Symbols::parse(Architecture::Amd64, KALLSYMS).unwrap();
    let programs = UserSymbols::default();
    let mut tracer = RunTracer::new(|| Names::new(&symbols, &programs), preemption, 1);
    tracer.take(&Item::Words(vec![Word::Marker(Marker::Step.kind())]));
    let user = [nops(USER, 1)];
    let steps = user.iter().chain(steps).chain(&user);
    for (number, Step(address, code, ran)) in (0..).zip(steps) {
        tracer.take(&Item::Block(block(number, *address, code)));
        if as_wholes && *ran == code.len() {
            tracer.take(&Item::Whole(vec![number]));
        } else {
            tracer.take(&Item::Words(vec![Word::Ran {
                block: number,
                instructions: *ran as u32,
            }]));
        }
    }
    tracer.finish(GuestClock::new(1, 1_000_000).unwrap())
}

fn block(number: u32, mut address: u64, code: &[&[u8]]) -> Block {
    let insn = |bytes: &&[u8]| {
        let at = address;
        address += bytes.len() as u64;
        Insn {
            address: at,
            bytes: bytes.to_vec(),
        }
    };
    Block {
        number,
        insns: code.iter().map(insn).collect(),
    }
}

/// Returns the findings of a kind: function, count, longest and sum. Blocks that the plugin reports
/// as wholes are followed on a shorter way, which must come to the same.
fn found_on(preemption: Preemptibility, steps: &[Step], what: SectionKind) -> Vec<Place> {
    let found = survey(steps, preemption, false);
    assert_eq!(found, survey(steps, preemption, true));
    assert_eq!(found.mended, 0);
    let of_kind = found.hotspots.into_iter().filter(|p| p.what == what);
    let place = |p: Hotspot| (p.function, p.count, p.longest.0, p.sum.0);
    of_kind.map(place).collect()
}

type Place = (String, u64, i64, i64);

fn found(steps: &[Step], what: SectionKind) -> Vec<Place> {
    found_on(Preemptibility::Full, steps, what)
}

fn not_preemptible(steps: &[Step]) -> Vec<Place> {
    found_on(Preemptibility::Asked, steps, SectionKind::NotPreemptible)
}

fn place(function: &str, count: u64, longest: i64, sum: i64) -> Place {
    (function.to_owned(), count, longest, sum)
}

#[test]
fn interrupts_are_off_from_the_entry_and_from_cli_to_sti() {
    let steps = [
        all(SYSCALL, &[NOP, NOP, STI, NOP, CALL]),
        all(WORKER, &[NOP, CLI, NOP, NOP, STI]),
        all(WORKER + 0x10, &[CLI]),
        nops(WORKER + 0x20, 9),
        all(WORKER + 0x30, &[STI, CLI, SYSRET]),
    ];
    let expected = [
        place("worker", 3, 10, 3 + 10 + 1),
        // Two `nop` and the `sti`.
        place("entry_SYSCALL_64", 1, 3, 3),
    ];
    assert_eq!(found(&steps, SectionKind::IrqsOff), expected);
}

/// Surveys whole blocks, each repeated a number of times, within one section with preemption off.
fn long_section(runs: &[(u64, usize)]) -> Hotspot {
    let symbols = Symbols::parse(Architecture::Amd64, KALLSYMS).unwrap();
    let programs = UserSymbols::default();
    let names = || Names::new(&symbols, &programs);
    let mut tracer = RunTracer::new(names, Preemptibility::Full, 1);
    tracer.take(&Item::Words(vec![Word::Marker(Marker::Step.kind())]));
    let begin = [
        (USER, &[NOP][..], 1),
        (SYSCALL, &[STI, CALL], 1),
        (WORKER, &[INC], 1),
    ];
    let runs = runs.iter().map(|(at, times)| (*at, &[NOP][..], *times));
    let end = [(WORKER + 0x20, &[DEC][..], 1), (USER, &[NOP], 1)];
    for (number, (address, code, times)) in (0..).zip(begin.into_iter().chain(runs).chain(end)) {
        tracer.take(&Item::Block(block(number, address, code)));
        tracer.take(&Item::Whole(vec![number; times]));
    }
    let hotspots = tracer
        .finish(GuestClock::new(1, 1_000_000).unwrap())
        .hotspots;
    let mut off = hotspots.into_iter();
    off.find(|p| p.what == SectionKind::PreemptOff).unwrap()
}

#[test]
fn a_section_of_more_than_a_million_blocks_counts_to_its_end() {
    let longest = long_section(&[(TIMERS, 600_000), (FAULT, 900_000), (TIMERS + 9, 500_000)]);
    assert_eq!(longest.longest, Nanos(2_000_001));
    assert_eq!(
        longest.most,
        ("run_timer_softirq".to_owned(), Nanos(1_100_000))
    );
}

#[test]
fn a_lock_counts_to_its_caller_and_an_interrupt_within_belongs_to_it() {
    let steps = [
        all(SYSCALL, &[STI, CALL]),
        all(WORKER, &[CALL]),
        all(LOCK, &[NOP, INC, RET]),
        nops(WORKER + 5, 4),
        all(TICK, &[NOP, IRET]),
        nops(WORKER + 9, 5),
        all(WORKER + 0x20, &[CALL]),
        all(UNLOCK, &[NOP, DEC, RET]),
        all(WORKER + 0x30, &[CLI, SYSRET]),
    ];
    // From behind `incl`: `ret`, 4, the interrupt's 2, 5, `call`, `nop`, `decl`.
    let expected = [place("worker", 1, 15, 15)];
    assert_eq!(found(&steps, SectionKind::PreemptOff), expected);
    let hotspots = survey(&steps, Preemptibility::Full, false).hotspots;
    let mut off = hotspots
        .iter()
        .filter(|p| p.what == SectionKind::PreemptOff);
    let longest = off.next().unwrap();
    assert_eq!(longest.most, ("worker".to_owned(), Nanos(10)));
    assert_eq!(longest.ended, "_raw_spin_unlock");
}

#[test]
fn preemption_is_off_until_the_last_of_nested_locks_is_given_back() {
    let steps = [
        all(SYSCALL, &[STI, CALL]),
        all(WORKER, &[INC, NOP, INC, NOP, DEC, NOP, DEC, NOP]),
        all(WORKER + 0x80, &[CLI, SYSRET]),
    ];
    let expected = [place("worker", 1, 6, 6)];
    assert_eq!(found(&steps, SectionKind::PreemptOff), expected);
}

#[test]
fn a_soft_interrupt_is_named_by_its_own_function() {
    let steps = [
        all(TICK, &[NOP, CALL]),
        all(SOFTIRQS, &[STI, NOP, CALL]),
        // A function that is called directly is none.
        all(WORKER, &[NOP, RET]),
        all(SOFTIRQS + 0x10, &[CALL]),
        all(RETPOLINE, &[CALL]),
        all(RETPOLINE + 0x20, &[NOP, RET]),
        nops(TIMERS, 6),
        all(TIMERS + 6, &[RET]),
        all(SOFTIRQS + 0x20, &[CALL_RAX]),
        all(TIMERS, &[RET]),
        all(SOFTIRQS + 0x30, &[CLI, RET]),
        all(TICK + 0x10, &[IRET]),
    ];
    let expected = [place("run_timer_softirq", 2, 7, 8)];
    assert_eq!(found(&steps, SectionKind::Softirq), expected);
}

#[test]
fn an_instruction_that_faults_is_counted_once() {
    let steps = [
        all(SYSCALL, &[STI, CALL]),
        // The load is begun, faults, and is begun again.
        Step(WORKER, vec![CLI, NOP, LOAD, NOP], 3),
        all(FAULT, &[NOP, IRET]),
        all(WORKER + 2, &[LOAD, NOP, STI]),
        all(WORKER + 0x30, &[CLI, SYSRET]),
    ];
    // `nop`, the fault's 2, `mov`, `nop`, `sti`.
    let expected = [place("worker", 2, 6, 7), place("entry_SYSCALL_64", 1, 1, 1)];
    assert_eq!(found(&steps, SectionKind::IrqsOff), expected);
}

#[test]
fn where_nothing_is_preempted_sections_end_where_the_scheduler_is_asked() {
    for asks in [COND_RESCHED, OLD_COND_RESCHED] {
        let steps = [
            all(SYSCALL, &[NOP, STI, CALL]),
            nops(WORKER, 20),
            all(asks, &[NOP]),
            all(asks + 1, &[RET]),
            nops(WORKER + 20, 30),
            all(WORKER + 0x40, &[CLI, SYSRET]),
        ];
        let expected = [
            // `nop`, `ret`, 30, `cli`, `sysret`.
            place("worker", 1, 34, 34),
            place("entry_SYSCALL_64", 1, 23, 23),
        ];
        assert_eq!(not_preemptible(&steps), expected);
        assert_eq!(found(&steps, SectionKind::NotPreemptible), []);
    }
}

#[test]
fn sleep_does_not_count() {
    let steps = [
        all(SYSCALL, &[NOP, STI, JUMP]),
        nops(IDLE, 50),
        all(IDLE + 0x40, &[CLI, NOP, NOP, STI, HLT]),
        all(TICK, &[NOP, NOP, IRET]),
        all(IDLE + 0x50, &[CLI, SYSRET]),
    ];
    let off = found(&steps, SectionKind::IrqsOff).into_iter();
    let expected = [
        ("asm_sysvec_apic_timer_interrupt".to_owned(), 3),
        ("do_idle".to_owned(), 3),
        ("entry_SYSCALL_64".to_owned(), 2),
    ];
    let off = off.map(|(name, _, longest, _)| (name, longest));
    assert!(off.eq(expected));
    // The tick's 3 and what is behind it.
    let expected = [place("entry_SYSCALL_64", 1, 5, 5)];
    assert_eq!(not_preemptible(&steps), expected);
}

#[test]
fn what_cannot_be_is_mended_and_said() {
    // An interrupt where interrupts are off, as it seems.
    let steps = [
        all(SYSCALL, &[STI, CALL]),
        all(WORKER, &[CLI, NOP, NOP]),
        all(TICK, &[NOP, IRET]),
        nops(WORKER + 0x10, 3),
        all(WORKER + 0x20, &[CLI, SYSRET]),
    ];
    let survey_of = survey(&steps, Preemptibility::Full, false);
    assert_eq!(survey_of.mended, 1);
    let worker = survey_of.hotspots.iter().find(|p| p.function == "worker");
    // Only the `cli` before the return to user space is left.
    assert_eq!(worker.map(|p| (p.count, p.longest)), Some((1, Nanos(1))));

    // User space with a lock held, as it seems.
    let steps = [
        all(SYSCALL, &[STI, CALL]),
        all(WORKER, &[INC, NOP, NOP, CLI, SYSRET]),
    ];
    let survey_of = survey(&steps, Preemptibility::Full, false);
    assert_eq!(survey_of.mended, 1);
    let mut hotspots = survey_of.hotspots.iter();
    assert!(hotspots.all(|p| p.what != SectionKind::PreemptOff));
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The four delays, instruction by instruction.

use super::*;
use crate::survey::{DelayKind, Delays};

fn delays(steps: &[Step]) -> Delays {
    let found = survey(steps, Preemptibility::Rt, false);
    assert_eq!(found, survey(steps, Preemptibility::Rt, true));
    assert_eq!(found.mended, 0);
    found.delays
}

/// Returns the number of delays of a kind, the longest, and where that began.
fn longest(delays: &Delays, kind: DelayKind) -> (u64, i64, Vec<&str>) {
    let found = delays.longest.iter().find(|delay| delay.kind == kind);
    found.map_or((0, 0, Vec::new()), |delay| {
        let path = delay.path.iter().map(String::as_str).collect();
        (delay.count, delay.longest.0, path)
    })
}

fn lengths(delays: &Delays) -> Vec<i64> {
    let interrupts = delays.interrupts.iter();
    interrupts.map(|interrupt| interrupt.length.0).collect()
}

/// The scheduler at work: 7 instructions, of which 5 are after the masking.
fn schedule() -> Step {
    all(SCHEDULE, &[NOP, CLI, DONE, NOP, NOP, STI, RET])
}

#[test]
fn each_delay_lasts_from_where_to_where_the_theorem_says() {
    let steps = [
        all(SYSCALL, &[STI, CALL]),
        all(WORKER, &[INC, NOP, NEED, NOP, DEC, CALL]),
        all(PREEMPT, &[NOP, INC, CALL]),
        schedule(),
        all(PREEMPT + 0x20, &[DEC, RET]),
        all(WORKER + 0x40, &[CLI, SYSRET]),
    ];
    let found = delays(&steps);
    let entry = "entry_SYSCALL_64";
    let poid = longest(&found, DelayKind::Poid);
    assert_eq!(poid, (3, 4, vec![entry, "worker"]));
    let paie = longest(&found, DelayKind::Paie);
    assert_eq!(paie, (1, 3, vec![entry, "worker"]));
    let path = vec![entry, "worker", "preempt_schedule"];
    let psd = longest(&found, DelayKind::Psd);
    assert_eq!(psd, (1, 1 + 7 + 1, path.clone()));
    let path = [path, vec!["__schedule"]].concat();
    assert_eq!(longest(&found, DelayKind::St), (1, 5 + 1, path));
    assert_eq!((found.detours, found.interrupts.len()), (0, 0));
}

#[test]
fn interrupts_are_taken_out_and_told_apart() {
    let steps = [
        all(SYSCALL, &[STI, CALL]),
        all(WORKER, &[INC, NOP]),
        nops(TICK, 9),
        all(TICK + 0x10, &[INC, DEC, IRET]),
        all(WORKER + 0x10, &[NOP, DEC, NOP]),
        // Another one goes over into the scheduler, with interrupts off.
        all(TICK, &[NOP, NEED, CALL]),
        all(PREEMPT_IRQ, &[INC, STI, CALL]),
        schedule(),
        all(PREEMPT_IRQ + 0x20, &[CLI, DEC, RET]),
        all(TICK + 0x20, &[NOP, IRET]),
        all(WORKER + 0x20, &[CLI, SYSRET]),
    ];
    let found = delays(&steps);
    assert_eq!(lengths(&found), [12, 3]);
    assert_eq!(found.vectors, ["asm_sysvec_apic_timer_interrupt"]);
    assert_eq!(
        found.interrupts[1].at - found.interrupts[0].at,
        Nanos(12 + 3)
    );
    // From `incl` on a `nop`, and behind the interrupt another one and `decl`; the others are
    // the entry, up to `incl` in the scheduler, from its `decl` to `iret`, and the end.
    let poid = longest(&found, DelayKind::Poid);
    assert_eq!(poid, (5, 3, vec!["entry_SYSCALL_64", "worker"]));
    let psd = longest(&found, DelayKind::Psd);
    let path = vec!["entry_SYSCALL_64", "preempt_schedule_irq"];
    assert_eq!(psd, (1, 2 + 7 + 2, path));
    assert_eq!(longest(&found, DelayKind::Paie), (0, 0, vec![]));
}

#[test]
fn an_idle_cpu_wakes_up_at_the_end_of_its_longest_piece() {
    let steps = [
        all(SYSCALL, &[STI, CALL]),
        all(WORKER, &[INC, JUMP]),
        nops(IDLE, 30),
        all(IDLE + 0x40, &[CLI, STI, HLT]),
        all(TICK, &[NEED, IRET]),
        nops(IDLE + 0x50, 7),
        schedule_idle(),
        schedule(),
        all(SCHEDULE_IDLE + 0x10, &[RET]),
        all(IDLE + 0x60, &[DEC, CLI, SYSRET]),
    ];
    let found = delays(&steps);
    let poid = longest(&found, DelayKind::Poid);
    assert_eq!(poid.1, (1 + 30 + 3) + 7);
    // From the call of the scheduler back to the idle thread.
    assert_eq!(longest(&found, DelayKind::Psd).1, 1 + 7 + 1);
    assert_eq!((lengths(&found), found.interrupts[0].sleeps), (vec![2], 1));
}

fn schedule_idle() -> Step {
    all(SCHEDULE_IDLE, &[CALL])
}

#[test]
fn what_is_switched_off_on_the_way_to_the_scheduler_is_counted_and_in_it() {
    let steps = [
        all(SYSCALL, &[STI, CALL]),
        // The thread is to go, and nobody asks: interrupts are opened by `sti` alone.
        all(WORKER, &[CLI, NEED, STI, NOP, INC, NOP, DEC, CALL]),
        all(PREEMPT, &[INC, CALL]),
        schedule(),
        all(PREEMPT + 0x20, &[DEC, RET]),
        all(WORKER + 0x40, &[CLI, SYSRET]),
    ];
    let found = delays(&steps);
    assert_eq!(found.detours, 1);
    assert_eq!(longest(&found, DelayKind::Paie).1, 1 + 3 + 2);
}

#[test]
fn the_way_back_is_from_the_last_switch_to_the_sample() {
    let steps = [
        all(USER + 0x10, &[ARMED, NOP]),
        all(SYSCALL, &[STI, CALL]),
        all(PREEMPT, &[INC, CALL]),
        schedule(),
        all(PREEMPT + 0x20, &[DEC, NOP, CLI, SYSRET]),
        all(USER + 0x20, &[NOP, NOP, TAKEN, NOP]),
        all(USER + 0x20, &[NOP, NOP, TAKEN, NOP]),
    ];
    let found = delays(&steps);
    assert_eq!(
        found.way_back.into_iter().collect::<Vec<_>>(),
        [(0, Nanos(3 + 3))]
    );
}

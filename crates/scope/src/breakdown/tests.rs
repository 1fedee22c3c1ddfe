// SPDX-License-Identifier: MIT OR Apache-2.0
//! Breakdowns of invented walks.

use punctual_model::Nanos;
use punctual_model::probe::SampleSpan;

use super::*;
use crate::guest_clock::GuestClock;
use crate::names::CodeKind;
use crate::preemptibility::Preemptibility;
use crate::walk::{Activation, Number, Span, Switch, Task, Wake};

const NAMES: [(&str, CodeKind); 17] = [
    ("program", CodeKind::User),
    ("entry_SYSCALL_64", CodeKind::Syscall),
    ("futex_lock_pi", CodeKind::Plain),
    ("__schedule", CodeKind::Scheduler),
    ("asm_sysvec_apic_timer_interrupt", CodeKind::Interrupt),
    ("asm_exc_page_fault", CodeKind::Exception),
    ("handle_softirqs", CodeKind::Softirq),
    ("finish_task_switch.isra.0", CodeKind::SwitchEnd),
    ("_raw_spin_unlock", CodeKind::Lock),
    ("__mmdrop", CodeKind::Plain),
    ("packet_snd", CodeKind::Plain),
    ("__dev_queue_xmit", CodeKind::Plain),
    ("dev_hard_start_xmit", CodeKind::Plain),
    ("__napi_schedule", CodeKind::Plain),
    ("net_rx_action", CodeKind::Plain),
    ("__netif_receive_skb_core.constprop.0", CodeKind::Plain),
    ("exit_to_user_mode_loop", CodeKind::WayBack),
];
const USER: usize = 0;
const FUTEX: usize = 2;
const SCHEDULE: usize = 3;
const INTERRUPT: usize = 4;
const FAULT: usize = 5;
const SOFTIRQS: usize = 6;
const SWITCH_END: usize = 7;
const UNLOCK: usize = 8;
const DROP: usize = 9;
const SEND: usize = 10;
const QUEUE: usize = 11;
const DRIVE: usize = 12;
const ASK: usize = 13;
const SERVE: usize = 14;
const TAKE: usize = 15;
const WAY_BACK: usize = 16;

const ONE: Task = 0xa;
const OTHER: Task = 0xb;
const THIRD: Task = 0xc;

/// Creates a walk in which these ran for these lengths, one after the other.
fn walk(ran: &[(Task, usize, u32)]) -> Walk {
    let mut walk = Walk {
        first: [(0, ran[0].0)].into(),
        ..Walk::default()
    };
    for (task, func, length) in ran.iter().copied() {
        if walk.spans.last().is_some_and(|last| last.task != task) {
            let (at, cpu) = (walk.total, 0);
            walk.switches.push(Switch { at, cpu, task });
        }
        let number = walk.activations.len() as Number;
        let program = Activation::of(USER as u32, None, task);
        walk.activations.push(program);
        if func != USER {
            let function = Activation::of(func as u32, Some(number), task);
            walk.activations.push(function);
        }
        walk.spans.push(Span {
            cpu: 0,
            from: walk.total,
            length,
            top: walk.activations.len() as Number - 1,
            task,
            user: func == USER,
            irqs_off: None,
            preempt_off: None,
            asleep: false,
            address: 0,
        });
        walk.total += u64::from(length);
    }
    walk
}

/// Makes these functions, outermost first, the callers of what ran in a span.
fn call_from(walk: &mut Walk, span: usize, callers: &[usize]) {
    let top = walk.spans[span].top as usize;
    for func in callers {
        let Activation { parent, task, .. } = walk.activations[top];
        let caller = Activation::of(*func as u32, parent, task);
        walk.activations[top].parent = Some(walk.activations.len() as Number);
        walk.activations.push(caller);
    }
}

/// Makes the second span an interrupt's that began and woke the task at these moments.
fn is_woken(walk: &mut Walk, task: Task, (began, at): (u64, u64)) {
    let by = walk.spans[1].top;
    walk.activations[by as usize].begin = Some(began);
    let (cpu, bases) = (0, [task].into());
    walk.wakes.push(Wake { at, cpu, by, bases });
}

fn readings(at: &[u64]) -> Vec<Moment> {
    at.iter().map(|at| Moment { at: *at, cpu: 0 }).collect()
}

fn breakdown(walk: &Walk, span: SampleSpan, late: i64) -> Result<Breakdown, Unexplained> {
    breakdown_on(Preemptibility::Full, walk, span, late)
}

fn breakdown_on(
    preemption: Preemptibility,
    walk: &Walk,
    span: SampleSpan,
    late: i64,
) -> Result<Breakdown, Unexplained> {
    let name = |(text, kind): (&str, _)| (text.to_owned(), kind);
    let names = NAMES.map(name).map(|(text, kind)| Name { text, kind });
    let about = SampleContext {
        cycle: None,
        clock: GuestClock::new(1, 1_000_000).unwrap(),
        span,
        late: Nanos(late),
        ends_before: Nanos::ZERO,
        preemption,
    };
    super::breakdown(walk, &names, about)
}

fn shape(breakdown: &Breakdown) -> Vec<(PathStage, Cause, i64)> {
    let shape = |part: &Part| (part.stage, part.cause, part.length.0);
    breakdown.parts.iter().map(shape).collect()
}

#[test]
fn what_two_threads_do_for_a_handover_is_the_way_and_all_else_stands_in_it() {
    let mut walk = walk(&[
        (ONE, USER, 10),
        (ONE, USER, 5),
        (ONE, FUTEX, 100),
        (ONE, INTERRUPT, 80),
        (ONE, FUTEX, 30),
        (ONE, SCHEDULE, 30),
        (THIRD, USER, 100),
        (THIRD, SCHEDULE, 20),
        (OTHER, SCHEDULE, 10),
        (OTHER, FUTEX, 25),
        (OTHER, USER, 10),
    ]);
    // The clock is read before the window's sample begins, too.
    walk.clocks = readings(&[3, 10, 420]);
    let breakdown = breakdown(&walk, SampleSpan::Handover, 410).unwrap();
    assert_eq!(
        shape(&breakdown),
        [
            (PathStage::Call, Cause::Path, 105),
            (PathStage::Call, Cause::HardIrq, 80),
            (PathStage::Call, Cause::Path, 30),
            (PathStage::Call, Cause::Scheduler, 30),
            (PathStage::Call, Cause::OtherThread, 100),
            (PathStage::Call, Cause::Scheduler, 20),
            (PathStage::Return, Cause::Path, 35),
            (PathStage::User, Cause::Path, 10),
        ]
    );
    let thread = |part: usize| breakdown.parts[part].thread.as_str();
    assert_eq!((thread(0), thread(4)), ("program (begins)", "program"));
    assert_eq!(thread(7), "program (ends)");
    assert_eq!(breakdown.culprit, Some(4));
    assert_eq!(breakdown.notes, Vec::<String>::new());
}

#[test]
fn a_gap_is_the_way_but_for_what_interrupts_it() {
    let mut walk = walk(&[
        (ONE, USER, 15),
        (ONE, INTERRUPT, 80),
        (ONE, USER, 2),
        (ONE, FAULT, 40),
        (ONE, USER, 5),
    ]);
    walk.clocks = readings(&[5, 10, 142]);
    let breakdown = breakdown(&walk, SampleSpan::Gap, 132).unwrap();
    assert_eq!(
        shape(&breakdown),
        [
            (PathStage::Interrupt, Cause::Path, 5),
            (PathStage::Return, Cause::HardIrq, 80),
            (PathStage::Return, Cause::Path, 2),
            (PathStage::Return, Cause::Exception, 40),
            (PathStage::User, Cause::Path, 5),
        ]
    );
    assert_eq!(breakdown.culprit, Some(1));
}

#[test]
fn two_interrupts_are_two_culprits_but_what_they_part_is_one() {
    let mut gap = walk(&[
        (ONE, USER, 10),
        (ONE, INTERRUPT, 80),
        (ONE, USER, 2),
        (ONE, INTERRUPT, 40),
        (ONE, USER, 5),
    ]);
    gap.clocks = readings(&[5, 137]);
    let of_gap = breakdown(&gap, SampleSpan::Gap, 132).unwrap();
    assert_eq!((of_gap.culprit, of_gap.held()), (Some(1), Nanos(80)));

    let mut handover = walk(&[
        (ONE, USER, 10),
        (THIRD, FUTEX, 60),
        (THIRD, INTERRUPT, 80),
        (THIRD, FUTEX, 40),
        (OTHER, USER, 10),
    ]);
    handover.clocks = readings(&[5, 200]);
    let breakdown = breakdown(&handover, SampleSpan::Handover, 195).unwrap();
    assert_eq!((breakdown.culprit, breakdown.held()), (Some(1), Nanos(100)));
}

/// A wake-up in an interrupt that came 300 ns after it was due, though interrupts were open.
#[test]
fn what_runs_before_a_timer_is_set_stands_in_the_way() {
    let mut walk = walk(&[
        (THIRD, FUTEX, 300),
        (THIRD, INTERRUPT, 80),
        (THIRD, SCHEDULE, 20),
        (OTHER, SCHEDULE, 10),
        (OTHER, USER, 10),
    ]);
    walk.clocks = readings(&[420]);
    is_woken(&mut walk, OTHER, (300, 340));
    let found = breakdown(&walk, SampleSpan::Lateness, 420).unwrap();
    let first = (PathStage::Interrupt, Cause::OtherThread, 300);
    assert_eq!(shape(&found)[0], first, "{found:?}");
    assert_eq!(found.culprit, Some(0));
    // Within the timer's grain it was pending.
    let found = breakdown(&walk, SampleSpan::Lateness, 220).unwrap();
    let first = (PathStage::Interrupt, Cause::Pending, 100);
    assert_eq!(shape(&found)[0], first, "{found:?}");
}

/// The sample's interrupt comes while another one's soft interrupts are served, or where the
/// scheduler goes on in a thread that had lost the CPU by an interrupt.
#[test]
fn the_interrupt_that_wakes_is_the_one_that_was_waited_for() {
    for around in [SOFTIRQS, SCHEDULE] {
        let mut walk = walk(&[
            (THIRD, around, 300),
            (THIRD, INTERRUPT, 80),
            (THIRD, SCHEDULE, 20),
            (OTHER, SCHEDULE, 10),
            (OTHER, USER, 10),
        ]);
        walk.clocks = readings(&[420]);
        is_woken(&mut walk, OTHER, (300, 340));
        call_from(&mut walk, 0, &[INTERRUPT]);
        let outer = walk.activations.len();
        call_from(&mut walk, 1, &[INTERRUPT, around]);
        walk.activations[outer].begin = Some(5);
        walk.spans[0].irqs_off = Some(walk.spans[0].top);
        let found = breakdown(&walk, SampleSpan::Lateness, 250).unwrap();
        assert_eq!(
            shape(&found)[..2],
            [
                (PathStage::Interrupt, Cause::IrqsOff, 130),
                (PathStage::Handler, Cause::HardIrq, 80),
            ]
        );
        let by = found.parts[0].by.as_deref();
        assert_eq!(by, Some(NAMES[around].0));
    }
}

/// A thread that an interrupt took the CPU from gets it again, and wakes another one before it goes
/// on in user space: the interrupt was long before.
#[test]
fn a_thread_that_got_the_cpu_again_wakes_by_itself() {
    let mut walk = walk(&[
        (ONE, SCHEDULE, 100),
        (THIRD, SCHEDULE, 200),
        (THIRD, DROP, 80),
        (THIRD, SCHEDULE, 20),
        (OTHER, SCHEDULE, 10),
        (OTHER, USER, 10),
    ]);
    walk.clocks = readings(&[420]);
    let by = walk.spans[2].top;
    let (at, cpu, bases) = (340, 0, [OTHER].into());
    walk.wakes.push(Wake { at, cpu, by, bases });
    let outer = walk.activations.len();
    call_from(&mut walk, 2, &[INTERRUPT, WAY_BACK]);
    walk.activations[outer].begin = Some(20);
    let found = breakdown(&walk, SampleSpan::Lateness, 370).unwrap();
    assert_eq!(
        shape(&found)[..2],
        [
            (PathStage::Switch, Cause::Scheduler, 50),
            (PathStage::Handler, Cause::Path, 280),
        ]
    );
}

#[test]
fn what_is_done_on_the_way_back_to_user_space_is_the_threads_and_not_the_interrupts() {
    let mut walk = walk(&[
        (THIRD, USER, 100),
        (THIRD, INTERRUPT, 20),
        (THIRD, DROP, 300),
        (THIRD, SCHEDULE, 10),
        (OTHER, USER, 10),
    ]);
    walk.clocks = readings(&[440]);
    is_woken(&mut walk, OTHER, (100, 115));
    let entry = walk.activations.len() as Number;
    call_from(&mut walk, 2, &[INTERRUPT, WAY_BACK]);
    let (work, way) = (walk.spans[2].top, entry + 1);
    let mut cause = |top: Number, irqs_off: Option<Number>| {
        (walk.spans[2].top, walk.spans[2].irqs_off) = (top, irqs_off);
        let found = breakdown(&walk, SampleSpan::Lateness, 340).unwrap();
        let part = found.parts.iter().find(|part| part.length == Nanos(300));
        part.map(|part| (part.stage, part.cause))
    };
    let other = Some((PathStage::Switch, Cause::OtherThread));
    assert_eq!(cause(work, None), other);
    let masked = Some((PathStage::Switch, Cause::IrqsOff));
    assert_eq!(cause(work, Some(work)), masked);
    // Interrupts were not on since, or are off for the last steps; and the way itself.
    let hard = Some((PathStage::Switch, Cause::HardIrq));
    assert_eq!(cause(work, Some(entry)), hard);
    assert_eq!(cause(work, Some(way)), hard);
    assert_eq!(cause(way, None), hard);
}

#[test]
fn how_long_a_function_ran_in_all_is_told_where_all_of_it_was_watched() {
    let mut walk = walk(&[
        (ONE, USER, 100),
        (THIRD, FUTEX, 400),
        (THIRD, SCHEDULE, 20),
        (OTHER, USER, 10),
    ]);
    walk.clocks = readings(&[530]);
    let futex = walk.spans[1].top as usize;
    let mut told = |begin: Option<u64>, end: Option<u64>| {
        (walk.activations[futex].begin, walk.activations[futex].end) = (begin, end);
        let found = breakdown(&walk, SampleSpan::Lateness, 230).unwrap();
        let main = found.parts[0].main.clone().unwrap();
        assert_eq!((&*main.function, main.time.0), ("futex_lock_pi", 200));
        let is_told = |note: &String| note.contains("`futex_lock_pi` ran 400 ns at least");
        (main.whole.0, found.notes.iter().any(is_told))
    };
    assert_eq!(told(Some(100), Some(500)), (400, false));
    assert_eq!(told(Some(100), None), (200, true));
    assert_eq!(told(None, Some(500)), (200, true));
}

/// Of a wait that is longer than the trace only the end was kept.
#[test]
fn what_was_before_the_trace_is_not_what_came_first_in_it() {
    let mut walk = walk(&[
        (THIRD, FUTEX, 300),
        (THIRD, INTERRUPT, 80),
        (THIRD, SCHEDULE, 20),
        (OTHER, SCHEDULE, 10),
        (OTHER, USER, 10),
    ]);
    walk.clocks = readings(&[420]);
    is_woken(&mut walk, OTHER, (300, 340));
    let found = breakdown(&walk, SampleSpan::Lateness, 250_420).unwrap();
    let parts = shape(&found);
    assert_eq!(parts[0], (PathStage::Interrupt, Cause::Unseen, 250_000));
    assert_eq!(parts.iter().map(|part| part.2).sum::<i64>(), 250_420);
    assert_eq!(found.culprit, Some(0));
}

#[test]
fn soft_interrupts_are_a_threads_work_on_rt() {
    let mut walk = walk(&[(ONE, USER, 10), (THIRD, SOFTIRQS, 50), (OTHER, USER, 10)]);
    walk.clocks = readings(&[5, 70]);
    for (preemption, cause) in [
        (Preemptibility::Full, Cause::Softirq),
        (Preemptibility::Rt, Cause::OtherThread),
    ] {
        let breakdown = breakdown_on(preemption, &walk, SampleSpan::Handover, 65).unwrap();
        assert_eq!(shape(&breakdown)[1], (PathStage::Call, cause, 50));
    }
}

#[test]
fn what_the_end_of_a_switch_calls_cleans_up_but_for_its_lock() {
    let mut walk = walk(&[
        (ONE, USER, 10),
        (ONE, SCHEDULE, 20),
        (OTHER, SWITCH_END, 5),
        (OTHER, UNLOCK, 7),
        (OTHER, DROP, 300),
        (OTHER, INTERRUPT, 80),
        (OTHER, FUTEX, 9),
        (OTHER, USER, 10),
    ]);
    for span in 3..6 {
        call_from(&mut walk, span, &[SWITCH_END]);
    }
    walk.clocks = readings(&[10, 441]);
    let breakdown = breakdown(&walk, SampleSpan::Handover, 431).unwrap();
    assert_eq!(
        shape(&breakdown)[1..],
        [
            (PathStage::Return, Cause::Path, 12),
            (PathStage::Return, Cause::CleanUp, 300),
            (PathStage::Return, Cause::HardIrq, 80),
            (PathStage::Return, Cause::Path, 9),
            (PathStage::User, Cause::Path, 10),
        ]
    );
    assert_eq!(breakdown.culprit, Some(2));
    assert_eq!(breakdown.parts[2].by.as_deref(), Some("__mmdrop"));
}

#[test]
fn another_thread_that_cleans_up_stands_in_the_way_and_its_being_preempted_does_not() {
    let mut walk = walk(&[
        (OTHER, USER, 100),
        (OTHER, INTERRUPT, 20),
        (OTHER, SCHEDULE, 10),
        (THIRD, SWITCH_END, 5),
        (THIRD, DROP, 300),
        (THIRD, SCHEDULE, 40),
        (ONE, USER, 10),
    ]);
    walk.clocks = readings(&[485]);
    is_woken(&mut walk, ONE, (100, 115));
    call_from(&mut walk, 3, &[SCHEDULE]);
    call_from(&mut walk, 4, &[SCHEDULE, SWITCH_END]);
    call_from(&mut walk, 5, &[SCHEDULE, SWITCH_END, DROP]);
    let found = breakdown(&walk, SampleSpan::Lateness, 385).unwrap();
    assert_eq!(
        shape(&found)[1..4],
        [
            (PathStage::Switch, Cause::Scheduler, 15),
            (PathStage::Switch, Cause::CleanUp, 300),
            (PathStage::Switch, Cause::Scheduler, 40),
        ]
    );
    let culprit = &found.parts[found.culprit.unwrap()];
    assert_eq!(culprit.cause, Cause::CleanUp);
    assert_eq!(culprit.by.as_deref(), Some("__mmdrop"));
}

#[test]
fn a_window_that_is_not_the_samples_tells_nothing() {
    let mut walk = walk(&[(ONE, USER, 100), (OTHER, USER, 100)]);
    walk.clocks = readings(&[20, 150]);
    let handover = |late| breakdown(&walk, SampleSpan::Handover, late);
    assert!(handover(130).is_ok());
    assert!(handover(133).is_ok(), "rounding");
    for late in [100, 134, 200] {
        assert_eq!(handover(late), Err(Unexplained::NoBegin), "{late}");
    }
    walk.clocks.clear();
    let gap = breakdown(&walk, SampleSpan::Gap, 10);
    assert_eq!(gap, Err(Unexplained::NoClock));
}

#[test]
fn what_takes_the_cpu_in_a_gap_is_told_with_what_it_did_and_how_long() {
    let mut walk = walk(&[
        (ONE, USER, 10),
        (ONE, INTERRUPT, 80),
        (ONE, SOFTIRQS, 20),
        (THIRD, DROP, 300),
        (ONE, USER, 10),
    ]);
    // The soft interrupt is the interrupt's, and does what was asked for.
    let (interrupt, softirqs) = (walk.spans[1].top, walk.spans[2].top);
    walk.activations[softirqs as usize].parent = Some(interrupt);
    let asked = walk.activations.len() as Number;
    let mut activation = Activation::of(DROP as u32, Some(softirqs), ONE);
    activation.by_pointer = true;
    walk.activations.push(activation);
    walk.spans[2].top = asked;
    walk.clocks = readings(&[5, 420]);
    let told = |breakdown: &Breakdown| {
        let arrivals = breakdown.arrivals.iter();
        let told = arrivals.map(|one| (one.entry.clone(), one.did.clone(), one.own.0));
        told.collect::<Vec<_>>()
    };
    let gap = breakdown(&walk, SampleSpan::Gap, 415).unwrap();
    let expected = [
        ("apic_timer_interrupt", vec!["__mmdrop".to_owned()], 100),
        ("(unnamed thread)", Vec::new(), 300),
    ];
    let expected = expected.map(|(entry, did, own)| (entry.to_owned(), did, own));
    assert_eq!(told(&gap), expected);
    // Called by its name it is a part of the interrupt only.
    walk.activations[asked as usize].by_pointer = false;
    let gap = breakdown(&walk, SampleSpan::Gap, 415).unwrap();
    assert_eq!(told(&gap)[0].1, [] as [&str; 0]);
    // What is no gap has none.
    let late = breakdown(&walk, SampleSpan::Lateness, 415).unwrap();
    assert_eq!(told(&late), []);
}

/// Makes what runs in a span entered at its start.
fn is_entered(walk: &mut Walk, span: usize) -> Number {
    let Span { top, from, .. } = walk.spans[span];
    walk.activations[top as usize].begin = Some(from);
    top
}

fn wakes(walk: &mut Walk, span: usize, task: Task) {
    let Span {
        top, from, length, ..
    } = walk.spans[span];
    walk.wakes.push(Wake {
        at: from + u64::from(length),
        cpu: 0,
        by: top,
        bases: [task].into(),
    });
}

/// A frame whose card is served by a thread, which the sender keeps waiting.
fn frame() -> Walk {
    let mut walk = walk(&[
        (ONE, USER, 10),
        (ONE, SEND, 100),
        (ONE, QUEUE, 20),
        (ONE, DRIVE, 30),
        (ONE, INTERRUPT, 28),
        (ONE, INTERRUPT, 12),
        (ONE, DRIVE, 50),
        (ONE, SCHEDULE, 10),
        (THIRD, SEND, 2),
        (THIRD, ASK, 15),
        (THIRD, SERVE, 25),
        (THIRD, TAKE, 35),
        (THIRD, SEND, 5),
        (THIRD, SCHEDULE, 20),
        (OTHER, SCHEDULE, 10),
        (OTHER, SEND, 25),
        (OTHER, USER, 10),
    ]);
    walk.clocks = readings(&[10, walk.total]);
    for span in [2, 3, 4, 9, 11] {
        is_entered(&mut walk, span);
    }
    wakes(&mut walk, 4, THIRD);
    wakes(&mut walk, 11, OTHER);
    let serve = is_entered(&mut walk, 10);
    let take = walk.spans[11].top as usize;
    walk.activations[take].parent = Some(serve);
    walk
}

#[test]
fn a_frame_goes_from_stage_to_stage_and_they_add_up() {
    let found = breakdown(&frame(), SampleSpan::Handover, 397).unwrap();
    assert_eq!(
        shape(&found),
        [
            (PathStage::Send, Cause::Path, 100),
            (PathStage::Queue, Cause::Path, 20),
            (PathStage::Driver, Cause::Path, 30),
            (PathStage::CardIrq, Cause::Path, 28),
            (PathStage::IrqThread, Cause::HardIrq, 12),
            (PathStage::IrqThread, Cause::OtherThread, 50),
            (PathStage::IrqThread, Cause::Scheduler, 10),
            (PathStage::Napi, Cause::Path, 42),
            (PathStage::Socket, Cause::Path, 35),
            (PathStage::Switch, Cause::OtherThread, 5),
            (PathStage::Switch, Cause::Scheduler, 20),
            (PathStage::Return, Cause::Path, 35),
            (PathStage::User, Cause::Path, 10),
        ]
    );
    let sum = found.parts.iter().map(|part| part.length.0).sum::<i64>();
    assert_eq!(sum, 397);
}

/// The card is already being served when the frame comes: it has no interrupt of its own.
#[test]
fn a_frame_that_finds_its_card_served_has_no_interrupt() {
    let mut walk = frame();
    let ask = walk.spans[9].top as usize;
    walk.activations[ask].begin = Some(0);
    let stages: Vec<PathStage> = breakdown(&walk, SampleSpan::Handover, 397)
        .unwrap()
        .parts
        .iter()
        .map(|part| part.stage)
        .collect();
    assert!(stages.contains(&PathStage::Napi));
    let own = [PathStage::CardIrq, PathStage::IrqThread];
    assert!(
        !stages.iter().any(|stage| own.contains(stage)),
        "{stages:?}"
    );
}

/// A wake-up is no frame's if nobody took a frame from a card.
#[test]
fn a_wake_up_by_another_thread_is_a_call_and_no_frame() {
    let mut walk = frame();
    let take = walk.spans[11].top as usize;
    walk.activations[take].func = FUTEX as u32;
    let found = breakdown(&walk, SampleSpan::Handover, 397).unwrap();
    assert_eq!(found.parts[0].stage, PathStage::Call);
    let later = [PathStage::Call, PathStage::Return, PathStage::User];
    let known = |part: &Part| later.contains(&part.stage);
    assert!(found.parts.iter().all(known));
}

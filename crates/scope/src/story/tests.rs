//! Stories of walks that are made up.

use super::*;
use crate::names::Kind;
use crate::walk::{Activation, Number, Span, Task};

const NAMES: [(&str, Kind); 10] = [
    ("program", Kind::User),
    ("entry_SYSCALL_64", Kind::Syscall),
    ("futex_lock_pi", Kind::Plain),
    ("__schedule", Kind::Scheduler),
    ("asm_sysvec_apic_timer_interrupt", Kind::Interrupt),
    ("asm_exc_page_fault", Kind::Exception),
    ("handle_softirqs", Kind::Softirq),
    ("finish_task_switch.isra.0", Kind::SwitchEnd),
    ("_raw_spin_unlock", Kind::Lock),
    ("__mmdrop", Kind::Plain),
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

const ONE: Task = 0xa;
const OTHER: Task = 0xb;
const THIRD: Task = 0xc;

/// A walk in which these ran so long, one after the other.
fn walk(ran: &[(Task, usize, u32)]) -> Walk {
    let mut walk = Walk {
        first: ran[0].0,
        ..Walk::default()
    };
    for (task, func, length) in ran.iter().copied() {
        if walk.spans.last().is_some_and(|last| last.task != task) {
            walk.switches.push((walk.total, task));
        }
        let number = walk.activations.len() as Number;
        walk.activations
            .push(Activation::of(USER as u32, None, task));
        if func != USER {
            let function = Activation::of(func as u32, Some(number), task);
            walk.activations.push(function);
        }
        walk.spans.push(Span {
            from: walk.total,
            length,
            top: walk.activations.len() as Number - 1,
            task,
            user: func == USER,
            irqs_off: None,
            preempt_off: None,
            address: 0,
        });
        walk.total += u64::from(length);
    }
    walk
}

fn story(walk: &Walk, measure: Measure, late: i64) -> Result<Story, Untold> {
    story_on(Preemption::Full, walk, measure, late)
}

fn story_on(
    preemption: Preemption,
    walk: &Walk,
    measure: Measure,
    late: i64,
) -> Result<Story, Untold> {
    let names = NAMES.map(|(text, kind)| Name {
        text: text.to_owned(),
        kind,
    });
    let about = Circumstances {
        clock: GuestClock::new(1, 1_000_000).unwrap(),
        measure,
        late: Nanos(late),
        ends_before: Nanos::ZERO,
        preemption,
    };
    tell(walk, &names, about)
}

fn told(story: &Story) -> Vec<(Stage, Cause, i64)> {
    let parts = story.parts.iter();
    parts
        .map(|part| (part.stage, part.cause, part.length.0))
        .collect()
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
    walk.clocks = vec![3, 10, 420];
    let story = story(&walk, Measure::Handover, 410).unwrap();
    assert_eq!(
        told(&story),
        [
            (Stage::Call, Cause::Way, 105),
            (Stage::Call, Cause::HardIrq, 80),
            (Stage::Call, Cause::Way, 30),
            (Stage::Call, Cause::Scheduler, 30),
            (Stage::Call, Cause::OtherThread, 100),
            (Stage::Call, Cause::Scheduler, 20),
            (Stage::Return, Cause::Way, 35),
            (Stage::User, Cause::Way, 10),
        ]
    );
    let threads: Vec<&str> = story
        .parts
        .iter()
        .map(|part| part.thread.as_str())
        .collect();
    assert_eq!((threads[0], threads[4]), ("program (begins)", "program"));
    assert_eq!(threads[7], "program (ends)");
    assert_eq!(story.culprit, Some(4));
    assert_eq!(story.notes, Vec::<String>::new());
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
    walk.clocks = vec![5, 10, 142];
    let story = story(&walk, Measure::Gap, 132).unwrap();
    assert_eq!(
        told(&story),
        [
            (Stage::Interrupt, Cause::Way, 5),
            (Stage::Return, Cause::HardIrq, 80),
            (Stage::Return, Cause::Way, 2),
            (Stage::Return, Cause::Exception, 40),
            (Stage::User, Cause::Way, 5),
        ]
    );
    assert_eq!(story.culprit, Some(1));
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
    gap.clocks = vec![5, 137];
    let of_gap = story(&gap, Measure::Gap, 132).unwrap();
    assert_eq!((of_gap.culprit, of_gap.held()), (Some(1), Nanos(80)));

    let mut handover = walk(&[
        (ONE, USER, 10),
        (THIRD, FUTEX, 60),
        (THIRD, INTERRUPT, 80),
        (THIRD, FUTEX, 40),
        (OTHER, USER, 10),
    ]);
    handover.clocks = vec![5, 200];
    let story = story(&handover, Measure::Handover, 195).unwrap();
    assert_eq!((story.culprit, story.held()), (Some(1), Nanos(100)));
}

#[test]
fn soft_interrupts_are_a_threads_work_on_rt() {
    let mut walk = walk(&[(ONE, USER, 10), (THIRD, SOFTIRQS, 50), (OTHER, USER, 10)]);
    walk.clocks = vec![5, 70];
    for (preemption, cause) in [
        (Preemption::Full, Cause::Softirq),
        (Preemption::Rt, Cause::OtherThread),
    ] {
        let story = story_on(preemption, &walk, Measure::Handover, 65).unwrap();
        assert_eq!(told(&story)[1], (Stage::Call, cause, 50));
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
    for span in &walk.spans[3..6] {
        let top = span.top as usize;
        let parent = walk.activations[top].parent;
        let end = Activation::of(SWITCH_END as u32, parent, OTHER);
        walk.activations[top].parent = Some(walk.activations.len() as Number);
        walk.activations.push(end);
    }
    walk.clocks = vec![10, 441];
    let story = story(&walk, Measure::Handover, 431).unwrap();
    assert_eq!(
        told(&story)[1..],
        [
            (Stage::Return, Cause::Way, 12),
            (Stage::Return, Cause::CleanUp, 300),
            (Stage::Return, Cause::HardIrq, 80),
            (Stage::Return, Cause::Way, 9),
            (Stage::User, Cause::Way, 10),
        ]
    );
    assert_eq!(story.culprit, Some(2));
    assert_eq!(story.parts[2].by.as_deref(), Some("__mmdrop"));
}

#[test]
fn a_window_that_is_not_the_samples_tells_nothing() {
    let mut walk = walk(&[(ONE, USER, 100), (OTHER, USER, 100)]);
    walk.clocks = vec![20, 150];
    assert!(story(&walk, Measure::Handover, 130).is_ok());
    assert!(story(&walk, Measure::Handover, 133).is_ok(), "rounding");
    for late in [100, 134, 200] {
        let untold = story(&walk, Measure::Handover, late).map(|_| ());
        assert_eq!(untold, Err(Untold::NoBegin), "{late}");
    }
    walk.clocks.clear();
    assert_eq!(
        story(&walk, Measure::Gap, 10).map(|_| ()),
        Err(Untold::NoClock)
    );
}

// SPDX-License-Identifier: MIT OR Apache-2.0

use punctual_model::capture::{Context, Happened, NoiseKind, Task, TraceEvent};
use punctual_model::probe::SampleSpan;
use punctual_model::{CpuId, Nanos, Sample};

use super::*;
use crate::breakdown::PathStage;

const OWN: u32 = 7;

fn task(comm: &str, pid: u32) -> Task {
    let comm = comm.to_owned();
    Task { comm, pid }
}

fn event(micros: i64, pid: u32, what: Happened, stack: &[&str]) -> TraceEvent {
    TraceEvent {
        at: Nanos::from_micros(micros),
        task: task("a", pid),
        context: Context::default(),
        what,
        stack: stack.iter().map(|one| (*one).to_owned()).collect(),
    }
}

fn entry(micros: i64, depth: u8) -> TraceEvent {
    let name = "local_timer".to_owned();
    let mut event = event(micros, 3, Happened::IrqEntry { name }, &[]);
    event.context.preempt_depth = depth;
    event
}

fn waking(micros: i64, stack: &[&str]) -> TraceEvent {
    let task = task("punctual", OWN);
    event(micros, 3, Happened::Waking { task }, stack)
}

fn exit(micros: i64) -> TraceEvent {
    let name = "local_timer".to_owned();
    event(micros, 3, Happened::IrqExit { name }, &[])
}

fn switch(micros: i64, stack: &[&str]) -> TraceEvent {
    let (prev, next) = (task("a", 3), task("punctual", OWN));
    let state = "R".to_owned();
    event(micros, 3, Happened::Switch { prev, state, next }, stack)
}

fn told(events: Vec<TraceEvent>, micros: i64, preemption: Preemptibility) -> Vec<Part> {
    told_of(SampleSpan::Lateness, events, micros, preemption)
}

fn told_of(
    span: SampleSpan,
    events: Vec<TraceEvent>,
    micros: i64,
    preemption: Preemptibility,
) -> Vec<Part> {
    told_by(Tracer::Events, span, events, micros, preemption)
}

fn told_by(
    tracer: Tracer,
    span: SampleSpan,
    events: Vec<TraceEvent>,
    micros: i64,
    preemption: Preemptibility,
) -> Vec<Part> {
    let nothing = nothing_captured();
    let capture = Capture {
        sample: Sample {
            value: Nanos::from_micros(micros),
            ..nothing.sample
        },
        tracer,
        events,
        ..nothing
    };
    Timeline::new(&capture, span, preemption).unwrap().parts()
}

/// Creates the event of something that ran from one moment to another, by `osnoise`.
fn noise(kind: NoiseKind, name: &str, from: i64, to: i64) -> TraceEvent {
    let what = Happened::Noise {
        kind,
        name: name.to_owned(),
        start: Nanos::from_micros(from),
        ran: Nanos::from_micros(to - from),
    };
    event(to, OWN, what, &[])
}

/// Returns the longest part, in words, and checks that all parts add up.
fn longest(parts: &[Part], micros: i64) -> (PathStage, Cause, Option<&str>) {
    let sum = parts
        .iter()
        .fold(Nanos::ZERO, |sum, part| sum + part.length);
    assert_eq!(sum, Nanos::from_micros(micros));
    let part = parts.iter().max_by_key(|part| part.length).unwrap();
    let function = part.main.as_ref().map(|main| main.function.as_str());
    (part.stage, part.cause, function)
}

const IRQ: [&str; 3] = [
    "try_to_wake_up",
    "hrtimer_wakeup",
    "asm_sysvec_apic_timer_interrupt",
];

/// Checks that another thread is blamed for the longest part of these events.
fn assert_other_thread(events: Vec<TraceEvent>) {
    let (span, preemption) = (SampleSpan::Lateness, Preemptibility::Rt);
    let parts = told_by(Tracer::Osnoise, span, events, 160, preemption);
    let expected = (PathStage::Switch, Cause::OtherThread, None);
    assert_eq!(longest(&parts, 160), expected);
}

#[test]
fn of_several_interrupts_the_first_of_a_timer_has_woken_it() {
    let timer = |from| noise(NoiseKind::Irq, "local_timer:236", from, from + 2);
    let events = vec![
        timer(1),
        timer(146),
        noise(NoiseKind::Thread, "stall:9", -50, 155),
    ];
    assert_other_thread(events);
}

/// The number behind an interrupt's name is not a thread's.
#[test]
fn an_interrupt_whose_number_is_that_of_the_thread_is_not_its_own() {
    let events = vec![
        noise(NoiseKind::Irq, &format!("local_timer:{OWN}"), 1, 3),
        noise(NoiseKind::Thread, "stall:9", -50, 155),
    ];
    assert_other_thread(events);
}

/// On arm64 the entry of an interrupt is two functions of a stack.
#[test]
fn the_interrupted_code_is_below_all_functions_of_an_entry() {
    for entry in [
        "el1h_64_irq",
        "el1h_64_fiq",
        "el0t_64_irq",
        "el0t_64_fiq",
        "el0t_32_irq",
        "el0t_32_fiq",
    ] {
        let handler = format!("{entry}_handler");
        let with = |above: &[&str], below: &[&str]| -> Vec<String> {
            let own = [handler.as_str(), entry];
            let all = above.iter().chain(&own).chain(below);
            all.map(|one| (*one).to_owned()).collect()
        };
        let of_user = with(&["timerlat_irq"], &[]);
        assert!(stack::has_entry(&of_user), "{entry}");
        assert_eq!(stack::interrupted(&of_user), None);
        let of_kernel = with(&["timerlat_irq"], &["bad_driver_read", "vfs_read"]);
        let place = stack::interrupted(&of_kernel).unwrap();
        assert_eq!(place.function, "bad_driver_read");
        let above = ["__schedule", "preempt_schedule_irq", "el1_interrupt"];
        let switch = with(&above, &["bad_driver_read"]);
        let place = stack::switched(&switch).unwrap();
        assert_eq!(place.function, "bad_driver_read");
    }
}

#[test]
fn a_masked_interrupt_is_the_fault_of_the_code_that_it_came_to() {
    let with = |more: &[&'static str]| [&IRQ[..], more].concat();
    let locked = with(&["_raw_spin_unlock_irqrestore", "free_one_page", "free_pages"]);
    for (stack, expected) in [
        (locked, (Cause::IrqsOff, Some("free_one_page"))),
        (with(&[]), (Cause::Outside, None)),
    ] {
        let events = vec![
            entry(150, 0),
            waking(151, &stack),
            exit(155),
            switch(157, &[]),
        ];
        let parts = told(events, 160, Preemptibility::Full);
        let (cause, function) = expected;
        assert_eq!(
            longest(&parts, 160),
            (PathStage::Interrupt, cause, function)
        );
    }
}

#[test]
fn whoever_keeps_the_cpu_is_told_from_the_stack_of_the_switch() {
    let lock = [
        "__schedule",
        "preempt_schedule",
        "_raw_spin_unlock",
        "zap_pte",
        "exit_mm",
    ];
    let plain = ["__schedule", "preempt_schedule_thunk", "zap_pte", "exit_mm"];
    let asked = ["__schedule", "__cond_resched", "zap_pte", "exit_mm"];
    for (stack, depth, preemption, cause) in [
        (&lock[..], 1, Preemptibility::Full, Cause::Lock),
        (&plain, 1, Preemptibility::Full, Cause::PreemptOff),
        (&asked, 0, Preemptibility::Asked, Cause::NotPreemptible),
    ] {
        let stack_of_irq = [&IRQ[..], &["zap_pte"]].concat();
        let events = vec![
            entry(0, depth),
            waking(1, &stack_of_irq),
            exit(4),
            switch(154, stack),
        ];
        let parts = told(events, 160, preemption);
        let expected = (PathStage::Switch, cause, Some("zap_pte"));
        assert_eq!(longest(&parts, 160), expected);
    }
}

#[test]
fn an_interrupt_and_another_thread_are_told_by_their_names() {
    let device = |micros, what| event(micros, 3, what, &[]);
    let name = || "eth0".to_owned();
    let events = vec![
        device(-1, Happened::IrqEntry { name: name() }),
        device(100, Happened::IrqExit { name: name() }),
        entry(101, 0),
        waking(102, &IRQ),
        exit(103),
        switch(104, &[]),
    ];
    let parts = told(events, 110, Preemptibility::Full);
    let expected = (PathStage::Interrupt, Cause::HardIrq, Some("eth0"));
    assert_eq!(longest(&parts, 110), expected);
    let (prev, next) = (task("a", 3), task("other", 9));
    let state = "R".to_owned();
    let other = event(5, 3, Happened::Switch { prev, state, next }, &[]);
    let mut last = switch(95, &[]);
    last.task = task("other", 9);
    let events = vec![entry(0, 0), waking(1, &IRQ), exit(4), other, last];
    let parts = told(events, 100, Preemptibility::Full);
    let expected = (PathStage::Switch, Cause::OtherThread, None);
    assert_eq!(longest(&parts, 100), expected);
    let part = parts.iter().max_by_key(|part| part.length).unwrap();
    assert_eq!(part.thread, "other-9");
}

#[test]
fn of_several_threads_the_one_that_ran_longest_is_the_culprit() {
    let to = |micros, pid: u32, comm: &str| {
        let (prev, next) = (task("any", 1), task(comm, pid));
        let state = "R".to_owned();
        event(micros, 1, Happened::Switch { prev, state, next }, &[])
    };
    let events = vec![
        to(1, 3, "a"),
        to(31, 4, "b"),
        to(51, 3, "a"),
        to(56, 4, "b"),
        to(76, OWN, "punctual"),
    ];
    let parts = told_of(SampleSpan::Gap, events, 78, Preemptibility::Full);
    let culprit = culprit_of(&parts, Nanos::from_micros(78)).unwrap();
    assert_eq!(parts[culprit].thread, "b-4");
}

/// The thread that watches is interrupted by the tick, and loses its CPU after it.
#[test]
fn what_comes_in_between_two_readings_is_told_by_its_name() {
    let own = |mut event: TraceEvent| {
        event.task = task("punctual", OWN);
        event
    };
    let change = |micros, from: (&str, u32), to: (&str, u32)| {
        let (prev, next) = (task(from.0, from.1), task(to.0, to.1));
        let state = "R".to_owned();
        own(event(
            micros,
            from.1,
            Happened::Switch { prev, state, next },
            &[],
        ))
    };
    let events = vec![
        own(entry(2, 0)),
        own(exit(9)),
        change(10, ("punctual", OWN), ("a", 3)),
        change(60, ("a", 3), ("punctual", OWN)),
    ];
    let parts = told_of(SampleSpan::Gap, events, 62, Preemptibility::Full);
    let shape: Vec<_> = parts
        .iter()
        .map(|part| (part.stage, part.cause, part.length.0 / 1_000))
        .collect();
    assert_eq!(
        shape,
        [
            (PathStage::Interrupt, Cause::Path, 2),
            (PathStage::Return, Cause::HardIrq, 7),
            (PathStage::Return, Cause::Path, 1),
            (PathStage::Return, Cause::OtherThread, 50),
            (PathStage::User, Cause::Path, 2),
        ]
    );
    assert_eq!(parts[3].thread, "a-3");
}

#[test]
fn a_switch_that_was_not_noted_is_where_others_were_seen_last() {
    let events = vec![entry(150, 0), waking(151, &IRQ), exit(155)];
    let parts = told(events, 160, Preemptibility::Full);
    assert_eq!(longest(&parts, 160).0, PathStage::Interrupt);
    let last = parts.last().unwrap();
    assert_eq!(
        (last.stage, last.from),
        (PathStage::Return, Nanos::from_micros(155))
    );
}

/// A ring that was overwritten, or written in a form that nobody reads, is no quiet machine.
#[test]
fn what_was_lost_of_a_capture_is_said() {
    let why = |lost| {
        let capture = Capture {
            lost,
            ..nothing_captured()
        };
        let told = Timeline::new(&capture, SampleSpan::Lateness, Preemptibility::Rt);
        told.err().unwrap()
    };
    assert_eq!(why(0), "the tracer's ring held nothing of it");
    assert_eq!(
        why(2006),
        "2006 events of it were lost or could not be read, and none is left"
    );
}

fn nothing_captured() -> Capture {
    Capture {
        sample: Sample {
            seq: 1,
            at: Nanos(0),
            value: Nanos::from_micros(10),
        },
        cpu: CpuId(0),
        pid: OWN,
        tracer: Tracer::Events,
        pause: Nanos(0),
        lost: 0,
        events: Vec::new(),
        longest: None,
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two CPUs that take turns.

use super::*;

/// Surveys what the CPUs execute, one turn after another, each from user space on.
fn survey_turns(turns: &[(u32, Vec<Step>)]) -> Survey {
    let symbols = Symbols::parse(Architecture::Amd64, KALLSYMS).unwrap();
    let programs = UserSymbols::default();
    let names = || Names::new(&symbols, &programs);
    let mut tracer = RunTracer::new(names, Preemptibility::Full, 2);
    tracer.take(&Item::Words(vec![Word::Marker(Marker::Step.kind())]));
    let mut number = 0;
    for (cpu, steps) in turns {
        tracer.take(&Item::Words(vec![Word::Turn(*cpu)]));
        for Step(address, code, ran) in steps {
            tracer.take(&Item::Block(block(number, *address, code)));
            tracer.take(&Item::Words(vec![Word::Ran {
                block: number,
                instructions: *ran as u32,
            }]));
            number += 1;
        }
    }
    tracer.finish(GuestClock::new(1, 1_000_000).unwrap())
}

/// CPU 1 masks interrupts and wants a lock; CPU 0 gives it back after 150 instructions.
fn turns() -> Vec<(u32, Vec<Step>)> {
    let begin = vec![
        nops(USER, 1),
        all(SYSCALL, &[STI, CALL]),
        all(WORKER, &[CLI, NOP, CALL]),
        all(LOCK, &[INC]),
        all(SPIN, &[PAUSE]),
    ];
    let end = vec![
        nops(WORKER + 0x12, 2),
        all(UNLOCK, &[DEC]),
        all(WORKER + 0x30, &[STI, CLI, SYSRET]),
        nops(USER, 1),
    ];
    vec![
        (0, vec![nops(USER, 1), all(SYSCALL, &[STI, CALL])]),
        (1, begin),
        (0, vec![nops(TIMERS, 100)]),
        (1, vec![all(SPIN, &[PAUSE])]),
        (0, vec![nops(WORKER, 50)]),
        (1, vec![all(LOCK + 0x10, &[RET]), nops(WORKER + 0x10, 2)]),
        // Its turn is over, and it waits for nobody.
        (0, vec![nops(WORKER, 30)]),
        (1, end),
    ]
}

fn of(survey: &Survey, what: SectionKind, cpu: u32) -> Vec<Place> {
    let places = survey.hotspots.iter();
    let places = places.filter(|place| place.what == what && place.cpu == cpu);
    let place = |p: &Hotspot| (p.function.clone(), p.count, p.longest.0, p.sum.0);
    places.map(place).collect()
}

#[test]
fn a_section_is_its_own_cpus_and_what_that_one_waits_for() {
    let survey = survey_turns(&turns());
    // Two pauses, and all that the other one did meanwhile.
    let spun = [place("native_queued_spin_lock_slowpath", 1, 152, 152)];
    assert_eq!(of(&survey, SectionKind::Spinning, 1), spun);
    // `nop`, `call`, `incl`, the spin, `ret`, 2, 2, `decl`, `sti`; then `sysret`.
    let off = [place("worker", 2, 162, 163)];
    assert_eq!(of(&survey, SectionKind::IrqsOff, 1)[..1], off);
    // From behind `incl`: the spin, `ret`, 2, 2, `decl`.
    let locked = [place("worker", 1, 158, 158)];
    assert_eq!(of(&survey, SectionKind::PreemptOff, 1), locked);
    let places = survey.hotspots.iter();
    let spun: Vec<_> = places.filter(|p| p.what == SectionKind::Spinning).collect();
    let [spun] = spun[..] else { panic!("{spun:?}") };
    assert_eq!(spun.awaited, Some((0, "worker".to_owned())));
    assert_eq!((survey.cpus, survey.mended), (2, 0));
    // Each instruction once.
    assert_eq!(survey.instructions, 3 + 8 + 100 + 1 + 50 + 3 + 30 + 7);
    assert_eq!(survey.unknown, [] as [u32; 0]);
}

#[test]
fn who_does_not_wait_is_not_charged_for_others_turns() {
    let mut turns = turns();
    for (_, steps) in &mut turns {
        for Step(_, code, _) in steps {
            code.iter_mut()
                .filter(|code| **code == PAUSE)
                .for_each(|code| *code = &[0x66, 0x90]);
        }
    }
    let survey = survey_turns(&turns);
    assert_eq!(of(&survey, SectionKind::Spinning, 1), []);
    assert_eq!(of(&survey, SectionKind::IrqsOff, 1)[0].2, 12);
}

#[test]
fn of_a_cpu_that_was_never_in_user_space_nothing_is_told() {
    let survey = survey_turns(&[
        (0, vec![nops(USER, 1)]),
        (1, vec![all(WORKER, &[CLI, NOP, STI])]),
    ]);
    assert_eq!(survey.unknown, [1]);
    assert_eq!(survey.hotspots, []);
}

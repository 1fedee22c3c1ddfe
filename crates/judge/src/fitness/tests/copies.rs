// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that are there more than once, and what stands beside a broken limit.

use super::*;

#[test]
fn the_same_seed_twice_is_one_run_in_virtual_time() {
    let mut all = runs("rt", 1);
    for _ in 0..9 {
        all.push(all[0].clone());
    }
    let answer = only(WORST, &all);
    assert_eq!((answer.runs, answer.fitness), (1, Fitness::Undecided));
}

/// Two runs of one seed and one past are not two draws, and a late sample in either counts.
#[test]
fn a_seed_with_its_own_past_named_adds_no_run_and_hides_no_sample() {
    let named = |worst: i64| {
        let mut all = runs("rt", 5);
        let mut again = synthetic::run("rt", 1, &[5_000, worst]);
        again.id = "again".into();
        again.plan = format!(
            "past = 1\n{}",
            again.plan.replace("samples = 2", "samples = 100")
        );
        again.recordings[0] = recording(&[vec![5_000; 99], vec![worst]].concat(), 1);
        again.recordings[0].key = all[0].recordings[0].key.clone();
        all.push(again);
        let limit = limits(WORST);
        let judgement = judge(&limit, &all, &Baselines::new()).unwrap();
        judgement.answers[0].fitness
    };
    assert_eq!(named(100_000), Fitness::Undecided);
    assert_eq!(named(100_001), Fitness::Unfit);
}

#[test]
fn copies_that_say_different_things_of_their_loads_are_a_gap_in_any_order() {
    let first = runs("rt", 5);
    let mut other = first.clone();
    other[2].id = "x".into();
    other[2].steps[0].work[0].span = Nanos(1);
    for all in [
        [first.clone(), other.clone()].concat(),
        [other, first].concat(),
    ] {
        let answer = only(WORST, &all);
        assert_eq!(answer.fitness, Fitness::Undecided);
        assert!(
            answer.reason().contains("different things"),
            "{}",
            answer.reason()
        );
    }
}

#[test]
fn a_broken_limit_stays_broken_whatever_stands_beside_it() {
    let sound = runs("rt", 5);
    let late = |id: &str, seed: u64, change: &dyn Fn(&mut Run)| {
        let mut run = synthetic::run("rt", seed, &[200_000]);
        run.id = id.into();
        change(&mut run);
        run
    };
    let plan = |run: &mut Run| run.plan = run.plan.replace("[0]", "[0]\npriority = 7");
    let memory = |run: &mut Run| {
        if let MachineRecord::Virtual(machine) = &mut run.machine {
            machine.memory_mib = 512;
        }
    };
    let changes: [&dyn Fn(&mut Run); 3] = [&plan, &memory, &|_| {}];
    for change in changes {
        let mut all = sound.clone();
        all.push(late("late", 3, change));
        for turn in 0..all.len() {
            all.rotate_left(turn);
            let judgement = judge(&limits(WORST), &all, &Baselines::new()).unwrap();
            assert_eq!(judgement.fitness(), Fitness::Unfit, "{turn}");
            let named = format!("{WORST}\nsubject = \"rt\"");
            let judgement = judge(&limits(&named), &all, &Baselines::new()).unwrap();
            assert_eq!(judgement.fitness(), Fitness::Unfit, "{turn}");
        }
    }
}

#[test]
fn a_copy_that_leaves_out_what_speaks_against_a_run_hides_nothing() {
    let all = on_a_machine(runs("rt", 5), "virtualised", true);
    let mut copies = on_a_machine(runs("rt", 5), "virtualised", false);
    for copy in &mut copies {
        copy.id = format!("a-{}", copy.id);
    }
    for runs in [
        [all.clone(), copies.clone()].concat(),
        [copies, all].concat(),
    ] {
        let answer = only(WORST, &runs);
        assert_eq!((answer.runs, answer.fitness), (5, Fitness::Undecided));
        assert!(
            answer.reason().contains("hypervisor"),
            "{}",
            answer.reason()
        );
    }
}

#[test]
fn a_copy_from_which_another_step_was_left_out_adds_nothing() {
    let both = |number: u64| of_steps(number, &[(0, true), (1, true)]);
    let four = on_a_machine((1..=4).map(both).collect(), "virtualised", false);
    let mut copy = four[0].clone();
    copy.id = "copy".into();
    copy.recordings.remove(1);
    let runs = [four, vec![copy]].concat();
    let named = format!("{WORST}\nvariant = \"cpu0\"");
    let answer = only(&named, &runs);
    assert_eq!((answer.runs, answer.fitness), (4, Fitness::Undecided));
}

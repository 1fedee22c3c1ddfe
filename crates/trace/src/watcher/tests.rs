// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::read::{Item, Reader};
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn window(step: u32, index: u64) -> Window {
    let cpu = None;
    Window { step, index, cpu }
}

fn watch(windows: Vec<Window>, ring: usize) -> (Watcher, Shared) {
    let out = Shared::default();
    let orders = Orders {
        ring,
        windows,
        ..Orders::default()
    };
    (Watcher::new(orders, Box::new(out.clone())), out)
}

fn items(out: &Shared) -> Vec<Item> {
    let bytes = out.0.lock().unwrap().clone();
    let mut reader = Reader::new(bytes.as_slice()).unwrap();
    std::iter::from_fn(|| reader.next_item().unwrap()).collect()
}

#[test]
fn only_the_window_is_written_with_what_ran_of_each_block() {
    let (mut watcher, out) = watch(vec![window(0, 1)], 100);
    let code: [(u64, &[u8]); 2] = [(0x10, &[0x90]), (0x11, &[0xc3])];
    assert_eq!(watcher.translated(&code), None);
    watcher.reaches(0, Marker::Step, 0);
    assert_eq!(watcher.reaches(0, Marker::Armed, 0), Change::None);
    assert_eq!(watcher.reaches(0, Marker::Taken, 0), Change::None);
    assert_eq!(watcher.reaches(0, Marker::Armed, 0), Change::Anew);
    let block = watcher.translated(&code).unwrap().block;
    watcher.begins(0, block, 0);
    watcher.begins(0, block, 2);
    watcher.accesses(1, 0x55);
    assert_eq!(watcher.reaches(0, Marker::Taken, 3), Change::Anew);
    assert_eq!(watcher.translated(&code), None);
    watcher.reaches(0, Marker::End, 3);
    let ran = |instructions| Word::Ran {
        block,
        instructions,
    };
    let access = Word::Memory {
        insn: 1,
        address: 0x55,
    };
    let found = items(&out);
    assert!(
        matches!(&found[0], Item::Block(b) if b.insns.len() == 2 && b.insns[1].address == 0x11)
    );
    assert_eq!(
        found[1..],
        [
            Item::Window {
                window: window(0, 1),
                lost: 0
            },
            Item::Words(vec![ran(2), access, ran(1)]),
            Item::End
        ]
    );
}

#[test]
fn where_everything_is_watched_the_order_is_kept() {
    let out = Shared::default();
    let orders = Orders {
        everything: true,
        ..Orders::default()
    };
    let mut watcher = Watcher::new(orders, Box::new(out.clone()));
    let block = watcher
        .translated(&[(1, &[0x90]), (2, &[0x90])])
        .unwrap()
        .block;
    watcher.reaches(0, Marker::Step, 0);
    for count in [0, 2, 4, 5, 7] {
        watcher.begins(0, block, count);
    }
    watcher.reaches(0, Marker::End, 9);
    let whole = Item::Whole(vec![block; 2]);
    let word = |word| Item::Words(vec![word]);
    let ran = |instructions| {
        word(Word::Ran {
            block,
            instructions,
        })
    };
    let marker = |marker: Marker| word(Word::Marker(marker.kind()));
    assert_eq!(
        items(&out)[1..],
        [
            marker(Marker::Step),
            whole,
            ran(1),
            Item::Whole(vec![block]),
            marker(Marker::End),
            ran(2),
            Item::End
        ]
    );
}

#[test]
fn of_several_cpus_everything_is_watched_from_the_first_step_on() {
    let out = Shared::default();
    let orders = Orders {
        everything: true,
        cpus: Some(2),
        ..Orders::default()
    };
    let mut watcher = Watcher::new(orders, Box::new(out.clone()));
    let block = watcher.translated(&[(1, &[0x90])]).unwrap().block;
    assert!(!watcher.listens());
    watcher.begins(1, block, 0);
    watcher.reaches(1, Marker::Step, 1);
    assert!(watcher.listens());
    watcher.begins(1, block, 1);
    watcher.begins(0, block, 2);
    watcher.reaches(0, Marker::End, 3);
    let word = |word| Item::Words(vec![word]);
    let ran = word(Word::Ran {
        block,
        instructions: 1,
    });
    let marker = |marker: Marker| word(Word::Marker(marker.kind()));
    assert_eq!(
        items(&out)[1..],
        [
            word(Word::Turn(1)),
            marker(Marker::Step),
            ran.clone(),
            word(Word::Turn(0)),
            marker(Marker::End),
            ran,
            Item::End
        ]
    );
}

#[test]
fn accesses_are_told_of_moves_in_the_code_that_was_named() {
    let out = Shared::default();
    let orders = Orders {
        everything: true,
        memory: vec![(0x10, 0x20)],
        ..Orders::default()
    };
    let mut watcher = Watcher::new(orders, Box::new(out));
    let (push, load): (&[u8], &[u8]) = (&[0x50], &[0x48, 0x8b, 0x07]);
    let code = [(0x0f, load), (0x10, push), (0x11, load), (0x20, load)];
    assert_eq!(watcher.translated(&code).unwrap().memory, [2]);
}

#[test]
fn a_window_that_is_too_long_loses_its_beginning_and_says_so() {
    let (mut watcher, out) = watch(vec![window(0, 0)], 3);
    watcher.reaches(0, Marker::Step, 0);
    watcher.reaches(0, Marker::Armed, 0);
    let block = watcher.translated(&[(1, &[0x90])]).unwrap().block;
    for count in 0..10 {
        watcher.begins(0, block, count);
    }
    watcher.reaches(0, Marker::Taken, 10);
    let found = items(&out);
    assert!(matches!(found[1], Item::Window { lost: 7, .. }));
    assert!(matches!(&found[2], Item::Words(words) if words.len() == 3));
}

#[test]
fn windows_are_found_by_step_and_number_and_near_ones_share_a_translation() {
    let (mut watcher, out) = watch(vec![window(1, 0), window(1, 2), window(1, 90)], 9);
    for step in 0..2 {
        watcher.reaches(0, Marker::Step, 0);
        for index in 0..100 {
            let armed = watcher.reaches(0, Marker::Armed, 0);
            let taken = watcher.reaches(0, Marker::Taken, 0);
            let anew = |at: &[u64]| step == 1 && at.contains(&index);
            assert_eq!(
                armed == Change::Anew,
                anew(&[0, 90]),
                "armed {step} {index}"
            );
            assert_eq!(
                taken == Change::Anew,
                anew(&[2, 90]),
                "taken {step} {index}"
            );
        }
    }
    let windows = items(&out).into_iter().filter_map(|item| match item {
        Item::Window { window, .. } => Some((window.step, window.index)),
        _ => None,
    });
    assert_eq!(windows.collect::<Vec<_>>(), [(1, 0), (1, 2), (1, 90)]);
}

/// Returns the windows that were written, each with the number of words in it.
fn windows(out: &Shared) -> Vec<(u64, usize)> {
    let mut found = Vec::new();
    for item in items(out) {
        match item {
            Item::Window { window, .. } => found.push((window.index, 0)),
            Item::Words(words) => found.last_mut().unwrap().1 = words.len(),
            _ => {}
        }
    }
    found
}

#[test]
fn a_window_has_the_number_of_the_samples_taken_before_it() {
    let (mut watcher, out) = watch(vec![window(0, 1)], 9);
    watcher.reaches(0, Marker::Step, 0);
    // Nothing is armed: as when threads come into their ring. Then a sample, and another.
    for marker in [Marker::Taken, Marker::Taken, Marker::Armed, Marker::Taken] {
        assert_eq!(watcher.reaches(0, marker, 0), Change::None);
    }
    assert_eq!(watcher.reaches(0, Marker::Taken, 0), Change::None);
    assert_eq!(watcher.reaches(0, Marker::Armed, 0), Change::Anew);
    assert_eq!(watcher.reaches(0, Marker::Armed, 0), Change::None);
    assert_eq!(watcher.reaches(0, Marker::Taken, 0), Change::Anew);
    assert_eq!(windows(&out), [(1, 0)]);
    // What is armed in one step is not taken in the next.
    let (mut watcher, out) = watch(vec![window(0, 0), window(1, 0)], 9);
    let in_vain = [Marker::Step, Marker::Armed, Marker::Step, Marker::Taken];
    for marker in in_vain.into_iter().chain([Marker::Armed, Marker::Taken]) {
        watcher.reaches(0, marker, 0);
    }
    assert_eq!(windows(&out), [(0, 0)]);
}

#[test]
fn what_is_armed_again_begins_at_the_last_marker_but_one() {
    let (mut watcher, out) = watch(vec![window(0, 0), window(0, 1)], 30);
    watcher.reaches(0, Marker::Step, 0);
    watcher.reaches(0, Marker::Armed, 0);
    let block = watcher.translated(&[(1, &[0x90])]).unwrap().block;
    let mut count = 0;
    let mut run = |watcher: &mut Watcher, blocks: u64| {
        for _ in 0..blocks {
            watcher.begins(0, block, count);
            count += 1;
        }
    };
    // A block is written when the next one begins: here the third of three with the marker.
    run(&mut watcher, 20);
    watcher.reaches(0, Marker::Armed, 20);
    run(&mut watcher, 3);
    watcher.reaches(0, Marker::Armed, 23);
    run(&mut watcher, 4);
    watcher.reaches(0, Marker::Taken, 27);
    // The next one may begin where this one ends, or where it was armed last before that.
    run(&mut watcher, 2);
    watcher.reaches(0, Marker::Armed, 29);
    run(&mut watcher, 6);
    watcher.reaches(0, Marker::Taken, 35);
    assert_eq!(windows(&out), [(0, 8), (1, 13)]);
    let lost = items(&out).into_iter().filter_map(|item| match item {
        Item::Window { lost, .. } => Some(lost),
        _ => None,
    });
    assert_eq!(lost.collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn what_does_not_fit_into_a_trace_leaves_it_without_an_end() {
    let ends = |act: &dyn Fn(&mut Watcher, u32)| {
        let (mut watcher, out) = watch(vec![window(0, 0)], 100);
        watcher.reaches(0, Marker::Step, 0);
        watcher.reaches(0, Marker::Armed, 0);
        let block = watcher.translated(&[(0x10, &[0x90])]).unwrap().block;
        act(&mut watcher, block);
        watcher.reaches(0, Marker::End, 1 << 30);
        items(&out).last() == Some(&Item::End)
    };
    assert!(ends(&|watcher, block| watcher.begins(0, block, 0)));
    assert!(!ends(&|watcher, block| {
        watcher.begins(0, block, 0);
        watcher.begins(0, block, 1 << 24);
    }));
    assert!(!ends(&|watcher, block| {
        watcher.begins(0, block, 5);
        watcher.begins(0, block, 4);
    }));
    let long: Vec<(u64, &[u8])> = vec![(0, &[0x90]); 1 << 16];
    assert!(!ends(&|watcher, _| {
        assert_eq!(watcher.translated(&long), None);
    }));
}

#[test]
fn an_access_that_has_no_number_ends_the_trace_and_is_not_left_out() {
    let (mut watcher, out) = watch(vec![window(0, 0)], 100);
    watcher.orders.memory = vec![(0x100, 0x101)];
    watcher.reaches(0, Marker::Step, 0);
    watcher.reaches(0, Marker::Armed, 0);
    let mut insns: Vec<(u64, &[u8])> = vec![(0, &[0x90]); 256];
    assert!(watcher.translated(&insns).is_some());
    insns.push((0x100, &[0x89, 0x00]));
    assert_eq!(watcher.translated(&insns), None);
    watcher.reaches(0, Marker::End, 0);
    assert_ne!(items(&out).last(), Some(&Item::End));
}

/// Two CPUs take turns; each of them takes samples of its own.
#[test]
fn each_cpus_samples_are_counted_alone_and_turns_are_told() {
    let of = |cpu, index| Window {
        cpu: Some(cpu),
        ..window(0, index)
    };
    let (mut watcher, out) = watch(vec![of(1, 1), of(0, 0)], 100);
    watcher.orders.cpus = Some(2);
    watcher.watching = true;
    let block = watcher.translated(&[(1, &[0x90]), (2, &[0x90])]).unwrap();
    let block = block.block;
    watcher.reaches(0, Marker::Step, 0);
    watcher.reaches(1, Marker::Armed, 0);
    assert_eq!(watcher.reaches(1, Marker::Taken, 0), Change::None);
    assert_eq!(watcher.reaches(0, Marker::Armed, 0), Change::None);
    watcher.begins(0, block, 10);
    watcher.begins(1, block, 12);
    assert_eq!(watcher.reaches(1, Marker::Armed, 13), Change::None);
    watcher.begins(0, block, 14);
    assert_eq!(watcher.reaches(0, Marker::Taken, 15), Change::None);
    watcher.begins(1, block, 16);
    assert_eq!(watcher.reaches(1, Marker::Taken, 17), Change::None);
    let ran = |instructions| Word::Ran {
        block,
        instructions,
    };
    let turn = Word::Turn;
    let written = |window| Item::Window { window, lost: 0 };
    assert_eq!(
        items(&out)[1..],
        [
            written(of(0, 0)),
            Item::Words(vec![turn(0), ran(2), turn(1), ran(2), turn(0), ran(1)]),
            written(of(1, 1)),
            Item::Words(vec![turn(1), ran(2), turn(0), ran(2), turn(1), ran(1)]),
        ]
    );
}

#[test]
fn whose_turn_it_was_is_known_where_the_beginning_is_lost() {
    let (mut watcher, out) = watch(vec![window(0, 0)], 2);
    watcher.orders.cpus = Some(2);
    watcher.watching = true;
    let block = watcher.translated(&[(1, &[0x90])]).unwrap().block;
    watcher.reaches(0, Marker::Step, 0);
    watcher.reaches(0, Marker::Armed, 0);
    for count in 0..4 {
        watcher.begins(u32::from(count > 0), block, count);
    }
    watcher.reaches(1, Marker::Taken, 4);
    let ran = Word::Ran {
        block,
        instructions: 1,
    };
    let words = Item::Words(vec![Word::Turn(1), ran, ran]);
    assert_eq!(items(&out).last(), Some(&words));
}

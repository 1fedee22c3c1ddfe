// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles each step of a run: how long each function ran, and how often it was entered.
//!
//! A profiler takes samples. Here each instruction counts, so that two profiles differ by what the
//! code did differently, and by nothing else.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use punctual_bench::virtual_bench::Machine;
use punctual_model::{Nanos, Run};
use punctual_trace::marker::Marker;
use punctual_trace::{Item, Word};

use crate::blocks::Blocks;
use crate::error::ScopeError;
use crate::explain::{Wanted, clock, programs};
use crate::guest_clock::GuestClock;
use crate::names::{CodeKind, Func, Names};
use crate::repeat::{OnEvent, Repeater};

/// The functions that ran in a step, on all CPUs and in all threads: of the kernel, the probe and
/// the load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Number of the step in the plan, from 0.
    pub step: u32,
    /// Time of all functions together. While a CPU sleeps, no function runs.
    pub all: Nanos,
    /// Each function by its name.
    pub functions: BTreeMap<String, Ran>,
}

/// The work of a function in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Time in the function itself, without those that it calls.
    pub own: Nanos,
    /// The number of times that its first instruction ran; `None` for code whose first instruction
    /// is not known, as in programs, or did not run: a thread was in it when the step began.
    pub entered: Option<u64>,
}

/// Returns the steps of a run that have the wanted recordings; an error if there are none.
pub fn steps(run: &Run, wanted: &Wanted) -> Result<Vec<u32>, ScopeError> {
    let own = run.recordings.iter().filter(|one| wanted.wants(one));
    let mut steps: Vec<u32> = own.map(|one| one.key.step).collect();
    steps.sort_unstable();
    steps.dedup();
    if steps.is_empty() {
        return Err(ScopeError::NoSuch(run.id.clone(), wanted.none_such(run)));
    }
    Ok(steps)
}

/// Repeats a run while it is watched, and profiles each of its steps, in their order.
pub fn profile(
    repeater: &Repeater,
    run: &Run,
    machine: &Machine,
    cancel: &AtomicBool,
    on: OnEvent,
) -> Result<Vec<Profile>, ScopeError> {
    let clock = clock(run)?;
    let symbols = repeater.symbols(machine, cancel)?;
    let programs = programs(machine)?;
    let mut counter = Counter::new(Names::new(&symbols, &programs));
    let take = &mut |item: &Item| counter.take(item);
    repeater.watch_everything(run, machine, &[], take, cancel, on)?;
    Ok(counter.finish(clock))
}

/// The work of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    instructions: u64,
    times: u64,
}

/// Counts what each block does, step by step.
struct Counter<'a> {
    library: Blocks<'a>,
    /// The length of each block, in instructions.
    lengths: Vec<u32>,
    /// The blocks' work in each step that has begun.
    steps: Vec<Vec<Count>>,
    is_over: bool,
}

impl<'a> Counter<'a> {
    fn new(names: Names<'a>) -> Self {
        Self {
            library: Blocks::new(names),
            lengths: Vec::new(),
            steps: Vec::new(),
            is_over: false,
        }
    }

    fn take(&mut self, item: &Item) {
        match item {
            Item::Block(block) => {
                self.lengths.push(block.insns.len() as u32);
                self.library.learn(block);
            }
            Item::Words(words) => words.iter().for_each(|word| self.word(*word)),
            Item::Whole(blocks) => {
                for block in blocks {
                    self.ran(*block, self.lengths[*block as usize]);
                }
            }
            Item::Window { .. } | Item::End => {}
        }
    }

    fn word(&mut self, word: Word) {
        match word {
            Word::Ran {
                block,
                instructions,
            } => self.ran(block, instructions),
            Word::Marker(kind) => match Marker::from_kind(kind) {
                Some(Marker::Step) => self.steps.push(Vec::new()),
                Some(Marker::End) => self.is_over = true,
                _ => {}
            },
            Word::Memory { .. } | Word::Turn(_) => {}
        }
    }

    fn ran(&mut self, block: u32, instructions: u32) {
        let Some(counts) = self.steps.last_mut().filter(|_| !self.is_over) else {
            return;
        };
        let number = block as usize;
        if counts.len() <= number {
            counts.resize(self.lengths.len().max(number + 1), Count::default());
        }
        counts[number].instructions += u64::from(instructions);
        counts[number].times += 1;
    }

    /// Returns true if a block begins with its function's first instruction. Code that a compiler
    /// has moved away has a symbol of its own, to which the function itself jumps.
    fn is_entry(&self, block: u32) -> bool {
        let (_, is_first) = self.library.func(block);
        let start = self.library.block(block).start;
        let symbol = self.library.names.symbols().at(start);
        is_first && !symbol.is_some_and(|(symbol, _)| symbol.name.contains(".cold"))
    }

    fn finish(self, clock: GuestClock) -> Vec<Profile> {
        let steps = self.steps.iter().zip(0..);
        let profile = |(counts, step): (&Vec<Count>, u32)| {
            let mut functions: BTreeMap<Func, Count> = BTreeMap::new();
            let ran = counts.iter().zip(0..).filter(|(count, _)| count.times > 0);
            for (count, block) in ran {
                let (func, _) = self.library.func(block);
                let sum = functions.entry(func).or_default();
                sum.instructions += count.instructions;
                sum.times += if self.is_entry(block) { count.times } else { 0 };
            }
            let all = functions.values().map(|count| count.instructions).sum();
            let ran = |(func, count): (Func, Count)| {
                let name = self.library.names.name(func);
                let is_known = name.kind != CodeKind::User && count.times > 0;
                let ran = Ran {
                    own: clock.time(count.instructions),
                    entered: is_known.then_some(count.times),
                };
                (name.text.clone(), ran)
            };
            Profile {
                step,
                all: clock.time(all),
                functions: functions.into_iter().map(ran).collect(),
            }
        };
        steps.map(profile).collect()
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::Architecture;
    use punctual_trace::{Block, Insn};

    use super::*;
    use crate::symbols::Symbols;
    use crate::user_symbols::UserSymbols;

    const KALLSYMS: &str = "\
ffffffff81001000 T worker
ffffffff81002000 t worker.cold
ffffffff81003000 T other
";

    fn block(number: u32, address: u64, count: u64) -> Item {
        let nop = |address| Insn {
            address,
            bytes: vec![0x90],
        };
        let insns = (address..address + count).map(nop).collect();
        Item::Block(Block { number, insns })
    }

    fn marker(marker: Marker) -> Item {
        Item::Words(vec![Word::Marker(marker.kind())])
    }

    #[test]
    fn each_step_has_its_own_counts_and_no_call_enters_code_that_was_moved_away() {
        let symbols = Symbols::parse(Architecture::Amd64, KALLSYMS).unwrap();
        let programs = UserSymbols::default();
        let mut counter = Counter::new(Names::new(&symbols, &programs));
        let address = |page: u64| 0xffff_ffff_8100_0000 + page * 0x1000;
        let [worker, cold, other] = [1, 2, 3].map(address);
        for item in [
            block(0, worker, 3),
            block(1, cold, 2),
            block(2, other, 1),
            Item::Whole(vec![2]),
            marker(Marker::Step),
            Item::Whole(vec![0, 1, 0]),
            marker(Marker::Step),
            Item::Words(vec![Word::Ran {
                block: 0,
                instructions: 2,
            }]),
            marker(Marker::End),
            Item::Whole(vec![2]),
        ] {
            counter.take(&item);
        }
        let step = |step, own, entered| {
            let ran = Ran {
                own: Nanos(own),
                entered: Some(entered),
            };
            Profile {
                step,
                all: Nanos(own),
                functions: [("worker".to_owned(), ran)].into(),
            }
        };
        let found = counter.finish(GuestClock::new(2, 1_000_000).unwrap());
        assert_eq!(found, [step(0, 16, 2), step(1, 4, 1)]);
    }
}

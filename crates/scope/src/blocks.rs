// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks of a trace, decoded and named.

use std::collections::{BTreeMap, HashMap, HashSet};

use punctual_trace::{Block, Insn};

use crate::decode::{Counted, Decoded, Holder, Op};
use crate::names::{Func, KERNEL, Names};

/// The blocks of a trace, decoded and named.
#[derive(Debug)]
pub struct Blocks<'s> {
    /// The names.
    pub names: Names<'s>,
    decoded: Vec<Decoded>,
    /// The block's name, and true if the block is the name's first.
    functions: Vec<(Func, bool)>,
    notes: Vec<Option<Notes>>,
    /// The registers into which each name's code takes the place of the preemption count: a bit for
    /// each.
    pointers: HashMap<Func, u64>,
    /// The places on its stack where each name's code keeps it.
    kept: HashSet<(Func, i64)>,
    /// The number that each name's code puts into a register.
    numbers: HashMap<(Func, u8), i64>,
    /// The kernel's instructions by address, for architectures whose blocks cannot be decoded by
    /// themselves: QEMU ends one anywhere when a timer is due.
    insns: BTreeMap<u64, Insn>,
}

/// The work that a block of the kernel's tracer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// Decides whether to note a switch of threads.
    Switch,
    /// Decides whether to note another event.
    Other,
    /// Notes the event at hand.
    Done,
}

impl Notes {
    /// Returns the work of the function of this name.
    fn of(name: &str) -> Option<Self> {
        if name.contains("trace_event_raw_event_") {
            let is_switch = name.ends_with("_sched_switch");
            return Some(if is_switch { Self::Switch } else { Self::Other });
        }
        (name == "trace_event_buffer_commit").then_some(Self::Done)
    }
}

impl<'s> Blocks<'s> {
    /// Creates an empty collection.
    pub fn new(names: Names<'s>) -> Self {
        Self {
            names,
            decoded: Vec::new(),
            functions: Vec::new(),
            notes: Vec::new(),
            pointers: HashMap::new(),
            kept: HashSet::new(),
            numbers: HashMap::new(),
            insns: BTreeMap::new(),
        }
    }

    /// Learns a further block.
    pub fn learn(&mut self, block: &Block) {
        let before = self.before(block);
        let mut decoded = Decoded::of(block, &before, self.names.symbols());
        let bytes: Vec<u8> = block.insns.iter().flat_map(|i| i.bytes.clone()).collect();
        let (func, is_first) = self.names.at(decoded.start, &bytes);
        self.resolve(func, &mut decoded);
        let notes = is_first.then(|| Notes::of(self.names.text(func)));
        self.notes.push(notes.flatten());
        self.functions.push((func, is_first));
        self.decoded.push(decoded);
    }

    /// Returns the known code that leads to a block, from the start of its function on.
    fn before(&mut self, block: &Block) -> Vec<Insn> {
        let (symbols, far) = (self.names.symbols(), self.names.code().looks_back);
        let start = block.insns.first().map_or(0, |insn| insn.address);
        let begin = symbols.at(start).map(|(_, behind)| start - behind);
        let (Some(begin), true) = (begin, start >= KERNEL && far > 0) else {
            return Vec::new();
        };
        let begin = begin.max(start.saturating_sub(far));
        let mut before: Vec<Insn> = Vec::new();
        for (address, insn) in self.insns.range(begin..start).rev() {
            let next = before.last().map_or(start, |next| next.address);
            if address + insn.bytes.len() as u64 != next {
                break;
            }
            before.push(insn.clone());
        }
        before.reverse();
        let own = block.insns.iter().map(|insn| (insn.address, insn.clone()));
        self.insns.extend(own);
        before
    }

    /// Resolves the values of registers: the same function has put them there, possibly in another
    /// block. They are the place of the preemption count, or the number by which that is changed.
    fn resolve(&mut self, func: Func, decoded: &mut Decoded) {
        let by_register = self.names.text(func).starts_with("__local_bh_");
        let pointers = self.pointers.entry(func).or_default();
        *pointers |= self.names.symbols().pointers(decoded.start);
        decoded.ops.retain_mut(|(_, op)| match *op {
            Op::Point(register) => {
                *pointers |= 1 << register;
                false
            }
            Op::Keep(behind) => {
                self.kept.insert((func, behind));
                false
            }
            Op::Put(register, number) => {
                self.numbers.insert((func, register), number);
                false
            }
            Op::At(holder, counted) => {
                let number = match counted {
                    Counted::PreemptBy(by, _) => self.numbers.get(&(func, by)),
                    _ => None,
                };
                *op = match (counted, number) {
                    (Counted::PreemptBy(_, true), Some(number)) => Op::Preempt(*number),
                    (Counted::PreemptBy(_, false), Some(number)) => Op::Preempt(-number),
                    _ => counted.into(),
                };
                // By how much is in a register in one function only; others add to something else.
                let is_known = !matches!(*op, Op::PreemptBy) || by_register;
                let is_place = match holder {
                    Holder::Register(register) => *pointers & 1 << register != 0,
                    Holder::Stack(behind) => self.kept.contains(&(func, behind)),
                };
                is_place && is_known
            }
            _ => true,
        });
    }

    /// Returns a block's name, and true if the block is the name's first.
    pub fn func(&self, number: u32) -> (Func, bool) {
        self.functions[number as usize]
    }

    /// Returns the work that a block of the kernel's tracer begins.
    pub fn notes(&self, number: u32) -> Option<Notes> {
        self.notes[number as usize]
    }

    /// Returns a block.
    pub fn block(&self, number: u32) -> &Decoded {
        &self.decoded[number as usize]
    }
}

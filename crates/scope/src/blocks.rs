// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks of a trace, understood and named.

use punctual_trace::Block;

use crate::decode::Decoded;
use crate::names::{Func, Names};

/// The blocks of a trace, understood and named.
#[derive(Debug)]
pub struct Blocks<'s> {
    /// The names.
    pub names: Names<'s>,
    decoded: Vec<Decoded>,
    /// The block's name, and whether it is the name's first.
    functions: Vec<(Func, bool)>,
    notes: Vec<Option<Notes>>,
}

/// What a block of the kernel's tracer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// It looks whether to note that a thread is switched to.
    Switch,
    /// The same of another event.
    Other,
    /// It notes what it has looked at.
    Done,
}

impl Notes {
    /// What the function of this name is about.
    fn of(name: &str) -> Option<Self> {
        if name.contains("trace_event_raw_event_") {
            let is_switch = name.ends_with("_sched_switch");
            return Some(if is_switch { Self::Switch } else { Self::Other });
        }
        (name == "trace_event_buffer_commit").then_some(Self::Done)
    }
}

impl<'s> Blocks<'s> {
    /// None yet.
    pub fn new(names: Names<'s>) -> Self {
        Self {
            names,
            decoded: Vec::new(),
            functions: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Takes note of a further block.
    pub fn learn(&mut self, block: &Block) {
        let decoded = Decoded::of(block, self.names.symbols().preempt_count());
        let bytes: Vec<u8> = block.insns.iter().flat_map(|i| i.bytes.clone()).collect();
        let (func, is_first) = self.names.at(decoded.start, &bytes);
        let notes = is_first.then(|| Notes::of(self.names.text(func)));
        self.notes.push(notes.flatten());
        self.functions.push((func, is_first));
        self.decoded.push(decoded);
    }

    /// A block's name, and whether the block is the name's first.
    pub fn func(&self, number: u32) -> (Func, bool) {
        self.functions[number as usize]
    }

    /// What a block of the kernel's tracer begins.
    pub fn notes(&self, number: u32) -> Option<Notes> {
        self.notes[number as usize]
    }

    /// A block.
    pub fn block(&self, number: u32) -> &Decoded {
        &self.decoded[number as usize]
    }
}

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
}

impl<'s> Blocks<'s> {
    /// None yet.
    pub fn new(names: Names<'s>) -> Self {
        Self {
            names,
            decoded: Vec::new(),
            functions: Vec::new(),
        }
    }

    /// Takes note of a further block.
    pub fn learn(&mut self, block: &Block) {
        let decoded = Decoded::of(block, self.names.symbols().preempt_count());
        let bytes: Vec<u8> = block.insns.iter().flat_map(|i| i.bytes.clone()).collect();
        self.functions.push(self.names.at(decoded.start, &bytes));
        self.decoded.push(decoded);
    }

    /// A block's name, and whether the block is the name's first.
    pub fn func(&self, number: u32) -> (Func, bool) {
        self.functions[number as usize]
    }

    /// A block.
    pub fn block(&self, number: u32) -> &Decoded {
        &self.decoded[number as usize]
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks that ran last, without those of interrupts. They show which function called which.

use std::collections::HashMap;

use crate::blocks::Blocks;
use crate::decode::Transfer;
use crate::names::{CodeKind, Func, KERNEL};

/// The number of blocks that are remembered: as many as run in some 5 ms.
const ROOM: usize = 1 << 20;

/// The blocks that ran last.
#[derive(Debug)]
pub struct Ring {
    /// Number of the block, and the number of its instructions that ran.
    blocks: Vec<(u32, u32)>,
    /// The number of blocks, without those that were dropped.
    next: usize,
    /// The highest number of blocks so far.
    most: usize,
}

impl Ring {
    /// Creates an empty ring.
    pub fn new() -> Self {
        Self {
            blocks: vec![(0, 0); ROOM],
            next: 0,
            most: 0,
        }
    }

    /// Returns the place of the next block.
    pub fn next(&self) -> usize {
        self.next
    }

    /// Adds a block that ran.
    #[inline]
    pub fn push(&mut self, block: u32, ran: u32) {
        self.blocks[self.next % ROOM] = (block, ran);
        self.next += 1;
        self.most = self.most.max(self.next);
    }

    /// Forgets all blocks from this place on.
    pub fn drop_from(&mut self, place: usize) {
        self.next = place;
    }

    fn first(&self) -> usize {
        self.most.saturating_sub(ROOM).min(self.next)
    }

    fn at(&self, place: usize) -> (u32, u32) {
        self.blocks[place % ROOM]
    }

    /// Returns the function that ran longest from this place on, and its time; `None` if that is
    /// not remembered.
    pub fn longest(&self, from: usize, library: &Blocks) -> Option<(Func, u64)> {
        if from < self.first() {
            return None;
        }
        let mut own: HashMap<Func, u64> = HashMap::new();
        for (block, ran) in (from..self.next).map(|place| self.at(place)) {
            *own.entry(library.func(block).0).or_default() += u64::from(ran);
        }
        own.into_iter().max_by_key(|(func, ran)| (*ran, *func))
    }

    /// Returns the function at this place and its callers, outermost first; empty if that is not
    /// remembered. Thunks are no functions.
    ///
    /// Going back from there, each call without its return is a caller, up to where the CPU came by
    /// itself, to user space, or to a switch of threads.
    pub fn callers(&self, place: usize, library: &Blocks) -> Vec<Func> {
        if place < self.first() || place >= self.next {
            return Vec::new();
        }
        let mut path = vec![library.func(self.at(place).0).0];
        // Calls that have returned, and entries that were left, of which each hides what it did.
        let (mut returned, mut left) = (Vec::new(), 0_usize);
        let mut after = self.at(place).0;
        if is_entry(after, library) {
            return path;
        }
        for place in (self.first()..place).rev() {
            let (block, ran) = self.at(place);
            let (func, _) = library.func(block);
            let decoded = library.block(block);
            let whole = ran as usize >= decoded.insns.len();
            let last = if whole { decoded.last } else { Transfer::On };
            if decoded.start < KERNEL || library.names.text(func) == library.names.code().switch {
                break;
            }
            match last {
                Transfer::Iret | Transfer::Sysret => {
                    returned.push(left);
                    left = 0;
                }
                Transfer::Return if !is_indirect(func, library) => left += 1,
                Transfer::Call if is_call(block, after, library) => {
                    if left > 0 {
                        left -= 1;
                    } else if returned.is_empty() {
                        path.push(func);
                    }
                }
                _ => {}
            }
            if is_entry(block, library) {
                let Some(before) = returned.pop() else {
                    if path.last() != Some(&func) {
                        path.push(func);
                    }
                    break;
                };
                left = before;
            }
            after = block;
        }
        path.retain(|func| library.names.name(*func).kind != CodeKind::Thunk);
        path.reverse();
        path
    }
}

fn is_entry(block: u32, library: &Blocks) -> bool {
    let (func, first) = library.func(block);
    first && library.names.name(func).kind.is_entry()
}

/// Returns true if a function is a detour, in which returns jump and calls fill the CPU's buffer of
/// returns.
fn is_indirect(func: Func, library: &Blocks) -> bool {
    library.names.code().is_detour(library.names.text(func))
}

/// Returns true if a call leads out of its function, into the block that ran next.
fn is_call(block: u32, next: u32, library: &Blocks) -> bool {
    let ((func, _), (called, first)) = (library.func(block), library.func(next));
    !is_indirect(func, library) && (first || called != func)
}

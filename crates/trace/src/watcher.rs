// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the plugin does: follows the markers, and writes down what runs in a window.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};

use crate::format::{MAGIC, Word, tag};
use crate::marker::Marker;
use crate::orders::{Orders, Window};

/// Words that are gathered before they are written, where everything is watched.
const PIECE: usize = 8192;

/// Where the next window is so near, watching goes on: changing what is instrumented has
/// QEMU translate everything anew.
const NEAR: u64 = 8;

/// How the blocks that are translated from now on are to be instrumented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// As before.
    None,
    /// Anew: translate everything again.
    Anew,
}

/// How a block is to be instrumented, beside its markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Its number: to be told each time it begins, each of its instructions being counted.
    pub block: u32,
    /// Which of its instructions' accesses to memory are to be told.
    pub memory: Vec<u8>,
}

/// Follows the markers, and writes down what runs in a window.
pub struct Watcher {
    orders: Orders,
    out: Box<dyn Write + Send>,
    failed: Option<io::Error>,
    blocks: HashMap<Box<[u8]>, u32>,
    /// How many instructions each block has.
    lengths: Vec<u64>,
    ring: VecDeque<u64>,
    lost: u64,
    /// Blocks that ran as a whole, where everything is watched.
    whole: Vec<u32>,
    /// The block that runs, and the count of instructions when it began.
    current: Option<(u32, u64)>,
    step: Option<u32>,
    /// How many samples were taken in the step.
    taken: u64,
    /// Whether the next one is armed.
    armed: bool,
    next: usize,
    open: Option<Window>,
    /// Where in the ring it was armed last.
    again: usize,
    watching: bool,
}

impl Watcher {
    /// A watcher that writes to `out`.
    pub fn new(mut orders: Orders, out: Box<dyn Write + Send>) -> Self {
        orders.windows.sort_unstable();
        orders.windows.dedup();
        let mut watcher = Self {
            watching: orders.everything,
            orders,
            out,
            failed: None,
            blocks: HashMap::new(),
            lengths: Vec::new(),
            ring: VecDeque::new(),
            lost: 0,
            whole: Vec::with_capacity(PIECE),
            current: None,
            step: None,
            taken: 0,
            armed: false,
            next: 0,
            open: None,
            again: 0,
        };
        watcher.write(MAGIC);
        // A guest that never reaches a marker leaves a trace, though an empty one.
        watcher.flush();
        watcher
    }

    /// Takes note of a block that is translated; says how it is to be instrumented, if at
    /// all. A block that does not fit into a trace ends it.
    pub fn translated(&mut self, insns: &[(u64, &[u8])]) -> Option<Instrument> {
        if !self.watching {
            return None;
        }
        let block = self.number(insns)?;
        let told = |address: &u64| {
            let within = |(from, to): &(u64, u64)| (from..to).contains(&address);
            self.orders.memory.iter().any(within)
        };
        let memory = insns.iter().enumerate();
        let memory = memory.filter(|(_, (address, code))| told(address) && is_move(code));
        let memory: Result<_, _> = memory.map(|(number, _)| u8::try_from(number)).collect();
        if memory.is_err() {
            self.fail("a block accesses memory behind its 256th instruction");
        }
        let memory = memory.ok()?;
        Some(Instrument { block, memory })
    }

    /// The block's number; a new one is written down. None where it does not fit.
    fn number(&mut self, insns: &[(u64, &[u8])]) -> Option<u32> {
        let Some(bytes) = block(insns) else {
            self.fail("a block is longer than any that QEMU makes");
            return None;
        };
        if let Some(known) = self.blocks.get(bytes.as_slice()) {
            return Some(*known);
        }
        let Ok(number) = u32::try_from(self.blocks.len()) else {
            self.fail("more blocks than a number counts");
            return None;
        };
        self.write(&[tag::BLOCK]);
        self.write(&number.to_le_bytes());
        self.write(&bytes);
        self.blocks.insert(bytes.into(), number);
        self.lengths.push(insns.len() as u64);
        Some(number)
    }

    /// A block begins; `count` instructions have run before.
    #[inline]
    pub fn begins(&mut self, block: u32, count: u64) {
        match self.current {
            Some((before, begun))
                if self.orders.everything
                    && count.wrapping_sub(begun) == self.lengths[before as usize]
                    && self.whole.len() < PIECE =>
            {
                self.whole.push(before);
            }
            _ => self.close(count),
        }
        self.current = Some((block, count));
    }

    /// An instruction of the running block accesses memory.
    pub fn accesses(&mut self, insn: u8, address: u64) {
        self.push(Word::Memory { insn, address });
    }

    /// A marker is reached; `count` instructions have run before.
    pub fn reaches(&mut self, marker: Marker, count: u64) -> Change {
        if self.orders.everything {
            self.push(Word::Marker(marker.kind()));
            if marker == Marker::End {
                self.close(count);
                self.write(&[tag::END]);
                self.flush();
            }
            return Change::None;
        }
        match marker {
            Marker::Step => {
                self.step = Some(self.step.map_or(0, |step| step + 1));
                (self.taken, self.armed) = (0, false);
                self.open = None;
                self.skip();
                self.rest_unless_near()
            }
            Marker::Armed => self.arm(),
            Marker::Taken => self.take(count),
            Marker::End => {
                self.write(&[tag::END]);
                self.flush();
                Change::None
            }
        }
    }

    fn arm(&mut self) -> Change {
        let Some(step) = self.step else {
            return Change::None;
        };
        let goes_on = std::mem::replace(&mut self.armed, true) || self.open.is_some();
        if goes_on {
            self.arm_again();
            return Change::None;
        }
        let index = self.taken;
        let here = Window { step, index };
        if self.orders.windows.get(self.next) != Some(&here) {
            return Change::None;
        }
        self.open = Some(here);
        self.ring.clear();
        (self.lost, self.again) = (0, 0);
        self.current = None;
        if self.watching {
            return Change::None;
        }
        self.watching = true;
        Change::Anew
    }

    /// What is before the last `armed` belongs to no sample. What is behind it may: where the
    /// clock is read all the time, a reading that ends nothing may begin one.
    fn arm_again(&mut self) {
        if self.open.is_none() {
            return;
        }
        if self.again > 0 {
            self.lost = 0;
        }
        self.ring.drain(..self.again);
        self.again = self.ring.len();
    }

    fn take(&mut self, count: u64) -> Change {
        if !self.armed {
            return Change::None;
        }
        self.armed = false;
        self.taken += 1;
        let Some(window) = self.open else {
            return Change::None;
        };
        self.next += 1;
        let next = self.next_at_once();
        if next.is_none() {
            self.close(count);
        }
        self.write_window(window, count);
        self.open = next;
        if next.is_none() {
            return self.rest_unless_near();
        }
        self.arm_again();
        self.again = 0;
        Change::None
    }

    /// The next window, if it may begin with the reading of the clock that ended this one.
    fn next_at_once(&self) -> Option<Window> {
        let next = self.orders.windows.get(self.next)?;
        let is_next = Some(next.step) == self.step && next.index == self.taken;
        (is_next && self.again > 0).then_some(*next)
    }

    fn write_window(&mut self, window: Window, count: u64) {
        self.write(&[tag::WINDOW]);
        self.write(&window.step.to_le_bytes());
        self.write(&window.index.to_le_bytes());
        self.write(&self.lost.to_le_bytes());
        // The running block is over as far as this window is concerned.
        let running = self.current.and_then(|running| self.ran(running, count));
        let running = running.map(Word::encode);
        let words: Vec<u64> = self.ring.iter().copied().chain(running).collect();
        self.write_words(&words);
        self.flush();
    }

    /// Windows of steps gone by will not come any more.
    fn skip(&mut self) {
        let gone = |window: &&Window| Some(window.step) < self.step;
        self.next += self.orders.windows[self.next..]
            .iter()
            .take_while(gone)
            .count();
    }

    fn rest_unless_near(&mut self) -> Change {
        let near = self
            .orders
            .windows
            .get(self.next)
            .is_some_and(|next| Some(next.step) == self.step && next.index < self.taken + NEAR);
        if near || !self.watching {
            return Change::None;
        }
        self.watching = false;
        Change::Anew
    }

    /// The running block is over.
    fn close(&mut self, count: u64) {
        let running = self.current.take();
        if let Some(word) = running.and_then(|running| self.ran(running, count)) {
            self.push(word);
        }
    }

    /// What ran of a block that began at a count.
    fn ran(&mut self, (block, begun): (u32, u64), count: u64) -> Option<Word> {
        let word = count.checked_sub(begun).and_then(|n| Word::ran(block, n));
        if word.is_none() {
            self.fail("a block ran for longer than it is, or backwards");
        }
        word
    }

    fn push(&mut self, word: Word) {
        if self.orders.everything {
            self.write_whole();
            self.write_words(&[word.encode()]);
            return;
        }
        if self.open.is_none() {
            return;
        }
        if self.ring.len() >= self.orders.ring {
            self.ring.pop_front();
            self.lost += 1;
            self.again = self.again.saturating_sub(1);
        }
        self.ring.push_back(word.encode());
    }

    fn write_words(&mut self, words: &[u64]) {
        let bytes = words.iter().copied().flat_map(u64::to_le_bytes);
        self.write_piece(tag::WORDS, words.len(), bytes);
    }

    fn write_whole(&mut self) {
        if self.whole.is_empty() {
            return;
        }
        let whole = std::mem::replace(&mut self.whole, Vec::with_capacity(PIECE));
        let bytes = whole.iter().copied().flat_map(u32::to_le_bytes);
        self.write_piece(tag::WHOLE, whole.len(), bytes);
    }

    fn write_piece(&mut self, tag: u8, count: usize, content: impl Iterator<Item = u8>) {
        let Ok(count) = u32::try_from(count) else {
            self.fail("a piece is longer than a number counts");
            return;
        };
        let mut bytes = vec![tag];
        bytes.extend(count.to_le_bytes());
        bytes.extend(content);
        self.write(&bytes);
    }

    /// From here on nothing is written: the reader finds no end.
    fn fail(&mut self, why: &str) {
        self.failed.get_or_insert_with(|| io::Error::other(why));
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(bytes).err();
        }
    }

    fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.flush().err();
        }
    }
}

/// A block as it is written; nothing where a number in it does not fit.
fn block(insns: &[(u64, &[u8])]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(insns.len() * 14);
    bytes.extend(u16::try_from(insns.len()).ok()?.to_le_bytes());
    for (address, code) in insns {
        bytes.extend(address.to_le_bytes());
        bytes.push(u8::try_from(code.len()).ok()?);
        bytes.extend_from_slice(code);
    }
    Some(bytes)
}

/// Whether an instruction is a plain `mov` between a register and memory (or registers).
///
/// Only of these are accesses told. QEMU 7.2 keeps the callbacks of an instruction that needs
/// one of QEMU's helpers (`cmpxchg`, `popf`, …) in its CPU's state, and may call them once more
/// after it has dropped them.
fn is_move(code: &[u8]) -> bool {
    let rex = code
        .first()
        .is_some_and(|first| (0x40..0x50).contains(first));
    matches!(code.get(usize::from(rex)), Some(0x89 | 0x8b))
}

#[cfg(test)]
mod tests;

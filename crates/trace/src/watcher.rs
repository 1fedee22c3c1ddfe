// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's work: it follows the markers, and records what runs in a window.
//!
//! If several CPUs take turns, everything is instrumented from the start: translating anew would
//! end the current CPU's turn, and so change what is watched.

mod tape;

use std::collections::HashMap;
use std::io::{self, Write};

use crate::format::{MAGIC, Word, tag};
use crate::marker::Marker;
use crate::orders::{Orders, Window};

use tape::Tape;

/// The number of words that are gathered before they are written, if everything is watched.
const PIECE: usize = 8192;

/// A change in how blocks are instrumented that are translated from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No change.
    None,
    /// Translate everything again.
    Anew,
}

/// The instrumentation of a block, besides its markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Its number, which is reported each time it begins, with each of its instructions counted.
    pub block: u32,
    /// The instructions whose accesses to memory are reported.
    pub memory: Vec<u8>,
}

/// Follows the markers, and records what runs in a window.
pub struct Watcher {
    orders: Orders,
    out: Box<dyn Write + Send>,
    failed: Option<io::Error>,
    blocks: HashMap<Box<[u8]>, u32>,
    /// New blocks, to be written before the next window: QEMU may be ended after that.
    told: Vec<u8>,
    /// The number of instructions in each block.
    lengths: Vec<u64>,
    tapes: Vec<Tape>,
    /// Blocks that ran as a whole, if everything is watched.
    whole: Vec<u32>,
    /// The CPU that has the turn.
    cpu: u32,
    /// The block that runs, and the count of instructions when it began.
    current: Option<(u32, u64)>,
    step: Option<u32>,
    watching: bool,
}

impl Watcher {
    /// Creates a watcher that writes to `out`.
    pub fn new(orders: Orders, out: Box<dyn Write + Send>) -> Self {
        let mut watcher = Self {
            watching: orders.everything || orders.cpus.is_some(),
            tapes: Tape::of(&orders.windows, orders.ring),
            orders,
            out,
            failed: None,
            blocks: HashMap::new(),
            told: Vec::new(),
            lengths: Vec::new(),
            whole: Vec::with_capacity(PIECE),
            cpu: 0,
            current: None,
            step: None,
        };
        watcher.write(MAGIC);
        // A guest that never reaches a marker leaves a trace, though an empty one.
        watcher.flush();
        watcher
    }

    /// Notes a block that is translated, and returns its instrumentation, if any. A block that does
    /// not fit into a trace ends the trace.
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
        let stores = self.orders.cpus.is_some();
        let is_told = |code: &[u8]| self.orders.arch.is_told(code, stores);
        let memory = memory.filter(|(_, (address, code))| told(address) && is_told(code));
        let memory: Result<_, _> = memory.map(|(number, _)| u8::try_from(number)).collect();
        if memory.is_err() {
            self.fail("a block accesses memory behind its 256th instruction");
        }
        let memory = memory.ok()?;
        Some(Instrument { block, memory })
    }

    /// Writes the new blocks.
    fn write_blocks(&mut self) {
        let told = std::mem::take(&mut self.told);
        self.write(&told);
    }

    /// Returns the block's number, after noting a new block. `None` if it does not fit.
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
        self.told.push(tag::BLOCK);
        self.told.extend(number.to_le_bytes());
        self.told.extend(&bytes);
        if self.orders.everything {
            self.write_blocks();
        }
        self.blocks.insert(bytes.into(), number);
        self.lengths.push(insns.len() as u64);
        Some(number)
    }

    /// Notes that a block begins on a CPU; `count` instructions have run before, on all CPUs.
    #[inline]
    pub fn begins(&mut self, cpu: u32, block: u32, count: u64) {
        if !self.listens() {
            return;
        }
        if cpu != self.cpu {
            self.close(count);
            self.cpu = cpu;
            self.push(Word::Turn(cpu));
        }
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

    /// Returns true if anything that runs now is recorded. Which of several CPUs it runs on is not
    /// known before all of them are up: that is when the first step begins.
    #[inline]
    pub fn listens(&self) -> bool {
        if self.orders.everything {
            return self.orders.cpus.is_none() || self.step.is_some();
        }
        self.is_open()
    }

    /// Returns true if a window is open.
    fn is_open(&self) -> bool {
        self.tapes.iter().any(Tape::is_open)
    }

    /// Notes that an instruction of the running block accesses memory.
    pub fn accesses(&mut self, insn: u8, address: u64) {
        self.push(Word::Memory { insn, address });
    }

    /// Notes that a marker is reached on a CPU; `count` instructions have run before, on all CPUs.
    pub fn reaches(&mut self, cpu: u32, marker: Marker, count: u64) -> Change {
        if self.orders.everything {
            if self.step.is_none() && self.orders.cpus.is_some() {
                self.cpu = cpu;
                self.push(Word::Turn(cpu));
            }
            self.step.get_or_insert(0);
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
                let step = self.step.map_or(0, |step| step + 1);
                self.step = Some(step);
                self.tapes.iter_mut().for_each(|tape| tape.step(step));
                self.rest_unless_near()
            }
            Marker::Armed => self.arm(cpu),
            Marker::Taken => self.take(cpu, count),
            Marker::End => {
                self.write(&[tag::END]);
                self.flush();
                Change::None
            }
        }
    }

    fn arm(&mut self, cpu: u32) -> Change {
        let Some(step) = self.step else {
            return Change::None;
        };
        let was_open = self.is_open();
        let counting = self.tapes.iter_mut().filter(|tape| tape.counts(cpu));
        let opened = counting.filter_map(|tape| tape.arm(step, cpu).then_some(()));
        if opened.count() == 0 {
            return Change::None;
        }
        if !was_open {
            (self.cpu, self.current) = (cpu, None);
        }
        self.watch(true)
    }

    fn take(&mut self, cpu: u32, count: u64) -> Change {
        let mut is_taken = false;
        for number in 0..self.tapes.len() {
            if !self.tapes[number].counts(cpu) {
                continue;
            }
            let Some(window) = self.tapes[number].take() else {
                continue;
            };
            // The running block is over as far as this window is concerned.
            let running = self.current.and_then(|running| self.ran(running, count));
            let tape = &mut self.tapes[number];
            if let Some(word) = running {
                tape.push(word);
            }
            self.write_window(number, window);
            self.tapes[number].go_on(window, running);
            is_taken = true;
        }
        if !is_taken || self.is_open() {
            return Change::None;
        }
        self.current = None;
        self.rest_unless_near()
    }

    fn write_window(&mut self, tape: usize, window: Window) {
        self.write_blocks();
        if let Some(cpu) = window.cpu {
            self.write(&[tag::OF_CPU]);
            self.write(&cpu.to_le_bytes());
        }
        self.write(&[tag::WINDOW]);
        self.write(&window.step.to_le_bytes());
        self.write(&window.index.to_le_bytes());
        self.write(&self.tapes[tape].lost().to_le_bytes());
        let words = self.tapes[tape].words(self.orders.cpus.is_some());
        self.write_words(&words);
        self.flush();
    }

    fn rest_unless_near(&mut self) -> Change {
        let near = self.tapes.iter().any(|tape| tape.is_near(self.step));
        self.watch(near && self.watching)
    }

    /// Starts or stops the reporting of blocks.
    fn watch(&mut self, watching: bool) -> Change {
        if self.orders.cpus.is_some() || watching == self.watching {
            return Change::None;
        }
        self.watching = watching;
        Change::Anew
    }

    /// Ends the running block.
    fn close(&mut self, count: u64) {
        let running = self.current.take();
        if let Some(word) = running.and_then(|running| self.ran(running, count)) {
            self.push(word);
        }
    }

    /// Returns the part that ran of a block that began at a count.
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
        self.tapes.iter_mut().for_each(|tape| tape.push(word));
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

    /// Stops all writing from here on: the reader finds no end.
    pub fn fail(&mut self, why: &str) {
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

/// Encodes a block as it is written; `None` if a number in it does not fit.
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

#[cfg(test)]
mod tests;

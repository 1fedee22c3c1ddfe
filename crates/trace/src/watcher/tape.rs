// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events in a window, until its sample is taken.

use std::collections::VecDeque;

use crate::format::Word;
use crate::orders::Window;

/// The distance within which watching goes on until the next window: changing the
/// instrumentation makes QEMU translate everything anew.
const NEAR: u64 = 8;

/// The windows of one CPU's samples, or of all CPUs' together, and the events in the open one.
#[derive(Debug)]
pub(super) struct Tape {
    /// The CPU whose samples are counted; `None` for all CPUs.
    cpu: Option<u32>,
    /// The windows to watch, in order of time.
    windows: Vec<Window>,
    /// The next of these windows.
    next: usize,
    /// The most words that are kept: the last ones.
    most: usize,
    words: VecDeque<u64>,
    lost: u64,
    /// The CPU that had the turn before the first of the words.
    turn: u32,
    /// The number of samples taken in the step.
    taken: u64,
    /// True if the next sample is armed.
    armed: bool,
    open: Option<Window>,
    /// The position among the words where the sample was last armed.
    again: usize,
}

impl Tape {
    /// Creates a tape for each CPU whose samples are counted alone, and one for those of all.
    pub(super) fn of(windows: &[Window], most: usize) -> Vec<Self> {
        let mut cpus: Vec<Option<u32>> = windows.iter().map(|window| window.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let tape = |cpu| {
            let own = windows.iter().filter(|window| window.cpu == cpu);
            let mut windows: Vec<Window> = own.copied().collect();
            windows.sort_unstable();
            windows.dedup();
            Self {
                cpu,
                windows,
                next: 0,
                most,
                words: VecDeque::new(),
                lost: 0,
                turn: 0,
                taken: 0,
                armed: false,
                open: None,
                again: 0,
            }
        };
        cpus.into_iter().map(tape).collect()
    }

    /// Returns true if samples taken on a CPU are counted here.
    pub(super) fn counts(&self, cpu: u32) -> bool {
        self.cpu.is_none_or(|own| own == cpu)
    }

    /// Returns true if a window is open.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Begins a step. Windows of earlier steps will not come any more.
    pub(super) fn step(&mut self, step: u32) {
        (self.taken, self.armed, self.open) = (0, false, None);
        let gone = |window: &&Window| window.step < step;
        self.next += self.windows[self.next..].iter().take_while(gone).count();
    }

    /// Returns true if the next window is so near that watching is to go on.
    pub(super) fn is_near(&self, step: Option<u32>) -> bool {
        let next = self.windows.get(self.next);
        next.is_some_and(|next| Some(next.step) == step && next.index < self.taken + NEAR)
    }

    /// Arms a sample on the CPU that has the turn; returns true if a window is opened.
    pub(super) fn arm(&mut self, step: u32, turn: u32) -> bool {
        let goes_on = std::mem::replace(&mut self.armed, true) || self.is_open();
        if goes_on {
            self.arm_again();
            return false;
        }
        let here = Window {
            step,
            index: self.taken,
            cpu: self.cpu,
        };
        if self.windows.get(self.next) != Some(&here) {
            return false;
        }
        self.open = Some(here);
        self.words.clear();
        (self.lost, self.again, self.turn) = (0, 0, turn);
        true
    }

    /// Words before the last `armed` belong to no sample. Those after it may: where the
    /// clock is read all the time, a reading that ends nothing may begin one.
    fn arm_again(&mut self) {
        if !self.is_open() {
            return;
        }
        if self.again > 0 {
            self.lost = 0;
        }
        for word in self.words.drain(..self.again) {
            if let Some(Word::Turn(cpu)) = Word::decode(word) {
                self.turn = cpu;
            }
        }
        self.again = self.words.len();
    }

    /// Takes the armed sample; returns its window, if that is watched.
    pub(super) fn take(&mut self) -> Option<Window> {
        if !std::mem::take(&mut self.armed) {
            return None;
        }
        self.taken += 1;
        let window = self.open?;
        self.next += 1;
        Some(window)
    }

    /// Begins the next window after one was written, if it may begin with the reading of the clock
    /// that ended this one. The block that runs then goes on, if there is one.
    pub(super) fn go_on(&mut self, window: Window, running: Option<Word>) {
        let next = self.windows.get(self.next).copied();
        let at_once = |next: &Window| (next.step, next.index) == (window.step, self.taken);
        self.open = next.filter(|next| at_once(next) && self.again > 0);
        if running.is_some() {
            self.words.pop_back();
        }
        self.arm_again();
        self.again = 0;
    }

    pub(super) fn push(&mut self, word: Word) {
        if !self.is_open() {
            return;
        }
        if self.words.len() >= self.most {
            let gone = self.words.pop_front().and_then(Word::decode);
            if let Some(Word::Turn(cpu)) = gone {
                self.turn = cpu;
            }
            self.lost += 1;
            self.again = self.again.saturating_sub(1);
        }
        self.words.push_back(word.encode());
    }

    /// The number of words lost at the window's beginning.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the words of the window; if CPUs take turns, the first says whose turn it is.
    pub(super) fn words(&self, of_turns: bool) -> Vec<u64> {
        let turn = of_turns.then_some(Word::Turn(self.turn).encode());
        turn.into_iter().chain(self.words.iter().copied()).collect()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a whole run on all of its CPUs, which take turns.
//!
//! The length of a section is what its own CPU executes. The turns of other CPUs do not count,
//! except where that CPU waits for them: it has paused in the kernel, and goes on when the others
//! let it.

use punctual_trace::marker::Marker;
use punctual_trace::{Item, Word};

use super::delays::Delays;
use super::section::{Hotspot, Survey};
use super::tracer::SectionTracer;
use crate::guest_clock::GuestClock;
use crate::names::Names;
use crate::preemptibility::Preemptibility;

/// Follows a whole run.
pub struct RunTracer<'a> {
    cpus: Vec<SectionTracer<'a>>,
    /// The CPU that has the turn.
    turn: usize,
    /// The number of mentions of CPUs that do not exist.
    strange: u64,
    /// The findings of each step that is over, where they are kept, by this clock.
    steps: Option<(GuestClock, Vec<Vec<Hotspot>>)>,
}

impl<'a> RunTracer<'a> {
    /// Creates a tracer that has seen nothing yet. Each CPU has its own copy of the names.
    pub fn new(names: impl Fn() -> Names<'a>, preemption: Preemptibility, cpus: u32) -> Self {
        let tracer = |cpu| SectionTracer::new(names(), preemption, cpu, cpus > 1);
        Self {
            cpus: (0..cpus.max(1)).map(tracer).collect(),
            turn: 0,
            strange: 0,
            steps: None,
        }
    }

    /// Creates a tracer that keeps its findings step by step, from before the first one on.
    pub fn by_step(
        names: impl Fn() -> Names<'a>,
        preemption: Preemptibility,
        cpus: u32,
        clock: GuestClock,
    ) -> Self {
        Self {
            steps: Some((clock, Vec::new())),
            ..Self::new(names, preemption, cpus)
        }
    }

    /// Returns the findings from before the first step, followed by those of each step that is
    /// over.
    pub fn steps(self) -> Vec<Vec<Hotspot>> {
        self.steps.map(|(_, steps)| steps).unwrap_or_default()
    }

    fn step(&mut self) {
        if let Some((clock, steps)) = &mut self.steps {
            let all = self.cpus.iter();
            steps.push(all.flat_map(|cpu| cpu.hotspots(*clock)).collect());
            self.cpus.iter_mut().for_each(SectionTracer::forget_found);
        }
    }

    /// Takes a piece of the trace.
    pub fn take(&mut self, item: &Item) {
        match item {
            Item::Block(block) => self.cpus.iter_mut().for_each(|cpu| cpu.learn(block)),
            Item::Words(words) => words.iter().for_each(|word| self.word(*word)),
            Item::Whole(blocks) => {
                let cpu = &mut self.cpus[self.turn];
                for block in blocks {
                    cpu.whole(*block);
                }
            }
            Item::Window { .. } | Item::End => {}
        }
    }

    fn word(&mut self, word: Word) {
        match word {
            Word::Turn(cpu) => self.turn(cpu as usize),
            // A step is one of all CPUs.
            Word::Marker(kind) => {
                if Marker::from_kind(kind) == Some(Marker::Step) {
                    self.step();
                }
                self.cpus.iter_mut().for_each(|cpu| cpu.word(word));
            }
            Word::Ran { .. } | Word::Memory { .. } => self.cpus[self.turn].word(word),
        }
    }

    fn turn(&mut self, next: usize) {
        if next >= self.cpus.len() {
            self.strange += 1;
            return;
        }
        let now = self.cpus.iter().map(SectionTracer::executed).sum();
        let left = self.cpus[self.turn].leaves(now);
        self.turn = next;
        self.cpus[next].returns(now, left);
    }

    /// Returns the findings.
    pub fn finish(self, clock: GuestClock) -> Survey {
        let all = self.cpus.iter();
        let mut hotspots: Vec<Hotspot> = all.flat_map(|cpu| cpu.hotspots(clock)).collect();
        hotspots.sort_by(|a, b| {
            let order = |of: &Hotspot| (of.function.clone(), of.what, of.cpu);
            (b.longest, order(a)).cmp(&(a.longest, order(b)))
        });
        let unknown = (0..).zip(&self.cpus).filter(|(_, cpu)| !cpu.is_known());
        Survey {
            cpus: self.cpus.len() as u32,
            unknown: unknown.map(|(number, _)| number).collect(),
            hotspots,
            instructions: self.cpus.iter().map(SectionTracer::since_begun).sum(),
            mended: self.strange + self.cpus.iter().map(SectionTracer::mended).sum::<u64>(),
            delays: self.delays(clock),
        }
    }

    /// Returns the delays. The theorem of `bound` applies to one CPU only.
    fn delays(mut self, clock: GuestClock) -> Delays {
        match self.cpus.pop() {
            Some(only) if self.cpus.is_empty() => only.delays(clock),
            _ => Delays::default(),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cycles of programs, which mark nothing. Each is found by the switches of threads that the
//! kernel's tracer noted while it was measured. They are the same when the run is repeated, and the
//! tracer reads the clock for each. So the moment of each instruction is known: between two
//! switches, only a sleeping CPU takes time without instructions.

use std::collections::BTreeMap;

use punctual_model::place::{self, LATENESS, Place, RESPONSE, WATCHED_MOST};
use punctual_model::probe::SampleSpan;
use punctual_model::{Nanos, Recording, Sample};
use punctual_trace::marker::Marker;
use punctual_trace::{Block, Item, Window, Word};

use crate::blocks::{Blocks, Notes};
use crate::guest_clock::GuestClock;
use crate::names::Names;
use crate::probes::Chosen;
use crate::walk::{Moment, Walk};

/// The most that is kept of a cycle, in words: 100 ms of a busy guest, at least.
const MOST: usize = 20_000_000;

/// The tolerance between two readings of the clock and the instructions between them: for rounding
/// of each, and of the guest's idea of its counter's rate.
const ROUNDING: i64 = 3;
const SHARE: i64 = 500_000;

/// Returns the cycle of a sample of a recording. The error is the reason why it cannot be
/// explained.
pub fn choose(all: &[Recording], recording: usize, sample: Sample) -> Result<Chosen, String> {
    let (own, seq) = (&all[recording], sample.seq);
    let title = own.title();
    if place::of_cycle(all, own, seq).is_none() {
        return Err(format!(
            "{title}: no switch of threads began and ended cycle {seq}: it was marked, or had not \
             ended, or of so many only the worst are found again"
        ));
    }
    let of = |part: &str| {
        let one = place::sister(all, own, part);
        let one = one.ok_or_else(|| format!("{title}: when its cycles were due is not known"))?;
        let kept = usize::try_from(seq).ok();
        let kept = kept.and_then(|seq| one.samples.iter().nth(seq));
        let worst = || one.worst.iter().copied().find(|sample| sample.seq == seq);
        let found = kept.or_else(worst).map(|sample| sample.value);
        found.ok_or_else(|| format!("{}: sample {seq} was not kept", one.title()))
    };
    let (late, response) = (of(LATENESS)?, of(RESPONSE)?);
    if late < Nanos::ZERO || response < late {
        return Err(format!("{title}: sample {seq} ended before it began"));
    }
    if response > WATCHED_MOST {
        return Err(format!(
            "{title}: cycle {seq} took {response}, and no more than {WATCHED_MOST} is watched"
        ));
    }
    Ok(Chosen {
        recording,
        sample,
        span: SampleSpan::Cycle,
        window: Window {
            step: own.key.step,
            index: seq,
            cpu: None,
        },
        ends_before: Nanos::ZERO,
        cycle: Some([response, late]),
    })
}

/// Cuts cycles out of the events of a run.
pub struct Cutter<'a> {
    library: Blocks<'a>,
    /// All blocks, in their order.
    pub blocks: Vec<Block>,
    cuts: Vec<Cut>,
    /// Indices of the cuts of which something is being kept.
    open: Vec<usize>,
    /// The cuts that begin or end after a switch, by step and number of the switch.
    at: BTreeMap<(u32, u64), Vec<usize>>,
    step: Option<u32>,
    switches: u64,
    notes: bool,
}

/// The events from before a cycle to its end.
#[derive(Debug, Default)]
pub struct Cut {
    /// The events.
    pub words: Vec<Word>,
    /// True if its end was seen.
    pub is_whole: bool,
    is_too_long: bool,
}

impl<'a> Cutter<'a> {
    /// Creates a cutter for these cycles, each in its step.
    pub fn new(names: Names<'a>, places: &[(u32, Place)]) -> Self {
        let mut at: BTreeMap<(u32, u64), Vec<usize>> = BTreeMap::new();
        for (number, (step, place)) in places.iter().enumerate() {
            // What is counted is how many switches were noted before.
            let begin = (place.begin + 1).saturating_sub(place.before);
            at.entry((*step, begin)).or_default().push(number);
            at.entry((*step, place.end + 1)).or_default().push(number);
        }
        Self {
            library: Blocks::new(names),
            blocks: Vec::new(),
            cuts: places.iter().map(|_| Cut::default()).collect(),
            open: Vec::new(),
            at,
            step: None,
            switches: 0,
            notes: false,
        }
    }

    /// Returns the cuts, in the order of the places, and all blocks.
    pub fn finish(self) -> (Vec<Cut>, Vec<Block>) {
        (self.cuts, self.blocks)
    }

    /// Takes a piece of the trace.
    pub fn take(&mut self, item: &Item) {
        match item {
            Item::Block(block) => {
                self.library.learn(block);
                self.blocks.push(block.clone());
            }
            Item::Words(words) => words.iter().for_each(|word| self.word(*word)),
            Item::Whole(blocks) => {
                for block in blocks {
                    let instructions = self.blocks[*block as usize].insns.len() as u32;
                    self.word(Word::Ran {
                        block: *block,
                        instructions,
                    });
                }
            }
            Item::Window { .. } | Item::End => {}
        }
    }

    fn word(&mut self, word: Word) {
        for number in &self.open {
            let cut = &mut self.cuts[*number];
            if cut.words.len() < MOST {
                cut.words.push(word);
            } else {
                cut.is_too_long = true;
            }
        }
        match word {
            Word::Marker(kind) if Marker::from_kind(kind) == Some(Marker::Step) => {
                self.step = Some(self.step.map_or(0, |step| step + 1));
                (self.switches, self.notes) = (0, false);
                self.open.clear();
                self.turn();
            }
            Word::Ran { block, .. } => match self.library.notes(block) {
                Some(Notes::Done) if std::mem::take(&mut self.notes) => {
                    self.switches += 1;
                    self.turn();
                }
                None | Some(Notes::Done) => {}
                Some(what) => self.notes = what == Notes::Switch,
            },
            _ => {}
        }
    }

    /// Begins and ends the cuts that begin or end here.
    fn turn(&mut self) {
        let Some(step) = self.step else { return };
        for number in self.at.remove(&(step, self.switches)).unwrap_or_default() {
            if let Some(place) = self.open.iter().position(|open| *open == number) {
                self.open.remove(place);
                let cut = &mut self.cuts[number];
                cut.is_whole = !cut.is_too_long;
            } else {
                self.open.push(number);
            }
        }
    }
}

/// Returns the start and end of a cycle in a walk, and fits the walk's time to that of the run:
/// where the CPU slept within it, that time is added. An error says why the two do not fit.
pub fn fit(
    walk: &mut Walk,
    place: &Place,
    [response, late]: [Nanos; 2],
    clock: GuestClock,
) -> Result<[u64; 2], String> {
    // The window begins behind a switch, or with the step.
    let first = place.before.min(place.begin + 1).saturating_sub(1);
    let (first, last) = (first as usize, (first + place.end - place.begin) as usize);
    let strange = || "the switches of threads are not those of the run".to_owned();
    if walk.noted.len() != last + 1 {
        return Err(strange());
    }
    let is_each_known = place.between.len() as u64 + 1 == place.end - place.begin;
    let moments: Vec<(usize, Nanos)> = if is_each_known {
        let between = place.between.iter().copied();
        (first + 1..)
            .zip(between.chain([response - late]))
            .collect()
    } else {
        vec![(last, response - late)]
    };
    let (mut number, mut at) = (first, Nanos::ZERO);
    for (next, moment) in moments {
        stretch(walk, [number, next], moment - at, clock)?;
        (number, at) = (next, moment);
    }
    let [begin, end] = [walk.noted[first], walk.noted[last]];
    // Before the cycle began the last one counts.
    let within = |halt: &Moment| begin < halt.at && halt.at <= end;
    walk.halts.retain(|halt| !within(halt));
    Ok([begin, end])
}

/// Makes this much time pass from one of the noted switches to another.
fn stretch(
    walk: &mut Walk,
    [from, to]: [usize; 2],
    time: Nanos,
    clock: GuestClock,
) -> Result<(), String> {
    let (begin, end) = (walk.noted[from], walk.noted[to]);
    let ran = clock.time(end - begin);
    let slept = time - ran;
    if slept.0.abs() <= ROUNDING + time.0 / SHARE {
        return Ok(());
    }
    let halts = walk.halts.iter().map(|halt| halt.at);
    // Where it slept several times, only their sum is known.
    let halt = halts.rev().find(|at| begin < *at && *at < end);
    match halt {
        Some(halt) if slept > Nanos::ZERO && !walk.in_turn => {
            walk.sleep(halt, clock.instructions(slept));
            Ok(())
        }
        _ => Err(format!(
            "{ran} of instructions ran where the run took {time}"
        )),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delays of a thread of the highest priority: the four delays of Bristot, Casini, Abeni and
//! Brandenburg (ECRTS 2020), and the interrupts, which these delays leave out.
//!
//! Time here is the instructions of threads: it stands still while an interrupt is served. An
//! interrupt is over with its way back. Where that leads into the scheduler, it is over with the
//! entry of `preempt_schedule_irq`, or where interrupts are open again.

use std::collections::BTreeMap;

use super::ring::Ring;
use crate::blocks::Blocks;
use crate::guest_clock::GuestClock;
use crate::names::{Func, Names};
use punctual_model::Nanos;

/// One of the four delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DelayKind {
    /// Preemption is off for another reason than to schedule, or interrupts are off.
    Poid,
    /// The thread is to give up the CPU, preemption and interrupts are on, and the scheduler is not
    /// called yet.
    Paie,
    /// Preemption is off to schedule.
    Psd,
    /// Lasts from where the scheduler masks interrupts for the switch to where preemption is on.
    St,
}

impl DelayKind {
    /// All delays, in their order.
    pub const ALL: [Self; 4] = [Self::Poid, Self::Paie, Self::Psd, Self::St];

    /// Returns the symbol of the theorem: `D_POID`.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Poid => "D_POID",
            Self::Paie => "D_PAIE",
            Self::Psd => "D_PSD",
            Self::St => "D_ST",
        }
    }

    /// Returns the delay in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poid => "preemption or interrupts off, not to schedule",
            Self::Paie => "to be scheduled, nothing off, the scheduler not called",
            Self::Psd => "preemption off to schedule",
            Self::St => "from the masking for the switch to its end",
        }
    }
}

/// The longest delay of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The kind.
    pub kind: DelayKind,
    /// The number of delays.
    pub count: u64,
    /// Length of the longest, without interrupts.
    pub longest: Nanos,
    /// The step in which that was, from 0.
    pub step: u32,
    /// The functions in which it began, outermost first; empty if it began too long before its end
    /// to be remembered.
    pub path: Vec<String>,
    /// The function that took most of it, and its time; `None` likewise.
    pub most: Option<(String, Nanos)>,
}

/// An interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// The moment when it came, in instructions' time from the first step on.
    pub at: Nanos,
    /// Time for which it was served.
    pub length: Nanos,
    /// The number of its vector in [`Delays::vectors`].
    pub vector: usize,
    /// The number of times that the CPU had slept before: windows do not reach across sleep.
    pub sleeps: u64,
}

/// The delays of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// The longest delay of each kind. A kind without delays is missing.
    pub longest: Vec<Delay>,
    /// The entries of interrupts.
    pub vectors: Vec<String>,
    /// All interrupts, in the order of time.
    pub interrupts: Vec<Interrupt>,
    /// The longest way, by step, from the end of the last switch to a sample for which a thread had
    /// been switched to, without interrupts.
    pub way_back: BTreeMap<u32, Nanos>,
    /// The number of times that code other than scheduling switched preemption or interrupts off
    /// while [`DelayKind::Paie`] lasted, which the model does not know.
    pub detours: u64,
}

/// The open part of a delay.
#[derive(Clone, Copy)]
struct Open {
    from: u64,
    /// Place in the ring at which it began.
    place: usize,
    /// The longest piece before the CPU last slept.
    before: u64,
}

#[derive(Default)]
struct Found {
    count: u64,
    longest: u64,
    step: u32,
    path: Vec<Func>,
    most: Option<(Func, u64)>,
}

/// The interrupt that is being served.
struct Serving {
    vector: usize,
    from: u64,
    place: usize,
    /// The number of entries within it.
    entries: u32,
    /// True if it serves soft interrupts.
    softirq: bool,
}

/// An interrupt as it is counted, in instructions.
type Served = (u64, u64, usize, u64);

/// Follows the delays.
pub struct DelayTracer {
    /// The blocks of threads.
    pub ring: Ring,
    /// Place in the ring of what happens now.
    place: usize,
    /// The step, where findings count.
    step: Option<u32>,
    stolen: u64,
    serving: Option<Serving>,
    need_resched: bool,
    off: bool,
    open: [Option<Open>; 4],
    found: [Found; 4],
    /// True if the sample's thread waits; and the end of the last switch since.
    armed: bool,
    switched: Option<u64>,
    way_back: BTreeMap<u32, u64>,
    vectors: Vec<(Func, u64)>,
    served: Vec<Served>,
    sleeps: u64,
    detours: u64,
}

impl DelayTracer {
    /// Creates a tracer that has seen nothing yet.
    pub fn new() -> Self {
        Self {
            ring: Ring::new(),
            place: 0,
            step: None,
            stolen: 0,
            serving: None,
            need_resched: false,
            off: false,
            open: [None; 4],
            found: Default::default(),
            armed: false,
            switched: None,
            way_back: BTreeMap::new(),
            vectors: Vec::new(),
            served: Vec::new(),
            sleeps: 0,
            detours: 0,
        }
    }

    /// Begins a block; `step` is set where findings count.
    pub fn arrive(&mut self, step: Option<u32>) {
        self.place = self.ring.next();
        self.step = step;
    }

    /// Takes the part of that block that runs.
    pub fn run(&mut self, block: u32, ran: u32) {
        self.place = self.ring.next();
        self.ring.push(block, ran);
    }

    /// Returns the time as threads have it.
    fn now(&self, position: u64) -> u64 {
        let position = self.serving.as_ref().map_or(position, |now| now.from);
        position.saturating_sub(self.stolen)
    }

    // --- interrupts -------------------------------------------------------------------------

    /// Begins an interrupt; `entry` is the address at which it enters.
    pub fn interrupt(&mut self, func: Func, entry: u64, position: u64) {
        if self.serving.is_some() {
            self.enter();
            return;
        }
        let known = self
            .vectors
            .iter()
            .position(|known| *known == (func, entry));
        let vector = known.unwrap_or_else(|| {
            self.vectors.push((func, entry));
            self.vectors.len() - 1
        });
        self.serving = Some(Serving {
            vector,
            from: position,
            place: self.ring.next(),
            entries: 0,
            softirq: false,
        });
    }

    /// Enters an exception or a system call, or an interrupt within another.
    pub fn enter(&mut self) {
        if let Some(serving) = &mut self.serving {
            serving.entries += 1;
        }
    }

    /// Leaves such an entry, or the interrupt itself.
    pub fn leave(&mut self, position: u64) {
        match &mut self.serving {
            Some(serving) if serving.entries > 0 => serving.entries -= 1,
            Some(_) => self.served(position),
            None => {}
        }
    }

    /// Opens or masks interrupts, from the code that serves soft interrupts or from other code.
    pub fn mask(&mut self, is_masked: bool, by_softirq: bool, position: u64) {
        let Some(serving) = &mut self.serving else {
            return;
        };
        if by_softirq {
            serving.softirq = !is_masked;
        } else if !is_masked && !serving.softirq && serving.entries == 0 {
            self.served(position);
        }
    }

    /// Lets the interrupt go over into the scheduler.
    pub fn preempt_irq(&mut self, position: u64) {
        self.served(position);
    }

    fn served(&mut self, position: u64) {
        let Some(serving) = self.serving.take() else {
            return;
        };
        let length = position.saturating_sub(serving.from);
        self.stolen += length;
        self.ring.drop_from(serving.place);
        self.place = serving.place;
        if self.step.is_some() {
            let served = (serving.from, length, serving.vector, self.sleeps);
            self.served.push(served);
        }
    }

    // --- threads ----------------------------------------------------------------------------

    /// Notes whether the thread is to give up the CPU.
    pub fn need_resched(&mut self, is_needed: bool) {
        self.need_resched = is_needed;
        if !is_needed {
            self.open[DelayKind::Paie as usize] = None;
        }
    }

    /// Notes that the scheduler is about to be called and has switched preemption off.
    pub fn schedule(&mut self, position: u64, library: &Blocks) {
        if self.serving.is_some() || self.open[DelayKind::Psd as usize].is_some() {
            return;
        }
        self.close(DelayKind::Poid, position, library);
        self.close(DelayKind::Paie, position, library);
        self.begin(DelayKind::Psd, position);
    }

    /// Notes that `__schedule` begins: by itself where preemption was off anyway, and once more
    /// where one switch follows another.
    pub fn schedules(&mut self, position: u64, library: &Blocks) {
        if self.open[DelayKind::St as usize].is_some() {
            self.scheduled(position, library);
        }
        self.schedule(position, library);
    }

    /// Notes that the scheduler masks interrupts.
    pub fn masks_to_switch(&mut self, position: u64) {
        if self.serving.is_none() && self.open[DelayKind::Psd as usize].is_some() {
            self.begin(DelayKind::St, position);
        }
    }

    /// Notes that the scheduler is left, with preemption on or into the idle thread.
    pub fn scheduled(&mut self, position: u64, library: &Blocks) {
        if self.serving.is_some() || self.open[DelayKind::Psd as usize].is_none() {
            return;
        }
        self.close(DelayKind::St, position, library);
        self.close(DelayKind::Psd, position, library);
        self.switched = Some(self.now(position));
    }

    /// Takes what is off now.
    pub fn settle(&mut self, irqs: bool, preemption: bool, position: u64, library: &Blocks) {
        if self.serving.is_some() {
            return;
        }
        if !preemption {
            self.scheduled(position, library);
        }
        let is_scheduling = self.open[DelayKind::Psd as usize].is_some();
        let off = (irqs || preemption) && !is_scheduling;
        match (self.off, off) {
            (false, true) => {
                self.begin(DelayKind::Poid, position);
                let is_due = self.open[DelayKind::Paie as usize].is_some();
                self.detours += u64::from(is_due && self.step.is_some());
            }
            (true, false) => self.close(DelayKind::Poid, position, library),
            _ => {}
        }
        self.off = off;
        if self.need_resched && !off && !is_scheduling {
            self.begin(DelayKind::Paie, position);
        }
    }

    /// Notes that the CPU sleeps. Open delays go on after the sleep. A piece before it that the
    /// interrupt cuts short can be as long as the longest.
    pub fn sleep(&mut self, position: u64) {
        self.sleeps += 1;
        let now = self.now(position);
        for open in self.open.iter_mut().flatten() {
            open.before = open.before.max(now.saturating_sub(open.from));
            (open.from, open.place) = (now, self.place);
        }
    }

    /// Notes that a sample is armed.
    pub fn armed(&mut self) {
        self.armed = true;
        self.switched = None;
    }

    /// Notes that a sample is taken.
    pub fn taken(&mut self, position: u64) {
        let now = self.now(position);
        let switched = self.switched.take().filter(|_| self.armed);
        self.armed = false;
        if let Some((switched, step)) = switched.zip(self.step) {
            let longest = self.way_back.entry(step).or_default();
            *longest = now.saturating_sub(switched).max(*longest);
        }
    }

    /// Forgets what is open: the followed state is not what the code proved it to be.
    pub fn forget(&mut self) {
        self.open = [None; 4];
        self.serving = None;
        self.off = false;
    }

    fn begin(&mut self, kind: DelayKind, position: u64) {
        let (from, place, before) = (self.now(position), self.place, 0);
        self.open[kind as usize].get_or_insert(Open {
            from,
            place,
            before,
        });
    }

    fn close(&mut self, kind: DelayKind, position: u64, library: &Blocks) {
        let now = self.now(position);
        let (Some(open), Some(step)) = (self.open[kind as usize].take(), self.step) else {
            return;
        };
        let length = open.before + now.saturating_sub(open.from);
        let found = &mut self.found[kind as usize];
        found.count += 1;
        if length > found.longest || found.count == 1 {
            (found.longest, found.step) = (length, step);
            found.path = self.ring.callers(open.place, library);
            found.most = self.ring.longest(open.place, library);
        }
    }

    // --- the end ----------------------------------------------------------------------------

    /// Returns the findings, from this position on.
    pub fn finish(self, begun: u64, clock: GuestClock, names: &Names) -> Delays {
        let text = |func: &Func| names.text(*func).to_owned();
        let delay = |(kind, found): (DelayKind, Found)| Delay {
            kind,
            count: found.count,
            longest: clock.time(found.longest),
            step: found.step,
            path: found.path.iter().map(text).collect(),
            most: found.most.map(|(func, ran)| {
                let ran = ran.min(found.longest);
                (text(&func), clock.time(ran))
            }),
        };
        let found = DelayKind::ALL.into_iter().zip(self.found);
        let interrupt = |(from, length, vector, sleeps): Served| Interrupt {
            at: clock.time(from.saturating_sub(begun)),
            length: clock.time(length),
            vector,
            sleeps,
        };
        let ways = self.way_back.into_iter();
        Delays {
            longest: found
                .filter(|(_, found)| found.count > 0)
                .map(delay)
                .collect(),
            vectors: self
                .vectors
                .iter()
                .map(|vector| entry(*vector, names))
                .collect(),
            interrupts: self.served.into_iter().map(interrupt).collect(),
            way_back: ways.map(|(step, way)| (step, clock.time(way))).collect(),
            detours: self.detours,
        }
    }
}

/// Returns the name of an entry; for a table's, with its offset in it.
fn entry((func, address): (Func, u64), names: &Names) -> String {
    let behind = names.symbols().at(address).map_or(0, |(_, behind)| behind);
    let name = names.text(func);
    if behind == 0 {
        name.to_owned()
    } else {
        format!("{name}+{behind:#x}")
    }
}

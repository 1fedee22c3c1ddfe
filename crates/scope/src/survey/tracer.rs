// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a CPU through a whole run.

use std::collections::{BTreeMap, HashMap};

use punctual_trace::marker::Marker;
use punctual_trace::{Block, Word};

use super::delays::{DelayTracer, Delays};
use super::section::{Hotspot, SectionKind};
use crate::arrivals::program::{Program, Turn as Cycle};
use crate::arrivals::timeline::{self, Looks, Period, Timeline};
use crate::blocks::Blocks;
use crate::decode::{ALL_BITS, Op, PREEMPT_BITS, Transfer, local_bh_enable};
use crate::guest_clock::GuestClock;
use crate::masks::{Mask, Masking, Masks};
use crate::names::{ASKS, CodeKind, Func, KERNEL, Names};
use crate::preemptibility::Preemptibility;

/// The maximum number of blocks of open sections in the log. Beyond it, the times of each function
/// are added up.
const LOG: usize = 1 << 20;
/// The number of last blocks that stay as they ran: the callers are found there.
const LAST: usize = 64;

/// An open section.
#[derive(Clone, Copy)]
struct Open {
    from: u64,
    /// The function that began it. It is still to be found where a helper began it.
    by: Option<Func>,
    /// Index in the log at which its blocks begin.
    log: usize,
}

/// The properties of a block that matter most of the time.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a property of its own"
)]
#[derive(Clone, Copy)]
struct Shape {
    func: Func,
    length: u32,
    /// True if it can change nothing that is followed.
    quiet: bool,
    /// True if the kernel pauses in it. Where there are other CPUs, it waits for one of them.
    waits: bool,
    /// True if its function works for others, as those of locks do.
    helps: bool,
    turn: Turn,
    /// True if its function carries out the tick.
    ticks: bool,
    /// True if only the timer's interrupts lead here.
    is_timers: bool,
    /// True if its function asks whether another thread is to run.
    asks: bool,
    /// Set if its function looks, now and then, for waiting threads.
    looks: Option<Looks>,
    /// True if it is the first block of its function.
    first: bool,
    /// True if its function binds the running thread to its CPU; false if it releases it.
    pins: Option<bool>,
    /// True if its function begins to read under RCU; false if it ends.
    reads: Option<bool>,
    /// True if its function makes a real-time thread the next one; false for another thread.
    class: Option<bool>,
}

/// The place to which a block takes the CPU, as far as delays end or begin there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Nowhere,
    /// Into the scheduler.
    Schedule,
    /// From an interrupt to the scheduler.
    PreemptIrq,
    /// The idle thread's loop.
    Idle,
}

/// Returns true if the text is the second of two names, false if it is the first; `None` if it is
/// neither.
fn one_of(text: &str, names: [&str; 2]) -> Option<bool> {
    let found = names.iter().position(|name| *name == text);
    found.map(|number| number == 1)
}

impl Turn {
    fn of(name: &str, first: bool) -> Self {
        match name {
            "__schedule" | "schedule_idle" if first => Self::Schedule,
            "preempt_schedule_irq" if first => Self::PreemptIrq,
            "do_idle" => Self::Idle,
            _ => Self::Nowhere,
        }
    }
}

/// Returns how long each function ran.
fn by_function(log: &[(Func, u64)]) -> BTreeMap<Func, u64> {
    let mut sums = BTreeMap::new();
    for (func, ran) in log {
        *sums.entry(*func).or_default() += ran;
    }
    sums
}

/// The sections of one kind that one function began in one step.
#[derive(Default)]
struct Found {
    count: u64,
    longest: u64,
    sum: u64,
    ended: Func,
    most: (Func, u64),
    awaited: Option<(u32, Func)>,
}

/// Follows a CPU through a whole run.
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub struct SectionTracer<'a> {
    library: Blocks<'a>,
    shapes: Vec<Shape>,
    /// True if nothing can have changed after the previous block.
    quiet: bool,
    /// True if the function on whose behalf a section began is still to be found.
    seeking: bool,
    preemption: Preemptibility,
    /// The instructions that the CPU has executed, plus those that it waited for.
    position: u64,
    /// The part of `position` that was other CPUs' turns, for which this one waited.
    waited: u64,
    begun: Option<u64>,
    /// True if any section is open.
    opened: bool,
    step: Option<u32>,
    known: bool,
    open: [Option<Open>; 5],
    closed_entries: u32,
    count: i64,
    /// Values that were read from the interrupt mask, to be restored.
    masks: Masks,
    previous: Option<(u32, bool)>,
    /// True if `handle_softirqs` has called a pointer and the CPU is on its way to the function.
    calls_action: bool,
    log: Vec<(Func, u64)>,
    found: HashMap<(SectionKind, Func, u32), Found>,
    /// The length, in instructions, from which on a section's functions are kept.
    long: u64,
    /// How long each function ran at most within one long section, by step and kind.
    ran: HashMap<(u32, SectionKind, Func), u64>,
    delays: DelayTracer,
    mended: u64,
    cpu: u32,
    /// True if there are other CPUs.
    in_turn: bool,
    /// True if it waits for another CPU.
    waits: bool,
    /// Position at which its turn ended, in instructions that all CPUs have executed.
    left: u64,
    /// The CPU whose turn was waited for last, and the function that it executed.
    awaited: Option<(u32, Func)>,
    /// The last function that it executed, helpers left out.
    plain: Func,
    /// Tracks what is off from one sample to the next, where that is asked for.
    timeline: Option<Timeline>,
    /// The periods that are over and that nobody has taken yet.
    periods: Vec<Period>,
    /// The threads of programs whose waits also end periods.
    program: Option<Program>,
    /// True if the scheduler was called and has not yet switched preemption on again.
    in_scheduler: bool,
}

impl<'a> SectionTracer<'a> {
    /// Creates a tracer that has seen nothing yet.
    pub fn new(names: Names<'a>, preemption: Preemptibility, cpu: u32, in_turn: bool) -> Self {
        Self {
            library: Blocks::new(names),
            shapes: Vec::new(),
            quiet: false,
            seeking: false,
            preemption,
            position: 0,
            waited: 0,
            begun: None,
            opened: false,
            step: None,
            known: false,
            open: [None; 5],
            closed_entries: 0,
            count: 0,
            masks: Masks::default(),
            previous: None,
            calls_action: false,
            log: Vec::new(),
            found: HashMap::new(),
            long: u64::MAX,
            ran: HashMap::new(),
            delays: DelayTracer::new(),
            mended: 0,
            cpu,
            in_turn,
            waits: false,
            left: 0,
            awaited: None,
            plain: Func::default(),
            timeline: None,
            periods: Vec::new(),
            program: None,
            in_scheduler: false,
        }
    }

    /// Creates a tracer that also tells what is off from one sample to the next of these steps, and
    /// the functions of sections of `long` instructions and more.
    pub fn with_periods(
        names: Names<'a>,
        preemption: Preemptibility,
        steps: impl Iterator<Item = u32>,
        program: Option<Program>,
        long: u64,
    ) -> Self {
        Self {
            long,
            timeline: Some(Timeline::of(steps)),
            program,
            ..Self::new(names, preemption, 0, false)
        }
    }

    /// Returns the threads of programs, where their waits end periods.
    pub fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }

    /// Takes the periods that have ended since the last call.
    pub fn take_periods(&mut self) -> Vec<Period> {
        std::mem::take(&mut self.periods)
    }

    /// Returns the names of what ran.
    pub fn names(&self) -> &Names<'a> {
        &self.library.names
    }

    /// Notes in the timeline what is off now.
    fn note(&mut self, func: Func, scheduled: bool) {
        let Some(timeline) = &mut self.timeline else {
            return;
        };
        let name = self.library.names.name(func);
        let is_user = name.kind == CodeKind::User;
        let preempt = self.count & PREEMPT_BITS != 0;
        let softirq = self.count & ALL_BITS & 0xff00 != 0;
        let asked = self.preemption == Preemptibility::Asked;
        let mut separate = scheduled;
        if scheduled {
            self.in_scheduler = true;
        } else if self.in_scheduler && !preempt {
            (self.in_scheduler, separate) = (false, true);
        }
        let stuck = asked && !is_user && !self.in_scheduler;
        let irqs = self.open[SectionKind::IrqsOff as usize].is_some();
        let bits = [
            (irqs, timeline::IRQS),
            (preempt, timeline::PREEMPT),
            (softirq, timeline::SOFTIRQ),
            (stuck, timeline::STUCK),
            (is_user, timeline::USER),
        ];
        let state = bits
            .iter()
            .filter(|(is, _)| *is)
            .fold(0, |sum, (_, bit)| sum | bit);
        let helps = name.kind.is_helper();
        // The scheduler looks which thread is to run, whatever is off around it.
        if separate && asked {
            timeline.note(self.position, timeline::OPEN, func, helps, scheduled);
        }
        timeline.note(self.position, state, func, helps, false);
    }

    /// Learns a further block.
    pub fn learn(&mut self, block: &Block) {
        self.library.learn(block);
        self.shapes.push(self.shape(block.number));
    }

    /// Returns the number of instructions that it has executed.
    pub fn executed(&self) -> u64 {
        self.position - self.waited
    }

    /// Ends its turn; `now` is what all CPUs have executed. Returns its number and the last
    /// function that is no helper.
    pub fn leaves(&mut self, now: u64) -> (u32, Func) {
        self.left = now;
        (self.cpu, self.plain)
    }

    /// Begins its turn, after that of another CPU. The time that it waited for counts as its own.
    pub fn returns(&mut self, now: u64, awaited: (u32, Func)) {
        if !self.waits {
            return;
        }
        let waited = now.saturating_sub(self.left);
        self.waited += waited;
        self.awaited = Some(awaited);
        let spinning = self
            .previous
            .map_or(self.plain, |(block, _)| self.library.func(block).0);
        self.run(spinning, u32::try_from(waited).unwrap_or(u32::MAX));
    }

    /// Returns the properties of a block that matter most of the time.
    fn shape(&self, block: u32) -> Shape {
        let (func, first) = self.library.func(block);
        let decoded = self.library.block(block);
        let leaves = matches!(decoded.last, Transfer::Iret | Transfer::Sysret);
        let turn = Turn::of(self.library.names.text(func), first);
        let kind = self.library.names.name(func).kind;
        let waits = self.in_turn && decoded.pauses && decoded.start >= KERNEL;
        let text = self.library.names.text(func);
        let looks = Looks::of(text).filter(|_| decoded.start >= KERNEL);
        Shape {
            func,
            looks,
            first,
            turn,
            ticks: matches!(text, "tick_nohz_handler" | "tick_sched_timer"),
            is_timers: first && text == self.library.names.code().timer,
            asks: first && ASKS.contains(&text),
            pins: one_of(text, ["migrate_enable", "migrate_disable"]),
            class: one_of(text, ["set_next_entity", "set_next_task_rt"])
                .or_else(|| {
                    one_of(text, ["set_next_task_fair", "set_next_task_idle"]).and(Some(false))
                })
                .filter(|_| first),
            reads: one_of(text, ["__rcu_read_unlock", "__rcu_read_lock"]).filter(|_| first),
            length: decoded.insns.len() as u32,
            waits,
            helps: kind.is_helper(),
            quiet: decoded.ops.is_empty()
                && looks.is_none_or(|looks| {
                    self.timeline.is_none() || matches!(looks, Looks::Action(_))
                })
                && !waits
                && !first
                && decoded.start >= KERNEL
                && !leaves
                && turn == Turn::Nowhere
                && kind != CodeKind::Softirq,
        }
    }

    /// Follows a block that ran as a whole. Most of them change nothing.
    pub fn whole(&mut self, block: u32) {
        let shape = self.shapes[block as usize];
        if shape.quiet && self.quiet && !self.seeking && !self.waits {
            if !shape.helps {
                self.plain = shape.func;
            }
            self.run(shape.func, shape.length);
            self.delays.ring.push(block, shape.length);
            self.previous = Some((block, true));
            return;
        }
        self.block(block, shape.length);
        self.quiet = shape.quiet;
        self.seeking = self.open.iter().flatten().any(|open| open.by.is_none());
    }

    /// Follows one thing that happened on this CPU. A step is reported to all CPUs.
    pub fn word(&mut self, word: Word) {
        match word {
            Word::Ran {
                block,
                instructions: ran,
            } => {
                self.block(block, ran);
                self.quiet = false;
            }
            Word::Memory { insn, address } => {
                if let Some(program) = &mut self.program {
                    program.accesses(insn, address);
                }
            }
            Word::Turn(_) => {}
            Word::Marker(kind) => {
                if Marker::from_kind(kind) == Some(Marker::Step) {
                    let executed = self.position - self.waited;
                    self.begun.get_or_insert(executed);
                    self.step = Some(self.step.map_or(0, |step| step + 1));
                    if let Some(timeline) = &mut self.timeline {
                        timeline.step();
                    }
                    if let Some(program) = &mut self.program {
                        program.step();
                    }
                }
            }
        }
    }

    fn block(&mut self, block: u32, ran: u32) {
        let (func, first) = self.library.func(block);
        let kind = self.library.names.name(func).kind;
        let decoded = self.library.block(block);
        let whole = ran as usize >= decoded.insns.len();
        let (start, ops) = (decoded.start, decoded.ops.clone());
        self.delays.arrive(self.step.filter(|_| self.known));
        self.arrive(func, first, kind, start);
        let shape = self.shapes[block as usize];
        self.wait(func, shape.waits);
        let goes_on = self.plain != func;
        if !shape.helps {
            self.plain = func;
        }
        self.turn(shape.turn);
        self.mark(shape, func, first);
        let looks = shape.looks.filter(|_| shape.first || goes_on);
        if let (Some(looks), Some(timeline)) = (looks, &mut self.timeline) {
            timeline.looks(self.position, looks, shape.first);
        }
        self.delays.run(block, ran);
        self.hold(shape, &ops, ran);
        let mut done = 0;
        for (number, op) in ops.into_iter().filter(|(number, _)| *number < ran) {
            self.run(func, number + 1 - done);
            done = number + 1;
            self.op(op, func);
        }
        self.run(func, ran - done);
        self.follow(block, func);
        self.opened = self.open.iter().any(Option::is_some);
        self.previous = Some((block, whole));
    }

    /// Follows a program's thread through a block.
    fn follow(&mut self, block: u32, func: Func) {
        let (Some(program), Some(timeline)) = (&mut self.program, &mut self.timeline) else {
            return;
        };
        let name = self.library.names.name(func);
        if name.kind == CodeKind::Syscall && self.library.func(block).1 {
            program.call();
        }
        let turn = self.library.notes(block);
        let turn = turn.and_then(|what| program.notes(what, &name.text));
        match turn {
            Some((Cycle::Begins(cycle), read)) => {
                let period = timeline.begins(cycle, read);
                self.periods.extend(period.filter(|_| self.known));
            }
            Some((Cycle::Ends, _)) => timeline.waits(program.wait()),
            None => {}
        }
    }

    /// Notes what the running thread takes hold of and a switch has to see to.
    fn hold(&mut self, shape: Shape, ops: &[(u32, Op)], ran: u32) {
        let Some(timeline) = &mut self.timeline else {
            return;
        };
        if let Some(is_real_time) = shape.class {
            timeline.class(is_real_time);
        }
        if let Some(begins) = shape.reads {
            timeline.read(begins);
        }
        // Where a thread is bound already nothing is switched off for it.
        let counts = |(number, op): &(u32, Op)| *number < ran && matches!(op, Op::Preempt(_));
        if let Some(is_pinned) = shape.pins.filter(|_| ops.iter().any(counts)) {
            timeline.pin(is_pinned);
        }
    }

    /// Tells the timeline what it has to know of a block.
    fn mark(&mut self, shape: Shape, func: Func, first: bool) {
        let Some(timeline) = &mut self.timeline else {
            return;
        };
        timeline.block(self.position);
        if shape.is_timers {
            timeline.is_timers();
        }
        if matches!(shape.turn, Turn::Schedule | Turn::PreemptIrq) {
            let from_user = shape.turn == Turn::Schedule;
            timeline.over(self.position, Some(from_user));
        }
        if first && shape.ticks {
            timeline.tick(self.position);
        }
        if !shape.helps {
            timeline.name(func);
        }
        let (asks, asked) = (shape.asks, self.preemption == Preemptibility::Asked);
        if let (true, true, Some(timeline)) = (asks, asked, &mut self.timeline) {
            timeline.note(self.position, timeline::OPEN, func, false, false);
        }
        self.note(func, shape.turn == Turn::Schedule);
    }

    /// Follows spinning. A function spins from its first pause to where the CPU goes on in another
    /// one.
    fn wait(&mut self, func: Func, waits: bool) {
        let spinning = self.open[SectionKind::Spinning as usize].and_then(|open| open.by);
        if spinning.is_some_and(|by| by != func) {
            self.close(SectionKind::Spinning, func);
        }
        if waits {
            self.open(SectionKind::Spinning, Some(func));
        }
        self.waits = waits;
    }

    #[inline]
    fn run(&mut self, func: Func, ran: u32) {
        if let Some(timeline) = &mut self.timeline {
            timeline.ran(self.position, func);
        }
        self.position += u64::from(ran);
        if self.opened {
            if self.log.len() >= LOG {
                self.sum_up();
            }
            self.log.push((func, u64::from(ran)));
        } else {
            self.log.clear();
        }
    }

    /// Adds up the time of each function between the starts of open sections.
    fn sum_up(&mut self) {
        let kept = self.log.split_off(self.log.len().saturating_sub(LAST));
        let old = std::mem::take(&mut self.log);
        let mut open: Vec<&mut usize> =
            self.open.iter_mut().flatten().map(|o| &mut o.log).collect();
        open.sort_unstable();
        let mut from = 0;
        for begin in open {
            let part = &old[from..(*begin).clamp(from, old.len())];
            from += part.len();
            let later = begin.saturating_sub(old.len());
            self.log.extend(by_function(part));
            *begin = self.log.len() + later;
        }
        self.log.extend(by_function(&old[from..]));
        self.log.extend(kept);
    }

    /// Notes which delays begin or end with a block, and then what is off.
    fn turn(&mut self, turn: Turn) {
        let (delays, library) = (&mut self.delays, &self.library);
        match turn {
            Turn::Schedule => delays.schedules(self.position, library),
            Turn::PreemptIrq => delays.preempt_irq(self.position),
            Turn::Idle => delays.scheduled(self.position, library),
            Turn::Nowhere => {}
        }
        self.settle();
    }

    fn settle(&mut self) {
        let irqs = self.open[SectionKind::IrqsOff as usize].is_some();
        let preemption = self.count & PREEMPT_BITS != 0;
        let library = &self.library;
        self.delays.settle(irqs, preemption, self.position, library);
    }

    fn arrive(&mut self, func: Func, first: bool, kind: CodeKind, start: u64) {
        let user = start < KERNEL;
        let previous = self.previous.filter(|(_, whole)| *whole);
        let last = previous.map_or(Transfer::On, |(block, _)| self.library.block(block).last);
        if matches!(last, Transfer::Iret | Transfer::Sysret) {
            self.masks.leave();
            if self.closed_entries > 0 && !user {
                self.closed_entries -= 1;
            } else {
                self.close(SectionKind::IrqsOff, func);
                if let Some(timeline) = &mut self.timeline {
                    timeline.over(self.position, None);
                }
                self.note(func, false);
            }
            self.delays.leave(self.position);
        }
        let before = previous.map(|(block, _)| self.library.func(block).0);
        let from_table = before.is_some_and(|before| self.library.names.is_table(before));
        if kind.is_entry() && first && !from_table {
            let func = self.library.names.entered(func, last == Transfer::Syscall);
            self.enter(func, self.library.names.name(func).kind);
            if kind == CodeKind::Interrupt {
                if let Some(timeline) = &mut self.timeline {
                    timeline.interrupt(self.position, func);
                }
                self.delays.interrupt(func, start, self.position);
            } else {
                self.delays.enter();
            }
        } else if user {
            self.in_user(func);
        }
        // A helper has switched something off for whoever comes next.
        if !kind.is_helper() {
            for open in self.open.iter_mut().flatten() {
                open.by.get_or_insert(func);
            }
        }
        self.softirq(func, first, kind);
        if self.preemption == Preemptibility::Asked
            && first
            && ASKS.contains(&self.library.names.text(func))
        {
            self.close(SectionKind::NotPreemptible, func);
            self.open(SectionKind::NotPreemptible, None);
        }
    }

    /// Follows soft interrupts. Their functions are those that are called through a pointer,
    /// directly or by way of a detour.
    fn softirq(&mut self, func: Func, first: bool, kind: CodeKind) {
        if kind == CodeKind::Softirq {
            self.close(SectionKind::Softirq, func);
            self.calls_action = false;
            return;
        }
        let caller = self.previous.filter(|(block, whole)| {
            let (caller, _) = self.library.func(*block);
            *whole && self.library.names.name(caller).kind == CodeKind::Softirq
        });
        if let Some((block, _)) = caller {
            let block = self.library.block(block);
            let detour = self
                .library
                .names
                .code()
                .is_detour(self.library.names.text(func));
            self.calls_action = block.calls_pointer || block.last == Transfer::Call && detour;
        }
        if first && kind == CodeKind::Plain && self.calls_action {
            self.calls_action = false;
            self.open(SectionKind::Softirq, Some(func));
        }
    }

    fn enter(&mut self, func: Func, kind: CodeKind) {
        let faulted = self
            .previous
            .is_some_and(|(block, whole)| !whole || self.library.block(block).last_may_fault);
        if kind == CodeKind::Exception && faulted {
            self.position = self.position.saturating_sub(1);
        }
        let masked = self.open[SectionKind::IrqsOff as usize].is_some();
        self.masks.enter(masked && kind != CodeKind::Interrupt);
        if masked {
            if kind == CodeKind::Interrupt {
                self.mend();
                self.open[SectionKind::IrqsOff as usize] = None;
                self.closed_entries = 0;
            } else {
                self.closed_entries += 1;
            }
        }
        self.open(SectionKind::IrqsOff, Some(func));
        if self.preemption == Preemptibility::Asked {
            self.open(SectionKind::NotPreemptible, Some(func));
        }
    }

    fn in_user(&mut self, func: Func) {
        self.close(SectionKind::NotPreemptible, func);
        let off =
            [SectionKind::IrqsOff, SectionKind::PreemptOff].map(|what| self.open[what as usize]);
        if off.iter().any(Option::is_some) || self.count & ALL_BITS != 0 {
            self.mend();
            self.open = [None; 5];
            self.count = 0;
        }
        self.closed_entries = 0;
        self.known = true;
    }

    /// Counts a correction: the followed state is not what the code proves.
    fn mend(&mut self) {
        self.mended += u64::from(self.known);
        self.delays.forget();
        if let Some(timeline) = &mut self.timeline {
            timeline.mend();
        }
    }

    fn op(&mut self, op: Op, func: Func) {
        match op {
            Op::Mask(mask, masking) => self.mask((mask, masking), func),
            Op::NeedResched(is_needed) => self.delays.need_resched(is_needed),
            Op::Preempt(amount) => self.preempt(amount, func),
            Op::PreemptBy => {
                if self.library.names.text(func) == "__local_bh_enable_ip" {
                    let low = self.count & PREEMPT_BITS;
                    let of_lock = low > 0 && self.was_called_by_lock();
                    self.preempt(local_bh_enable(of_lock), func);
                } else {
                    self.mend();
                }
            }
            // The CPU sleeps: what comes after begins anew.
            Op::Halt => {
                for open in self.open.iter_mut().flatten() {
                    open.from = self.position;
                    open.log = self.log.len();
                }
                self.delays.sleep(self.position);
                if let Some(timeline) = &mut self.timeline {
                    timeline.halt(self.position, func);
                }
            }
            Op::TakeStack(_) if self.preemption == Preemptibility::Asked => {
                self.close(SectionKind::NotPreemptible, func);
                self.open(SectionKind::NotPreemptible, None);
            }
            Op::Marker(Marker::Armed) => {
                self.delays.armed();
                if let Some(timeline) = &mut self.timeline {
                    timeline.armed();
                }
            }
            Op::Marker(Marker::Taken) => {
                self.delays.taken(self.position);
                let position = self.position;
                let taken = |timeline: &mut Timeline| timeline.taken(position);
                let period = self.timeline.as_mut().and_then(taken);
                self.periods.extend(period.filter(|_| self.known));
            }
            // Blocks know which registers are meant.
            Op::Point(_)
            | Op::Keep(_)
            | Op::Put(..)
            | Op::At(..)
            | Op::ReadClock
            | Op::LeaveStack(_)
            | Op::TakeStack(_)
            | Op::Marker(_) => {}
        }
        if let Some(timeline) = &mut self.timeline {
            match op {
                Op::TakeStack(_) => {
                    timeline.switch(self.position);
                    timeline.ahead(self.program.as_ref().is_some_and(Program::is_ahead));
                }
                Op::ReadClock if self.library.names.name(func).kind == CodeKind::User => {
                    timeline.clock(self.position);
                }
                Op::ReadClock => {
                    if let Some(program) = &mut self.program {
                        program.clock(self.position);
                    }
                }
                _ => {}
            }
        }
        self.settle();
        self.note(func, false);
    }

    /// Applies an operation on the interrupt mask.
    fn mask(&mut self, done: (Mask, Masking), func: Func) {
        let off = self.open[SectionKind::IrqsOff as usize].is_some();
        let Some(is_masked) = self.masks.apply(done, self.position, off) else {
            return;
        };
        let name = self.library.names.name(func);
        let by_softirq = name.kind == CodeKind::Softirq;
        self.delays.mask(is_masked, by_softirq, self.position);
        if is_masked {
            if name.text == "__schedule" {
                self.delays.masks_to_switch(self.position);
            }
            self.open(SectionKind::IrqsOff, self.unless_helper(func));
        } else {
            self.close(SectionKind::IrqsOff, func);
        }
    }

    /// Returns true if a lock's function called. Calls are not followed here, but the functions
    /// that give a lock back call `__local_bh_enable_ip` with 0x201, and they come right before.
    fn was_called_by_lock(&self) -> bool {
        let names = self
            .log
            .iter()
            .rev()
            .map(|(func, _)| self.library.names.name(*func));
        let mut before = names.skip_while(|name| name.text == "__local_bh_enable_ip");
        before
            .next()
            .is_some_and(|name| name.kind == CodeKind::Lock)
    }

    fn unless_helper(&self, func: Func) -> Option<Func> {
        let kind = self.library.names.name(func).kind;
        (!kind.is_helper()).then_some(func)
    }

    fn preempt(&mut self, amount: i64, func: Func) {
        let before = self.count & PREEMPT_BITS != 0;
        self.count += amount;
        match (before, self.count & PREEMPT_BITS != 0) {
            (false, true) => {
                self.open(SectionKind::PreemptOff, self.unless_helper(func));
                if self.library.names.name(func).kind == CodeKind::Scheduler {
                    self.delays.schedule(self.position, &self.library);
                }
            }
            (true, false) => self.close(SectionKind::PreemptOff, func),
            _ => {}
        }
    }

    fn open(&mut self, what: SectionKind, by: Option<Func>) {
        let (from, log) = (self.position, self.log.len());
        self.open[what as usize].get_or_insert(Open { from, by, log });
    }

    fn close(&mut self, what: SectionKind, func: Func) {
        let Some(open) = self.open[what as usize].take() else {
            return;
        };
        let Some(step) = self.step.filter(|_| self.known) else {
            return;
        };
        let length = self.position - open.from;
        let by = open.by.unwrap_or(func);
        let found = self.found.entry((what, by, step)).or_default();
        found.count += 1;
        found.sum += length;
        let is_longest = length > found.longest;
        let is_long = length >= self.long;
        if !(is_longest || is_long) {
            return;
        }
        let own = by_function(self.log.get(open.log..).unwrap_or_default());
        if is_longest {
            (found.longest, found.ended) = (length, func);
            let most = own.iter().max_by_key(|(func, ran)| (**ran, **func));
            found.most = most.map_or((by, length), |(func, ran)| (*func, *ran));
            found.awaited = self.awaited.filter(|_| what == SectionKind::Spinning);
        }
        if is_long {
            for (func, ran) in own {
                let most = self.ran.entry((step, what, func)).or_default();
                *most = ran.max(*most);
            }
        }
    }

    /// Returns the places that it found, in any order.
    pub fn hotspots(&self, clock: GuestClock) -> Vec<Hotspot> {
        let mut all = HashMap::<(SectionKind, Func), Hotspot>::new();
        for (key, found) in &self.found {
            let own = self.hotspot(*key, found, clock);
            let Some(known) = all.get_mut(&(key.0, key.1)) else {
                all.insert((key.0, key.1), own);
                continue;
            };
            let (count, sum) = (known.count + own.count, known.sum + own.sum);
            // Of equally long ones it is the first.
            if (own.longest, known.step) > (known.longest, own.step) {
                *known = own;
            }
            (known.count, known.sum) = (count, sum);
        }
        all.into_values().collect()
    }

    /// Returns how long each function ran at most within one section of a step, from the step's
    /// beginning to that of the next, in instructions: in long sections of the kinds that
    /// `counts` accepts.
    pub fn functions_of(
        &self,
        step: u32,
        counts: impl Fn(SectionKind) -> bool,
    ) -> BTreeMap<Func, u64> {
        let own = self.ran.iter();
        let own = own.filter(|((of, what, _), _)| *of == step && counts(*what));
        let mut all = BTreeMap::new();
        for ((_, _, func), ran) in own {
            let most: &mut u64 = all.entry(*func).or_default();
            *most = (*most).max(*ran);
        }
        all
    }

    fn hotspot(
        &self,
        (what, by, step): (SectionKind, Func, u32),
        found: &Found,
        clock: GuestClock,
    ) -> Hotspot {
        let text = |func: Func| self.library.names.text(func).to_owned();
        Hotspot {
            what,
            cpu: self.cpu,
            function: text(by),
            count: found.count,
            longest: clock.time(found.longest),
            sum: clock.time(found.sum),
            step,
            ended: text(found.ended),
            most: (text(found.most.0), clock.time(found.most.1)),
            awaited: found.awaited.map(|(cpu, func)| (cpu, text(func))),
        }
    }

    /// Forgets the places that were found.
    pub fn forget_found(&mut self) {
        self.found.clear();
    }

    /// Returns true if it was ever known what is off. In user space it is not.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Returns the number of instructions that it has executed since the first step began.
    pub fn since_begun(&self) -> u64 {
        self.executed() - self.begun.unwrap_or(0)
    }

    /// Returns how often the followed state was not what the code proved it to be.
    pub fn mended(&self) -> u64 {
        self.mended
    }

    /// Returns the delays of threads on this CPU.
    pub fn delays(self, clock: GuestClock) -> Delays {
        let begun = self.begun.unwrap_or(0);
        self.delays.finish(begun, clock, &self.library.names)
    }
}

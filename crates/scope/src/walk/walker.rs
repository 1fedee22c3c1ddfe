// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a window instruction by instruction.

use std::collections::HashMap;

use punctual_trace::Word;

use super::path::{Access, Activation, Moment, Number, Span, Switch, Task, Wake, Walk};
use crate::blocks::{Blocks, Notes};
use crate::decode::{ALL_BITS, Op, PREEMPT_BITS, Transfer, local_bh_enable};
use crate::masks::{Mask, Masking, Masks};
use crate::names::{self, CodeKind, Func, KERNEL};

/// Follows a window instruction by instruction.
pub struct Walker<'a> {
    library: &'a Blocks<'a>,
    walk: Walk,
    /// The functions at which threads without a CPU go on.
    stacks: HashMap<Task, Number>,
    /// The CPU that has the turn.
    cpu: Cpu,
    /// The other CPUs.
    waiting: HashMap<u32, Cpu>,
    /// Position at which the kernel last read the clock.
    read: Option<u64>,
    /// True if the kernel's tracer is about to note a switch.
    notes: bool,
}

/// The followed state of a CPU.
#[derive(Default)]
struct Cpu {
    number: u32,
    top: Option<Number>,
    task: Task,
    /// The function that masked interrupts.
    irqs_off: Option<Number>,
    /// Values that were read from their mask, to be restored.
    masks: Masks,
    count: i64,
    preempt_off: Option<Number>,
    previous: Option<Previous>,
    /// True if anything has run on it.
    began: bool,
    /// True if the state is known: that of user space is.
    known: bool,
}

impl Cpu {
    /// Creates a CPU of which nothing is known.
    fn new(number: u32) -> Self {
        Self {
            number,
            task: Task::from(number),
            ..Self::default()
        }
    }
}

/// The previous block.
#[derive(Clone, Copy)]
struct Previous {
    func: Func,
    last: Transfer,
    calls_pointer: bool,
    whole: bool,
    may_fault: bool,
}

impl<'a> Walker<'a> {
    /// Creates a walker at the start of a window.
    pub fn new(library: &'a Blocks<'a>) -> Self {
        Self {
            library,
            walk: Walk::default(),
            stacks: HashMap::new(),
            cpu: Cpu::new(0),
            waiting: HashMap::new(),
            read: None,
            notes: false,
        }
    }

    /// Follows a whole window.
    pub fn window(mut self, words: &[Word]) -> Walk {
        let mut memory = Vec::new();
        for word in words {
            match *word {
                Word::Memory { insn, address } => memory.push((insn, address)),
                Word::Marker(_) => {}
                Word::Turn(cpu) => self.turn(cpu),
                Word::Ran {
                    block,
                    instructions: ran,
                } => {
                    self.block(block, ran, &memory);
                    memory.clear();
                }
            }
        }
        self.walk.cpu = self.cpu.number;
        self.name_first();
        self.walk
    }

    /// Gives the turn to another CPU.
    fn turn(&mut self, cpu: u32) {
        self.walk.in_turn = true;
        if cpu != self.cpu.number {
            let next = self.waiting.remove(&cpu).unwrap_or_else(|| Cpu::new(cpu));
            let before = std::mem::replace(&mut self.cpu, next);
            self.waiting.insert(before.number, before);
        }
    }

    /// Names each CPU's first thread: where it leaves its stack shows which one it is.
    fn name_first(&mut self) {
        let first = &self.walk.first;
        let unknown = first.keys().next_back().copied().unwrap_or_default();
        let spans = self.walk.spans.iter_mut().map(|span| &mut span.task);
        let functions = self.walk.activations.iter_mut().map(|one| &mut one.task);
        for task in spans.chain(functions) {
            if *task <= Task::from(unknown) {
                *task = first.get(&(*task as u32)).copied().unwrap_or(*task);
            }
        }
        let idlers = self.walk.idlers.iter().map(|task| {
            let number = u32::try_from(*task).ok();
            let known = number.and_then(|number| first.get(&number));
            known.copied().unwrap_or(*task)
        });
        self.walk.idlers = idlers.collect();
    }

    fn block(&mut self, block: u32, ran: u32, memory: &[(u8, u64)]) {
        let library = self.library;
        let (func, first) = library.func(block);
        let decoded = library.block(block);
        let user = decoded.start < KERNEL;
        if !self.cpu.began {
            self.cpu.known = user;
        }
        if user && decoded.pauses {
            self.walk.idlers.insert(self.cpu.task);
        }
        self.arrive(func, first, user);
        let mut done = 0;
        for (number, op) in decoded.ops.iter().copied().filter(|(n, _)| *n < ran) {
            self.span(decoded.address(done), user, number + 1 - done);
            done = number + 1;
            self.op(op, func, number, memory);
        }
        self.span(decoded.address(done), user, ran - done);
        match library.notes(block) {
            None => {}
            Some(Notes::Done) => {
                let is_switch = std::mem::take(&mut self.notes);
                self.walk.noted.extend(self.read.filter(|_| is_switch));
            }
            Some(what) => self.notes = what == Notes::Switch,
        }
        self.note_wake(block, func, memory);
        if !user && self.walk.in_turn {
            self.note_locks(decoded.pauses, func, memory);
        }
        self.cpu.previous = Some(Previous {
            func,
            last: decoded.last,
            calls_pointer: decoded.calls_pointer,
            whole: ran as usize >= decoded.insns.len(),
            may_fault: decoded.last_may_fault,
        });
    }

    fn span(&mut self, address: u64, user: bool, length: u32) {
        let Some(top) = self.cpu.top.filter(|_| length > 0) else {
            return;
        };
        self.walk.spans.push(Span {
            cpu: self.cpu.number,
            from: self.walk.total,
            length,
            top,
            task: self.cpu.task,
            user,
            irqs_off: self.cpu.irqs_off,
            preempt_off: self.cpu.preempt_off,
            address,
            asleep: false,
        });
        self.walk.total += u64::from(length);
        self.cpu.began = true;
    }

    // --- where the CPU comes from -----------------------------------------------------------

    fn arrive(&mut self, func: Func, first: bool, user: bool) {
        let kind = self.library.names.name(func).kind;
        let previous = self.cpu.previous.filter(|previous| previous.whole);
        let from_table = previous.is_some_and(|p| self.library.names.is_table(p.func));
        let mut last = previous.map_or(Transfer::On, |previous| previous.last);
        match last {
            Transfer::Iret | Transfer::Sysret => last = self.leave_entry(),
            Transfer::Return if self.is_jump() => last = Transfer::On,
            _ => {}
        }
        if kind.is_entry() && first && !from_table {
            let func = self.library.names.entered(func, last == Transfer::Syscall);
            self.enter(func, self.library.names.name(func).kind, last);
            return;
        }
        match last {
            Transfer::Call if !user && self.is_call(func, first) => self.push(func, false),
            Transfer::Return if !user => self.go_back(func),
            _ => {}
        }
        if user {
            self.in_user(func);
        } else {
            self.within(func, from_table, kind);
        }
    }

    /// Returns true if a call is a real one. One within a function is a trick: it fills the CPU's
    /// buffer of return addresses, or has a return jump somewhere.
    fn is_call(&self, func: Func, first: bool) -> bool {
        let top = self.cpu.top.map(|top| self.walk.activation(top).func);
        first || top != Some(func)
    }

    /// Returns true if a return is a jump: in a detour, the call leads there.
    fn is_jump(&self) -> bool {
        self.cpu.previous.is_some_and(|previous| {
            let text = self.library.names.text(previous.func);
            self.library.names.code().is_detour(text)
        })
    }

    /// Returns true if the function that begins was called through a pointer, by a detour or
    /// without one.
    fn is_by_pointer(&self) -> bool {
        let calls = |previous: Previous| previous.whole && previous.calls_pointer;
        self.cpu.previous.is_some_and(calls) || self.is_jump()
    }

    /// Enters an interrupt, an exception or a system call.
    fn enter(&mut self, func: Func, kind: CodeKind, pending: Transfer) {
        if kind == CodeKind::Exception && has_faulted(self.cpu.previous.as_ref()) {
            self.take_back();
        }
        let opened = self.cpu.irqs_off.is_none();
        self.cpu.masks.enter(!opened && kind != CodeKind::Interrupt);
        self.push(func, true);
        if let Some(top) = self.cpu.top {
            let activation = &mut self.walk.activations[top as usize];
            (activation.opened, activation.pending) = (opened, pending);
        }
        if opened {
            self.cpu.irqs_off = self.cpu.top;
        } else if kind == CodeKind::Interrupt {
            // None comes while interrupts are masked: what masked them was not seen to end.
            self.walk.mended += 1;
            self.cpu.irqs_off = self.cpu.top;
        }
    }

    /// Takes back an instruction that faults: it was begun, but is not counted until it is done. If
    /// another CPU had the turn meanwhile, what ran there was that much earlier.
    fn take_back(&mut self) {
        let walk = &mut self.walk;
        let own = |span: &Span| span.cpu == self.cpu.number;
        let Some(last) = walk.spans.iter().rposition(own) else {
            return;
        };
        walk.total -= 1;
        walk.spans[last].length -= 1;
        let behind = walk.spans[last].from + u64::from(walk.spans[last].length);
        for span in &mut walk.spans[last + 1..] {
            span.from -= 1;
        }
        let moments = walk.clocks.iter_mut().chain(&mut walk.halts);
        let moments = moments.map(|moment| &mut moment.at);
        let wakes = walk.wakes.iter_mut().map(|wake| &mut wake.at);
        let switches = walk.switches.iter_mut().map(|switch| &mut switch.at);
        let functions = walk.activations.iter_mut();
        let functions = functions.flat_map(|one| one.begin.iter_mut().chain(&mut one.end));
        if last + 1 < walk.spans.len() {
            let all = moments.chain(wakes).chain(switches).chain(functions);
            let all = all.chain(&mut walk.noted);
            all.filter(|at| **at > behind).for_each(|at| *at -= 1);
        }
        if walk.spans[last].length == 0 {
            walk.spans.remove(last);
        }
    }

    /// Leaves an interrupt, an exception or a system call; returns the transfer that was pending
    /// there.
    fn leave_entry(&mut self) -> Transfer {
        let mut left = (true, Transfer::On);
        while let Some(top) = self.cpu.top {
            let activation = self.walk.activation(top);
            let (entry, was) = (activation.entry, (activation.opened, activation.pending));
            self.pop();
            if entry {
                left = was;
                break;
            }
        }
        self.cpu.masks.leave();
        if left.0 {
            self.cpu.irqs_off = None;
        }
        left.1
    }

    /// Follows user space. Calls are not followed there: only the running function is told or, if
    /// none of its lines is known, the line that called it.
    fn in_user(&mut self, func: Func) {
        if self.cpu.count & ALL_BITS != 0 || self.cpu.irqs_off.is_some() {
            self.walk.mended += u32::from(self.cpu.known);
            (self.cpu.irqs_off, self.cpu.preempt_off, self.cpu.count) = (None, None, 0);
        }
        self.cpu.known = true;
        match self.cpu.top {
            Some(top) if self.walk.activation(top).func == func => {}
            Some(top) => self.go_on_in_user(top, func),
            None => self.push(func, false),
        }
    }

    fn go_on_in_user(&mut self, top: Number, func: Func) {
        let names = &self.library.names;
        let has_line = |func: Func| names::has_line(names.text(func));
        let last = self.walk.activation(top).func;
        let is_user = names.name(last).kind == CodeKind::User;
        match (is_user && has_line(last), has_line(func)) {
            (true, false) => self.push(func, false),
            (false, true) if is_user => {
                self.pop();
                let caller = self.cpu.top.map(|top| self.walk.activation(top).func);
                if caller.is_none() {
                    self.push(func, false);
                } else if caller != Some(func) {
                    self.replace(func);
                }
            }
            _ => self.replace(func),
        }
    }

    /// Follows kernel code that was reached by a jump, or where the calls could not be followed.
    fn within(&mut self, func: Func, from_table: bool, kind: CodeKind) {
        let Some(top) = self.cpu.top else {
            self.push(func, false);
            return;
        };
        let known = self.library.names.name(self.walk.activation(top).func).kind;
        let activation = &mut self.walk.activations[top as usize];
        let is_same =
            activation.func == func || known == CodeKind::Syscall && kind == CodeKind::Exception;
        if is_same || kind == CodeKind::Thunk {
            return;
        }
        if activation.entry {
            // The entry's own code consists of several pieces.
            if from_table {
                activation.func = func;
            }
            return;
        }
        self.replace(func);
    }

    // --- the stack of functions -------------------------------------------------------------

    fn push(&mut self, func: Func, entry: bool) {
        let number = self.walk.activations.len() as Number;
        let by_pointer = !entry && self.is_by_pointer();
        self.walk.activations.push(Activation {
            func,
            parent: self.cpu.top,
            by_pointer,
            // A CPU that slept comes by an interrupt, of which all is seen.
            begin: (self.cpu.began || entry && self.walk.in_turn).then_some(self.walk.total),
            end: None,
            task: self.cpu.task,
            entry,
            opened: true,
            pending: Transfer::On,
        });
        self.cpu.top = Some(number);
    }

    fn pop(&mut self) {
        if let Some(top) = self.cpu.top {
            let activation = &mut self.walk.activations[top as usize];
            activation.end = Some(self.walk.total);
            self.cpu.top = activation.parent;
        }
    }

    fn replace(&mut self, func: Func) {
        self.pop();
        self.push(func, false);
    }

    /// Follows the return of a function into `func`.
    fn go_back(&mut self, func: Func) {
        let Some(left) = self.cpu.top else { return };
        if self.walk.activation(left).entry {
            return;
        }
        self.pop();
        if self.cpu.top.is_none() {
            self.push_unseen(self.unseen(func, left));
            self.walk.activations[left as usize].parent = self.cpu.top;
            return;
        }
        // Where a return leaves several functions at once, so does this.
        let mut callers = self.callers();
        let caller = callers.find(|number| self.walk.activation(*number).func == func);
        drop(callers);
        while caller.is_some() && self.cpu.top != caller {
            self.pop();
        }
    }

    /// Returns the caller of `left`, in which `func` goes on. The functions that it called
    /// distinguish exceptions from system calls, where the CPU enters for both in one way.
    fn unseen(&self, func: Func, left: Number) -> Func {
        let names = &self.library.names;
        let Some(own) = names.code().in_syscall else {
            return func;
        };
        let mut called = self.walk.activations.iter();
        let is_exception = names.name(func).kind == CodeKind::Exception;
        let calls = |one: &Activation| one.parent == Some(left) && names.text(one.func) == own;
        names.entered(func, is_exception && called.any(calls))
    }

    /// Pushes a function that was entered before the window began, or before this thread was seen.
    fn push_unseen(&mut self, func: Func) {
        self.push(func, false);
        if let Some(activation) = self.walk.activations.last_mut() {
            activation.begin = None;
        }
    }

    /// Returns the functions of the stack, up to where the CPU came by itself.
    fn callers(&self) -> impl Iterator<Item = Number> + '_ {
        let chain = self
            .cpu
            .top
            .into_iter()
            .flat_map(|top| self.walk.chain(top));
        chain.take_while(|number| !self.walk.activation(*number).entry)
    }

    // --- what instructions do ---------------------------------------------------------------

    fn op(&mut self, op: Op, func: Func, insn: u32, memory: &[(u8, u64)]) {
        let place = || {
            let found = memory.iter().find(|(number, _)| u32::from(*number) == insn);
            found.map(|(_, at)| *at)
        };
        match op {
            Op::Mask(mask, masking) => self.mask((mask, masking)),
            Op::Halt => self.walk.halts.push(self.here()),
            Op::ReadClock => {
                if self.walk.spans.last().is_some_and(|span| span.user) {
                    self.walk.clocks.push(self.here());
                } else {
                    self.read = Some(self.walk.total);
                }
            }
            Op::Preempt(amount) => self.preempt(amount),
            Op::PreemptBy => self.preempt_by(func),
            Op::LeaveStack(offset) => {
                if let (Some(at), Some(top)) = (place(), self.cpu.top) {
                    self.stacks.insert(at - offset, top);
                    if self.cpu.task == Task::from(self.cpu.number) {
                        self.walk.first.insert(self.cpu.number, at - offset);
                    }
                }
            }
            Op::TakeStack(offset) => {
                if let Some(at) = place() {
                    self.switch(at - offset, func);
                }
            }
            // Blocks know which registers are meant.
            Op::Point(_)
            | Op::Keep(_)
            | Op::Put(..)
            | Op::At(..)
            | Op::Marker(_)
            | Op::NeedResched(_) => {}
        }
    }

    /// Applies an operation on the interrupt mask.
    fn mask(&mut self, done: (Mask, Masking)) {
        let (at, cpu) = (self.walk.total, &mut self.cpu);
        match cpu.masks.apply(done, at, cpu.irqs_off.is_some()) {
            Some(true) => cpu.irqs_off = cpu.irqs_off.or(cpu.top),
            Some(false) => cpu.irqs_off = None,
            None => {}
        }
    }

    /// Returns the moment after the instruction at hand.
    fn here(&self) -> Moment {
        let (at, cpu) = (self.walk.total, self.cpu.number);
        Moment { at, cpu }
    }

    fn preempt(&mut self, amount: i64) {
        let before = self.cpu.count & PREEMPT_BITS;
        self.cpu.count += amount;
        let after = self.cpu.count & PREEMPT_BITS;
        if before == 0 && after != 0 {
            self.cpu.preempt_off = self.cpu.top;
        } else if after == 0 {
            self.cpu.preempt_off = None;
        }
    }

    /// Changes the count by an amount that is in a register: one of two, as the caller tells.
    fn preempt_by(&mut self, func: Func) {
        if self.library.names.text(func) != "__local_bh_enable_ip" {
            self.walk.mended += 1;
            return;
        }
        let caller = self
            .cpu
            .top
            .and_then(|top| self.walk.activation(top).parent);
        let caller = caller.map(|caller| self.walk.activation(caller).func);
        let kind = caller.map(|caller| self.library.names.name(caller).kind);
        // Where preemption is not counted a lock counts nothing, either.
        let counts = self.cpu.count & PREEMPT_BITS != 0;
        self.preempt(local_bh_enable(counts && kind == Some(CodeKind::Lock)));
    }

    fn switch(&mut self, next: Task, func: Func) {
        self.cpu.task = next;
        self.walk.switches.push(Switch {
            at: self.walk.total,
            cpu: self.cpu.number,
            task: next,
        });
        self.cpu.top = self.stacks.get(&next).copied();
        if self.cpu.top.is_none() {
            self.push_unseen(func);
        }
    }

    /// Notes where a CPU waits for a lock, and where another one gives it back.
    fn note_locks(&mut self, pauses: bool, func: Func, memory: &[(u8, u64)]) {
        let Some(by) = self.cpu.top else { return };
        let (at, cpu) = (self.walk.total, self.cpu.number);
        let access = |address| Access {
            at,
            cpu,
            by,
            address,
        };
        if pauses {
            self.walk.pauses.push(access(0));
        }
        let text = self.library.names.text(func);
        let accesses = memory.iter().map(|(_, address)| access(*address));
        if text.contains("queued_spin_lock_slowpath") {
            self.walk.waits.extend(accesses);
        } else if text.starts_with("_raw_spin_unlock") {
            self.walk.unlocks.extend(accesses);
        }
    }

    fn note_wake(&mut self, block: u32, func: Func, memory: &[(u8, u64)]) {
        if memory.is_empty() || self.library.names.text(func) != "try_to_wake_up" {
            return;
        }
        let Some(by) = self.cpu.top else { return };
        let decoded = self.library.block(block);
        let base = |(insn, at): &(u8, u64)| {
            let (_, displacement) = decoded.insns.get(usize::from(*insn))?;
            Some(at.wrapping_sub(*displacement))
        };
        let bases = memory.iter().filter_map(base);
        match self.walk.wakes.last_mut() {
            Some(wake) if wake.by == by => wake.bases.extend(bases),
            _ => {
                let (at, bases) = (self.walk.total, bases.collect());
                let cpu = self.cpu.number;
                self.walk.wakes.push(Wake { at, cpu, by, bases });
            }
        }
    }
}

/// Returns true if the last instruction begun before a fault is the one that will be begun again.
fn has_faulted(previous: Option<&Previous>) -> bool {
    previous.is_some_and(|previous| !previous.whole || previous.may_fault)
}

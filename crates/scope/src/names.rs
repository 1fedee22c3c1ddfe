// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names for code, each by a number.

use std::collections::HashMap;

use punctual_model::Architecture;

use crate::arch::Code;
use crate::lines::Lines;
use crate::symbols::Symbols;
use crate::user_symbols::UserSymbols;

/// The number of a name.
pub type Func = u32;

/// The lowest address of the kernel.
pub const KERNEL: u64 = 1 << 63;

/// The kind of code that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeKind {
    /// Any function of the kernel.
    Plain,
    /// The entry of an interrupt.
    Interrupt,
    /// The entry of an exception, a page fault above all.
    Exception,
    /// The entry of a system call.
    Syscall,
    /// Code of a soft interrupt.
    Softirq,
    /// Code of the scheduler.
    Scheduler,
    /// The end of a switch, in the thread that has got the CPU. The functions that it calls clean
    /// up after the previous thread.
    SwitchEnd,
    /// Takes or gives back a spinning lock, on behalf of its caller.
    Lock,
    /// Switches preemption, interrupts or soft interrupts on or off, or asks whether another
    /// thread is to run, on behalf of its caller.
    Switch,
    /// A detour of a few instructions on the way into or out of a function.
    Thunk,
    /// Sees to what is left to do before user space goes on. The functions that it calls with
    /// interrupts on work for the thread: the interrupt or exception by which the CPU came is over.
    WayBack,
    /// User space.
    User,
}

impl CodeKind {
    /// Returns true if the CPU comes here by itself.
    pub fn is_entry(self) -> bool {
        matches!(self, Self::Interrupt | Self::Exception | Self::Syscall)
    }

    /// Returns true if the code works on behalf of its caller.
    pub fn is_helper(self) -> bool {
        matches!(self, Self::Lock | Self::Switch | Self::Thunk)
    }
}

/// A name, with the kind of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text that is shown: `vfs_read`, `stall_run [stall]`, `busybox`.
    pub text: String,
    /// The kind of code.
    pub kind: CodeKind,
}

/// The names that have been met.
#[derive(Debug)]
pub struct Names<'a> {
    symbols: &'a Symbols,
    programs: &'a UserSymbols,
    /// The lines of programs, if they are to be named.
    lines: Option<Lines<'a>>,
    known: Vec<Name>,
    numbers: HashMap<String, Func>,
    /// The name of a system call, where the CPU enters as by any other exception.
    syscall: Option<Func>,
}

impl<'a> Names<'a> {
    /// Creates an empty table of names.
    pub fn new(symbols: &'a Symbols, programs: &'a UserSymbols) -> Self {
        let mut names = Self {
            symbols,
            programs,
            lines: None,
            known: Vec::new(),
            numbers: HashMap::new(),
            syscall: None,
        };
        let syscall = names.code().syscall;
        names.syscall = syscall.map(|text| names.number(text, CodeKind::Syscall));
        names
    }

    /// Returns the entry at which the CPU came by itself to this code, by a system call or not.
    pub fn entered(&self, func: Func, by_syscall: bool) -> Func {
        self.syscall.filter(|_| by_syscall).unwrap_or(func)
    }

    /// Creates an empty table of names in which code of programs is also named by function and
    /// line, as far as the programs tell them: `control (loop.c:17) [loop]`.
    pub fn with_lines(symbols: &'a Symbols, programs: &'a UserSymbols, lines: Lines<'a>) -> Self {
        Self {
            lines: Some(lines),
            ..Self::new(symbols, programs)
        }
    }

    /// Returns the kernel's symbols.
    pub fn symbols(&self) -> &'a Symbols {
        self.symbols
    }

    /// Returns the architecture's own code.
    pub fn code(&self) -> &'static Code {
        self.symbols.code()
    }

    /// Returns the name of the code with these bytes at an address, and true if the address is its
    /// first.
    pub fn at(&mut self, address: u64, bytes: &[u8]) -> (Func, bool) {
        if address < KERNEL {
            if self.code().vdso.contains(&address) {
                return (self.number("[vdso]", CodeKind::User), false);
            }
            let told = self.lines.as_mut().and_then(|l| l.name(address, bytes));
            let text = told.unwrap_or_else(|| self.programs.name(address, bytes));
            return (self.number(&text, CodeKind::User), false);
        }
        let Some((symbol, behind)) = self.symbols.at(address) else {
            return (self.number("(unnamed)", CodeKind::Plain), false);
        };
        // What a compiler has moved away because it is seldom needed is the same function.
        let name = symbol.name.split(".cold").next().unwrap_or_default();
        let text = match &symbol.module {
            Some(module) => format!("{name} [{module}]"),
            None => name.to_owned(),
        };
        let code = self.code();
        if let Some((entry, is_first)) = (code.entry)(name, behind) {
            return (self.number(entry, kind(code, entry)), is_first);
        }
        let is_first = behind == 0 || code.is_table(&symbol.name);
        (self.number(&text, kind(code, name)), is_first)
    }

    fn number(&mut self, text: &str, kind: CodeKind) -> Func {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let (number, text) = (self.known.len() as Func, text.to_owned());
        self.numbers.insert(text.clone(), number);
        self.known.push(Name { text, kind });
        number
    }

    /// Returns the number of a name, if it has been met.
    pub fn known(&self, text: &str) -> Option<Func> {
        self.numbers.get(text).copied()
    }

    /// Returns the name with this number.
    pub fn name(&self, func: Func) -> &Name {
        &self.known[func as usize]
    }

    /// Returns the text that is shown for a name.
    pub fn text(&self, func: Func) -> &str {
        &self.name(func).text
    }

    /// Returns true if it is a table of entries.
    pub fn is_table(&self, func: Func) -> bool {
        self.code().is_table(self.text(func))
    }

    /// Returns all names, by number.
    pub fn all(&self) -> &[Name] {
        &self.known
    }
}

/// Returns the program in the name of code in user space.
pub fn program(name: &str) -> &str {
    let inner = name
        .strip_suffix(']')
        .and_then(|name| name.rsplit_once(" ["));
    inner.map_or(name, |(_, program)| program)
}

/// Returns true if the name of code in user space has a line of its source.
pub fn has_line(name: &str) -> bool {
    name.contains(" (")
}

/// Returns the name of code in user space without its line.
pub fn function(name: &str) -> String {
    match (name.split_once(" ("), name.rsplit_once(") ")) {
        (Some((function, _)), Some((_, program))) => format!("{function} {program}"),
        _ => name.to_owned(),
    }
}

/// Functions of all kernels, by their whole names or, with `*`, by their prefixes.
const FUNCTIONS: [(CodeKind, &str); 6] = [
    (
        CodeKind::Softirq,
        "__do_softirq handle_softirqs __softirqentry_text_start do_softirq",
    ),
    (
        CodeKind::Scheduler,
        "schedule schedule_idle schedule_preempt_disabled schedule_rtlock rt_mutex_schedule \
         preempt_schedule preempt_schedule_irq preempt_schedule_notrace preempt_schedule_thunk \
         preempt_schedule_notrace_thunk __schedule __switch_to",
    ),
    (CodeKind::SwitchEnd, "finish_task_switch"),
    (
        CodeKind::Lock,
        "_raw_spin_* _raw_read_* _raw_write_* queued_spin_*",
    ),
    (
        CodeKind::Switch,
        "__local_bh_* preempt_count_* migrate_disable* migrate_enable* __cond_resched* \
         _cond_resched",
    ),
    (
        CodeKind::WayBack,
        "irqentry_exit_to_user_mode exit_to_user_mode_prepare exit_to_user_mode_loop \
         do_notify_resume",
    ),
];

/// Functions that ask whether another thread is to run: a preemption point of kernels that are not
/// preempted. The second has the name that it had before Linux 5.12.
pub const ASKS: [&str; 2] = ["__cond_resched", "_cond_resched"];

/// Removes what a compiler adds to the name of a function that it has changed: `.constprop.0`,
/// `.part.0`, `.isra.0`.
fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Returns true for the name of code to which the CPU comes by itself, of any architecture: the entry
/// of an interrupt, an exception or a system call.
pub fn is_entry(name: &str) -> bool {
    let mut codes = Architecture::ALL.into_iter().map(Code::of);
    codes.any(|code| kind(code, name).is_entry())
}

fn kind(code: &Code, name: &str) -> CodeKind {
    let plain = plain(name);
    let is = |known: &str| match known.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => plain == known,
    };
    let mut functions = code.functions.iter().chain(&FUNCTIONS);
    let found = functions.find(|(_, known)| known.split(' ').any(is));
    found.map_or(CodeKind::Plain, |(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_locks_are_known_by_their_names() {
        let kind = |name| kind(Code::of(Architecture::Amd64), name);
        assert_eq!(kind("asm_sysvec_apic_timer_interrupt"), CodeKind::Interrupt);
        assert_eq!(kind("sysvec_apic_timer_interrupt"), CodeKind::Plain);
        assert_eq!(kind("preempt_schedule_thunk"), CodeKind::Scheduler);
        assert_eq!(kind("schedule_timeout"), CodeKind::Plain);
        assert_eq!(kind("asm_exc_page_fault"), CodeKind::Exception);
        assert_eq!(kind("_raw_spin_lock_irqsave"), CodeKind::Lock);
        assert_eq!(kind("handle_softirqs"), CodeKind::Softirq);
        assert_eq!(kind("handle_softirqs.constprop.0"), CodeKind::Softirq);
        assert_eq!(kind("finish_task_switch.isra.0"), CodeKind::SwitchEnd);
        assert_eq!(kind("_cond_resched"), CodeKind::Switch);
        assert_eq!(kind("exit_to_user_mode_loop"), CodeKind::WayBack);
        assert_eq!(kind("syscall_exit_to_user_mode"), CodeKind::Plain);
        assert_eq!(kind("vfs_read"), CodeKind::Plain);
    }
}

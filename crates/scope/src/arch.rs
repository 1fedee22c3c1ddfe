// SPDX-License-Identifier: MIT OR Apache-2.0
//! The architecture-specific code: what instructions do, and how a kernel names what all kernels
//! have. No other file of the scope names an instruction or a register.

mod aarch64;
mod x86_64;

use std::ops::Range;

use punctual_model::Architecture;
use punctual_trace::{Arch, Block, Insn};

use crate::decode::Decoded;
use crate::names::CodeKind;
use crate::symbols::Symbols;

/// The code of an architecture's kernel.
#[derive(Debug)]
pub struct Code {
    /// The architecture, as the plugin names it.
    pub arch: Arch,
    /// Returns why a kernel of this release is not understood, if it is not.
    pub refusal: fn(&str) -> Option<String>,
    /// Returns true if the file of a kernel of this release has places that `saves` finds.
    pub must_save: fn(&str) -> bool,
    /// Decodes a block. The instructions before it, of the same function, are passed where they are
    /// known.
    pub decode: fn(&Block, &[Insn], &Symbols) -> Decoded,
    /// The number of bytes of these instructions to pass; 0 if each instruction is understood by
    /// itself.
    pub looks_back: u64,
    /// Returns where a kernel's file takes the place of the preemption count into a register: the
    /// offset from its start, and the number of the register.
    pub pointers: fn(&[u8]) -> Vec<(u64, u8)>,
    /// Returns the offset of the count from the address in such a register, by the kernel's file,
    /// where that differs from kernel to kernel.
    pub count_place: fn(&[u8]) -> Option<u64>,
    /// Returns where a kernel's file reads the interrupt mask to have it restored, though it does
    /// not set a mask that is set already: the offsets from its start.
    pub saves: fn(&[u8]) -> Vec<u64>,
    /// Functions of a kind, in addition to those that all kernels have: by their whole names or,
    /// with `*`, by their prefixes.
    pub functions: &'static [(CodeKind, &'static str)],
    /// Returns the entry to which code belongs, if the CPU comes there by itself, and true if the
    /// CPU comes in at this very place. The code is given by the symbol before it and its offset.
    pub entry: fn(&str, u64) -> Option<(&'static str, bool)>,
    /// The ending of the names of tables of which each piece is such an entry. The code that
    /// follows a piece gives it its name.
    pub table: Option<&'static str>,
    /// The name of a system call's entry, where the CPU enters as by any other exception.
    pub syscall: Option<&'static str>,
    /// The function that only system calls call there. A CPU that comes out of it was in a system
    /// call.
    pub in_syscall: Option<&'static str>,
    /// The entry of system calls at which the plugin can move a program's wait; `None` if it
    /// cannot.
    pub moves_at: Option<&'static str>,
    /// The prefix of the names of detours that call functions through a pointer.
    pub detour: Option<&'static str>,
    /// The function at which the CPU goes from one thread to another.
    pub switch: &'static str,
    /// The entry at which the CPU comes in when its timer is due, or the next function to which no
    /// other interrupt leads.
    pub timer: &'static str,
    /// Functions whose operands tell which lock is waited for or given back.
    pub locks: &'static [&'static str],
    /// Variables whose addresses are of interest.
    pub variables: &'static [&'static str],
    /// The place where the kernel puts its own code for user space, unless it chooses at random.
    pub vdso: Range<u64>,
}

impl Code {
    /// Returns the code of an architecture.
    pub fn of(architecture: Architecture) -> &'static Self {
        match architecture {
            Architecture::Amd64 => &x86_64::CODE,
            Architecture::Arm64 => &aarch64::CODE,
        }
    }

    /// Returns true if a function is a detour by which a pointer is called.
    pub fn is_detour(&self, name: &str) -> bool {
        self.detour.is_some_and(|begin| name.starts_with(begin))
    }

    /// Returns true if a name is that of a table of many short pieces, each the start of its own.
    pub fn is_table(&self, name: &str) -> bool {
        self.table.is_some_and(|end| name.ends_with(end))
    }
}

/// Returns true if a kernel's release is older than a version, or tells no version.
fn is_before(release: &str, other: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    number().zip(number()).is_none_or(|version| version < other)
}

/// The entries of interrupts that other CPUs send, and the functions that send them.
pub const IPIS: [(&str, &str); 3] = x86_64::IPIS;

/// Returns the name of the CPU's entry, as it is shown.
pub fn entry_name(name: &str) -> &str {
    x86_64::entry_name(name)
}

/// Returns true if a function is a detour on the way into another one, or out of it.
pub fn is_detour(name: &str) -> bool {
    x86_64::is_detour(name)
}

/// Returns true if an interrupt enters the kernel at a function, as the kernel's own stacks name
/// it.
pub fn is_interrupt(function: &str) -> bool {
    x86_64::is_interrupt(function) || aarch64::is_interrupt(function)
}

#[cfg(test)]
mod tests;

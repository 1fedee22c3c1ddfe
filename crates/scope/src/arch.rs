// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is an architecture's own: what its instructions do, and how its kernel calls what all
//! kernels have. No other file of the scope names an instruction or a register.

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
    /// As the plugin calls it.
    pub arch: Arch,
    /// Why a kernel of this release is not understood, if it is not.
    pub refusal: fn(&str) -> Option<String>,
    /// Whether the file of a kernel of this release has places that `saves` finds.
    pub must_save: fn(&str) -> bool,
    /// Understands a block, behind these instructions of the same function, where they are known.
    pub decode: fn(&Block, &[Insn], &Symbols) -> Decoded,
    /// How many bytes of them it is to be given: 0 where each instruction is understood by itself.
    pub looks_back: u64,
    /// Where a kernel's file takes the place of the preemption count into a register: how far
    /// behind its begin, and the number of the register.
    pub pointers: fn(&[u8]) -> Vec<(u64, u8)>,
    /// How far behind what such a register has the count itself is, by the kernel's file, where
    /// that differs from kernel to kernel.
    pub count_place: fn(&[u8]) -> Option<u64>,
    /// Where a kernel's file reads what masks interrupts to have it restored, though it does not
    /// set what is set already: how far behind its begin.
    pub saves: fn(&[u8]) -> Vec<u64>,
    /// Functions of a kind, by their whole names, or, with `*`, by how they begin; beside those
    /// that all kernels have.
    pub functions: &'static [(CodeKind, &'static str)],
    /// What code belongs to where the CPU comes by itself, if it does, and whether it is there
    /// that it comes in: by the symbol before it, and how far that is.
    pub entry: fn(&str, u64) -> Option<(&'static str, bool)>,
    /// How the names of tables end of which each piece is such a place; what follows a piece
    /// gives it its name.
    pub table: Option<&'static str>,
    /// A system call's, where the CPU comes as by any other exception.
    pub syscall: Option<&'static str>,
    /// What is called there by system calls only: who comes out of it was in one.
    pub in_syscall: Option<&'static str>,
    /// The entry of system calls at which the plugin can move a program's wait; `None` where it
    /// cannot.
    pub moves_at: Option<&'static str>,
    /// How the names of detours begin by which functions are called through a pointer.
    pub detour: Option<&'static str>,
    /// Where the CPU goes from one thread to another.
    pub switch: &'static str,
    /// Where the CPU comes when its timer is due, or goes next that no other interrupt leads to.
    pub timer: &'static str,
    /// Code whose operands tell which lock is waited for, or given back.
    pub locks: &'static [&'static str],
    /// Variables whose places are of interest.
    pub variables: &'static [&'static str],
    /// Where the kernel puts its own code for user space, unless it is to choose at random.
    pub vdso: Range<u64>,
}

impl Code {
    /// That of an architecture.
    pub fn of(architecture: Architecture) -> &'static Self {
        match architecture {
            Architecture::Amd64 => &x86_64::CODE,
            Architecture::Arm64 => &aarch64::CODE,
        }
    }

    /// Whether a function is a detour by which a pointer is called.
    pub fn is_detour(&self, name: &str) -> bool {
        self.detour.is_some_and(|begin| name.starts_with(begin))
    }

    /// Whether a name is that of a table of many short pieces, each the begin of its own.
    pub fn is_table(&self, name: &str) -> bool {
        self.table.is_some_and(|end| name.ends_with(end))
    }
}

/// Where CPUs go at interrupts of other CPUs, and the functions that send these.
pub const IPIS: [(&str, &str); 3] = x86_64::IPIS;

/// The name of where the CPU came, as it is told.
pub fn entry_name(name: &str) -> &str {
    x86_64::entry_name(name)
}

/// Whether a function is a detour on the way into another one, or out of it.
pub fn is_detour(name: &str) -> bool {
    x86_64::is_detour(name)
}

/// Whether a function is where an interrupt enters the kernel, as the kernel's own stacks have it.
pub fn is_interrupt(function: &str) -> bool {
    x86_64::is_interrupt(function) || aarch64::is_interrupt(function)
}

#[cfg(test)]
mod tests;

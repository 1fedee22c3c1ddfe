// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds which virtual CPU has the turn.
//!
//! From QEMU 9.2 on, the number that a callback gets is that of the CPU for which its block was
//! translated, if all CPUs run in one thread: blocks are shared. So the CPU is recognized by the
//! base of its own area in the guest's kernel. On x86-64 that is in `gs_base`, or in `k_gs_base`
//! while user space runs; on arm64 it is in `TPIDR_EL1`. Blocks that were just translated tell the
//! CPU's number.
//!
//! The argument for soundness: the functions are QEMU's and `GLib`'s. They have the types of QEMU
//! 9.0 and later, and are called from a callback on a virtual CPU that is allowed to read
//! registers.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::api::function;

/// The lowest address of the kernel.
const KERNEL: u64 = 1 << 63;

/// The registers of each architecture, one of which is the base of a CPU's own area.
const BASES: [&[&CStr]; 2] = [&[c"gs_base", c"k_gs_base"], &[c"TPIDR_EL1"]];

/// `GArray` and `GByteArray`, as far as their fields are public.
#[repr(C)]
struct Array {
    data: *mut c_void,
    length: c_uint,
}

/// `qemu_plugin_reg_descriptor`.
#[repr(C)]
struct Register {
    handle: *mut c_void,
    name: *const c_char,
    _feature: *const c_char,
}

/// Reads registers.
struct Registers {
    read: unsafe extern "C" fn(*mut c_void, *mut Array) -> c_int,
    resize: unsafe extern "C" fn(*mut Array, c_uint) -> *mut Array,
    buffer: *mut Array,
    bases: Vec<*mut c_void>,
}

impl Registers {
    fn new() -> Result<Self, String> {
        // SAFETY: these are the functions' types; the list is QEMU's, and never freed here.
        unsafe {
            let list: unsafe extern "C" fn() -> *mut Array =
                function(c"qemu_plugin_get_registers")?;
            let new: unsafe extern "C" fn() -> *mut Array = function(c"g_byte_array_new")?;
            let all = list();
            let all = std::slice::from_raw_parts(
                (*all).data.cast_const().cast::<Register>(),
                (*all).length as usize,
            );
            let named = |name: &&CStr| {
                let is_it = |one: &&Register| CStr::from_ptr(one.name) == *name;
                all.iter().find(is_it).map(|one| one.handle)
            };
            let bases = |names: &&[&CStr]| names.iter().map(named).collect::<Option<Vec<_>>>();
            let Some(bases) = BASES.iter().find_map(bases) else {
                let found = "neither gs_base and k_gs_base nor TPIDR_EL1";
                return Err(format!("expected a register of each CPU, found {found}"));
            };
            Ok(Self {
                read: function(c"qemu_plugin_read_register")?,
                resize: function(c"g_byte_array_set_size")?,
                buffer: new(),
                bases,
            })
        }
    }

    /// Returns the base of the own area of the CPU that calls, if its kernel has set one.
    fn base(&self) -> Option<u64> {
        let value = |handle: &*mut c_void| {
            // SAFETY: QEMU appends the register's bytes to the buffer.
            unsafe {
                (self.resize)(self.buffer, 0);
                let read = (self.read)(*handle, self.buffer);
                (read == 8).then(|| (*self.buffer).data.cast::<u64>().read_unaligned())
            }
        };
        let values = self.bases.iter().filter_map(value);
        values.into_iter().find(|value| *value >= KERNEL)
    }
}

/// Tracks which virtual CPU has the turn.
#[derive(Default)]
pub struct Turn {
    registers: Option<Registers>,
    /// The bases of the known CPUs.
    known: Vec<(u64, c_uint)>,
    /// A block that was just translated, for the CPU that is to run it.
    fresh: Option<u32>,
    /// True if no registers can be read.
    failed: bool,
}

impl Turn {
    /// Notes that a block is translated.
    pub fn translated(&mut self, block: u32) {
        self.fresh = Some(block);
    }

    /// Notes that a block begins; `told` is the CPU that QEMU names. Cheap except for a new block.
    pub fn begins(&mut self, block: u32, told: c_uint) {
        if self.fresh.take() != Some(block) || self.known.iter().any(|(_, cpu)| *cpu == told) {
            return;
        }
        if let Some(base) = self.base() {
            if !self.known.iter().any(|(known, _)| *known == base) {
                self.known.push((base, told));
            }
        }
    }

    /// Returns the CPU that calls; `None` if it is not known.
    pub fn cpu(&mut self) -> Option<c_uint> {
        let base = self.base()?;
        let mut known = self.known.iter();
        known.find(|(known, _)| *known == base).map(|(_, cpu)| *cpu)
    }

    fn base(&mut self) -> Option<u64> {
        if self.registers.is_none() && !self.failed {
            self.registers = Registers::new()
                .inspect_err(|why| eprintln!("punctual-scope: {why}"))
                .ok();
            self.failed = self.registers.is_none();
        }
        self.registers.as_ref()?.base()
    }
}

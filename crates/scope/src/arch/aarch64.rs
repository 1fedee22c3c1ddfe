// SPDX-License-Identifier: MIT OR Apache-2.0
//! arm64.
//!
//! Of some thousand instructions only a dozen matter here, and each has 32 bits. They are
//! recognized by masks from the Arm Architecture Reference Manual (DDI 0487), chapter C4.1. A
//! disassembler would recognize all the others as well, and tell nothing more about these.

use punctual_trace::marker::Marker;
use punctual_trace::{Arch, Block, Insn};

use super::Code;
use crate::decode::{Counted, Decoded, Holder, Op, Transfer};
use crate::masks::{Mask, Masking};
use crate::names::CodeKind;
use crate::symbols::Symbols;

/// The code of arm64 kernels.
pub static CODE: Code = Code {
    arch: Arch::Aarch64,
    refusal,
    must_save,
    decode: decoded,
    looks_back: 4 * 32,
    pointers,
    count_place,
    saves,
    functions: &[
        (
            CodeKind::Interrupt,
            "el1t_64_irq el1t_64_fiq el1t_64_error el1h_64_irq el1h_64_fiq el1h_64_error \
             el0t_64_irq el0t_64_fiq el0t_64_error el0t_32_irq el0t_32_fiq el0t_32_error",
        ),
        (
            CodeKind::Exception,
            "el1t_64_sync el1h_64_sync el0t_64_sync el0t_32_sync",
        ),
        (CodeKind::Syscall, SYSCALL),
        (CodeKind::Scheduler, "cpu_switch_to"),
    ],
    entry,
    table: None,
    syscall: Some(SYSCALL),
    in_syscall: Some("el0_svc"),
    moves_at: None,
    detour: None,
    switch: "cpu_switch_to",
    timer: "arch_timer_handler_virt",
    locks: &[
        "queued_spin_lock_slowpath",
        "_raw_spin_unlock",
        "_raw_spin_unlock_bh",
        "_raw_spin_unlock_irq",
        "_raw_spin_unlock_irqrestore",
    ],
    variables: &[],
    vdso: 0xffff_f7ff_0000..0xffff_f800_0000,
};

/// Refuses kernels before Linux 5.14, in which the code behind the vectors was of another kind,
/// with other names.
fn refusal(release: &str) -> Option<String> {
    super::is_before(release, (5, 14)).then(|| {
        format!(
            "its kernel is {release}, and of arm64 kernels those from Linux 5.14 on are understood"
        )
    })
}

/// Returns true before Linux 6.3, where each kernel has places as [`saves`] finds them.
fn must_save(release: &str) -> bool {
    super::is_before(release, (6, 3))
}

/// Finds where a kernel's `Image` reads a mask to have it restored, though it does not set a mask
/// that is set already. The kernel keeps the value, branches on it, and sets the mask on one of the
/// two ways. Before Linux 6.3 it does so with the CPU's flag and, where it has pseudo-NMIs, with
/// the priority as well.
fn saves(image: &[u8]) -> Vec<u64> {
    let words: Vec<u32> = words_of(image).collect();
    let straight = |at: usize| words.iter().zip(0_usize..).skip(at).take(SETS_WITHIN);
    let sets_here = |at: usize| {
        let on = |word: u32| !branches(word) && !reads_mask(word);
        straight(at)
            .take_while(|(word, _)| on(**word))
            .any(|(word, _)| sets_mask(*word))
    };
    // A compiler may leave it to a function of its own that does nothing else.
    let sets = |at: usize| {
        let called = straight(at).find(|(word, _)| branches(**word));
        let called = called.and_then(|(word, at)| at.checked_add_signed(called_at(*word)?));
        sets_here(at) || called.is_some_and(sets_here)
    };
    let is_saved = |at: usize| {
        // Which registers have what was read, whether it was put into memory, and tested.
        let mut holders = vec![register(words[at], 0)];
        let (mut is_stored, mut is_tested) = (false, false);
        let behind = words[at + 1..].iter().zip(at + 1..).take(BRANCHES_WITHIN);
        for (word, at) in behind {
            let (written, other) = (register(*word, 0), register(*word, 16));
            let is_of = |register: u8| holders.contains(&register);
            // mov x1, x0; str x0, [sp, #8]
            let copied = word & 0x7fe0_ffe0 == 0x2a00_03e0 && is_of(other);
            is_stored |= Access::of(*word).is_some_and(|it| !it.loads && is_of(it.first));
            // and w0, w1, #0x80; cmp x0, #0xe0
            let of_flag = word & !0x3ff == 0x1219_0000;
            let of_priority = word & 0x7fff_fc1f == 0x7103_801f;
            is_tested |= (of_flag || of_priority) && is_of(register(*word, 5));
            if copied {
                holders.push(written);
            } else if of_flag {
                holders.retain(|holder| *holder != written);
            }
            if branches(*word) {
                let is_kept = is_tested && (is_stored || !holders.is_empty());
                let elsewhere = conditional(*word).and_then(|by| at.checked_add_signed(by));
                return is_kept && elsewhere.is_some_and(|other| sets(at + 1) || sets(other));
            }
        }
        false
    };
    let read = words.iter().zip(0..).filter(|(word, _)| reads_mask(**word));
    let saved = read.filter(|(_, at)| is_saved(*at));
    saved.map(|(_, at)| 4 * at as u64).collect()
}

/// The number of instructions from the reading of a mask to the branch on it, and from that branch
/// to the setting of the mask, at most.
const BRANCHES_WITHIN: usize = 8;
const SETS_WITHIN: usize = 4;

fn words_of(image: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let words = image.chunks_exact(4);
    words.filter_map(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)))
}

/// Matches `mrs x0, daif` and `mrs x0, icc_pmr_el1`.
fn reads_mask(word: u32) -> bool {
    matches!(word & !0x1f, READ_FLAG | READ_PRIORITY)
}

/// Matches `msr daifset, #2` and `msr icc_pmr_el1, x0`.
fn sets_mask(word: u32) -> bool {
    let sets_flag = word & !0xf00 == SET_FLAG && word & IRQ_IN_NUMBER != 0;
    sets_flag || word & !0x1f == WRITE_PRIORITY
}

/// Returns the distance of a call (`bl`), in instructions; `None` for other instructions.
fn called_at(word: u32) -> Option<isize> {
    let is_call = word & 0xfc00_0000 == 0x9400_0000;
    is_call.then(|| ((i64::from(word) << 38) >> 38) as isize)
}

/// Returns the distance of a conditional branch (`b.eq`, `cbz`, `tbz`), in instructions; `None` for
/// other instructions.
fn conditional(word: u32) -> Option<isize> {
    let by = |count: u32| {
        let field = bits(word, 5, count) << (64 - count);
        Some((field as i64 >> (64 - count)) as isize)
    };
    match word & 0x7e00_0000 {
        0x3400_0000 => by(19),
        0x3600_0000 => by(14),
        _ if word & 0xff00_0010 == 0x5400_0000 => by(19),
        _ => None,
    }
}

/// Finds `mrs xN, sp_el0` in a kernel's `Image`; nothing if the file is no `Image`. A thread that
/// never ends has executed that before it was watched.
fn pointers(image: &[u8]) -> Vec<(u64, u8)> {
    // Documentation/arch/arm64/booting.rst
    if image.get(0x38..0x3c) != Some(b"ARM\x64") {
        return Vec::new();
    }
    let words: Vec<u32> = words_of(image).collect();
    let taken = words.iter().enumerate().filter_map(|(at, word)| {
        let pointer = register(*word, 0);
        // The stack protector's number is near it in the task, too, for which any register does.
        let is_used = |word: &u32| {
            let access = Access::of(*word);
            access
                .is_some_and(|it| it.base == pointer && PREEMPT_COUNT.contains(&(it.offset as u64)))
        };
        let behind = || words[at + 1..].iter().take(LEAD);
        let is_pointer =
            word & !0x1f == CURRENT && (KEPT.contains(&pointer) || behind().any(is_used));
        is_pointer.then_some((4 * at as u64, pointer))
    });
    taken.collect()
}

/// The registers that a call leaves as they were.
const KEPT: std::ops::RangeInclusive<u8> = 19..=28;

/// Finds the place of the preemption count in `thread_info`, by how often a kernel's `Image` adds 1
/// there right after `mrs xN, sp_el0`; `None` if it never does.
fn count_place(image: &[u8]) -> Option<u64> {
    let words: Vec<u32> = words_of(image).collect();
    let counted = |words: &[u32], place: u64| {
        let (task, access) = (register(words[0], 0), |word| Access::of(word));
        let is_there = |access: &Access| {
            access.second.is_none() && access.base == task && access.offset == place as i64
        };
        let loads = access(words[1]).is_some_and(|it| it.loads && it.size >= 4 && is_there(&it));
        let stores = access(words[3]).is_some_and(|it| !it.loads && it.size == 4 && is_there(&it));
        let adds = words[2] & 0x7fff_fc00 == 0x1100_0400;
        words[0] & !0x1f == CURRENT && loads && adds && stores
    };
    let often = |place: &u64| {
        words
            .windows(4)
            .filter(|four| counted(four, *place))
            .count()
    };
    let most = PREEMPT_COUNT.into_iter().max_by_key(often)?;
    (often(&most) > 0).then_some(most)
}

/// `mrs x0, sp_el0`: the running thread's task.
const CURRENT: u32 = 0xd538_4100;

/// The name of a system call's entry. The CPU enters where it does for other exceptions of user
/// space, but this entry gets a name of its own.
const SYSCALL: &str = "el0t_64_svc";

/// The pieces of a table of vectors, each 128 bytes long (chapter D1.3.1.5), as the kernel names
/// the code to which each leads.
const VECTORS: [&str; 16] = [
    "el1t_64_sync",
    "el1t_64_irq",
    "el1t_64_fiq",
    "el1t_64_error",
    "el1h_64_sync",
    "el1h_64_irq",
    "el1h_64_fiq",
    "el1h_64_error",
    "el0t_64_sync",
    "el0t_64_irq",
    "el0t_64_fiq",
    "el0t_64_error",
    "el0t_32_sync",
    "el0t_32_irq",
    "el0t_32_fiq",
    "el0t_32_error",
];
const PIECE: u64 = 0x80;

/// Returns true if an interrupt enters the kernel at a function.
pub fn is_interrupt(function: &str) -> bool {
    let mut entries = ["el1h_64_", "el0t_64_", "el0t_32_"].into_iter();
    let kind = entries.find_map(|entry| function.strip_prefix(entry));
    kind.is_some_and(|kind| kind.starts_with("irq") || kind.starts_with("fiq"))
}

/// Finds the entry. The CPU comes in at one of the tables only; the code that follows has the same
/// name.
fn entry(symbol: &str, behind: u64) -> Option<(&'static str, bool)> {
    if matches!(symbol, "vectors" | "__bp_harden_el1_vectors") {
        let piece = (behind / PIECE) as usize % VECTORS.len();
        return Some((VECTORS[piece], behind % PIECE == 0));
    }
    let own = VECTORS.iter().find(|name| **name == symbol);
    own.map(|name| (*name, false))
}

/// The known content of a register within a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// Unknown: it was set before the block.
    Unknown,
    /// Set in the block, to something that is of no interest.
    Other,
    Is(u64),
    /// The running thread's task, which begins with its `thread_info`.
    Current,
    /// A value on the stack, at this offset from its pointer.
    Kept(i64),
    /// A value at this offset from the address in that register, or from [`TASK`].
    Loaded(u8, u64),
    /// The same, changed by an amount. `ChangedBy` holds the register with the amount, and true if
    /// it is added, false if it is subtracted.
    Changed(u8, u64, i64),
    ChangedBy(u8, u64, u8, bool),
    /// An offset from the first argument or the second, which is a task.
    Argument(u8, u64),
}

/// The candidate places of the preemption count in `thread_info`
/// (`arch/arm64/include/asm/thread_info.h`): after its flags or, with `CONFIG_ARM64_SW_TTBR0_PAN`,
/// also after `ttbr0`. In the other configuration, that place may hold a count of another
/// structure: see [`count_place`]. Four bytes further, a 0 means that the thread is to give up the
/// CPU.
const PREEMPT_COUNT: [u64; 2] = [8, 16];
const NEED_RESCHED: u64 = 4;

/// The register that is always 0, or the stack pointer.
const ZERO: u8 = 31;
const LINK: u8 = 30;
/// Instructions of a CPU that waits for another one: `yield`, and `wfe` between two looks.
const YIELD: u32 = 0xd503_203f;
const WAIT_FOR_EVENT: u32 = 0xd503_205f;
/// Stands for any register that has the running thread's task.
const TASK: u8 = 32;
/// The bit of interrupts in the mask: in a register, and in an instruction's number.
const IRQ_IN_REGISTER: u64 = 0x80;
const IRQ_IN_NUMBER: u32 = 0x200;
/// `msr daifset, #0` and `msr daifclr, #0`; `mrs x0, daif` and `msr daif, x0`.
const SET_FLAG: u32 = 0xd503_40df;
const CLEAR_FLAG: u32 = 0xd503_40ff;
const READ_FLAG: u32 = 0xd53b_4220;
const WRITE_FLAG: u32 = 0xd51b_4220;
/// The same for the priority with which the interrupt controller compares (`ICC_PMR_EL1`).
const READ_PRIORITY: u32 = 0xd538_4600;
const WRITE_PRIORITY: u32 = 0xd518_4600;
/// The priority from which on the kernel masks no interrupt: `GIC_PRIO_IRQON`, the same in all
/// versions.
const OPEN_PRIORITY: u64 = 0xe0;

/// Returns some of the instruction's bits.
fn bits(word: u32, from: u32, count: u32) -> u64 {
    u64::from(word >> from & ((1 << count) - 1))
}

fn register(word: u32, from: u32) -> u8 {
    bits(word, from, 5) as u8
}

/// Returns what is added to the base before the access, and what the base keeps of it. The mode
/// changes the base after the access (1), before it (3), or not at all.
fn indexed(mode: u64, by: i64) -> (i64, i64) {
    match mode {
        1 => (0, by),
        3 => (by, by),
        _ => (by, 0),
    }
}

/// A load or store of general registers.
struct Access {
    base: u8,
    /// The address minus the base's value.
    offset: i64,
    /// The amount by which the base is changed.
    writes_back: i64,
    loads: bool,
    /// Size in bytes.
    size: u32,
    first: u8,
    second: Option<u8>,
}

impl Access {
    /// Decodes an access at a register's value plus a constant; `None` if it is none.
    fn of(word: u32) -> Option<Self> {
        let signed = |from, count: u32| {
            let field = bits(word, from, count) << (64 - count);
            field as i64 >> (64 - count)
        };
        let (base, first) = (register(word, 5), register(word, 0));
        let loads = word & 0x0040_0000 != 0;
        if word & 0x3e00_0000 == 0x2800_0000 {
            let size = if word & 0x8000_0000 == 0 { 4 } else { 8 };
            let by = signed(15, 7) * i64::from(size);
            let (offset, writes_back) = indexed(bits(word, 23, 2), by);
            let second = Some(register(word, 10));
            return Some(Self {
                base,
                offset,
                writes_back,
                loads,
                size,
                first,
                second,
            });
        }
        let size = 1 << bits(word, 30, 2);
        let loads = word & 0x00c0_0000 != 0;
        let (offset, writes_back) = if word & 0x3f00_0000 == 0x3900_0000 {
            (bits(word, 10, 12) as i64 * i64::from(size), 0)
        } else if word & 0x3f20_0000 == 0x3800_0000 {
            indexed(bits(word, 10, 2), signed(12, 9))
        } else {
            return None;
        };
        Some(Self {
            base,
            offset,
            writes_back,
            loads,
            size,
            first,
            second: None,
        })
    }
}

/// Reads the instructions of a block, one after the other.
struct Reader {
    values: [Value; 32],
    /// True if the code goes from one thread to another.
    switches: bool,
    /// Candidate places of the preemption count.
    counts: Vec<u64>,
    ops: Vec<(u32, Op)>,
}

impl Reader {
    fn new(switches: bool, count: Option<u64>) -> Self {
        let mut values = [Value::Unknown; 32];
        if switches {
            (values[0], values[1]) = (Value::Argument(0, 0), Value::Argument(1, 0));
        }
        let counts = count.map_or_else(|| PREEMPT_COUNT.to_vec(), |place| vec![place]);
        let ops = Vec::new();
        Self {
            values,
            switches,
            counts,
            ops,
        }
    }

    /// Sets a register. What was known by its former value is no longer known.
    fn set(&mut self, register: u8, value: Value) {
        if register == ZERO {
            return;
        }
        for known in &mut self.values {
            let by = matches!(*known, Value::Loaded(base, _) | Value::Changed(base, ..) | Value::ChangedBy(base, ..) if base == register);
            if by {
                *known = Value::Other;
            }
        }
        let by_itself = matches!(value, Value::Loaded(base, _) if base == register);
        self.values[usize::from(register)] = if by_itself { Value::Other } else { value };
    }

    fn value(&self, register: u8) -> Value {
        self.values[usize::from(register)]
    }

    fn read(&mut self, number: u32, word: u32, bytes: &[u8]) {
        let op = self
            .system(word)
            .or_else(|| Marker::of(bytes).map(Op::Marker));
        self.ops.extend(op.map(|op| (number, op)));
        if let Some(access) = Access::of(word) {
            let op = self.access(&access);
            self.ops.extend(op.map(|op| (number, op)));
            return;
        }
        for fetched in fetched(word).into_iter().flatten() {
            self.set(fetched, Value::Other);
        }
        let written = register(word, 0);
        if word & !0x1f == CURRENT {
            self.ops.push((number, Op::Point(written)));
            self.set(written, Value::Current);
            return;
        }
        let value = self.computed(word);
        match value {
            Value::Current => self.ops.push((number, Op::Point(written))),
            // What is counted down by a register: `mov x3, #-1`.
            Value::Is(u64::MAX) => self.ops.push((number, Op::Put(written, -1))),
            _ => {}
        }
        if value != Value::Unknown || computes(word) {
            let is_other = value == Value::Unknown;
            self.set(written, if is_other { Value::Other } else { value });
        }
    }

    /// Reads instructions that concern the CPU itself.
    fn system(&self, word: u32) -> Option<Op> {
        let by_number = word & IRQ_IN_NUMBER != 0;
        let flag = |masking| by_number.then_some(Op::Mask(Mask::Flag, masking));
        match word & !0xf00 {
            SET_FLAG => return flag(Masking::Set),
            CLEAR_FLAG => return flag(Masking::Clear),
            _ => {}
        }
        let written = match (register(word, 0), self.value(register(word, 0))) {
            (ZERO, _) => Some(0),
            (_, Value::Is(number)) => Some(number),
            _ => None,
        };
        let masking = |masks: fn(u64) -> bool| match written.map(masks) {
            Some(true) => Masking::Set,
            Some(false) => Masking::Clear,
            None => Masking::Restore,
        };
        match word & !0x1f {
            READ_FLAG => Some(Op::Mask(Mask::Flag, Masking::Read)),
            READ_PRIORITY => Some(Op::Mask(Mask::Priority, Masking::Read)),
            WRITE_FLAG => {
                let masking = masking(|flags| flags & IRQ_IN_REGISTER != 0);
                Some(Op::Mask(Mask::Flag, masking))
            }
            WRITE_PRIORITY => {
                let masking = masking(|priority| priority < OPEN_PRIORITY);
                Some(Op::Mask(Mask::Priority, masking))
            }
            // Not by a compiler: the probe noise looks for an interruption.
            0xd53b_e040 if register(word, 0) == LINK => None,
            // CNTVCT_EL0 and CNTVCTSS_EL0.
            0xd53b_e040 | 0xd53b_e0c0 => Some(Op::ReadClock),
            _ if word == 0xd503_207f => Some(Op::Halt),
            _ => None,
        }
    }

    /// Returns the value that an instruction computes into its register, where that is of interest.
    fn computed(&self, word: u32) -> Value {
        let from = self.value(register(word, 5));
        // movz, at its lowest place.
        if word & 0x7fe0_0000 == 0x5280_0000 {
            return Value::Is(bits(word, 5, 16));
        }
        // movn, likewise, of 64 bits.
        if word & 0xffe0_0000 == 0x9280_0000 {
            return Value::Is(!bits(word, 5, 16));
        }
        // mov from another register.
        if word & 0xffe0_ffe0 == 0xaa00_03e0 {
            return self.value(register(word, 16));
        }
        // add and sub of a number, as 32 or 64 bits.
        if word & 0x3f80_0000 == 0x1100_0000 {
            let amount = (bits(word, 10, 12) << (12 * bits(word, 22, 1))) as i64;
            let amount = if word & 0x4000_0000 == 0 {
                amount
            } else {
                -amount
            };
            return match from {
                Value::Loaded(base, at) => Value::Changed(base, at, amount),
                // The amount that `__local_bh_enable_ip` is called with, and one besides.
                Value::ChangedBy(..) => from,
                _ => Value::Unknown,
            };
        }
        // add and sub of a register.
        if word & 0x3f20_0000 == 0x0b00_0000 {
            let (by, adds) = (register(word, 16), word & 0x4000_0000 == 0);
            return match (from, self.value(by)) {
                (Value::Loaded(base, at), _) => Value::ChangedBy(base, at, by, adds),
                (Value::Argument(which, at), Value::Is(by)) => Value::Argument(which, at + by),
                _ => Value::Unknown,
            };
        }
        Value::Unknown
    }

    fn access(&mut self, access: &Access) -> Option<Op> {
        let at = u64::try_from(access.offset).unwrap_or(u64::MAX);
        let op = if self.switches {
            self.stack(access)
        } else if access.loads {
            None
        } else if access.base == ZERO {
            self.keeps(access)
        } else {
            self.counts(access, at)
        };
        if access.loads {
            let is_count = access.size >= 4 && self.counts.contains(&at);
            let is_task = self.value(access.base) == Value::Current;
            let base = if is_task { TASK } else { access.base };
            let value = match access.second {
                None if access.base == ZERO && access.size == 8 => Value::Kept(access.offset),
                None if is_count => Value::Loaded(base, at),
                _ => Value::Other,
            };
            self.set(access.first, value);
            if let Some(second) = access.second {
                self.set(second, Value::Other);
            }
        }
        if access.writes_back != 0 {
            let moved = match self.value(access.base) {
                Value::Argument(which, at) => {
                    Value::Argument(which, at.wrapping_add_signed(access.writes_back))
                }
                _ => Value::Other,
            };
            self.set(access.base, moved);
        }
        op
    }

    /// Reads a switch of stacks. The frame pointer goes to the task together with the stack
    /// pointer, and comes from the other task with it.
    fn stack(&self, access: &Access) -> Option<Op> {
        let Value::Argument(which, at) = self.value(access.base) else {
            return None;
        };
        let place = at.wrapping_add_signed(access.offset);
        if access.first != 29 || access.second.is_none() {
            return None;
        }
        match (which, access.loads) {
            (0, false) => Some(Op::LeaveStack(place)),
            (1, true) => Some(Op::TakeStack(place)),
            _ => None,
        }
    }

    /// Reads a store of the running thread's task on the stack.
    fn keeps(&self, access: &Access) -> Option<Op> {
        let stored = [Some(access.first), access.second];
        let mut stored = stored.into_iter().zip([access.offset, access.offset + 8]);
        let is_task = |register: Option<u8>| {
            access.size == 8 && register.is_some_and(|of| self.value(of) == Value::Current)
        };
        let (_, behind) = stored.find(|(register, _)| is_task(*register))?;
        Some(Op::Keep(behind))
    }

    /// Reads a store to where the preemption count may be.
    fn counts(&self, access: &Access, at: u64) -> Option<Op> {
        // What was put into the register in this very block is seen.
        let holder = match self.value(access.base) {
            Value::Current | Value::Unknown => Holder::Register(access.base),
            Value::Kept(behind) => Holder::Stack(behind),
            _ => return None,
        };
        if access.size != 4 || access.second.is_some() {
            return None;
        }
        let is_count = |base: u8, from: u64| from == at && [access.base, TASK].contains(&base);
        let beside = self.counts.contains(&at.wrapping_sub(NEED_RESCHED));
        let counted = match (access.first, self.value(access.first)) {
            (ZERO, _) if beside => Counted::NeedResched(true),
            (_, Value::Is(1)) if beside => Counted::NeedResched(false),
            (_, Value::Changed(base, from, amount)) if is_count(base, from) => {
                Counted::Preempt(amount)
            }
            (_, Value::ChangedBy(base, from, by, adds)) if is_count(base, from) => {
                Counted::PreemptBy(by, adds)
            }
            _ => return None,
        };
        Some(Op::At(holder, counted))
    }
}

/// Returns the registers into which a load or an atomic access fetches that is no [`Access`]: at a
/// register's offset, of a literal, exclusive or ordered, or one that returns what was there.
fn fetched(word: u32) -> [Option<u8>; 3] {
    let at = |from| Some(register(word, from));
    let by_register = word & 0x3f20_0c00 == 0x3820_0800 && word & 0x00c0_0000 != 0;
    let returns = word & 0x3f20_0c00 == 0x3820_0000;
    let literal = word & 0x3f00_0000 == 0x1800_0000;
    let prefetches = word & 0xffe0_0c00 == 0xf8a0_0800 || word & 0xff00_0000 == 0xd800_0000;
    match word {
        _ if prefetches => [None; 3],
        _ if by_register || returns || literal => [at(0), None, None],
        // Register 31 stands where there is none.
        _ if word & 0x3f00_0000 == 0x0800_0000 => {
            let loads = word & 0x0040_0000 != 0;
            [at(0).filter(|_| loads), at(10).filter(|_| loads), at(16)]
        }
        _ => [None; 3],
    }
}

/// Returns true if an instruction computes something into its first register: data processing and
/// `mrs`, but not conditional comparisons, which have flags there.
fn computes(word: u32) -> bool {
    let compares = word & 0x1fe0_0000 == 0x1a40_0000;
    let by_number = word & 0x1c00_0000 == 0x1000_0000;
    let by_register = word & 0x0e00_0000 == 0x0a00_0000;
    (by_number || by_register) && !compares || word & 0xfff0_0000 == 0xd530_0000
}

fn transfer(word: u32) -> Transfer {
    let is_call = word & 0xfc00_0000 == 0x9400_0000 || calls_pointer(word);
    match word {
        _ if is_call => Transfer::Call,
        // ret, retaa, retab
        _ if word & 0xffff_f000 == 0xd65f_0000 => Transfer::Return,
        // eret, eretaa, eretab
        _ if word & 0xffff_f000 == 0xd69f_0000 => Transfer::Iret,
        _ if word & 0xffe0_001f == 0xd400_0001 => Transfer::Syscall,
        _ => Transfer::On,
    }
}

/// Matches `blr`, with or without authentication.
fn calls_pointer(word: u32) -> bool {
    word & 0xfeff_f000 == 0xd63f_0000
}

/// Returns true if it may fault because of its access to memory: loads and stores, and `dc zva`.
fn may_fault(word: u32) -> bool {
    word & 0x0a00_0000 == 0x0800_0000 || word & !0x1f == 0xd50b_7420
}

/// The number of instructions before a block that tell what it stores: a load, what is added, and
/// what is between them. In Debian's kernel 6.12 for RT that is 10 at most, and no branch among
/// them.
const LEAD: usize = 12;

/// Returns true if an instruction may go on elsewhere, like the last one of a block that nothing
/// has ended before.
fn branches(word: u32) -> bool {
    let is_always = word & 0x7c00_0000 == 0x1400_0000 || word & 0xfe00_0000 == 0xd600_0000;
    let compares = matches!(word & 0x7e00_0000, 0x3400_0000 | 0x3600_0000);
    is_always || compares || matches!(word & 0xff00_0000, 0x5400_0000 | 0xd400_0000)
}

fn word(insn: &Insn) -> u32 {
    <[u8; 4]>::try_from(insn.bytes.as_slice()).map_or(0, u32::from_le_bytes)
}

/// Returns a reader that has read the instructions before a block: a count that was loaded there is
/// stored here. All of the code that switches threads is one piece. Other code may have been jumped
/// into, so that values that registers got there for other purposes do not count as known.
fn reader(block: &Block, before: &[Insn], symbols: &Symbols) -> Reader {
    let start = block.insns.first().map_or(0, |insn| insn.address);
    let symbol = symbols.at(start).map(|(symbol, _)| symbol.name.as_str());
    let switches = symbol == Some(CODE.switch);
    let mut reader = Reader::new(switches, symbols.count_place());
    let straight = before.iter().rev().take(LEAD);
    let straight = straight.take_while(|insn| !branches(word(insn)));
    let lead = if switches {
        before.len()
    } else {
        straight.count()
    };
    for insn in &before[before.len() - lead..] {
        reader.read(0, word(insn), &insn.bytes);
    }
    reader.ops.clear();
    if !switches {
        for value in &mut reader.values {
            if *value == Value::Other {
                *value = Value::Unknown;
            }
        }
    }
    reader
}

fn decoded(block: &Block, before: &[Insn], symbols: &Symbols) -> Decoded {
    let mut reader = reader(block, before, symbols);
    let (mut insns, mut last, mut pauses) = (Vec::new(), 0, false);
    for (insn, number) in block.insns.iter().zip(0..) {
        let word = word(insn);
        let displacement = Access::of(word).map_or(0, |access| access.offset);
        insns.push((insn.address, displacement as u64));
        let ops = reader.ops.len();
        reader.read(number, word, &insn.bytes);
        if let Some((_, Op::Mask(_, masking @ Masking::Read))) = reader.ops.get_mut(ops) {
            if symbols.saves(insn.address) {
                *masking = Masking::Save;
            }
        }
        pauses |= matches!(word, YIELD | WAIT_FOR_EVENT);
        last = word;
    }
    Decoded {
        start: block.insns.first().map_or(0, |insn| insn.address),
        insns,
        ops: reader.ops,
        last: transfer(last),
        calls_pointer: calls_pointer(last),
        pauses,
        last_may_fault: may_fault(last),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's plugin API, as it is in QEMU 6.0 to 11.1 (see its `include/qemu/qemu-plugin.h`,
//! since 11.0 `include/plugins/qemu-plugin.h`).
//!
//! | version | QEMU | what is new, as far as it is needed here |
//! |---|---|---|
//! | 1 | 6.0 to 8.2 | |
//! | 2 | 9.0 | instructions are counted in a scoreboard, no longer at an address |
//! | 3 | 9.1 | an instruction's bytes are copied, no longer pointed to |
//! | 4 to 6 | 9.2 to 11.0 | nothing |
//! | 7 | 11.1 | callbacks get user data and not the plugin's number |
//!
//! It is declared here by hand, as far as it is needed. The crate `qemu-plugin` is under the GPL,
//! needs a later Rust than this workspace, is many times as long, and is built for one version of
//! the API. Functions that are the same in all versions are linked. The others are looked up when
//! the plugin is installed, so that one library fits all.
//!
//! The argument for their soundness: they are called with the type that they have in the version
//! that QEMU itself reports, not in the one that was declared to it.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::marker::{PhantomData, PhantomPinned};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A type whose inside only QEMU knows: it is pointed to, never moved, never sent elsewhere.
type Opaque = PhantomData<(*mut u8, PhantomPinned)>;

/// A block of instructions, while it is translated.
#[repr(C)]
pub struct Tb {
    _inside: [u8; 0],
    _opaque: Opaque,
}

/// An instruction, while its block is translated.
#[repr(C)]
pub struct Insn {
    _inside: [u8; 0],
    _opaque: Opaque,
}

#[repr(C)]
struct Scoreboard {
    _inside: [u8; 0],
    _opaque: Opaque,
}

/// QEMU's number for this plugin.
pub type PluginId = u64;
/// A callback that gets the virtual CPU and the user data.
pub type ExecCallback = extern "C" fn(c_uint, *mut c_void);
/// A callback that gets the virtual CPU, the kind of access, its address, and the user data.
pub type MemCallback = extern "C" fn(c_uint, u32, u64, *mut c_void);

/// The callback needs no registers of the guest (`QEMU_PLUGIN_CB_NO_REGS`).
pub const NO_REGISTERS: c_int = 0;
/// The callback reads registers of the guest (`QEMU_PLUGIN_CB_R_REGS`).
pub const READS_REGISTERS: c_int = 1;
/// Both kinds of access (`QEMU_PLUGIN_MEM_RW`).
pub const READ_AND_WRITE: c_int = 3;
const ADD_U64: c_int = 0;

unsafe extern "C" {
    pub fn qemu_plugin_tb_n_insns(tb: *const Tb) -> usize;
    pub fn qemu_plugin_tb_get_insn(tb: *const Tb, number: usize) -> *mut Insn;
    pub fn qemu_plugin_insn_size(insn: *const Insn) -> usize;
    pub fn qemu_plugin_insn_vaddr(insn: *const Insn) -> u64;
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        tb: *mut Tb,
        cb: ExecCallback,
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut Insn,
        cb: ExecCallback,
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_mem_cb(
        insn: *mut Insn,
        cb: MemCallback,
        flags: c_int,
        kind: c_int,
        data: *mut c_void,
    );
}

/// `qemu_info_t`, the same in all versions.
#[repr(C)]
pub struct Info {
    _target_name: *const c_char,
    _oldest_api: c_int,
    /// The version of the API that this QEMU has.
    pub api: c_int,
    /// True if it emulates a whole machine, and not a user program.
    pub system_emulation: bool,
    /// The number of virtual CPUs with which the machine begins; not set where there is no machine.
    pub smp_vcpus: c_int,
    /// The number of virtual CPUs that it may get.
    pub max_vcpus: c_int,
}

impl Info {
    /// Checks that QEMU calls the plugin from one thread only: that of the only virtual CPU of a
    /// machine or, if the bench has said so, the one in which this many take turns. The error says
    /// what to do.
    pub fn is_single_threaded(&self, in_turn: Option<u32>) -> Result<(), String> {
        if !self.system_emulation {
            return Err("expected qemu-system-x86_64, found QEMU for user programs".to_owned());
        }
        let (now, most) = (self.smp_vcpus, self.max_vcpus);
        match in_turn {
            None if (now, most) == (1, 1) => Ok(()),
            None => Err(format!(
                "expected one virtual CPU, found {now} (at most {most}): give QEMU -smp 1"
            )),
            Some(cpus) if i64::from(cpus) == i64::from(most) => Ok(()),
            Some(cpus) => Err(format!(
                "expected {cpus} virtual CPUs that take turns, found {most}"
            )),
        }
    }
}

/// `qemu_plugin_u64`: a number in each entry of a scoreboard.
#[repr(C)]
#[derive(Clone, Copy)]
struct Counter {
    board: *mut Scoreboard,
    offset: usize,
}

// SAFETY: the address of a scoreboard is only ever handed back to QEMU.
unsafe impl Send for Counter {}
// SAFETY: as above.
unsafe impl Sync for Counter {}

#[derive(Clone, Copy)]
enum Count {
    AtAddress {
        add: unsafe extern "C" fn(*mut Insn, c_int, *mut c_void, u64),
    },
    InScoreboard {
        counter: Counter,
        add: unsafe extern "C" fn(*mut Insn, c_int, Counter, u64),
        find: unsafe extern "C" fn(*mut Scoreboard, c_uint) -> *mut c_void,
    },
    /// Counts by a call for each instruction. This is slower, but needs no entry of a scoreboard
    /// for each CPU: with several CPUs, QEMU 10.0 may count at an address that is none.
    ByCall,
}

#[derive(Clone, Copy)]
enum Bytes {
    PointedTo(unsafe extern "C" fn(*const Insn) -> *const u8),
    Copied(unsafe extern "C" fn(*const Insn, *mut u8, usize) -> usize),
}

type TranslatedById = extern "C" fn(PluginId, *mut Tb);
type ResetById = extern "C" fn(PluginId);
type TranslatedWithData = extern "C" fn(*mut Tb, *mut c_void);
type ResetWithData = extern "C" fn(*mut c_void);

/// The function that QEMU calls for a block that it translates, in the form of each version.
#[derive(Clone, Copy)]
pub struct OnTranslated {
    /// Up to version 6.
    pub by_id: TranslatedById,
    /// From version 7 on.
    pub with_data: TranslatedWithData,
}

/// The function that QEMU calls once it has dropped all translated blocks, in the form of each
/// version.
#[derive(Clone, Copy)]
pub struct OnReset {
    /// Up to version 6.
    pub by_id: ResetById,
    /// From version 7 on.
    pub with_data: ResetWithData,
}

#[derive(Clone, Copy)]
enum Calls {
    ById {
        listen: unsafe extern "C" fn(PluginId, TranslatedById),
        reset: unsafe extern "C" fn(PluginId, ResetById),
    },
    WithData {
        listen: unsafe extern "C" fn(PluginId, TranslatedWithData, *mut c_void),
        reset: unsafe extern "C" fn(PluginId, ResetWithData, *mut c_void),
    },
}

/// The counter where there is no scoreboard.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The longest instruction of x86, in bytes.
const INSN_MAX: usize = 15;

/// An instruction's bytes.
pub struct Code {
    bytes: [u8; INSN_MAX],
    length: usize,
}

impl Code {
    /// Returns the bytes themselves.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The parts that differ between the versions of the API.
pub struct Qemu {
    id: PluginId,
    count: Count,
    bytes: Bytes,
    calls: Calls,
}

impl Qemu {
    /// Looks up the functions of this version. `in_turn` is true if several virtual CPUs take
    /// turns. A version that is newer than all known here, and has accepted a plugin made for the
    /// newest of these, keeps what that one has: QEMU's loader works that way.
    ///
    /// # Safety
    /// It must be the version that QEMU said, and QEMU must be the caller.
    pub unsafe fn of(id: PluginId, version: c_int, in_turn: bool) -> Result<Self, String> {
        if version < 1 {
            return Err(format!("version {version} of QEMU's plugin API is too old"));
        }
        // SAFETY: these are the functions' types in that version.
        unsafe {
            let count = if in_turn {
                Count::ByCall
            } else if version < 2 {
                let add = function(c"qemu_plugin_register_vcpu_insn_exec_inline")?;
                Count::AtAddress { add }
            } else {
                let new: unsafe extern "C" fn(usize) -> *mut Scoreboard =
                    function(c"qemu_plugin_scoreboard_new")?;
                let (board, offset) = (new(size_of::<u64>()), 0);
                Count::InScoreboard {
                    counter: Counter { board, offset },
                    add: function(c"qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu")?,
                    find: function(c"qemu_plugin_scoreboard_find")?,
                }
            };
            let data = c"qemu_plugin_insn_data";
            let bytes = if version < 3 {
                Bytes::PointedTo(function(data)?)
            } else {
                Bytes::Copied(function(data)?)
            };
            let listen = c"qemu_plugin_register_vcpu_tb_trans_cb";
            let reset = c"qemu_plugin_reset";
            let calls = if version < 7 {
                let (listen, reset) = (function(listen)?, function(reset)?);
                Calls::ById { listen, reset }
            } else {
                let (listen, reset) = (function(listen)?, function(reset)?);
                Calls::WithData { listen, reset }
            };
            Ok(Self {
                id,
                count,
                bytes,
                calls,
            })
        }
    }

    /// Makes QEMU call `on` for each block that is translated from now on.
    pub fn listen(&self, on: OnTranslated) {
        let no_data = std::ptr::null_mut();
        // SAFETY: the functions are of the types that this version expects.
        unsafe {
            match self.calls {
                Calls::ById { listen, .. } => listen(self.id, on.by_id),
                Calls::WithData { listen, .. } => listen(self.id, on.with_data, no_data),
            }
        }
    }

    /// Makes QEMU drop all translated blocks once the present block has ended; `on` is called then.
    pub fn reset(&self, on: OnReset) {
        let no_data = std::ptr::null_mut();
        // SAFETY: the functions are of the types that this version expects.
        unsafe {
            match self.calls {
                Calls::ById { reset, .. } => reset(self.id, on.by_id),
                Calls::WithData { reset, .. } => reset(self.id, on.with_data, no_data),
            }
        }
    }

    /// Makes QEMU count an instruction whenever it begins.
    ///
    /// # Safety
    /// The instruction must belong to the block that is being translated.
    pub unsafe fn count(&self, insn: *mut Insn) {
        // SAFETY: by this function's contract; the one counter is static, the other QEMU's.
        unsafe {
            match self.count {
                Count::AtAddress { add } => add(insn, ADD_U64, COUNT.as_ptr().cast(), 1),
                Count::InScoreboard { counter, add, .. } => add(insn, ADD_U64, counter, 1),
                Count::ByCall => {
                    let no_data = std::ptr::null_mut();
                    qemu_plugin_register_vcpu_insn_exec_cb(insn, ran, NO_REGISTERS, no_data);
                }
            }
        }
    }

    /// Returns the number of instructions that were counted, on all virtual CPUs together.
    ///
    /// # Safety
    /// `cpu` must be the virtual CPU that calls.
    pub unsafe fn counted(&self, cpu: c_uint) -> u64 {
        match self.count {
            Count::AtAddress { .. } | Count::ByCall => COUNT.load(Relaxed),
            // SAFETY: the scoreboard has an entry for each virtual CPU that has begun, which
            // only code on that CPU changes, and this is called from there. QEMU may move
            // the entries, but not before this call is over.
            Count::InScoreboard { counter, find, .. } => unsafe {
                find(counter.board, cpu).cast::<u64>().read()
            },
        }
    }

    /// Returns an instruction's bytes.
    ///
    /// # Safety
    /// The instruction must belong to the block that is being translated.
    pub unsafe fn code(&self, insn: *const Insn) -> Code {
        let mut bytes = [0; INSN_MAX];
        // SAFETY: by this function's contract; QEMU points to as many bytes as it says that
        // the instruction has, and copies no more than it is told that there is room for.
        let length = unsafe {
            match self.bytes {
                Bytes::PointedTo(data) => {
                    let length = qemu_plugin_insn_size(insn).min(INSN_MAX);
                    std::ptr::copy_nonoverlapping(data(insn), bytes.as_mut_ptr(), length);
                    length
                }
                Bytes::Copied(copy) => copy(insn, bytes.as_mut_ptr(), INSN_MAX),
            }
        };
        let length = length.min(INSN_MAX);
        Code { bytes, length }
    }
}

/// Counts an instruction that begins. Only one thread counts.
extern "C" fn ran(_cpu: c_uint, _data: *mut c_void) {
    COUNT.store(COUNT.load(Relaxed) + 1, Relaxed);
}

/// Looks up a function of the QEMU that has loaded this library.
///
/// # Safety
/// `F` must be a pointer to a function of its type.
pub unsafe fn function<F: Copy>(name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the name ends with a zero.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        return Err(format!("this QEMU has no {}", name.to_string_lossy()));
    }
    // SAFETY: by this function's contract; a function's pointer is an address that is not 0.
    Ok(unsafe { std::mem::transmute_copy(&address) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_machine_whose_cpus_are_known_to_take_turns_calls_from_one_thread() {
        let info = |system_emulation, smp_vcpus, max_vcpus| Info {
            _target_name: std::ptr::null(),
            _oldest_api: 0,
            api: 1,
            system_emulation,
            smp_vcpus,
            max_vcpus,
        };
        assert_eq!(info(true, 1, 1).is_single_threaded(None), Ok(()));
        assert_eq!(info(true, 1, 4).is_single_threaded(Some(4)), Ok(()));
        for (info, in_turn, found) in [
            (info(true, 2, 2), None, "found 2 (at most 2)"),
            (info(true, 1, 4), None, "found 1 (at most 4)"),
            (info(true, 1, 2), Some(4), "found 2"),
            (info(false, 1, 1), None, "user programs"),
        ] {
            let reason = info.is_single_threaded(in_turn).unwrap_err();
            assert!(reason.contains(found), "{reason}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that QEMU calls, and the symbols that it finds in this library.
//!
//! The common argument for soundness: QEMU calls from one thread, that of its one virtual CPU or
//! the one in which several take turns. QEMU without a machine, or with more CPUs than the orders
//! say, is refused; the bench gives QEMU `thread=single`, and with `-icount` there is no other way.
//! QEMU hands over pointers that are valid during the call, and takes pointers to nothing but a
//! static counter. User data are numbers, not addresses.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::{self, File};
use std::io::BufWriter;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use punctual_trace::marker::Marker;
use punctual_trace::{Change, Orders, Watcher};

use crate::api::{
    self, Code, Info, Insn, NO_REGISTERS, OnReset, OnTranslated, PluginId, Qemu, READ_AND_WRITE,
    READS_REGISTERS, Tb,
};
use crate::own::{Own, VALUE_HIGH, VALUE_LOW};
use crate::turn::Turn;

/// The version of QEMU's API for which this is made. QEMU reads it after it has loaded this library
/// and before it calls it. QEMU takes no version but those that it knows itself, so it must be set
/// for each QEMU.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(0);

/// The variable in which the bench names that version.
const API_VARIABLE: &str = "PUNCTUAL_PLUGIN_API";

/// Called by the loader before QEMU sees the library. QEMU reads the version by `dlsym` before it
/// calls any function, so that no function that it calls could set it.
///
/// Code before `main` is the loader's business, not Rust's: `std` promises nothing there. The code
/// here works with glibc and musl, which `dlopen` this library in a process whose `environ` was set
/// long before: it reads one variable, and stores one number. A panic would abort QEMU, but nothing
/// here can panic.
#[used]
// SAFETY: this section is an array of pointers to functions which the loader calls.
#[unsafe(link_section = ".init_array")]
static DECLARE: extern "C" fn() = declare;

extern "C" fn declare() {
    let told = std::env::var(API_VARIABLE).ok();
    if let Some(version) = told.and_then(|told| told.parse().ok()) {
        qemu_plugin_version.store(version, Relaxed);
    }
}

static QEMU: OnceLock<Qemu> = OnceLock::new();
/// The CPU that has the turn, where several take turns.
static TURN: OneThread<Turn> = OneThread(UnsafeCell::new(None));
static WATCHER: OneThread<Watcher> = OneThread(UnsafeCell::new(None));
/// The orders that change the guest's memory, or read it.
static OWN: OneThread<Own> = OneThread(UnsafeCell::new(None));

/// A value that only one thread uses. A lock would take longer than the work done under it.
struct OneThread<T>(UnsafeCell<Option<T>>);

// SAFETY: QEMU calls from one thread only, that of the virtual CPUs, as
// `Info::is_single_threaded` has made sure; the one call from another, to install the plugin,
// is over before that thread begins.
unsafe impl<T> Sync for OneThread<T> {}

fn with_watcher<T>(body: impl FnOnce(&mut Watcher) -> T) -> Option<T> {
    // SAFETY: as above; and no `body` calls QEMU, so none is called within another.
    let watcher = unsafe { &mut *WATCHER.0.get() };
    watcher.as_mut().map(body)
}

/// The same with the state that knows whose turn it is; `None` if there is only one CPU.
fn with_turn<T>(body: impl FnOnce(&mut Turn) -> T) -> Option<T> {
    // SAFETY: as above; what it calls in QEMU calls nothing here.
    let turn = unsafe { &mut *TURN.0.get() };
    turn.as_mut().map(body)
}

/// The same with the state that concerns the guest's memory.
fn with_own<T>(body: impl FnOnce(&mut Own) -> T) -> Option<T> {
    // SAFETY: as above.
    let own = unsafe { &mut *OWN.0.get() };
    own.as_mut().map(body)
}

fn qemu() -> &'static Qemu {
    QEMU.get().expect("QEMU calls what it has installed")
}

/// Called once by QEMU, with the words after the plugin's name: `orders=FILE`. Any result but 0
/// makes QEMU refuse the plugin, and end.
///
/// # Safety
/// `info` must be QEMU's, and `words` must hold `count` texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    info: *const Info,
    count: c_int,
    words: *const *const c_char,
) -> c_int {
    let word = |number: usize| {
        // SAFETY: by this function's contract.
        unsafe { CStr::from_ptr(*words.add(number)) }.to_string_lossy()
    };
    let count = usize::try_from(count).unwrap_or(0);
    let told: Vec<_> = (0..count).map(word).collect();
    // SAFETY: by this function's contract.
    let info = unsafe { &*info };
    let orders = told.first().and_then(|word| word.strip_prefix("orders="));
    match install(id, info, orders) {
        Ok(()) => 0,
        Err(reason) => {
            eprintln!("punctual-scope: {reason}");
            1
        }
    }
}

fn install(id: PluginId, info: &Info, orders: Option<&str>) -> Result<(), String> {
    let (own, orders) = read(orders)?;
    info.is_single_threaded(orders.cpus)?;
    // SAFETY: QEMU calls, and says that this is its version.
    let qemu = unsafe { Qemu::of(id, info.api, orders.cpus.is_some()) }?;
    if orders.cpus.is_some() {
        // SAFETY: as for `OneThread`.
        unsafe { *TURN.0.get() = Some(Turn::default()) };
    }
    // SAFETY: as for `OneThread`.
    unsafe { *OWN.0.get() = own };
    begin(orders)?;
    QEMU.get_or_init(|| qemu).listen(TRANSLATED);
    Ok(())
}

fn read(orders: Option<&str>) -> Result<(Option<Own>, Orders), String> {
    let path = orders.ok_or("expected orders=FILE")?;
    let named = |error| format!("{path}: {error}");
    let text = fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    let (own, others) = Own::split(&text).map_err(named)?;
    Ok((own, Orders::parse(&others).map_err(named)?))
}

fn begin(orders: Orders) -> Result<(), String> {
    let file = File::options().write(true).open(&orders.trace);
    let file = file.map_err(|error| format!("{}: {error}", orders.trace.display()))?;
    let watcher = Watcher::new(orders, Box::new(BufWriter::with_capacity(1 << 16, file)));
    // SAFETY: as for `OneThread`.
    unsafe { *WATCHER.0.get() = Some(watcher) };
    Ok(())
}

const TRANSLATED: OnTranslated = OnTranslated {
    by_id: translated_by_id,
    with_data: translated_with_data,
};

extern "C" fn translated_by_id(_id: PluginId, tb: *mut Tb) {
    // SAFETY: QEMU calls, and the block is the one that it translates.
    unsafe { translated(tb) };
}

extern "C" fn translated_with_data(tb: *mut Tb, _data: *mut c_void) {
    // SAFETY: as above.
    unsafe { translated(tb) };
}

const RESET: OnReset = OnReset {
    by_id: reset_by_id,
    with_data: reset_with_data,
};

extern "C" fn reset_by_id(_id: PluginId) {
    qemu().listen(TRANSLATED);
}

extern "C" fn reset_with_data(_data: *mut c_void) {
    qemu().listen(TRANSLATED);
}

/// Handles a block that QEMU has translated.
///
/// # Safety
/// QEMU must be the caller, with the block at hand.
unsafe fn translated(tb: *mut Tb) {
    let qemu = qemu();
    // SAFETY: the block and its instructions are valid during this call.
    let insns: Vec<(*mut Insn, u64, Code)> = unsafe {
        let insn = |number| {
            let insn = api::qemu_plugin_tb_get_insn(tb, number);
            (insn, api::qemu_plugin_insn_vaddr(insn), qemu.code(insn))
        };
        (0..api::qemu_plugin_tb_n_insns(tb)).map(insn).collect()
    };
    let code: Vec<(u64, &[u8])> = insns
        .iter()
        .map(|(_, at, code)| (*at, code.bytes()))
        .collect();
    let in_turn = with_turn(|_| ()).is_some();
    for (insn, _, code) in &insns {
        if let Some(marker) = Marker::of(code.bytes()) {
            let flags = READS_REGISTERS * c_int::from(in_turn);
            let (insn, kind) = (*insn, data(marker.kind()));
            // SAFETY: the instruction is valid during this call; the data are a number.
            unsafe { api::qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, flags, kind) };
        }
    }
    let first = code.first().map_or(0, |(at, _)| *at);
    if let (Some((insn, ..)), Some(true)) = (insns.first(), with_own(|own| own.counts(first))) {
        let (insn, flags) = (*insn, NO_REGISTERS);
        // SAFETY: as above.
        unsafe { api::qemu_plugin_register_vcpu_insn_exec_cb(insn, called, flags, data(0_u32)) };
    }
    let Some(instrument) = with_watcher(|watcher| watcher.translated(&code)).flatten() else {
        return;
    };
    with_turn(|turn| turn.translated(instrument.block));
    // SAFETY: as above.
    unsafe {
        let (block, flags) = (
            data(instrument.block),
            READS_REGISTERS * c_int::from(in_turn),
        );
        api::qemu_plugin_register_vcpu_tb_exec_cb(tb, begins, flags, block);
        for (insn, ..) in &insns {
            qemu.count(*insn);
        }
        for number in instrument.memory {
            let (insn, at, _) = insns[usize::from(number)];
            let (flags, kind) = (NO_REGISTERS, READ_AND_WRITE);
            let is_valued = with_own(|own| own.is_valued(at)) == Some(true);
            let told = if is_valued { values } else { accesses };
            api::qemu_plugin_register_vcpu_mem_cb(insn, told, flags, kind, data(number));
        }
    }
}

/// User data: a number that is handed back as it is.
fn data(number: impl Into<u32>) -> *mut c_void {
    std::ptr::without_provenance_mut(number.into() as usize)
}

/// Returns the number from which [`data`] was made; `T` is its type.
fn number<T: TryFrom<usize>>(data: *mut c_void) -> Option<T> {
    data.addr().try_into().ok()
}

/// Returns the CPU that calls; QEMU says that it is `told`. If it cannot be known, the trace ends:
/// nothing is reported for the wrong one.
fn current(told: c_uint) -> Option<u32> {
    let Some(found) = with_turn(Turn::cpu) else {
        return Some(told);
    };
    if found.is_none() {
        with_watcher(|watcher| watcher.fail("whose turn it is cannot be told"));
    }
    found
}

extern "C" fn begins(cpu: c_uint, block: *mut c_void) {
    // SAFETY: this is the virtual CPU that calls.
    let count = unsafe { qemu().counted(cpu) };
    let Some(block) = number(block) else { return };
    with_turn(|turn| turn.begins(block, cpu));
    if with_watcher(|watcher| watcher.listens()) == Some(true) {
        let Some(cpu) = current(cpu) else { return };
        with_watcher(|watcher| watcher.begins(cpu, block, count));
    }
}

extern "C" fn accesses(_cpu: c_uint, _info: u32, address: u64, insn: *mut c_void) {
    let Some(insn) = number(insn) else { return };
    with_watcher(|watcher| watcher.accesses(insn, address));
}

/// The same, with the value there.
extern "C" fn values(cpu: c_uint, info: u32, address: u64, insn: *mut c_void) {
    accesses(cpu, info, address, insn);
    let value = with_own(|own| own.ram()?.word(address)).flatten();
    if let Some(value) = value {
        let [low, high] = [value & 0xffff_ffff, value >> 32];
        with_watcher(|watcher| {
            watcher.accesses(VALUE_LOW, low);
            watcher.accesses(VALUE_HIGH, high);
        });
    }
}

/// Notes that a system call begins.
extern "C" fn called(_cpu: c_uint, _data: *mut c_void) {
    with_own(Own::called);
}

extern "C" fn marked(cpu: c_uint, kind: *mut c_void) {
    // SAFETY: this is the virtual CPU that calls.
    let count = unsafe { qemu().counted(cpu) };
    let Some(cpu) = current(cpu) else { return };
    let marker = number(kind).and_then(Marker::from_kind);
    if marker == Some(Marker::Step) {
        with_own(Own::step);
    }
    let change =
        marker.and_then(|marker| with_watcher(|watcher| watcher.reaches(cpu, marker, count)));
    if change == Some(Change::Anew) {
        qemu().reset(RESET);
    }
}

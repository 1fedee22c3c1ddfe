//! QEMU's plugin API, version 1 (QEMU 6.0 to 8.2; see its `include/qemu/qemu-plugin.h`).
//!
//! It is declared here by hand, as far as it is needed: the crate `qemu-plugin` is under the
//! GPL, needs a later Rust than this workspace, and is many times as long.
//!
//! The common argument for soundness: QEMU calls from the one thread of its virtual CPU
//! (`thread=single`), hands over pointers that are valid during the call, and takes pointers
//! to nothing but a static counter; user data are numbers, not addresses.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::{self, File};
use std::io::BufWriter;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use punctual_trace::marker::Marker;
use punctual_trace::{Change, Orders, Watcher};

enum Tb {}
enum Insn {}
type PluginId = u64;
type ExecCallback = extern "C" fn(c_uint, *mut c_void);
type MemCallback = extern "C" fn(c_uint, u32, u64, *mut c_void);

const NO_REGISTERS: c_int = 0;
const READ_AND_WRITE: c_int = 3;
const ADD_U64: c_int = 0;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: PluginId, cb: extern "C" fn(PluginId, *mut Tb));
    fn qemu_plugin_tb_n_insns(tb: *const Tb) -> usize;
    fn qemu_plugin_tb_get_insn(tb: *const Tb, number: usize) -> *mut Insn;
    fn qemu_plugin_insn_data(insn: *const Insn) -> *const u8;
    fn qemu_plugin_insn_size(insn: *const Insn) -> usize;
    fn qemu_plugin_insn_vaddr(insn: *const Insn) -> u64;
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        tb: *mut Tb,
        cb: ExecCallback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut Insn,
        cb: ExecCallback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_insn_exec_inline(
        insn: *mut Insn,
        operation: c_int,
        counter: *mut c_void,
        addend: u64,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        insn: *mut Insn,
        cb: MemCallback,
        flags: c_int,
        kind: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_reset(id: PluginId, cb: extern "C" fn(PluginId));
}

/// The version of the API that this is made for.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

/// How many instructions were begun in instrumented blocks.
static COUNT: AtomicU64 = AtomicU64::new(0);
static ID: AtomicU64 = AtomicU64::new(0);
static WATCHER: OneThread = OneThread(UnsafeCell::new(None));

/// What only one thread uses. A lock would take longer than what is done under it.
struct OneThread(UnsafeCell<Option<Watcher>>);

// SAFETY: QEMU calls from one thread only, the virtual CPU's; the one call from another, to
// install the plugin, is over before that thread begins.
unsafe impl Sync for OneThread {}

fn with_watcher<T>(body: impl FnOnce(&mut Watcher) -> T) -> Option<T> {
    // SAFETY: as above; and no `body` calls QEMU, so none is called within another.
    let watcher = unsafe { &mut *WATCHER.0.get() };
    watcher.as_mut().map(body)
}

/// QEMU calls this once, with the words behind the plugin's name: `orders=FILE`. Anything
/// but 0 has QEMU refuse the plugin, and end.
///
/// # Safety
/// `words` holds `count` texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    _qemu: *const c_void,
    count: c_int,
    words: *const *const c_char,
) -> c_int {
    let word = |number: usize| {
        // SAFETY: by this function's contract.
        unsafe { CStr::from_ptr(*words.add(number)) }.to_string_lossy()
    };
    let told: Vec<_> = (0..count as usize).map(word).collect();
    match begin(told.first().and_then(|word| word.strip_prefix("orders="))) {
        Ok(()) => {
            ID.store(id, Relaxed);
            // SAFETY: the function is of the type that QEMU expects.
            unsafe { qemu_plugin_register_vcpu_tb_trans_cb(id, translated) };
            0
        }
        Err(reason) => {
            eprintln!("punctual-scope: {reason}");
            1
        }
    }
}

fn begin(orders: Option<&str>) -> Result<(), String> {
    let path = orders.ok_or("expected orders=FILE")?;
    let named = |error| format!("{path}: {error}");
    let text = fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    let orders = Orders::parse(&text).map_err(named)?;
    let file = File::options().write(true).open(&orders.trace);
    let file = file.map_err(|error| format!("{}: {error}", orders.trace.display()))?;
    let watcher = Watcher::new(orders, Box::new(BufWriter::with_capacity(1 << 16, file)));
    // SAFETY: as for `OneThread`.
    unsafe { *WATCHER.0.get() = Some(watcher) };
    Ok(())
}

/// QEMU has dropped all that was translated.
extern "C" fn reset(id: PluginId) {
    // SAFETY: the function is of the type that QEMU expects.
    unsafe { qemu_plugin_register_vcpu_tb_trans_cb(id, translated) };
}

extern "C" fn translated(_id: PluginId, tb: *mut Tb) {
    // SAFETY: the block is valid during this call, and so are its instructions' bytes.
    let insns: Vec<(*mut Insn, u64, &[u8])> = unsafe {
        let insn = |number| {
            let insn = qemu_plugin_tb_get_insn(tb, number);
            let (data, size) = (qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
            let bytes = std::slice::from_raw_parts(data, size);
            (insn, qemu_plugin_insn_vaddr(insn), bytes)
        };
        (0..qemu_plugin_tb_n_insns(tb)).map(insn).collect()
    };
    let code: Vec<(u64, &[u8])> = insns.iter().map(|(_, at, bytes)| (*at, *bytes)).collect();
    for (insn, _, bytes) in &insns {
        if let Some(marker) = Marker::of(bytes) {
            let kind = usize::from(marker.kind()) as *mut c_void;
            // SAFETY: the instruction is valid during this call; the data are a number.
            unsafe { qemu_plugin_register_vcpu_insn_exec_cb(*insn, marked, NO_REGISTERS, kind) };
        }
    }
    let Some(instrument) = with_watcher(|watcher| watcher.translated(&code)).flatten() else {
        return;
    };
    // SAFETY: as above; the counter is static.
    unsafe {
        let block = instrument.block as usize as *mut c_void;
        qemu_plugin_register_vcpu_tb_exec_cb(tb, begins, NO_REGISTERS, block);
        for (insn, _, _) in &insns {
            let counter = COUNT.as_ptr().cast();
            qemu_plugin_register_vcpu_insn_exec_inline(*insn, ADD_U64, counter, 1);
        }
        for number in instrument.memory {
            let (insn, ..) = insns[usize::from(number)];
            let number = usize::from(number) as *mut c_void;
            let (flags, kind) = (NO_REGISTERS, READ_AND_WRITE);
            qemu_plugin_register_vcpu_mem_cb(insn, accesses, flags, kind, number);
        }
    }
}

extern "C" fn begins(_cpu: c_uint, block: *mut c_void) {
    let count = COUNT.load(Relaxed);
    with_watcher(|watcher| watcher.begins(block as usize as u32, count));
}

extern "C" fn accesses(_cpu: c_uint, _info: u32, address: u64, insn: *mut c_void) {
    with_watcher(|watcher| watcher.accesses(insn as usize as u8, address));
}

extern "C" fn marked(_cpu: c_uint, kind: *mut c_void) {
    let count = COUNT.load(Relaxed);
    let marker = Marker::from_kind(kind as usize as u8);
    let change = marker.and_then(|marker| with_watcher(|watcher| watcher.reaches(marker, count)));
    if change == Some(Change::Anew) {
        // SAFETY: the function is of the type that QEMU expects. QEMU does it once this
        // block has ended, and calls back then.
        unsafe { qemu_plugin_reset(ID.load(Relaxed), reset) };
    }
}

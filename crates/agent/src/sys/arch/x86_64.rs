// SPDX-License-Identifier: MIT OR Apache-2.0
//! x86-64: its instructions, and the input and output ports of QEMU's devices, by which a guest
//! reaches its bench without a driver.

use std::arch::asm;
use std::cell::Cell;
use std::io;
use std::marker::PhantomData;

/// The reason why a program is not told that it was interrupted, if it is not.
pub const NOT_TOLD: &str = "this processor does not tell a program that it was interrupted: ES is \
                            not cleared (with FRED: boot with fred=off)";

/// Handlers of interrupts of which each CPU has its own: they have no line here.
pub const OF_EACH_CPU: &[&str] = &[];

/// A null selector that is not 0.
const ARMED: u32 = 3;

/// An instruction that does nothing and has an address of its own: `nop [rax + …]`.
#[inline]
pub fn mark<const KIND: u8>() {
    // SAFETY: `nop` with an operand computes its address and touches nothing. What is
    // behind it may rely on what is before it being done: hence no `nomem`.
    unsafe {
        asm!(
            ".byte 0x0f, 0x1f, 0x80, {kind}, 0x50, 0x4e, 0x43",
            kind = const KIND,
            options(nostack, preserves_flags),
        );
    }
}

/// Takes a turn of an idle emulated CPU: some 250 instructions, then `pause`, at
/// which QEMU goes on to the next CPU.
#[inline]
pub fn turn() {
    // SAFETY: `nop` and `pause` do nothing.
    unsafe {
        asm!(
            ".rept 250",
            "nop",
            ".endr",
            "pause",
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// Loads a null selector other than 0 into `ES`, where the return from an interrupt leaves 0.
#[inline]
pub fn arm_interruption() {
    // SAFETY: nothing reaches memory by way of `ES` in a 64-bit program, and any null
    // selector may be loaded into it.
    unsafe {
        asm!("mov es, {0:e}", in(reg) ARMED, options(nostack, preserves_flags));
    }
}

/// Returns true if `ES` is 0.
#[inline]
pub fn was_interrupted() -> bool {
    let found: u32;
    // SAFETY: reading a segment register has no other effect.
    unsafe {
        asm!("mov {0:e}, es", out(reg) found, options(nostack, preserves_flags));
    }
    found == 0
}

/// Returns true if an interruption is all that clears `ES`.
pub fn tells_interruptions() -> bool {
    true
}

/// Returns the current time stamp counter.
#[inline]
pub fn tsc() -> Option<u64> {
    // SAFETY: reading the counter has no other effect; Linux lets every program do so unless
    // it has forbidden that to itself by prctl(PR_SET_TSC), which nothing here does.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// The ports of the devices that a guest of the virtual bench uses. None of these devices
/// writes to memory because of input through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
enum Port {
    /// `isa-debugcon`: each byte written is in the host's file when the instruction ends.
    DebugConsole = 0xE9,
    /// `ib700` (`hw/watchdog/wdt_ib700.c`): a write stops the watchdog.
    WatchdogStop = 0x441,
    /// `ib700`: a write starts the watchdog.
    WatchdogStart = 0x443,
    /// `fw_cfg` (`docs/specs/fw_cfg.rst`): selects an item.
    FwCfgSelector = 0x510,
    /// `fw_cfg`: the item's next byte.
    FwCfgData = 0x511,
}

/// The shortest span that `ib700` knows: 2 s.
const WATCHDOG_SPAN: u8 = 14;

/// Sends bytes to the bench. There is no interrupt and no buffer, so nothing of the host's time
/// leaks into the guest. Has the requirements of [`Ports`].
pub fn send(bytes: &[u8]) -> io::Result<()> {
    Ports::open()?.write_all(Port::DebugConsole, bytes);
    Ok(())
}

/// Returns an error if there is no bench to send to.
pub fn find_bench() -> io::Result<()> {
    // The device answers a read with its own address.
    let (own, answer) = (
        Port::DebugConsole as u8,
        Ports::open()?.read(Port::DebugConsole),
    );
    if answer != own {
        let text = format!("port {own:#x} answers {answer:#x}: no debug console");
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    Ok(())
}

/// Makes the watchdog stop the machine in 2 s.
pub fn start_watchdog() -> io::Result<()> {
    Ports::open()?.write(Port::WatchdogStart, WATCHDOG_SPAN);
    Ok(())
}

/// Stops the watchdog.
pub fn stop_watchdog() -> io::Result<()> {
    Ports::open()?.write(Port::WatchdogStop, 0);
    Ok(())
}

/// QEMU's `fw_cfg`.
#[derive(Debug)]
pub struct FwCfg(Ports);

impl FwCfg {
    /// Opens the device. Has the requirements of [`Ports`].
    pub fn open() -> io::Result<Self> {
        Ok(Self(Ports::open()?))
    }

    /// Selects an item by its key.
    pub fn select(&self, key: u16) {
        self.0.write_u16(Port::FwCfgSelector, key);
    }

    /// Reads the item's next bytes.
    pub fn read(&self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.0.read(Port::FwCfgData));
    }
}

thread_local! {
    static IS_OPEN: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread's right to use ports, given back when dropped.
///
/// It is held as briefly as possible: the kernel carries the permission bitmap along at
/// each context switch of the thread that has it, which would lengthen measured times.
#[derive(Debug)]
struct Ports {
    /// Ties the value to its thread, as `iopl` is per thread: no other may use the ports by it.
    thread_bound: PhantomData<*const ()>,
}

#[expect(clippy::unused_self, reason = "who has one has the right")]
impl Ports {
    /// Requests the ports from the kernel. Needs `CAP_SYS_RAWIO` and a kernel with
    /// `CONFIG_X86_IOPL_IOPERM`; returns an error if the thread has them already, because the
    /// first of two to be dropped would take them from the other.
    fn open() -> io::Result<Self> {
        if IS_OPEN.get() {
            return Err(io::Error::other("this thread has the ports already"));
        }
        set_level(3)?;
        IS_OPEN.set(true);
        Ok(Self {
            thread_bound: PhantomData,
        })
    }

    /// Reads one byte.
    fn read(&self, port: Port) -> u8 {
        let value: u8;
        // SAFETY: `self` exists only in the thread to which the kernel has granted the ports,
        // and no device writes to memory.
        unsafe {
            asm!("in al, dx", in("dx") port as u16, out("al") value, options(nomem, nostack));
        }
        value
    }

    /// Writes one byte.
    fn write(&self, port: Port, value: u8) {
        self.write_all(port, &[value]);
    }

    /// Writes two bytes at once.
    fn write_u16(&self, port: Port, value: u16) {
        // SAFETY: as for `read`.
        unsafe {
            asm!("out dx, ax", in("dx") port as u16, in("ax") value, options(nomem, nostack));
        }
    }

    /// Writes bytes one after the other to the same port.
    fn write_all(&self, port: Port, bytes: &[u8]) {
        // SAFETY: as for `read`; the instruction reads exactly the slice's bytes.
        unsafe {
            asm!(
                "rep outsb",
                in("dx") port as u16,
                inout("rcx") bytes.len() => _,
                inout("rsi") bytes.as_ptr() => _,
                options(readonly, nostack),
            );
        }
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        // Giving a right back cannot fail where taking it succeeded.
        let _ = set_level(0);
        IS_OPEN.set(false);
    }
}

fn set_level(level: libc::c_int) -> io::Result<()> {
    // SAFETY: the call takes a plain number.
    super::super::check(unsafe { libc::iopl(level) })?;
    Ok(())
}

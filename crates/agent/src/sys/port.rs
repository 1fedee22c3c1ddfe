// SPDX-License-Identifier: MIT OR Apache-2.0
//! The x86 input and output ports of QEMU's devices: how a guest reaches its bench without a
//! driver.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;

/// The ports of the devices that a guest of the virtual bench uses. None of these devices
/// writes to memory by what it is told through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Port {
    /// `isa-debugcon`: each byte written is in the host's file when the instruction ends.
    DebugConsole = 0xE9,
    /// `ib700` (`hw/watchdog/wdt_ib700.c`): a write stops the watchdog.
    WatchdogStop = 0x441,
    /// `ib700`: a write sets the watchdog going.
    WatchdogStart = 0x443,
    /// `fw_cfg` (`docs/specs/fw_cfg.rst`): selects an item.
    FwCfgSelector = 0x510,
    /// `fw_cfg`: the item's next byte.
    FwCfgData = 0x511,
}

thread_local! {
    static IS_OPEN: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread's right to use ports, given back when dropped.
///
/// It is held for as short as possible: the kernel carries the permission bitmap along at
/// each context switch of the thread that has it, which would lengthen what is measured.
#[derive(Debug)]
pub struct Ports {
    /// `iopl` is a thread's: no other thread may use the ports by this value.
    thread_bound: PhantomData<*const ()>,
}

impl Ports {
    /// Asks the kernel for the ports. Needs `CAP_SYS_RAWIO` and a kernel with
    /// `CONFIG_X86_IOPL_IOPERM`; an error where the thread has them already, because the
    /// first of two to be dropped would take them from the other.
    pub fn open() -> io::Result<Self> {
        if IS_OPEN.get() {
            return Err(io::Error::other("this thread has the ports already"));
        }
        x86::set_level(3)?;
        IS_OPEN.set(true);
        Ok(Self {
            thread_bound: PhantomData,
        })
    }

    /// Reads one byte.
    pub fn read(&self, port: Port) -> u8 {
        // SAFETY: `self` exists only in the thread to which the kernel has granted the ports.
        unsafe { x86::read_byte(port as u16) }
    }

    /// Reads bytes one after the other from the same port.
    pub fn read_all(&self, port: Port, bytes: &mut [u8]) {
        bytes.fill_with(|| self.read(port));
    }

    /// Writes one byte.
    pub fn write(&self, port: Port, value: u8) {
        self.write_all(port, &[value]);
    }

    /// Writes two bytes at once.
    pub fn write_u16(&self, port: Port, value: u16) {
        // SAFETY: as for `read`.
        unsafe { x86::write_word(port as u16, value) };
    }

    /// Writes bytes one after the other to the same port.
    pub fn write_all(&self, port: Port, bytes: &[u8]) {
        // SAFETY: as for `read`.
        unsafe { x86::write_string(port as u16, bytes) };
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        // Giving a right back cannot fail where taking it succeeded.
        let _ = x86::set_level(0);
        IS_OPEN.set(false);
    }
}

/// The instructions. Those that are unsafe need the calling thread to have the ports, and a
/// port whose device does not write to memory.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::io;

    pub fn set_level(level: libc::c_int) -> io::Result<()> {
        // SAFETY: the call takes a plain number.
        super::super::check(unsafe { libc::iopl(level) })?;
        Ok(())
    }

    pub unsafe fn read_byte(port: u16) -> u8 {
        let value: u8;
        // SAFETY: by the caller's promise.
        unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack)) };
        value
    }

    pub unsafe fn write_word(port: u16, value: u16) {
        // SAFETY: by the caller's promise.
        unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack)) };
    }

    pub unsafe fn write_string(port: u16, bytes: &[u8]) {
        // SAFETY: by the caller's promise; the instruction reads exactly the slice's bytes.
        unsafe {
            asm!(
                "rep outsb",
                in("dx") port,
                inout("rcx") bytes.len() => _,
                inout("rsi") bytes.as_ptr() => _,
                options(readonly, nostack),
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    use std::io;

    pub fn set_level(_level: libc::c_int) -> io::Result<()> {
        let text = "only x86 has input and output ports";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }

    pub unsafe fn read_byte(_port: u16) -> u8 {
        unreachable!("ports cannot be opened here")
    }

    pub unsafe fn write_word(_port: u16, _value: u16) {
        unreachable!("ports cannot be opened here")
    }

    pub unsafe fn write_string(_port: u16, _bytes: &[u8]) {
        unreachable!("ports cannot be opened here")
    }
}

//! The x86 input and output ports: how a guest reaches its bench without a driver.

use std::io;

/// The right to use all ports, given back when dropped.
///
/// It is held for as short as possible: the kernel carries the permission bitmap along at
/// each context switch of the thread that has it, which would lengthen what is measured.
#[derive(Debug)]
pub struct Ports(());

impl Ports {
    /// Asks the kernel for the ports. Needs `CAP_SYS_RAWIO` and a kernel with
    /// `CONFIG_X86_IOPL_IOPERM`.
    pub fn open() -> io::Result<Self> {
        set_level(3)?;
        Ok(Self(()))
    }

    /// Reads one byte.
    pub fn read(&self, port: u16) -> u8 {
        read_byte(port)
    }

    /// Reads bytes one after the other from the same port.
    pub fn read_all(&self, port: u16, bytes: &mut [u8]) {
        bytes.fill_with(|| read_byte(port));
    }

    /// Writes one byte.
    pub fn write(&self, port: u16, value: u8) {
        write_byte(port, value);
    }

    /// Writes two bytes at once.
    pub fn write_u16(&self, port: u16, value: u16) {
        write_word(port, value);
    }

    /// Writes bytes one after the other to the same port.
    pub fn write_all(&self, port: u16, bytes: &[u8]) {
        write_string(port, bytes);
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        // Giving a right back cannot fail where taking it succeeded.
        let _ = set_level(0);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::io;

    pub fn set_level(level: libc::c_int) -> io::Result<()> {
        // SAFETY: the call takes a plain number.
        super::super::check(unsafe { libc::iopl(level) })?;
        Ok(())
    }

    pub fn read_byte(port: u16) -> u8 {
        let value: u8;
        // SAFETY: only `Ports` calls this, which exists only where the kernel has granted
        // the ports. Its users address QEMU's fw_cfg, debug console and watchdog devices,
        // which do not write to memory.
        unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack)) };
        value
    }

    pub fn write_byte(port: u16, value: u8) {
        // SAFETY: as for `read_byte`.
        unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack)) };
    }

    pub fn write_word(port: u16, value: u16) {
        // SAFETY: as for `read_byte`.
        unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack)) };
    }

    pub fn write_string(port: u16, bytes: &[u8]) {
        // SAFETY: as for `read_byte`; the instruction reads exactly the slice's bytes.
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
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "only x86 has input and output ports",
        ))
    }

    pub fn read_byte(_port: u16) -> u8 {
        unreachable!("ports cannot be opened here")
    }

    pub fn write_byte(_port: u16, _value: u8) {
        unreachable!("ports cannot be opened here")
    }

    pub fn write_word(_port: u16, _value: u16) {
        unreachable!("ports cannot be opened here")
    }

    pub fn write_string(_port: u16, _bytes: &[u8]) {
        unreachable!("ports cannot be opened here")
    }
}

use x86::{read_byte, set_level, write_byte, write_string, write_word};

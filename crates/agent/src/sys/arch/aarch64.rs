// SPDX-License-Identifier: MIT OR Apache-2.0
//! arm64: its instructions, and the devices of QEMU's machine `virt`, by which a guest reaches
//! its bench: two on the PCI bus, by files of sysfs, and `fw_cfg` by `/dev/mem`.

use std::arch::asm;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The reason why a program is not told that it was interrupted.
pub const NOT_TOLD: &str = "on an arm64 board a program does not learn of each interruption: an \
                            exclusive store may also fail for another reason";

/// Handlers of interrupts of which each CPU has its own. An older GIC has no name in sysfs.
pub const OF_EACH_CPU: &[&str] = &["IPI", "arch_timer"];

/// An instruction that does nothing and has a number of its own: `movz xzr, #0x50KK, lsl #48`.
#[inline]
pub fn mark<const KIND: u8>() {
    // SAFETY: what is moved to the zero register is dropped. What is behind it may rely on what
    // is before it being done: hence no `nomem`.
    unsafe {
        asm!(
            "movz xzr, #{number}, lsl #48",
            number = const 0x5000 + KIND as u32,
            options(nostack, preserves_flags),
        );
    }
}

/// Takes a turn of an idle emulated CPU: some 250 instructions, then `yield`.
#[inline]
pub fn turn() {
    // SAFETY: `nop` and `yield` do nothing.
    unsafe {
        asm!(
            ".rept 250",
            "nop",
            ".endr",
            "yield",
            options(nomem, nostack, preserves_flags)
        );
    }
}

thread_local! {
    /// What the exclusive monitor watches. Nobody else writes to it.
    static WATCHED: Cell<u64> = const { Cell::new(0) };
}

/// Limit, in steps of a nanosecond, that tells an interruption: in a guest, `stxr` and the next
/// `ldxr` take two of the counter's steps, and an interruption between them takes hundreds.
const INTERRUPTED: u64 = 32;

/// Takes the exclusive monitor. `eret` clears it (Arm Architecture Reference Manual, exclusive
/// monitors), so that an exclusive store fails after an interruption.
#[inline]
pub fn arm_interruption() {
    let word = WATCHED.with(Cell::as_ptr);
    // SAFETY: reads the thread's own word.
    unsafe { asm!("ldxr {0}, [{1}]", out(reg) _, in(reg) word, options(nostack, preserves_flags)) };
}

/// Returns true if the monitor was cleared. Takes it again; the counter shows an interruption
/// between the store and that. These readings go to the link register, by which a watcher of
/// instructions distinguishes them from readings of the clock.
#[inline]
pub fn was_interrupted() -> bool {
    let word = WATCHED.with(Cell::as_ptr);
    let (failed, took): (u64, u64);
    // SAFETY: writes to the thread's own word.
    unsafe {
        asm!(
            "mrs x30, cntvct_el0",
            "mov {took}, x30",
            "stxr {failed:w}, xzr, [{word}]",
            "ldxr {value}, [{word}]",
            "mrs x30, cntvct_el0",
            "sub {took}, x30, {took}",
            took = out(reg) took,
            failed = out(reg) failed,
            value = out(reg) _,
            word = in(reg) word,
            out("x30") _,
            options(nostack, preserves_flags)
        );
    }
    failed as u32 != 0 || took > INTERRUPTED
}

/// Returns true if a store fails for that reason only: in guests, where QEMU emulates the monitor.
/// A processor may let it fail at any time.
pub fn tells_interruptions() -> bool {
    std::process::id() == 1
}

/// Returns `None`: only x86 has a time stamp counter. The kernel's clock counts by `CNTVCT_EL0`.
#[inline]
pub fn tsc() -> Option<u64> {
    None
}

/// QEMU's `i6300esb` (`hw/watchdog/wdt_i6300esb.c`), where the bench puts it.
const WATCHDOG: Pci = Pci {
    address: "0000:00:02.0",
    id: 0x25ab_8086,
};

/// Its configuration (16 bits): it counts in steps of 960 ns, and its first stage ends without
/// an interrupt. Both of its stages are as long as they can be, which is 2.013 s in all.
const WATCHDOG_CONFIG: (u64, [u8; 2]) = (0x60, [0x07, 0x00]);
/// The register that starts (bit 1) and stops it.
const WATCHDOG_LOCK: u64 = 0x68;

/// QEMU's `pci-serial`, a 16550. Each byte is in the host's file when the instruction that writes
/// it ends. It raises no interrupt, since nobody opens it as a terminal.
const STREAM: Pci = Pci {
    address: "0000:00:03.0",
    id: 0x0002_1b36,
};
/// Its registers: the byte to send, and the status of the line.
const TRANSMIT: u64 = 0;
const LINE_STATUS: u64 = 5;
/// Bits of the latter: everything that was written is sent.
const SENT: u8 = 0x60;

/// A device on the PCI bus.
struct Pci {
    /// Its address in sysfs.
    address: &'static str,
    /// The first four bytes of its configuration: vendor and device.
    id: u32,
}

impl Pci {
    /// Opens one of its files in sysfs; returns an error if another device, or none, is there.
    fn open(&self, file: &str) -> io::Result<File> {
        let mut found = [0; 4];
        self.file("config", false)?.read_exact_at(&mut found, 0)?;
        if u32::from_le_bytes(found) != self.id {
            let text = format!(
                "expected PCI device {:08x} at {}, found {:08x}",
                self.id,
                self.address,
                u32::from_le_bytes(found)
            );
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        self.file(file, true)
    }

    fn file(&self, file: &str, write: bool) -> io::Result<File> {
        let path = format!("/sys/bus/pci/devices/{}/{file}", self.address);
        let opened = File::options().read(true).write(write).open(&path);
        opened.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
    }
}

/// Sends bytes to the bench. There is no interrupt and no buffer, so nothing of the host's time
/// leaks into the guest. Needs root, and a kernel with PCI.
pub fn send(bytes: &[u8]) -> io::Result<()> {
    let registers = STREAM.open("resource0")?;
    bytes
        .iter()
        .try_for_each(|byte| registers.write_all_at(&[*byte], TRANSMIT))
}

/// Returns an error if there is no bench to send to.
pub fn find_bench() -> io::Result<()> {
    // A driver of the kernel has switched it on; where there is none nobody has.
    match STREAM.open("enable")?.write_all_at(b"1", 0) {
        Err(error) if error.kind() != io::ErrorKind::ResourceBusy => return Err(error),
        _ => {}
    }
    let mut status = [0];
    STREAM
        .open("resource0")?
        .read_exact_at(&mut status, LINE_STATUS)?;
    if status[0] & SENT != SENT {
        let text = format!("the serial port's line status is {:#x}", status[0]);
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    Ok(())
}

/// Makes the watchdog stop the machine in 2.013 s.
pub fn start_watchdog() -> io::Result<()> {
    let config = WATCHDOG.open("config")?;
    let (at, value) = WATCHDOG_CONFIG;
    config.write_all_at(&value, at)?;
    config.write_all_at(&[0x02], WATCHDOG_LOCK)
}

/// Stops the watchdog.
pub fn stop_watchdog() -> io::Result<()> {
    WATCHDOG
        .open("config")?
        .write_all_at(&[0x00], WATCHDOG_LOCK)
}

/// QEMU's `fw_cfg` (`docs/specs/fw_cfg.rst`), mapped from its place in machine `virt`
/// (`hw/arm/virt.c`).
#[derive(Debug)]
pub struct FwCfg(NonNull<u8>);

impl FwCfg {
    const ADDRESS: u64 = 0x0902_0000;
    const LENGTH: usize = 4096;
    /// The offset of the selector register: big-endian, 16 bits.
    const SELECTOR: usize = 8;

    /// Maps the device. Needs `CAP_SYS_RAWIO` and a kernel with `/dev/mem`.
    pub fn open() -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let memory = File::options()
            .read(true)
            .write(true)
            .custom_flags(libc::O_SYNC)
            .open("/dev/mem")?;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice, of a device of which no
        // register leads to memory but that of DMA, which nothing here writes to.
        let mapped = unsafe {
            mmap(
                null_mut(),
                Self::LENGTH,
                access,
                flags,
                &memory,
                Self::ADDRESS,
            )?
        };
        NonNull::new(mapped.cast())
            .map(Self)
            .ok_or_else(|| io::Error::other("fw_cfg is mapped to address 0"))
    }

    /// Selects an item by its key.
    pub fn select(&self, key: u16) {
        // SAFETY: the page is mapped as long as `self` is there, and the register is in it.
        unsafe {
            let selector = self.0.as_ptr().add(Self::SELECTOR).cast::<u16>();
            selector.write_volatile(key.to_be());
        }
    }

    /// Reads the item's next bytes.
    pub fn read(&self, bytes: &mut [u8]) {
        // SAFETY: as for `select`; the register is the first.
        bytes.fill_with(|| unsafe { self.0.as_ptr().read_volatile() });
    }
}

impl Drop for FwCfg {
    fn drop(&mut self) {
        // SAFETY: nobody has the page but `self`. Unmapping what is mapped cannot fail.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), Self::LENGTH) };
    }
}

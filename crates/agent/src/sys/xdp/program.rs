// SPDX-License-Identifier: MIT OR Apache-2.0
//! The BPF program that redirects frames of one type to a socket, and how the kernel gets it.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use libc::c_int;

use super::{HEADER, Mode, QUEUE, TYPE_AT, at};

/// An instruction of BPF (the kernel's `struct bpf_insn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Instruction {
    code: u8,
    /// The destination in the lower four bits, the source in the upper ones.
    registers: u8,
    offset: i16,
    immediate: i32,
}

// The registers: result, first arguments, which a call overwrites; a program begins with its
// context in the first argument.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;

/// The program's verdict that leaves a frame to the kernel.
const XDP_PASS: i32 = 2;
/// The kernel's function `bpf_redirect_map`: map, key, verdict if the map has no such key.
const REDIRECT_MAP: i32 = 51;
// The places in the program's context (`struct xdp_md`).
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE_INDEX: i16 = 16;

const fn instruction(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    let registers = from << 4 | to;
    Instruction {
        code,
        registers,
        offset,
        immediate,
    }
}

/// Loads 32 bits from this place behind an address.
const fn load_word(to: u8, from: u8, place: i16) -> Instruction {
    instruction(0x61, to, from, place, 0)
}

/// Loads 16 bits from this place behind an address.
const fn load_half(to: u8, from: u8, place: i16) -> Instruction {
    instruction(0x69, to, from, place, 0)
}

const fn copy(to: u8, from: u8) -> Instruction {
    instruction(0xbf, to, from, 0, 0)
}

const fn assign(to: u8, number: i32) -> Instruction {
    instruction(0xb7, to, 0, 0, number)
}

const fn add(to: u8, number: i32) -> Instruction {
    instruction(0x07, to, 0, 0, number)
}

/// Skips so many instructions if one register is greater than another.
const fn skip_if_greater(one: u8, other: u8, count: i16) -> Instruction {
    instruction(0x2d, one, other, count, 0)
}

/// Skips so many instructions if a register is not this number.
const fn skip_unless(register: u8, number: i32, count: i16) -> Instruction {
    instruction(0x55, register, 0, count, number)
}

/// Loads the address of the map behind a descriptor: the first half of it, and the second.
const fn load_map(to: u8, map: RawFd) -> [Instruction; 2] {
    const FROM_DESCRIPTOR: u8 = 1;
    [
        instruction(0x18, to, FROM_DESCRIPTOR, 0, map),
        instruction(0, 0, 0, 0, 0),
    ]
}

const fn call(function: i32) -> Instruction {
    instruction(0x85, 0, 0, 0, function)
}

const fn exit() -> Instruction {
    instruction(0x95, 0, 0, 0, 0)
}

/// Returns the program that redirects each frame of a type to the socket that the map has for its
/// queue, and leaves all others to the kernel.
pub(super) fn program(map: RawFd, ethertype: u16) -> [Instruction; 15] {
    let ethertype = i32::from(ethertype.to_be());
    let [map, rest_of_map] = load_map(R1, map);
    [
        load_word(R2, R1, DATA_END),
        load_word(R3, R1, DATA),
        copy(R4, R3),
        add(R4, HEADER as i32),
        skip_if_greater(R4, R2, 8),
        load_half(R4, R3, TYPE_AT),
        skip_unless(R4, ethertype, 6),
        load_word(R2, R1, RX_QUEUE_INDEX),
        map,
        rest_of_map,
        assign(R3, XDP_PASS),
        call(REDIRECT_MAP),
        exit(),
        assign(R0, XDP_PASS),
        exit(),
    ]
}

/// Calls bpf(2), and returns its result.
///
/// # Safety
/// The attributes must begin as the kernel's `union bpf_attr` does for this command, and the
/// addresses in it must be those of live memory of the size that the command expects.
unsafe fn bpf<T>(command: c_int, attributes: &T) -> io::Result<c_int> {
    let (size, attributes) = (mem::size_of::<T>(), &raw const *attributes);
    // SAFETY: these attributes live, and the caller vouches for the rest.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size) };
    super::super::check(result as c_int)
}

/// Creates the map from queues to sockets.
pub(super) fn create_map() -> io::Result<OwnedFd> {
    const BPF_MAP_CREATE: c_int = 0;
    const BPF_MAP_TYPE_XSKMAP: u32 = 17;
    #[repr(C)]
    struct Attributes {
        map_type: u32,
        key_size: u32,
        value_size: u32,
        max_entries: u32,
    }
    let attributes = Attributes {
        map_type: BPF_MAP_TYPE_XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: 64,
    };
    // SAFETY: these attributes have no address, and what the call returns belongs to nobody else.
    unsafe {
        let map = bpf(BPF_MAP_CREATE, &attributes);
        Ok(OwnedFd::from_raw_fd(at("BPF_MAP_CREATE", map)?))
    }
}

/// Makes a socket the one that the map has for its queue.
pub(super) fn enter(map: &OwnedFd, socket: &OwnedFd) -> io::Result<()> {
    const BPF_MAP_UPDATE_ELEM: c_int = 2;
    #[repr(C)]
    struct Attributes {
        map_fd: u32,
        padding: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let (key, value) = (QUEUE, socket.as_raw_fd() as u32);
    let attributes = Attributes {
        map_fd: map.as_raw_fd() as u32,
        padding: 0,
        key: &raw const key as u64,
        value: &raw const value as u64,
        flags: 0,
    };
    // SAFETY: key and value live, and have the sizes that `create_map` gives.
    let result = unsafe { bpf(BPF_MAP_UPDATE_ELEM, &attributes) };
    at("BPF_MAP_UPDATE_ELEM", result).map(drop)
}

/// Loads a program, which the kernel checks.
pub(super) fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    const BPF_PROG_LOAD: c_int = 5;
    const BPF_PROG_TYPE_XDP: u32 = 6;
    #[repr(C)]
    struct Attributes {
        prog_type: u32,
        insn_cnt: u32,
        insns: u64,
        license: u64,
    }
    let attributes = Attributes {
        prog_type: BPF_PROG_TYPE_XDP,
        insn_cnt: program.len() as u32,
        insns: program.as_ptr() as u64,
        // None of the kernel's functions that it calls is for GPL programs only.
        license: c"MIT".as_ptr() as u64,
    };
    // SAFETY: instructions and licence live; a zero ends the licence. What the call returns belongs
    // to nobody else.
    unsafe {
        let program = bpf(BPF_PROG_LOAD, &attributes);
        Ok(OwnedFd::from_raw_fd(at("BPF_PROG_LOAD", program)?))
    }
}

/// Attaches a program to an interface as long as the descriptor that it returns is open: natively
/// if the driver can.
pub(super) fn attach(program: &OwnedFd, index: i32) -> io::Result<(OwnedFd, Mode)> {
    let native = match attach_so(program, index, Mode::Native) {
        Ok(link) => return Ok((link, Mode::Native)),
        Err(error) => error,
    };
    // Drivers have many errors for what they cannot do. Any other obstacle is also one here.
    match attach_so(program, index, Mode::Generic) {
        Ok(link) => Ok((link, Mode::Generic)),
        Err(error) => at(
            &format!("BPF_LINK_CREATE: native: {native}; generic"),
            Err(error),
        ),
    }
}

/// Attaches a program in this mode.
fn attach_so(program: &OwnedFd, index: i32, mode: Mode) -> io::Result<OwnedFd> {
    const BPF_LINK_CREATE: c_int = 28;
    const BPF_XDP: u32 = 37;
    const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
    const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
    #[repr(C)]
    struct Attributes {
        prog_fd: u32,
        target_ifindex: u32,
        attach_type: u32,
        flags: u32,
    }
    let attributes = Attributes {
        prog_fd: program.as_raw_fd() as u32,
        target_ifindex: index as u32,
        attach_type: BPF_XDP,
        flags: match mode {
            Mode::Native => XDP_FLAGS_DRV_MODE,
            Mode::Generic => XDP_FLAGS_SKB_MODE,
        },
    };
    // SAFETY: these attributes have no address, and what the call returns belongs to nobody else.
    unsafe { Ok(OwnedFd::from_raw_fd(bpf(BPF_LINK_CREATE, &attributes)?)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_program_compares_the_type_in_network_order_and_jumps_to_its_last_verdict() {
        let program = program(7, 0x88b5);
        let bytes = |place: usize| {
            let Instruction {
                code, registers, ..
            } = program[place];
            let [low, high] = program[place].offset.to_le_bytes();
            let [a, b, c, d] = program[place].immediate.to_le_bytes();
            [code, registers, low, high, a, b, c, d]
        };
        // `strace -v` reads them so.
        assert_eq!(bytes(0), [0x61, 0x12, 4, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(4), [0x2d, 0x24, 8, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(5), [0x69, 0x34, 12, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(6), [0x55, 0x04, 6, 0, 0x88, 0xb5, 0, 0]);
        assert_eq!(bytes(8), [0x18, 0x11, 0, 0, 7, 0, 0, 0]);
        assert_eq!(bytes(9), [0; 8]);
        assert_eq!(bytes(11), [0x85, 0, 0, 0, 51, 0, 0, 0]);
        assert_eq!(mem::size_of_val(&program), 15 * 8);
        for jump in [4, 6] {
            let to = jump + 1 + program[jump].offset as usize;
            assert_eq!(program[to..], [assign(R0, XDP_PASS), exit()]);
        }
    }
}

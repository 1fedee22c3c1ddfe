// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels, modules, archives, packages.

use std::path::Path;

use punctual_kernels::fuzzing::{check, choose_in, judge};
use punctual_kernels::initramfs::Initramfs;
use punctual_kernels::{elf, initramfs};

use super::{text, texts};
use crate::Target;

/// What `apt-cache` prints: the names, an empty line, the stanzas.
pub const APT: Target = Target {
    name: "apt",
    seeds: || {
        texts(&["linux-image-6.12.99+deb12-amd64-unsigned - Linux 6.12\n\
            linux-image-6.12.117+deb12-amd64-unsigned - Linux 6.12\n\
            \n\
            Package: linux-image-6.12.99+deb12-amd64-unsigned\n\
            Version: 6.12.99-1~deb12u1\nFilename: pool/a.deb\nSize: 1\nSHA256: 99AA\n\n\
            Package: linux-image-6.12.117+deb12-amd64-unsigned\n\
            Version: 1:6.12.117-1~deb12u1\nFilename: pool/b.deb\nSize: 107152768\nSHA256: f3ce\n"])
    },
    run: |bytes| {
        let text = text(bytes);
        let (search, show) = text.split_once("\n\n").unwrap_or((&text, ""));
        let _ = choose_in(search, show, "k");
        let _ = choose_in(search, show, "k@6.12.99");
    },
};

/// Programs and libraries.
pub const ELF: Target = Target {
    name: "elf",
    seeds: || vec![program()],
    run: |bytes| {
        let code = elf::code(bytes).unwrap_or_default();
        let taken: usize = code.iter().map(|code| code.bytes.len()).sum();
        // Each of the headers may name the whole file.
        assert!(taken <= bytes.len() * (bytes.len() / 56 + 1));
    },
};

/// The first sectors of a kernel's image.
pub const IMAGE: Target = Target {
    name: "image",
    seeds: || {
        vec![
            image(),
            arm64_image(),
            b"\x7fELF".to_vec(),
            b"\x1f\x8b".to_vec(),
        ]
    },
    run: |bytes| {
        let _ = judge(Path::new("vmlinuz"), bytes, bytes.len() as u64);
        let _ = judge(Path::new("vmlinuz"), bytes, 1 << 24);
    },
};

/// The guest's file system.
pub const INITRAMFS: Target = Target {
    name: "initramfs",
    seeds: || {
        let mut guest = Initramfs::new();
        guest.file("/init", 0o755, program()).expect("a file");
        guest
            .file("/etc/hosts", 0o644, "127.0.0.1")
            .expect("a file");
        vec![guest.finish().expect("an archive")]
    },
    run: |bytes| {
        if let Ok(files) = initramfs::files(bytes) {
            let taken: usize = files.iter().map(|(_, file)| file.len()).sum();
            assert!(taken <= bytes.len());
        }
    },
};

/// Kernel modules, packed and not. The first byte of an input says how it is packed.
pub const MODULE: Target = Target {
    name: "module",
    seeds: || {
        // `printf 'vermagic=6.12 SMP' | xz`, `gzip`, `zstd`.
        let packed: [&[u8]; 3] = [
            b"\x01\xfd7zXZ\0\0\x04\xe6\xd6\xb4F\x02\0!\x01\x16\0\0\0t/\xe5\xa3\x01\0\x10vermagic=6.12 SMP\0\0\0",
            b"\x02\x1f\x8b\x08\0\0\0\0\0\0\x03+K-\xcaML\xcf\x4c\xb65\xd33\x34R\x08\xf6\r\0",
            b"\x03\x28\xb5\x2f\xfd\x04\x58\x89\0\0vermagic=6.12 SMP",
        ];
        let mut seeds: Vec<Vec<u8>> = packed.map(<[u8]>::to_vec).into();
        seeds.push([&[0], &program()[..]].concat());
        seeds
    },
    run: |bytes| {
        let names = ["m.ko", "m.ko.xz", "m.ko.gz", "m.ko.zst"];
        if let Some((first, packed)) = bytes.split_first() {
            let name = names[usize::from(*first) % names.len()];
            let _ = check(Path::new(name), packed.to_vec(), "6.12");
        }
    },
};

/// A program with one executable segment of 16 bytes.
fn program() -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [2_u16, 62] {
        bytes.extend(half.to_le_bytes());
    }
    bytes.extend(1_u32.to_le_bytes());
    for word in [0x0040_0000_u64, 64, 0] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 64, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    for half in [1_u32, 5] {
        bytes.extend(half.to_le_bytes());
    }
    for word in [120_u64, 0x0040_0000, 0x0040_0000, 16, 16, 4096] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([0x90; 16]);
    bytes
}

/// The setup header of a bzImage (`Documentation/arch/x86/boot.rst`), and a banner.
fn image() -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
    put(0x1f1, &[4]);
    put(0x1f4, &64_u32.to_le_bytes());
    put(0x1fe, &[0x55, 0xaa]);
    put(0x200, b"\xebfHdrS\x0f\x02");
    put(0x20e, &0x400_u16.to_le_bytes());
    put(0x211, &[1]);
    put(0x236, &0x7f_u16.to_le_bytes());
    put(0x600, b"6.12.1-test (a@b) #1 SMP PREEMPT_DYNAMIC\0");
    bytes
}

/// An arm64 kernel: a header, one section, a version.
fn arm64_image() -> Vec<u8> {
    let mut bytes = vec![0; 2048];
    let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
    put(0, b"MZ");
    put(24, &[0x0a]);
    put(56, b"ARM\x64");
    put(0x3c, &64_u32.to_le_bytes());
    put(64, b"PE\0\0");
    put(70, &[1]);
    put(104, &1_984_u32.to_le_bytes());
    put(108, &64_u32.to_le_bytes());
    put(1024, b"Linux version 6.12.1-test (a@b) #1 SMP PREEMPT_RT\n");
    bytes
}

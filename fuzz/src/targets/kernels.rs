// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels, modules, archives, packages.

use std::path::Path;

use punctual_kernels::fuzzing::{check, choose_in, judge, why_refused};
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
        let newest = choose_in(search, show, "k");
        let pinned = choose_in(search, show, "k@6.12.99");
        newest.is_ok() || pinned.is_ok()
    },
};

/// A stranger's `Kconfig` file, an empty line with a full stop, and a `.config`.
pub const KCONFIG: Target = Target {
    name: "kconfig",
    seeds: || {
        texts(&[
            "menu \"Timers\"\n\tdepends on GENERIC_CLOCKEVENTS && !S390\n\nchoice\n\
            \tprompt \"Timer tick\"\n\tdefault NO_HZ_IDLE\n\nconfig NO_HZ_FULL\n\
            \tbool \"Full dynticks\"\n\tdepends on SMP\n\tselect NO_HZ_COMMON\n\thelp\n\
            \t  Adaptively stop it.\n\nendchoice\nendmenu\nconfig RCU_NOCB_CPU\n\tbool\n\
            \tselect NO_HZ_FULL if SMP\n.\nCONFIG_SMP=y\n# CONFIG_NO_HZ_FULL is not set\n",
        ])
    },
    run: |bytes| {
        let text = text(bytes);
        let (kconfig, config) = text.split_once("\n.\n").unwrap_or((&text, ""));
        let setting = "NO_HZ_FULL=y".parse().expect("a setting");
        let why = why_refused(kconfig, config, &setting);
        assert!(!why.is_empty());
        !why.starts_with("this kernel does not know")
    },
};

/// Programs and libraries.
pub const ELF: Target = Target {
    name: "elf",
    seeds: || vec![program()],
    run: |bytes| {
        let code = elf::code(bytes);
        let parts = code.iter().flatten();
        let taken: usize = parts.map(|code| code.bytes.len()).sum();
        // Each of the headers may name the whole file.
        assert!(taken <= bytes.len() * (bytes.len() / 56 + 1));
        taken > 0
    },
};

/// The first sectors of a kernel's image.
pub const IMAGE: Target = Target {
    name: "image",
    seeds: || vec![image(), arm64_image()],
    run: |bytes| {
        let _ = judge(Path::new("vmlinuz"), bytes, bytes.len() as u64);
        judge(Path::new("vmlinuz"), bytes, 1 << 24).is_ok()
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
        let Ok(files) = initramfs::files(bytes) else {
            return false;
        };
        let taken: usize = files.iter().map(|(_, file)| file.len()).sum();
        assert!(taken <= bytes.len());
        true
    },
};

/// Kernel modules, packed and not. The first byte of an input says how it is packed.
pub const MODULE: Target = Target {
    name: "module",
    seeds: || {
        let packed: [&[u8]; 4] = [
            include_bytes!("../../seeds/module.ko"),
            include_bytes!("../../seeds/module.ko.xz"),
            include_bytes!("../../seeds/module.ko.gz"),
            include_bytes!("../../seeds/module.ko.zst"),
        ];
        let numbered = (0..).zip(packed);
        numbered
            .map(|(kind, file)| [&[kind], file].concat())
            .collect()
    },
    run: |bytes| {
        let names = ["m.ko", "m.ko.xz", "m.ko.gz", "m.ko.zst"];
        let Some((first, packed)) = bytes.split_first() else {
            return false;
        };
        let name = names[usize::from(*first) % names.len()];
        check(Path::new(name), packed.to_vec(), "6.12").is_ok()
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

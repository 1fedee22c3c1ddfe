// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel modules that a user adds to a kernel.
//!
//! The guest loads them as they are, so they are unpacked here, once. Here it is also checked that
//! the kernel will accept them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use object::{Architecture, Object as _, ObjectKind, ObjectSection as _};

use crate::packed::{Packing, unpack};

/// The greatest size of a module: Debian's largest has 40 MiB with its symbols.
const SIZE_MAX: u64 = 256 << 20;

/// The reason why a module cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// The file cannot be read.
    #[error("{}: expected a kernel module, found: {err}", .0.display(), err = .1)]
    Unreadable(PathBuf, io::Error),
    /// The file name does not end like that of a module.
    #[error("{}: expected a file called NAME.ko, NAME.ko.xz, NAME.ko.gz or NAME.ko.zst: rename it, or name the module that was built", .0.display())]
    Name(PathBuf),
    /// The file cannot be unpacked.
    #[error("{}: expected a compressed kernel module, found damaged data ({err}): make the copy again", .0.display(), err = .1)]
    Damaged(PathBuf, io::Error),
    /// The file is not a kernel module.
    #[error("{}: expected an x86-64 kernel module (ELF, relocatable), found {found}: take the .ko file that the kernel's build made", .path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// The kind of file that was found.
        found: String,
    },
    /// The module belongs to another kernel.
    #[error("{}: expected a module built for {expected}, found one for {found}: build it against this kernel's headers", .path.display())]
    OtherRelease {
        /// The file.
        path: PathBuf,
        /// The kernel's release.
        expected: String,
        /// The release for which the module was built.
        found: String,
    },
}

/// A module that is ready for the guest.
#[derive(Debug)]
pub struct Module {
    /// The name, such as `stall.ko`.
    pub file_name: String,
    /// The file, unpacked.
    pub bytes: Vec<u8>,
}

/// Reads, unpacks and checks a module.
pub(super) fn read(path: &Path, release: &str) -> Result<Module, ModuleError> {
    let packed = fs::read(path).map_err(|error| ModuleError::Unreadable(path.to_owned(), error))?;
    check(path, packed, release)
}

/// Unpacks and checks the contents of a module's file.
pub fn check(path: &Path, packed: Vec<u8>, release: &str) -> Result<Module, ModuleError> {
    let (file_name, packing) =
        split_name(path).ok_or_else(|| ModuleError::Name(path.to_owned()))?;
    let bytes = unpack(packed, packing, SIZE_MAX)
        .map_err(|error| ModuleError::Damaged(path.to_owned(), error))?;
    let built_for = release_of(&bytes).map_err(|found| ModuleError::Other {
        path: path.to_owned(),
        found,
    })?;
    if built_for != release {
        return Err(ModuleError::OtherRelease {
            path: path.to_owned(),
            expected: release.to_owned(),
            found: built_for,
        });
    }
    Ok(Module { file_name, bytes })
}

const ENDINGS: &[(&str, Packing)] = &[
    (".ko", Packing::None),
    (".ko.xz", Packing::Xz),
    (".ko.gz", Packing::Gzip),
    (".ko.zst", Packing::Zstd),
];

fn split_name(path: &Path) -> Option<(String, Packing)> {
    let name = path.file_name()?.to_str()?;
    ENDINGS.iter().find_map(|(ending, packing)| {
        let stem = name.strip_suffix(ending)?;
        (!stem.is_empty()).then(|| (format!("{stem}.ko"), *packing))
    })
}

/// The release in `vermagic`, which the kernel compares when it loads the module; the error says
/// what the file is instead.
fn release_of(bytes: &[u8]) -> Result<String, String> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err("no ELF file".to_owned());
    }
    let file =
        object::File::parse(bytes).map_err(|error| format!("a damaged ELF file ({error})"))?;
    if file.architecture() != Architecture::X86_64 {
        return Err(format!("an ELF file for {:?}", file.architecture()));
    }
    if file.kind() != ObjectKind::Relocatable {
        return Err("an ELF program or library".to_owned());
    }
    let section = file
        .section_by_name(".modinfo")
        .and_then(|section| section.data().ok())
        .ok_or("an object file without .modinfo")?;
    section
        .split(|byte| *byte == 0)
        .find_map(|field| field.strip_prefix(b"vermagic="))
        .and_then(|magic| magic.split(|byte| *byte == b' ').next())
        .map(|release| String::from_utf8_lossy(release).into_owned())
        .ok_or_else(|| "a module without vermagic".to_owned())
}

#[cfg(test)]
pub(super) mod synthetic {
    use object::write::{Object, StandardSegment};
    use object::{Architecture, BinaryFormat, Endianness, SectionKind};

    /// A module that contains nothing but its own description.
    pub(crate) fn module(modinfo: &[u8], architecture: Architecture) -> Vec<u8> {
        let mut object = Object::new(BinaryFormat::Elf, architecture, Endianness::Little);
        let segment = object.segment_name(StandardSegment::Data).to_vec();
        let section = object.add_section(segment, b".modinfo".to_vec(), SectionKind::ReadOnlyData);
        object.append_section_data(section, modinfo, 1);
        object.write().unwrap()
    }

    /// A module for one kernel.
    pub(crate) fn module_for(release: &str) -> Vec<u8> {
        let modinfo =
            format!("license=GPL\0name=stall\0vermagic={release} SMP preempt mod_unload \0");
        module(modinfo.as_bytes(), Architecture::X86_64)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::synthetic::{module, module_for};
    use super::*;

    fn read_bytes(name: &str, bytes: &[u8]) -> Result<Module, ModuleError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        read(&path, "6.12.1-test")
    }

    #[test]
    fn a_module_of_this_kernel_is_accepted() {
        let bytes = module_for("6.12.1-test");
        let module = read_bytes("stall.ko", &bytes).unwrap();
        assert_eq!(module.file_name, "stall.ko");
        assert_eq!(module.bytes, bytes);
    }

    /// Checks that packed modules are unpacked, for each packing program that the machine has.
    #[test]
    fn packed_modules_are_unpacked() {
        let bytes = module_for("6.12.1-test");
        for (program, ending) in [("xz", "xz"), ("gzip", "gz"), ("zstd", "zst")] {
            if !punctual_skip::program(program) {
                continue;
            }
            let packed = pack(program, &bytes).unwrap();
            let module = read_bytes(&format!("stall.ko.{ending}"), &packed).unwrap();
            assert_eq!(module.file_name, "stall.ko");
            assert_eq!(module.bytes, bytes);
            let half = &packed[..packed.len() / 2];
            let error = read_bytes(&format!("stall.ko.{ending}"), half).unwrap_err();
            assert!(matches!(error, ModuleError::Damaged(..)), "{error}");
        }
    }

    fn pack(program: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut child = Command::new(program)
            .arg("-c")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        child.stdin.take()?.write_all(bytes).ok()?;
        Some(child.wait_with_output().ok()?.stdout)
    }

    #[test]
    fn other_files_are_named() {
        let other = |bytes: &[u8]| read_bytes("stall.ko", bytes).unwrap_err().to_string();
        assert!(other(b"hello").contains("found no ELF file"));
        assert!(other(b"\x7fELF").contains("damaged ELF"));
        let arm = module(b"vermagic=6.12.1-test \0", Architecture::Aarch64);
        assert!(other(&arm).contains("an ELF file for Aarch64"));
        let silent = module(b"license=GPL\0", Architecture::X86_64);
        assert!(other(&silent).contains("without vermagic"));
        let program = fs::read("/proc/self/exe").unwrap();
        assert!(other(&program).contains("program or library"));
    }

    #[test]
    fn a_module_of_another_kernel_is_refused() {
        let error = read_bytes("stall.ko", &module_for("6.12.1-test2")).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("expected a module built for 6.12.1-test, found one for 6.12.1-test2")
        );
    }

    #[test]
    fn names_must_end_as_a_modules_name_does() {
        for name in ["stall", "stall.o", ".ko", "stall.ko.bz2"] {
            assert!(matches!(
                read_bytes(name, b"").unwrap_err(),
                ModuleError::Name(_)
            ));
        }
    }
}

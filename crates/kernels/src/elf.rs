// SPDX-License-Identifier: MIT OR Apache-2.0
//! The little that must be known about ELF files: what a program needs to be loaded, and where its
//! code is.

use object::Endianness;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use punctual_model::Architecture;

/// The files that a program or library needs to be loaded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The dynamic loader; a static program has none.
    pub(crate) interpreter: Option<String>,
    /// The names of the libraries it was linked with, in order.
    pub(crate) libraries: Vec<String>,
    /// Directories for these libraries and for those that they need in turn.
    pub(crate) rpath: Vec<String>,
    /// Directories for these libraries only.
    pub(crate) runpath: Vec<String>,
}

/// Reads what a program or library for this architecture needs; the error says in a few words what
/// the file is instead.
pub(crate) fn needs(bytes: &[u8], architecture: Architecture) -> Result<Needs, String> {
    if !bytes.starts_with(b"\x7fELF") {
        let script = if bytes.starts_with(b"#!") {
            "a script"
        } else {
            "no ELF file"
        };
        return Err(script.to_owned());
    }
    if bytes.get(4) != Some(&elf::ELFCLASS64.0) {
        return Err("a 32-bit ELF file".to_owned());
    }
    parse(bytes, architecture).map_err(|error| format!("a damaged ELF file ({error})"))?
}

/// Describes a program for another machine.
fn of_machine(machine: u16) -> String {
    let known = [
        (elf::EM_386, "i386"),
        (elf::EM_ARM, "32-bit ARM"),
        (elf::EM_X86_64, "x86-64"),
        (elf::EM_AARCH64, "arm64"),
        (elf::EM_RISCV, "RISC-V"),
    ];
    match known.iter().find(|(known, _)| known.0 == machine) {
        Some((_, name)) => format!("an ELF file for {name}"),
        None => format!("an ELF file for machine {machine}"),
    }
}

fn parse(bytes: &[u8], architecture: Architecture) -> object::read::Result<Result<Needs, String>> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let machine = header.e_machine(endian);
    let expected = match architecture {
        Architecture::Amd64 => elf::EM_X86_64,
        Architecture::Arm64 => elf::EM_AARCH64,
    };
    if machine != expected {
        return Ok(Err(of_machine(machine.0)));
    }
    let mut needs = Needs::default();
    for segment in header.program_headers(endian, bytes)? {
        if let Some(interpreter) = segment.interpreter(endian, bytes)? {
            needs.interpreter = Some(text(interpreter));
        }
    }
    let dynamic = header
        .sections(endian, bytes)?
        .dynamic_table(endian, bytes)?;
    for entry in &dynamic {
        match entry.tag {
            elf::DT_NEEDED => needs.libraries.push(text(dynamic.string(entry)?)),
            elf::DT_RPATH => needs.rpath = directories(dynamic.string(entry)?),
            elf::DT_RUNPATH => needs.runpath = directories(dynamic.string(entry)?),
            _ => {}
        }
    }
    // The dynamic loader ignores DT_RPATH where there is a DT_RUNPATH.
    if !needs.runpath.is_empty() {
        needs.rpath.clear();
    }
    Ok(Ok(needs))
}

/// An executable segment of a program or library for x86-64 or arm64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its address in memory; for movable code, relative to its beginning.
    pub address: u64,
    /// True if it may be at any address: in a library or a position-independent program.
    pub movable: bool,
    /// The instructions' bytes.
    pub bytes: Vec<u8>,
}

/// The executable segments of an x86-64 or arm64 program or library. `None` if the file is not one,
/// or if it says that a segment lies where the file has no bytes.
pub fn code(file: &[u8]) -> Option<Vec<Code>> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    if ![elf::EM_X86_64, elf::EM_AARCH64].contains(&header.e_machine(endian)) {
        return None;
    }
    let movable = header.e_type(endian) == elf::ET_DYN;
    let segments = header.program_headers(endian, file).ok()?.iter();
    let is_code = |segment: &&ProgramHeader64<_>| {
        let executable = segment.p_flags(endian) & elf::PF_X == elf::PF_X;
        segment.p_type(endian) == elf::PT_LOAD && executable
    };
    let code = |segment: &ProgramHeader64<_>| {
        Some(Code {
            address: segment.p_vaddr(endian),
            movable,
            bytes: segment.data(endian, file).ok()?.to_vec(),
        })
    };
    segments.filter(is_code).map(code).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn directories(bytes: &[u8]) -> Vec<String> {
    text(bytes)
        .split(':')
        .filter(|directory| !directory.is_empty())
        .map(str::to_owned)
        .collect()
}

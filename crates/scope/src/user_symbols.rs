//! Names for code in user space: the guest's programs, told by their bytes.

use std::io;
use std::path::Path;

/// A stretch of a program's code.
#[derive(Clone, Debug)]
struct Segment {
    /// Where it is in memory; for code that may be anywhere, counted from its begin.
    address: u64,
    /// Whether it may be anywhere.
    movable: bool,
    code: Vec<u8>,
    program: String,
}

/// The programs and libraries of a guest.
#[derive(Clone, Debug, Default)]
pub struct UserSymbols {
    segments: Vec<Segment>,
}

/// With `norandmaps` the kernel puts its own code for user space here.
const VDSO: std::ops::Range<u64> = 0x7fff_f7ff_0000..0x7fff_f800_0000;

impl UserSymbols {
    /// Those in an initramfs.
    pub fn of_initramfs(path: &Path) -> io::Result<Self> {
        Ok(Self::of_cpio(&std::fs::read(path)?))
    }

    /// Those in a `cpio` archive of the new format.
    fn of_cpio(archive: &[u8]) -> Self {
        let mut segments = Vec::new();
        let mut rest = archive;
        while let Some((name, content, after)) = cpio_entry(rest) {
            if name == "TRAILER!!!" {
                break;
            }
            segments.extend(elf_code(&program(name), content));
            rest = after;
        }
        Self { segments }
    }

    /// The program that these bytes at this address belong to, by its file's name.
    pub fn name(&self, address: u64, bytes: &[u8]) -> String {
        let fits = |segment: &&Segment| segment.has(address, bytes);
        let fixed = self.segments.iter().filter(|segment| !segment.movable);
        if let Some(segment) = fixed.clone().find(fits) {
            return segment.program.clone();
        }
        if VDSO.contains(&address) {
            return "[vdso]".to_owned();
        }
        let movable = self.segments.iter().filter(|segment| segment.movable);
        let found = movable.clone().find(fits);
        found.map_or_else(|| "(user space, unnamed)".to_owned(), |s| s.program.clone())
    }
}

impl Segment {
    fn has(&self, address: u64, bytes: &[u8]) -> bool {
        if !self.movable {
            let Some(at) = address.checked_sub(self.address) else {
                return false;
            };
            let code = self.code.get(at as usize..);
            return code.is_some_and(|code| code.starts_with(bytes));
        }
        // Where it is in its page is known at least.
        let first = (address.wrapping_sub(self.address) & 0xfff) as usize;
        let mut places = (first..self.code.len()).step_by(0x1000);
        places.any(|at| self.code[at..].starts_with(bytes))
    }
}

fn program(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    // Process 1 of the guest is the target.
    let name = if name == "init" {
        "punctual-target"
    } else {
        name
    };
    name.to_owned()
}

/// The name and the content of the first file, and what comes after it.
fn cpio_entry(archive: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let header = archive
        .get(..110)
        .filter(|header| header.starts_with(b"070701"))?;
    let field = |number: usize| {
        let text = std::str::from_utf8(&header[6 + number * 8..][..8]).ok()?;
        usize::from_str_radix(text, 16).ok()
    };
    let (size, name_size) = (field(6)?, field(11)?);
    let name = archive.get(110..110 + name_size.checked_sub(1)?)?;
    let begin = (110 + name_size).next_multiple_of(4);
    let content = archive.get(begin..begin + size)?;
    let after = archive.get((begin + size).next_multiple_of(4)..)?;
    Some((std::str::from_utf8(name).ok()?, content, after))
}

/// The executable segments of an ELF file for x86-64; none of anything else.
fn elf_code(program: &str, file: &[u8]) -> Vec<Segment> {
    const MOVABLE: u64 = 3;
    const LOAD: u64 = 1;
    const EXECUTABLE: u64 = 1;
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return Vec::new();
    }
    let number = |at: usize, length: usize| -> Option<u64> {
        let bytes = file.get(at..at + length)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |all, byte| all << 8 | u64::from(*byte)),
        )
    };
    let segment = |at: usize| -> Option<Segment> {
        if number(at, 4)? != LOAD || number(at + 4, 4)? & EXECUTABLE == 0 {
            return None;
        }
        let (offset, size) = (number(at + 8, 8)? as usize, number(at + 32, 8)? as usize);
        Some(Segment {
            address: number(at + 16, 8)?,
            movable: number(16, 2)? == MOVABLE,
            code: file.get(offset..offset.checked_add(size)?)?.to_vec(),
            program: program.to_owned(),
        })
    };
    let header = || {
        Some((
            number(32, 8)? as usize,
            number(54, 2)? as usize,
            number(56, 2)? as usize,
        ))
    };
    let Some((first, size, count)) = header() else {
        return Vec::new();
    };
    (0..count)
        .filter_map(|n| segment(first + n * size))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpio(name: &str, content: &[u8]) -> Vec<u8> {
        let fields = [
            0,
            0,
            0,
            0,
            0,
            0,
            content.len(),
            0,
            0,
            0,
            0,
            name.len() + 1,
            0,
        ];
        let mut bytes = b"070701".to_vec();
        bytes.extend(
            fields
                .iter()
                .flat_map(|field| format!("{field:08x}").into_bytes()),
        );
        bytes.extend(name.bytes().chain([0]));
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_program_is_known_by_its_code() {
        // This test is a program, too.
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let archive = [cpio("bin/own", &own), cpio("TRAILER!!!", b"")].concat();
        let programs = UserSymbols::of_cpio(&archive);
        let segment = &programs.segments[0];
        let some = segment.code.len() / 2;
        let bytes = segment.code[some..some + 64].to_vec();
        let base = if segment.movable { 0x5555_5555_4000 } else { 0 };
        let address = base + segment.address + some as u64;
        assert_eq!(programs.name(address, &bytes), "own");
        assert_eq!(programs.name(address + 1, &bytes), "(user space, unnamed)");
        assert_eq!(
            programs.name(0x7fff_f7ff_dbe0, &[0x0f, 0x31, 1, 2, 3]),
            "[vdso]"
        );
    }
}

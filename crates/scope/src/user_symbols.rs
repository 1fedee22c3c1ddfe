// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names for code in user space: the guest's programs, known by their bytes.

use std::io;
use std::path::Path;

use punctual_kernels::elf::{self, Code};
use punctual_kernels::initramfs;

/// A stretch of a program's code.
#[derive(Clone, Debug)]
struct Segment {
    code: Code,
    /// The file's path in the guest.
    path: String,
    program: String,
}

/// The programs and libraries of a guest.
#[derive(Clone, Debug, Default)]
pub struct UserSymbols {
    segments: Vec<Segment>,
}

impl UserSymbols {
    /// Reads the programs in an initramfs.
    pub fn of_initramfs(path: &Path) -> io::Result<Self> {
        let mut segments = Vec::new();
        for (path, file) in initramfs::files(&std::fs::read(path)?)? {
            // What is no program has no code.
            let code = elf::code(&file).unwrap_or_default();
            segments.extend(code.into_iter().map(|code| Segment {
                code,
                path: path.clone(),
                program: program(&path),
            }));
        }
        Ok(Self { segments })
    }

    /// Returns the program to which these bytes at this address belong, by its file's name.
    pub fn name(&self, address: u64, bytes: &[u8]) -> String {
        let fits = |segment: &&Segment| segment.has(address, bytes);
        let fixed = self.segments.iter().filter(|segment| !segment.code.movable);
        if let Some(segment) = fixed.clone().find(fits) {
            return segment.program.clone();
        }
        let movable = self.segments.iter().filter(|segment| segment.code.movable);
        let found = movable.clone().find(fits);
        found.map_or_else(|| "(user space, unnamed)".to_owned(), |s| s.program.clone())
    }
}

/// A place of code: the file in the guest, the program, and the address in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file's path.
    pub path: &'a str,
    /// The program's name.
    pub program: &'a str,
    /// The address in the file's own numbering.
    pub address: u64,
}

impl UserSymbols {
    /// Returns the place of these bytes at this address: by the known positions of files (`bases`),
    /// or else wherever they are found first.
    pub fn place(&self, address: u64, bytes: &[u8], bases: &[(usize, u64)]) -> Option<Place<'_>> {
        let known = bases.iter().find_map(|(number, base)| {
            let own = address.checked_sub(*base)?;
            self.segments[*number]
                .starts(own, bytes)
                .then_some((*number, own))
        });
        let (number, address) = known.or_else(|| self.places(address, bytes).next())?;
        let Segment { path, program, .. } = &self.segments[number];
        Some(Place {
            path,
            program,
            address,
        })
    }

    /// Returns the position of a file in memory: the segment, and its displacement. Only bytes that
    /// occur in one place of all files tell it.
    pub fn base(&self, address: u64, bytes: &[u8]) -> Option<(usize, u64)> {
        let mut places = self.places(address, bytes);
        let (number, own) = places.next().filter(|_| bytes.len() >= TELLING)?;
        let is_only = places.next().is_none();
        is_only.then(|| (number, address - own))
    }

    /// Returns all places to which these bytes may belong: the segment, and the address in it.
    fn places<'a>(
        &'a self,
        address: u64,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = (usize, u64)> + 'a {
        let numbered = self.segments.iter().enumerate();
        numbered.flat_map(move |(number, segment)| {
            let own = segment.addresses(address);
            own.filter(move |own| segment.starts(*own, bytes))
                .map(move |own| (number, own))
        })
    }
}

/// The minimum number of bytes of code that tell their place.
const TELLING: usize = 24;

impl Segment {
    /// Returns the addresses of the segment that may lie at an address of memory: the position
    /// within its page is known.
    fn addresses(&self, address: u64) -> impl Iterator<Item = u64> + use<> {
        let (first, length) = (self.code.address, self.code.bytes.len() as u64);
        let (from, step) = if self.code.movable {
            (first + (address.wrapping_sub(first) & 0xfff), 0x1000)
        } else {
            (address.max(first), u64::MAX)
        };
        std::iter::successors(Some(from), move |at| at.checked_add(step))
            .take_while(move |at| *at < first + length)
            .filter(move |at| step == 0x1000 || *at == address)
    }

    /// Returns true if its code at one of its addresses begins like this.
    fn starts(&self, address: u64, bytes: &[u8]) -> bool {
        let offset = address.checked_sub(self.code.address);
        let offset = offset.and_then(|offset| usize::try_from(offset).ok());
        let code = offset.and_then(|offset| self.code.bytes.get(offset..));
        code.is_some_and(|code| code.starts_with(bytes))
    }

    fn has(&self, address: u64, bytes: &[u8]) -> bool {
        let code = self.code.bytes.as_slice();
        let starts = |at: usize| code.get(at..).is_some_and(|code| code.starts_with(bytes));
        let offset = address.wrapping_sub(self.code.address);
        if !self.code.movable {
            return usize::try_from(offset).is_ok_and(starts);
        }
        // Where it is in its page is known at least.
        let first = (offset & 0xfff) as usize;
        (first..code.len()).step_by(0x1000).any(starts)
    }
}

fn program(path: &str) -> String {
    match path.rsplit('/').next().unwrap_or(path) {
        // Process 1 of the guest is the target.
        "init" => "punctual-target".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use punctual_kernels::initramfs::Initramfs;

    use super::*;

    #[test]
    fn a_program_is_known_by_its_code() {
        // This test is a program, too.
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let mut guest = Initramfs::new();
        guest.file("/bin/own", 0o755, own).unwrap();
        guest.file("/etc/hosts", 0o644, "no program").unwrap();
        let archive = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(archive.path(), guest.finish().unwrap()).unwrap();
        let programs = UserSymbols::of_initramfs(archive.path()).unwrap();
        let [Segment { code, .. }] = &programs.segments[..] else {
            panic!("one segment of code: {}", programs.segments.len());
        };
        let some = code.bytes.len() / 2;
        let bytes = code.bytes[some..some + 64].to_vec();
        let base = if code.movable { 0x5555_5555_4000 } else { 0 };
        let address = base + code.address + some as u64;
        assert_eq!(programs.name(address, &bytes), "own");
        assert_eq!(programs.name(address + 1, &bytes), "(user space, unnamed)");
    }
}

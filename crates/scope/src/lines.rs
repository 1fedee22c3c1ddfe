// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions and lines of a guest's programs, as far as their files tell them: by their DWARF, or
//! else by their symbols.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::Arc;

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};
use punctual_kernels::initramfs;
use punctual_trace::Block;

use crate::names::KERNEL;
use crate::user_symbols::UserSymbols;

type Dwarfs = Context<EndianArcSlice<RunTimeEndian>>;

/// The lines of a guest's programs.
#[derive(Debug)]
pub struct Lines<'a> {
    programs: &'a UserSymbols,
    /// The positions of files in memory, as far as they are known.
    bases: Vec<(usize, u64)>,
    /// Files that are not read yet, by path; and those that are.
    files: HashMap<String, Vec<u8>>,
    known: HashMap<String, FileLines>,
}

/// The names that a file has for its code.
#[derive(Debug, Default)]
pub struct FileLines {
    dwarf: Option<SourceLines>,
    /// Functions by their starts, each with its length.
    symbols: Vec<(u64, u64, String)>,
}

struct SourceLines(Dwarfs);

impl std::fmt::Debug for SourceLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DWARF")
    }
}

impl<'a> Lines<'a> {
    /// Creates the lines of the programs in an initramfs to which some of these blocks belong.
    /// Longer blocks tell the position of a file.
    pub fn of(programs: &'a UserSymbols, path: &Path, blocks: &[Block]) -> io::Result<Self> {
        let mut bases = Vec::new();
        for block in blocks {
            let Some(first) = block.insns.first().filter(|insn| insn.address < KERNEL) else {
                continue;
            };
            let bytes: Vec<u8> = block.insns.iter().flat_map(|i| i.bytes.clone()).collect();
            let base = programs.base(first.address, &bytes);
            bases.extend(base.filter(|base| !bases.contains(base)));
        }
        let files = initramfs::files(&std::fs::read(path)?)?;
        Ok(Self {
            programs,
            bases,
            files: files.into_iter().collect(),
            known: HashMap::new(),
        })
    }

    /// Returns the name of the code with these bytes; `None` if its file says nothing of it.
    pub fn name(&mut self, address: u64, bytes: &[u8]) -> Option<String> {
        let place = self.programs.place(address, bytes, &self.bases)?;
        if let Some(file) = self.files.remove(place.path) {
            self.known
                .insert(place.path.to_owned(), FileLines::of(&file));
        }
        let (function, line) = self.known.get(place.path)?.at(place.address);
        let mut name = function?;
        if let Some(line) = line {
            let _ = write!(name, " ({line})");
        }
        Some(format!("{name} [{}]", place.program))
    }
}

impl FileLines {
    /// Reads an ELF file of 64 bits; one that is none has neither functions nor lines.
    pub fn of(file: &[u8]) -> Self {
        let Ok(elf) = ElfFile64::<object::Endianness>::parse(file) else {
            return Self::default();
        };
        let symbols = elf.symbols().chain(elf.dynamic_symbols());
        let functions = symbols.filter(|one| one.kind() == SymbolKind::Text && one.address() > 0);
        let mut symbols: Vec<_> = functions
            .filter_map(|one| Some((one.address(), one.size(), one.name().ok()?.to_owned())))
            .collect();
        symbols.sort();
        symbols.dedup_by_key(|one| one.0);
        let endian = if elf.is_little_endian() {
            RunTimeEndian::Little
        } else {
            RunTimeEndian::Big
        };
        let dwarf = Dwarf::load(|section| {
            let data = elf.section_by_name(section.name());
            let data = data.and_then(|one| one.data().ok()).unwrap_or_default();
            Ok::<_, gimli::Error>(EndianArcSlice::new(Arc::from(data), endian))
        });
        let dwarf = dwarf.and_then(Context::from_dwarf).ok().map(SourceLines);
        Self { dwarf, symbols }
    }

    /// Returns the function and the line at an address.
    pub fn at(&self, address: u64) -> (Option<String>, Option<String>) {
        let told = self.dwarf.as_ref().and_then(|dwarf| dwarf.at(address));
        let (function, line) = told.unwrap_or_default();
        (function.or_else(|| self.symbol(address)), line)
    }

    fn symbol(&self, address: u64) -> Option<String> {
        let next = self.symbols.partition_point(|one| one.0 <= address);
        let (begin, size, name) = self.symbols.get(next.checked_sub(1)?)?;
        let is_within = *size == 0 || address - begin < *size;
        is_within.then(|| name.clone())
    }
}

impl SourceLines {
    /// Returns the innermost function, inlined ones included, and its line.
    fn at(&self, address: u64) -> Option<(Option<String>, Option<String>)> {
        // The library adds one to it.
        address.checked_add(1)?;
        let mut frames = self.0.find_frames(address).skip_all_loads().ok()?;
        let frame = frames.next().ok()??;
        let function = frame
            .function
            .and_then(|name| Some(name.demangle().ok()?.into_owned()));
        let line = frame.location.and_then(|at| {
            let file = at.file?.rsplit('/').next()?;
            Some(format!("{file}:{}", at.line?))
        });
        Some((function, line))
    }
}
